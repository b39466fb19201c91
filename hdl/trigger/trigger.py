"""Trigger: passes the items from a start to a stop, and those just before the start."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..items.expander import item_layout
from ..layout import PORT_BITS, PRETRIGGER_MAX, Extra, Geometry
from ..lib.fifo import SmallFifo
from ..lib.ram import Ram

__all__ = ["Trigger", "match_layout"]

#: Nibbles that are read ahead.
_AHEAD = 8
#: Slots that are reserved for nibbles on their way.
_MARGIN = 8


def match_layout() -> data.StructLayout:
    """Condition for an item, as registers START and STOP define it: the bits of its value and of its node
    that are set in the masks must equal those given here. With ``event`` the value is the event id,
    of nodes in event mode only; otherwise it is the first nibble, of other nodes only. Nothing matches
    unless ``on``."""
    return data.StructLayout({
        "value": 8, "value_mask": 8, "node": 5, "zero_0": 3, "node_mask": 5, "zero_1": 1, "event": 1, "on": 1})


class _Compared:
    """Nibbles on their way through the comparison, of which the last stage is decided upon.

    The stages: a nibble as it comes; is it of an event; the bits to be compared; each part compared; all of them.
    """

    def __init__(self, shape):
        self.stages = [Signal(shape, name=f"item{k}", reset_less=True) for k in range(5)]
        self.valid = Signal(5)
        self.room = Signal()
        self.edge = Signal.like(self.item.time)     # window of the start, or of the stop when there is one
        is_older, is_later = Signal(3), Signal(3)
        self.is_older, self.is_later = is_older, is_later

    @property
    def item(self):
        return self.stages[4]


class _Decided:
    """What becomes of the compared nibble, and what has entered the memory."""

    def __init__(self, depth: int):
        self.level = Signal(range(depth + 1))
        self.write = Signal(range(depth))
        self.armed = Signal()
        self.waits = Signal()       # for a start
        self.triggers = Signal()
        self.dropped = Signal()     # the nibble that has come is dropped
        self.enters = Signal()


class _History:
    """The search for the first window that is kept."""

    def __init__(self, depth: int):
        self.entered = Signal()
        self.looks = Signal()
        self.looking = Signal(3)
        self.keep = Signal(range(depth))
        self.settled = Signal(init=1)   # `keep` is valid, the start has been found


class _Read:
    """Entries that are read from the memory, and pass or are discarded."""

    def __init__(self, shape):
        self.some = Signal()        # level != 0
        self.left = Signal()
        # The third clock is that of a register: the memory's blocks are far away.
        self.fetching = Signal(3)
        self.passing = Signal(3)
        self.fetched = Signal(shape, reset_less=True)
        self.asks = Signal()        # it passes when its age is known
        self.throws = Signal()
        self.begun = Signal()       # the first window is known
        self.head_thrown = Signal()


class Trigger(wiring.Component):
    """Passes the windows from a start to a stop, and discards all others, whole.

    *Matching.* The start is the first item, in order of arrival, that matches its condition. The stop is the first
    item after it (without a start, of all) that matches the other condition. A late item matches as any other does,
    with its own stamp; but an item stamped before the start's window does not stop.

    *Selection* is by stamp: all items from the first window to the last one are kept, including
    late ones. The last window is that of the item that stopped. The first one is that of the item
    that started, or an earlier one: ``before`` nibbles are counted back from the matching nibble in the
    order of arrival. The nibble found there is in some window (or late item), and the first window that begins with or
    after that one is the first that is kept. (The matching nibble is the first of an item; in an event the third, its
    id's upper half; with 8-bit ports the second byte.) Two cases are not exact: when a late item starts, windows after
    its own that had already been discarded are missing; and when a late item stops, windows after its own that had
    already come are kept.

    While waiting for a start it keeps in a memory the windows that may be needed, and discards the rest window by
    window. On a board with half clocks, these take the place of windows here when stamps count them.

    Parameters
    ----------
    geometry : the board's geometry.
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : nibbles of items, windows in order except for late items. Each late item is a window of its own, later than
        its neighbours of the same stamp. At least eleven clocks from ``i`` to ``o``. A late item waits at the input
        until everything before it has been compared.
    events : nodes in event mode.
    start, stop : see :func:`match_layout`. These three must not change during capture.
    before : nibbles before the start, up to :data:`~.layout.PRETRIGGER_MAX`; likewise.
    awaited : nodes with an item that was passed over and has not followed.
    finish : nothing more will come: items that wait for a start are discarded.
    triggered : a start has been found.
    stopped : a stop has been found, its window is complete, and each item that was passed over until then has followed.
    thrown : an item was discarded before the memory, and one after it, some clocks ago.
    fired, fired_at : the start has been found, or without one the stop, for one clock; the window of its item. Only on
        a board with ``trigger_out``.
    busy : something is on its way.
    holds : something is inside, even if it only waits for a start.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        self.fires = Extra.TRIGGER_OUT in geometry.extras
        self.shape = item_layout(geometry.nodes, geometry.port_bits)
        # Room for the history and the longest window.
        self.depth = 1024 if geometry.nodes <= 16 else 2048
        super().__init__({
            "i": In(stream.Signature(self.shape)), "o": Out(stream.Signature(self.shape)),
            "events": In(geometry.nodes), "start": In(match_layout()), "stop": In(match_layout()),
            "before": In(range(PRETRIGGER_MAX + 1)), "awaited": In(geometry.nodes),
            "finish": In(1), "triggered": Out(1), "stopped": Out(1), "thrown": Out(2),
            "busy": Out(1), "holds": Out(1),
            **({"fired": Out(1), "fired_at": Out(self.shape["time"].shape)} if self.fires else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.items = items = Ram(self.shape.size, self.depth, self.ram)
        m.submodules.firsts = firsts = Ram(1, self.depth, self.ram)
        m.submodules.landing = landing = SmallFifo(data.StructLayout({"item": self.shape, "asks": 1}), _AHEAD)
        m.submodules.ages = ages = SmallFifo(1, _AHEAD)
        compared, decided = _Compared(self.shape), _Decided(self.depth)
        history, reads = _History(self.depth), _Read(self.shape)
        starts, stops = self._compare(m, compared)
        self._decide(m, compared, decided, starts, stops, items, firsts)
        self._search(m, decided, history, starts, firsts)
        self._read(m, decided, history, reads, items, landing)
        self._pass_by_age(m, compared, decided, reads, landing, ages)
        self._report(m, compared, decided, history, reads, landing)
        return m

    def _compare(self, m, compared):
        """Nibbles come, and are compared with both conditions. Returns the matches: of the start, of the stop."""
        stages, valid, room = compared.stages, compared.valid, compared.room
        on = Signal()           # there is a trigger
        came = self.i.valid & self.i.ready
        m.d.comb += self.i.ready.eq(room & ~(on & self.i.p.late & self.i.p.begins & valid.any()))
        m.d.sync += [
            on.eq(self.start.on | self.stop.on), valid.eq(Cat(came, valid)),
        ]
        # A stage loads only what is valid.
        for old, new, moves in zip((self.i.p, *stages), stages, (came, *valid), strict=False):
            with m.If(moves):
                m.d.sync += new.eq(old)
        of_event = Signal()
        place = Signal(2)           # position in its item: 0, 1, 2, more
        nibble_before = Signal(self.geometry.port_bits)
        value = Signal(8)
        is_value = Signal()
        is_event = Signal()
        with m.If(valid[0]):
            m.d.sync += of_event.eq(self.events.bit_select(stages[0].node, 1))
        with m.If(valid[1]):
            m.d.sync += [
                nibble_before.eq(stages[1].nibble), place.eq(Mux(stages[1].begins, 1, place + ~place.all()))]
        # An event's id: its second byte, or the two nibbles after its first.
        id_place, event_id = 2, Cat(nibble_before, stages[1].nibble)
        if self.geometry.port_bits != PORT_BITS:
            id_place, event_id = 1, stages[1].nibble
        with m.If(valid[1]):
            m.d.sync += [
                is_event.eq(of_event),
                is_value.eq(Mux(of_event, (place == id_place) & ~stages[1].begins, stages[1].begins)),
                value.eq(Mux(of_event, event_id, stages[1].nibble)),
            ]
        matches = []
        for wanted, name in ((self.start, "start"), (self.stop, "stop")):
            parts = Signal(4, name=f"{name}_differs")
            hit = Signal(name=f"{name}_hit")
            differs = (value ^ wanted.value) & wanted.value_mask
            node = (stages[2].node ^ wanted.node) & wanted.node_mask
            with m.If(valid[2]):
                m.d.sync += parts.eq(Cat(differs[:4].any(), differs[4:].any(), node.any(),
                                         ~(wanted.on & is_value & (is_event == wanted.event))))
            m.d.sync += hit.eq(valid[3] & ~parts.any())
            matches.append(hit)

        # A late item's stamp compared with the start's window, or with the stop's when there is one. No late item
        # comes while that may change.
        edge, is_older, is_later = compared.edge, compared.is_older, compared.is_later
        older, same = _compared(m, stages[0].time, edge, valid[0])
        m.d.sync += [is_older.eq(Cat(older, is_older)), is_later.eq(Cat(~older & ~same, is_later))]
        return matches

    def _decide(self, m, compared, decided, starts, stops, items, firsts):
        """Everything that may be needed enters the memory; after the window of a stop, nothing."""
        item, valid, is_older, is_later = compared.item, compared.valid, compared.is_older, compared.is_later
        level, write, armed, waits = decided.level, decided.write, decided.armed, decided.waits
        triggers, dropped, enters = decided.triggers, decided.dropped, decided.enters
        depth, room, edge = self.depth, compared.room, compared.edge
        stopping = Signal()
        stops_here = Signal()
        over = Signal()         # the stop's window is complete
        behind = Signal()       # ... is the item under way, which is late
        behind_it = Signal()
        owed = Signal(self.geometry.nodes)      # items that were passed over before
        m.d.sync += [armed.eq(self.start.on), room.eq(level < depth - _MARGIN - 8)]
        m.d.comb += [
            waits.eq(armed & ~self.triggered), triggers.eq(valid[4] & waits & starts),
            behind.eq(Mux(item.begins, stopping & is_later[2], behind_it)),
            dropped.eq(valid[4] & Mux(item.late, behind, over | (stopping & item.first))),
            enters.eq(valid[4] & ~dropped),
            stops_here.eq(valid[4] & stops & ~waits & ~stopping & ~(item.late & is_older[2])),
            items.w_en.eq(enters), items.w_addr.eq(write), items.w_data.eq(item),
            firsts.w_en.eq(enters), firsts.w_addr.eq(write), firsts.w_data.eq(item.first),
        ]
        with m.If(enters):
            m.d.sync += write.eq(write + 1)
        with m.If(triggers):
            m.d.sync += self.triggered.eq(1)
        with m.If(stops_here):
            m.d.sync += stopping.eq(1)
        if self.fires:
            m.d.comb += [self.fired.eq(triggers | (stops_here & ~armed)), self.fired_at.eq(item.time)]
        with m.If(triggers | stops_here):
            m.d.sync += edge.eq(item.time)
        with m.If(valid[4]):
            m.d.sync += behind_it.eq(behind)
        with m.If(dropped & ~item.late):
            m.d.sync += over.eq(1)
        m.d.sync += [
            owed.eq(self.awaited & (owed | (~over).replicate(len(owed)))), self.stopped.eq(over & ~owed.any())]

    def _search(self, m, decided, history, starts, firsts):
        """The first window that is kept.

        While waiting, `seen` follows `before` nibbles later: the last window that begins before it is the first
        that is kept. `due` is the number of nibbles still to be seen, minus one. A nibble that enters counts one
        clock later.
        """
        write, armed, waits, triggers, enters = (
            decided.write, decided.armed, decided.waits, decided.triggers, decided.enters)
        entered, looks, looking = history.entered, history.looks, history.looking
        keep, settled, depth = history.keep, history.settled, self.depth
        seen = Signal(range(depth))
        due = Signal(range(-PRETRIGGER_MAX - 1, depth + 1))
        unseen = Signal(range(depth + 1))
        some_unseen = Signal()
        counted = Signal()          # ... one that makes another due
        found = Signal()            # the start has been found, one clock ago
        looked = [Signal(range(depth), name=f"looked{k}") for k in range(2)]
        fresh = Signal(init=1)      # nothing has come
        abandon = Signal()
        m.d.comb += [
            looks.eq(some_unseen & ~due[-1] & (waits | ~settled)),
            firsts.r_en.eq(looks), firsts.r_next.eq(looking[0]), firsts.r_addr.eq(seen),
            abandon.eq(self.finish & waits),
        ]
        m.d.sync += [
            looking.eq(Cat(looks, looking)), looked[0].eq(seen), looked[1].eq(looked[0]), entered.eq(enters),
            counted.eq(enters & waits & ~starts), found.eq(triggers),
        ]
        with m.If(looks):
            m.d.sync += seen.eq(seen + 1)
        with m.If(looking[1] & firsts.r_data):
            m.d.sync += keep.eq(looked[1])
        with m.If(fresh):
            m.d.sync += [due.eq(-self.before), settled.eq(~armed | self.triggered)]
        with m.Elif(counted ^ looks):
            m.d.sync += due.eq(due + Mux(looks, -1, 1))
        with m.If(entered ^ looks):
            m.d.sync += [unseen.eq(unseen + Mux(looks, -1, 1)), some_unseen.eq(entered | (unseen != 1))]
        with m.If(enters):
            m.d.sync += fresh.eq(0)
        with m.If(triggers):
            m.d.sync += settled.eq(0)
        with m.Elif(self.triggered & ~found & ~looks & ~looking.any() & (due[-1] | ~some_unseen)):
            m.d.sync += settled.eq(1)
        with m.If(abandon):
            m.d.sync += [seen.eq(write), unseen.eq(0), some_unseen.eq(0), looking.eq(0), keep.eq(write), fresh.eq(1)]

    def _read(self, m, decided, history, reads, items, landing):
        """Entries are read in order; those that are not kept are discarded."""
        armed, waits, triggers, enters = decided.armed, decided.waits, decided.triggers, decided.enters
        keep, settled, level = history.keep, history.settled, decided.level
        some, left, throws, begun = reads.some, reads.left, reads.throws, reads.begun
        fetching, passing, fetched, asks = reads.fetching, reads.passing, reads.fetched, reads.asks
        read = Signal(range(self.depth))
        following = Signal(range(self.depth), init=1)
        at_keep = Signal(init=1)
        ahead = Signal(range(_AHEAD + 1))
        fetches = Signal()
        passes = Signal()       # the nibble read leaves at the output
        going = Signal()        # the entries that were not kept have been discarded
        m.d.comb += [
            throws.eq(~going & ~at_keep), passes.eq(going & some & Mux(begun | ~armed, ~ahead[-1], ahead == 0)),
            fetches.eq(throws | passes),
            items.r_en.eq(fetches), items.r_next.eq(fetching[0]), items.r_addr.eq(read),
            asks.eq(armed & (fetched.late | ~begun)),
            landing.i.valid.eq(fetching[2] & passing[2]), landing.i.p.item.eq(fetched), landing.i.p.asks.eq(asks),
        ]
        m.d.sync += [
            fetching.eq(Cat(fetches, fetching)), passing.eq(Cat(passes, passing)),
            going.eq(~waits & ~triggers & settled & (going | at_keep | ~armed)),
            at_keep.eq(Mux(throws, following, read) == keep),
        ]
        with m.If(fetching[1]):
            m.d.sync += fetched.eq(items.r_data)
        with m.If(fetches):
            m.d.sync += [read.eq(following), following.eq(following + 1)]
        with m.If(enters ^ fetches):
            m.d.sync += [level.eq(level + Mux(fetches, -1, 1)), some.eq(enters | (level != 1))]
        with m.If(passes ^ left):
            m.d.sync += ahead.eq(ahead + Mux(left, -1, 1))

    def _pass_by_age(self, m, compared, decided, reads, landing, ages):
        """An entry passes once its age is known: late items of windows before the first are discarded.

        The first window is the start's, or the first that comes; until it is known, one nibble passes at a time.
        """
        fetched, asks, begun = reads.fetched, reads.asks, reads.begun
        item, triggers = compared.item, decided.triggers
        first = Signal.like(item.time)
        older, _ = _compared(m, fetched.time, first, reads.fetching[2])
        landed = Signal()
        head = landing.o.p.item
        there = Signal()
        takes = Signal()
        is_old = Signal()
        drop = Signal()
        dropping = Signal()     # the item under way
        m.d.sync += [
            landed.eq(reads.fetching[2] & reads.passing[2] & asks), reads.left.eq(takes),
            reads.head_thrown.eq(takes & drop & head.begins),
        ]
        m.d.comb += [
            ages.i.valid.eq(landed), ages.i.p.eq(older), is_old.eq(ages.o.p),
            there.eq(landing.o.valid & (~landing.o.p.asks | ages.o.valid)),
            drop.eq(landing.o.p.asks & head.late & Mux(head.begins, is_old, dropping)),
            self.o.p.eq(head), self.o.valid.eq(there & ~drop), takes.eq(there & (drop | self.o.ready)),
            landing.o.ready.eq(takes), ages.o.ready.eq(takes & landing.o.p.asks),
        ]
        with m.If(takes):
            m.d.sync += dropping.eq(drop)
        with m.If(triggers):
            m.d.sync += first.eq(item.time)
        with m.Elif(takes & ~head.late):
            m.d.sync += begun.eq(1)
            with m.If(landing.o.p.asks & is_old):
                m.d.sync += first.eq(head.time)

    def _report(self, m, compared, decided, history, reads, landing):
        """What is discarded, and whether anything is inside."""
        item, valid = compared.item, compared.valid
        fetching, passing = reads.fetching, reads.passing
        came = self.i.valid & self.i.ready
        m.d.sync += self.thrown.eq(
            Cat(decided.dropped & item.begins, (fetching[2] & ~passing[2] & reads.fetched.begins) | reads.head_thrown))
        m.d.sync += self.holds.eq(reads.some | fetching.any() | (landing.level != 0) | valid.any() | came)
        m.d.sync += self.busy.eq(
            came | valid.any() | history.entered | fetching.any() | history.looks | history.looking.any()
            | reads.throws | (landing.level != 0) | reads.head_thrown | self.thrown.any()
            | (~decided.waits & reads.some))


def _compared(m, time, other, enable):
    """Whether a stamp is less than another one, and whether they are equal, one clock after ``enable``. Computed in
    halves, so that no carry passes through a whole stamp."""
    half = len(time) // 2
    less, same = Signal(2), Signal(2)
    for k, part in enumerate((slice(None, half), slice(half, None))):
        with m.If(enable):
            m.d.sync += [less[k].eq(time[part] < other[part]), same[k].eq(time[part] == other[part])]
    return less[1] | (same[1] & less[0]), same.all()
