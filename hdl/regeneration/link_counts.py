"""Link counts: the number of items of each node that a regeneration board has sent and refused, for the side channel of
its frames.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_AGE, LINK_NODES, LINK_SUPERFRAME, LinkSide
from ..lib.bit_sliced import column, counted, planes
from ..lib.ram import Ram

__all__ = ["COUNT_BITS", "FRAME_BITS", "LinkCounts"]

#: Bits of a count.
COUNT_BITS = 32
#: Refusals of a node in the 16 clocks until they are added up: one per clock at most.
_RECENT_BITS = 5
#: Bits of the number of a frame.
FRAME_BITS = (LINK_SUPERFRAME - 1).bit_length()


class LinkCounts(wiring.Component):
    """Counts in one memory, with one addition at a time.

    Refusals of each node are added every 16 clocks, in even clocks. An item that was sent is added in phase 3 of its
    slot. Counts start at 0 and wrap. Frame ``16 * c`` of a superframe begins count c: refused items of node c, sent
    ones of node c - 8, or superframes before this one (``LINK_AGE``). It is what was counted until the first clock of
    that frame, so all items of earlier frames are in it, and none of its own. Its two lowest bits are in that frame,
    the others in the 15 frames after it.

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.

    Members
    -------
    now : number of the clock, and with its bits from 7 on that of the frame, which is less than ``LINK_SUPERFRAME``.
    refused : one bit per node.
    sent, node : in phase 3 of a slot, see :class:`~.byte_coder.ByteCoder`.
    side : taken in phase 2 of slot 1; its flag is about the clocks since it was last taken, see
        :class:`~..layout.LinkSide`.
    """

    def __init__(self, ram: str = "portable"):
        self.ram = ram
        super().__init__({
            "now": In(7 + FRAME_BITS), "refused": In(LINK_NODES), "sent": In(1), "node": In(range(LINK_NODES)),
            "side": Out(4),
        })

    def elaborate(self, platform):
        m = Module()
        phase, slot, frame = self.now[:2], self.now[2:7], self.now[7:]
        registered = self.ram != "ice40"
        m.submodules.ram = ram = Ram(COUNT_BITS, 4 * LINK_NODES, self.ram, registered)

        recent = planes(_RECENT_BITS, LINK_NODES, "recent")
        swept, sweeps = self.now[1:4], ~self.now[0]
        chosen = Signal(LINK_NODES)
        m.d.comb += chosen.eq(Mux(sweeps, 1 << swept, 0))
        for b, (plane, new) in enumerate(zip(recent, counted(recent, self.refused), strict=True)):
            kept = new & ~chosen
            m.d.sync += plane.eq(kept | (self.refused & chosen) if b == 0 else kept)

        # A read at every clock; what it is for, and what is added, follow it.
        begins, is_age = frame[:4] == 0, frame[4:] == LINK_AGE
        tells, ages = (Mux(phase == 1, (slot == k) & begins, 0) for k in range(2))
        adds, more, address = Signal(), Signal(_RECENT_BITS), Signal(5)
        m.d.comb += [
            ram.r_en.eq(1), ram.r_next.eq(1),
            address.eq(Mux(sweeps, swept, Mux(phase == 1, frame[4:], Cat(self.node, 1)))), ram.r_addr.eq(address),
            adds.eq(sweeps | ((phase == 3) & self.sent) | (ages & is_age)),
            more.eq(Mux(sweeps, column(recent, swept), 1)),
        ]
        follows = Cat(adds, tells, more, address)
        for k in range(2 if registered else 1):
            later = Signal(len(follows), name=f"follows{k}")
            m.d.sync += later.eq(follows)
            follows = later
        m.d.comb += [
            ram.w_en.eq(follows[0]), ram.w_addr.eq(follows[2 + _RECENT_BITS:]),
            ram.w_data.eq(ram.r_data + follows[2:2 + _RECENT_BITS]),
        ]
        count, any_refused = Signal(COUNT_BITS), Signal()
        with m.If(follows[1]):
            m.d.sync += count.eq(ram.r_data)
        with m.Elif(self.now[:7] == 64):
            m.d.sync += count.eq(count[2:])
        m.d.sync += any_refused.eq((any_refused & ~((slot == 1) & (phase == 2))) | self.refused.any())
        m.d.comb += [
            self.side[LinkSide.REFUSED].eq(any_refused), self.side[LinkSide.MARK].eq(begins & is_age),
            self.side[LinkSide.COUNT:].eq(count[:2]),
        ]
        return m
