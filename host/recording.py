"""A recorded run: a directory that opens whatever has happened to it.

    RUN/recording.json   what was recorded and how: complete from the start, and once more at the end
    RUN/stream.bin       the blocks as they came, append-only; a long one goes on in stream-00001.bin, ...
    RUN/clock.json       what UTC it was; see :mod:`.wallclock`
    RUN/groups.parquet   with register drain: the groups of frames that were read
    RUN/board-0, board-1, ...   of several boards: a RUN of each, instead of the stream; see :mod:`.merging`
    RUN/events/*.parquet, loss.parquet, decode.json    what decoding adds
"""

import datetime
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.hdl.layout import FRAME_WINDOW, NODES_MAX, PORT_BITS, Window
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.modes import ItemMode, ItemModes
from hypermon.host.segments import SEGMENT_BYTES, SegmentWriter, segments, write_json
from hypermon.host.selection import Selection, selected_batches
from hypermon.host.store import GROUP_SCHEMA, TableWriter
from hypermon.host.times import TimeScale

if TYPE_CHECKING:
    import duckdb
    from hypermon.host.wallclock import WallClock

__all__ = ["Run", "RunInfo", "RunWriter", "open_run", "refuse_existing"]

#: Of ``recording.json``.
RECORDING_FORMAT = 1
_RESERVE, _RESERVED = ".reserve", 1 << 16


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _software() -> str:
    try:
        return f"hypermon {version('hypermon')}"
    except PackageNotFoundError:  # a source tree that was never installed
        return "hypermon"


@dataclass
class RunInfo:
    """``recording.json``.

    Parameters
    ----------
    board : its URI. ``identity``: what its registers say about it.
    nodes, clock_hz, window, latency, epoch : what a decoder must know; window as on the command line.
    configuration : every setting, for people.
    sink : ``classic`` or ``extended``.
    drain : ``stream`` or ``registers``.
    modes : of the nodes, ``nibble``, ``word`` or ``event`` each; empty if all are in nibble mode.
    item_timeout_clocks : what an item of several nibbles waits for its next one.
    port_bits : data bits of a port: a write is a nibble, or a byte.
    half_clock : the stamps of events count half clocks.
    keep : what there is of it: ``raw`` blocks, ``events``, or only ``stats``.
    ring_seconds : only the last ones are kept; None: all.
    boards : directories in the RUN that are recordings of a board each, if it is of several; then the other members
        are those of the first board, but ``board``, ``nodes`` and ``modes``.
    started : UTC, ISO 8601.
    end : None while recording, then how it ended: ``how``, ``ended`` (UTC), ``duration_ps``
        (enable to stop).
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
    keep: str = "raw"
    ring_seconds: float | None = None
    boards: list[str] = field(default_factory=list)
    software: str = field(default_factory=_software)
    started: str = field(default_factory=_now)
    end: dict[str, Any] | None = None
    format: int = RECORDING_FORMAT

    @property
    def scale(self) -> TimeScale:
        return TimeScale(self.clock_hz, FRAME_WINDOW[self.window], self.latency, self.half_clock)

    @property
    def item_modes(self) -> ItemModes:
        return ItemModes.of([ItemMode[mode.upper()] for mode in self.modes])

    @classmethod
    def load(cls, path: Path) -> "RunInfo":
        """Raises InputError if the file is not a ``recording.json`` that this version can read."""
        try:
            values = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise InputError(path.parent, None, "no recording.json here: it is not a recorded run") from None
        except (OSError, ValueError) as error:
            raise InputError(path, None, f"not readable: {error}") from None
        if not isinstance(values, dict) or values.get("format") != RECORDING_FORMAT:
            found = values.get("format") if isinstance(values, dict) else None
            raise InputError(path, None, f"recording format {found!r}, not {RECORDING_FORMAT}; a newer hypermon "
                                         "reads it: pip install --upgrade hypermon")
        try:
            info = cls(**values)
            if not all(isinstance(name, str) and re.fullmatch(r"board-\d+", name) for name in info.boards):
                raise ValueError(f"boards are {info.boards!r}")
            ranges = (("nodes", 1, NODES_MAX * max(len(info.boards), 1)), ("clock_hz", 1, 10**9), ("latency", 0, 255),
                      ("epoch", 0, 0xffff), ("item_timeout_clocks", 0, 2**32 - 1))
            for name, low, high in ranges:
                value = getattr(info, name)
                if type(value) is not int or not low <= value <= high:
                    raise ValueError(f"{name} is {value!r}")
            if info.window not in FRAME_WINDOW:
                raise ValueError(f"window is {info.window!r}")
            if info.port_bits not in (PORT_BITS, 8):
                raise ValueError(f"port_bits is {info.port_bits!r}")
            if type(info.half_clock) is not bool or (info.half_clock and FRAME_WINDOW[info.window] is not Window.CLOCK):
                raise ValueError(f"half_clock is {info.half_clock!r} with a window of {info.window}")
            if info.keep not in ("raw", "events", "stats"):
                raise ValueError(f"keep is {info.keep!r}")
            try:
                datetime.datetime.fromisoformat(info.started)
            except (TypeError, ValueError):
                raise ValueError(f"started is {info.started!r}") from None
            if info.end is not None and not isinstance(info.end, dict):
                raise ValueError(f"end is {info.end!r}")
            if info.modes and len(info.modes) != info.nodes:
                raise ValueError(f"{info.nodes} nodes have {len(info.modes)} modes")
            for mode in info.modes:
                if mode not in {mode.name.lower() for mode in ItemMode}:
                    raise ValueError(f"a mode is {mode!r}")
            return info
        except (TypeError, ValueError) as error:
            raise InputError(path, None, f"it makes no sense: {error}") from None


def refuse_existing(path: Path) -> None:
    """Raises HypermonError unless a new RUN can be made at ``path``."""
    if os.path.lexists(path):
        raise HypermonError(f"{path}: it exists already; name a new directory, a recording is never overwritten")
    if not path.parent.is_dir():
        raise HypermonError(f"{path}: there is no directory {path.parent}")


class RunWriter:
    """Writes a RUN. Use it as a context manager: leaving it by an exception removes an ``aside`` one.

    Parameters
    ----------
    path : of the RUN; must not exist.
    info : goes into ``recording.json`` at once.
    aside : build under a hidden name beside ``path``; :meth:`close` renames it. For runs that are
        worth nothing if they fail. Otherwise the RUN is there from the start.
    segment_bytes : of the stream; see :class:`.segments.SegmentWriter`.
    """

    def __init__(self, path: Path, info: RunInfo, aside: bool = False, segment_bytes: int = SEGMENT_BYTES):
        refuse_existing(path)
        self.path, self.info = path, info
        self._aside = aside
        self.directory = path.with_name(f".{path.name}.{os.getpid()}.new") if aside else path
        self.directory.mkdir()
        self._groups: TableWriter | None = None
        self._closed = False
        write_json(self.directory / "recording.json", asdict(info))
        # Room for the last words of a recording that has filled the disk.
        (self.directory / _RESERVE).write_bytes(bytes(_RESERVED))
        ring = None if info.ring_seconds is None else round(info.ring_seconds * 1e12)
        self._stream = SegmentWriter(self.directory, segment_bytes, ring)
        if info.drain == "registers":
            self._groups = TableWriter(self.directory / ".groups.parquet.new", GROUP_SCHEMA)

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._closed:
            return
        self._stream.close()
        if self._aside:
            shutil.rmtree(self.directory, ignore_errors=True)

    def append(self, data: bytes | memoryview) -> None:
        """Bytes of the stream, as they came; with the operating system when this returns. Raises DiskFullError."""
        self._stream.append(data)

    def due(self, now_ps: int) -> bool:
        """A new segment should begin with the next block."""
        return self._stream.due(now_ps)

    def begin_segment(self, now_ps: int, account: dict[str, Any]) -> None:
        """A new segment; see :meth:`.SegmentWriter.begin`."""
        self._stream.begin(now_ps, account)

    def add_groups(self, groups: list[tuple[int, int, int]]) -> None:
        """Groups that were read: frames, first_ps, last_ps."""
        if self._groups is not None:
            self._groups.add(list(groups))

    def sync(self) -> None:
        """Safe from a power cut, up to here."""
        self._stream.sync()

    def close(self, **end: Any) -> None:
        """The end: ``end`` becomes ``recording.json``'s, and the RUN is whole."""
        (self.directory / _RESERVE).unlink(missing_ok=True)
        self.sync()
        self._stream.close()
        if self._groups is not None:
            self._groups.close()
            os.replace(self.directory / ".groups.parquet.new", self.directory / "groups.parquet")
        self.info.end = {**end, "ended": _now()}
        write_json(self.directory / "recording.json", asdict(self.info))
        if self._aside:
            refuse_existing(self.path)
            os.rename(self.directory, self.path)
            self.directory = self.path
        self._closed = True


class Run:
    """A recorded run, decoded when that is needed.

    Parameters
    ----------
    path : the directory.

    Members
    -------
    info : :class:`RunInfo`.

    Raises
    ------
    InputError
        if it is not a recording.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.info = RunInfo.load(self.path / "recording.json")
        self.stream_path = self.path / "stream.bin"
        if not self.info.boards and not segments(self.path)[0]:
            raise InputError(self.path, None, "no stream.bin here: it is not a recorded run")

    @property
    def stream_size(self) -> int:
        """Bytes of the stream that are there; of several boards, of all their streams."""
        if self.info.boards:
            return sum(part.stream_size for part in self.parts())
        return sum(path.stat().st_size for path in segments(self.path)[0])

    def parts(self) -> list["Run"]:
        """The recordings of the boards, of several; without, none. Raises InputError if one is not there."""
        return [Run(self.path / name) for name in self.info.boards]

    @property
    def begins(self) -> dict[str, Any] | None:
        """The accounts when the stream that is there begins, of a ring; see :meth:`.Ledger.resume`."""
        return segments(self.path)[1]

    def pieces(self, size: int = 1 << 22) -> Iterator[bytes]:
        """The stream, piece by piece."""
        for path in segments(self.path)[0]:
            with open(path, "rb") as file:
                while piece := file.read(size):
                    yield piece

    def refuse_without_events(self) -> None:
        """Raises InputError if the run was recorded without them."""
        if self.info.keep == "stats":
            raise InputError(self.path, None, "it was recorded with --keep stats: there are no events in it")

    def event_files(self) -> list[Path]:
        """The files that have the events, in order; decodes first if need be.

        Raises
        ------
        InputError
            if the run was recorded without them.
        """
        self.refuse_without_events()
        self.decode()
        files = sorted((self.path / "events").glob("*.parquet"))
        for file in files:
            try:
                pq.read_metadata(file)
            except (pa.ArrowInvalid, OSError):
                again = f"delete {self.path / 'decode.json'}, and it is made anew" if self.info.keep == "raw" else \
                    "the recording kept nothing else of its events; take it away, and the rest can be read"
                raise InputError(file, None, f"it is damaged: {again}") from None
        return files

    @property
    def clock(self) -> "WallClock":
        """What UTC it was; as the computer's clock said at the start, if nobody wrote more down."""
        from hypermon.host.wallclock import WallClock, load_clock

        if self.info.boards:
            return self.parts()[0].clock
        began = datetime.datetime.fromisoformat(self.info.started)
        return load_clock(self.path) or WallClock(round(began.timestamp() * 1e9))

    def utc(self, times_ps: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """UTC of times of the board; how sure that is, ``clock`` says."""
        return self.clock.utc(times_ps)

    def decode(self) -> dict[str, Any]:
        """Decodes unless that is done; the summary of :mod:`hypermon.host.decode`."""
        from hypermon.host.decode import decode_run

        return decode_run(self)

    def batches(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
                columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Events in order, in constant memory; which ones, and their columns: see :meth:`events`.

        Batches may be empty.
        """
        yield from selected_batches(self.event_files(), Selection(nodes, from_ps, to_ps, columns))

    def events(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
               columns: Sequence[str] | None = None) -> pa.Table:
        """Events at once: ``time_ps`` int64, ``node`` int16, ``nibble`` uint8; by time, ties by node.

        With words and events, :func:`.store.event_schema` says the columns, and behind them stands what the RUN's
        dictionary adds; see :func:`.fields.decode_fields`. The table goes on to Polars as
        ``polars.from_arrow(table)`` without a copy, and to pandas as ``table.to_pandas()``.

        Parameters
        ----------
        nodes : events of these only.
        from_ps, to_ps : events at ``from_ps`` or later, and before ``to_ps``. Of other times little is read.
        columns : these only, in this order.
        """
        batches = list(self.batches(nodes=nodes, from_ps=from_ps, to_ps=to_ps, columns=columns))
        if not batches:
            schema = pq.read_schema(self.event_files()[0])
            schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
            return schema.remove_metadata().empty_table()
        return pa.Table.from_batches(batches, schema=batches[0].schema.remove_metadata()).unify_dictionaries()

    def sql(self, question: str) -> "duckdb.DuckDBPyRelation":
        """Asks the RUN's tables in SQL: ``events``, ``loss``, ``states``, ``messages``, ``counters``; and ``framed``
        and ``groups`` if they are there. The columns of the middle three: :mod:`.semantics`.

        The answer is computed when it is taken: ``.fetchall()``, ``.to_arrow_table()``, ``.pl()`` (Polars), ``.df()``
        (pandas).

        Raises
        ------
        HypermonError
            if the question is not SQL, or not about these tables.
        """
        from hypermon.host.query import sql

        return sql(self, question)

    def loss(self) -> pa.Table:
        """``node``, ``lost``, ``from_ps``, ``to_ps``: between those times that node lost that many."""
        self.decode()
        return pq.read_table(self.path / "loss.parquet")

    def states(self) -> pa.Table:
        """What the events of the RUN's dictionary begin and end; see :mod:`.semantics`. Without one it is empty."""
        return self.sql("from states").to_arrow_table()

    def messages(self) -> pa.Table:
        """What they send and receive, matched; likewise."""
        return self.sql("from messages").to_arrow_table()

    def counters(self) -> pa.Table:
        """What they count; likewise."""
        return self.sql("from counters").to_arrow_table()

    def stats(self) -> dict[str, Any]:
        """What ``hypermon stats --json`` prints."""
        from hypermon.host.stats import stats

        return stats(self)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a recorded run; raises InputError if it is none."""
    return Run(path)
