"""A run as a trace for Perfetto (ui.perfetto.dev): tracks, slices, instants, counters.

A track a node. With a dictionary, what its events begin and end are slices, all other events are
instants, and what it says to count are counters; without, everything is an instant. What was lost is a
slice on the node's track, from before the first lost item to behind the last.

Perfetto's time is whole nanoseconds from 0 on: picoseconds are rounded down, and the few events before
time 0 (a strobe within the board's latency of the start) are put there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.dictionary import Dictionary, EventKind
from hypermon.host.errors import HypermonError
from hypermon.host.spans import Edge, Span, brackets, lanes, pair

__all__ = ["write_trace"]

#: Packets in a piece of the file.
_PIECE = 4096
#: Tracks: the run's; then for every node one and those below it.
_ROOT = 1
_NODE_STRIDE = 1 << 16
_COUNTERS = 1 << 15
#: Of perfetto's TrackEvent.Type.
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4

Values = dict[str, Any]


def write_trace(file: BinaryIO, items: pa.Table, loss: pa.Table, *, dictionary: Dictionary | None = None,
                title: str = "hypermon", nodes: int = 1, duration_ps: int | None = None) -> None:
    """Writes a Perfetto trace.

    Parameters
    ----------
    items : ``time_ps``, ``node`` and, for what each is, ``nibble``, or ``word``, or ``event``, ``payload`` and
        ``aborted``, with the dictionary's columns behind them; one that is null says nothing. In order of time.
    loss : ``node``, ``lost``, ``from_ps``, ``to_ps``.
    title : of everything. ``nodes``: that many get a track even if nothing came from them.
    duration_ps : of the run, from time 0.

    Raises
    ------
    HypermonError
        if the package ``perfetto`` is not installed.
    """
    writer = _Writer(file)
    writer.track(_ROOT, title)
    if duration_ps is not None:
        writer.event(_ROOT, _BEGIN, 0, "recording")
        writer.event(_ROOT, _END, _ns(duration_ps))
    node = items["node"].to_numpy()
    order = np.argsort(node, kind="stable")
    bounds = np.searchsorted(node[order], np.arange(33))
    for number in range(32):
        own = order[bounds[number]:bounds[number + 1]]
        lost = [row for row in loss.to_pylist() if row["node"] == number]
        if number < nodes or len(own) or lost:
            _Node(writer, number, items.take(pa.array(own)), lost, dictionary).write()
    writer.flush()


def _ns(time_ps: int) -> int:
    return max(time_ps // 1000, 0)


class _Writer:
    """Packets into a file, piece by piece. Names are written once and then called by number."""

    def __init__(self, file: BinaryIO):
        try:
            proto = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        except ImportError:
            raise HypermonError("Perfetto's format is not installed: pip install 'hypermon[perfetto]'") from None
        self._file, self._proto = file, proto
        self._interned = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        self._trace = proto.Trace()
        self._held = 0
        self._events: dict[str, int] = {}
        self._arguments: dict[str, int] = {}
        first = self._packet()
        first.sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED

    def _packet(self) -> Any:
        if self._held == _PIECE:
            self.flush()
        self._held += 1
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = 1
        return packet

    def flush(self) -> None:
        """What has been said so far is in the file. A trace may be written in pieces, one behind the other."""
        self._file.write(self._trace.SerializeToString())
        self._trace = self._proto.Trace()
        self._held = 0

    def track(self, uuid: int, name: str, parent: int = 0, rank: int = 0, counter: bool = False) -> None:
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name = uuid, name
        descriptor.child_ordering = self._proto.TrackDescriptor.EXPLICIT
        if parent:
            descriptor.parent_uuid, descriptor.sibling_order_rank = parent, rank
        if counter:
            descriptor.counter.SetInParent()

    def event(self, track: int, kind: int, time: int, name: str | None = None, values: Values | None = None,
              intern: bool = True) -> None:
        packet = self._packet()
        packet.timestamp = time
        packet.sequence_flags = self._interned
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        if name is not None and not intern:
            event.name = name
        elif name is not None:
            event.name_iid = self._number(packet, "event_names", self._events, name)
        for key, value in (values or {}).items():
            if value is not None:
                self._annotate(packet, event.debug_annotations.add(), key, value)

    def _annotate(self, packet: Any, note: Any, key: str, value: Any) -> None:
        note.name_iid = self._number(packet, "debug_annotation_names", self._arguments, key)
        if isinstance(value, dict):
            for name, part in value.items():
                if part is not None:
                    self._annotate(packet, note.dict_entries.add(), name, part)
        elif isinstance(value, int):
            if value < 2**63:
                note.int_value = value
            else:
                note.uint_value = value
        elif isinstance(value, float):
            note.double_value = value
        else:
            note.string_value = value.hex() if isinstance(value, bytes) else value

    def count(self, track: int, time: int, value: float) -> None:
        packet = self._packet()
        packet.timestamp = time
        event = packet.track_event
        event.type, event.track_uuid = _COUNTER, track
        if isinstance(value, int) and value < 2**63:
            event.counter_value = value
        else:
            event.double_counter_value = float(value)

    def _number(self, packet: Any, table: str, known: dict[str, int], name: str) -> int:
        number = known.get(name)
        if number is None:
            number = known[name] = len(known) + 1
            entry = getattr(packet.interned_data, table).add()
            entry.iid, entry.name = number, name
        return number


@dataclass
class _Rows:
    """The events of one kind: their rows, and the fields of each."""

    kind: EventKind
    rows: list[int]
    values: list[Values]


class _Node:
    """The tracks of one node."""

    def __init__(self, writer: _Writer, number: int, items: pa.Table, lost: list[dict[str, int]],
                 dictionary: Dictionary | None):
        self._writer, self._number, self._items, self._lost, self._dictionary = writer, number, items, lost, dictionary
        self._track = (number + 1) * _NODE_STRIDE
        self._time: list[int] = np.maximum(items["time_ps"].to_numpy() // 1000, 0).tolist()
        self._kinds = list(self._known())
        self._values = {row: values for kind in self._kinds for row, values in zip(kind.rows, kind.values, strict=True)}

    def _known(self) -> Iterator[_Rows]:
        """What the dictionary knows of the whole events."""
        if self._dictionary is None or "event" not in self._items.column_names:
            return
        event = self._items["event"].cast(pa.int16()).fill_null(-1).to_numpy()
        aborted = self._items["aborted"].fill_null(False).to_numpy()
        for kind in self._dictionary.events:
            rows = np.flatnonzero((event == kind.id) & ~aborted)
            columns = [self._items[self._dictionary.columns[kind.name, field.name]].take(pa.array(rows)).to_pylist()
                       for field in kind.fields]
            names = [field.name for field in kind.fields]
            values = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
            yield _Rows(kind, rows.tolist(), values or [{} for _ in rows])

    def write(self) -> None:
        name = f"node {self._number}" if self._dictionary is None else self._dictionary.node_name(self._number)
        self._writer.track(self._track, name, _ROOT, self._number)
        lost = [Span(f"lost {row['lost']:,} items", _ns(row["from_ps"]), _ns(row["to_ps"])) for row in self._lost]
        edges = sorted((Edge(row, self._time[row], of.kind.end, of.kind.begin, values.get(of.kind.key or ""))
                        for of in self._kinds if of.kind.begin is not None or of.kind.end is not None
                        for row, values in zip(of.rows, of.values, strict=True)), key=lambda edge: edge.row)
        spans, idle = pair(edges, [span.begin for span in lost])
        for lane, row in enumerate(lanes(spans, lost)):
            if lane:
                self._writer.track(self._track + lane, f"{name} ({lane + 1})", self._track, lane)
            for time, span, begins in brackets(row):
                self._bracket(self._track + lane, time, span, begins)
        self._instants({edge.row for edge in edges} - set(idle))
        self._counters()

    def _bracket(self, track: int, time: int, span: Span, begins: bool) -> None:
        if not begins:
            values = self._values[span.last] if span.last is not None else {}
            self._writer.event(track, _END, time, values={"end": values} if values else {})
            return
        values = dict(self._values[span.first]) if span.first is not None else {}
        if span.first is not None and span.last is None:
            values["ended"] = "not seen" if span.end is None else "not seen, drawn until events were lost"
        self._writer.event(track, _BEGIN, time, span.name, values, intern=span.first is not None)

    def _instants(self, drawn: set[int]) -> None:
        """Everything that is not drawn yet, in order of time."""
        columns = self._items.column_names
        said = {name: self._items[name].to_pylist() for name in ("nibble", "word", "event", "payload", "aborted")
                if name in columns}
        names = {row: of.kind.name for of in self._kinds for row in of.rows}
        for row, time in enumerate(self._time):
            if row in drawn:
                continue
            values = self._values.get(row)
            name = names.get(row)
            if name is None:
                name, values = _plain({key: column[row] for key, column in said.items()})
            self._writer.event(self._track, _INSTANT, time, name, values)

    def _counters(self) -> None:
        """A track for every field that is counted, shared by the events that have it."""
        counted: dict[str, list[tuple[int, float]]] = {}
        for of in self._kinds:
            for name in of.kind.counters:
                counted.setdefault(name, []).extend((row, values[name]) for row, values in
                                                    zip(of.rows, of.values, strict=True) if values[name] is not None)
        for place, (name, points) in enumerate(counted.items()):
            track = self._track + _COUNTERS + place
            self._writer.track(track, name, self._track, _COUNTERS + place, counter=True)
            for row, value in sorted(points):
                self._writer.count(track, self._time[row], value)


def _plain(said: Values) -> tuple[str, Values]:
    """What an item is called that no dictionary knows."""
    event = said.get("event")
    if said.get("aborted"):
        return ("aborted" if event is None else f"aborted event {event}"), {"payload": said.get("payload")}
    if event is not None:
        return f"event {event}", {"payload": said.get("payload")}
    if said.get("word") is not None:
        return "word", {"word": said["word"]}
    return f"nibble {said.get('nibble')}", {}
