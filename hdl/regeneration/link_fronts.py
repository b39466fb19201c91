"""Link fronts: nodes that reach a regeneration board over fewer wires than a port, as SPI masters or over a UART."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..input.front_ends import FrontEnds
from ..layout import LINK_NODES, PORT_BITS, Front, Geometry

__all__ = ["LINK_FRONTS", "LinkFronts"]

#: The front ends whose events have a check.
LINK_FRONTS = Front.TWO_WIRE, Front.SELECTED, Front.UART


class LinkFronts(wiring.Component):
    """Front ends between the pads and a :class:`~.transmitter.Transmitter`, all of the same kind. The nodes are in
    event mode, and send checked events (see :class:`~..input.byte_items.ByteItems`).

    An event has the time of its first edge plus a constant, see :func:`~..layout.fronts.front_latency`. Its last byte
    is passed on only if its check is right; else its item is cut short. The transmitter's gate admits or refuses it
    with its first byte. What forms no event is counted as refused items: pieces with a fault, with a wrong first byte,
    or between an error and the next pause. A piece whose item has begun is not: that item was admitted or refused by
    the gate.

    Parameters
    ----------
    front : of :data:`LINK_FRONTS`.
    setting : for two wires or three, the span in clocks, see :class:`~..input.two_wire.TwoWire`; for a UART the period
        of a bit, see :class:`~..input.one_wire.OneWire`.
    nodes : number of nodes, 1 to 8; the others are silent.

    Members
    -------
    pad_strobe, pad_data : levels of the wires after the first flip-flop, assigned to bits as in
        :class:`~..input.front_ends.FrontEnds`.
    falling : nodes whose data are sampled at falling edges of their clock.
    strobe, data : ports, whose strobes change their level with each nibble; data are sampled before the edge.
    expired, abort : from and to the transmitter.
    refused : pieces that formed no event, one stream per node. One piece per node can wait. After a clock in which a
        stream is not ready, it must be ready until there was a clock without a new piece; else a piece is not counted.
        The transmitter is not ready in one of eight clocks at most, and a node has pieces in three clocks in a row at
        most.

    Raises
    ------
    ValueError
        for another front end, or a number of nodes.
    """

    def __init__(self, front: Front, setting: int, nodes: int = LINK_NODES):
        if front not in LINK_FRONTS:
            raise ValueError(f"front must be one of {[*LINK_FRONTS]}, not {front!r}")
        if not 1 <= nodes <= LINK_NODES:
            raise ValueError(f"nodes must be 1..{LINK_NODES}, not {nodes!r}")
        self.front, self.setting, self.nodes = front, setting, nodes
        super().__init__({
            "pad_strobe": In(LINK_NODES), "pad_data": In(PORT_BITS * LINK_NODES), "falling": In(LINK_NODES),
            "strobe": Out(LINK_NODES), "data": Out(PORT_BITS * LINK_NODES),
            "expired": In(LINK_NODES), "abort": Out(LINK_NODES),
            "refused": Out(stream.Signature(0)).array(LINK_NODES),
        })

    def elaborate(self, platform):
        m = Module()
        geometry = Geometry.extended(self.nodes, fronts=(self.front,) * self.nodes)
        m.submodules.ends = ends = FrontEnds(geometry, pad_stage=False, setting_bits=self.setting.bit_length())
        account = ends.front
        m.d.comb += [
            ends.pad_strobe.eq(self.pad_strobe), ends.pad_data.eq(self.pad_data),
            account.settings.span.eq(self.setting), account.settings.uart.eq(self.setting),
            account.falling.eq(self.falling), account.events.eq(-1), account.expired.eq(self.expired),
            self.strobe.eq(ends.strobe), self.data.eq(ends.data), self.abort.eq(account.abort),
        ]
        # One piece may wait while the gate refuses an item of the node, which it does not in two clocks in a row.
        news, waits = Signal(self.nodes), Signal(self.nodes)
        m.d.comb += news.eq(account.rejected & ~account.begun)
        for n in range(self.nodes):
            told = self.refused[n]
            m.d.comb += told.valid.eq(news[n] | waits[n])
            m.d.sync += waits[n].eq((news[n] & waits[n]) | (told.valid & ~told.ready))
        return m
