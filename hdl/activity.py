"""Activity: when everything queued has left, and when a simulation may skip idle time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Activity", "SETTLED"]

#: Clocks without any activity after which every sweep has come round and every pipeline is empty.
SETTLED = 128


class Activity(wiring.Component):
    """Tells *drained* (nothing is queued between the pads and the blocker) and *quiet* (nothing
    can change but by a strobe or a timer).

    Members
    -------
    strobed : a strobe was found.
    changed : an item was admitted, refused or delivered in one of the last clocks.
    pending, frames : something stands before the frame FIFO; in it.
    outages : an outage is open or a LOSS block asked for.
    busy : the blocker, the bus or a reset is at work.
    drained, quiet : see above.
    """

    def __init__(self):
        super().__init__({
            "strobed": In(1), "changed": In(1), "pending": In(1), "frames": In(1), "outages": In(1),
            "busy": In(1), "drained": Out(1), "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        queued = Signal()
        moving = Signal()
        since_queued = Signal(range(SETTLED + 1))
        since_moving = Signal(range(SETTLED + 1))
        stirred = self.strobed | self.changed | self.pending | self.outages
        m.d.sync += [queued.eq(stirred | self.frames), moving.eq(stirred | self.busy)]
        for active, since in ((queued, since_queued), (moving, since_moving)):
            with m.If(active):
                m.d.sync += since.eq(0)
            with m.Elif(~since[-1]):
                m.d.sync += since.eq(since + 1)
        m.d.sync += self.drained.eq(~queued & (since_queued[-3:] != 0))
        m.d.comb += self.quiet.eq(~moving & since_moving[-1])
        return m
