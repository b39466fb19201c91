"""Wired boards: regeneration boards and their lines, for a simulation that has pads and no cables."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_NODES, PORT_BITS, Front
from .link_fronts import LinkFronts
from .transmitter import Transmitter

__all__ = ["WiredBoards"]


class WiredBoards(wiring.Component):
    """Contains a transmitter for each group of eight nodes, with the flip-flops of its pads, and a line of no length.

    Parameters
    ----------
    links : number of groups.
    ram : kind of memory, see :class:`~..lib.ram.Ram`.
    front, setting : of all nodes, see :class:`~.link_fronts.LinkFronts`, or ports.

    Members
    -------
    strobe, data : raw levels of the nodes' ports, or of their other wires.
    rising, falling, after, words, events : straps of the boards, see :class:`~.transmitter.Transmitter`. With a
        ``front``, without effect except that data are sampled at falling edges if those alone are active.
    wrong : two bits per link: the bits of this clock that are inverted on the line.
    pulled : one bit per link: the line is low.
    samples : four per link, as the receiver takes them: two per bit.
    """

    def __init__(self, links: int, ram: str = "portable", front: Front = Front.PORT, setting: int = 0):
        self.links, self.ram, self.front, self.setting = links, ram, front, setting
        nodes = LINK_NODES * links
        super().__init__({
            "strobe": In(nodes), "data": In(PORT_BITS * nodes), "rising": In(nodes), "falling": In(nodes),
            "after": In(nodes), "words": In(nodes), "events": In(nodes), "wrong": In(2 * links), "pulled": In(links),
            "samples": Out(4 * links),
        })

    def elaborate(self, platform):
        m = Module()
        pads = Signal(len(self.strobe) + len(self.data))
        m.d.sync += pads.eq(Cat(self.strobe, self.data))
        strobe, data = pads[:len(self.strobe)], pads[len(self.strobe):]
        for k in range(self.links):
            m.submodules[f"board{k}"] = board = Transmitter(self.ram)
            wires = strobe.word_select(k, LINK_NODES), data.word_select(k, PORT_BITS * LINK_NODES)
            straps = {name: getattr(self, name).word_select(k, LINK_NODES)
                      for name in ("rising", "falling", "after", "words", "events")}
            m.d.comb += board.live.eq(-1)
            if self.front is Front.PORT:
                m.d.comb += [
                    board.strobe.eq(wires[0]), board.data.eq(wires[1]),
                    *(getattr(board, name).eq(strap) for name, strap in straps.items())]
            else:
                m.submodules[f"fronts{k}"] = fronts = LinkFronts(self.front, self.setting)
                m.d.comb += [
                    fronts.pad_strobe.eq(wires[0]), fronts.pad_data.eq(wires[1]),
                    fronts.falling.eq(straps["falling"] & ~straps["rising"]), fronts.expired.eq(board.expired),
                    board.abort.eq(fronts.abort), board.strobe.eq(fronts.strobe), board.data.eq(fronts.data),
                    *(getattr(board, name).eq(-1) for name in ("rising", "falling", "events")),
                ]
                for told, counted in zip(fronts.refused, board.before, strict=True):
                    wiring.connect(m, told, counted)
            bits = Signal(2, name=f"bits{k}")
            m.d.comb += [
                bits.eq(Mux(self.pulled[k], 0, board.bits ^ self.wrong.word_select(k, 2))),
                self.samples.word_select(k, 4).eq(Cat(bits[0].replicate(2), bits[1].replicate(2))),
            ]
        return m
