"""Pads: the first flip-flops of the ports, for tops that have them in the I/O cells."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry
from .ddr_input import DdrInput

__all__ = ["Pads"]


class Pads(wiring.Component):
    """Samples the levels of all pads at each clock edge, and those of the strobes twice per clock if the board has
    half clocks. A board with four samples per clock has input cells of its family instead.

    A :class:`~.capture.Capture` without its own ``pad_stage`` follows: together they have the same latency as one
    with it.

    Parameters
    ----------
    geometry : the board's geometry, with one or two ``phases``.

    Members
    -------
    pad_strobe, pad_data : raw levels, one bit and one nibble (of ``geometry.port_bits``) per node, asynchronous.
    strobe, data : levels at a clock edge, valid after it; with half clocks ``strobe`` is one clock later than ``data``.
    early : only on a board with half clocks: levels of the strobes half a clock before ``strobe``, valid with it.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        nodes, wide = geometry.nodes, geometry.port_bits * geometry.nodes
        super().__init__({
            "pad_strobe": In(nodes), "pad_data": In(wide), "strobe": Out(nodes), "data": Out(wide),
            **({"early": Out(nodes)} if geometry.phases == 2 else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.data.eq(self.pad_data)
        if self.geometry.phases == 2:
            m.submodules.strobes = strobes = DdrInput(self.geometry.nodes)
            m.d.comb += [
                strobes.pads.eq(self.pad_strobe), self.strobe.eq(strobes.level), self.early.eq(strobes.early)]
        else:
            m.d.sync += self.strobe.eq(self.pad_strobe)
        return m
