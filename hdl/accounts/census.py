"""Census: sends the cumulative counters of every node at intervals; the heartbeat of a recording."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    CENSUS_SHARE,
    CENSUS_TIMES,
    COUNTER_BITS,
    Geometry,
    Window,
)
from ..stream.block_source import block_source
from .counters import ROW, counter_rows

__all__ = ["Census"]

#: Maximum number of clocks from an address to its word: where the latches share a memory, and elsewhere.
_FETCH, _FETCH_ALONE = 5, 2


class Census(wiring.Component):
    """Requests a CENSUS block at the start, while counters change, every second in silence, and when everything
    has left after a stop.

    While counters change, a census is due when 10 ms have passed and ``share`` times its own size in bytes has left
    since the last one, or when 100 ms have passed. It is therefore less than 1 % of a busy stream, and at most
    ten censuses per second are in a thin one. On a slow link both times are ten times as long.

    Counters are latched after the blocker has granted the block. No FRAMES block is under way
    then, and DELIVERED counts exactly the items before the census in the stream. The host uses it to count
    the items that a link lost.

    Parameters
    ----------
    geometry : the board's geometry.
    share : see above; benches set other values.

    Members
    -------
    now, window : time, and the window in force.
    running : time runs.
    changed : some counter changes, one clock or longer.
    slow : the link is slow.
    leaves : a beat of the stream leaves, of any block.
    enable : capture is enabled.
    drained : nothing is queued anywhere and no outage is open.
    counting : some items that have left are not counted yet.
    frames, frame_level, vector_level, status : for the head of the payload.
    latch, copying, reading, address, word : from and to the counters, see :class:`~.counters.Counters`.
    source : CENSUS blocks.
    follows, strayed : for the head: time follows another board's; it could not follow all the time.
    trigger, discarded : for the head: three flags of the trigger; number of items discarded, absent with narrow beats.
    row, refused, lost, unsure, absent, restarted : only on a board with links, see
        :class:`~.link_accounts.LinkAccounts`.
    owed : the census of a stop is still to come.
    busy : a census is about to be requested, or the counters are being copied, or soon will be.
    horizon : windows until the next census is due at the latest, 32 bits; all ones if it has been requested.
    """

    def __init__(self, geometry: Geometry, share: int = CENSUS_SHARE):
        self.geometry, self.share = geometry, share
        nodes = geometry.nodes
        super().__init__({
            "now": In(64), "window": In(2), "running": In(1), "changed": In(1), "slow": In(1), "leaves": In(1),
            "enable": In(1), "drained": In(1), "counting": In(1),
            "frames": In(64), "frame_level": In(16), "vector_level": In(16), "status": In(4),
            "latch": Out(1), "copying": In(1),
            "reading": Out(1), "address": Out(range(ROW * counter_rows(nodes))), "word": In(COUNTER_BITS),
            "follows": In(1), "strayed": In(1), "trigger": In(3), "discarded": In(COUNTER_BITS),
            "source": Out(block_source(geometry.beat_bytes)), "owed": Out(1), "busy": Out(1), "horizon": Out(32),
            **({"row": Out(range(geometry.linked_nodes)), "refused": In(COUNTER_BITS), "lost": In(COUNTER_BITS),
                "unsure": In(geometry.links), "absent": In(geometry.links),
                "restarted": In(geometry.links)} if geometry.links else {}),
        })

    def elaborate(self, platform):
        m = Module()
        clock, nodes = self.geometry.clock_hz, self.geometry.nodes
        paces = Array(
            Array(Const(round(clock * seconds) // self.geometry.window_clocks(w), 32) for w in Window)
            for seconds in CENSUS_TIMES)

        # A difference and a comparison, in stages: a census may be a few clocks late if the
        # delay is the same each time. One bit more than the longest period has is enough: a census that waits
        # for a slow link has been requested by then.
        width = max(period.value for windows in paces for period in windows).bit_length() + 1
        last = Signal(width)
        elapsed = Signal(width, reset_less=True)
        period = Signal(width)
        over = Signal(width + 1, reset_less=True)
        pace = Signal(range(len(CENSUS_TIMES)), init=len(CENSUS_TIMES) - 1)
        due = Signal()
        dirty = Signal()
        first = Signal()
        stop = Signal()
        enabled = Signal()
        # Beats that have left since the last census was granted, up to the top bit; its own beats are among them.
        payload = CENSUS_BOARD.bytes + nodes * CENSUS_NODE.bytes + self.geometry.linked_nodes * CENSUS_LINK.bytes
        own = -(-(BLOCK_HEADER.bytes + payload + BLOCK_TRAILER.bytes) // self.geometry.beat_bytes)
        enough = (self.share + 1) * own
        fewest = (1 << enough.bit_length()) - enough
        left_since = Signal(enough.bit_length() + 1, init=fewest)
        leaves = Signal()
        m.d.sync += leaves.eq(self.leaves)
        with m.If(leaves & ~left_since[-1]):
            m.d.sync += left_since.eq(left_since + 1)
        # A slow link and a stream too thin for a census each reduce the pace by one step.
        m.d.sync += [
            pace.eq(Mux(dirty, self.slow + ~left_since[-1], len(CENSUS_TIMES) - 1)),
            period.eq(paces[pace][self.window]),
            elapsed.eq(self.now[:width] - last),
            over.eq(elapsed - period),
            due.eq(~over[-1]),
            enabled.eq(self.enable & self.running),
        ]
        with m.If(self.changed):
            m.d.sync += dirty.eq(1)
        with m.If(~enabled & self.enable & self.running):
            m.d.sync += first.eq(1)
        with m.If(enabled & ~self.enable):
            m.d.sync += stop.eq(1)
        with m.Elif(self.enable):
            m.d.sync += stop.eq(0)
        source = self.source
        asked = Signal()    # until the block is complete
        m.d.comb += self.owed.eq(stop)
        m.d.sync += self.horizon.eq(Mux(source.request | asked, -1, Mux(over[-1], (-over)[:width], 0)))
        wanted = Signal()
        m.d.sync += wanted.eq(self.running & (first | due | (stop & self.drained)) & ~source.request & ~asked)

        flags = Signal(2)
        settle = Signal(4)
        discarded = Const(0, COUNTER_BITS) if self.geometry.narrow else self.discarded
        head = Cat(
            self.frames, self.frame_level, Const(0, 16), self.vector_level, Const(0, 16),
            flags, self.follows, self.strayed, self.trigger, *self._link_flags(), self.status, Const(0, 28), discarded,
            Const(0, 64 - COUNTER_BITS))
        m.d.comb += [
            source.length.eq(payload), source.time.eq(self.now),
        ]
        begin = Signal()       # the copy is under way: the beats may begin
        wide = self.geometry.beat_bytes == BEAT_BYTES
        sending = (self._pairs if wide else self._words)(m, head, begin)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                with m.If(wanted):
                    m.d.sync += [source.request.eq(1), asked.eq(1)]
                    m.next = "ASK"
            with m.State("ASK"):
                with m.If(source.grant):
                    m.d.sync += source.request.eq(0)
                    m.next = "GRANTED"
            with m.State("GRANTED"):
                m.d.sync += [
                    flags.eq(Cat(first, stop & self.drained)), dirty.eq(0), last.eq(self.now[:width]), settle.eq(0),
                    left_since.eq(fewest)]
                # A start or stop in this very clock is kept for the next census.
                with m.If(first):
                    m.d.sync += first.eq(0)
                with m.If(stop & self.drained):
                    m.d.sync += stop.eq(0)
                m.next = "SETTLE"
            with m.State("SETTLE"):
                # Items delivered just now are still on their way into the counters, and the copy before
                # must be complete.
                with m.If(self.counting):
                    m.d.sync += settle.eq(0)
                with m.Elif(settle != 7):
                    m.d.sync += settle.eq(settle + 1)
                with m.Elif(~self.copying):
                    m.d.sync += settle.eq(settle + 1)
                    m.d.comb += self.latch.eq(1)
                    m.next = "LATCH"
            with m.State("LATCH"):
                m.d.sync += settle.eq(settle + 1)
                with m.If(self.copying & settle[3]):
                    m.d.comb += begin.eq(1)
                    m.next = "BEATS"
            with m.State("BEATS"):
                with m.If(~sending):
                    m.d.sync += asked.eq(0)
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(
            wanted | fsm.ongoing("GRANTED") | fsm.ongoing("SETTLE") | fsm.ongoing("LATCH"))
        return m

    def _link_flags(self) -> list:
        """The 25 flags above those of the trigger."""
        if not self.geometry.links:
            return [Const(0, 25)]
        rest = Const(0, 4 - self.geometry.links)
        return [Const(1, 1), self.unsure, rest, self.absent, rest, self.restarted, rest, Const(0, 12)]

    def _pairs(self, m, head, begin) -> Signal:
        """Beats of 16 bytes: reads follow the copy as it is made, one word per clock, two words per beat."""
        beats, nodes = self.source.beats, self.geometry.nodes
        second = Signal()
        in_board = Signal()
        in_nodes = Signal()    # the rows of the nodes are read
        primed = Signal()      # two words are on their way
        first_word = Signal(COUNTER_BITS)
        sending = in_board | in_nodes | beats.valid
        if self.geometry.links:
            in_links = Signal()    # the rows of the links' nodes are sent
            sending = sending | in_links
        with m.If(beats.ready):
            m.d.sync += beats.valid.eq(0)
        with m.If(~beats.valid):
            m.d.sync += beats.p.eq(Mux(
                in_nodes, Cat(first_word, Const(0, 64 - COUNTER_BITS), self.word, Const(0, 64 - COUNTER_BITS)),
                Mux(second, head[len(beats.p):], head[:len(beats.p)])))
        # While a beat waits, everything waits, including the memory. A word comes two clocks after its
        # address, so the odd words come with odd addresses.
        odd = self.address[0]
        m.d.comb += self.reading.eq(in_nodes & ~(odd & beats.valid))
        with m.If(self.reading):
            m.d.sync += self.address.eq(self.address + 1)
            with m.If(odd):
                m.d.sync += primed.eq(1)
            with m.Else():
                m.d.sync += first_word.eq(self.word)
        with m.If(in_nodes & odd & primed & ~beats.valid):
            m.d.sync += beats.valid.eq(1)
            with m.If(self.address == (nodes * ROW + 1) % (ROW * counter_rows(nodes))):
                m.d.sync += in_nodes.eq(0)
                if self.geometry.links:
                    m.d.sync += in_links.eq(1)
        with m.If(begin):
            m.d.sync += [self.address.eq(0), primed.eq(0), second.eq(0), in_board.eq(1)]
        with m.If(in_board & ~beats.valid):
            m.d.sync += [beats.valid.eq(1), second.eq(1)]
            with m.If(second):
                m.d.sync += [in_nodes.eq(1), in_board.eq(0)]
        if self.geometry.links:
            with m.If(in_links & ~beats.valid):
                m.d.sync += [
                    beats.valid.eq(1), beats.p.eq(Cat(self.refused, Const(0, 64 - COUNTER_BITS), self.lost)),
                    self.row.eq(self.row + 1),
                ]
                with m.If(self.row == self.geometry.linked_nodes - 1):
                    m.d.sync += [self.row.eq(0), in_links.eq(0)]
        return sending

    def _words(self, m, head, begin) -> Signal:
        """Beats of 2 or 4 bytes: straight from the inputs for the head; four or two beats per counter."""
        beats, nodes = self.source.beats, self.geometry.nodes
        bits = len(beats.p)
        last = 64 // bits - 1       # beat of a number
        narrow = self.geometry.narrow
        fetch = _FETCH if narrow else _FETCH_ALONE
        sending = Signal()
        in_nodes = Signal()
        at = Signal(range(len(head) // bits))   # beat of the head, or of the word
        waited = Signal(range(fetch + 1))      # clocks since the address has changed
        fetched = Signal()
        frames = Signal(64)                     # several beats of one number
        m.d.comb += [
            self.reading.eq(1), fetched.eq(waited == fetch), beats.valid.eq(sending & (fetched | ~in_nodes)),
            beats.p.eq(Mux(
                in_nodes, Cat(self.word, Const(0, 64 - COUNTER_BITS)).word_select(at[:last.bit_length()], bits),
                (Cat(frames, head[64:]) if narrow else Cat(frames, head[64:-64], frames)).word_select(at, bits))),
        ]
        with m.If(~fetched):
            m.d.sync += waited.eq(waited + 1)
        with m.If(begin):
            m.d.sync += [sending.eq(1), in_nodes.eq(0), at.eq(0), self.address.eq(0), frames.eq(self.frames)]
        with m.Elif(beats.valid & beats.ready):
            m.d.sync += at.eq(at + 1)
            if not narrow:
                with m.If(at == last):
                    m.d.sync += frames.eq(self.discarded)   # the other number of the head
            with m.If(at.all() & ~in_nodes):
                m.d.sync += in_nodes.eq(1)
            with m.If(in_nodes & at[:last.bit_length()].all()):
                m.d.sync += [self.address.eq(self.address + 1), waited.eq(0)]
                with m.If(self.address == nodes * ROW - 1):
                    m.d.sync += sending.eq(0)
        return sending
