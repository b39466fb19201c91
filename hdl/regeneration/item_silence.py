"""Item silence: ends the items of nodes that have fallen silent, on a regeneration board."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_NODES
from ..lib.bit_sliced import planes

__all__ = ["TICK_CLOCKS", "ItemSilence"]

#: Clocks of a tick: 1.3 ms at 100 MHz.
TICK_CLOCKS = 1 << 17
#: Bits of a node's age, in ticks.
_AGE_BITS = 3


class ItemSilence(wiring.Component):
    """Counts the ticks since the last strobe of each node. It needs no memory, as an
    :class:`~..input.item_timeout.ItemTimeout` does, and is less exact.

    Parameters
    ----------
    tick_clocks : clocks of a tick, a power of two. A node expires after 7 to 8 ticks without a strobe: 9.2 to 10.5 ms
        at 100 MHz.

    Members
    -------
    pulse : strobes, one bit per node.
    expired : high for one clock at every tick, for each node that has been silent for so long.
    """

    def __init__(self, tick_clocks: int = TICK_CLOCKS):
        if tick_clocks < 2 or tick_clocks & (tick_clocks - 1):
            raise ValueError(f"tick_clocks must be a power of two of at least 2, not {tick_clocks!r}")
        self.tick_clocks = tick_clocks
        super().__init__({"pulse": In(LINK_NODES), "expired": Out(LINK_NODES)})

    def elaborate(self, platform):
        m = Module()
        age = planes(_AGE_BITS, LINK_NODES, "age")
        left, tick, oldest = Signal(range(self.tick_clocks)), Signal(), Signal(LINK_NODES)
        m.d.sync += [left.eq(left + 1), tick.eq(left.all())]
        m.d.comb += [oldest.eq(age[0] & age[1] & age[2]), self.expired.eq(oldest & tick.replicate(LINK_NODES))]
        carry = ~oldest & tick.replicate(LINK_NODES)
        for plane in age:
            m.d.sync += plane.eq((plane ^ carry) & ~self.pulse)
            carry = carry & plane
        return m
