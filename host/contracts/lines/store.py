"""Reads times of events into memory: for each kind of events and each node a line, in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.blocks.native import cores
from hypermon.host.contracts.lines.line import Line, Lines, each

__all__ = ["Kind", "LineStore"]

#: The events of a rule: a query for rows (``time_ps``, ``node``, ``value``), and the value of those that are meant.
Kind = tuple[str, int]
_Result = TypeVar("_Result")
#: Times that are in memory, at most: 8 bytes each.
_MOST = 1 << 27
_BATCH = 1 << 20


class LineStore:
    """Lines of the events that rules name. Each kind of events is read once, if all fit into memory.

    Parameters
    ----------
    db : has the tables that the queries name.
    nodes : number of nodes of the trace.
    rules : for each rule that may ask for lines, the kinds of its events, in the order in which they will be asked for.
    most : times in memory.
    counts : of each kind, how many events each node has. None: they are counted.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, nodes: int, rules: Iterable[Sequence[Kind]], most: int = _MOST,
                 counts: dict[Kind, npt.NDArray[np.int64]] | None = None):
        self._db, self._nodes, self._most = db, nodes, most
        self._later = deque(tuple(kinds) for kinds in rules)
        self._lines: dict[Kind, Lines] = {}
        self._counts = self._counted({kind for kinds in self._later for kind in kinds}) if counts is None else counts

    def _counted(self, kinds: set[Kind]) -> dict[Kind, npt.NDArray[np.int64]]:
        """How many events of each kind each node has; none of a kind with events of unknown nodes."""
        found = {kind: np.zeros(self._nodes, np.int64) for kind in kinds}
        for rows, values in _by_rows(kinds).items():
            for value, node, count in self._db.execute(
                    f"select value, node, count(*) from ({rows}) where value in ({', '.join(map(str, values))}) "
                    "group by value, node").fetchall():
                if node is not None and 0 <= node < self._nodes and (rows, value) in found:
                    found[rows, value][node] = count
                else:
                    found.pop((rows, value), None)
        return found

    def get(self, kinds: Sequence[Kind]) -> list[Lines] | None:
        """The lines of the kinds of a rule. None: they do not fit into memory, or the rule was not announced."""
        asked = tuple(kinds)
        if asked not in self._later:
            return None
        while self._later[0] != asked:
            self._later.popleft()
        if any(kind not in self._lines for kind in asked):
            wanted = self._fitting()
            if not set(asked) <= wanted:
                return None
            self._load(wanted)
        return [self._lines[kind] for kind in asked]

    def _fitting(self) -> set[Kind]:
        """The kinds of this rule and of the next ones, as many as fit into memory."""
        wanted: set[Kind] = set()
        for kinds in self._later:
            more = wanted | set(kinds)
            if any(kind not in self._counts for kind in kinds):
                if not wanted:
                    break
                continue
            if sum(int(self._counts[kind].sum()) for kind in more) > self._most:
                break
            wanted = more
        return wanted

    def _load(self, kinds: set[Kind]) -> None:
        self._lines = {kind: lines for kind, lines in self._lines.items() if kind in kinds}
        for rows, values in _by_rows(kinds - set(self._lines)).items():
            self._read(rows, values)

    def _read(self, rows: str, values: list[int]) -> None:
        """Reads events, and distributes them to their lines."""
        # Numbers of 16 bits are put in order fastest.
        number = np.zeros(max(values) + 1, np.uint16 if len(values) * self._nodes <= 1 << 16 else np.uint32)
        number[values] = np.arange(len(values)) * self._nodes
        # A buffer for each kind, so that the memory of one that is no longer needed is free again.
        lines = [line for value in values for line in np.split(
            np.empty(int(self._counts[rows, value].sum()), np.int64), np.cumsum(self._counts[rows, value])[:-1])]
        filled = [0] * len(lines)
        self._db.complete()     # what was executed before, whose result nobody has asked for
        batches = self._db.sql(f"select time_ps, node, value from ({rows}) where value in "
                               f"({', '.join(map(str, values))})").to_arrow_reader(_BATCH)

        def parted(batch: pa.RecordBatch) -> tuple[Line, npt.NDArray[np.intp]]:
            time, node, value = (batch.column(k).to_numpy(zero_copy_only=False) for k in range(3))
            code = number[value] + node.astype(number.dtype)
            return time[np.argsort(code, kind="stable")], np.bincount(code, minlength=len(lines))

        for times, sizes in _ahead(parted, batches):
            begin = 0
            for k, count in enumerate(sizes.tolist()):
                lines[k][filled[k]:filled[k] + count] = times[begin:begin + count]
                filled[k] += count
                begin += count
        each(lambda k: _put_in_order(lines[k]), range(len(lines)))
        for k, value in enumerate(values):
            self._lines[rows, value] = lines[k * self._nodes:(k + 1) * self._nodes]


def _by_rows(kinds: Iterable[Kind]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rows, value in sorted(kinds):
        found.setdefault(rows, []).append(value)
    return found


def _ahead(what: Callable[[pa.RecordBatch], _Result], batches: Iterable[pa.RecordBatch]) -> Iterator[_Result]:
    """The results for batches, of which some are computed while the next ones are read."""
    with ThreadPoolExecutor(cores()) as pool:
        begun = deque[Future[_Result]]()
        for batch in batches:
            begun.append(pool.submit(what, batch))
            if len(begun) > cores():
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def _put_in_order(line: Line) -> None:
    # Batches arrive as they were read, in any order. Most of a line is in order, which a stable sort makes use of.
    if np.any(line[1:] < line[:-1]):
        line.sort(kind="stable")
