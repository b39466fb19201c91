"""Nibble sender: writes the nibbles of a front end as levels of a five-wire port."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import FRONT_NIBBLE_CLOCKS, PORT_BITS

__all__ = ["NIBBLES_MAX", "NibbleSender"]

#: Maximum number of nibbles that are written in one go.
NIBBLES_MAX = 3


class NibbleSender(wiring.Component):
    """Writes nibbles with a strobe of which every change is active; data are sampled before it. The strobe of the first
    nibble changes five clocks after ``load``. Each further one changes eight clocks after the one before.

    Members
    -------
    load : the nibbles, the first one lowest, and their number, 1 to 3, are valid. Only with ``ready``.
    ready : eight clocks per nibble have passed since ``load``.
    nibbles, count : see ``load``.
    strobe, data : levels of the port, from flip-flops.
    busy : nibbles are being written.
    """

    def __init__(self):
        super().__init__({
            "load": In(1), "nibbles": In(PORT_BITS * NIBBLES_MAX), "count": In(range(NIBBLES_MAX + 1)),
            "ready": Out(1), "strobe": Out(1), "data": Out(PORT_BITS), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        since = Signal(range(FRONT_NIBBLE_CLOCKS))
        left = Signal.like(self.count)      # nibbles after this one
        rest = Signal(PORT_BITS * (NIBBLES_MAX - 1))
        m.d.comb += self.ready.eq(~self.busy | ((left == 0) & (since == FRONT_NIBBLE_CLOCKS - 1)))
        with m.If(self.busy):
            m.d.sync += [since.eq(since + 1), self.strobe.eq(self.strobe ^ (since == FRONT_NIBBLE_CLOCKS // 2 - 1))]
            with m.If(since == FRONT_NIBBLE_CLOCKS - 1):
                m.d.sync += [
                    self.data.eq(rest[:PORT_BITS]), rest.eq(rest[PORT_BITS:]), left.eq(left - 1),
                    self.busy.eq(left != 0),
                ]
        with m.If(self.load):
            m.d.sync += [
                self.data.eq(self.nibbles[:PORT_BITS]), rest.eq(self.nibbles[PORT_BITS:]), left.eq(self.count - 1),
                since.eq(0), self.busy.eq(1),
            ]
        return m
