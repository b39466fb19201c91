"""Per-node counters: narrow ones in flip-flops, followed by wide ones in memory, latched for two readers."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import COUNTER_BITS, Counter
from ..lib.bit_sliced import added, counted, late_column, planes
from ..lib.ram import Ram, at_once, style

__all__ = ["ROW", "SWEPT", "Counters", "counter_rows"]

#: Counters that are sums of one-clock events; the window keeps LAG_MAX as a maximum.
SWEPT = tuple(c for c in Counter if c is not Counter.LAG_MAX)
#: Words of a node's row: its counters in the order of :class:`~.layout.Counter`.
ROW = len(Counter)


def counter_rows(nodes: int) -> int:
    """Rows of the counters' memory, a power of two: 8, 16 or 32."""
    return 8 if nodes <= 8 else 16 if nodes <= 16 else 32


class _Sweep:
    """Where the slow sweep is, and whether it moves."""

    def __init__(self, sweep: int):
        self.place = Signal(range(sweep))       # the word whose turn it is
        self.step, self.node = self.place[:3], self.place[3:]
        self.visits = Signal()
        self.visited_before = Signal()          # visits, a clock ago
        self.asked = Signal(2)                  # copies
        self.awake = Signal()
        self.slips = Signal()                   # it has slipped: the row and its words belong to another turn
        self.active = Signal()                  # in the present turn
        self.adding = Signal(4)                 # ... of the words at stages 2 to 5


class _Events:
    """The events of a clock, one clock late."""

    def __init__(self, nodes: int, counters):
        self.events = [Signal(nodes, name=f"event_{c.name.lower()}") for c in counters]
        self.any_event = Signal(len(counters))


class Counters(wiring.Component):
    """Counts events of every node and kind, any number of them in every clock.

    Each event enters a small bit-sliced counter, which wraps. A quick sweep visits one node per
    clock and tracks the small counters in a memory of larger ones: a smaller number than at the last visit means that
    the counter has wrapped. A slow sweep has a *turn* of :data:`ROW` clocks for each node. It tracks the larger
    counters in the same way in the node's row of large counters, one word per clock. It takes them in the clock in
    which the quick sweep visits the same node, so the counters of a node always belong to one instant. A *latch* copies
    each row during one whole sweep; the copy is kept until its owner requests another one. There are two independent
    latches, one for the census and one for the bus.

    What happens to the counters of node n, in clocks since its turn began (``step`` 0):

    =======  =====================================================================================================
    clock    at its end
    =======  =====================================================================================================
    0        the small counters and the followers are selected (``found``, ``known``), and the planes of the lag
    1        the followers are updated (``write.data``); the sum of word 0 is addressed, that of word k in clock 1 + k
    2        the row is taken (``taken``), and its lag
    3 + k    word k is at ``taken[0]``, its sum at the memory's output: compared (``lower``, ``upper``, ``gone_round``)
    4 + k    the new sum is complete (``total``)
    5 + k    it is written back, as word ``target``, and into the copies that are being made
    =======  =====================================================================================================

    The next node's turn begins in clock 8, when five words are still on their way: the stages overlap. No word meets
    itself, because each returns after a whole sweep.

    Parameters
    ----------
    nodes : number of nodes.
    lag_bits : planes of ``beyond``.
    ram : kind of memory, see :class:`~.ram.Ram`.
    rejects : REJECTED, the last one, is counted; else it stays 0.
    shared : both latches are in one memory: the second copies when the first does not, and words come up to four
        clocks after their address.
    doubled : by how much more than one REJECTED may count in one clock: 0, 1 or 3.

    Members
    -------
    event : for each of :data:`SWEPT`, one bit per node.
    twice : only if ``doubled``, with REJECTED: it counts two. If ``doubled`` is 3, two further planes of ``nodes``
        bits make it count three and four.
    beyond : two more than the largest lag of each node, in planes; copied with the counters.
    clear : hold for one sweep (``sweep`` clocks) and eight clocks to zero everything except the latched copies.
    latch : a pulse starts a copy, one bit per latch: of all events before the pulse, and some
        after it.
    copying : the copy is being made, from word 0 on, one word per clock. A reader that is no faster may read it
        meanwhile.
    latched : the requested copy is complete; at most three sweeps after the pulse, five if shared.
    slip : clocks that a simulation skips in addition to this one, modulo 256.
    busy : no clocks may be skipped.
    reading, address : word to read, one per latch: counter ``address[:3]`` of node ``address[3:]``.
    word : two clocks later, while ``reading``.
    """

    def __init__(self, nodes: int, lag_bits: int, ram: str = "portable", rejects: bool = False, shared: bool = False,
                 doubled: int = 0):
        self.nodes, self.lag_bits, self.ram, self.rejects, self.shared = nodes, lag_bits, ram, rejects, shared
        self.doubled = doubled
        self.sweep = ROW * counter_rows(nodes)
        super().__init__({
            "event": In(nodes).array(len(SWEPT)), "beyond": In(nodes).array(lag_bits), "clear": In(1),
            "latch": In(2), "copying": Out(2), "latched": Out(2),
            "reading": In(2), "address": In(range(self.sweep)).array(2), "word": Out(COUNTER_BITS).array(2),
            "slip": In(8), "busy": Out(1),
            **({"twice": In(nodes * doubled)} if doubled else {}),
        })

    def elaborate(self, platform):
        m = Module()
        swept = SWEPT if self.rejects else SWEPT[:-1]
        sweep, events = _Sweep(self.sweep), _Events(self.nodes, swept)
        m.d.sync += [sweep.place.eq(sweep.place + 1 + self.slip), sweep.slips.eq(self.slip.any())]
        self._rest(m, sweep, events, swept)
        followers = self._follow(m, sweep, events, swept)
        taken = self._take(m, sweep, followers, swept)
        target, total = self._add(m, sweep, taken[0])
        self._copy(m, sweep, target, total)
        return m

    def _rest(self, m, sweep, now, swept):
        """Without events for two sweeps every small counter has been tracked, and the sweeps rest."""
        events, any_event, asked, awake = now.events, now.any_event, sweep.asked, sweep.awake
        step, visits, active, adding = sweep.step, sweep.visits, sweep.active, sweep.adding
        stirs = Signal()
        resting = Signal(range(2 * self.sweep + 1))
        m.d.sync += [
            *(e.eq(self.event[k]) for k, e in enumerate(events)),
            any_event.eq(Cat(e.any() for _, e in zip(swept, self.event, strict=False))),
            stirs.eq(any_event.any() | self.clear | self.latch.any() | self.copying.any() | asked.any()),
            visits.eq((step == 0) & awake & ~sweep.slips),
            sweep.visited_before.eq(visits), adding.eq(Cat(active, adding)),
        ]
        with m.If(stirs):
            m.d.sync += [resting.eq(0), awake.eq(1)]
        with m.Elif(resting[-1]):
            m.d.sync += awake.eq(0)
        with m.Else():
            m.d.sync += resting.eq(resting + 1)
        with m.If(step == 0):
            m.d.sync += active.eq(awake & ~sweep.slips)
        self._slip(m, sweep, any_event, resting)

    def _slip(self, m, sweep, any_event, resting):
        """A simulation skips: the words under way are left for the next turn of their node.

        A follower must not gain a whole round between two visits. While clocks are computed, each sweep visits it; with
        skips between them, it may be missed again and again. Therefore, when half a sweep of clocks had an event, skips
        wait for a whole sweep.
        """
        eventful = Signal(range(self.sweep // 2 + 1))   # clocks with an event, since a sweep without skip or event
        asked, awake = sweep.asked, sweep.awake
        with m.If(self.slip.any()):
            m.d.sync += [sweep.visits.eq(0), sweep.visited_before.eq(0), sweep.active.eq(0), sweep.adding.eq(0)]
            m.d.sync += [resting.eq(0), awake.eq(1)]
        with m.If(~awake | (resting == self.sweep + ROW + 4)):
            m.d.sync += eventful.eq(0)
        with m.Elif(any_event.any() & ~eventful[-1]):
            m.d.sync += eventful.eq(eventful + 1)
        m.d.comb += self.busy.eq(asked.any() | self.copying.any() | eventful[-1])

    def _follow(self, m, sweep, now, swept):
        """The quick sweep: small counters and the larger ones that follow them. Returns these, as they are written.

        In the first clock of a turn it visits the node of the slow sweep, in the seven others it goes on from node to
        node. It therefore returns to a node within 8/7 of ``rows`` and two clocks. Small counters wrap after twice
        ``rows``, so they have wrapped once at most.
        """
        rows, awake = counter_rows(self.nodes), sweep.awake
        events, any_event = now.events, now.any_event
        ahead = Signal(range(self.sweep), init=1)   # a clock ahead of `place`
        other = Signal(range(rows))
        at = [Signal(range(rows), name=f"at{k}") for k in range(4)]
        turn = Signal(rows, init=1)           # at[1], one bit per node
        follows = Signal(2)                   # awake, a clock ago and two
        m.d.sync += [
            ahead.eq(ahead + 1 + self.slip), turn.eq(1 << at[0]), *(new.eq(old) for old, new in pairwise(at)),
            follows.eq(Cat(awake, follows)),
        ]
        with m.If(ahead[:3] == 0):
            m.d.comb += at[0].eq(ahead[3:])
        with m.Else():
            m.d.comb += at[0].eq(other)
            m.d.sync += other.eq(other + 1)
        # (A counter that counts two in one clock needs one more bit; one that counts four, two.)
        further = self.doubled.bit_length()
        usual, bits = rows.bit_length(), self.sweep.bit_length() + further
        shape = data.ArrayLayout(bits, len(swept))
        m.submodules.followers = followers = memory.Memory(
            shape=shape, depth=rows, init=[], attrs=style(self.ram))
        write, read = followers.write_port(), followers.read_port(domain=at_once(m, self.ram))
        m.d.comb += [read.addr.eq(at[1]), write.addr.eq(at[3]), write.en.eq(follows[1])]
        for k, counter in enumerate(swept):
            doubled = self.doubled and counter is Counter.REJECTED
            few = usual + (further if doubled else 0)
            small = planes(few, self.nodes, counter.name.lower())
            more = counted(small, events[k])
            if doubled:
                more = self._counted_on(m, small, more)
            with m.If(any_event[k]):
                m.d.sync += [plane.eq(new) for plane, new in zip(small, more, strict=True)]
            with m.If(self.clear):
                m.d.sync += [plane.eq(0) for plane in small]
            found = Signal(few, name=f"{counter.name.lower()}_found")
            known = Signal(bits, name=f"{counter.name.lower()}_known")
            with m.If(awake):
                m.d.sync += [found.eq(Cat((plane & turn).any() for plane in small)), known.eq(read.data[k])]
            with m.If(follows[0]):
                m.d.sync += write.data[k].eq(Cat(found, known[few:] + (found < known[:few])))
            with m.If(self.clear):
                m.d.sync += write.data[k].eq(0)
        return write.data

    def _counted_on(self, m, small, more):
        """Planes of REJECTED after an event in which it counts up to ``doubled`` more than one; ``more``: by one."""
        twice = Signal(self.nodes * self.doubled)
        if self.doubled == 1:
            m.d.sync += twice.eq(self.twice)
            return counted(more, twice)
        # The number is computed a clock ahead, so that a single sum remains.
        two, three, four = (self.twice.word_select(k, self.nodes) for k in range(3))
        one = self.event[-1]
        m.d.sync += twice.eq(Cat((one & ~two) | (three & ~four), two & ~four, four))
        return added(small, [twice.word_select(k, self.nodes) for k in range(3)])

    def _take(self, m, sweep, followers, swept):
        """Takes the visited node's row, which passes then, one word per clock, followed by zeros. Returns the row.

        The lag, selected in two steps, passes as two more than its value.
        """
        bits, node = len(followers[0]), sweep.node
        visits, visited_before, adding = sweep.visits, sweep.visited_before, sweep.adding
        taken = [Signal(bits, name=f"taken{k}") for k in range(len(swept) + 1)]
        for k, counter in enumerate(swept):
            with m.If(visited_before):
                m.d.sync += taken[counter].eq(followers[k])
            with m.Elif(adding[1]):
                following = taken[counter + 1] if counter + 1 < len(taken) else 0
                m.d.sync += taken[counter].eq(following - 2 if counter + 1 == Counter.LAG_MAX else following)
        lag = late_column(m, list(self.beyond), node, "lag_max", visits)
        with m.If(visited_before):
            m.d.sync += taken[Counter.LAG_MAX].eq(lag)
        with m.Elif(adding[1]):
            m.d.sync += taken[Counter.LAG_MAX].eq(taken[Counter.REJECTED] + 2 if self.rejects else 2)
        return taken

    def _add(self, m, sweep, word):
        """Updates the large counter of a word. Returns which one it was, and its sum.

        A maximum is compared with the zero that its word in memory always is.
        """
        bits, active, adding = len(word), sweep.active, sweep.adding
        total = Signal(COUNTER_BITS)
        bare = self.shared and self.ram == "ice40"
        m.submodules.sums = sums = Ram(COUNTER_BITS, self.sweep, self.ram, register=not bare)
        lower = Signal(bits)
        upper = Signal(COUNTER_BITS - bits)
        gone_round = Signal()
        # The word that is read; without the memory's register one clock later.
        source = Signal(range(self.sweep), init=self.sweep - 1 - bare)
        target = Signal(range(self.sweep), init=self.sweep - 5)   # the word that `total` is
        m.d.sync += [source.eq(source + 1 + self.slip), target.eq(target + 1 + self.slip)]
        m.d.comb += [
            sums.r_en.eq(adding[0] if bare else active), sums.r_next.eq(active | adding[0]), sums.r_addr.eq(source),
            sums.w_en.eq((adding[3] & (target[:3] != Counter.LAG_MAX)) | self.clear),
            sums.w_addr.eq(target), sums.w_data.eq(total),
        ]
        with m.If(adding[1]):
            m.d.sync += [
                lower.eq(word), upper.eq(sums.r_data[bits:]), gone_round.eq(word < sums.r_data[:bits])]
        with m.If(adding[2]):
            m.d.sync += total.eq(Cat(lower, upper + gone_round))
        with m.If(self.clear):
            m.d.sync += total.eq(0)
        return target, total

    def _copy(self, m, sweep, target, total):
        """The copies, of one whole sweep each."""
        place, asked = sweep.place, sweep.asked
        armed = Signal(2)
        # Two clocks after the pulse the sweep is awake, whether it has rested or not: the copy begins at the same time.
        asked_before = Signal(2)
        m.d.sync += asked_before.eq(asked)
        if self.shared:
            self._read_in_turns(m, target, total)
        for side in range(2):
            if not self.shared:
                m.submodules[f"latch{side}"] = latch = Ram(COUNTER_BITS, self.sweep, self.ram)
                m.d.comb += [
                    latch.w_en.eq(self.copying[side]), latch.w_addr.eq(target), latch.w_data.eq(total),
                    latch.r_en.eq(self.reading[side]), latch.r_next.eq(self.reading[side]),
                    latch.r_addr.eq(self.address[side]), self.word[side].eq(latch.r_data),
                ]
            with m.If(self.latch[side]):
                m.d.sync += [asked[side].eq(1), self.latched[side].eq(0)]
            with m.If(place == self.sweep - 1):
                m.d.sync += armed[side].eq(
                    asked[side] & asked_before[side] & ~(asked[0] if self.shared and side else 0))
            with m.If(target == self.sweep - 1):
                m.d.sync += self.copying[side].eq(armed[side] & ~self.copying[side])
                with m.If(self.copying[side]):
                    m.d.sync += [asked[side].eq(0), self.latched[side].eq(1)]
            # After a copy this is still set. A skip past the place where it is cleared must not begin another copy.
            with m.If(self.slip.any()):
                m.d.sync += armed[side].eq(0)
            with m.If(self.clear):
                m.d.sync += [asked[side].eq(0), armed[side].eq(0), self.copying[side].eq(0), self.latched[side].eq(0)]

    def _read_in_turns(self, m, target, total):
        """One memory for both latches: one is copied at a time, and they are read in alternate clocks."""
        bare = self.ram == "ice40"
        m.submodules.latches = latches = Ram(COUNTER_BITS, 2 * self.sweep, self.ram, register=not bare)
        side = Signal()              # whose word is addressed
        came = Signal(1 if bare else 2)     # whose word is at the memory's output, last
        m.d.sync += [side.eq(~side ^ self.slip[0]), came.eq(Cat(side, came))]
        m.d.comb += [
            latches.w_en.eq(self.copying[0] | self.copying[1]), latches.w_addr.eq(Cat(target, self.copying[1])),
            latches.w_data.eq(total), latches.r_en.eq(1), latches.r_next.eq(1),
            latches.r_addr.eq(Cat(Mux(side, self.address[1], self.address[0]), side)),
        ]
        for k in range(2):
            with m.If(came[-1] == k):
                m.d.sync += self.word[k].eq(latches.r_data)
