"""Nibble mask: discards unwanted single nibbles before the gate."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import PORT_BITS
from ..lib.bit_sliced import gathered

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
        # The bit of the mask that a nibble selects, for all nodes at once.
        chosen = [bit.replicate(self.nodes) for bit in mask]
        for b in range(PORT_BITS):
            digit = gathered(self.data, PORT_BITS, b)
            chosen = [(one & digit) | (zero & ~digit) for zero, one in zip(chosen[::2], chosen[1::2], strict=True)]
        m.d.sync += self.keep.eq(self.longer | chosen[0])
        return m
