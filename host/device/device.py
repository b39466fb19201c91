"""A board on a link: its identity, setup, start and stop."""

from dataclasses import asdict, dataclass
from typing import Any

from hypermon.hdl.layout import (
    EVENT_IDS,
    EVENT_MASK_ROW,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    PORT_BITS,
    POS_EPOCH_SHIFT,
    REGISTER_VERSION,
    REGISTERS,
    Control,
    Geometry,
    Sink,
    Window,
)
from hypermon.host.device.trigger import NOTHING, Match, refuse_pretrigger, refuse_strange_node
from hypermon.host.errors import HypermonError, LinkError
from hypermon.host.link import Link
from hypermon.host.wire.item_modes import ALL_NIBBLES, TIMEOUT_MS, ItemModes
from hypermon.host.wire.times import TimeScale

__all__ = ["Device", "Identity", "Settings"]

_FLUSH_MAX = _TIMEOUT_MAX = 2**32 - 1
_NIBBLES = 0xffff
#: Of register GEOMETRY.
_HALF_CLOCK = 1 << 23


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

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sinks": list(self.sinks), "build": f"{self.build:08x}"}


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
    start: Match = NOTHING
    stop: Match = NOTHING
    pretrigger: int = 0

    def timeout_clocks(self, clock_hz: int) -> int:
        """The time-out in clocks, at least one."""
        return max(min(round(self.item_timeout_ms * clock_hz / 1000), _TIMEOUT_MAX), 1)


def _geometry(identity: Identity) -> Geometry:
    """The geometry that a board states. Raises ValueError if there is no such board."""
    sinks = tuple(Sink[name.upper()] for name in identity.sinks)
    if Sink.CLASSIC in sinks and not identity.frame_depth:
        raise ValueError("the classic configuration needs a frame FIFO, and frame_depth is 0")
    # A board without frames has no frame FIFO.
    return Geometry(identity.nodes, identity.clock_hz, identity.node_depth, identity.vector_depth,
                    identity.frame_depth or Geometry.frame_depth, sinks, half_clock=identity.half_clock,
                    port_bits=identity.data_bits, store_depth=identity.store_depth,
                    external_depth=identity.external_depth)


class Device:
    """An open board.

    Parameters
    ----------
    link : to it.

    Members
    -------
    identity : its description.
    epoch : resets since power-up; blocks of a run carry the one of its start.

    Raises
    ------
    HypermonError
        if the other side is not a board, or is one that this version does not know.
    """

    def __init__(self, link: Link):
        self.link = link
        self.epoch = 0
        try:
            self.identity = self._identify()
        except BaseException:
            link.close()    # nobody else has it
            raise
        self._control = Control(0)
        self._window = Window.NS800
        self._latency = self.identity.latency
        self._half = False

    def read(self, name: str) -> int:
        """Reads a register by name."""
        return self.link.read(REGISTERS[name].offset)

    def write(self, name: str, value: int) -> None:
        """Sets a register by name."""
        self.link.write(REGISTERS[name].offset, value)

    def _identify(self) -> Identity:
        uri = self.link.uri
        magic = self.read("MAGIC")
        if magic != IDENTITY_MAGIC:
            raise HypermonError(f"{uri} answers, but is not a HYPERMON board (its MAGIC is {magic:#010x}, not "
                                f"{IDENTITY_MAGIC:#010x}); load the gateware: hypermon flash BOARD")
        version = self.read("VERSION")
        format_version, register_version = version & 0xff, version >> 8 & 0xff
        for what, found, known in (("format", format_version, FORMAT_VERSION),
                                   ("register map", register_version, REGISTER_VERSION)):
            if found > known:
                raise HypermonError(f"{uri} has gateware newer than this program ({what} {found}, not {known}): "
                                    "pip install --upgrade hypermon")
            if found < known:
                raise HypermonError(f"{uri} has gateware older than this program ({what} {found}, not {known}): "
                                    "hypermon flash BOARD")
        identity = self._described(format_version, register_version)
        try:
            self.geometry = _geometry(identity)
        except ValueError as error:
            raise HypermonError(f"{uri} reports impossible values ({error}); "
                                "switch it off and on, then: hypermon flash BOARD") from None
        return identity

    def _described(self, format_version: int, register_version: int) -> Identity:
        """The identity registers as they are read; nothing is checked."""
        geometry = self.read("GEOMETRY")
        store = self.read("STORE_DEPTH")
        external_log = store >> 16
        return Identity(
            nodes=geometry & 0xff, data_bits=geometry >> 8 & 0xff,
            sinks=tuple(s.name.lower() for s in Sink if geometry >> 16 & 1 << s), latency=geometry >> 24,
            clock_hz=self.read("CLOCK_HZ"), node_depth=self.read("NODE_DEPTH"),
            vector_depth=self.read("VECTOR_DEPTH"), frame_depth=self.read("FRAME_DEPTH"),
            build=self.read("BUILD"), format_version=format_version, register_version=register_version,
            half_clock=bool(geometry & _HALF_CLOCK), store_depth=store & 0xffff,
            # An exponent beyond any memory becomes a depth that is rejected, and not a number of 20,000 digits.
            external_depth=1 << min(external_log, 32) if external_log else 0)

    @property
    def scale(self) -> TimeScale:
        """The time base of the run that was prepared last."""
        return TimeScale(self.identity.clock_hz, self._window, self._latency, self._half)

    def prepare(self, settings: Settings) -> dict[str, Any]:
        """Resets the board and sets it up. The board does not capture yet, and no data of earlier runs arrives any
        more.

        Returns
        -------
        the settings in force, as plain values.

        Raises
        ------
        HypermonError
            if the board rejects a setting, or does not have the sink.
        """
        sink = settings.sink.name.lower()
        if settings.sink not in self.geometry.sinks:
            raise HypermonError(f"--config {sink}: {self.link.uri} has the {' and the '.join(self.identity.sinks)} "
                                "configuration only; load other gateware: hypermon flash BOARD")
        modes = settings.modes.on(self.identity.nodes)
        if modes.longer and settings.sink is Sink.CLASSIC:
            raise HypermonError("in the classic configuration every item is a nibble; words and events need "
                                "--config extended")
        refuse_pretrigger(settings.pretrigger, settings.start)
        for option, match in (("--start", settings.start), ("--stop", settings.stop)):
            refuse_strange_node(option, match, self.identity.nodes)
            if match.on and settings.sink is Sink.CLASSIC:
                raise HypermonError(f"{option}: the classic configuration has no triggers: add --config extended")
            if match.on and match.event and not modes.events:
                raise HypermonError(f"{option}: no node is in event mode; add --mode event")
            if match.on and not match.event and match.byte != (self.identity.data_bits != PORT_BITS):
                raise HypermonError(f"{option}: {self.link.uri} has ports of {self.identity.data_bits} bits: "
                                    f"{'nibble' if match.byte else 'byte'}=V is the form for it")
        items = {"WORD_NODES": modes.words, "EVENT_NODES": modes.events,
                 "ITEM_TIMEOUT": settings.timeout_clocks(self.identity.clock_hz)}
        every = (1 << self.identity.nodes) - 1
        nodes_kept = every if settings.nodes_kept is None else settings.nodes_kept & every
        if not nodes_kept:
            raise HypermonError(f"--mask nodes={settings.nodes_kept:#x}: the board has nodes 0 to "
                                f"{self.identity.nodes - 1}, and none of them would be kept")
        guards = {"GLITCH": settings.glitch, "RATE_LIMIT": 0}
        if settings.rate_limit is not None:
            count, windows = settings.rate_limit
            guards["RATE_LIMIT"] = count | (windows.bit_length() - 1) << 8
        if any(guards.values()) and not self.geometry.guarded:
            raise HypermonError(f"{self.link.uri} has no glitch filter and no rate limit; an extended board does")
        if settings.nibbles_kept is not None and settings.sink is Sink.CLASSIC:
            raise HypermonError("the classic configuration keeps all nibbles; a mask of them needs --config extended")
        if settings.events_out and not modes.events:
            raise HypermonError("--mask events: no node is in event mode; add --mode event")
        if settings.nibbles_kept is not None and self.identity.data_bits != PORT_BITS:
            raise HypermonError(f"{self.link.uri} has ports of {self.identity.data_bits} bits; a mask of values needs "
                                f"ports of {PORT_BITS}")
        stimulus = getattr(self.link, "stimulus", None)
        rising = getattr(stimulus, "rising", every) if settings.rising is None else settings.rising
        falling = getattr(stimulus, "falling", 0) if settings.falling is None else settings.falling
        after = getattr(stimulus, "after", 0) if settings.after is None else settings.after
        self._window = settings.window
        self._half = self.identity.half_clock and settings.window is Window.CLOCK and settings.sink is Sink.EXTENDED
        self._control = Control(settings.window * Control.WINDOW_0)
        if len(self.geometry.sinks) > 1:  # taken at the reset
            self.write("MODE", settings.sink)
        if self.geometry.guarded:
            for name, value in guards.items():
                self.write(name, value)
        if self.geometry.synced:
            self.write("SYNC", int(settings.follow))
        if settings.follow and not self.read("SYNC") & 1:
            raise HypermonError(f"{self.link.uri} has no sync_in; an extended board does")
        if settings.sink is not Sink.CLASSIC:
            for name, value in items.items():
                self.write(name, value)
        if modes.events:
            for row in range(EVENT_IDS // EVENT_MASK_ROW):
                ids = range(EVENT_MASK_ROW * row, EVENT_MASK_ROW * (row + 1))
                out = sum(1 << bit for bit, identity in enumerate(ids) if identity in settings.events_out)
                self.write("EVENT_MASK", row << EVENT_MASK_ROW | out)
        self.link.write(REGISTERS["CONTROL"].offset, self._control | Control.RESET)
        self.epoch = self.read("FRAME_POS") >> POS_EPOCH_SHIFT
        self._latency = self.read("GEOMETRY") >> 24  # settings that are taken at the reset may change it
        window_clocks = self.geometry.window_clocks(settings.window)
        flush = min(round(settings.flush_ms * self.identity.clock_hz / 1000 / window_clocks), _FLUSH_MAX)
        slow = settings.slow_census or self.link.slow
        wanted = {"EDGE_RISING": rising & every, "EDGE_FALLING": falling & every,
                  "SAMPLE_AFTER": after & every, "FLUSH": flush, "CENSUS": int(slow),
                  "NODE_MASK": nodes_kept}
        if settings.sink is not Sink.CLASSIC:
            wanted |= items
        if Sink.EXTENDED in self.geometry.sinks:
            wanted |= {"TRIGGER_START": settings.start.register, "TRIGGER_STOP": settings.stop.register,
                       "PRETRIGGER": settings.pretrigger}
            wanted["NIBBLE_MASK"] = _NIBBLES if settings.nibbles_kept is None else settings.nibbles_kept & _NIBBLES
        for name, value in wanted.items():
            if name not in items:
                self.write(name, value)
            if (found := self.read(name)) != value:
                raise self._stubborn(f"register {name} was set to {value:#x} and reads {found:#x}")
        if (found := self.read("MODE")) != settings.sink:
            raise self._stubborn(f"the configuration should be {sink} and MODE reads {found}")
        if (found := self.read("WINDOW")) != window_clocks:
            raise self._stubborn(f"the window should be {window_clocks} clocks and is {found}")
        self.link.discard()
        edges = {(1, 0): "rising", (0, 1): "falling", (1, 1): "both", (0, 0): "none"}
        nodes = range(self.identity.nodes)
        return {
            "sink": sink, "window": settings.window.name, "window_clocks": window_clocks, "half_clock": self._half,
            "edge": [edges[rising >> n & 1, falling >> n & 1] for n in nodes],
            "sample": ["after" if after >> n & 1 else "before" for n in nodes],
            "flush_windows": flush, "census_ms": 100 if slow else 10,
            "start": settings.start.register, "stop": settings.stop.register, "pretrigger": settings.pretrigger,
            "nodes_kept": [n for n in nodes if nodes_kept >> n & 1],
            "nibbles_kept": [v for v in range(16) if (wanted.get("NIBBLE_MASK", _NIBBLES)) >> v & 1],
            "events_out": sorted(settings.events_out), "follow": settings.follow,
            "glitch_clocks": settings.glitch,
            "rate_limit": list(settings.rate_limit) if settings.rate_limit is not None else None,
            "mode": [modes[n].name.lower() for n in nodes], "item_timeout_clocks": items["ITEM_TIMEOUT"],
        }

    def _stubborn(self, what: str) -> HypermonError:
        return HypermonError(f"{self.link.uri} does not accept a setting: {what}; switch the board off and on")

    def start(self, stream: bool = True) -> None:
        """Starts the capture: this is time 0.

        Parameters
        ----------
        stream : the link's stream carries the frames; else they wait until FRAME_FIFO is read.
        """
        self._control |= Control.ENABLE
        if stream:
            self._control |= Control.STREAM
        self.link.write(REGISTERS["CONTROL"].offset, self._control)

    def stop(self) -> int:
        """Stops the capture. Queued data still arrives, and at the end a CENSUS marked STOP.

        Returns
        -------
        picoseconds from start to stop. The time is read after the stop: the stamp of everything that a board sent
        before it is earlier, however long the line is.

        Raises
        ------
        LinkError
            as registers do, or if the board states an impossible time. Even then, it has been told to stop.
        """
        board_ps = getattr(self.link, "board_ps", None)
        self._control &= ~Control.ENABLE
        self.link.write(REGISTERS["CONTROL"].offset, self._control)
        if board_ps is None:
            board_ps = self.scale.clocks_ps(self.windows() * self.scale.window_clocks)
        return int(board_ps)

    def latched_windows(self) -> int:
        """Windows since time 0 at the last LATCH. Raises LinkError if that is not a valid time: 106 days, or more."""
        windows = self.read("TIME_HIGH") << 32 | self.read("TIME_LOW")
        if windows > self.scale.window_max:
            raise LinkError(f"{self.link.uri} reports an impossible time: {windows:,} windows since its start")
        return windows

    def windows(self) -> int:
        """Windows since time 0, now. Latches the counters. Raises as :meth:`latched_windows` does."""
        self.write("LATCH", 1)
        return self.latched_windows()

    def same_run(self) -> bool:
        """The board has not been reset or switched off since :meth:`prepare`."""
        return self.read("BUILD") == self.identity.build and self.read("FRAME_POS") >> POS_EPOCH_SHIFT == self.epoch

    def close(self) -> None:
        self.link.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
