"""One board's partition of the tables of a RUN of several boards, in the run's time and with the run's nodes.

    RUN/events/board=00B/date=YYYY-MM-DD/part-N.parquet    its events
    RUN/loss/board=00B/date=YYYY-MM-DD/part-N.parquet      its losses
    RUN/board-B/partition.json                             what these were made of, what they are, and their accounting

``date`` is that of the run's time in UTC. A part is built in a separate directory and then moved to its final path,
with ``partition.json`` as the last file. Therefore a part is whole or does not count, whenever its decoder was killed.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.decode.alignment import Alignment
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.clock import WallClock
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import PART, PARTS, described, faults, put
from hypermon.host.recording.segments import sync_directory, sync_file, write_json
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter, event_schema, insert_events
from hypermon.host.tables.parquet_file import write_table
from hypermon.host.tables.windowed_merge import GROUP_EVENTS
from hypermon.host.text.json_file import anything, mapping, read_json, table

__all__ = ["PARTITION", "Place", "Reading", "kept_partition", "partition_name", "write_partition"]

PARTITION = "partition.json"
_TABLES = ("events", "loss")
_SHAPE = table({"made_of": mapping(anything()), "summary": mapping(anything()), PARTS: mapping(PART)})
#: Bytes of a file, unless the day or the run ends before that.
_LEAST = 64 << 20
#: Events in a row group.
_GROUP_MIN, _GROUP_MAX = 1 << 12, 1 << 20

#: Reads a recording: calls the first with its events, in order, and the second with rows of losses; both in the board's
#: time, with its nodes. Returns the summary, and events that arrived too late to be in order.
Reading = Callable[[RunDirectory, Callable[[pa.Table], object], Callable[[list[Any]], object]],
                   tuple[dict[str, Any], pa.Table | None]]


class Place(NamedTuple):
    """A board in a run.

    Parameters
    ----------
    run : the run of all boards. ``number``: of the board, from 0. ``own``: how its times are converted.
    clock : the wall clock of the run.
    """

    run: RunDirectory
    number: int
    own: Alignment
    clock: WallClock

    @property
    def part(self) -> RunDirectory:
        return RunDirectory(self.run.path / self.run.info.boards[self.number])


def partition_name(number: int) -> str:
    """The directory of a board: ``board=000``."""
    return f"board={number:03d}"


def kept_partition(place: Place, made_of: dict[str, Any]) -> dict[str, Any] | None:
    """The contents of ``partition.json``; None unless its tables were made of the given data, are whole, and are the
    only ones in the partition."""
    part = place.run.path / place.run.info.boards[place.number]
    try:
        values = read_json(part / PARTITION, _SHAPE)
    except (FileNotFoundError, InputError):
        return None
    there = {path.relative_to(place.run.path).as_posix() for name in _TABLES
             for path in (place.run.path / name / partition_name(place.number)).rglob("*.parquet")}
    whole = there == values[PARTS].keys() and not faults(place.run.path, values[PARTS])
    return values if whole and values["made_of"] == made_of else None


def write_partition(place: Place, made_of: dict[str, Any], read: Reading, cores: int = 1) -> dict[str, Any]:
    """Writes the partition of a board and replaces an older one. Returns the contents of ``partition.json``."""
    run, part = place.run, place.part
    name = partition_name(place.number)
    with aside(run.path) as new:
        for kind in _TABLES:
            (new / kind / name).mkdir(parents=True)
        summary = _write(place, part, new, read, cores)
        parts = {path.relative_to(new).as_posix(): described(path) for path in sorted(new.rglob("*.parquet"))}
        for path in parts:
            sync_file(new / path)
            sync_directory((new / path).parent)
        (part.path / PARTITION).unlink(missing_ok=True)
        for kind in _TABLES:
            (run.path / kind).mkdir(exist_ok=True)
            old = new / f"old-{kind}"
            old.mkdir()
            put(new / kind / name, run.path / kind / name, old)
            sync_directory(run.path / kind)
        account = {"made_of": made_of, "summary": summary, PARTS: parts}
        write_json(part.path / PARTITION, account)
        return account


def _write(place: Place, part: RunDirectory, new: Path, read: Reading, cores: int) -> dict[str, Any]:
    name = partition_name(place.number)
    group = min(max(GROUP_EVENTS // len(place.run.info.boards), _GROUP_MIN), _GROUP_MAX)
    schema = event_schema(place.run.info.item_modes, place.run.info.nodes)
    losses: list[Any] = []

    def moved(events: pa.Table) -> pa.Table:
        return _moved(_widened(events, schema), place.own, ["time_ps"])

    with _DatedEvents(new / "events" / name, schema, place.clock, cores, group) as writer:
        summary, late = read(part, lambda events: writer.add(moved(events)), losses.extend)
    if late is not None:
        _insert(new / "events" / name, moved(late), place.clock)
    rows = np.array(losses, np.int64).reshape(len(losses), len(LOSS_SCHEMA)).T
    columns = [pa.array(values).cast(field.type) for values, field in zip(rows, LOSS_SCHEMA, strict=True)]
    loss = _moved(pa.Table.from_arrays(columns, schema=LOSS_SCHEMA), place.own, ["from_ps", "to_ps"])
    _write_losses(new / "loss" / name, loss.sort_by([("from_ps", "ascending"), ("node", "ascending")]), place.clock)
    return summary


def _widened(events: pa.Table, schema: pa.Schema) -> pa.Table:
    """With null columns for the modes that only nodes of other boards have."""
    if events.schema.names == schema.names:
        return events.cast(schema)
    missing = {"aborted": pa.scalar(False)}
    return pa.Table.from_arrays(
        [events[field.name] if field.name in events.schema.names
         else pa.repeat(missing.get(field.name, pa.scalar(None, field.type)), len(events)) for field in schema],
        names=schema.names).cast(schema)


def _moved(rows: pa.Table, own: Alignment, times: Sequence[str]) -> pa.Table:
    """Rows in the run's time, with the run's nodes."""
    for name in times:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(own.times(rows[name].to_numpy())))
    at = rows.schema.get_field_index("node")
    return rows.set_column(at, rows.schema.field(at), pa.array(rows["node"].to_numpy() + np.int16(own.first_node)))


def _days(clock: WallClock, times: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
    return clock.utc(times).astype("datetime64[D]")


def _by_day(rows: pa.Table, column: str, clock: WallClock) -> Iterator[tuple[str, pa.Table]]:
    """Rows, in order of that column, by the directory of their day."""
    if not len(rows):
        return
    times = rows[column].to_numpy()
    days = _days(clock, times[[0, -1]])
    if days[0] != days[1]:
        days = _days(clock, times)
    ends = [*(np.flatnonzero(days[1:] != days[:-1]) + 1).tolist(), len(rows)] if len(days) == len(rows) else [len(rows)]
    begin = 0
    for end in ends:
        yield f"date={days[begin]}", rows.slice(begin, end - begin)
        begin = end


class _DatedEvents:
    """Writes events, in order, into a directory for each day; at least one file is written."""

    def __init__(self, directory: Path, schema: pa.Schema, clock: WallClock, cores: int, group: int):
        self._directory, self._schema, self._clock, self._cores, self._group = directory, schema, clock, cores, group
        self._day: str | None = None
        self._writer: EventWriter | None = None

    def __enter__(self) -> "_DatedEvents":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None and self._writer is None:
            self._begin(f"date={_days(self._clock, [0])[0]}")
        if self._writer is not None:
            self._writer.__exit__(kind, value, trace)

    def add(self, events: pa.Table) -> None:
        for day, rows in _by_day(events, "time_ps", self._clock):
            if day != self._day or self._writer is None:
                self._begin(day).add(rows)
            else:
                self._writer.add(rows)

    def _begin(self, day: str) -> EventWriter:
        if self._writer is not None:
            self._writer.__exit__(None, None, None)
        self._day = day
        self._writer = EventWriter(self._directory / day, self._schema, self._cores, self._group, _LEAST)
        return self._writer


def _insert(directory: Path, late: pa.Table, clock: WallClock) -> None:
    """Inserts events that arrived too late into the files of their days."""
    for day, rows in _by_day(late, "time_ps", clock):
        if (directory / day).exists():
            insert_events(directory / day, rows)
        else:
            with EventWriter(directory / day, rows.schema) as writer:
                writer.add(rows)


def _write_losses(directory: Path, loss: pa.Table, clock: WallClock) -> None:
    days = list(_by_day(loss, "from_ps", clock)) or [(f"date={_days(clock, [0])[0]}", loss)]
    for day, rows in days:
        (directory / day).mkdir()
        write_table(rows, directory / day / "part-00000.parquet", compression="zstd")
