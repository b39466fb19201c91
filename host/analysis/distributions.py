"""Distributions of a run's items: rates, bursts, gaps, sharing, in one pass and in constant memory."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.stats import extent, stats
from hypermon.host.decode.decoded_run import DecodedRun

__all__ = ["GAP_BINS", "GAP_OCTAVES", "INTERVALS", "Burst", "Distributions", "Gaps", "distributions",
           "distributions_of"]

#: Intervals of rates over time, as in the paper's Figures 10 to 13; and of the timeline.
INTERVALS, TIMELINE = 100, 480
#: Milliseconds of which volumes are kept one by one; in a longer run they are merged.
_SLOTS = 20_000
#: Rates at which a buffer might be drained: from the mean rate to a thousand times that.
_RATES = 19
#: Bins of gaps per doubling: a percentile is exact to 1.1 %.
GAP_BINS, GAP_OCTAVES = 64, 64

#: The time of a node's last event before its first.
_NEVER = np.iinfo(np.int64).min

_Counts = npt.NDArray[np.int64]


class Burst(NamedTuple):
    """A buffer of ``depth`` events, drained at ``rate`` events a second, would have lost nothing."""

    rate: float
    depth: int


class Gaps:
    """Times between consecutive events, in bins that grow.

    Members
    -------
    counts : bin k begins at ``2 ** (k / GAP_BINS)`` picoseconds. ``zeros``: gaps of 0.
    most : the longest gap in each bin, so that percentiles are gaps that occurred.
    longest : in picoseconds.
    """

    def __init__(self, counts: _Counts | None = None, most: _Counts | None = None) -> None:
        self.counts = np.zeros(GAP_OCTAVES * GAP_BINS, np.int64) if counts is None else counts
        self.most = np.zeros(GAP_OCTAVES * GAP_BINS, np.int64) if most is None else most
        self.zeros = self.longest = 0
        self._last: int | None = None

    def add(self, times: _Counts) -> None:
        """The next events, in order of time."""
        if len(times) == 0:
            return
        gaps = np.diff(times) if self._last is None else np.diff(times, prepend=np.int64(self._last))
        self._last = int(times[-1])
        some = gaps[gaps > 0]
        self.zeros += len(gaps) - len(some)
        if len(some):
            self.longest = max(self.longest, int(some.max()))
            bins = _bins(some)
            self.counts += np.bincount(bins, minlength=len(self.counts))
            np.maximum.at(self.most, bins, some)

    @property
    def total(self) -> int:
        return self.zeros + int(self.counts.sum())

    def percentile(self, share: float) -> int:
        """In picoseconds, a gap that occurred; ``share`` is 0 to 100. Exact where a bin has gaps of one length."""
        wanted = share / 100 * self.total - self.zeros
        if self.total == 0 or wanted <= 0:
            return 0
        return int(self.most[np.searchsorted(np.cumsum(self.counts), wanted)])


class _NodeGaps:
    """:class:`Gaps` of every node, added to for all nodes at once: the time does not depend on their number."""

    def __init__(self, nodes: int):
        shape = nodes, GAP_OCTAVES * GAP_BINS
        self._counts, self._most = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._zeros, self._longest = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        self._last = np.full(nodes, _NEVER)

    def add(self, times: _Counts, node: _Counts) -> None:
        """The next events, in order of time."""
        order = np.argsort(node.astype(np.int16), kind="stable")
        node, times = node[order], times[order]
        first = np.flatnonzero(np.diff(node, prepend=-1))
        before = np.roll(times, 1)
        before[first] = self._last[node[first]]
        last = np.append(first[1:], len(node)) - 1
        self._last[node[last]] = times[last]
        known = before != _NEVER
        node, gaps = node[known], (times - before)[known]
        some = gaps > 0
        self._zeros += np.bincount(node[~some], minlength=len(self._zeros))
        node, gaps = node[some], gaps[some]
        places = node * self._counts.shape[1] + _bins(gaps)
        _count(self._counts, places)
        np.maximum.at(self._most.reshape(-1), places, gaps)
        np.maximum.at(self._longest, node, gaps)

    def finish(self) -> list[Gaps]:
        found = []
        for counts, most, zeros, longest in zip(self._counts, self._most, self._zeros, self._longest, strict=True):
            found.append(Gaps(counts, most))
            found[-1].zeros, found[-1].longest = int(zeros), int(longest)
        return found


def _bins(gaps: _Counts) -> _Counts:
    return (np.log2(gaps.astype(np.float64)) * GAP_BINS).astype(np.int64)


def _count(table: _Counts, places: _Counts) -> None:
    """Adds one at each of the places of a table, which may be much larger than their number."""
    if table.size <= len(places):
        table += np.bincount(places, minlength=table.size).reshape(table.shape)
    else:
        np.add.at(table.reshape(-1), places, 1)


@dataclass
class Distributions:
    """The result of :func:`distributions_of`.

    Parameters
    ----------
    duration_ps : of the run, or the part of it that exists.
    rates : events of every node in each of ``INTERVALS`` intervals.
    timeline : the same in ``TIMELINE``.
    volumes : events in each slot of ``slot_ms`` milliseconds.
    shared : number of times with 1, 2, ... events; index 0 is unused.
    bursts : by rate; the lowest rate is the mean.
    gaps : between the events of the run, and of every node.
    """

    duration_ps: int
    rates: _Counts
    timeline: _Counts
    slot_ms: int
    volumes: _Counts
    shared: _Counts
    bursts: list[Burst]
    gaps: Gaps
    node_gaps: list[Gaps]

    @property
    def busiest(self) -> list[tuple[int, int]]:
        """The fullest ten slots: where each begins, in milliseconds, and its events."""
        order = np.argsort(-self.volumes, kind="stable")[:10]
        return [(int(slot) * self.slot_ms, int(self.volumes[slot])) for slot in order if self.volumes[slot]]


class _Backlogs:
    """How full a buffer would have been, drained at each of the given rates.

    Parameters
    ----------
    rates : events per second.
    losses : time and number of lost items, in order: these would have had to be buffered, too.
    """

    def __init__(self, rates: npt.NDArray[np.float64], losses: _Counts):
        self._rates = rates
        self._losses = losses
        self._came = 0
        self._least = np.full(len(rates), np.inf)
        self._most = np.zeros(len(rates))

    def add(self, times: _Counts) -> None:
        due = int(np.searchsorted(self._losses[:, 0], times[-1], side="right"))
        lost, self._losses = self._losses[:due], self._losses[due:]
        places = np.searchsorted(times, lost[:, 0])
        counts = np.insert(np.ones(len(times), np.int64), places, lost[:, 1])
        self._add(np.insert(times, places, lost[:, 0]), counts)

    def _add(self, times: _Counts, counts: _Counts) -> None:
        after = self._came + np.cumsum(counts)
        if len(after) == 0:
            return
        self._came = int(after[-1])
        for k, rate in enumerate(self._rates / 1e12):
            # Arrivals minus drained; a buffer that has run empty drains nothing.
            level = after - rate * times
            least = np.minimum(np.minimum.accumulate(level - counts), self._least[k])
            self._most[k] = max(self._most[k], float((level - least).max()))
            self._least[k] = least[-1]

    def finish(self) -> list[Burst]:
        self._add(self._losses[:, 0], self._losses[:, 1])
        return [Burst(float(rate), max(math.ceil(most), 1)) for rate, most in zip(self._rates, self._most, strict=True)]


class _Shared:
    """How many events have the same time."""

    def __init__(self, nodes: int):
        self.counts = np.zeros(nodes + 1, np.int64)
        self._last: int | None = None
        self._open = 0

    def add(self, times: _Counts) -> None:
        bounds = np.flatnonzero(np.diff(times)) + 1
        sizes = np.diff(np.concatenate([[0], bounds, [len(times)]]))
        if self._last is not None and int(times[0]) == self._last:
            sizes[0] += self._open
        elif self._open:
            self._count(np.array([self._open]))
        self._count(sizes[:-1])
        self._last, self._open = int(times[-1]), int(sizes[-1])

    def _count(self, sizes: _Counts) -> None:
        # Items of several nibbles can be of one node and time.
        self.counts += np.bincount(sizes.clip(max=len(self.counts) - 1), minlength=len(self.counts))

    def finish(self) -> _Counts:
        if self._open:
            self._count(np.array([self._open]))
        return self.counts


def distributions_of(run: DecodedRun) -> Distributions:
    """Reads all events of a RUN, once."""
    figures = stats(run)
    begins, end = extent(run, run.decode())
    loss = run.loss()
    losses = np.stack([loss["from_ps"].to_numpy() - begins, loss["lost"].to_numpy()], axis=1)
    return distributions(run.batches(columns=["time_ps", "node"]), run.info.nodes, end - begins, figures["events"],
                         losses[np.argsort(losses[:, 0], kind="stable")], begins)


def distributions(batches: Iterable[pa.RecordBatch], nodes: int, duration_ps: int, events: int, losses: _Counts,
                  begins_ps: int = 0) -> Distributions:
    """The distributions of a run's events.

    Parameters
    ----------
    batches : ``time_ps`` and ``node``, in order of time.
    nodes : of the board.
    duration_ps, events : of the run.
    losses : of shape (losses, 2): when, from the beginning on, in order, and how many.
    begins_ps : when the run begins; times in the result are from there on.
    """
    slot_ms = max(1, math.ceil(duration_ps / 1e9 / _SLOTS))
    slots = int(duration_ps // (slot_ms * 10**9)) + 1
    mean = max(events, 1) / (duration_ps / 1e12)
    backlogs, shared = _Backlogs(mean * np.logspace(0, 3, _RATES), losses), _Shared(nodes)
    found = Distributions(
        duration_ps, np.zeros((nodes, INTERVALS), np.int64), np.zeros((nodes, TIMELINE), np.int64), slot_ms,
        np.zeros(slots, np.int64), shared.counts, [], Gaps(), [])
    node_gaps = _NodeGaps(nodes)
    for times, node in _columns(batches, begins_ps):
        within = np.clip(times, 0, duration_ps - 1)
        for table, parts in ((found.rates, INTERVALS), (found.timeline, TIMELINE)):
            place = node * parts + (within / duration_ps * parts).astype(np.int64).clip(0, parts - 1)
            _count(table, place)
        found.volumes += np.bincount(within // (slot_ms * 10**9), minlength=slots)
        backlogs.add(times)
        shared.add(times)
        found.gaps.add(times)
        node_gaps.add(times, node)
    found.node_gaps = node_gaps.finish()
    found.bursts = backlogs.finish()
    shared.finish()
    return found


def _columns(batches: Iterable[pa.RecordBatch], begins_ps: int) -> Iterator[tuple[_Counts, _Counts]]:
    for batch in batches:
        if len(batch):
            yield batch["time_ps"].to_numpy() - begins_ps, batch["node"].to_numpy().astype(np.int64)
