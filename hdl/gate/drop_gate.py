"""The node gate: the only stage on the board that drops items.

In 1990 a full frame FIFO lost frames (section 5.1). Here everything downstream of the gate applies
back-pressure, and the gate admits or refuses whole items according to the free space downstream.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import GATE_CAUSES

__all__ = ["DropGate"]

class DropGate(wiring.Component):
    """Admits or refuses the item of each node, in the clock in which it comes.

    An item is admitted if capture is enabled, the gate of its node is open, its node FIFO has room
    and the strobe-vector FIFO has a slot for it *in its own window* (see :class:`~.gate_room.GateRoom`).
    Back-pressure therefore never makes a stamp late.

    A gate that has refused an item stays closed until its node FIFO and the strobe-vector FIFO are each at
    most half full, so that an outage is one record and not a thousand.

    The cause of an outage is that of its first refusal: the frame FIFO if it holds up the stages
    before it (``backed_up``), else the strobe-vector FIFO if it has no room, else the node FIFO.

    Members
    -------
    pulse : items offered, one bit per node.
    live : nodes whose capture is enabled; items of others are neither admitted nor counted.
    node_full, node_half : the node FIFO is full; is at most half full.
    node_misfit : the node FIFO has no room for the whole item.
    vector_room, vector_half : ``room`` and ``half`` of :class:`~.gate_room.GateRoom`.
    backed_up : a full frame FIFO holds up the stages before it.
    admit, refuse : combinational with ``pulse``; exactly one of them for every live pulse.
    refused_by : one vector per cause, in the order of :data:`~.layout.GATE_CAUSES`; their union is
        ``refuse``.
    closed : gates that are closed.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        super().__init__({
            "pulse": In(nodes), "live": In(nodes),
            "node_full": In(nodes), "node_half": In(nodes), "node_misfit": In(nodes),
            "vector_room": In(1), "vector_half": In(1), "backed_up": In(1),
            "admit": Out(nodes), "refuse": Out(nodes),
            "refused_by": Out(nodes).array(len(GATE_CAUSES)),
            "closed": Out(nodes),
        })

    def elaborate(self, platform):
        m = Module()
        every = self.nodes
        offered = Signal(every)
        barred = Signal(every)
        m.d.comb += [
            offered.eq(self.pulse & self.live),
            barred.eq(self.closed | self.node_full | self.node_misfit | (~self.vector_room).replicate(every)),
            self.admit.eq(offered & ~barred),
            self.refuse.eq(offered & barred),
        ]
        reopen = self.node_half & self.vector_half.replicate(every)
        m.d.sync += self.closed.eq((self.closed & ~reopen) | (~self.closed & self.refuse))

        first = Cat(self.backed_up, ~self.backed_up & self.vector_room, ~self.backed_up & ~self.vector_room)
        for c in range(len(GATE_CAUSES)):
            held = Signal(every, name=f"cause{c}")
            fresh = first[c].replicate(every)
            m.d.sync += held.eq((held & self.closed) | (fresh & ~self.closed))
            m.d.comb += self.refused_by[c].eq(self.refuse & ((held & self.closed) | (fresh & ~self.closed)))
        return m
