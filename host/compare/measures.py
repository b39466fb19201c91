"""Measures of recordings that are compared: durations of states, latencies, periods, rates, shares, losses."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.query import connect
from hypermon.host.compare.estimates import Floats, Ints, Ratio, Samples
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.contracts.trace import ENDLESS, MANY, Trace
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.errors import HypermonError, InputError

__all__ = ["BLOCKS", "THRESHOLDS", "Measure", "measured", "spent_before"]

#: Blocks of a group of recordings; with as many recordings as :data:`_RUNS`, each is a block.
BLOCKS, _RUNS = 100, 10
#: The limits that samples depend on, by their names in output.
THRESHOLDS = {"blocks": BLOCKS, "runs": _RUNS}
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

    def block(self, times: Ints) -> npt.NDArray[np.uint16]:
        at = (times - self.start) * (self.blocks / (self.end - self.start))
        found: npt.NDArray[np.uint16] = np.clip(at, 0, self.blocks - 1).astype(np.uint16)
        return found


def measured(runs: Sequence[DecodedRun]) -> dict[Measure, Samples | Ratio]:
    """The measures of a group of recordings. Decodes them first if needed.

    Raises
    ------
    HypermonError
        if there is more than memory and disk can hold; InputError if a recording is empty or cannot be read.
    """
    blocks = 1 if len(runs) >= _RUNS else -(-BLOCKS // len(runs))
    try:
        each = [_of_run(run, blocks) for run in runs]
    except duckdb.OutOfMemoryException as error:
        raise HypermonError(f"compare: more memory or disk is needed: {str(error).splitlines()[0]}") from None
    names = dict.fromkeys(name for own in each for name in own)
    return {name: _joined([own.get(name) for own in each], blocks) for name in names}


def _joined(parts: Sequence[Samples | Ratio | None], blocks: int) -> Samples | Ratio:
    """A measure of a group: the blocks of its recordings, one after another."""
    some = [part for part in parts if part is not None]
    if isinstance(some[0], Ratio):
        ratios = [part for part in some if isinstance(part, Ratio)]
        wholes = [float(part.whole.sum()) for part in ratios]
        less, more = (sum(getattr(part, side) * whole for part, whole in zip(ratios, wholes, strict=True)) / sum(wholes)
                      for side in ("less", "more"))
        return Ratio(np.concatenate([part.part for part in ratios]), np.concatenate([part.whole for part in ratios]),
                     less, more)
    found = [(at, part) for at, part in enumerate(parts) if isinstance(part, Samples)]
    return Samples(np.concatenate([part.values for _, part in found]),
                   np.concatenate([part.block + np.uint16(at * blocks) for at, part in found]), blocks * len(parts),
                   sum(part.missing for _, part in found), sum(part.wrong for _, part in found),
                   max(part.slack_ps for _, part in found))


def _of_run(run: DecodedRun, blocks: int) -> dict[Measure, Samples | Ratio]:
    with opened_trace(run) as (trace, dictionary):
        part = _part(run, trace, blocks)
    found: dict[Measure, Samples | Ratio] = {}
    with connect(run) as db:
        lost = db.execute("select from_ps, lost from loss").fetchnumpy()
        found |= _of_events(db, part, dictionary, lost)
        for kind, name in db.execute("select distinct 'duration', name from states union all "
                                     "select distinct 'latency', name from messages order by 1, 2").fetchall():
            found |= _latency(db, part, name) if kind == "latency" else _states(db, part, name)
    return found


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


def _of_events(db: duckdb.DuckDBPyConnection, part: _Part, dictionary: Dictionary | None,
               lost: Mapping[str, npt.NDArray[np.int64]]) -> dict[Measure, Samples | Ratio]:
    """Periods and rates of each event or nibble, and the share of items that were lost."""
    tables = {row[0] for row in db.execute("select view_name from duckdb_views() where not internal").fetchall()}
    columns = {row[0] for row in db.execute("describe events").fetchall()}
    framed = "framed" in tables
    questions = [*(["select time_ps, node, nibble::smallint as kind from events where nibble is not null"]
                   if "nibble" in columns and not framed else []),
                 *([f"select time_ps, node, ({_IDS} + event)::smallint as kind from events where event is not null "
                    "and not aborted"] if "event" in columns else []),
                 *([f"select time_ps, node, ({_IDS} + event)::smallint as kind from framed where not aborted"]
                   if framed else [])]
    seconds = np.diff(part.edges()) / 1e12
    spread = (part.end - part.start) / 1e12
    found: dict[Measure, Samples | Ratio] = {}
    rows = db.execute(" union all ".join(questions)).fetchnumpy() if questions else None
    if rows is not None and len(rows["kind"]):
        for kind, times, gaps in _by_kind(rows["time_ps"], rows["node"].astype(np.int64), rows["kind"]):
            name = _name(kind, dictionary)
            count = np.bincount(part.block(times), minlength=part.blocks).astype(np.float64)
            found[Measure("rate", name)] = Ratio(count, seconds, 1 / spread, (1 + part.lost) / spread)
            found[Measure("period", name)] = Samples(gaps[1], part.block(gaps[0]), part.blocks, 2 * part.lost,
                                                     part.lost, part.slack_ps)
    items = db.execute("select time_ps from events").fetchnumpy()["time_ps"]
    there = np.bincount(part.block(items), minlength=part.blocks).astype(np.float64)
    gone = np.bincount(part.block(lost["from_ps"]), lost["lost"], part.blocks).astype(np.float64)
    if there.sum() + gone.sum():
        found[Measure("lost", "")] = Ratio(gone, there + gone, 0, 1 - gone.sum() / (there + gone).sum()
                                           if part.unsure else 0)
    return found


def _by_kind(times: Ints, nodes: Ints, kinds: npt.NDArray[np.int16]) -> list[tuple[int, Ints, tuple[Ints, Ints]]]:
    """For each kind of event: the times, and the begins and lengths of the intervals between two of one node."""
    if np.any(times[1:] < times[:-1]):
        order = np.argsort(times, kind="stable")
        times, nodes, kinds = times[order], nodes[order], kinds[order]
    most = int(nodes.max()) + 1
    key = kinds.astype(np.int64) * most + nodes
    order = np.argsort(key.astype(np.uint16) if key.max() < 1 << 16 else key, kind="stable")
    times, key = times[order], key[order]
    bounds = np.searchsorted(key, np.arange(int(key[-1]) // most + 2) * most)
    found = []
    for kind in np.flatnonzero(np.diff(bounds)):
        of = slice(bounds[kind], bounds[kind + 1])
        same = key[of][1:] == key[of][:-1]
        found.append((int(kind), times[of], (times[of][:-1][same], np.diff(times[of])[same])))
    return found


def _name(kind: int, dictionary: Dictionary | None) -> str:
    if kind < _IDS:
        return f"nibble:{kind}"
    event = dictionary.by_id.get(kind - _IDS) if dictionary is not None else None
    return event.name if event is not None else f"event:{kind - _IDS}"


def _latency(db: duckdb.DuckDBPyConnection, part: _Part, name: str) -> dict[Measure, Samples | Ratio]:
    """Messages. One that a loss leaves open may have another latency, and counts as missing."""
    rows = db.execute("select sent_ps, latency_ps from messages where name = ? and latency_ps is not null "
                      "and lost_ps is null", [name]).fetchnumpy()
    open_ = db.execute("select count(lost_ps) from messages where name = ?", [name]).fetchall()[0][0]
    return {Measure("latency", name): Samples(rows["latency_ps"], part.block(rows["sent_ps"]), part.blocks,
                                              part.lost + open_, part.lost, part.apart_ps)}


def _states(db: duckdb.DuckDBPyConnection, part: _Part, name: str) -> dict[Measure, Samples | Ratio]:
    """Spans of a state, and their share of the time of the nodes that have it."""
    rows = db.execute(f"select node, begin_ps, {known_until('?')} as until, end_ps is not null as whole "
                      "from states where name = ?", [part.end, name]).fetchnumpy()
    begins, ends, whole = rows["begin_ps"], rows["until"], rows["whole"]
    nodes = np.unique(rows["node"])
    edges = part.edges()
    spent = np.diff(spent_before(ends, edges) - spent_before(begins, edges))
    total = len(nodes) * float(part.end - part.start)
    off = (2 * len(begins) * part.slack_ps + _unknown(part, rows["node"], begins, ends)) / total
    return {Measure("duration", name): Samples((ends - begins)[whole], part.block(begins[whole]), part.blocks,
                                               part.lost, part.lost, part.slack_ps),
            Measure("share", name): Ratio(spent, np.diff(edges) * float(len(nodes)), off, off)}


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
