"""A recorded run: a directory that can be opened whatever has happened to it.

    RUN/recording.json   what was recorded and how: complete from the start, written again at the end
    RUN/stream.bin       the blocks as they arrived, append-only; continued in stream-00001.bin, ...
    RUN/clock.json       the board's time in UTC; see :mod:`.clock`
    RUN/groups.parquet   with register drain: the groups of frames that were read
    RUN/board-0, board-1, ...   with several boards: a RUN of each, instead of the stream; see :mod:`.board_merge`
    RUN/events/*.parquet, loss.parquet, decode.json    added by decoding
"""

import datetime
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
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
from hypermon.host.recording.parts import PART, checksum, described, fault
from hypermon.host.recording.segments import (
    SEGMENT_BYTES,
    SegmentWriter,
    StorageError,
    opened,
    segments,
    storage,
    sync_directory,
    write_json,
)
from hypermon.host.tables.parquet import GROUP_SCHEMA, LOSS_SCHEMA, TableWriter, event_schema
from hypermon.host.tables.selection import Selection, selected_batches
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
from hypermon.host.wire.item_modes import ItemMode, ItemModes
from hypermon.host.wire.times import TimeScale

if TYPE_CHECKING:
    import duckdb
    from hypermon.host.recording.clock import WallClock

__all__ = ["AT_RISK_S", "Run", "RunInfo", "RunWriter", "open_run", "refuse_existing"]

#: Of ``recording.json``.
RECORDING_FORMAT = 1
#: Seconds that may be missing from a killed recording of events or figures: its tables are written every ten seconds,
#: its clock is read once a second.
AT_RISK_S = 11
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
    half_clock : the stamps of events count half clocks.
    keep : what the recording keeps: ``raw`` blocks, ``events``, or only ``stats``.
    ring_seconds : only the last ones are kept; None: all.
    boards : directories in the RUN, each the recording of one board, if there are several. The other members are then
        those of the first board, except ``board``, ``nodes`` and ``modes``.
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
        """Loads ``recording.json``. Raises InputError if this version cannot read the file."""
        def shape(where: str, values: Any) -> None:
            found = values.get("format")
            if found != RECORDING_FORMAT:
                raise InputError(path, None, f"recording format {found!r:.60}, not {RECORDING_FORMAT}; a newer "
                                             "hypermon reads it: pip install --upgrade hypermon")
            _SHAPE(where, values)
            cls(**values)._check()

        try:
            return cls(**read_json(path, shape))
        except FileNotFoundError:
            raise InputError(path.parent, None, "no recording.json here: it is not a recorded run") from None

    def _check(self) -> None:
        """Checks members against each other. Raises ValueError."""
        most = NODES_MAX * max(len(self.boards), 1)
        if self.nodes > most:
            raise ValueError(f"nodes is {self.nodes}, not an integer from 1 to {most}")
        if self.half_clock and FRAME_WINDOW[self.window] is not Window.CLOCK:
            raise ValueError(f"half_clock is {self.half_clock!r} with a window of {self.window}")
        if self.modes and len(self.modes) != self.nodes:
            raise ValueError(f"{self.nodes} nodes have {len(self.modes)} modes")
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


#: The shape of ``recording.json``.
_SHAPE = table({
    "board": text(1 << 16), "nodes": integer(1, 1 << 16), "clock_hz": integer(1, 10**9),
    "window": one_of(*FRAME_WINDOW), "latency": integer(0, 255), "epoch": integer(0, 0xffff)}, {
    "sink": text(), "drain": one_of("stream", "registers"), "identity": mapping(anything()),
    "configuration": mapping(anything()), "modes": listed(one_of(*(mode.name.lower() for mode in ItemMode))),
    "item_timeout_clocks": integer(0, 2**32 - 1),
    "port_bits": _port_bits, "half_clock": flag(), "keep": one_of("raw", "events", "stats"),
    "ring_seconds": maybe(number(0, 1e12)), "boards": listed(_board_name, most=1 << 12), "software": text(),
    "started": _instant,
    "end": maybe(table({}, {"how": text(), "ended": text(), "duration_ps": maybe(integer(-1 << 62, 1 << 62)),
                            "proper": flag(), "all_written": flag(),
                            "stream": mapping(listed(integer(0, 1 << 62), 2, 2)), "groups": PART,
                            "clock": integer(0, 0xffffffff)}, more=True)),
    "format": integer(0, 1 << 31)})


def _refuse_name(path: Path) -> None:
    """Raises InputError for a name that pyarrow and DuckDB could not open."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="backslashreplace").decode()
        raise InputError(shown, None, "its name is not UTF-8, and tables in it could not be read: choose another "
                                      "name") from None


def refuse_existing(path: Path) -> None:
    """Raises HypermonError unless a new RUN can be created at ``path``."""
    _refuse_name(path)
    if os.path.lexists(path):
        raise HypermonError(f"{path}: it exists already; name a new directory, a recording is never overwritten")
    if not path.parent.is_dir():
        raise HypermonError(f"{path}: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise HypermonError(f"{path}: nothing can be written in {path.parent.absolute()}; name a directory of your own")


class RunWriter:
    """Writes a RUN. Use it as a context manager: an exception inside removes an ``aside`` RUN, and one that has not
    ``begun``.

    Parameters
    ----------
    path : of the RUN; must not exist.
    info : written to ``recording.json`` at once.
    aside : build under a hidden name beside ``path``; :meth:`close` renames it. For runs that are worth nothing if they
        fail. Otherwise the RUN is visible from the start.
    segment_bytes : of the stream; see :class:`.segments.SegmentWriter`.

    Members
    -------
    begun : the RUN may contain something that is worth keeping.
    """

    def __init__(self, path: Path, info: RunInfo, aside: bool = False, segment_bytes: int = SEGMENT_BYTES):
        refuse_existing(path)
        self.path, self.info = path, info
        self._aside, self.begun = aside, False
        self.directory = path.with_name(f".{path.name}.{os.getpid()}.new") if aside else path
        self._groups: TableWriter | None = None
        self._closed = False
        stream: SegmentWriter | None = None
        self._make()
        ring = None if info.ring_seconds is None else round(info.ring_seconds * 1e12)
        try:
            with storage(self.directory):
                write_json(self.directory / "recording.json", asdict(info))
                # Space for the final write of a recording that has filled the disk.
                (self.directory / _RESERVE).write_bytes(bytes(_RESERVED))
                self._stream = stream = SegmentWriter(self.directory, segment_bytes, ring)
                if info.drain == "registers":
                    self._groups = TableWriter(self.directory / ".groups.parquet.new", GROUP_SCHEMA)
                sync_directory(self.directory.parent)
        except BaseException:
            if stream is not None:
                stream.close()
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def _make(self) -> None:
        """Creates the directory for this recorder alone. Raises HypermonError if another recorder was faster."""
        if self._aside:     # of an earlier process with the same number
            shutil.rmtree(self.directory, ignore_errors=True)
        try:
            with storage(self.directory.parent):
                self.directory.mkdir()
        except StorageError:
            refuse_existing(self.path)
            raise

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._closed:
            return
        self._stream.close()
        if self._aside or (kind is not None and not self.begun):
            shutil.rmtree(self.directory, ignore_errors=True)

    def append(self, data: bytes | memoryview) -> None:
        """Appends bytes of the stream. They are with the operating system when this returns. Raises StorageError."""
        self.begun = True
        self._stream.append(data)

    def due(self, now_ps: int) -> bool:
        """A new segment should begin with the next block."""
        return self._stream.due(now_ps)

    def begin_segment(self, now_ps: int, account: dict[str, Any]) -> None:
        """Begins a new segment; see :meth:`.SegmentWriter.begin`."""
        self._stream.begin(now_ps, account)

    def add_groups(self, groups: list[tuple[int, int, int]]) -> None:
        """Adds groups that were read: frames, first_ps, last_ps."""
        if self._groups is not None:
            with storage(self.directory):
                self._groups.add(list(groups))

    def sync(self) -> None:
        """Makes everything up to here safe from a power cut. Raises StorageError."""
        self._stream.sync()

    def close(self, **end: Any) -> dict[str, Any]:
        """Completes the RUN: ``end`` becomes that of ``recording.json``.

        If something cannot be written any more, the end is recorded as not proper, and everything else is completed.

        Returns
        -------
        the end as it is in ``recording.json``.

        Raises
        ------
        StorageError
            if not even that could be written.
        """
        for step in (self._free_reserve, self.sync, self._stream.close, self._close_groups):
            try:
                with storage(self.directory):
                    step()
            except StorageError as error:
                if end.get("all_written", True):
                    end |= {"how": f"{end.get('how')}, but {error}", "proper": False, "all_written": False}
        if self._groups is not None and end.get("all_written", True):
            end["groups"] = described(self.directory / "groups.parquet")
        if (self.directory / "clock.json").is_file():
            end["clock"] = checksum(self.directory / "clock.json")
        self.info.end = {**end, "ended": _now(), "stream": self._stream.contents()}
        self._write_info()
        if self._aside:
            refuse_existing(self.path)
            with storage(self.path):
                os.rename(self.directory, self.path)
                sync_directory(self.path.parent)
            self.directory = self.path
        self._closed = True
        return self.info.end

    def _write_info(self) -> None:
        """Raises StorageError; a second attempt is then made to record the failure, in case the disk has recovered."""
        assert self.info.end is not None
        try:
            with storage(self.directory):
                write_json(self.directory / "recording.json", asdict(self.info))
        except StorageError as error:
            self.info.end |= {"how": f"{self.info.end.get('how')}, but {error}", "proper": False}
            with suppress(OSError):
                write_json(self.directory / "recording.json", asdict(self.info))
            raise

    def _free_reserve(self) -> None:
        (self.directory / _RESERVE).unlink(missing_ok=True)

    def _close_groups(self) -> None:
        if self._groups is not None:
            self._groups.close()
            os.replace(self.directory / ".groups.parquet.new", self.directory / "groups.parquet")


class Run:
    """A recorded run. It is decoded when that is needed.

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
        _refuse_name(self.path)
        self.info = RunInfo.load(self.path / "recording.json")
        self.stream_path = self.path / "stream.bin"
        if not self.info.boards and not segments(self.path)[0]:
            raise InputError(self.path, None, "no stream.bin here: it is not a recorded run")

    @property
    def stream_size(self) -> int:
        """Bytes of the stream that exist; with several boards, of all their streams."""
        if self.info.boards:
            return sum(part.stream_size for part in self.parts())
        with opened(self.path) as (files, _):
            return sum(os.fstat(file.fileno()).st_size for file in files)

    def parts(self) -> list["Run"]:
        """The recordings of the boards; none unless there are several. Raises InputError if one is missing."""
        return [Run(self.path / name) for name in self.info.boards]

    @property
    def begins(self) -> dict[str, Any] | None:
        """The loss accounting at the beginning of a ring's remaining stream; see :meth:`.Ledger.resume`."""
        return self._checked_account(segments(self.path)[1])

    def _checked_account(self, account: dict[str, Any] | None) -> dict[str, Any] | None:
        """The accounting in ``ring.json``, if it is intact; raises InputError."""
        if account is None:
            return None
        missing = [name for name in ("came", "recorded", "agreed", "counters", "last", "window") if name not in account]
        if missing:
            raise InputError(self.path / "ring.json", None, f"it makes no sense: account.{missing[0]} is missing")
        nodes = [account[name] for name in ("came", "recorded", "agreed", "counters")]
        if any(values is not None and len(values) != self.info.nodes for values in nodes):
            raise InputError(self.path / "ring.json", None, f"its accounts are not of {self.info.nodes} nodes")
        return account

    def pieces(self, size: int = 1 << 22) -> Iterator[bytes]:
        """The stream, piece by piece."""
        with self.stream(size) as (_, pieces):
            yield from pieces

    @contextmanager
    def stream(self, size: int = 1 << 22) -> Iterator[tuple[dict[str, Any] | None, Iterator[bytes]]]:
        """The accounting at the beginning of the stream, as :attr:`begins`, and the stream from there, piece by piece.

        Both match, even if a ring that is being recorded drops segments meanwhile.
        """
        with opened(self.path) as (files, account):
            pieces = (piece for file in files for piece in iter(partial(file.read, size), b""))
            yield self._checked_account(account), pieces

    def refuse_without_events(self) -> None:
        """Raises InputError if the run was recorded without events."""
        if self.info.keep == "stats":
            raise InputError(self.path, None, "it was recorded with --keep stats: it contains no items")

    def event_files(self) -> list[Path]:
        """The files that contain the events, in order. Decodes first if needed.

        Raises
        ------
        InputError
            if the run was recorded without events.
        """
        self.refuse_without_events()
        names = [name for name in sorted(self.decode()["parts"]) if name.startswith("events/")]
        if not names:
            raise InputError(self.path, None, "it ended before any items were kept")
        schema = event_schema(self.info.item_modes, self.info.nodes)
        return [_checked(self.path / name, schema) for name in names]

    def groups_file(self) -> Path | None:
        """The file of the groups that were read, for a finished run with register drain; None if there is none.

        Raises InputError if it is not what was recorded.
        """
        path, said = self.path / "groups.parquet", (self.info.end or {}).get("groups")
        reason = None if said is None else fault(path, said)
        if reason is not None:
            raise InputError(path, None, f"it {reason}, and nothing else has the groups; take \"groups\" out of "
                                         "recording.json, and the rest can be read")
        return _checked(path, GROUP_SCHEMA) if path.is_file() else None

    @property
    def clock(self) -> "WallClock":
        """The mapping to UTC. If none was written, it is based on the computer's clock at the start.

        Raises InputError if ``clock.json`` is damaged or belongs to another run.
        """
        from hypermon.host.recording.clock import CLOCK, WallClock, load_clock

        if self.info.boards:
            return self.parts()[0].clock
        began = datetime.datetime.fromisoformat(self.info.started)
        clock, said = load_clock(self.path), (self.info.end or {}).get("clock")
        if clock is not None and said is not None and checksum(self.path / CLOCK) != said:
            raise InputError(self.path / CLOCK, None, "it is not the one that was recorded; remove it, and UTC is "
                                                      "taken from the computer's clock at the start")
        return clock or WallClock(round(began.timestamp() * 1e9))

    def utc(self, times_ps: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """UTC of times of the board. ``clock`` states the uncertainty."""
        return self.clock.utc(times_ps)

    def decode(self) -> dict[str, Any]:
        """Decodes unless that is done. Returns the summary of :mod:`hypermon.host.decode.decode`."""
        from hypermon.host.decode.decode import decode_run

        return decode_run(self)

    def batches(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
                columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Events in order, in constant memory. For the selection and the columns see :meth:`events`.

        Batches may be empty. Raises InputError for nodes that do not exist, and for times that decrease.
        """
        strange = [node for node in nodes or () if not 0 <= node < self.info.nodes]
        if strange:
            raise InputError(self.path, None, f"there is no node {strange[0]}, but 0 to {self.info.nodes - 1}")
        if from_ps is not None and to_ps is not None and from_ps > to_ps:
            raise InputError(self.path, None, f"from {from_ps} ps to {to_ps} ps: the second must be the later one")
        files = self.event_files()
        if columns is not None:
            there = pq.read_schema(files[0]).names
            unknown = [name for name in columns if name not in there]
            if unknown:
                raise HypermonError(f"there is no column {unknown[0]!r:.60}; there are {', '.join(there)}")
        yield from selected_batches(files, Selection(nodes, from_ps, to_ps, columns))

    def events(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
               columns: Sequence[str] | None = None) -> pa.Table:
        """Events in one table: ``time_ps`` int64, ``node`` int16, ``nibble`` uint8; by time, ties by node.

        With words and events, the columns are those of :func:`.parquet.event_schema`, followed by those of the RUN's
        dictionary; see :func:`.fields.decode_fields`. To convert the table to Polars without a copy, use
        ``polars.from_arrow(table)``; for pandas, use ``table.to_pandas()``.

        Parameters
        ----------
        nodes : events of these only.
        from_ps, to_ps : events at ``from_ps`` or later, and before ``to_ps``. Little is read of other times.
        columns : these only, in this order.

        Raises
        ------
        HypermonError
            if there is no such column, and as :meth:`event_files` does.
        """
        batches = list(self.batches(nodes=nodes, from_ps=from_ps, to_ps=to_ps, columns=columns))
        if not batches:
            schema = pq.read_schema(self.event_files()[0])
            schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
            return schema.remove_metadata().empty_table()
        return pa.Table.from_batches(batches, schema=batches[0].schema.remove_metadata()).unify_dictionaries()

    def sql(self, question: str) -> "duckdb.DuckDBPyRelation":
        """Queries the RUN's tables in SQL: ``events``, ``loss``, ``states``, ``messages``, ``counters``; and ``framed``
        and ``groups`` if they exist. For the columns of ``states``, ``messages`` and ``counters`` see
        :mod:`.semantics`.

        The result is computed when it is fetched: ``.fetchall()``, ``.to_arrow_table()``, ``.pl()`` (Polars), ``.df()``
        (pandas).

        Raises
        ------
        HypermonError
            if the query is not valid SQL, or uses other tables.
        """
        from hypermon.host.analysis.query import sql

        return sql(self, question)

    def loss(self) -> pa.Table:
        """``node``, ``lost``, ``from_ps``, ``to_ps``: between those times that node lost ``lost`` items."""
        return pq.ParquetFile(self.loss_file()).read()

    def loss_file(self) -> Path:
        """The file of the losses. Decodes first if needed. Raises InputError if its columns are wrong."""
        self.decode()
        return _checked(self.path / "loss.parquet", LOSS_SCHEMA)

    def states(self) -> pa.Table:
        """States that events begin and end according to the RUN's dictionary; see :mod:`.semantics`. Empty without one.
        """
        return self.sql("from states").to_arrow_table()

    def messages(self) -> pa.Table:
        """Messages that events send and receive, matched; likewise."""
        return self.sql("from messages").to_arrow_table()

    def counters(self) -> pa.Table:
        """Counters in events; likewise."""
        return self.sql("from counters").to_arrow_table()

    def stats(self) -> dict[str, Any]:
        """The output of ``hypermon stats --json``, as a dictionary."""
        from hypermon.host.analysis.stats import stats

        return stats(self)


def _checked(path: Path, schema: pa.Schema) -> Path:
    """A table that begins with these columns. Raises InputError if it does not."""
    try:
        found = pq.read_schema(path)
    except pa.ArrowException as error:
        raise InputError(path, None, f"not a table: {str(error).splitlines()[0]}") from None
    if list(found)[:len(schema)] != list(schema):
        raise InputError(path, None, f"its columns are {', '.join(found.names)[:200]}, not {', '.join(schema.names)}")
    return path


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a recorded run. Raises InputError if ``path`` is not a recording."""
    return Run(path)
