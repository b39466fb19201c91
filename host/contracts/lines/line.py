"""Times of events in order: what is near to what is found by merging, not by sorting."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
from hypermon.host.blocks.native import cores

__all__ = ["INNER", "NEVER", "NOTHING", "Gaps", "Ground", "Line", "Lines", "Sieved", "after", "before", "each",
           "gaps_of", "merged", "ranges", "touched"]

#: Times of one kind of events of one node, in picoseconds, in order.
Line = npt.NDArray[np.int64]
#: The line of each node.
Lines = Sequence[Line]
#: The columns of a table of gaps, in order: ``node`` (not of those of all nodes together), ``lo``, ``hi``.
Gaps = Mapping[str, npt.NDArray[Any]]
_Result = TypeVar("_Result")

#: The time of an event that there is not; added to a time that a rule limits, it is still a number of 64 bits.
NEVER = 5 * 10**18
#: Gaps within the recording.
INNER = "cause not in ('start', 'end')"


class Ground(Protocol):
    """What is needed of a :class:`.Trace`: its tables of gaps, and tables that are made of columns."""

    db: duckdb.DuckDBPyConnection

    def give(self, table: str, **columns: npt.NDArray[Any]) -> None:
        """Creates a table. A time that is :data:`NEVER`, or minus that, is null."""

    def gap_rows(self, question: str) -> Gaps:
        """The columns of a query for gaps."""
        ...


@dataclass(frozen=True)
class Sieved:
    """Instances of a rule that are right beyond doubt: how many, and the worst value among them."""

    count: int = 0
    worst: int | None = None

    def __add__(self, other: "Sieved") -> "Sieved":
        worst = [one for one in (self.worst, other.worst) if one is not None]
        return Sieved(self.count + other.count, max(worst) if worst else None)


NOTHING = Sieved()


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
