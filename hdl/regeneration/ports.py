"""Ports: levels of all nodes, from regeneration boards' lines, from front ends, and of the others from the pads."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..input.front_ends import FrontEnds, front_signature
from ..layout import Geometry, Sink
from ..lib.signatures import board_clock, port_levels
from .links import Links, link_account

__all__ = ["Ports"]


class Ports(wiring.Component):
    """Puts the receivers' nodes, which are the first ones, in front of those that are wired, and front ends between
    pads and ports of the nodes that have one.

    Parameters
    ----------
    geometry : the board's geometry.
    pad_stage, ram : see :class:`~.links.Links`.

    Members
    -------
    pad_strobe, pad_data : levels of all pads; those of nodes with links have no effect.
    pad_early : only on a board with half clocks: levels half a clock before.
    levels : see :func:`~.signatures.port_levels`; those of wired nodes are combinational. A strobe that a link or a
        front end creates belongs to a whole clock, so it has the same level in ``early``.
    line, clear : only on a board with links, see :class:`~.links.Links`; ``line`` as ``samples``.
    time : see :func:`~.signatures.board_clock`; only on a board with links.
    front : see :func:`~.front_ends.front_signature`.
    account0, ... : of each link, see :func:`~.links.link_account`.
    """

    def __init__(self, geometry: Geometry, pad_stage: bool = True, ram: str = "portable"):
        self.geometry, self.pad_stage, self.ram = geometry, pad_stage, ram
        nodes, data = geometry.nodes, geometry.port_bits * geometry.nodes
        between = nodes * (geometry.phases - 1)
        super().__init__({
            "pad_strobe": In(nodes), "pad_data": In(data), "levels": Out(port_levels(geometry)),
            "front": Out(front_signature(geometry)),
            **({"pad_early": In(between)} if between else {}),
            **({"line": In(4 * geometry.links), "time": In(board_clock(geometry)), "clear": In(1)}
               if geometry.links else {}),
            **{f"account{k}": Out(link_account()) for k in range(geometry.links)},
        })

    def elaborate(self, platform):
        m = Module()
        g, linked = self.geometry, self.geometry.linked_nodes
        levels, strobe, data = self.levels, self.pad_strobe, self.pad_data
        if g.fronts:
            m.submodules.fronts = fronts = FrontEnds(g, self.pad_stage)
            wiring.connect(m, fronts.front, wiring.flipped(self.front))
            m.d.comb += [fronts.pad_strobe.eq(strobe), fronts.pad_data.eq(data)]
            strobe, data = fronts.strobe, fronts.data
        if g.links:
            m.submodules.links = links = Links(g.links, self.pad_stage, self.ram)
            strobe = Cat(links.strobe, strobe[linked:])
            data = Cat(links.data, data[g.port_bits * linked:])
            for k in range(g.links):
                wiring.connect(m, getattr(links, f"account{k}"), wiring.flipped(getattr(self, f"account{k}")))
            m.d.comb += [
                links.samples.eq(self.line), links.now.eq(self.time.now), links.clear.eq(self.clear),
                links.enable.eq(self.time.window.enable & self.time.running),
            ]
            if Sink.EXTENDED in g.sinks:
                m.d.comb += [levels.further.eq(links.further), levels.torn.eq(links.torn)]
        m.d.comb += [levels.strobe.eq(strobe), levels.data.eq(data)]
        for k in range(g.phases - 1):
            early, pad_early = (signal.word_select(k, g.nodes) for signal in (levels.early, self.pad_early))
            m.d.comb += early.eq(Cat(
                strobe[node] if node < linked or g.fronted >> node & 1 else pad_early[node]
                for node in range(g.nodes)) if g.fronts else Cat(strobe[:linked], pad_early[linked:]))
        return m
