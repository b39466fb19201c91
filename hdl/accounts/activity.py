"""Activity: when everything queued has left, when open blocks may close, and when a simulation may skip idle time."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ENDING", "SETTLED", "Activity"]

#: Clocks without any activity after which the sweep over open outages has completed two rounds.
SETTLED = 128
#: Clocks without any activity after which every admitted item has reached a sink's last stage.
ENDING = SETTLED // 4
#: Clocks without any activity after which every pipeline is empty.
CALM = 16
#: Clocks from a disable until no strobe that came before it can be admitted any more.
_ADMITTED = 8


class Activity(wiring.Component):
    """Detects three states. *Drained*: nothing that was admitted is queued between the pads and the blocker. *Ending*:
    capture is disabled, and all that was admitted is in the last stage of its sink, so this stage need not wait for
    more. *Quiet*: only a strobe, a timer or the host can change anything. Items may wait meanwhile: for the end of
    their window, for a timer, or for the host to take the data that fill the memories.

    Nodes that continue to write while capture is disabled prevent quiet, but not ending.

    Members
    -------
    enable : capture is enabled.
    strobed : a strobe was found.
    changed : an item was admitted, refused or delivered in one of the last clocks.
    pending : something is before the last stage of a sink (the frame FIFO, the open block).
    frames : something is in the last stage of a sink.
    moving : something that is pending moves; not all of it waits.
    outages : an outage is open or a LOSS block is requested.
    busy : the blocker, the bus or a reset is at work.
    owed : the census of a stop is still to come.
    skips : a simulation skips, 32 clocks or more, at this edge.
    drained, ending, quiet : see above.
    """

    def __init__(self):
        super().__init__({
            "enable": In(1), "strobed": In(1), "changed": In(1), "pending": In(1), "frames": In(1), "moving": In(1),
            "outages": In(1), "busy": In(1), "owed": In(1), "skips": In(1),
            "drained": Out(1), "ending": Out(1), "quiet": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        enabled = Signal(_ADMITTED)     # capture, in the last clocks
        admits = Signal()
        coming = Signal()
        queued = Signal()
        moving = Signal()
        since_coming = Signal(range(ENDING + 1))
        since_queued = Signal(range(ENDING + 1))
        since_moving = Signal(range(SETTLED + 1))
        m.d.comb += admits.eq(self.enable | enabled.any())
        m.d.sync += enabled.eq(Cat(self.enable, enabled))
        stirred = self.changed | self.pending | self.outages
        m.d.sync += [
            coming.eq(stirred | (self.strobed & admits)), queued.eq(stirred | (self.strobed & admits) | self.frames),
            moving.eq(self.changed | self.moving | self.strobed | self.busy),
        ]
        for active, since in ((coming, since_coming), (queued, since_queued), (moving, since_moving)):
            with m.If(active):
                m.d.sync += since.eq(0)
            with m.Elif(~since[-1]):
                m.d.sync += since.eq(since + 1)
                if since is not since_moving:
                    with m.If(self.skips):
                        m.d.sync += since.eq(ENDING)
        m.d.sync += [
            self.drained.eq(~queued & since_queued[-1]), self.ending.eq(~admits & ~coming & since_coming[-1]),
        ]
        # At the end, the host alone is waited for once the sinks wait for nothing, or have no room for what comes.
        ended = Signal(CALM)    # ending, in the last clocks
        m.d.sync += ended.eq(Cat(self.ending, ended))
        calm = since_moving[CALM.bit_length() - 1:].any() & (~self.outages | since_moving[-1])
        m.d.comb += self.quiet.eq(~moving & calm & (~self.owed | ((ended.all() | coming) & queued)))
        return m
