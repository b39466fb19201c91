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
from dataclasses import dataclass, replace
from importlib import import_module
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.errors import HypermonError, InputError, to_install
from hypermon.host.export.brackets import Bracket, Span, brackets
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.items import ended_ps
from hypermon.host.export.sinks import sink
from hypermon.host.export.tracks import NO_FLOW as _NO_FLOW
from hypermon.host.export.tracks import PLAIN, Flow, NamedSpan, Tracks, Values, plain, tracks_of
from hypermon.host.recording.clock import WallClock
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection
from hypermon.host.text.numbers import counted

__all__ = ["Group", "MANIFEST", "PERFETTO", "manifest", "write_trace"]

#: Packets per piece of the file.
_PIECE = 4096
#: Tracks: the run's; those of boards; then for every node its own and those below it.
_ROOT, _BOARDS = 1, 2
_NODE_STRIDE = 1 << 16
_COUNTERS = 1 << 15
#: Of perfetto's TrackEvent.Type.
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
#: Of perfetto's BuiltinClock: that of time stamps, and UTC.
_BOOTTIME, _REALTIME = 6, 1
#: Of the wire format: Trace.packet, which has a length, and TracePacket.timestamp, a varint.
_PACKET, _TIMESTAMP = b"\x0a", b"\x40"
#: The least numbers whose varints have 2, 3, ... bytes, and more than any has.
_DIGITS, _LONGEST = np.array([1 << shift for shift in range(7, 63, 7)], np.int64), 16
#: Kinds of packets that are kept without their times.
_TIMELESS = 1 << 12
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


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
    writer = _Writer(file)
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
        writer.event(_ROOT, _BEGIN, 0, "recording")
        writer.event(_ROOT, _END, _ns(duration_ps))
    for node, own in enumerate(outages):
        if nodes is not None and node not in nodes:
            continue
        _Node(writer, node, own, tracks, parents.get(node, _ROOT)).write()
    if tracks.dictionary is None:
        for batch in tracks.plain_batches():
            _write_plain(writer, batch)
    writer.flush()


def _write_plain(writer: "_Writer", batch: pa.RecordBatch) -> None:
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
        writer.event((row["node"] + 1) * _NODE_STRIDE, _INSTANT, _ns(row["time_ps"]), name, said)


def _ns(time_ps: int) -> int:
    return max(time_ps // 1000, 0)


def _varints(values: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint8]:
    """Numbers that have as many digits in the wire format, a row for each."""
    rows = np.empty((len(values), count), np.uint8)
    for digit in range(count):
        rows[:, digit] = values >> 7 * digit & 0x7f | (0x80 if digit < count - 1 else 0)
    return rows


def _varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


class _Writer:
    """Writes packets to a file, piece by piece. Names are written once and then referenced by number."""

    def __init__(self, file: IO[bytes]):
        try:
            proto = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        except ImportError:
            raise HypermonError(f"Perfetto's format is not installed: {to_install('perfetto')}") from None
        self._file, self._proto = file, proto
        self._interned = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        self._trace = proto.Trace()
        self._pieces: list[bytes] = []
        self._held = 0
        #: Packets that differ in their time alone, without it.
        self._timeless: dict[tuple[int, int, str | None, tuple[str, str | int] | None], bytes] = {}
        self._events: dict[str, int] = {}
        self._arguments: dict[str, int] = {}
        first = self._packet()
        first.sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED

    def _packet(self) -> Any:
        if self._held >= _PIECE:
            self.flush()
        self._held += 1
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = 1
        return packet

    def flush(self) -> None:
        """Writes everything so far to the file. A trace may be written as consecutive pieces."""
        self._settle()
        self._file.write(b"".join(self._pieces))
        self._pieces = []
        self._held = 0

    def _settle(self) -> None:
        if self._trace.packet:
            self._pieces.append(self._trace.SerializeToString())
            self._trace = self._proto.Trace()

    def tie(self, time: int, utc_ns: int) -> None:
        """Says what UTC was at a time of the trace."""
        clocks = self._packet().clock_snapshot.clocks
        for number, value in ((_BOOTTIME, time), (_REALTIME, utc_ns)):
            clock = clocks.add()
            clock.clock_id, clock.timestamp = number, value

    def track(self, uuid: int, name: str, parent: int = 0, rank: int = 0, counter: bool = False) -> None:
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name = uuid, name
        descriptor.child_ordering = self._proto.TrackDescriptor.EXPLICIT
        if parent:
            descriptor.parent_uuid, descriptor.sibling_order_rank = parent, rank
        if counter:
            descriptor.counter.SetInParent()

    def event(self, track: int, kind: int, time: int, name: str | None = None, values: Values | None = None,
              intern: bool = True, flow: Flow = _NO_FLOW) -> None:
        if intern and not values and flow is _NO_FLOW and (name is None or name in self._events):
            self._plain_event(track, kind, time, name)
            return
        packet = self._packet()
        packet.timestamp = time
        packet.sequence_flags = self._interned
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        event.flow_ids.extend(message.number for message in flow.sent)
        event.terminating_flow_ids.extend(message.number for message in flow.received)
        if name is not None and not intern:
            event.name = name
        elif name is not None:
            event.name_iid = self._number(packet, "event_names", self._events, name)
        for key, value in (values or {}).items():
            if value is not None:
                self._annotate(packet, event.debug_annotations.add(), key, value)

    def instants(self, times: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64], numbers: npt.NDArray[np.uint8],
                 names: Sequence[str], said: tuple[str, str | int, str | int] | None = None,
                 values: npt.NDArray[np.uint8] | None = None) -> None:
        """Many instants at once: the time, the node, and the number of the name of each.

        The packets of the same length are made as the rows of a matrix of bytes. Their order in the file is not that of
        their times: a reader sorts packets by time.

        Parameters
        ----------
        said : the name of a value that each has, and two such values: of as many bytes, none of which they share.
        values : the bytes of these values, in the wire format, a row for each instant.
        """
        used = [names[number] for number in np.flatnonzero(np.bincount(numbers)).tolist()]
        self._introduce("event_names", self._events, used)
        if said is not None:
            self._introduce("debug_annotation_names", self._arguments, [said[0]])
        self.flush()
        # Without a sort, which would take most of the time: there are few kinds of packets, and few lengths.
        codes = nodes * len(names) + numbers
        kinds = np.flatnonzero(np.bincount(codes))
        places = np.zeros(kinds[-1] + 1, np.int64)
        places[kinds] = np.arange(len(kinds))
        which = places[codes]
        heads, holes = zip(*(self._template((int(kind) // len(names) + 1) * _NODE_STRIDE, names[int(kind) % len(names)],
                                            said) for kind in kinds), strict=True)
        sizes = np.array([len(head) for head in heads])
        digits = 1 + np.searchsorted(_DIGITS, times, side="right")
        lengths = sizes[which] * _LONGEST + digits
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            size, count = divmod(length, _LONGEST)
            own = np.flatnonzero(lengths == length)
            # What a value is followed by differs in length, not what is before it.
            [hole] = {holes[number] for number in np.flatnonzero(sizes == size)}
            table = np.zeros((len(heads), size), np.uint8)
            for number in np.flatnonzero(sizes == size):
                table[number] = np.frombuffer(heads[number], np.uint8)
            body = size + len(_TIMESTAMP) + count
            begin = _PACKET + _varint(body)
            rows = np.empty((len(own), len(begin) + body), np.uint8)
            rows[:, :len(begin)] = np.frombuffer(begin, np.uint8)
            rows[:, len(begin):len(begin) + size] = table[which[own]]
            if values is not None:
                rows[:, len(begin) + hole:len(begin) + hole + values.shape[1]] = values[own]
            rows[:, len(begin) + size] = _TIMESTAMP[0]
            rows[:, len(begin) + size + 1:] = _varints(times[own], count)
            self._file.write(rows.tobytes())

    def numbers(self, times: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64], name: str, key: str,
                values: npt.NDArray[np.int64]) -> None:
        """Many instants of one name, each of which has a number that is not negative."""
        digits = 1 + np.searchsorted(_DIGITS, values, side="right")
        for count in np.flatnonzero(np.bincount(digits)).tolist():
            own = np.flatnonzero(digits == count)
            one = sum(1 << 7 * place for place in range(count))
            self.instants(times[own], nodes[own], np.zeros(len(own), np.uint8), [name], (key, one, 2 * one),
                          _varints(values[own], count))

    def texts(self, times: npt.NDArray[np.int64], nodes: npt.NDArray[np.int64], numbers: npt.NDArray[np.uint8],
              names: Sequence[str], key: str, data: pa.BinaryArray) -> None:
        """Many instants, each of which has bytes, as text in hexadecimal digits."""
        offsets = np.frombuffer(data.buffers()[1], np.int32)[data.offset:data.offset + len(data) + 1].astype(np.int64)
        content = np.frombuffer(data.buffers()[2] or b"", np.uint8)
        sizes = np.diff(offsets)
        for size in np.flatnonzero(np.bincount(sizes)).tolist():
            own = np.flatnonzero(sizes == size)
            taken = content[offsets[own][:, None] + np.arange(size)]
            digits = np.empty((len(own), 2 * size), np.uint8)
            digits[:, ::2], digits[:, 1::2] = _HEX[taken >> 4], _HEX[taken & 15]
            self.instants(times[own], nodes[own], numbers[own], names, (key, "0" * 2 * size, "f" * 2 * size), digits)

    def _introduce(self, table: str, known: dict[str, int], names: Sequence[str]) -> None:
        """Gives names numbers, in a packet before those that use them."""
        unknown = [name for name in names if name not in known]
        if unknown:
            packet = self._packet()
            packet.sequence_flags = self._interned
            for name in unknown:
                self._number(packet, table, known, name)

    def _template(self, track: int, name: str, said: tuple[str, str | int, str | int] | None) -> tuple[bytes, int]:
        """An instant without its time, and where in it the bytes of its value begin."""
        if said is None:
            return self._head(track, _INSTANT, name), 0
        key, *values = said
        first, second = (np.frombuffer(self._head(track, _INSTANT, name, (key, value)), np.uint8) for value in values)
        there = np.flatnonzero(first != second)
        return first.tobytes(), int(there[0]) if len(there) else 0

    def _plain_event(self, track: int, kind: int, time: int, name: str | None) -> None:
        """An event of which only the time is new; packets made one by one take most of the time of a large trace."""
        known = self._head(track, kind, name)
        if self._held >= _PIECE:
            self.flush()
        self._settle()
        self._held += 1
        body = known + _TIMESTAMP + _varint(time)
        self._pieces.append(_PACKET + _varint(len(body)) + body)

    def _head(self, track: int, kind: int, name: str | None, said: tuple[str, str | int] | None = None) -> bytes:
        """A packet without its time; the name is known, and so is that of the value that it has."""
        known = self._timeless.get((track, kind, name, said))
        if known is None:
            packet = self._proto.TracePacket()
            packet.trusted_packet_sequence_id, packet.sequence_flags = 1, self._interned
            packet.track_event.type, packet.track_event.track_uuid = kind, track
            if name is not None:
                packet.track_event.name_iid = self._events[name]
            if said is not None:
                self._annotate(packet, packet.track_event.debug_annotations.add(), *said)
            if len(self._timeless) >= _TIMELESS:
                self._timeless.clear()
            known = self._timeless[track, kind, name, said] = packet.SerializeToString()
        return known

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


class _Node:
    """The tracks of one node."""

    def __init__(self, writer: _Writer, number: int, outages: list[LossSpan], tracks: Tracks,
                 parent: int):
        self._writer, self._number, self._outages, self._tracks = writer, number, outages, tracks
        self._track, self._parent = (number + 1) * _NODE_STRIDE, parent
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
        for point in self._tracks.points(self._number) if self._tracks.dictionary is not None else ():
            self._writer.event(self._track, _INSTANT, _ns(point.time_ps), point.name, point.values, flow=point.flow)
        self._counters()

    def _spans(self) -> Iterator[tuple[Span, NamedSpan | None]]:
        for named in self._tracks.spans(self._number, 1000):
            end = named.span.end
            yield replace(named.span, begin=_ns(named.span.begin), end=None if end is None else _ns(end)), named

    def _bracket(self, track: int, bracket: Bracket[NamedSpan | None]) -> None:
        span, named = bracket.span, bracket.item
        if not bracket.begins:
            end = named.end if named is not None else {}
            if named is not None and named.end_flow != _NO_FLOW:
                # An end has no field for it.
                self._writer.event(track, _INSTANT, bracket.time, f"ends {span.name}", flow=named.end_flow)
            self._writer.event(track, _END, bracket.time, values={"end": end} if end else {})
            return
        values = dict(named.begin) if named is not None else {}
        if named is not None and span.last is None:
            values["ended"] = "not seen" if span.end is None else "not seen, drawn until items were lost"
        self._writer.event(track, _BEGIN, bracket.time, span.name, values, intern=named is not None,
                           flow=named.begin_flow if named is not None else _NO_FLOW)

    def _counters(self) -> None:
        """A track for every field that is counted, shared by the events that have it."""
        counters: dict[str, int] = {}
        for time_ps, counter, value in self._tracks.counts(self._number):
            if counter not in counters:
                counters[counter] = self._track + _COUNTERS + len(counters)
                self._writer.track(counters[counter], counter, self._track, _COUNTERS + len(counters) - 1, counter=True)
            self._writer.count(counters[counter], _ns(time_ps), value)


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
