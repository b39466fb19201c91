"""Ring: writes the stream into a ring in the host's memory, and reports its write position."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import PCIE_PAGE_BYTES
from ...lib.fifo import StreamFifo
from ...stream.blocker import beat_layout
from .tlp import MPS_BEATS_MAX, mps_beats, write_layout

__all__ = ["FLUSH_BITS", "POSITION_BITS", "Ring", "ring_settings", "ring_state"]

#: Beats of 16 bytes in a page, log2. No write crosses the boundary of a page.
PAGE_LOG = (PCIE_PAGE_BYTES // 16).bit_length() - 1
#: Positions in the stream count beats since the start, modulo 2**32 bytes.
POSITION_BITS = 28
#: Beats in the largest ring, log2.
RING_LOG = PAGE_LOG + 10
#: Bits of an address in units of 16 bytes.
ADDRESS_BITS = 60
FLUSH_BITS = 24
#: FLUSH after power-up: 10 us at 250 MHz.
FLUSH = 2500
#: The head is reported at the latest after this part of the ring, and after this number of beats (log2).
REPORT_PART, REPORT_LOG = 2, 12
#: Clocks until the decisions follow a change of the position.
_SETTLES = 3


def ring_settings() -> wiring.Signature:
    """Settings, see :data:`~.layout.PCIE_REGISTERS`: ``enable``; ``page``: bits 63..12 of the address, and ``pages``,
    log2, which do not change while the ring is enabled or running; ``tail`` in beats, 0 at the start; ``flush`` in
    clocks.
    """
    return wiring.Signature({
        "enable": Out(1), "page": Out(ADDRESS_BITS - PAGE_LOG), "pages": Out(4), "tail": Out(POSITION_BITS),
        "flush": Out(FLUSH_BITS, init=FLUSH)})


def ring_state() -> wiring.Signature:
    """State: ``running``; ``full``; ``start`` for one clock, before the first write; ``written``: beats in complete
    writes since the start; ``told``: its value in the last report; ``starts``; ``cut``: beats in writes that
    a reset cut off; ``held``: beats that have come and were not sent."""
    return wiring.Signature({
        "running": Out(1), "full": Out(1), "start": Out(1), "told": Out(POSITION_BITS), "written": Out(POSITION_BITS),
        "starts": Out(16), "cut": Out(32), "held": Out(16)})


class Ring(wiring.Component):
    """Writes beats to consecutive addresses of a ring of 2**pages pages, and the head to the page after it.

    A write has as many beats as the maximum payload size, the boundary of the page and the room between head and tail
    permit. It has fewer if the last beat that came ends a block, or if something has waited for ``flush`` clocks.
    After such a write, after a quarter of the ring or 64 KiB, and when the ring is full, a *report* follows in the
    same queue: one beat with the head in bytes (32 bits) and the number of the start (32 bits). Posted writes do not
    pass each other, so data are in memory before the head that covers them.

    A full ring is not ready: nothing is dropped here. If ``room`` falls, no other write begins until it is back. If
    ``enable`` falls, the write that has begun is completed, and a last report follows. With ``enable`` the ring starts
    again at its base, with the next beat that was not written. If ``permitted`` falls, the owner clears ``enable``, and
    the ring stops without a last report, because the block may have discarded what it had accepted: only what was
    reported before is certain. If the link goes ``down``, the same holds, and the rest of the write that has begun goes
    nowhere; its beats are counted in ``cut``, and the block that they belong to fails the host's CRC.

    A write's beats come in consecutive clocks, if they are taken.

    Parameters
    ----------
    depth : beats that wait here; a power of two, at least twice the longest write.
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i : beats of the stream.
    o : writes, see :func:`~.tlp.write_layout`. ``valid`` falls without a transfer if the link goes down.
    settings, state : see :func:`ring_settings` and :func:`ring_state`.
    mps : maximum payload size, 128 << ``mps`` bytes; more than 512 is not used.
    permitted : the host permits writes. If it falls, ``enable`` falls in the next clock at the latest.
    room : the block has room for one of the longest writes.
    down : the link is in reset.
    """

    def __init__(self, depth: int = 64, ram: str = "portable"):
        self.depth, self.ram = depth, ram
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(stream.Signature(write_layout())),
            "settings": In(ring_settings()), "state": Out(ring_state()),
            "mps": In(3), "permitted": In(1), "room": In(1, init=1), "down": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = StreamFifo(beat_layout(), self.depth, self.ram)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        plan = Signal(data.StructLayout({
            "address": ADDRESS_BITS, "beats": MPS_BEATS_MAX.bit_length(), "report": 1}))
        planned = Signal()
        loads, popped, sending = Signal(), Signal(), Signal()
        # ---- counts: beats count from the clock in which the FIFO can deliver all of them without a gap
        came = Signal(3)
        ends = Signal(3)
        inside, free = Signal(range(self.depth + 1)), Signal(range(self.depth + 1))   # beats; those not in a plan
        ended = Signal()         # the last beat that counts ends a block
        claim = Signal.like(plan.beats)
        restores = Signal()
        m.d.sync += [
            came.eq(Cat(fifo.i.valid & fifo.i.ready, came)), ends.eq(Cat(fifo.i.p.last, ends)),
            inside.eq(inside + came[2] - popped),
            free.eq(Mux(restores, inside, free) + came[2] - claim),
        ]
        m.d.comb += self.state.held.eq(inside)
        with m.If(came[2]):
            m.d.sync += ended.eq(ends[2])
        self._planner(m, plan, planned, loads, sending, free, ended, claim, restores)
        self._sender(m, plan, planned, loads, popped, sending, fifo.o)
        return m

    def _planner(self, m, plan, planned, loads, sending, free, ended, claim, restores) -> None:
        """Decides on the next write while the one before is sent."""
        settings, state = self.settings, self.state
        head, reported = Signal(POSITION_BITS), Signal(POSITION_BITS)
        size = Signal(RING_LOG + 1)
        span = Signal(range(MPS_BEATS_MAX + 1))       # to the boundary of the page, at most the maximum payload
        room = Signal(RING_LOG + 1)
        whole, beats = Signal.like(span), Signal.like(span)
        fills, closes, owing = Signal(), Signal(), Signal()
        settle = Signal(range(_SETTLES + 1), init=_SETTLES)
        report, flush, late = Signal(), Signal(), Signal()
        age = Signal(FLUSH_BITS)
        most, rest, some = Signal.like(span), Signal(PAGE_LOG + 1), Signal.like(span)
        unreported = Signal(RING_LOG + 1)
        m.d.comb += [
            most.eq(mps_beats(self.mps)),
            rest.eq((1 << PAGE_LOG) - head[:PAGE_LOG]), some.eq(Mux(free < whole, free, whole)),
            unreported.eq(head - reported), state.full.eq(state.running & (room == 0)),
        ]
        m.d.sync += [
            size.eq(1 << (settings.pages + PAGE_LOG)),     # which was set many clocks ago
            span.eq(Mux(rest < most, rest, most)), room.eq(size - (head - settings.tail)[:RING_LOG + 1]),
            whole.eq(Mux(room < span, room, span)),
            beats.eq(some), fills.eq((free >= whole) & (whole != 0)), closes.eq(ended & (free <= whole)),
            owing.eq((unreported >= size >> REPORT_PART) | (unreported >= 1 << REPORT_LOG)),
            late.eq(age == settings.flush),
        ]
        with m.If((free == 0) & (unreported == 0) | ~state.running):
            m.d.sync += age.eq(0)
        with m.Elif(age != settings.flush):
            m.d.sync += age.eq(age + 1)
        with m.If(late):
            m.d.sync += flush.eq(1)
        gone = Signal()          # no last report: data may be missing, and the memory may have another owner
        with m.If(self.down | ~self.permitted):
            m.d.sync += gone.eq(1)
        with m.Elif(~state.running):
            m.d.sync += gone.eq(0)
        due = Signal()
        m.d.comb += due.eq((unreported != 0) & (report | owing | (room == 0) | (flush & (free == 0))))

        end = Signal(ADDRESS_BITS)
        m.d.comb += end.eq((settings.page << PAGE_LOG) + size)
        mask = (size - 1)[:RING_LOG]
        with m.If(loads):
            m.d.sync += planned.eq(0)
        with m.If(settle != 0):
            m.d.sync += settle.eq(settle - 1)
        with m.FSM():
            with m.State("OFF"):
                m.d.sync += [head.eq(0), reported.eq(0), report.eq(0), flush.eq(0), settle.eq(_SETTLES)]
                with m.If(settings.enable & ~self.down & self.permitted):
                    m.d.comb += state.start.eq(1)
                    m.d.sync += [state.running.eq(1), state.starts.eq(state.starts + 1)]
                    m.next = "PLAN"
            with m.State("PLAN"):
                with m.If(~settings.enable | self.down):
                    m.d.sync += planned.eq(0)
                    m.next = "STOP"
                with m.Elif(~planned & (settle == 0)):
                    with m.If(due):
                        m.d.sync += [
                            planned.eq(1), plan.report.eq(1), plan.beats.eq(1),
                            plan.address.eq(end), reported.eq(head), report.eq(0), flush.eq(0), age.eq(0),
                            late.eq(0), settle.eq(_SETTLES)]
                    with m.Elif((beats != 0) & (fills | closes | flush)):
                        m.d.comb += claim.eq(beats)
                        m.d.sync += [
                            planned.eq(1), plan.report.eq(0), plan.beats.eq(beats),
                            plan.address.eq((settings.page << PAGE_LOG) + (head[:RING_LOG] & mask)),
                            head.eq(head + beats), report.eq(closes | flush), settle.eq(_SETTLES)]
            with m.State("STOP"):
                with m.If(self.down | ~self.permitted | gone):
                    m.d.sync += planned.eq(0)
                with m.If(~planned & ~sending):
                    with m.If(self.permitted & ~self.down & ~gone & (state.written != state.told)):
                        m.d.sync += [planned.eq(1), plan.report.eq(1), plan.beats.eq(1), plan.address.eq(end)]
                    with m.Else():
                        m.d.comb += restores.eq(1)
                        m.d.sync += state.running.eq(0)
                        m.next = "OFF"

    def _sender(self, m, plan, planned, loads, popped, sending, beats) -> None:
        """Sends what is planned."""
        state = self.state
        now = Signal.like(plan)
        left = Signal.like(plan.beats)
        final, done, takes = Signal(), Signal(), Signal()
        cut, nowhere = Signal(), Signal()      # the link has gone down in this write
        m.d.comb += [
            nowhere.eq(self.down | cut), final.eq(left == 1),
            self.o.valid.eq(sending & ~nowhere & (now.report | beats.valid)),
            self.o.p.address.eq(now.address), self.o.p.beats.eq(now.beats), self.o.p.last.eq(final),
            self.o.p.data.eq(Mux(now.report, Cat(Const(0, 4), state.written, state.starts), beats.p.data)),
            takes.eq(sending & (now.report | beats.valid) & (self.o.ready | nowhere)),
            beats.ready.eq(sending & ~now.report & (self.o.ready | nowhere)),
            popped.eq(beats.valid & beats.ready), done.eq(takes & final),
            loads.eq(planned & (~sending | done) & self.permitted & self.room & ~nowhere
                     & (self.settings.enable | plan.report)),
        ]
        m.d.sync += [
            cut.eq(nowhere & sending & ~done),
            state.cut.eq(state.cut + Mux(done & ~now.report & nowhere, now.beats, 0))]
        with m.If(takes):
            m.d.sync += left.eq(left - 1)
        with m.If(loads):
            m.d.sync += [sending.eq(1), now.eq(plan), left.eq(plan.beats)]
        with m.Elif(done):
            m.d.sync += sending.eq(0)
        with m.If(state.start):
            m.d.sync += [state.told.eq(0), state.written.eq(0)]
        with m.Elif(done & ~nowhere):
            m.d.sync += state.written.eq(state.written + Mux(now.report, 0, now.beats))
            with m.If(now.report):
                m.d.sync += state.told.eq(state.written)
