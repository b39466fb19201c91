"""The timeline of a recording that is still growing.

A thread reads the stream as it grows and puts the items into a temporary database, so the recorder is not disturbed and
nothing is written into its RUN. When the recording has ended, the RUN is decoded, and the pictures are made from its
tables from then on; states and messages appear then.
"""

import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.live.follow import Loss, Note, Part, follow
from hypermon.host.live.tail import Pulse
from hypermon.host.recording.aside import discard
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.locking import held
from hypermon.host.recording.writer import RESERVE
from hypermon.host.run import Run
from hypermon.host.tables.parquet import event_schema
from hypermon.host.text.printable import printable
from hypermon.host.view.counts import Counts, Group
from hypermon.host.view.picture import Pictures
from hypermon.host.view.tables import Tables

__all__ = ["GrowingPictures", "grows"]

#: Seconds between two additions.
_ADD_S = 0.2
#: Rows of a group of items, and rows that are added at once.
_GROUP, _ADD = 1 << 20, 1 << 19
#: Seconds in which a recording grows: a board sends a census every second at least.
_LOOK_S = 2.5

_Ints = npt.NDArray[np.int64]
_Nodes = npt.NDArray[np.int16]


def grows(run: Run) -> bool:
    """Whether a RUN is being recorded. False for a RUN of several boards, and for one without blocks.

    Where the system cannot tell whether the recorder is at work, the stream is watched for up to :data:`_LOOK_S`.
    """
    if run.info.end is not None or run.info.boards or run.info.keep != "raw":
        return False
    pulse, until = Pulse(run.path), time.monotonic() + _LOOK_S
    while (works := held(run.path / RESERVE)) is None and time.monotonic() < until:
        if pulse.grew():
            return True
        time.sleep(0.05)
    return bool(works)


class _Tables(Tables):
    """Tables in a temporary database, to which rows are added."""

    def __init__(self, run: Run, file: Path, items: pa.Schema):
        self._connect(run, lambda: None, file)
        self._adding = self._connection.cursor()
        self._adding.register("none", items.empty_table())
        self._adding.execute("create table items as select * from none")
        self._adding.execute("create table loss (node smallint, lost bigint, from_ps bigint, to_ps bigint)")
        self._named()

    def add(self, table: pa.Table) -> None:
        self._adding.register("new", table)
        self._adding.execute("insert into items select * from new")
        self._adding.unregister("new")

    def lose(self, losses: Iterable[Loss]) -> None:
        for loss in losses:
            self._adding.execute("insert into loss values (?, ?, ?, ?)", list(loss))

    def group(self, first_row: int, rows: int) -> tuple[_Ints, _Nodes]:
        """Times and nodes of items, in the order in which they were added."""
        found: pa.Table = self._connection.cursor().execute(
            "select time_ps, node from items where rowid >= ? and rowid < ? order by rowid",
            [first_row, first_row + rows]).to_arrow_table()
        return found["time_ps"].to_numpy(), found["node"].to_numpy()


class _Counts(Counts):
    """Counts of items that are added. The newest group is counted again with each addition."""

    def __init__(self, tables: _Tables, nodes: int):
        super().__init__((), nodes)
        self._tables = tables
        self._newest: tuple[int, _Ints, _Nodes] | None = None       # first row, times, nodes

    def add(self, times: _Ints, nodes: _Nodes) -> None:
        """Items in order of time, none before those that were added."""
        first, old_times, old_nodes = self._newest or (0, times[:0], nodes[:0])
        if len(old_times) >= _GROUP or (len(old_times) and times[0] < old_times[-1]):
            first, old_times, old_nodes, kept = first + len(old_times), times[:0], nodes[:0], self.groups
        else:
            kept = self.groups[:-1] if len(old_times) else self.groups
        times, nodes = np.concatenate([old_times, times]), np.concatenate([old_nodes, nodes])
        group = Group(Path(), first, len(times), int(times[0]), int(times[-1]), range(self.nodes))
        group.shift = self._shift(group)
        self._newest = first, times, nodes
        self.count_group(group, times, nodes)
        # Readers take the bounds first, and find groups by their places.
        self.groups = [*kept, group]
        self._firsts = np.array([each.first_ps for each in self.groups], np.int64)
        self._lasts = np.array([each.last_ps for each in self.groups], np.int64)

    def _read(self, number: int) -> tuple[_Ints, _Nodes]:
        newest = self._newest
        if newest is not None and self.groups[number].number == newest[0]:
            return newest[1:]
        return super()._read(number)

    def _from_file(self, number: int) -> tuple[_Ints, _Nodes]:
        return self._tables.group(self.groups[number].number, self.groups[number].rows)


class GrowingPictures(Pictures):
    """Pictures of a RUN that is being recorded: of the data that have arrived."""

    def __init__(self, run: Run):
        self._folder = Path(tempfile.mkdtemp(prefix="hypermon-view-"))
        try:
            self.run, self.dictionary = run, kept_dictionary(run)
            schema = event_schema(run.info.item_modes, run.info.nodes)
            self._growing = _Tables(run, self._folder / "items.duckdb", self._with_fields(schema.empty_table()).schema)
        except BaseException:
            discard(self._folder)
            raise
        self._growing_counts = _Counts(self._growing, run.info.nodes)
        self.counts, self.tables = self._growing_counts, self._growing
        self.account, self.files = {"lost": 0}, []
        self.begin_ps, self.end_ps = 0, 1000
        self.trouble, self.ready, self.how = "", True, ""
        self._over, self._busy, self._growth = threading.Event(), 0, True
        self._first = threading.Event()
        self._first.set()
        self._thread, self._check = None, None

    def about(self) -> dict[str, Any]:
        return super().about() | {"growing": self._growth, "how": self.how}

    def close(self) -> None:
        super().close()
        discard(self._folder)

    def _with_fields(self, table: pa.Table) -> pa.Table:
        if self.dictionary is None or "event" not in table.column_names:
            return table
        return decode_fields(table, self.dictionary)[0]

    # ------------------------------------------------------------------------------------- the thread

    def _prepare(self) -> None:
        try:
            self._follow()
            self.how = self._said()
            if not self._over.is_set():
                self._finish()
        except (HypermonError, OSError) as error:
            self.trouble, self._growth = printable(str(error)), False

    def _said(self) -> str:
        end = RunInfo.load(self.run.path / "recording.json").end
        return str(end.get("how", "")) if end is not None else "its recorder is gone, and has not completed it"

    def _follow(self) -> None:
        """Adds the items and losses that arrive, until the recording ends."""
        waiting: list[pa.Table] = []
        losses: list[Loss] = []
        due = 0.0
        for part in follow(self.run.path, Pulse(self.run.path).alive, stop=self._over.is_set):
            self._sort(part, waiting, losses)
            rows = sum(map(len, waiting))
            if time.monotonic() >= due or rows >= _ADD:
                self._add(waiting, losses)
                due = time.monotonic() + _ADD_S
        self._add(waiting, losses)

    def _sort(self, part: Part, waiting: list[pa.Table], losses: list[Loss]) -> None:
        if isinstance(part, Loss):
            losses.append(part)
        elif isinstance(part, Note):
            if part.kind == "gone":     # `_said` reports it
                return
            self.trouble = printable(f"{part.kind}: {part.text}")
        elif len(part):
            waiting.append(part)

    def _add(self, waiting: list[pa.Table], losses: list[Loss]) -> None:
        """Adds to the tables, the counts, and the bounds; empties both lists."""
        if waiting:
            table = self._with_fields(pa.concat_tables(waiting))
            self._growing.add(table)
            self._growing_counts.add(table["time_ps"].to_numpy(), table["node"].to_numpy())
        self._growing.lose(losses)
        self.account["lost"] += sum(loss.lost for loss in losses)
        groups = self._growing_counts.groups
        self.begin_ps = min([self.begin_ps, *(loss.from_ps for loss in losses), *(each.first_ps for each in groups)])
        self.end_ps = max([self.end_ps, *(loss.to_ps + 1 for loss in losses), *(each.last_ps + 1 for each in groups)])
        waiting.clear()
        losses.clear()

    def _finish(self) -> None:
        """The pictures are those of the whole run from now on."""
        whole = Pictures(Run(self.run.path))
        self.run, self.account, self.files = whole.run, whole.account, whole.files
        self.begin_ps, self.end_ps = whole.begin_ps, whole.end_ps
        self.counts, self.tables, self.ready = whole.counts, whole.tables, False
        self._growth, self._check = False, whole._check
        super()._prepare()
