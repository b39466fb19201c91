"""Time limit: how long the oldest queued item has waited."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Deadline"]


class Deadline(wiring.Component):
    """Reports when something has waited long enough.

    The two subtractions run continuously; their result is valid three clocks after the wait began.

    Members
    -------
    now : window number.
    limit : longest wait, in windows.
    idle : nothing waits.
    due : something has waited ``limit`` windows.
    horizon : windows until ``due``; all ones if nothing waits.
    """

    def __init__(self):
        super().__init__({
            "now": In(32), "limit": In(32), "idle": In(1), "due": Out(1), "horizon": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        idle = Signal()
        waiting = Signal(4)
        since = Signal(32, reset_less=True)
        age = Signal(32, reset_less=True)
        over = Signal(33, reset_less=True)
        m.d.sync += [
            idle.eq(self.idle), age.eq(self.now - since), over.eq(age - self.limit),
            self.due.eq(waiting[3] & (self.due | ~over[32])),
        ]
        m.d.comb += self.horizon.eq(Mux(waiting[3], Mux(over[32], -over, 0), -1))
        with m.If(idle):
            m.d.sync += waiting.eq(0)
        with m.Else():
            m.d.sync += waiting.eq((waiting << 1) | 1)
            with m.If(~waiting[0]):
                m.d.sync += since.eq(self.now)
        return m
