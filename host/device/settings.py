"""Settings of a capture: their checks against what a board can do, and the register values that they need."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from hypermon.hdl.layout import (
    EVENT_IDS,
    EVENT_MASK_ROW,
    PORT_BITS,
    Extra,
    Front,
    Geometry,
    Option,
    Sink,
    Window,
    front_period,
    front_span,
)
from hypermon.host.blocks.item_modes import ALL_NIBBLES, TIMEOUT_MS, ItemModes
from hypermon.host.device.trigger import NOTHING, Match, refuse_pretrigger, refuse_strange_node
from hypermon.host.errors import HypermonError
from hypermon.host.link import Played

__all__ = ["Identity", "Settings", "event_mask_rows", "front_registers", "guard_registers", "in_force",
           "item_registers", "keeps_clock", "pin_registers", "port_registers", "refuse_settings", "timing_registers",
           "trigger_registers"]

_FLUSH_MAX = _TIMEOUT_MAX = 2**32 - 1
_NIBBLES = 0xffff


@dataclass(frozen=True)
class Identity:
    """A board's description in its registers."""

    nodes: int
    data_bits: int
    sinks: tuple[str, ...]
    latency: int
    clock_hz: int
    node_depth: int
    vector_depth: int
    frame_depth: int
    build: int
    format_version: int
    register_version: int
    half_clock: bool = False
    store_depth: int = 0
    external_depth: int = 0
    absent: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    links: int = 0
    quarter_clock: bool = False
    fronts: tuple[str, ...] = ()

    @property
    def phases(self) -> int:
        """Samples of each strobe per clock."""
        return 4 if self.quarter_clock else 2 if self.half_clock else 1

    def as_dict(self) -> dict[str, Any]:
        """As plain values; ``links``, ``quarter_clock`` and ``fronts`` only of a board that has them."""
        values = {**asdict(self), "sinks": list(self.sinks), "absent": list(self.absent), "extras": list(self.extras),
                  "build": f"{self.build:08x}"}
        values["fronts"] = list(self.fronts)
        for name in ("links", "quarter_clock", "fronts"):
            if not values[name]:
                del values[name]
        return values


@dataclass(frozen=True)
class Settings:
    """How a run is to be captured.

    Parameters
    ----------
    window : synchronization window.
    sink : classic or extended.
    rising, falling, after : bit i belongs to node i; None leaves the default, which is that of the link's stimulus,
        else rising edges and samples before them.
    flush_ms : how long a queued frame waits at most before its block starts.
    slow_census : censuses ten times as far apart, 100 ms to 1 s; always the case on slow links.
    modes : what the items of the nodes are; other than nibbles in the extended configuration only.
    item_timeout_ms : how long an item of several nibbles waits for its next nibble.
    glitch : clocks that a level of a strobe must last to count, 0 to 15, on boards with the glitch filter only; with 0
        and 1 every level counts.
    rate_limit : maximum number of items of a node, 1 to 255, and the number of windows in which it applies, a power of
        two up to 2**31; on boards with the limit only. None: no limit.
    nodes_kept, nibbles_kept : bit i: node i takes part; bit v: single nibbles of value v are kept, in the extended
        configuration only. None: all of them.
    events_out : ids of events that do not cross the link, in the extended configuration only.
    follow : time follows another board's, over ``sync_in``, on boards that have it only.
    stepped : such a board's time is stepped, even if it could keep its own clock and mark its drift.
    pin : ``start``, ``stop`` or ``both``: what rises of ``trigger_in`` do, on boards that have it only; empty: nothing.
    spi_hz, uart_baud, swo_baud : rates of nodes with two or three wires, a UART, or SWO, on boards with such front ends
        only. None: what the board has after power-up, for two wires an SPI clock of about a thirteenth of the board's.
    lowest : nodes of two or three wires that send the lowest bit of a byte first, one bit each.
    start, stop, pretrigger : what begins and ends the part that is kept, in the extended configuration only, and how
        many nibbles before the start are kept.
    """

    window: Window = Window.NS800
    rising: int | None = None
    falling: int | None = None
    after: int | None = None
    flush_ms: float = 1.0
    slow_census: bool = False
    sink: Sink = Sink.CLASSIC
    modes: ItemModes = ALL_NIBBLES
    item_timeout_ms: float = TIMEOUT_MS
    glitch: int = 0
    rate_limit: tuple[int, int] | None = None
    nodes_kept: int | None = None
    nibbles_kept: int | None = None
    events_out: frozenset[int] = frozenset()
    follow: bool = False
    stepped: bool = False
    pin: str = ""
    spi_hz: int | Fraction | None = None
    uart_baud: int | None = None
    swo_baud: int | None = None
    lowest: int = 0
    start: Match = NOTHING
    stop: Match = NOTHING
    pretrigger: int = 0

    def timeout_clocks(self, clock_hz: int) -> int:
        """The time-out in clocks, at least one."""
        return max(min(round(self.item_timeout_ms * clock_hz / 1000), _TIMEOUT_MAX), 1)


def refuse_settings(settings: Settings, board: Identity, geometry: Geometry, uri: str) -> None:
    """Raises HypermonError if a board cannot capture like this."""
    sink = settings.sink.name.lower()
    if settings.sink not in geometry.sinks:
        raise HypermonError(f"--config {sink}: {uri} has the {' and the '.join(board.sinks)} configuration only; load "
                            "other gateware: hypermon flash BOARD")
    modes = settings.modes.on(board.nodes)
    if modes.longer and settings.sink is Sink.CLASSIC:
        raise HypermonError("in the classic configuration every item is a nibble; words and events need "
                            "--config extended")
    refuse_pretrigger(settings.pretrigger, settings.start)
    for option, match in (("--start", settings.start), ("--stop", settings.stop)):
        _refuse_match(option, match, settings, board, uri)
    if not _nodes_kept(settings, board):
        raise HypermonError(f"--mask nodes={settings.nodes_kept:#x}: the board has nodes 0 to {board.nodes - 1}, and "
                            "none of them would be kept")
    if any(guard_registers(settings).values()) and not geometry.guarded:
        raise HypermonError(f"{uri} has no glitch filter and no rate limit; an extended board does")
    if settings.pin and Extra.TRIGGER_IN not in geometry.extras:
        raise HypermonError(f"--trigger-in: {uri} has no pin trigger_in: its gateware lacks that extra "
                            "(docs/several-boards.md)")
    if settings.rate_limit is not None and Option.RATE_LIMIT in geometry.absent:
        raise HypermonError(f"--rate-limit: {uri} is an extended board without the rate limit")
    if settings.events_out and Option.EVENT_MASK in geometry.absent:
        raise HypermonError(f"--mask events: {uri} is an extended board without the event mask")
    front_registers(settings, geometry, uri)
    _refuse_fronts(settings, modes, geometry, uri)
    if settings.nibbles_kept is not None and settings.sink is Sink.CLASSIC:
        raise HypermonError("the classic configuration keeps all nibbles; a mask of them needs --config extended")
    if settings.events_out and not modes.events:
        raise HypermonError("--mask events: no node is in event mode; add --mode event")
    if settings.nibbles_kept is not None and board.data_bits != PORT_BITS:
        raise HypermonError(f"{uri} has ports of {board.data_bits} bits; a mask of values needs ports of {PORT_BITS}")


def _refuse_fronts(settings: Settings, modes: ItemModes, geometry: Geometry, uri: str) -> None:
    """Raises HypermonError if front ends cannot receive like this."""
    single = modes.words & modes.events
    for node in range(geometry.nodes):
        front = geometry.fronts[node] if node < len(geometry.fronts) else Front.PORT
        if front is Front.PORT and single >> node & 1:
            raise HypermonError(f"--mode {node}=byte: node {node} of {uri} has a port, whose items are nibbles, words "
                                "or events")
        if front not in (Front.TWO_WIRE, Front.SELECTED) and settings.lowest >> node & 1:
            raise HypermonError(f"--bit-order {node}=lsb: node {node} of {uri} has no two or three wires")
    if settings.window is not Window.CLOCK and modes.longer & geometry.fronted:
        raise HypermonError(f"{uri} has nodes with front ends, and stamps their first edges with windows of one clock "
                            "only: --window 1")


def _refuse_match(option: str, match: Match, settings: Settings, board: Identity, uri: str) -> None:
    refuse_strange_node(option, match, board.nodes)
    if match.on and settings.sink is Sink.CLASSIC:
        raise HypermonError(f"{option}: the classic configuration has no triggers: add --config extended")
    if match.on and match.event and not settings.modes.on(board.nodes).events:
        raise HypermonError(f"{option}: no node is in event mode; add --mode event")
    if match.on and not match.event and match.byte != (board.data_bits != PORT_BITS):
        raise HypermonError(f"{option}: {uri} has ports of {board.data_bits} bits: "
                            f"{'nibble' if match.byte else 'byte'}=V is the form for it")


def _nodes_kept(settings: Settings, board: Identity) -> int:
    every = (1 << board.nodes) - 1
    return every if settings.nodes_kept is None else settings.nodes_kept & every


def port_registers(settings: Settings, board: Identity, played: Played | None) -> dict[str, int]:
    """How the ports are read, and which take part.

    Parameters
    ----------
    played : what is played at the ports, which states how they are to be read; None: rising edges, samples before them.
    """
    every = (1 << board.nodes) - 1
    said = (every, 0, 0) if played is None else (played.rising, played.falling, played.after)
    rising, falling, after = (default if own is None else own for own, default in
                              zip((settings.rising, settings.falling, settings.after), said, strict=True))
    return {"EDGE_RISING": rising & every, "EDGE_FALLING": falling & every, "SAMPLE_AFTER": after & every,
            "NODE_MASK": _nodes_kept(settings, board)}


def timing_registers(settings: Settings, geometry: Geometry, slow_link: bool) -> dict[str, int]:
    """When frames and censuses are sent."""
    window_clocks = geometry.window_clocks(settings.window)
    flush = min(round(settings.flush_ms * geometry.clock_hz / 1000 / window_clocks), _FLUSH_MAX)
    return {"FLUSH": flush, "CENSUS": int(settings.slow_census or slow_link)}


def item_registers(settings: Settings, board: Identity) -> dict[str, int]:
    """What the items of the nodes are, for boards that have more than nibbles."""
    modes = settings.modes.on(board.nodes)
    return {"WORD_NODES": modes.words, "EVENT_NODES": modes.events,
            "ITEM_TIMEOUT": settings.timeout_clocks(board.clock_hz)}


def front_registers(settings: Settings, geometry: Geometry, uri: str) -> dict[str, int]:
    """Rates of the front ends that were given. Raises HypermonError for one that the board does not have or cannot
    receive."""
    registers = {"FRONT_LOWEST": settings.lowest} if geometry.fronts else {}
    for line, rate, fronts, name in (
            ("spi", settings.spi_hz, {Front.TWO_WIRE, Front.SELECTED}, "FRONT_SPAN"),
            ("uart", settings.uart_baud, {Front.UART}, "UART_PERIOD"),
            ("swo", settings.swo_baud, {Front.SWO}, "SWO_PERIOD")):
        if rate is None:
            continue
        if not fronts & set(geometry.fronts):
            kinds = " or ".join(sorted(front.name.lower() for front in fronts))
            raise HypermonError(f"--front-rate {line}={rate}: {uri} has no node with {kinds}; hypermon info shows its "
                                "front ends")
        try:
            registers[name] = front_period(geometry.clock_hz, int(rate)) if name != "FRONT_SPAN" else (
                front_span(geometry.clock_hz, rate))
        except ValueError as error:
            raise HypermonError(f"--front-rate {line}={rate}: {error}") from None
    return registers


def guard_registers(settings: Settings) -> dict[str, int]:
    """The glitch filter and the rate limit, for boards that have them."""
    if settings.rate_limit is None:
        return {"GLITCH": settings.glitch, "RATE_LIMIT": 0}
    count, windows = settings.rate_limit
    return {"GLITCH": settings.glitch, "RATE_LIMIT": count | (windows.bit_length() - 1) << 8}


def trigger_registers(settings: Settings) -> dict[str, int]:
    """What is kept of the items, for boards that have the extended sink."""
    kept = _NIBBLES if settings.nibbles_kept is None else settings.nibbles_kept & _NIBBLES
    return {"TRIGGER_START": settings.start.register, "TRIGGER_STOP": settings.stop.register,
            "PRETRIGGER": settings.pretrigger, "NIBBLE_MASK": kept}


def pin_registers(settings: Settings) -> dict[str, int]:
    """What ``trigger_in`` does, for boards that have it."""
    return {"TRIGGER_PIN": ("", "start", "stop", "both").index(settings.pin)}


def event_mask_rows(settings: Settings) -> list[int]:
    """The writes to EVENT_MASK, one per row of ids."""
    rows = []
    for row in range(EVENT_IDS // EVENT_MASK_ROW):
        ids = range(EVENT_MASK_ROW * row, EVENT_MASK_ROW * (row + 1))
        out = sum(1 << bit for bit, identity in enumerate(ids) if identity in settings.events_out)
        rows.append(row << EVENT_MASK_ROW | out)
    return rows


def in_force(settings: Settings, board: Identity, registers: Mapping[str, int]) -> dict[str, Any]:
    """The settings as plain values, for ``recording.json``.

    Parameters
    ----------
    registers : as they were set.
    """
    edges = {(1, 0): "rising", (0, 1): "falling", (1, 1): "both", (0, 0): "none"}
    nodes, modes = range(board.nodes), settings.modes.on(board.nodes)
    rising, falling, after = (registers[name] for name in ("EDGE_RISING", "EDGE_FALLING", "SAMPLE_AFTER"))
    return {
        "edge": [edges[rising >> n & 1, falling >> n & 1] for n in nodes],
        "sample": ["after" if after >> n & 1 else "before" for n in nodes],
        "flush_windows": registers["FLUSH"], "census_ms": 100 if registers["CENSUS"] else 10,
        "start": settings.start.register, "stop": settings.stop.register, "pretrigger": settings.pretrigger,
        "nodes_kept": [n for n in nodes if registers["NODE_MASK"] >> n & 1],
        "nibbles_kept": [v for v in range(16) if registers.get("NIBBLE_MASK", _NIBBLES) >> v & 1],
        "events_out": sorted(settings.events_out), "follow": settings.follow,
        "glitch_clocks": settings.glitch,
        "rate_limit": list(settings.rate_limit) if settings.rate_limit is not None else None,
        "mode": [modes.said(n).name.lower() for n in nodes],
        "item_timeout_clocks": settings.timeout_clocks(board.clock_hz),
        **({"trigger_in": settings.pin} if settings.pin else {}),
        **({"own_clock": True} if keeps_clock(settings, board) else {}),
    }


def keeps_clock(settings: Settings, board: Identity) -> bool:
    """A board that follows another one keeps its own clock, and marks its drift."""
    return settings.follow and not settings.stepped and Extra.DRIFT.name.lower() in board.extras
