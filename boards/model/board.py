"""A dev board as data: its pins, clock and links.

Nothing here imports Amaranth, so that a host without an HDL tool can print pinouts. The platform of the package
``amaranth-boards`` is referred to by name, and imported only to build.
"""

from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

from hypermon.hdl.layout import BEAT_BYTES, PORT_BITS, Geometry, Option

from .connectors import Connector, listed
from .links import BoardLink

__all__ = ["Board", "Memory", "Pin", "PIN_ROLES"]

#: Roles of the five pins of a node, in the order in which a board lists them.
PIN_ROLES = ("strobe", *(f"data{bit}" for bit in range(PORT_BITS)))


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
    attributes : attributes of every port's pin: level, pull-down.
    openfpgaloader, dfu, apollo : how a bitstream is loaded: the board's name in openFPGALoader; or vendor and product
        of its boot loader, as ``1209:5af0``, which stores it; or Apollo, the debugger of Great Scott Gadgets.
    configs : the configurations it is built in, of ``classic``, ``half-clock`` (as extended, strobes sampled twice per
        clock; an ECP5) and ``extended``; the last is built by default.
    store_depth : beats of blocks that wait in its block RAM for the link, with the extended sink.
    absent : options that it leaves out, with the extended sink, in favour of size and clock rate.
    memory : external memory, all of which buffers blocks after that, in every configuration.
    small : differences in the geometry of a classic board that has no room for the full one, nor for a node
        emulator.
    low : balls that are held low, because the parts connected to them would otherwise drive pins of the list.
    lamps : LEDs that are lit while time runs, and while the clocks are in phase: ``resource:number`` or
        ``resource:number.signal`` of the platform; fewer than two if it has fewer.
    supplies : volts of the port supplies that the FPGA itself sets, see ``hypermon.boards.toolchain.port_supply``.
    options : options of the platform's constructor.
    connectors : connectors of the pins, with their layout, each pin at one hole; a board without them gets a list on
        its page.
    shared : other parts connected to the pins, one sentence each.
    limits : limitations compared with larger boards, and their reasons, one sentence each.
    level : voltage levels that a port accepts, as text for users.
    documents : sources of the pins.

    Raises
    ------
    ValueError
        for pins that are not five per node, or named twice, or not at one hole; for no link; and for no way or several
        ways to load the bitstream.
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
    openfpgaloader: str = ""
    dfu: str = ""
    apollo: bool = False
    configs: tuple[str, ...] = ("classic", "extended")
    store_depth: int = 3072
    absent: tuple[Option, ...] = ()
    memory: Memory | None = None
    small: dict[str, Any] = field(default_factory=dict, hash=False)
    low: tuple[str, ...] = ()
    lamps: tuple[str, ...] = ("led:0", "led:1")
    supplies: tuple[float, ...] = ()
    options: dict[str, str] = field(default_factory=dict, hash=False)
    connectors: tuple[Connector, ...] = ()
    shared: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    level: str = "3.3 V LVCMOS; 5 V on any pin destroys the FPGA"
    documents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.pins or len(self.pins) % len(PIN_ROLES):
            raise ValueError(f"{self.name}: a node takes {len(PIN_ROLES)} pins, and {len(self.pins)} are no multiple")
        names = [name for pin in self.pins for name in (pin.name, pin.negative) if name]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{self.name}: pins named twice: {', '.join(doubled)}")
        holes = [hole.pin for connector in self.shapes for hole in connector.holes if hole.pin]
        if astray := sorted({name for name in names if holes.count(name) != 1}):
            raise ValueError(f"{self.name}: pins that are not at one hole of the connectors: {', '.join(astray)}")
        if not self.links:
            raise ValueError(f"{self.name}: no link")
        if sum(map(bool, (self.openfpgaloader, self.dfu, self.apollo))) != 1:
            raise ValueError(f"{self.name}: one of openfpgaloader, dfu and apollo")

    @property
    def shapes(self) -> tuple[Connector, ...]:
        """Its connectors, or a list of its pins."""
        return self.connectors or (listed("pins", (
            (name, label) for pin in self.pins
            for name, label in zip(filter(None, (pin.name, pin.negative)), pin.label.split(" / "), strict=True))),)

    @property
    def nodes(self) -> int:
        """Number of nodes that its pins allow."""
        return len(self.pins) // len(PIN_ROLES)

    def node(self, number: int) -> tuple[Pin, ...]:
        """The pins of a node, in the order of :data:`PIN_ROLES`."""
        wide = len(PIN_ROLES)
        return self.pins[number * wide:(number + 1) * wide]

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
        """Base name of a build's files; it contains the link if that is not the first."""
        return "-".join((self.name, *((link.kind,) if link != self.links[0] else ()), config))

    @property
    def clock_ratio(self) -> tuple[int, int]:
        """Capture clocks per oscillator clocks, as an exact ratio: the error of time is that of the oscillator
        alone.
        """
        common = gcd(self.capture_hz, self.oscillator_hz)
        return self.capture_hz // common, self.oscillator_hz // common

    def config(self, config: str | None = None) -> str:
        """The given configuration, or the default.

        Raises
        ------
        ValueError
            for a configuration that it is not built in.
        """
        if config not in (None, *self.configs):
            raise ValueError(f"{self.name} is built as {', '.join(self.configs)}, not as {config!r}")
        return config or self.configs[-1]

    def geometry(self, config: str | None = None, nodes: int | None = None, link: str | None = None) -> Geometry:
        """Geometry of a configuration, with all of its nodes or the first few, for that kind of link.

        Raises
        ------
        ValueError
            for more nodes than it has, or none, and for a configuration or a link that it is not built with.
        """
        nodes = self.nodes if nodes is None else nodes
        if not 1 <= nodes <= self.nodes:
            raise ValueError(f"{self.name} has pins for 1 to {self.nodes} nodes, not {nodes}")
        config, chosen = self.config(config), self.link(link)
        depth = self.memory.bytes // BEAT_BYTES if self.memory else 0
        if config == "classic":
            made = Geometry(nodes, self.capture_hz, external_depth=depth, emulator=not self.small)
            return replace(made, **self.small)
        store = self.store_depth and self.store_depth - chosen.store_less
        return Geometry.extended(nodes, self.capture_hz, store, depth, half_clock=config == "half-clock",
                                 absent=self.absent)
