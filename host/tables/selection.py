"""A selection of a RUN's items: nodes, a span of time, columns; the rest is not read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

__all__ = ["BATCH_ROWS", "Selection", "selected_batches"]

#: Maximum rows in a batch.
BATCH_ROWS = 1 << 18


@dataclass(frozen=True)
class Selection:
    """Which events; None: all.

    Parameters
    ----------
    nodes : events of these only.
    from_ps, to_ps : events at ``from_ps`` or later, and before ``to_ps``.
    columns : these only, in this order.
    """

    nodes: Sequence[int] | None = None
    from_ps: int | None = None
    to_ps: int | None = None
    columns: Sequence[str] | None = None

    @property
    def needed(self) -> list[str] | None:
        """Columns to be read."""
        if self.columns is None:
            return None
        timed = self.from_ps is not None or self.to_ps is not None
        return list(dict.fromkeys([*self.columns, *["time_ps"] * timed, *["node"] * (self.nodes is not None)]))

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The selected rows of a batch, which is in order of time. Without ``nodes`` nothing is copied."""
        if self.from_ps is not None or self.to_ps is not None:
            times = batch["time_ps"].to_numpy()
            low = 0 if self.from_ps is None else int(np.searchsorted(times, self.from_ps))
            high = len(times) if self.to_ps is None else int(np.searchsorted(times, self.to_ps))
            batch = batch.slice(low, max(high - low, 0))
        if self.nodes is not None:
            batch = batch.filter(pa.array(np.isin(batch["node"].to_numpy(), list(self.nodes))))
        return batch if self.columns is None else batch.select(list(self.columns))

    def touches(self, first: int, last: int) -> bool:
        """It may contain some of the rows between those two times."""
        return (self.from_ps is None or last >= self.from_ps) and (self.to_ps is None or first < self.to_ps)


def selected_batches(paths: Sequence[Path], selection: Selection) -> Iterator[pa.RecordBatch]:
    """The selected events, in order, a row group or less at a time.

    Parameters
    ----------
    paths : of the files, in order.
    """
    for path in paths:
        with pq.ParquetFile(path) as file:
            column = file.schema_arrow.get_field_index("time_ps")
            groups = [group for group in range(file.num_row_groups)
                      if _touched(file.metadata.row_group(group).column(column).statistics, selection)]
            if groups:
                for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=selection.needed):
                    yield selection.of(batch)


def _touched(statistics: pq.Statistics | None, selection: Selection) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return selection.touches(statistics.min, statistics.max)
