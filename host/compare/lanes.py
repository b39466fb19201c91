"""What each node did over time, in columns: the two timelines of a page, aligned at an event."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.query import connect
from hypermon.host.compare.estimates import Floats, Ints
from hypermon.host.compare.recording import spent_before
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.contracts.rules import Event
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.errors import HypermonError

__all__ = ["COLUMNS", "LANES", "Lanes", "Timeline", "aligned"]

#: Nodes that are drawn, at most, and columns of a timeline.
LANES, COLUMNS = 64, 400


@dataclass(frozen=True)
class Lanes:
    """Nodes over time, in columns of equal length.

    Parameters
    ----------
    states : the part of each column that a node spent in each state, by node and state.
    items : items of each node in each column.
    lost : columns in which items of a node were lost, one boolean each.
    """

    states: Mapping[int, Mapping[str, Floats]]
    items: Ints
    lost: npt.NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True)
class Timeline:
    """A run to be drawn.

    Parameters
    ----------
    title, names : title of the run, and names of its nodes.
    lanes : its nodes over time, in :data:`COLUMNS` columns.
    low, high : when the first column begins and the last one ends, in picoseconds after the event at which the run is
        aligned.
    """

    title: str
    names: Sequence[str]
    lanes: Lanes
    low: int
    high: int


@dataclass(frozen=True)
class _Span:
    """The extent of a run, and where it is aligned, in picoseconds of its time."""

    origin: int
    start: int
    end: int
    names: Sequence[str]


def aligned(runs: Sequence[DecodedRun], align: str | None = None) -> list[Timeline]:
    """Runs over the same time before and after the first event of a name.

    Parameters
    ----------
    align : a name of the dictionary, ``nibble:V`` or ``event:ID``; None: the start of the recording.

    Raises
    ------
    HypermonError
        if a run has no such event.
    """
    spans = [_span(run, align) for run in runs]
    low, high = min(own.start - own.origin for own in spans), max(own.end - own.origin for own in spans)
    return [Timeline(str(run.given), own.names, _lanes(run, own.origin + low, own.origin + high), low, high)
            for run, own in zip(runs, spans, strict=True)]


def _span(run: DecodedRun, align: str | None) -> _Span:
    with opened_trace(run) as (trace, dictionary):
        start, end = min(own.start for own in trace.nodes), max(own.end for own in trace.nodes)
        names = [dictionary.node_name(node) if dictionary is not None else str(node)
                 for node in range(len(trace.nodes))]
        origin: int | None = start
        if align is not None:
            try:
                source = trace.source(Event(align))
            except ValueError as error:
                raise HypermonError(f"--align {align}: {run.path}: {error}") from None
            [(origin,)] = trace.db.execute(f"select min(time_ps) from ({source.sql})").fetchall()
    if origin is None:
        raise HypermonError(f"--align {align}: {run.path}: it has no such event")
    return _Span(origin, start, end, names)


def _lanes(run: DecodedRun, low: int, high: int) -> Lanes:
    """The nodes of a run from ``low`` to ``high``, in picoseconds of its time."""
    nodes, columns = min(run.info.nodes, LANES), COLUMNS
    edges = low + (np.arange(columns + 1) * ((high - low) / columns)).astype(np.int64)
    widths = np.diff(edges).astype(np.float64)
    states: dict[int, dict[str, Floats]] = {}
    items, lost = np.zeros((nodes, columns), np.int64), np.zeros((nodes, columns), bool)
    with connect(run) as db:
        rows = db.execute(f"select name, node, begin_ps, {known_until('?')} as until from states "
                          f"where node < {nodes} and begin_ps < ? order by name, node", [high, high]).fetchnumpy()
        keys = list(zip(rows["name"], rows["node"].tolist(), strict=True))
        cuts = [0, *(k for k in range(1, len(keys)) if keys[k] != keys[k - 1]), len(keys)]
        for begin, end in pairwise(cuts):
            if begin == end:
                continue
            (name, node), of = keys[begin], slice(begin, end)
            spent = np.diff(spent_before(rows["until"][of].astype(np.int64), edges)
                            - spent_before(rows["begin_ps"][of].astype(np.int64), edges))
            states.setdefault(node, {})[str(name)] = spent / widths
        for node, column, count in db.execute(
                "select node, least(floor((time_ps - $low)::double * $columns / ($high - $low)), $columns - 1)::int, "
                "count(*) from events where node < $nodes and time_ps between $low and $high group by 1, 2",
                {"low": low, "high": high, "columns": columns, "nodes": nodes}).fetchall():
            items[node, column] = count
        for node, since, until in db.execute("select node, from_ps, to_ps from loss where node < ? and to_ps >= ? "
                                             "and from_ps <= ?", [nodes, low, high]).fetchall():
            first, last = np.searchsorted(edges, [max(since, low), min(until, high)], "right") - 1
            lost[node, first:last + 1] = True
    return Lanes(states, items, lost)
