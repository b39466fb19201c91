"""Lines of text, from the bytes of nodes in line mode."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["LINE_SCHEMA", "text_lines"]

#: As log lines have them: ``begun_ps`` is the time of the first byte, ``time_ps`` that of the last one.
LINE_SCHEMA = pa.schema([
    pa.field("time_ps", pa.int64()), pa.field("begun_ps", pa.int64()), pa.field("node", pa.int16()),
    pa.field("name", pa.string()), pa.field("complete", pa.bool_()), pa.field("text", pa.string())])
#: A line that is longer is cut into several, of which only the last can be complete.
_LONGEST = 4096
_NAME = "line"

_Times = npt.NDArray[np.int64]


class _Node:
    """The bytes of a node that no line has yet."""

    def __init__(self, number: int, losses: list[tuple[int, int]]):
        self.number, self._losses = number, losses
        self.data, self.times = b"", np.empty(0, np.int64)

    def add(self, data: bytes, times: _Times) -> Iterator[tuple[int, int, int, str, bool, str]]:
        """The lines that end with these bytes; one ends with a line feed, a carriage return, or both."""
        data, times = self.data + data, np.concatenate([self.times, times])
        begin = 0
        for at in [*np.flatnonzero(np.isin(np.frombuffer(data, np.uint8), (10, 13))).tolist(), len(data)]:
            while at - begin > _LONGEST:
                yield from self._lines(data, times, begin, begin + _LONGEST, ended=False)
                begin += _LONGEST
            if at < len(data):
                yield from self._lines(data, times, begin, at, ended=True)
                begin = at + 1
        self.data, self.times = data[begin:], times[begin:]

    def finish(self) -> Iterator[tuple[int, int, int, str, bool, str]]:
        """The rest, which has no end."""
        yield from self._lines(self.data, self.times, 0, len(self.data), ended=False)

    def _lines(self, data: bytes, times: _Times, begin: int, end: int,
               ended: bool) -> Iterator[tuple[int, int, int, str, bool, str]]:
        """The line of the bytes before ``end``, which is its line end if it has ``ended``; none if it is empty."""
        if begin == end:
            return
        first, last = int(times[begin]), int(times[end if ended else end - 1])
        whole = ended and not any(low <= last and first <= high for low, high in self._losses)
        yield last, first, self.number, _NAME, whole, data[begin:end].decode(errors="replace")


def text_lines(run: Run, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Lines in order of their ends, those without an end last. A line is not complete if it has no end, if it is longer
    than 4096 bytes, or if bytes of its node that were lost could belong to it.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        of :data:`LINE_SCHEMA`.
    """
    modes = run.info.item_modes
    nodes = [node for node in range(run.info.nodes) if modes.said(node) is ItemMode.LINE
             and (selection.nodes is None or node in selection.nodes)]
    losses: dict[int, list[tuple[int, int]]] = {}
    for row in run.loss().to_pylist():
        losses.setdefault(row["node"], []).append((row["from_ps"], row["to_ps"]))
    open_lines = {node: _Node(node, losses.get(node, [])) for node in nodes}
    for batch in run.batches(nodes=nodes, from_ps=selection.from_ps, to_ps=selection.to_ps,
                             columns=["time_ps", "node", "event", "aborted"]):
        batch = batch.filter(pc.invert(batch["aborted"]))
        time, own, value = (batch[name].to_numpy(zero_copy_only=False) for name in ("time_ps", "node", "event"))
        found: list[tuple[int, int, int, str, bool, str]] = []
        for node, line in open_lines.items():
            mine = own == node
            found += line.add(value[mine].astype(np.uint8).tobytes(), time[mine])
        yield _batch(found)
    yield _batch([row for line in open_lines.values() for row in line.finish()])


def _batch(rows: list[tuple[int, int, int, str, bool, str]]) -> pa.RecordBatch:
    columns = list(zip(*sorted(rows), strict=True)) or [()] * len(LINE_SCHEMA)
    return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in zip(
        columns, LINE_SCHEMA, strict=True)], schema=LINE_SCHEMA)
