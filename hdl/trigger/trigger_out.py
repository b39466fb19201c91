"""Trigger out: a pin that pulses when the trigger has fired, a constant time after the item that fired it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import TRIGGER_OUT_PULSE, TRIGGER_OUT_WINDOWS

__all__ = ["TriggerOut"]

#: Bits of a window's number that are compared: the pin waits for fewer windows than half of what they count.
_BITS = 16


class TriggerOut(wiring.Component):
    """Waits until the window of an item is a given number of windows ago, then raises the pin.

    Items wait in FIFOs on their way to the trigger, the longer the busier the board is. The pin therefore waits longer
    than they usually do. If it is too late for that, because they waited even longer, or because the event's id came
    later, the pin rises at once, and ``late`` says so. It fires once in a run.

    Members
    -------
    fired : the trigger has fired, for one clock.
    time : the window of the item, with ``fired``.
    window : the setting in force.
    now : the window's number, one clock late.
    pin : rises when ``now`` reaches ``time`` and :data:`~.layout.TRIGGER_OUT_WINDOWS`, or with ``late`` at once; from a
        register, one clock later; for :data:`~.layout.TRIGGER_OUT_PULSE` clocks.
    done, late : the pin has risen since the reset; it was late.
    busy : the pin is about to rise, or has not fallen.
    """

    def __init__(self):
        super().__init__({
            "fired": In(1), "time": In(_BITS), "window": In(2), "now": In(_BITS),
            "pin": Out(1), "done": Out(1), "late": Out(1), "busy": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        waits = Signal()
        fresh = Signal()
        at = Signal(_BITS, reset_less=True)
        passed = Signal(_BITS)      # windows since `at`, modulo 2**16
        left = Signal(range(TRIGGER_OUT_PULSE + 1))     # clocks of the pulse
        m.d.comb += [passed.eq(self.now - at), self.busy.eq(self.fired | waits | self.pin)]
        m.d.sync += fresh.eq(self.fired)
        with m.If(self.fired & ~self.done & ~waits):
            m.d.sync += waits.eq(1)
            with m.Switch(self.window):
                for window, windows in enumerate(TRIGGER_OUT_WINDOWS):
                    with m.Case(window):
                        m.d.sync += at.eq(self.time + windows)
        with m.If(waits & ~passed[-1]):
            m.d.sync += [
                waits.eq(0), self.pin.eq(1), self.done.eq(1), left.eq(TRIGGER_OUT_PULSE),
                self.late.eq(fresh & (passed != 0)),
            ]
        with m.Elif(self.pin):
            m.d.sync += left.eq(left - 1)
            with m.If(left == 1):
                m.d.sync += self.pin.eq(0)
        return m
