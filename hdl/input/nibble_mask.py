"""Item filter: discards unwanted single nibbles before the gate."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import PORT_BITS

__all__ = ["NibbleMask"]


class NibbleMask(wiring.Component):
    """Looks each nibble up in a mask.

    A nibble that is filtered out is never offered to the gate: it needs no room, is neither accepted nor lost,
    and is counted as rejected. Items of several nibbles pass, because their value is known too late.

    Parameters
    ----------
    nodes : number of nodes.

    Members
    -------
    mask : bit v: nibbles of value v are kept.
    data : one nibble per node.
    longer : nodes whose items are more than one nibble.
    keep : one clock later, one bit per node.
    """

    def __init__(self, nodes: int):
        self.nodes = nodes
        super().__init__({
            "mask": In(1 << PORT_BITS), "data": In(PORT_BITS * nodes), "longer": In(nodes),
            "keep": Out(nodes, init=-1 % (1 << nodes)),
        })

    def elaborate(self, platform):
        m = Module()
        mask = Signal.like(self.mask, init=-1 % (1 << len(self.mask)))
        m.d.sync += mask.eq(self.mask)
        for i in range(self.nodes):
            nibble = self.data.word_select(i, PORT_BITS)
            m.d.sync += self.keep[i].eq(self.longer[i] | mask.bit_select(nibble, 1))
        return m
