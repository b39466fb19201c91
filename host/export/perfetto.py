"""A run as a trace for Perfetto (ui.perfetto.dev): tracks, slices, instants, counters.

Each node is a track. With a dictionary, spans that events begin and end are slices, all other events are instants,
counted fields are counters, and a message is a flow, an arrow. Without one, every item is an instant. A loss is a slice
on the node's track, from before the first lost item until after the last.

In a run of several boards, the nodes of a board are below a track of the board. If the time of the run is tied to UTC,
the trace says so, and Perfetto can show it beside traces of other machines; see :func:`manifest`.

Perfetto's time is whole nanoseconds from 0 on. Picoseconds are rounded down, and the few events before time 0 (a strobe
within the board's latency of the start) are placed at 0.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.errors import InputError
from hypermon.host.export.brackets import Bracket, Span, brackets
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.items import ended_ps
from hypermon.host.export.packets.writer import BEGIN, END, INSTANT, NODE_STRIDE, TraceWriter
from hypermon.host.export.sinks import sink
from hypermon.host.export.tracks import NO_FLOW as _NO_FLOW
from hypermon.host.export.tracks import PLAIN, Flow, NamedSpan, Point, Tracks, plain, tracks_of
from hypermon.host.recording.clock import WallClock
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection
from hypermon.host.text.numbers import counted

__all__ = ["Group", "MANIFEST", "PERFETTO", "manifest", "write_trace"]

#: Tracks: the run's; those of boards; then for every node its own and those below it.
_ROOT, _BOARDS = 1, 2
_COUNTERS = 1 << 15
#: Rows whose packets are made at once: their bytes should stay in a core's cache.
_ROWS = 1 << 13


@dataclass(frozen=True)
class Group:
    """A board's track: ``name``, and which nodes are below it."""

    name: str
    first_node: int
    nodes: int


def manifest(trace: str, machine: str) -> bytes:
    """A trace manifest, which lets Perfetto merge a trace with those of other machines by UTC.

    Parameters
    ----------
    trace : name of the trace's file in an archive that contains it, the manifest, and the other machines' traces.
    machine : name under which Perfetto shows the trace. It must differ from the other machines': each has its own
        clocks.
    """
    files = [{"path": trace, "machine": {"name": machine}}]
    # A reader knows a manifest by this first member.
    return (json.dumps({"perfetto_manifest": {"version": 1, "files": files}}, indent=2) + "\n").encode()

def write_trace(file: IO[bytes], tracks: Tracks, outages: list[list[LossSpan]], *, title: str = "hypermon",
                duration_ps: int | None = None, nodes: Sequence[int] | None = None, boards: Sequence[Group] = (),
                clock: WallClock | None = None) -> None:
    """Writes a Perfetto trace. Memory does not grow with the run.

    Parameters
    ----------
    outages : of all nodes; every node gets a track, or those of ``nodes``.
    title : of the whole trace.
    duration_ps : of the run, from time 0.
    boards : of the run, if it has several.
    clock : UTC of the run's time, if it was measured.

    Raises
    ------
    HypermonError
        if the package ``perfetto`` is not installed.
    """
    writer = TraceWriter(file)
    if clock is not None:
        for time_ps in sorted({0, duration_ps or 0}):
            writer.tie(_ns(time_ps), int(clock.utc(time_ps).astype("int64")))
    writer.track(_ROOT, title)
    parents: dict[int, int] = {}
    for number, board in enumerate(boards):
        own_nodes = range(board.first_node, board.first_node + board.nodes)
        if nodes is None or not set(nodes).isdisjoint(own_nodes):
            writer.track(_BOARDS + number, board.name, _ROOT, number)
            parents |= dict.fromkeys(own_nodes, _BOARDS + number)
    if duration_ps is not None:
        writer.event(_ROOT, BEGIN, 0, "recording")
        writer.event(_ROOT, END, _ns(duration_ps))
    for node, own in enumerate(outages):
        if nodes is not None and node not in nodes:
            continue
        _Node(writer, node, own, tracks, parents.get(node, _ROOT)).write()
    if tracks.dictionary is None:
        for batch in tracks.plain_batches():
            _write_plain(writer, batch)
    writer.flush()


def _write_plain(writer: TraceWriter, batch: pa.RecordBatch) -> None:
    """Items without a dictionary, as instants of their nodes: whole ones many at once, aborted ones one by one."""
    nothing = pa.nulls(len(batch), pa.uint8())
    nibble, word, event, payload, aborted = (batch[name] if name in batch.column_names else nothing
                                             for name in ("nibble", "word", "event", "payload", "aborted"))
    cut = pc.fill_null(aborted.cast(pa.bool_()), False)
    events = pc.and_(pc.and_not(pc.is_valid(event), cut), pc.is_valid(payload))
    words = pc.and_not(pc.and_not(pc.is_valid(word), cut), pc.is_valid(event))
    nibbles = pc.and_not(pc.and_not(pc.and_not(pc.is_valid(nibble), cut), pc.is_valid(event)), pc.is_valid(word))
    times = np.maximum(batch["time_ps"].to_numpy() // 1000, 0)
    nodes = batch["node"].to_numpy().astype(np.int64)

    def rows(chosen: pa.BooleanArray) -> npt.NDArray[np.int64]:
        return np.flatnonzero(chosen.to_numpy(zero_copy_only=False))

    if len(own := rows(nibbles)):
        writer.instants(times[own], nodes[own], nibble.take(own).to_numpy(),
                        [f"nibble {value}" for value in range(1 << 8)])
    if len(own := rows(words)):
        values = word.take(own).to_numpy().astype(np.int64)
        writer.numbers(times[own], nodes[own], "word", "word", values)
    if len(own := rows(events)):
        writer.texts(times[own], nodes[own], event.take(own).to_numpy(), [f"event {value}" for value in range(1 << 8)],
                     "payload", payload.take(own).cast(pa.binary()))
    for row in batch.take(rows(pc.invert(pc.or_(pc.or_(nibbles, words), events)))).to_pylist():
        name, said = plain({key: row.get(key) for key in PLAIN})
        writer.event((row["node"] + 1) * NODE_STRIDE, INSTANT, _ns(row["time_ps"]), name, said)


def _flows(flow: Flow) -> tuple[list[int], list[int]]:
    """The numbers of the messages that an event sends and receives."""
    return [message.number for message in flow.sent], [message.number for message in flow.received]


def _ns(time_ps: int) -> int:
    return max(time_ps // 1000, 0)


class _Node:
    """The tracks of one node."""

    def __init__(self, writer: TraceWriter, number: int, outages: list[LossSpan], tracks: Tracks,
                 parent: int):
        self._writer, self._number, self._outages, self._tracks = writer, number, outages, tracks
        self._track, self._parent = (number + 1) * NODE_STRIDE, parent
        self._name = f"node {number}" if tracks.dictionary is None else tracks.dictionary.node_name(number)

    def write(self) -> None:
        self._writer.track(self._track, self._name, self._parent, self._number)
        lost = [(Span(f"lost {counted(lost, 'item')}", _ns(from_ps), _ns(to_ps)), None)
                for lost, from_ps, to_ps in self._outages]
        rows = 1
        for bracket in brackets(self._spans(), lost):
            track = self._track + bracket.row
            if bracket.row >= rows:
                self._writer.track(track, f"{self._name} ({bracket.row + 1})", self._track, bracket.row)
                rows += 1
            self._bracket(track, bracket)
        if self._tracks.dictionary is not None:
            self._points(self._tracks.dictionary)
        self._counters()

    def _points(self, dictionary: Dictionary) -> None:
        """Items of the dictionary that neither send nor receive, many at once; all others one by one."""
        for batch in self._tracks.item_batches(self._number):
            for at in range(0, len(batch), _ROWS):
                self._items(dictionary, batch.slice(at, _ROWS))
        for point in self._tracks.logs(self._number):
            self._point(point)

    def _items(self, dictionary: Dictionary, batch: pa.RecordBatch) -> None:
        numbers = pc.fill_null(batch["event"].cast(pa.int64()), -1).to_numpy()
        alone = pc.and_(pc.and_(pc.is_null(batch["sent"]), pc.is_null(batch["received"])),
                        pc.invert(pc.fill_null(batch["aborted"], False))).to_numpy(zero_copy_only=False)
        known = alone & np.isin(numbers, list(dictionary.by_id))
        rows = np.flatnonzero(known)
        if len(rows):
            of_kind = numbers[rows]
            kinds = []
            for number in np.unique(of_kind).tolist():
                kind, own = dictionary.by_id[number], np.flatnonzero(of_kind == number)
                columns = [(field.name, batch[dictionary.columns[kind.name, field.name]].take(rows[own]))
                           for field in kind.fields]
                kinds.append((own, kind.name, columns))
            self._writer.events(self._track, np.maximum(batch["time_ps"].to_numpy()[rows] // 1000, 0), kinds)
        for row in batch.take(np.flatnonzero(~known)).to_pylist():
            self._point(self._tracks.point(row))

    def _point(self, point: Point) -> None:
        self._writer.event(self._track, INSTANT, _ns(point.time_ps), point.name, point.values, flows=_flows(point.flow))

    def _spans(self) -> Iterator[tuple[Span, NamedSpan | None]]:
        for named in self._tracks.spans(self._number, 1000):
            name, begin, end, first, last = named.span
            yield Span(name, _ns(begin), None if end is None else _ns(end), first, last), named

    def _bracket(self, track: int, bracket: Bracket[NamedSpan | None]) -> None:
        span, named = bracket.span, bracket.item
        if not bracket.begins:
            end = named.end if named is not None else {}
            if named is not None and named.end_flow != _NO_FLOW:
                # An end has no field for it.
                self._writer.event(track, INSTANT, bracket.time, f"ends {span.name}", flows=_flows(named.end_flow))
            self._writer.event(track, END, bracket.time, values={"end": end} if end else {})
            return
        values = dict(named.begin) if named is not None else {}
        if named is not None and span.last is None:
            values["ended"] = "not seen" if span.end is None else "not seen, drawn until items were lost"
        self._writer.event(track, BEGIN, bracket.time, span.name, values, intern=named is not None,
                           flows=_flows(named.begin_flow if named is not None else _NO_FLOW))

    def _counters(self) -> None:
        """A track for every field that is counted, shared by the events that have it."""
        counters: dict[str, int] = {}
        for batch in self._tracks.count_batches(self._number):
            names = batch["counter"].dictionary_encode()
            for counter in names.dictionary.to_pylist():
                if counter not in counters:
                    counters[counter] = self._track + _COUNTERS + len(counters)
                    self._writer.track(counters[counter], counter, self._track, _COUNTERS + len(counters) - 1,
                                       counter=True)
            tracks = np.array([counters[counter] for counter in names.dictionary.to_pylist()], np.int64)
            tracks, times = tracks[names.indices.to_numpy()], np.maximum(batch["time_ps"].to_numpy() // 1000, 0)
            whole = pc.is_valid(batch["whole"]) if "whole" in batch.schema.names else pa.array([False] * len(batch))
            many = (~whole.to_numpy(zero_copy_only=False) if not pa.types.is_decimal(batch["value"].type)
                    else np.zeros(len(batch), bool))
            for at in range(0, len(batch), _ROWS):
                own = at + np.flatnonzero(many[at:at + _ROWS])
                if len(own):
                    self._writer.counts(tracks[own], times[own], batch["value"].take(own).to_numpy())
            for row in np.flatnonzero(~many).tolist():
                [one] = batch.slice(row, 1).to_pylist()
                self._writer.count(int(tracks[row]), int(times[row]), self._tracks.count(one).value)


def _write(run: Run, out: str, selection: Selection) -> None:
    boards = [Group(f"board {number}", board["first_node"], board["nodes"])
              for number, board in enumerate(run.decode().get("boards") or [])]
    with sink(out) as file:
        write_trace(file, tracks_of(run, selection), outages(run.loss(), run.info.nodes, selection),
                    title=run.path.resolve().name, duration_ps=ended_ps(run), nodes=selection.nodes, boards=boards,
                    clock=None if run.clock.uncertainty_ns is None else run.clock)


def _write_manifest(run: Run, out: str, selection: Selection) -> None:
    """What Perfetto needs to merge ``NAME.pftrace``, the trace of run NAME, with traces of other machines by UTC."""
    if run.clock.uncertainty_ns is None:
        raise InputError(run.path, None, "its time was never compared with UTC, so it cannot be merged by UTC")
    name = run.path.resolve().name
    with sink(out) as file:
        file.write(manifest(f"{name}.pftrace", f"hypermon {name}"))


PERFETTO = Format("perfetto", _write, Tables.STORIES)
MANIFEST = Format("manifest", _write_manifest)
