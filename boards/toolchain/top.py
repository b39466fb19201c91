"""A board's top: clocks, pads, and the gateware between them; the only module that uses a platform."""

from importlib import import_module

from amaranth.build import Attrs, DiffPairs, Pins, Resource, Subsignal
from amaranth.hdl import ClockDomain, ClockSignal, Const, DomainRenamer, Elaboratable, Module, Signal
from amaranth.lib import io
from hypermon.hdl.layout import PORT_BITS, Geometry
from hypermon.hdl.stream import sdram_part

from ..model.board import Board, Pin
from ..model.links import BoardLink
from .families import FAMILIES
from .link_pads import attach
from .port_supply import Supplies
from .sdram_pads import sdram_pads

__all__ = ["BoardTop", "platform_of", "resources"]


def platform_of(board: Board, nodes: int):
    """The board's Amaranth platform with the ports of N nodes; it requires only the tools that build."""
    module, name = board.platform.split(":")
    platform = FAMILIES[board.family].platform(getattr(import_module(module), name))(**board.options)
    platform.add_resources(resources(board, nodes))
    return platform


def resources(board: Board, nodes: int) -> list[Resource]:
    """The node ports of a board as resources of its platform, and the pins that are held low."""
    attributes = Attrs(**board.attributes)
    ports = [Resource("node", number, Subsignal("strobe", _pins([strobe]), attributes),
                      Subsignal("data", _pins(data), attributes))
             for number in range(nodes) for strobe, *data in [board.node(number)]]
    level = {key: value for key, value in board.attributes.items() if key == "IO_TYPE"}
    return ports + [Resource("low", index, Pins(ball, dir="o"), Attrs(**level))
                    for index, ball in enumerate(board.low)]


def _pins(pins: list[Pin]) -> Pins | DiffPairs:
    names = " ".join(pin.name for pin in pins)
    if pins[0].negative:
        return DiffPairs(names, " ".join(pin.negative for pin in pins), dir="i")
    return Pins(names, dir="i")


class BoardTop(Elaboratable):
    """A board with one of its links.

    The first flip-flop of every wire is in its I/O cell (all four of a strobe that is sampled twice per clock), so that
    the five of a port are sampled at the same time except for the skew of the clock. The first LED is lit while
    time runs, the second while the clocks are in phase.

    Parameters
    ----------
    board, geometry : the board to build, with ``geometry.nodes`` of its nodes at the capture clock.
    build : value of the BUILD register.
    link : one of the board's links; the first by default.
    serial : letters and digits that distinguish this board from others on USB.
    """

    def __init__(self, board: Board, geometry: Geometry, build: int, link: BoardLink | None = None, serial: str = "0"):
        self.board, self.geometry, self.build = board, geometry, build
        self.link, self.serial = link or board.link(), serial

    def elaborate(self, platform):
        m = Module()
        board, geometry = self.board, self.geometry
        m.submodules.pll = pll = FAMILIES[board.family].pll(
            board.oscillator_hz, {"capture": geometry.clock_hz, **self.link.clocks})
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        m.domains.capture = ClockDomain(reset_less=True)
        m.d.comb += [pll.i.eq(oscillator.i), ClockSignal("capture").eq(pll.capture)]
        ready = Signal()
        m.d.comb += ready.eq(pll.locked & (self._supplies(m, platform, oscillator.i) if board.supplies else 1))

        memory = board.memory
        hypermon = attach(
            m, platform, self.link, pll, ready, geometry, FAMILIES[board.family].ram, self.build, self.serial,
            getattr(sdram_part, memory.part) if memory else None)
        m.submodules.hypermon = hypermon
        if memory:
            sdram_pads(m, platform.request(memory.resource, 0, dir="-"), hypermon.sdram)
        m.d.comb += [hypermon.clk.eq(pll.capture), hypermon.rst.eq(~ready)]
        self._ports(m, platform, hypermon)
        for index in range(len(board.low)):
            m.submodules[f"low{index}"] = low = io.Buffer("o", platform.request("low", index, dir="-"))
            m.d.comb += low.o.eq(Const(0))
        self._lamps(m, platform, hypermon.running, ready)
        return m

    def _ports(self, m: Module, platform, hypermon) -> None:
        """The nodes' wires, each from the flip-flops of its I/O cell, as :class:`hypermon.hdl.input.pads.Pads`."""
        for number in range(self.geometry.nodes):
            port = platform.request("node", number, dir="-")
            m.submodules[f"data{number}"] = data = io.FFBuffer("i", port.data, i_domain="capture")
            m.d.comb += hypermon.data.word_select(number, PORT_BITS).eq(data.i)
            if self.geometry.half_clock:
                m.submodules[f"strobe{number}"] = strobe = io.DDRBuffer("i", port.strobe, i_domain="capture")
                m.d.comb += hypermon.strobe[number].eq(strobe.i[0])
                m.d.capture += hypermon.early[number].eq(strobe.i[1])
            else:
                m.submodules[f"strobe{number}"] = strobe = io.FFBuffer("i", port.strobe, i_domain="capture")
                m.d.comb += hypermon.strobe[number].eq(strobe.i)

    def _supplies(self, m: Module, platform, clock) -> Signal:
        """Creates the port supplies; returns whether they are stable."""
        m.domains.oscillator = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal("oscillator").eq(clock)
        m.submodules.supplies = supplies = DomainRenamer("oscillator")(
            Supplies(self.board.oscillator_hz, self.board.supplies))
        control = platform.request("vccio_ctrl", 0, dir="-")
        m.submodules.supply_pulses = pulses = io.Buffer("o", control.pdm)
        m.submodules.supply_enable = enable = io.Buffer("o", control.en)
        m.d.comb += [pulses.o.eq(supplies.pulses), enable.o.eq(supplies.enable)]
        return supplies.good

    def _lamps(self, m: Module, platform, running: Signal, ready: Signal) -> None:
        lit = Signal()
        m.d.capture += lit.eq(running)
        requested: dict[str, object] = {}
        for lamp, state in zip(self.board.lamps, (lit, ready), strict=False):
            of, _, signal = lamp.partition(".")
            if of not in requested:
                name, _, number = of.partition(":")
                requested[of] = platform.request(name, int(number), dir="-")
            port = getattr(requested[of], signal) if signal else requested[of]
            m.submodules[f"lamp_{lamp.translate({ord(c): '_' for c in ':.'})}"] = pad = io.Buffer("o", port)
            m.d.comb += pad.o.eq(state)
