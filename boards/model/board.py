"""A dev board as data: its pins, clock and links.

Nothing here imports Amaranth, so that a host without an HDL tool can print pinouts. The platform of the package
``amaranth-boards`` is referred to by name, and imported only to build.
"""

from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

from hypermon.hdl.layout import (
    BEAT_BYTES,
    FRONT_WIRES,
    LINK_NODES,
    NODES_MAX,
    PORT_BITS,
    Extra,
    Front,
    Geometry,
    Option,
)

from .connectors import Connector, listed
from .links import BoardLink
from .mixture import kind, parse_mixture, short

__all__ = [
    "FRONT_CONFIGS", "FRONT_ROLES", "LINKS_MAX", "LINK_PINS", "PHASES", "PIN_ROLES", "REFERENCES_HZ", "TIMED",
    "TIME_INPUTS", "TIME_PINS", "Board", "ClockInput", "Memory", "Pin"]

#: Roles of the five pins of a node, in the order in which a board lists them.
PIN_ROLES = ("strobe", *(f"data{bit}" for bit in range(PORT_BITS)))
#: Roles of the wires of a node, in that order, by how it is wired.
FRONT_ROLES = {Front.PORT: PIN_ROLES, Front.TWO_WIRE: ("clock", "data"), Front.SELECTED: ("clock", "data", "select"),
               Front.UART: ("line",), Front.SWO: ("line",)}
#: Kinds of nodes whose wire is high when idle.
_IDLE_HIGH = (Front.UART, Front.SWO)
#: Pins that a regeneration board takes: the reference clock and the line, each from or to an LVDS driver or receiver.
LINK_PINS = 2
#: Configurations as ``extended``, all of whose nodes have a front end.
FRONT_CONFIGS = {front.name.lower().replace("_", "-"): front for front in Front if front is not Front.PORT}
#: Regeneration boards of one board: as many as it can have nodes.
LINKS_MAX = NODES_MAX // LINK_NODES
#: Configuration as ``extended``, with all extras, and with pins for them.
TIMED = "timed"
#: Its pins, which no node has then, and those of them that are inputs.
TIME_PINS = ("sync_in", "sync_out", "pps_in", "trigger_in", "trigger_out")
TIME_INPUTS = ("sync_in", "pps_in", "trigger_in")
#: Frequencies that an external reference clock may have.
REFERENCES_HZ = (10_000_000, 25_000_000, 100_000_000)
#: A capture clock is a multiple of this, see :class:`~hypermon.hdl.layout.Geometry`.
_CLOCK_STEP_HZ = 5_000_000
#: Samples of each strobe per clock, by configuration; one in all others.
PHASES = {"half-clock": 2, "quarter-clock": 4}


@dataclass(frozen=True)
class Pin:
    """A pin that users can wire.

    Parameters
    ----------
    name : name in ``amaranth-boards``, ``connector_number:pin``, or the bare ball.
    label : its position on the board, as printed there.
    negative : name of the other pin of a differential pair.
    """

    name: str
    label: str
    negative: str = ""


@dataclass(frozen=True)
class ClockInput:
    """A pin from which a PLL can be fed.

    Parameters
    ----------
    pin : one of a board's.
    function : what the part's documents call that input.
    """

    pin: Pin
    function: str


@dataclass(frozen=True)
class Memory:
    """An SDRAM in which blocks wait for the link.

    Parameters
    ----------
    resource : its name in the platform.
    part : its data sheet, a name in ``hypermon.hdl.stream.sdram_part``.
    bytes : its size.
    text : description for users.
    """

    resource: str
    part: str
    bytes: int
    text: str


@dataclass(frozen=True)
class Board:
    """A dev board.

    Parameters
    ----------
    name : its name on the command line.
    title : its name for users.
    fpga : the part, as text for users.
    platform : ``module:class`` of its Amaranth platform.
    family : its PLL and memories, a key of ``hypermon.boards.toolchain.families.FAMILIES``.
    oscillator_hz : frequency of the platform's default clock.
    capture_hz : the capture clock, derived from it by a PLL.
    links : links to the host; the first is built by default.
    pins : five per node, in the order of :data:`PIN_ROLES`.
    spare : pins that are left over, fewer than a port has; nodes with fewer wires may have them, and the configuration
        ``timed``.
    reference : one of these pins, for an external clock in place of the oscillator; none if none of them can feed the
        PLL.
    references_hz : the frequencies there of which the PLL makes exactly the clocks that each of the links needs.
    reference_hz : the PLL is fed from that pin by this frequency, and not by the oscillator, see :meth:`fed`; else 0.
    slow_hz : the capture clock in place of ``capture_hz``, see :meth:`clocked`; else 0.
    ports : how each of its nodes is wired, see :meth:`mixed`; empty: as the configuration says.
    attributes : attributes of every port's pin: level, pull-down.
    openfpgaloader, dfu, apollo : how a bitstream is loaded: the board's name in openFPGALoader; or vendor and product
        of its boot loader, as ``1209:5af0``, which stores it; or Apollo, the debugger of Great Scott Gadgets.
    configs : the configurations it is built in, of ``classic``, ``half-clock`` and ``quarter-clock`` (as extended,
        strobes sampled twice or four times per clock; an ECP5) and ``extended``; the last is built by default. Those
        that follow from its pins are :attr:`timed`, :attr:`fronts` and :attr:`regenerations`.
    regeneration_hz : the capture clock with regeneration boards, whose reference clock it is: an iCE40HX1K reaches 100
        MHz (docs/regeneration.md), and the PLL has to make twice as much in addition to the clocks of all links.
    store_depth : beats of blocks that wait in its block RAM for the link, with the extended sink.
    absent : options that it leaves out, with the extended sink, in favour of size and clock rate.
    beat_bytes : 4 if the stages from packer to checksum are narrow, with the extended sink, in favour of size; see
        :class:`~hypermon.hdl.layout.Geometry`.
    memory : external memory, all of which buffers blocks after that, in every configuration.
    small : differences in the geometry of a classic board that has no room for the full one, nor for a node
        emulator.
    low : balls that are held low, because the parts connected to them would otherwise drive pins of the list.
    lamps : LEDs that are lit while time runs, and while the clocks are in phase: ``resource:number`` or
        ``resource:number.signal`` of the platform; fewer than two if it has fewer.
    supplies : volts of the port supplies that the FPGA itself sets, see ``hypermon.boards.toolchain.port_supply``.
    options : options of the platform's constructor.
    phase_out : with ``quarter-clock``, the pin whose edges check the phases of the samples; it belongs to no node.
    connectors : connectors of the pins, with their layout, each pin at one hole; a board without them gets a list on
        its page.
    shared : other parts connected to the pins, one sentence each.
    notes : what else a user must know to wire or use the board, one sentence each.
    limits : limitations compared with larger boards, and their reasons, one sentence each.
    level : voltage levels that a port accepts, as text for users.
    documents : sources of the pins.

    Raises
    ------
    ValueError
        for pins that are not five per node, or named twice, or not at one hole; for a reference that is no pin; for no
        link; and for no way or several ways to load the bitstream.
    """

    name: str
    title: str
    fpga: str
    platform: str
    family: str
    oscillator_hz: int
    capture_hz: int
    links: tuple[BoardLink, ...]
    pins: tuple[Pin, ...]
    attributes: dict[str, str | int] = field(hash=False)
    spare: tuple[Pin, ...] = ()
    reference: ClockInput | None = None
    references_hz: tuple[int, ...] = REFERENCES_HZ
    reference_hz: int = 0
    slow_hz: int = 0
    ports: tuple[Front, ...] = ()
    openfpgaloader: str = ""
    dfu: str = ""
    apollo: bool = False
    configs: tuple[str, ...] = ("classic", "extended")
    regeneration_hz: int = 100_000_000
    store_depth: int = 3072
    absent: tuple[Option, ...] = ()
    beat_bytes: int = BEAT_BYTES
    memory: Memory | None = None
    small: dict[str, Any] = field(default_factory=dict, hash=False)
    low: tuple[str, ...] = ()
    lamps: tuple[str, ...] = ("led:0", "led:1")
    supplies: tuple[float, ...] = ()
    options: dict[str, str] = field(default_factory=dict, hash=False)
    phase_out: Pin | None = None
    connectors: tuple[Connector, ...] = ()
    shared: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    level: str = "3.3 V LVCMOS; 5 V on any pin destroys the FPGA"
    documents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.pins or len(self.pins) % len(PIN_ROLES):
            raise ValueError(f"{self.name}: a node takes {len(PIN_ROLES)} pins, and {len(self.pins)} are no multiple")
        names = [name for pin in (*self.pins, *self.spare) for name in (pin.name, pin.negative) if name]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{self.name}: pins named twice: {', '.join(doubled)}")
        holes = [hole.pin for connector in self.shapes for hole in connector.holes if hole.pin]
        if astray := sorted({name for name in names if holes.count(name) != 1}):
            raise ValueError(f"{self.name}: pins that are not at one hole of the connectors: {', '.join(astray)}")
        if (self.phase_out is not None) != ("quarter-clock" in self.configs):
            raise ValueError(f"{self.name}: a pin phase_out with the configuration quarter-clock, and not without")
        if self.reference and (self.reference.pin in (*self.pins, *self.spare)) == bool(self.reference_hz):
            raise ValueError(f"{self.name}: the pin of a reference clock is one of its pins, or fed by that clock")
        if not self.links:
            raise ValueError(f"{self.name}: no link")
        if sum(map(bool, (self.openfpgaloader, self.dfu, self.apollo))) != 1:
            raise ValueError(f"{self.name}: one of openfpgaloader, dfu and apollo")

    @property
    def shapes(self) -> tuple[Connector, ...]:
        """Its connectors, or a list of its pins."""
        return self.connectors or (listed("pins", (
            (name, label) for pin in (*self.pins, *self.spare, *self._fed_from)
            for name, label in zip(filter(None, (pin.name, pin.negative)), pin.label.split(" / "), strict=True))),)

    @property
    def _fed_from(self) -> tuple[Pin, ...]:
        return (self.reference.pin,) if self.reference and self.reference_hz else ()

    @property
    def nodes(self) -> int:
        """Number of nodes that its pins allow, or of those that ``ports`` has."""
        return len(self.ports) or self._whole

    def node(self, number: int, front: Front = Front.PORT) -> tuple[Pin, ...]:
        """The pins of a node, in the order of :data:`FRONT_ROLES`; if all nodes are wired like this one, or as
        ``ports`` says."""
        if self.ports:
            front, first = self.ports[number], sum(FRONT_WIRES[before] for before in self.ports[:number])
        else:
            first = number * FRONT_WIRES[front]
        return (*self.pins, *self.spare)[first:first + FRONT_WIRES[front]]

    def pad(self, front: Front = Front.PORT) -> dict[str, str | int]:
        """Attributes of the pins of a node. With ``ports``, a wire that is high when idle is pulled up, so that it is
        idle when nothing is connected."""
        if not self.ports or front not in _IDLE_HIGH:
            return self.attributes
        return {key: "UP" if value == "DOWN" else value for key, value in self.attributes.items()}

    @property
    def fronts(self) -> dict[str, int]:
        """Configurations in which all nodes have the same front end, and the number of nodes; only those that have more
        nodes than with ports."""
        able = "extended" in self.configs
        pins = len(self.pins) + len(self.spare)
        counts = {config: min(pins // FRONT_WIRES[front], NODES_MAX) for config, front in FRONT_CONFIGS.items() if able}
        return {config: count for config, count in counts.items() if count > self._whole}

    @property
    def _whole(self) -> int:
        """Number of ports that its pins allow."""
        return len(self.pins) // len(PIN_ROLES)

    def link(self, kind: str | None = None) -> BoardLink:
        """Its link of that kind, or the first.

        Raises
        ------
        ValueError
            for a link that it does not have; the message lists those that it has.
        """
        for link in self.links:
            if kind in (None, link.kind):
                return link
        raise ValueError(f"{self.name} has no link {kind!r}, but {', '.join(link.kind for link in self.links)}")

    def stem(self, config: str, link: BoardLink) -> str:
        """Base name of a build's files; it contains the link if that is not the first, ``ports`` if there are any, and
        the MHz of a reference and of a slower clock."""
        return "-".join((self.name, *((link.kind,) if link != self.links[0] else ()), config,
                         *((short(self.ports),) if self.ports else ()),
                         *((f"reference{self.reference_hz // 1_000_000}",) if self.reference_hz else ()),
                         *((f"{self.slow_hz // 1_000_000}mhz",) if self.slow_hz else ())))

    @property
    def input_hz(self) -> int:
        """The clock that feeds the PLL: a reference, or the oscillator."""
        return self.reference_hz or self.oscillator_hz

    def fed(self, hz: int) -> "Board":
        """The board with its PLL fed by a reference clock instead of the oscillator. The node that had the pin gets the
        last one of the list; all other wires stay.

        Raises
        ------
        ValueError
            for a board without such a pin, and for a frequency of which its PLL cannot make its clocks.
        """
        if not self.reference:
            raise ValueError(f"{self.name} takes no reference clock: none of its pins can feed the PLL")
        if hz not in self.references_hz:
            able = ", ".join(map(str, self.references_hz))
            raise ValueError(f"{self.name} takes a reference clock of {able} Hz, not of {hz}")
        every = [*self.pins, *self.spare]
        place, last = every.index(self.reference.pin), every.pop()
        if place < len(every):
            every[place] = last
        whole = len(every) // len(PIN_ROLES) * len(PIN_ROLES)
        return replace(self, pins=tuple(every[:whole]), spare=tuple(every[whole:]), reference_hz=hz)

    def clocked(self, hz: int) -> "Board":
        """The board with a slower capture clock: what is too slow for its own one may reach this one.

        Raises
        ------
        ValueError
            for a clock that is not slower, and for a board whose memory runs at the capture clock.
        """
        if self.memory:
            raise ValueError(f"{self.name}: its memory runs at {self.capture_hz} Hz, the capture clock, which is fixed")
        if not 0 < hz < self.capture_hz or hz % _CLOCK_STEP_HZ:
            raise ValueError(f"{self.name} takes multiples of {_CLOCK_STEP_HZ} Hz below its own clock of "
                             f"{self.capture_hz} Hz")
        return replace(self, capture_hz=hz, slow_hz=hz, limits=())

    def mixed(self, ports: str, config: str | None = None, nodes: int | None = None) -> "Board":
        """The board with nodes that are wired as the option ``--ports`` says, see :func:`~.mixture.parse_mixture`. They
        take the pins in their order, also the spare ones.

        Parameters
        ----------
        config : in which it is to be built, or None.
        nodes : only the first ones. Without it, as many as ``ports`` names; if that has a kind for the others, as many
            as the pins and the limit of nodes permit.

        Raises
        ------
        ValueError
            that says what is wrong with the option, or what the board does not have for it.
        """
        try:
            asked, config = parse_mixture(ports), self.config(config)
            self._refuse_ports(config, (*asked.own.values(), *((asked.rest,) if asked.rest is not None else ())))
            free, whole = len(self._free_pins(config)), max(asked.own, default=-1) + 1
            fronts: list[Front] = []
            while len(fronts) < (nodes or (NODES_MAX if asked.rest is not None else whole)):
                front = asked.own.get(len(fronts), asked.rest)
                if front is None:
                    raise ValueError(f"node {len(fronts)} has no kind: name it, or add a kind for all others, such as "
                                     f"{ports},port")
                if sum(FRONT_WIRES[one] for one in (*fronts, front)) > free:
                    if nodes or len(fronts) < whole:
                        raise ValueError(f"{self.name} has {free} pins for nodes, and the first "
                                         f"{len(fronts) + 1} nodes need more")
                    break
                fronts.append(front)
            made = replace(self, ports=tuple(fronts))
            made.geometry(config)
        except ValueError as error:
            raise ValueError(f"--ports {ports}: {error}") from None
        return made

    def _refuse_ports(self, config: str, ports: tuple[Front, ...]) -> None:
        """Raises ValueError if nodes that are wired like this cannot be in a configuration."""
        if config in self.regenerations:
            raise ValueError(f"--config {config} has nodes on lines of regeneration boards, whose kind is fixed; leave "
                             "one of the two options out")
        if config in self.fronts:
            raise ValueError(f"--config {config} wires all nodes alike; leave one of the two options out")
        if config == "classic" and (fewer := [front for front in ports if front is not Front.PORT]):
            raise ValueError(f"{kind(fewer[0])} needs the extended configuration"
                             + ("" if "extended" in self.configs else f", which {self.name} has no room for"))

    def _free_pins(self, config: str) -> tuple[Pin, ...]:
        """The pins that nodes of any kind may have in a configuration: those before the pins for time."""
        every, timed = (*self.pins, *self.spare), self.time_pins(config)
        return every[:every.index(next(iter(timed.values())))] if timed else every

    @property
    def timed(self) -> tuple[str, ...]:
        """The configuration with pins for time, if it is built in that; its outputs are single-ended."""
        able = "extended" in self.configs and not self.pins[0].negative
        return (TIMED,) if able and self._free_of(len(TIME_PINS)) else ()

    def time_pins(self, config: str = TIMED) -> dict[str, Pin]:
        """The pins of :data:`TIME_PINS` in a configuration: the last ones of the list. If that costs no node, the very
        last is left, so that they are the same with a reference clock; see :meth:`fed`."""
        if config not in self.timed:
            return {}
        every, wide = (*self.pins, *self.spare), len(TIME_PINS)
        if self.reference and not self.reference_hz and self._free_of(wide + 1) == self._free_of(wide):
            every = every[:-1]
        return dict(zip(TIME_PINS, every[-wide:], strict=True))

    def _free_of(self, pins: int) -> int:
        """Number of nodes that are left without the given number of pins."""
        return min((len(self.pins) + len(self.spare) - pins) // len(PIN_ROLES), NODES_MAX)

    @property
    def regenerations(self) -> tuple[str, ...]:
        """Configurations with regeneration boards: ``links1`` to ``links4``, as ``extended``, with that many of them.
        Only if the board then has more nodes. Only an ECP5 has the input cells, and a differential pin costs two.
        """
        able = self.family == "ecp5" and "extended" in self.configs and not self.pins[0].negative
        counts = range(1, min(len(self.pins) // LINK_PINS, LINKS_MAX) + 1) if able else ()
        return tuple(f"links{n}" for n in counts if n * LINK_NODES + self._free(n) > self._whole)

    def regeneration_pins(self, config: str) -> tuple[tuple[Pin, Pin], ...]:
        """For each regeneration board of a configuration: the pin of its reference clock, and that of its line. They
        are the last ones of the list.
        """
        count = self._regenerations(config)
        last = self.pins[len(self.pins) - count * LINK_PINS:]
        return tuple((last[2 * n], last[2 * n + 1]) for n in range(count))

    def wired(self, config: str) -> int:
        """Number of nodes that are wired to its own pins; those of regeneration boards come before them."""
        if self.ports:
            return len(self.ports)
        if config in self.timed:
            return self._free_of(len(TIME_PINS))
        return self._free(count) if (count := self._regenerations(config)) else self.nodes

    def _free(self, count: int) -> int:
        free = (len(self.pins) - count * LINK_PINS) // len(PIN_ROLES)
        return min(free, NODES_MAX - count * LINK_NODES)

    def _regenerations(self, config: str) -> int:
        return int(config.removeprefix("links")) if config in self.regenerations else 0

    @property
    def clock_ratio(self) -> tuple[int, int]:
        """Capture clocks per clocks of the oscillator, or of the reference, as an exact ratio: the error of time is
        that of this clock alone.
        """
        common = gcd(self.capture_hz, self.input_hz)
        return self.capture_hz // common, self.input_hz // common

    def config(self, config: str | None = None) -> str:
        """The given configuration, or the default.

        Raises
        ------
        ValueError
            for a configuration that it is not built in.
        """
        every = (*self.configs, *self.timed, *self.fronts, *self.regenerations)
        if config not in (None, *every):
            raise ValueError(f"{self.name} is built as {', '.join(every)}, not as {config!r}")
        return config or self.configs[-1]

    def geometry(self, config: str | None = None, nodes: int | None = None, link: str | None = None) -> Geometry:
        """Geometry of a configuration, with all of its nodes or the first few, for that kind of link.

        Raises
        ------
        ValueError
            for more nodes than it has, or none, and for a configuration or a link that it is not built with.
        """
        config, chosen = self.config(config), self.link(link)
        links = self._regenerations(config)
        if self.ports:
            self._refuse_ports(config, self.ports)
        if links and self.slow_hz:
            raise ValueError(f"{self.name} has a fixed clock with regeneration boards, {self.regeneration_hz} Hz")
        least, most = links * LINK_NODES, self.fronts.get(config, self.wired(config) + links * LINK_NODES)
        nodes = most if nodes is None else nodes
        if not max(least, 1) <= nodes <= most:
            raise ValueError(f"{self.name} has pins for {max(least, 1)} to {most} nodes, not {nodes}")
        depth = self.memory.bytes // BEAT_BYTES if self.memory else 0
        if config == "classic":
            made = Geometry(nodes, self.capture_hz, external_depth=depth, emulator=not self.small)
            return replace(made, **self.small)
        store = self.store_depth and self.store_depth - chosen.store_less
        made = Geometry.extended(nodes, self.capture_hz, store, depth, phases=PHASES.get(config, 1),
                                 absent=self.absent,
                                 beat_bytes=BEAT_BYTES if links or config in self.timed else self.beat_bytes,
                                 extras=tuple(Extra) if config in self.timed else (),
                                 fronts=self._wired_as(config, nodes))
        return replace(made, links=links, clock_hz=self.regeneration_hz) if links else made

    def _wired_as(self, config: str, nodes: int) -> tuple[Front, ...]:
        """How the first nodes are wired in a configuration; empty if all have ports."""
        every = self.ports or ((FRONT_CONFIGS[config],) * nodes if config in self.fronts else ())
        return every[:nodes] if set(every[:nodes]) - {Front.PORT} else ()
