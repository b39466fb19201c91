"""A board's top: clocks, pads, and the gateware between them; the only module that uses a platform."""

from importlib import import_module

from amaranth.build import Attrs, Clock, DiffPairs, Pins, Resource, Subsignal
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, DomainRenamer, Elaboratable, Module, Signal
from amaranth.lib import io
from hypermon.hdl.layout import FRONT_WIRES, PORT_BITS, Front, Geometry
from hypermon.hdl.stream import sdram_part

from ..clocks.ecp5_gear import EcpGear
from ..model.board import TIME_INPUTS, Board, Pin
from ..model.links import BoardLink
from .families import FAMILIES
from .link_pads import attach
from .port_supply import Supplies
from .quarter_pads import PhaseSource, QuarterInput
from .sdram_pads import sdram_pads

__all__ = ["BoardTop", "platform_of", "resources"]


def platform_of(board: Board, nodes: int, links: tuple[tuple[Pin, Pin], ...] = (), front: Front = Front.PORT,
                timed: dict[str, Pin] | None = None):
    """The board's Amaranth platform with the ports of N wired nodes, or their wires with a front end (of a board with
    ``ports``, as these say), the pins of regeneration boards, see :meth:`~.board.Board.regeneration_pins`, and those
    for time, see :meth:`~.board.Board.time_pins`; it requires only the tools that build."""
    module, name = board.platform.split(":")
    platform = FAMILIES[board.family].platform(getattr(import_module(module), name))(**board.options)
    platform.add_resources(resources(board, nodes, links, front, timed))
    return platform


def resources(board: Board, nodes: int, links: tuple[tuple[Pin, Pin], ...] = (), front: Front = Front.PORT,
              timed: dict[str, Pin] | None = None) -> list[Resource]:
    """The node ports of a board as resources of its platform, the pins of regeneration boards, those for time, that of
    a reference clock, and those that are held low."""
    attributes = Attrs(**board.attributes)
    ports = []
    for number in range(nodes):
        strobe, *data = board.node(number, front)
        pad = Attrs(**board.pad(board.ports[number] if board.ports else front))
        ports.append(Resource("node", number, Subsignal("strobe", _pins([strobe]), pad),
                              *([Subsignal("data", _pins(data), pad)] if data else [])))
    level = {key: value for key, value in board.attributes.items() if key == "IO_TYPE"}
    ports += [Resource("regeneration", number, Subsignal("line", Pins(line.name, dir="i"), attributes),
                       Subsignal("reference", Pins(reference.name, dir="o"), Attrs(**level)))
              for number, (reference, line) in enumerate(links)]
    for name, pin in (timed or {}).items():
        way, of = ("i", attributes) if name in TIME_INPUTS else ("o", Attrs(**level))
        ports.append(Resource(name, 0, Pins(pin.name, dir=way), of))
    if board.reference and board.reference_hz:
        ports.append(Resource("reference", 0, _pins([board.reference.pin]), Clock(board.reference_hz), attributes))
    if board.phase_out:
        ports.append(Resource("phase_out", 0, Pins(board.phase_out.name, dir="o"), Attrs(**level)))
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

    @property
    def clocks(self) -> dict[str, int]:
        """Clocks beside the capture clock: name to Hz. Samples of a line are taken at both edges of ``line``, the four
        samples of a strobe at those of ``fast``."""
        return {**({"line": 2 * self.geometry.clock_hz} if self.geometry.links else {}),
                **({"fast": 2 * self.geometry.clock_hz} if self.geometry.phases == 4 else {}), **self.link.clocks}

    def elaborate(self, platform):
        m = Module()
        board, geometry = self.board, self.geometry
        # The gear makes the capture clock of the fast one.
        wanted = {**({} if geometry.phases == 4 else {"capture": geometry.clock_hz}), **self.clocks}
        m.submodules.pll = pll = FAMILIES[board.family].pll(board.input_hz, wanted)
        pll.own_pin = not board.reference_hz
        feeds = platform.request("reference" if board.reference_hz else platform.default_clk, dir="-")
        m.submodules.oscillator = oscillator = io.Buffer("i", feeds)
        m.domains.capture = ClockDomain(reset_less=True)
        ready = Signal()
        capture, locked = (self._gear(m, platform, pll, oscillator.i) if geometry.phases == 4
                           else (pll.capture, pll.locked))
        m.d.comb += [
            pll.i.eq(oscillator.i), ClockSignal("capture").eq(capture),
            ready.eq(locked & (self._supplies(m, platform, oscillator.i) if board.supplies else 1)),
        ]

        memory = board.memory
        hypermon = attach(
            m, platform, self.link, pll, ready, geometry, FAMILIES[board.family].ram, self.build, self.serial,
            getattr(sdram_part, memory.part) if memory else None)
        m.submodules.hypermon = hypermon
        if memory:
            sdram_pads(m, platform.request(memory.resource, 0, dir="-"), hypermon.sdram)
        m.d.comb += [hypermon.clk.eq(capture), hypermon.rst.eq(~ready)]
        self._ports(m, platform, hypermon)
        if geometry.extras:
            self._time(m, platform, hypermon)
        if geometry.links:
            m.domains.line = ClockDomain(reset_less=True)
            m.d.comb += ClockSignal("line").eq(pll.line)
            self._lines(m, platform, hypermon)
        for index in range(len(board.low)):
            m.submodules[f"low{index}"] = low = io.Buffer("o", platform.request("low", index, dir="-"))
            m.d.comb += low.o.eq(Const(0))
        self._lamps(m, platform, hypermon.running, ready)
        return m

    def _ports(self, m: Module, platform, hypermon) -> None:
        """The nodes' wires, each from the flip-flops of its I/O cell, as :class:`hypermon.hdl.input.pads.Pads`."""
        for number in range(self.geometry.linked_nodes, self.geometry.nodes):
            port = platform.request("node", number - self.geometry.linked_nodes, dir="-")
            front = self.geometry.fronts[number] if self.geometry.fronts else Front.PORT
            if FRONT_WIRES[front] > 1:
                m.submodules[f"data{number}"] = data = io.FFBuffer("i", port.data, i_domain="capture")
                level = data.i
                if self.geometry.phases == 4:      # strobes come a clock later
                    level = Signal(PORT_BITS, name=f"level{number}")
                    m.d.capture += level.eq(data.i)
                m.d.comb += hypermon.data.word_select(number, PORT_BITS).eq(level)
            if self.geometry.phases == 4:
                self._quarter_port(m, number, port.strobe, hypermon)
            elif self.geometry.phases == 2:
                m.submodules[f"strobe{number}"] = strobe = io.DDRBuffer("i", port.strobe, i_domain="capture")
                m.d.comb += hypermon.strobe[number].eq(strobe.i[0])
                m.d.capture += hypermon.early[number].eq(strobe.i[1])
            else:
                m.submodules[f"strobe{number}"] = strobe = io.FFBuffer("i", port.strobe, i_domain="capture")
                m.d.comb += hypermon.strobe[number].eq(strobe.i)

    def _time(self, m: Module, platform, hypermon) -> None:
        """The pins for time. The inputs are asynchronous; their flip-flops are in the core."""
        for name in self.board.time_pins():
            way = "i" if name in TIME_INPUTS else "o"
            m.submodules[name] = pad = io.Buffer(way, platform.request(name, 0, dir="-"))
            signal = hypermon.pins[name] if name in hypermon.pins else getattr(hypermon, name)
            m.d.comb += signal.eq(pad.i) if way == "i" else pad.o.eq(signal)

    def _gear(self, m: Module, platform, pll, oscillator: Signal) -> tuple[Signal, Signal]:
        """The gear for four samples per clock, and the pin that checks them. Returns its clock, and whether it runs."""
        m.submodules.gear = self._geared = gear = EcpGear(self.geometry.clock_hz)
        m.submodules.phase_source = PhaseSource(platform.request("phase_out", 0, dir="-"))
        m.d.comb += [gear.fast.eq(pll.fast), gear.oscillator.eq(oscillator), gear.locked.eq(pll.locked)]
        return gear.clock, gear.ready

    def _quarter_port(self, m: Module, number: int, port, hypermon) -> None:
        """A strobe that is sampled four times per clock."""
        m.submodules[f"strobe{number}"] = DomainRenamer("capture")(quarter := QuarterInput(port))
        m.d.comb += [
            quarter.edge.eq(self._geared.edge), quarter.reset.eq(self._geared.reset),
            hypermon.strobe[number].eq(quarter.level),
            *(hypermon.early[sample * self.geometry.nodes + number].eq(quarter.early[sample]) for sample in range(3)),
        ]

    def _lines(self, m: Module, platform, hypermon) -> None:
        """Regeneration boards: four samples per line and clock, and the clock itself.

        The clock of the samples is twice as fast, and in phase. Its two latest pairs of samples change with it and are
        taken at the next edge of both clocks.
        """
        for number in range(self.geometry.links):
            port = platform.request("regeneration", number, dir="-")
            m.submodules[f"line{number}"] = line = io.DDRBuffer("i", port.line, i_domain="line")
            m.submodules[f"reference{number}"] = reference = io.DDRBuffer(
                "o", port.reference, o_domain="capture")
            samples, taken = Signal(4, name=f"samples{number}"), Signal(4, name=f"taken{number}")
            # The second of a pair was taken half a clock after the first (FPGA-TN-02035, IDDRX1F).
            m.d.line += samples.eq(Cat(samples[2:], line.i))
            m.d.capture += taken.eq(samples)
            m.d.comb += [
                hypermon.line.word_select(number, 4).eq(taken), reference.o[0].eq(1), reference.o[1].eq(0)]

    def _supplies(self, m: Module, platform, clock) -> Signal:
        """Creates the port supplies; returns whether they are stable. A reference clock comes through a pin that they
        supply, so their own clock is always that of the oscillator."""
        m.domains.oscillator = ClockDomain(reset_less=True)
        if self.board.reference_hz:
            m.submodules.own = own = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
            clock = own.i
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
