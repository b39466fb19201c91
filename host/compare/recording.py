"""Measures of one recording: each is read from its tables when it is asked for."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.query import connect
from hypermon.host.compare.estimates import Floats, Ints, Ratio, Samples
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.contracts.lines.line import Lines
from hypermon.host.contracts.lines.store import LineStore
from hypermon.host.contracts.trace import ENDLESS, MANY, Trace
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.errors import InputError

__all__ = ["Measure", "Recording", "spent_before"]

#: Numbers of ids in a table of events, after those of nibbles.
_IDS = 256


class Measure(NamedTuple):
    """What is measured: ``kind`` is ``latency``, for instance, and ``name`` that of the message."""

    kind: str
    name: str


@dataclass(frozen=True)
class _Part:
    """A recording of a group: its blocks of time.

    Parameters
    ----------
    lost : how many items may be missing; infinite: not known. ``unsure``: the number of items is not known, not only
        that of events that were framed from them. ``gaps``: node, from, to of each loss.
    slack_ps, apart_ps : by how much differences of times may be off: those of one node, and those of two.
    """

    start: int
    end: int
    blocks: int
    lost: float
    unsure: bool
    gaps: Ints
    slack_ps: float
    apart_ps: float

    def edges(self) -> Ints:
        return self.start + (np.arange(self.blocks + 1) * ((self.end - self.start) / self.blocks)).astype(np.int64)

    def block_sql(self, time: str) -> str:
        """The block of a time, as SQL."""
        return (f"greatest(least(floor(({time} - {self.start})::double * {self.blocks / (self.end - self.start)!r}), "
                f"{self.blocks - 1}), 0)::int")

    def block(self, times: Ints) -> npt.NDArray[np.uint16]:
        at = (times - self.start) * (self.blocks / (self.end - self.start))
        found: npt.NDArray[np.uint16] = np.clip(at, 0, self.blocks - 1).astype(np.uint16)
        return found


class Recording:
    """A recording of a group.

    Parameters
    ----------
    run : is decoded if needed.
    blocks : blocks of time into which it is divided.

    Attributes
    ----------
    sizes : how many events there are of each name.
    spans : the names of states, and those of messages, each as a measure.
    ratios : the share of lost items, and the rates and shares of what has been read.

    Raises
    ------
    InputError
        if the recording is empty, or cannot be read.
    """

    def __init__(self, run: DecodedRun, blocks: int) -> None:
        self._run = run
        with opened_trace(run) as (trace, dictionary):
            self._part = _part(run, trace, blocks)
        with connect(run) as db:
            self._rows = _rows(db)
            self._counts = self._counted(db)
            self.ratios = _lost(db, self._part)
            self.spans = [Measure(kind, name) for kind, name in db.execute(
                "select distinct 'duration', name from states union all "
                "select distinct 'latency', name from messages order by 1, 2").fetchall()]
        self._kinds = {_name(kind, dictionary): kind for kind in sorted(self._counts)}
        self.sizes = {name: int(self._counts[kind].sum()) for name, kind in self._kinds.items()}

    def _counted(self, db: duckdb.DuckDBPyConnection) -> dict[int, Ints]:
        """How many events of each kind each node has."""
        if not self._rows:
            return {}
        rows = db.execute(f"select value, node, count(*) from ({self._rows}) group by all").fetchall()
        self._nodes = max((node for _, node, _ in rows), default=0) + 1
        found: dict[int, Ints] = {}
        for kind, node, count in rows:
            found.setdefault(kind, np.zeros(self._nodes, np.int64))[node] = count
        return found

    def periods(self, names: Iterable[str]) -> dict[str, Samples]:
        """The intervals between two events of one node, of each name that there is. Their rates become ratios."""
        mine = {name: self._kinds[name] for name in names if name in self._kinds}
        if not mine:
            return {}
        kinds = [(self._rows, kind) for kind in mine.values()]
        counts = {(self._rows, kind): self._counts[kind] for kind in mine.values()}
        with connect(self._run) as db:
            lines = LineStore(db, self._nodes, [kinds], sum(map(self.sizes.__getitem__, mine)), counts).get(kinds)
        assert lines is not None
        found, part, edges = {}, self._part, self._part.edges()
        seconds, spread = np.diff(edges) / 1e12, (part.end - part.start) / 1e12
        for name in mine:
            own = lines.pop(0)          # this memory is no longer needed afterwards
            there = np.sum([np.diff(_cuts(line, edges)) for line in own], axis=0).astype(np.float64)
            self.ratios[Measure("rate", name)] = Ratio(there, seconds, 1 / spread, (1 + part.lost) / spread)
            found[name] = Samples.of_blocks(*_intervals(own, edges), missing=2 * part.lost, wrong=part.lost,
                                            slack_ps=part.slack_ps)
        return found

    def ratio(self, measure: Measure) -> Ratio | None:
        """A rate, a share, or the share of lost items, if there is one."""
        if measure.kind == "share" and measure not in self.ratios and Measure("duration", measure.name) in self.spans:
            self.durations(measure.name)
        if measure.kind == "rate" and measure not in self.ratios:
            self.periods([measure.name])
        return self.ratios.get(measure)

    def latencies(self, name: str) -> Samples:
        """Messages. One that a loss leaves open may have another latency, and counts as missing."""
        part = self._part
        with connect(self._run) as db:
            rows = db.execute("select sent_ps, latency_ps from messages where name = ? and latency_ps is not null "
                              "and lost_ps is null", [name]).fetchnumpy()
            open_ = db.execute("select count(lost_ps) from messages where name = ?", [name]).fetchall()[0][0]
        return Samples.of(rows["latency_ps"], part.block(rows["sent_ps"]), part.blocks, missing=part.lost + open_,
                          wrong=part.lost, slack_ps=part.apart_ps)

    def durations(self, name: str) -> Samples:
        """Spans of a state. Their share of the time of the nodes that have it becomes one of the ratios."""
        part = self._part
        with connect(self._run) as db:
            rows = db.execute(f"select node, begin_ps, {known_until('?')} as until, end_ps is not null as whole "
                              "from states where name = ?", [part.end, name]).fetchnumpy()
        begins, ends, whole = rows["begin_ps"], rows["until"], rows["whole"]
        nodes = np.unique(rows["node"])
        edges = part.edges()
        spent = np.diff(spent_before(ends, edges) - spent_before(begins, edges))
        total = len(nodes) * float(part.end - part.start)
        off = (2 * len(begins) * part.slack_ps + _unknown(part, rows["node"], begins, ends)) / total
        self.ratios[Measure("share", name)] = Ratio(spent, np.diff(edges) * float(len(nodes)), off, off)
        return Samples.of((ends - begins)[whole], part.block(begins[whole]), part.blocks, missing=part.lost,
                          wrong=part.lost, slack_ps=part.slack_ps)


def _part(run: DecodedRun, trace: Trace, blocks: int) -> _Part:
    start, end = min(own.start for own in trace.nodes), max(own.end for own in trace.nodes)
    if end <= start:
        raise InputError(run.path, None, "nothing was recorded: there is nothing to compare")
    framed = trace.db.execute("select count(*) from gaps where framed").fetchone() != (0,)
    known = "cause <> 'masked'" if framed else "cause <> 'masked' and framed is distinct from true"
    rows = trace.db.execute(f"select node, lo, hi, n from gaps where {known} and hi >= lo").fetchnumpy()
    slack, apart = trace.slack(True), trace.slack(False)
    total = int(rows["n"].sum(dtype=object)) if len(rows["n"]) else 0
    unsure = trace.db.execute(f"select count(*) from gaps where n >= {MANY} and framed is distinct from true and "
                              "hi >= lo").fetchone() != (0,) or not trace.sure
    unknown = total >= MANY or unsure
    return _Part(start, end, blocks, math.inf if unknown else total, unsure,
                 np.stack([rows[name].astype(np.int64) for name in ("node", "lo", "hi")]),
                 slack, math.inf if apart >= ENDLESS else apart)


def _rows(db: duckdb.DuckDBPyConnection) -> str:
    """A query for the times, nodes and kinds of all events and nibbles; empty if there can be none."""
    tables = {row[0] for row in db.execute("select view_name from duckdb_views() where not internal").fetchall()}
    columns = {row[0] for row in db.execute("describe events").fetchall()}
    framed = "framed" in tables
    return " union all ".join([
        *(["select time_ps, node, nibble::smallint as value from events where nibble is not null"]
          if "nibble" in columns and not framed else []),
        *([f"select time_ps, node, ({_IDS} + event)::smallint as value from events where event is not null "
           "and not aborted"] if "event" in columns else []),
        *([f"select time_ps, node, ({_IDS} + event)::smallint as value from framed where not aborted"]
          if framed else [])])


def _lost(db: duckdb.DuckDBPyConnection, part: _Part) -> dict[Measure, Ratio]:
    """The share of items that were lost."""
    there, gone = np.zeros(part.blocks), np.zeros(part.blocks)
    for counts, question in ((there, "count(*) from events"), (gone, "sum(lost) from loss")):
        time = "time_ps" if counts is there else "from_ps"
        for block, count in db.execute(
                f"select {part.block_sql(time)}, {question} group by 1").fetchall():
            counts[block] = count
    total = there.sum() + gone.sum()
    if not total:
        return {}
    return {Measure("lost", ""): Ratio(gone, there + gone, 0, 1 - gone.sum() / total if part.unsure else 0)}


def _cuts(line: Ints, edges: Ints) -> Ints:
    """The number of the first time of each block, and the number of times."""
    return np.concatenate([[0], np.searchsorted(line, edges[1:-1]), [len(line)]])


def _intervals(lines: Lines, edges: Ints) -> tuple[Ints, Ints]:
    """The intervals of all lines, block by block in which they begin, and the start of each block."""
    gaps, cuts = [np.diff(line) for line in lines], [_cuts(line[:-1], edges) for line in lines]
    values = np.concatenate([np.empty(0, np.int64), *(gap[cut[k]:cut[k + 1]] for k in range(len(edges) - 1)
                                                      for gap, cut in zip(gaps, cuts, strict=True))])
    return values, np.sum(cuts, axis=0)


def _name(kind: int, dictionary: Dictionary | None) -> str:
    if kind < _IDS:
        return f"nibble:{kind}"
    event = dictionary.by_id.get(kind - _IDS) if dictionary is not None else None
    return event.name if event is not None else f"event:{kind - _IDS}"


def spent_before(times: Ints, edges: Ints) -> Floats:
    """The sum of ``min(time, edge)`` for each edge, relative to the first."""
    ordered = np.sort(times) - edges[0]
    sums = np.concatenate([[0.0], np.cumsum(ordered, dtype=np.float64)])
    at = np.searchsorted(ordered, edges - edges[0])
    found: Floats = sums[at] + (len(ordered) - at) * (edges - edges[0]).astype(np.float64)
    return found


def _unknown(part: _Part, nodes: Ints, begins: Ints, ends: Ints) -> float:
    """The time in which a lost begin or end may have been: for each loss, from the edge before it to the next one."""
    if math.isinf(part.lost):
        return math.inf
    total = 0.0
    for node in np.unique(part.gaps[0]):
        low, high = part.gaps[1:, part.gaps[0] == node]
        edges = np.sort(np.concatenate([[part.start], begins[nodes == node], ends[nodes == node], [part.end]]))
        before = edges[np.maximum(np.searchsorted(edges, low) - 1, 0)]
        after = edges[np.minimum(np.searchsorted(edges, high, "right"), len(edges) - 1)]
        total += float((after - before).sum())
    return total
