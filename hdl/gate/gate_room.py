"""Free space downstream, which the gate needs to admit or refuse an item."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry

__all__ = ["GateRoom", "VECTOR_MARGIN"]

#: Maximum number of strobe vectors on their way to their FIFO when the gate examines its level.
VECTOR_MARGIN = 4


class GateRoom(wiring.Component):
    """Watches the strobe-vector FIFO and the frame builder for the gate.

    A nibble needs a slot for its vector in its own window. The nibbles in any one node FIFO
    need at most as many vectors as the FIFO has entries, whatever the other nodes do, because a
    vector takes one nibble of every node. If that number of slots is kept free, no admitted nibble ever
    waits for one.

    Members
    -------
    vector_level : vectors in their FIFO.
    builder_busy : a frame is being built.
    stuck : a vector waits for a slot in the frame FIFO.
    room : the strobe-vector FIFO had a slot to spare one clock ago.
    half : it was at most half full (and had a slot to spare) one clock ago.
    backed_up : the frame FIFO was full, and the stages before it have not drained since.
    gone : nothing was between window and frame FIFO one clock ago.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        super().__init__({
            "vector_level": In(range(geometry.vector_depth + 1)), "builder_busy": In(1), "stuck": In(1),
            "room": Out(1), "half": Out(1), "backed_up": Out(1), "gone": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        depth = self.geometry.vector_depth
        limit = depth - self.geometry.node_depth - VECTOR_MARGIN
        m.d.sync += [
            self.room.eq(self.vector_level <= limit),
            self.half.eq(self.vector_level <= min(limit, depth // 2)),
            self.gone.eq((self.vector_level == 0) & ~self.builder_busy),
        ]
        with m.If(self.stuck):
            m.d.sync += self.backed_up.eq(1)
        with m.Elif(self.gone):
            m.d.sync += self.backed_up.eq(0)
        return m
