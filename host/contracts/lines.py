"""Times of events in memory, in the order of time for each node: then neighbours are found by merging, not by sorting.

A *line* is the times of one kind of events of one node, in picoseconds, in order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
from hypermon.host.blocks.native import cores

__all__ = ["NEVER", "NOTHING", "Gaps", "Kind", "Line", "LineStore", "Lines", "Sieved", "after", "before", "each",
           "gaps_of", "merged", "ranges", "touched"]

Line = npt.NDArray[np.int64]
#: The line of each node.
Lines = Sequence[Line]
#: The events of a rule: a query for rows (``time_ps``, ``node``, ``value``), and the value of those that are meant.
Kind = tuple[str, int]
#: The columns of a table of gaps, in order: ``node`` (not of those of all nodes together), ``lo``, ``hi``.
Gaps = Mapping[str, npt.NDArray[Any]]
_Result = TypeVar("_Result")

#: The time of an event that there is not; added to a time that a rule limits, it is still a number of 64 bits.
NEVER = 5 * 10**18
#: Times that are in memory, at most: 8 bytes each.
_MOST = 1 << 27
_BATCH = 1 << 20


@dataclass(frozen=True)
class Sieved:
    """Instances of a rule that are right beyond doubt: how many, and the worst value among them."""

    count: int = 0
    worst: int | None = None

    def __add__(self, other: "Sieved") -> "Sieved":
        worst = [one for one in (self.worst, other.worst) if one is not None]
        return Sieved(self.count + other.count, max(worst) if worst else None)


NOTHING = Sieved()


class LineStore:
    """Lines of the events that rules name. Each kind of events is read once, if all fit into memory.

    Parameters
    ----------
    db : has the tables that the queries name.
    nodes : number of nodes of the trace.
    rules : for each rule that may ask for lines, the kinds of its events, in the order in which they will be asked for.
    most : times in memory.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, nodes: int, rules: Iterable[Sequence[Kind]], most: int = _MOST):
        self._db, self._nodes, self._most = db, nodes, most
        self._later = deque(tuple(kinds) for kinds in rules)
        self._lines: dict[Kind, Lines] = {}
        self._counts = self._counted({kind for kinds in self._later for kind in kinds})

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
        number = np.zeros(max(values) + 1, np.uint16)
        number[values] = np.arange(len(values)) * self._nodes
        counts = np.concatenate([self._counts[rows, value] for value in values])
        ends = np.cumsum(counts)
        # A buffer for each kind, so that the memory of one that is no longer needed is free again.
        lines = [line for value in values for line in np.split(
            np.empty(int(self._counts[rows, value].sum()), np.int64), np.cumsum(self._counts[rows, value])[:-1])]
        filled = np.zeros(len(ends), np.int64)
        self._db.complete()     # what was executed before, whose result nobody has asked for
        batches = self._db.sql(f"select time_ps, node, value from ({rows}) where value in "
                               f"({', '.join(map(str, values))})").to_arrow_reader(_BATCH)
        for batch in batches:
            time, node, value = (batch.column(k).to_numpy(zero_copy_only=False) for k in range(3))
            code = number[value] + node.astype(np.uint16)
            time = time[np.argsort(code, kind="stable")]
            begin = 0
            for k, count in enumerate(np.bincount(code, minlength=len(ends)).tolist()):
                lines[k][filled[k]:filled[k] + count] = time[begin:begin + count]
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


def _put_in_order(line: Line) -> None:
    # Batches arrive as they were read, in any order. Most of a line is in order, which a stable sort makes use of.
    if np.any(line[1:] < line[:-1]):
        line.sort(kind="stable")


def each(what: Callable[[int], _Result], nodes: Iterable[int]) -> list[_Result]:
    """The results for all nodes, computed on all cores: NumPy works without Python's lock."""
    nodes = list(nodes)
    if cores() < 2 or len(nodes) < 2:
        return [what(node) for node in nodes]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(what, nodes))


def merged(lines: Lines) -> Line:
    """The times of all nodes in one line."""
    return np.sort(np.concatenate([np.empty(0, np.int64), *lines]), kind="stable")


def after(line: Line, times: Line) -> Line:
    """For each of some times, the first of the line that is not earlier; :data:`NEVER` if there is none."""
    return _at(line, np.searchsorted(line, times), NEVER)


def before(line: Line, times: Line) -> Line:
    """For each of some times, the last of the line that is not later; minus :data:`NEVER` if there is none."""
    found = np.searchsorted(line, times, "right")
    found -= 1
    return _at(line, found, -NEVER)


def _at(line: Line, places: npt.NDArray[np.intp], default: int) -> Line:
    if not len(line):
        return np.full(len(places), default, np.int64)
    found = line.take(places, mode="clip")
    found[places == (len(line) if default > 0 else -1)] = default
    return found


def ranges(begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """All numbers that are in one of some ranges; both their begins and their ends rise."""
    begins = np.maximum(begins, np.concatenate(([0], np.maximum.accumulate(ends)[:-1])))[:len(ends)]
    sizes = np.maximum(ends - begins, 0)
    firsts = np.cumsum(sizes) - sizes
    return np.repeat(begins - firsts, sizes) + np.arange(int(sizes.sum()))


def touched(since: Line, until: Line, gaps: tuple[Line, Line]) -> npt.NDArray[np.int64]:
    """Which intervals a gap touches. Both ends of the intervals rise, and so do both ends of the gaps."""
    lo, hi = gaps
    return ranges(np.searchsorted(until, lo), np.searchsorted(since, hi, "right"))


def gaps_of(rows: Gaps, node: int | None = None) -> tuple[Line, Line]:
    """The two ends of gaps; only those of one node, if it is given."""
    if node is None:
        return rows["lo"], rows["hi"]
    mine = rows["node"] == node
    return rows["lo"][mine], rows["hi"][mine]
