"""A RUN with the tables of its decode."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.alignment import Alignment
from hypermon.host.decode.decode import decode_run, stream_tables, tables_needed
from hypermon.host.decode.soundness import check_batch, check_events, checked_loss
from hypermon.host.decode.table_files import (
    event_batches,
    event_files,
    loss_files,
    refuse_columns,
    refuse_selection,
)
from hypermon.host.errors import InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import PARTS
from hypermon.host.tables.parquet import event_schema
from hypermon.host.tables.selection import BATCH_ROWS, Selection

__all__ = ["DecodedRun"]


class DecodedRun(RunDirectory):
    """A RUN, decoded when its tables are needed; see :class:`.RunDirectory`.

    Members
    -------
    tell : called with one line of information, such as that another process is at work on the tables.
    """

    tell: Callable[[str], None] | None = None

    def decode(self) -> dict[str, Any]:
        """Decodes unless that is done. Returns the :class:`.Summary` as plain values."""
        return decode_run(self, tell=self.tell)

    def aligned_parts(self) -> list[tuple[RunDirectory, Alignment]]:
        """The recordings of each board, and how their times and nodes become those of the run; one board: itself."""
        parts = self.parts()
        if not parts:
            return [(self, Alignment(self.info.board, 0, self.info.nodes, "first"))]
        return [(part, Alignment(**said)) for part, said in zip(parts, self.decode()["boards"], strict=True)]

    def event_files(self) -> list[Path]:
        """The files that contain the events: in order, one board after the other. Decodes first if needed.

        Raises
        ------
        InputError
            if the run was recorded without events.
        """
        self.refuse_without_events()
        return event_files(self, decode_run(self, tell=self.tell, whole=True)[PARTS])

    def loss_files(self) -> list[Path]:
        """The files of the losses; several boards have one each. Decodes first if needed.

        Raises InputError if the columns of one are wrong.
        """
        return loss_files(self, decode_run(self, tell=self.tell, whole=True)[PARTS])

    def loss_file(self) -> Path:
        """The file of the losses. Raises InputError as :meth:`loss_files`, and if each board has one."""
        files = self.loss_files()
        if len(files) > 1:
            raise InputError(self.path, None, "each of its boards has a file of losses; ask for loss_files()")
        return files[0]

    def batches(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
                columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Events in order, in constant memory. For the selection and the columns see :meth:`events`.

        Batches may be empty. Without tables, all times of one board's raw recording are read from its stream, and no
        tables are written. A span of time is read from tables, and so is a run with a dictionary.

        Raises
        ------
        InputError
            for nodes that do not exist, also in a table, for times that decrease, and if there are no tables and items
            arrived too late to be in order.
        """
        selection = Selection(nodes, from_ps, to_ps, columns)
        refuse_selection(self, selection)
        if from_ps is None and to_ps is None and not tables_needed(self):
            yield from self._from_stream(selection)
        else:
            for batch in event_batches(self.event_files(), selection):
                check_batch(self, batch)
                yield batch

    def check_rows(self) -> None:
        """Reads all items once. Raises InputError if a table has rows that no decoder has written."""
        check_events(self, self.event_files(), event_schema(self.info.item_modes, self.info.nodes))

    def _from_stream(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        refuse_columns(selection, event_schema(self.info.item_modes, self.info.nodes).names)
        for table in stream_tables(self):
            for batch in table.to_batches(BATCH_ROWS):
                yield selection.of(batch)

    def events(self, *, nodes: Sequence[int] | None = None, from_ps: int | None = None, to_ps: int | None = None,
               columns: Sequence[str] | None = None) -> pa.Table:
        """Events in one table: ``time_ps`` int64, ``node`` int16, ``nibble`` uint8; by time, ties by node.

        With words and events, the columns are those of :func:`.parquet.event_schema`, followed by those of the RUN's
        dictionary; see :func:`.fields.decode_fields`. To convert the table to Polars without a copy, use
        ``polars.from_arrow(table)``; for pandas, use ``table.to_pandas()``.

        Parameters
        ----------
        nodes : events of these only.
        from_ps, to_ps : events at ``from_ps`` or later, and before ``to_ps``. Little data of other times is read.
        columns : only these columns, in this order.

        Raises
        ------
        HypermonError
            if there is no such column, and as :meth:`event_files` does.
        """
        self.decode()
        batches = list(self.batches(nodes=nodes, from_ps=from_ps, to_ps=to_ps, columns=columns))
        if not batches:
            schema = pq.read_schema(self.event_files()[0])
            schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
            return schema.remove_metadata().empty_table()
        return pa.Table.from_batches(batches, schema=batches[0].schema.remove_metadata()).unify_dictionaries()

    def loss(self) -> pa.Table:
        """``node``, ``lost``, ``from_ps``, ``to_ps``: between those times that node lost ``lost`` items.

        Raises InputError if a table has rows that no decoder has written.
        """
        files = self.loss_files()
        tables = [checked_loss(self, path) for path in files]
        if len(files) == 1:
            return tables[0]
        return pa.concat_tables(tables).sort_by([("from_ps", "ascending"), ("node", "ascending")])
