"""Merge: combines many nodes into one stream of stamped strobe vectors."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..gate.drop_gate import DropGate
from ..gate.gate_room import GateRoom
from ..gate.node_fifo import NodeFifos
from ..input.intake import item_offer
from ..layout import GATE_CAUSES, Geometry, Sink
from ..lib.fifo import StreamFifo
from ..lib.signatures import board_clock
from ..lib.spine import in_spine
from .window import Window, vector_layout

__all__ = ["Merge", "merge_account", "merged"]


def merged(geometry: Geometry) -> wiring.Signature:
    """Signature of the data for the sinks, as seen from the merge.

    vectors : strobe vectors, from their FIFO.
    done : a sink is done with a vector.
    nibble, pop : heads of the node FIFOs; nodes whose head is popped.
    busy : a sink still moves data to the buffer where they wait for the link.
    stuck : a sink has no room.

    Only with the extended sink:

    mark, fresh : see :class:`~.node_fifo.NodeFifos`.
    ended : nodes whose item was complete one clock ago.
    pressed : other items fill up the memories while the sink waits for an item.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "vectors": Out(stream.Signature(vector_layout(nodes, geometry.halvings))),
        "nibble": Out(geometry.port_bits * nodes), "pop": In(nodes), "done": In(1), "busy": In(1), "stuck": In(1),
        **({"mark": Out(nodes), "fresh": In(1), "ended": Out(nodes), "pressed": Out(1)}
           if Sink.EXTENDED in geometry.sinks else {}),
    })


def merge_account(geometry: Geometry) -> wiring.Signature:
    """Signature of what happened in the merge, for the counters, as seen from the merge; one bit per node.

    admitted, refused_by : items, one clock after they were offered.
    closed : nodes with an outage, one clock late.
    carried, beyond : see :class:`~.window.Window`.
    pending : something is on its way to the sinks, or in them.
    held : something that is pending waits for the end of its window.
    moving : something that is pending waits neither for the end of its window nor for room in a sink.
    level : vectors in their FIFO, and the one that a sink holds.
    fill, enters : levels of the node FIFOs; nodes whose nibble enters. Only with the extended sink.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "admitted": Out(nodes), "refused_by": Out(nodes).array(len(GATE_CAUSES)), "closed": Out(nodes),
        "carried": Out(nodes), "beyond": Out(nodes).array(geometry.node_depth.bit_length()), "pending": Out(1),
        "held": Out(1), "moving": Out(1), "level": Out(range(geometry.vector_depth + 1)),
        **({"fill": Out(nodes).array(geometry.node_depth.bit_length()), "enters": Out(nodes)}
           if Sink.EXTENDED in geometry.sinks else {}),
    })


class Merge(wiring.Component):
    """Connects the gate, the node FIFOs, the window and the strobe-vector FIFO, whose free space the gate watches. No
    other stage refuses an item, and no other stage stamps it.

    When full: the gate refuses items that would not fit, and reports the cause.

    Members
    -------
    items : from the intake.
    time : see :func:`~.signatures.board_clock`.
    longer : nodes whose items are longer than a nibble.
    o : see :func:`merged`.
    account : see :func:`merge_account`.
    """

    def __init__(self, geometry: Geometry, ram: str = "portable"):
        self.geometry, self.ram = geometry, ram
        super().__init__({
            "items": In(item_offer(geometry)), "time": In(board_clock(geometry)), "longer": In(geometry.nodes),
            "o": Out(merged(geometry)), "account": Out(merge_account(geometry)),
        })

    def elaborate(self, platform):
        m = Module()
        g, items, time, o, account = self.geometry, self.items, self.time.window, self.o, self.account
        nodes, framed = g.nodes, Sink.EXTENDED in g.sinks
        m.submodules.gate = in_spine(gate := DropGate(nodes))
        m.submodules.node_fifos = in_spine(node_fifos := NodeFifos(nodes, g.node_depth, framed, g.port_bits, self.ram))
        m.submodules.window = in_spine(window := Window(nodes, g.node_depth, g.halvings, g.narrow))
        m.submodules.vector_fifo = in_spine(vector_fifo := StreamFifo(
            vector_layout(nodes, g.halvings), g.vector_depth, self.ram, skid=not g.narrow, held=True))
        m.submodules.room = in_spine(room := GateRoom(g))
        wiring.connect(m, window.o, vector_fifo.i)
        wiring.connect(m, vector_fifo.o, wiring.flipped(o.vectors))
        m.d.comb += [
            gate.pulse.eq(items.start), gate.live.eq(time.live & items.allow), items.admit.eq(gate.admit),
            gate.node_full.eq(node_fifos.full), gate.node_half.eq(node_fifos.half),
            gate.vector_room.eq(room.room), gate.vector_half.eq(room.half), gate.backed_up.eq(room.backed_up),

            node_fifos.admit.eq(items.push), node_fifos.data.eq(items.nibble),
            node_fifos.pop.eq(o.pop), o.nibble.eq(node_fifos.nibble),

            window.admitted.eq(account.admitted),
            window.end.eq(time.end), window.now.eq(time.now), window.wrap.eq(time.wrap),

            room.vector_level.eq(vector_fifo.level), room.builder_busy.eq(o.busy), room.stuck.eq(o.stuck),
            account.level.eq(vector_fifo.level), vector_fifo.done.eq(o.done),

            account.carried.eq(window.carried), account.pending.eq(window.pending | ~room.gone),
            account.held.eq(window.held),
            account.moving.eq(window.moving | (~room.gone & ~(o.stuck & ~self.longer.any()))),
            *(mine.eq(its) for mine, its in zip(account.beyond, window.beyond, strict=True)),
        ]
        # The gate's outputs are wide, and are registered once more.
        m.d.sync += [
            account.admitted.eq(gate.admit), account.closed.eq(gate.closed),
            *(mine.eq(its) for mine, its in zip(account.refused_by, gate.refused_by, strict=True)),
        ]
        if g.halvings:
            half = Signal(nodes * g.halvings)
            m.d.sync += half.eq(items.half)
            m.d.comb += window.half.eq(half)
        if framed:
            filling = Signal(nodes)
            m.d.comb += [
                node_fifos.cut.eq(items.cut), node_fifos.items.eq(self.longer), node_fifos.fresh.eq(o.fresh),
                *(mine.eq(its) for mine, its in zip(node_fifos.need, items.need, strict=True)),
                gate.node_misfit.eq(node_fifos.misfit), o.mark.eq(node_fifos.mark),
                account.enters.eq(node_fifos.enters),
                *(mine.eq(its) for mine, its in zip(account.fill, node_fifos.level, strict=True)),
            ]
            m.d.sync += [
                o.ended.eq(items.push & items.ends), filling.eq(~node_fifos.half),
                o.pressed.eq(filling.any() | ~room.half),
            ]
        return m
