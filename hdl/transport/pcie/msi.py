"""Interrupts of the PCIe link: at most one until the host asks for the next."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .ring import POSITION_BITS

__all__ = ["Msi"]


class Msi(wiring.Component):
    """Requests one interrupt when the head differs from the one that the host has seen.

    The host drains the ring up to the head in memory, then arms this with that head. An interrupt may arrive before
    the write that caused it; the host then sees the old head, arms this with it, and is interrupted again at once.
    Interrupts therefore need no order against data, and none is lost in the moment of arming. While interrupts are
    disabled or masked, the request waits.

    Members
    -------
    arm : for one clock, with ``seen``, in beats. Arming again replaces the value.
    told : the head that was reported, in beats.
    start : for one clock: the ring starts; nothing is armed any more.
    enabled : the host permits interrupts.
    request : an interrupt is to be sent; falls after ``sent``. A block that failed to send one is simply asked again.
    sent : for one clock.
    """

    def __init__(self):
        super().__init__({
            "arm": In(1), "seen": In(POSITION_BITS), "told": In(POSITION_BITS), "start": In(1), "enabled": In(1),
            "request": Out(1), "sent": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        armed, seen = Signal(), Signal(POSITION_BITS)
        with m.If(self.sent):
            m.d.sync += self.request.eq(0)
        with m.If(armed & self.enabled & (self.told != seen) & ~self.request):
            m.d.sync += [self.request.eq(1), armed.eq(0)]
        with m.If(self.start):
            m.d.sync += armed.eq(0)
        with m.If(self.arm):
            m.d.sync += [armed.eq(1), seen.eq(self.seen)]
        return m
