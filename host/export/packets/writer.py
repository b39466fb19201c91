"""Packets of a trace for Perfetto: names by number, events one by one, and many at once from columns."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.export.packets.wire_format import (
    FIXED_64,
    LENGTH,
    VARINT,
    Part,
    constant,
    doubles,
    hexadecimal,
    in_order,
    messages,
    tag,
    texts,
    varint,
    varints,
)

__all__ = ["BEGIN", "COUNTER", "END", "INSTANT", "NODE_STRIDE", "TraceWriter"]

#: Packets per piece of the file, and how many are made one by one: fewer than it pays to make together.
_PIECE, _FEW = 4096, 32
#: Numbers of tracks between those of two nodes.
NODE_STRIDE = 1 << 16
#: Of perfetto's TrackEvent.Type.
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
#: Of perfetto's BuiltinClock: that of time stamps, and UTC.
_BOOTTIME, _REALTIME = 6, 1
#: Of the wire format: Trace.packet, which has a length, and TracePacket.timestamp, a varint.
_PACKET, _TIMESTAMP = b"\x0a", b"\x40"
#: The least numbers whose varints have 2, 3, ... bytes, and more than any has.
_DIGITS, _LONGEST = np.array([1 << shift for shift in range(7, 63, 7)], np.int64), 16
#: Of the wire format: Trace.packet, TracePacket.track_event, TrackEvent.debug_annotations.
_PACKETS, _TRACK_EVENT, _ANNOTATIONS = 1, 11, 4
#: Of TrackEvent: track_uuid, counter_value, double_counter_value. Of DebugAnnotation: name_iid, and its values.
_TRACK, _COUNT, _REAL_COUNT = tag(11, VARINT), tag(30, VARINT), tag(44, FIXED_64)
_NAME, _UINT, _INT, _DOUBLE, _TEXT = (tag(1, VARINT), tag(3, VARINT), tag(4, VARINT), tag(5, FIXED_64), tag(6, LENGTH))
#: Kinds of packets that are kept without their times.
_TIMELESS = 1 << 12
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def _varints(values: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint8]:
    """Numbers that have as many digits in the wire format, a row for each."""
    rows = np.empty((len(values), count), np.uint8)
    for digit in range(count):
        rows[:, digit] = values >> 7 * digit & 0x7f | (0x80 if digit < count - 1 else 0)
    return rows


class TraceWriter:
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
        #: Packets after those of ``_pieces``, without their times, and these; or those of ``_trace``, never both.
        self._plain: list[tuple[bytes, int]] = []
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
        if self._plain:
            self._settle()
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
        if len(self._plain) > _FEW:
            heads = texts(pa.array([head for head, _ in self._plain], pa.binary()))
            times = np.array([time for _, time in self._plain], np.int64)
            self._pieces.append(messages(_PACKETS, [heads, constant(_TIMESTAMP, len(times)), varints(times)]).packed())
        else:
            for head, time in self._plain:
                body = head + _TIMESTAMP + varint(time)
                self._pieces.append(_PACKET + varint(len(body)) + body)
        self._plain = []
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

    def event(self, track: int, kind: int, time: int, name: str | None = None, values: Mapping[str, Any] | None = None,
              intern: bool = True, flows: tuple[Sequence[int], Sequence[int]] = ((), ())) -> None:
        """An event; ``flows``: the numbers of the messages that it sends and receives."""
        sent, received = flows
        if intern and not values and not sent and not received and (name is None or name in self._events):
            self._plain_event(track, kind, time, name)
            return
        packet = self._packet()
        packet.timestamp = time
        packet.sequence_flags = self._interned
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        event.flow_ids.extend(sent)
        event.terminating_flow_ids.extend(received)
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
        heads, holes = zip(*(self._template((int(kind) // len(names) + 1) * NODE_STRIDE, names[int(kind) % len(names)],
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
            begin = _PACKET + varint(body)
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

    def events(self, track: int, times: npt.NDArray[np.int64],
               kinds: Sequence[tuple[npt.NDArray[np.int64], str, Sequence[tuple[str, pa.Array]]]]) -> None:
        """Many instants of a track at once, in their order.

        Parameters
        ----------
        kinds : of each name, which of them have it, and the names and columns of their values. Nulls are left out.
        """
        self._introduce("event_names", self._events, [name for _, name, _ in kinds])
        self._introduce("debug_annotation_names", self._arguments, [key for _, _, said in kinds for key, _ in said])
        self.flush()
        head = self._proto.TracePacket(trusted_packet_sequence_id=1, sequence_flags=self._interned).SerializeToString()
        parts = []
        for own, name, said in kinds:
            event = self._proto.TrackEvent(type=INSTANT, track_uuid=track, name_iid=self._events[name])
            notes = [self._annotations(key, column) for key, column in said]
            parts.append((own, self._packets(head, times[own], [
                constant(event.SerializeToString(), len(own)), *notes])))
        self._file.write(in_order(len(times), parts).packed())

    def counts(self, tracks: npt.NDArray[np.int64], times: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        """Many values that are counted, at once: integers or real numbers."""
        self.flush()
        head = self._proto.TracePacket(trusted_packet_sequence_id=1).SerializeToString()
        real = values.dtype.kind == "f"
        event = self._proto.TrackEvent(type=COUNTER).SerializeToString()
        self._file.write(self._packets(head, times, [
            constant(event + _TRACK, len(times)), varints(tracks),
            constant(_REAL_COUNT if real else _COUNT, len(times)),
            doubles(values) if real else varints(values)]).packed())

    @staticmethod
    def _packets(head: bytes, times: npt.NDArray[np.int64], event: Sequence[Part]) -> Part:
        return messages(_PACKETS, [constant(head, len(times)), messages(_TRACK_EVENT, event),
                                   constant(_TIMESTAMP, len(times)), varints(times)])

    def _annotations(self, key: str, column: pa.Array) -> Part:
        """A value of each, with its name."""
        rows = len(column)
        if pa.types.is_integer(column.type):
            numbers = pc.fill_null(column, 0).to_numpy()
            marks = np.where(numbers < 2**63 if numbers.dtype.kind == "u" else True, _INT[0], _UINT[0])
            value = [Part(np.broadcast_to(marks, rows).astype(np.uint8)[:, np.newaxis], np.ones((rows, 1), bool)),
                     varints(numbers)]
        elif pa.types.is_floating(column.type):
            value = [constant(_DOUBLE, rows), doubles(pc.fill_null(column, 0).to_numpy())]
        else:
            own = texts(column)
            own = hexadecimal(own) if pa.types.is_binary(column.type) else own
            value = [constant(_TEXT, rows), varints(own.sizes), own]
        name = constant(_NAME + varint(self._arguments[key]), rows)
        there: npt.NDArray[np.bool_] = pc.is_valid(column).to_numpy(zero_copy_only=False)
        return messages(_ANNOTATIONS, [name, *value]).where(there)

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
            return self._head(track, INSTANT, name), 0
        key, *values = said
        first, second = (np.frombuffer(self._head(track, INSTANT, name, (key, value)), np.uint8) for value in values)
        there = np.flatnonzero(first != second)
        return first.tobytes(), int(there[0]) if len(there) else 0

    def _plain_event(self, track: int, kind: int, time: int, name: str | None) -> None:
        """An event of which only the time is new; packets made one by one take most of the time of a large trace."""
        known = self._head(track, kind, name)
        if self._held >= _PIECE:
            self.flush()
        if self._trace.packet:
            self._settle()
        self._held += 1
        self._plain.append((known, time))

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
        event.type, event.track_uuid = COUNTER, track
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
