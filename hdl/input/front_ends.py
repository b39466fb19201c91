"""Front ends: nodes that have fewer wires than a port, each received as it is wired, as levels of five-wire ports."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import FRONT_PERIOD_BITS, FRONT_SPAN_BITS, FRONT_WIRES, PORT_BITS, Front, Geometry
from .byte_items import ByteItems
from .itm_items import ItmItems
from .nibble_sender import NibbleSender
from .one_wire import OneWire
from .two_wire import TwoWire

__all__ = ["FrontEnds", "front_settings", "front_signature"]


def front_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's settings for front ends, as seen from the registers.

    span : the span for nodes with two wires and for those with a chip select, see :class:`~.two_wire.TwoWire`.
    uart, swo : period of a bit, see :class:`~.one_wire.OneWire`.
    lowest : nodes of two or three wires that send the lowest bit of a byte first, one bit each.
    """
    return wiring.Signature({
        "span": Out(FRONT_SPAN_BITS, init=128),
        "uart": Out(FRONT_PERIOD_BITS, init=(geometry.clock_hz << 8) // 1_000_000),
        "swo": Out(FRONT_PERIOD_BITS, init=(geometry.clock_hz << 8) // 2_000_000),
        "lowest": Out(geometry.nodes),
    })


def front_signature(geometry: Geometry) -> wiring.Signature:
    """Signature between front ends and intake, as seen from the front ends, with one bit per node; empty on a board
    without front ends.

    settings : see :func:`front_settings`.
    falling : data are sampled at falling edges of the node's clock.
    events, single, expired, abort, rejected, begun : see :func:`~.byte_items.byte_items_signature`.
    busy : clocks are being counted, at any node.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "settings": In(front_settings(geometry)), "falling": In(nodes), "events": In(nodes), "single": In(nodes),
        "expired": In(nodes), "abort": Out(nodes), "rejected": Out(nodes), "begun": Out(nodes), "busy": Out(1),
    } if geometry.fronts else {})


class FrontEnds(wiring.Component):
    """Synchronizes the wires of the nodes that have a front end, and receives their bytes. The strobes that it creates
    change their level with each nibble; data are sampled before the edge. The first nibble of an item comes a constant
    time after the item's first edge, see :func:`~.layout.fronts.front_latency`.

    The wires of such a node are at these inputs:

    ==========  ==========  =========  ============
    front end   strobe      data[0]    data[1]
    ==========  ==========  =========  ============
    TWO_WIRE    clock       data
    SELECTED    clock       data       chip select
    UART, SWO   line
    ==========  ==========  =========  ============

    Parameters
    ----------
    geometry : the board's geometry, with ``fronts``.
    pad_stage : False if the first flip-flop of every wire is in its I/O cell. The consumer then has none, either.
    setting_bits : bits of the span, or of the periods, if they are known to be fewer; at least 12 for periods.

    Members
    -------
    pad_strobe, pad_data : levels of all pads.
    strobe, data : levels of all ports; those of nodes without a front end are the pads', combinational.
    front : see :func:`front_signature`.
    """

    def __init__(self, geometry: Geometry, pad_stage: bool = True, setting_bits: int | None = None):
        self.geometry, self.pad_stage, self.setting_bits = geometry, pad_stage, setting_bits
        nodes, wide = geometry.nodes, geometry.port_bits * geometry.nodes
        super().__init__({
            "pad_strobe": In(nodes), "pad_data": In(wide), "strobe": Out(nodes), "data": Out(wide),
            "front": Out(front_signature(geometry)),
        })

    def elaborate(self, platform):
        m = Module()
        geometry = self.geometry
        busy = []
        m.d.comb += [self.strobe.eq(self.pad_strobe), self.data.eq(self.pad_data)]
        for node, front in enumerate(geometry.fronts):
            if front is not Front.PORT:
                busy.append(self._node(m, node, front))
        m.d.sync += self.front.busy.eq(Cat(busy).any())
        return m

    def _node(self, m: Module, node: int, front: Front):
        """Adds the front end of a node. Returns whether it is busy."""
        account, settings = self.front, self.front.settings
        wires = Signal(3, name=f"wires{node}")
        strobe, data = self.pad_strobe[node], self.pad_data.word_select(node, PORT_BITS)[:2]
        if self.pad_stage:
            m.submodules[f"sync{node}"] = FFSynchronizer(Cat(strobe, data), wires, stages=2)
        elif self.geometry.phases > 1:      # strobes have had two flip-flops, see `Pads`
            m.d.comb += wires[0].eq(strobe)
            m.d.sync += wires[1:].eq(data)
        else:
            m.d.sync += wires.eq(Cat(strobe, data))
        if front in (Front.UART, Front.SWO):
            line = OneWire(self.setting_bits or FRONT_PERIOD_BITS)
            m.d.comb += [line.level.eq(wires[0]), line.period.eq(
                settings.uart if front is Front.UART else settings.swo)]
        else:
            line = TwoWire(front is Front.SELECTED, self.setting_bits or FRONT_SPAN_BITS)
            m.d.comb += [line.clock.eq(wires[0]), line.data.eq(wires[1]), line.span.eq(settings.span),
                         line.falling.eq(account.falling[node])]
            if front is Front.SELECTED:
                m.d.comb += line.select.eq(wires[2])
        items = ItmItems() if front is Front.SWO else ByteItems()
        sender = NibbleSender()
        m.submodules[f"line{node}"], m.submodules[f"items{node}"] = line, items
        m.submodules[f"sender{node}"] = sender
        m.d.comb += [
            items.byte.eq(Mux(settings.lowest[node], line.byte[::-1], line.byte) if FRONT_WIRES[front] > 1
                          else line.byte),
            # The nibbles of a byte may take longer than an SPI master needs for the next one, which then is lost.
            items.valid.eq(line.valid & sender.ready), items.fault.eq(line.fault | (line.valid & ~sender.ready)),
            items.pause.eq(line.pause),
            items.events.eq(account.events[node]), items.single.eq(account.single[node]),
            items.expired.eq(account.expired[node]),
            *(getattr(sender, name).eq(getattr(items, name)) for name in ("load", "nibbles", "count")),
            account.abort[node].eq(items.abort), account.rejected[node].eq(items.rejected),
            account.begun[node].eq(items.begun),
        ]
        levels = Cat(sender.strobe, sender.data)
        if not self.pad_stage:
            late = Signal.like(levels, name=f"late{node}")
            m.d.sync += late.eq(levels)
            levels = late
        m.d.comb += Cat(self.strobe[node], self.data.word_select(node, PORT_BITS)).eq(levels)
        return Cat(line.busy, items.busy, sender.busy).any()
