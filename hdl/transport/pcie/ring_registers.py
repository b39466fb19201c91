"""Registers of the PCIe link: between the completer and the board's registers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...control.initiator import access_layout
from ...layout import PCIE_BASE, PCIE_END, PCIE_MAGIC, PCIE_PAGES_LOG_MAX, PCIE_REGISTERS
from .ring import POSITION_BITS, ring_settings, ring_state

__all__ = ["RingRegisters"]


class RingRegisters(wiring.Component):
    """Carries out accesses from PCIE_BASE to PCIE_END itself and passes all others on to the board.

    The settings of a ring that is enabled or running cannot be changed, and TAIL only moves forward, at most to the
    head that the host knows: whatever a host writes here, the ring never writes over bytes that were not consumed,
    nor to an address that was not set before its start. What is refused has no effect and sets a bit in STATUS.

    Members
    -------
    command, reply : accesses from the completer, see :class:`~.initiator.Initiator`. Those that are carried out here
        are answered two clocks later, whatever the board owes. ``own``: the reply is that of one of them.
    board_command, board_reply : to the board. A command waits here until the board takes it.
    settings, state : see :func:`~.ring.ring_settings` and :func:`~.ring.ring_state`.
    permitted : the host permits writes. down : the link is in reset. Without permission and in reset, enable is 0.
    arm : for one clock: the host asks for an interrupt if the head is not ``seen``.
    busy, dropped, refused, timeouts : of the completer. discarded : see :class:`~.function_reset.FunctionReset`.
    """

    def __init__(self):
        super().__init__({
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
            "board_command": Out(stream.Signature(access_layout())), "board_reply": In(stream.Signature(32)),
            "settings": Out(ring_settings()), "state": In(ring_state()), "permitted": In(1), "down": In(1),
            "arm": Out(1), "seen": Out(POSITION_BITS), "own": Out(1), "busy": In(1),
            "dropped": In(16), "refused": In(16), "timeouts": In(8),
            "discarded": In(32),
        })

    def elaborate(self, platform):
        m = Module()
        settings, state, access = self.settings, self.state, self.command.p
        here, taken, answer = Signal(), Signal(), Signal(32)
        own, onward = self.own, self.board_command
        tail_refused, ring_refused = Signal(), Signal()
        at = access.addr[2:6]
        m.d.comb += [
            here.eq(access.addr[6:] == PCIE_BASE // (PCIE_END - PCIE_BASE)),
            self.command.ready.eq(Mux(here, ~own, ~onward.valid)),
            taken.eq(self.command.valid & here & ~own),
            self.reply.valid.eq(own | self.board_reply.valid), self.reply.p.eq(Mux(own, answer, self.board_reply.p)),
            self.board_reply.ready.eq(self.reply.ready & ~own),
        ]
        with m.If(onward.ready):
            m.d.sync += onward.valid.eq(0)
        with m.If(self.command.valid & ~here & ~onward.valid):
            m.d.sync += [onward.valid.eq(1), onward.p.eq(access)]
        values = {
            "PCIE_ID": PCIE_MAGIC, "PCIE_CONTROL": settings.enable,
            "PCIE_STATUS": Cat(state.running, state.full, self.permitted, tail_refused, ring_refused, self.busy),
            "PCIE_RING_LOW": Cat(Const(0, 12), settings.page[:20]), "PCIE_RING_HIGH": settings.page[20:],
            "PCIE_RING_PAGES": settings.pages, "PCIE_HEAD": Cat(Const(0, 4), state.written),
            "PCIE_TAIL": Cat(Const(0, 4), settings.tail), "PCIE_FLUSH": settings.flush,
            "PCIE_DROPPED": Cat(self.dropped, self.refused), "PCIE_CUT": state.cut, "PCIE_STARTS": state.starts,
            "PCIE_TIMEOUTS": self.timeouts, "PCIE_DISCARDED": self.discarded,
        }
        with m.If(taken):
            m.d.sync += own.eq(1)
            with m.Switch(at):
                for name, value in values.items():
                    with m.Case(self._at(name)):
                        m.d.sync += answer.eq(value)
                with m.Default():
                    m.d.sync += answer.eq(0)
        with m.Elif(self.reply.ready):
            m.d.sync += own.eq(0)

        word = access.wdata
        locked = Signal()
        fits = Signal()          # a TAIL between the present one and the head
        m.d.comb += [
            locked.eq(settings.enable | state.running),
            fits.eq(((word[4:] - settings.tail)[:POSITION_BITS] <= (state.written - settings.tail)[:POSITION_BITS])
                    & (word[:4] == 0)),
            self.arm.eq(taken & access.write & (at == self._at("PCIE_ARM"))), self.seen.eq(word[4:]),
        ]
        with m.If(taken & access.write):
            with m.Switch(at):
                with m.Case(self._at("PCIE_CONTROL")):
                    m.d.sync += settings.enable.eq(word[0])
                with m.Case(*map(self._at, ("PCIE_RING_LOW", "PCIE_RING_HIGH", "PCIE_RING_PAGES"))):
                    m.d.sync += ring_refused.eq(ring_refused | locked)
                with m.Case(self._at("PCIE_TAIL")):
                    with m.If(fits):
                        m.d.sync += settings.tail.eq(word[4:])
                    with m.Else():
                        m.d.sync += tail_refused.eq(1)
                with m.Case(self._at("PCIE_FLUSH")):
                    m.d.sync += settings.flush.eq(word)
            with m.If(~locked):
                with m.Switch(at):
                    with m.Case(self._at("PCIE_RING_LOW")):
                        m.d.sync += settings.page[:20].eq(word[12:])
                    with m.Case(self._at("PCIE_RING_HIGH")):
                        m.d.sync += settings.page[20:].eq(word)
                    with m.Case(self._at("PCIE_RING_PAGES")):
                        with m.If(word <= PCIE_PAGES_LOG_MAX):
                            m.d.sync += settings.pages.eq(word)
                        with m.Else():
                            m.d.sync += ring_refused.eq(1)
        with m.If(state.start):
            m.d.sync += [settings.tail.eq(0), tail_refused.eq(0), ring_refused.eq(0)]
        with m.If(self.down | ~self.permitted):
            m.d.sync += settings.enable.eq(0)
        return m

    @staticmethod
    def _at(name: str) -> int:
        """Number of a register among these."""
        return (PCIE_REGISTERS[name].offset - PCIE_BASE) // 4
