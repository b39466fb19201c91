"""The contents of ``recording.json``: the board, its configuration, and how the recording ended.

The files of a RUN are listed at :mod:`.directory`.
"""

import datetime
import re
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import FRAME_WINDOW, NODES_MAX, PORT_BITS, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.errors import InputError
from hypermon.host.recording.parts import PART
from hypermon.host.text.json_file import (
    anything,
    flag,
    integer,
    listed,
    mapping,
    maybe,
    number,
    one_of,
    read_json,
    table,
    text,
)
from hypermon.host.text.printable import printable, visible

__all__ = ["AT_RISK_S", "RunInfo", "utc_now"]

#: Of ``recording.json``.
RECORDING_FORMAT = 1
#: Seconds that may be missing from a killed recording of events or figures: its tables are written every ten seconds,
#: its clock is read once a second.
AT_RISK_S = 11
#: Characters of the board's URI.
_BOARD = 1 << 16
#: Of ``configuration``: see :attr:`RunInfo.late_clocks`.
_LATE = "front_late_clocks"


def utc_now() -> str:
    """UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _software() -> str:
    try:
        return f"hypermon {version('hypermon')}"
    except PackageNotFoundError:  # a source tree that was never installed
        return "hypermon"


@dataclass
class RunInfo:
    """The contents of ``recording.json``.

    Parameters
    ----------
    board : its URI. ``identity``: the contents of its identity registers.
    nodes, clock_hz, window, latency, epoch : what a decoder must know; window as on the command line.
    configuration : every setting, for people.
    sink : ``classic`` or ``extended``.
    drain : ``stream`` or ``registers``.
    modes : of the nodes, ``nibble``, ``word`` or ``event`` each; empty if all are in nibble mode.
    item_timeout_clocks : how long an item of several nibbles waits for its next nibble.
    port_bits : data bits of a port: a write is a nibble, or a byte.
    half_clock, quarter_clock : the stamps of events count half clocks, or quarters; at most one of the two.
    keep : what the recording keeps: ``raw`` blocks, ``events``, or only ``stats``.
    ring_seconds : only the last ones are kept; None: all.
    boards : directories in the RUN, each the recording of one board, if there are several. The other members are then
        those of the first board, except ``board``, ``nodes`` and ``modes``.
    wires : of boards that follow others by wire, an entry for each board: None, or ``follows``, the number of the board
        whose ``sync_out`` it is wired to; and if the wire was measured by echo (:mod:`.record.echo`), ``delay_ps`` and
        ``uncertainty_ps``. Empty: all follow the first, or none does.
    started : UTC, ISO 8601.
    end : None while recording. Afterwards: ``how`` it ended in words, ``proper`` (as requested), ``all_written`` (all
        received data is in the files), ``ended`` (UTC), ``duration_ps`` (enable to stop; None: not known), ``outages``,
        ``stream`` (bytes and :func:`.stream_sum` of each of its files), ``groups`` (a :data:`.parts.Part`), ``clock``
        (:func:`.parts.checksum` of ``clock.json``).
    """

    board: str
    nodes: int
    clock_hz: int
    window: str
    latency: int
    epoch: int
    sink: str = "classic"
    drain: str = "stream"
    identity: dict[str, Any] = field(default_factory=dict)
    configuration: dict[str, Any] = field(default_factory=dict)
    modes: list[str] = field(default_factory=list)
    item_timeout_clocks: int = 0
    port_bits: int = PORT_BITS
    half_clock: bool = False
    quarter_clock: bool = False
    keep: str = "raw"
    ring_seconds: float | None = None
    boards: list[str] = field(default_factory=list)
    wires: list[dict[str, Any] | None] = field(default_factory=list)
    software: str = field(default_factory=_software)
    started: str = field(default_factory=utc_now)
    end: dict[str, Any] | None = None
    format: int = RECORDING_FORMAT

    def as_dict(self) -> dict[str, Any]:
        """For ``recording.json``: names of files and messages of others may have characters that no RUN may contain."""
        values = asdict(self)
        values["board"] = visible(self.board)[:_BOARD]
        if self.end is not None and "how" in self.end:
            values["end"]["how"] = printable(str(self.end["how"]))
        return values

    @property
    def phases(self) -> int:
        """Stamps of events per window: 1; or, with windows of one clock, 2 for half clocks or 4 for quarters."""
        return 4 if self.quarter_clock else 2 if self.half_clock else 1

    @property
    def scale(self) -> TimeScale:
        return TimeScale(self.clock_hz, FRAME_WINDOW[self.window], self.latency, self.phases)

    @property
    def item_modes(self) -> ItemModes:
        return ItemModes.of([ItemMode[mode.upper()] for mode in self.modes])

    @property
    def late_clocks(self) -> list[int]:
        """Of each node, the clocks from an item's first edge to its stamp, where a front end makes that a constant;
        empty if there is none. Tables have the times of the edges."""
        late: list[int] = self.configuration.get(_LATE, [])
        return late

    @property
    def itm_nodes(self) -> int:
        """The nodes whose events are packets of an ITM, one bit each."""
        fronts = self.identity.get("fronts")
        found = [node for node, front in enumerate(fronts) if front == "swo"] if isinstance(fronts, list) else []
        return sum(1 << node for node in found if self.item_modes.said(node) is ItemMode.EVENT)

    @classmethod
    def load(cls, path: Path) -> "RunInfo":
        """Loads ``recording.json``. Raises InputError if this version cannot read the file."""
        def shape(where: str, values: Any) -> None:
            found = values.get("format")
            if not isinstance(found, int) or isinstance(found, bool) or found < 1:
                raise InputError(path, None, f"its format is {found!r:.60}, no version of a recording's")
            if found != RECORDING_FORMAT:
                raise InputError(path, None, f"recording format {found!r:.60}, not {RECORDING_FORMAT}; a newer "
                                             "hypermon reads it: pip install --upgrade hypermon")
            _SHAPE(where, values)
            cls(**values)._check()

        if path.parent.is_file():
            raise InputError(path.parent, None, "it is a file; a recorded run is a directory")
        try:
            return cls(**read_json(path, shape))
        except FileNotFoundError:
            if not path.parent.exists():
                raise InputError(path.parent, None, "there is no such directory") from None
            raise InputError(path.parent, None, "no recording.json here: it is not a recorded run") from None

    def _check(self) -> None:
        """Checks members against each other. Raises ValueError."""
        most = NODES_MAX * max(len(self.boards), 1)
        if self.nodes > most:
            raise ValueError(f"nodes is {self.nodes}, not an integer from 1 to {most}")
        for name, fine in (("half_clock", self.half_clock), ("quarter_clock", self.quarter_clock)):
            if fine and FRAME_WINDOW[self.window] is not Window.CLOCK:
                raise ValueError(f"{name} is {fine!r} with a window of {self.window}")
        if self.half_clock and self.quarter_clock:
            raise ValueError("half_clock and quarter_clock are both true")
        if self.wires and len(self.wires) != len(self.boards):
            raise ValueError(f"{len(self.boards)} boards have {len(self.wires)} wires")
        for own, wire in enumerate(self.wires):
            if wire is not None and wire["follows"] >= own:
                raise ValueError(f"board {own} follows board {wire['follows']}, which does not come before it")
        if self.modes and len(self.modes) != self.nodes:
            raise ValueError(f"{self.nodes} nodes have {len(self.modes)} modes")
        if self.late_clocks and not self.boards and (
                len(self.late_clocks) != self.nodes or FRAME_WINDOW[self.window] is not Window.CLOCK):
            raise ValueError(f"{_LATE} has {len(self.late_clocks)} values for {self.nodes} nodes and a window of "
                             f"{self.window}")
        if self.scale.window_clocks < 1:
            raise ValueError(f"clock_hz is {self.clock_hz}: a window of {self.window} ns is less than a clock")


def _instant(where: str, value: Any) -> None:
    try:
        datetime.datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        raise ValueError(f"{where} is {value!r:.60}, not a time in ISO 8601") from None


def _port_bits(where: str, value: Any) -> None:
    if type(value) is not int or value not in (PORT_BITS, 8):
        raise ValueError(f"{where} is {value!r:.60}, not {PORT_BITS} or 8")


def _board_name(where: str, value: Any) -> None:
    if type(value) is not str or not re.fullmatch(r"board-\d{1,4}", value, re.ASCII):
        raise ValueError(f"{where} is {value!r:.60}, not board-N")


def _configuration(where: str, value: Any) -> None:
    mapping(anything())(where, value)
    if _LATE in value:
        listed(integer(0, 1 << 32))(f"{where}.{_LATE}", value[_LATE])


#: The shape of ``recording.json``.
_SHAPE = table({
    "board": text(_BOARD), "nodes": integer(1, 1 << 16), "clock_hz": integer(1, 10**9),
    "window": one_of(*FRAME_WINDOW), "latency": integer(0, 255), "epoch": integer(0, 0xffff)}, {
    "sink": text(), "drain": one_of("stream", "registers"), "identity": mapping(anything()),
    "configuration": _configuration, "modes": listed(one_of(*(mode.name.lower() for mode in ItemMode))),
    "item_timeout_clocks": integer(0, 2**32 - 1),
    "port_bits": _port_bits, "half_clock": flag(), "quarter_clock": flag(),
    "keep": one_of("raw", "events", "stats"),
    "ring_seconds": maybe(number(0, 1e12)), "boards": listed(_board_name, most=1 << 12),
    "wires": listed(maybe(table({"follows": integer(0, 1 << 12)}, {
        "delay_ps": integer(-10**9, 10**9), "uncertainty_ps": integer(0, 10**9)}, more=True)), most=1 << 12),
    "software": text(),
    "started": _instant,
    "end": maybe(table({}, {"how": text(), "ended": text(), "duration_ps": maybe(integer(-1 << 62, 1 << 62)),
                            "proper": flag(), "all_written": flag(),
                            "stream": mapping(listed(integer(0, 1 << 62), 2, 2)), "groups": PART,
                            "clock": integer(0, 0xffffffff)}, more=True)),
    "format": integer(0, 1 << 31)})
