"""A run as a trace in the Common Trace Format, 1.8 or 2, which babeltrace2, Trace Compass and other tools read.

The trace is a directory. ``metadata`` describes the streams, as text (1.8) or as a sequence of JSON texts (2);
``node-00`` and so on are one stream per node, the same bytes in both versions.
Times are picoseconds of the board's clock, exact; one second is added, because the format has no negative times. The
packets describe a node's losses: a packet states how many events were discarded since the previous one, and begins and
ends with the outage.
"""

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.blocks.times import PS_MAX
from hypermon.host.dictionary.dictionary import Dictionary, EventKind, Field
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.items import item_batches
from hypermon.host.export.sinks import folder
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["CLOCK_LATE_PS", "CTF", "CTF2", "write_ctf"]

#: Value of the clock's counter at time 0.
CLOCK_LATE_PS = 10**12
#: Approximate bytes of events in a packet.
_PACKET = 1 << 20
_MAGIC = 0xC1FC1FC1
#: Header and context of a packet, as ``_METADATA`` defines them.
_HEAD = struct.Struct("<IIQQQQQQQB")
#: Numbers of the kinds of events; those of a dictionary follow.
_NIBBLE, _WORD, _EVENT, _ABORTED, _ABORTED_WORD, _FIRST_NAMED = range(6)
_SINGLE = np.dtype([("id", "<u2"), ("time", "<u8"), ("nibble", "u1")])

_Bytes = npt.NDArray[np.uint8]
#: A range of events: their concatenated bytes, and the size of each.
_Take = Callable[[int, int], tuple[_Bytes, npt.NDArray[np.int64]]]

_METADATA = """\
/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;

trace {{
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct {{ uint32_t magic; uint32_t stream_id; uint64_t stream_instance_id; }};
}};

env {{
	tracer_name = "hypermon";
	trace_name = "{title}";
}};

clock {{
	name = board;
	description = "The board's time in picoseconds; 10^12 is its time 0.";
	freq = 1000000000000;
	offset_s = -1;
	absolute = false;
}};

typealias integer {{ size = 64; align = 8; signed = false; map = clock.board.value; }} := board_time;

stream {{
	id = 0;
	packet.context := struct {{
		board_time timestamp_begin;
		board_time timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t events_discarded;
		uint64_t packet_seq_num;
		uint8_t node;
	}};
	event.header := struct {{ uint16_t id; board_time timestamp; }};
}};
"""
_EVENT_FORM = """
event {{
	name = "{name}";
	id = {number};
	stream_id = 0;
	fields := struct {{ {fields} }};
}};
"""
_PLAIN = {
    _NIBBLE: ("nibble", "uint8_t nibble;"),
    _WORD: ("word", "uint32_t word;"),
    _EVENT: ("event", "uint8_t _event; uint8_t _length; uint8_t payload[_length];"),
    _ABORTED: ("aborted", "uint8_t named; uint8_t _event; uint8_t _length; uint8_t payload[_length];"),
    _ABORTED_WORD: ("aborted_word", "uint32_t word;"),
}


def write_ctf(directory: Path, batches: Iterable[pa.RecordBatch], outages: list[list[LossSpan]], *, begin_ps: int,
              dictionary: Dictionary | None = None, title: str = "hypermon", version: int = 1) -> None:
    """Writes a trace into a directory, which exists and is empty. Memory does not grow with the run.

    Parameters
    ----------
    batches : see :func:`.items.item_batches`.
    outages : of every node; see :func:`.losses.outages`.
    begin_ps : not later than the first event or outage.
    dictionary : names the events and defines the contents of their payloads; a payload that does not match is an
        ``event`` with bytes.
    version : 1 (CTF 1.8) or 2 (CTF 2.0), of the metadata.
    """
    kinds = list(enumerate(dictionary.events if dictionary is not None else (), _FIRST_NAMED))
    metadata = _metadata(title, kinds) if version == 1 else _fragments(title, kinds)
    (directory / "metadata").write_text(metadata, encoding="utf-8")
    streams: list[_Stream] = []
    try:
        for node, own in enumerate(outages):
            streams.append(_Stream(directory / f"node-{node:02}", node, own, begin_ps))
        for batch in batches:
            if len(batch):
                _add(streams, batch, dictionary)
        for stream in streams:
            stream.finish()
    finally:
        for stream in streams:
            stream.file.close()


def _add(streams: list["_Stream"], batch: pa.RecordBatch, dictionary: Dictionary | None) -> None:
    times, nodes = batch["time_ps"].to_numpy(), batch["node"].to_numpy()
    order = np.argsort(nodes, kind="stable")
    bounds = np.searchsorted(nodes[order], np.arange(len(streams) + 1)).tolist()
    last, ordered = int(times[-1]), times[order]
    take = (_singles(ordered, batch["nibble"].to_numpy()[order]) if batch.schema.names == ["time_ps", "node", "nibble"]
            else partial(_items(times, batch, dictionary).of, order))
    for stream, low, high in zip(streams, bounds, bounds[1:], strict=False):
        if high > low:
            stream.add(ordered[low:high], *take(low, high))
        stream.emit(last)


def _singles(times: npt.NDArray[np.int64], nibbles: npt.NDArray[np.uint8]) -> _Take:
    """Events of one nibble, by beginning and end."""
    records = np.empty(len(times), _SINGLE)
    records["id"] = _NIBBLE
    records["time"] = times + CLOCK_LATE_PS
    records["nibble"] = nibbles
    sizes = np.broadcast_to(np.int64(_SINGLE.itemsize), len(times))
    return lambda low, high: (records[low:high].view(np.uint8), sizes[low:high])


@dataclass(frozen=True)
class _Records:
    """The events of a batch as consecutive bytes: event k in ``data[ends[k]:ends[k + 1]]``."""

    data: _Bytes
    ends: npt.NDArray[np.int64]

    def of(self, order: npt.NDArray[np.int64], low: int, high: int) -> tuple[_Bytes, npt.NDArray[np.int64]]:
        """The bytes of some rows, ``order[low:high]``, and their sizes."""
        rows = order[low:high]
        sizes = np.diff(self.ends)[rows]
        starts = np.repeat(self.ends[rows] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return self.data[starts + np.arange(len(starts))], sizes


def _items(times: npt.NDArray[np.int64], batch: pa.RecordBatch, dictionary: Dictionary | None) -> _Records:
    """Items of any mode: grouped by kind and length, so that each group is a matrix of bytes."""
    groups = list(_groups(batch, dictionary))
    sizes = np.zeros(len(batch), np.int64)
    for rows, _, body in groups:
        sizes[rows] = 10 + body.shape[1]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    data = np.zeros(ends[-1], np.uint8)
    for rows, number, body in groups:
        head = np.empty(len(rows), np.dtype([("id", "<u2"), ("time", "<u8")]))
        head["id"], head["time"] = number, times[rows] + CLOCK_LATE_PS
        whole = np.concatenate([head.view(np.uint8).reshape(-1, 10), body], axis=1)
        data[ends[rows][:, None] + np.arange(whole.shape[1])] = whole
    return _Records(data, ends)


def _groups(batch: pa.RecordBatch,
            dictionary: Dictionary | None) -> Iterator[tuple[npt.NDArray[np.int64], int, _Bytes]]:
    """Rows, number of their kind, and the data after their heads: every row is in one group."""
    names = batch.schema.names
    aborted = batch["aborted"].to_numpy(zero_copy_only=False)
    if "nibble" in names:
        rows = np.flatnonzero(batch["nibble"].is_valid())
        yield rows, _NIBBLE, batch["nibble"].take(pa.array(rows)).to_numpy()[:, None]
    if "word" in names:
        there = batch["word"].is_valid().to_numpy(zero_copy_only=False)
        for number, own in ((_WORD, there & ~aborted), (_ABORTED_WORD, there & aborted)):
            rows = np.flatnonzero(own)
            words = batch["word"].take(pa.array(rows)).to_numpy().astype("<u4")
            yield rows, number, words.view(np.uint8).reshape(-1, 4)
    if "payload" not in names:
        return
    payload = batch["payload"]
    sizes = pc.fill_null(pc.binary_length(payload), -1).to_numpy(zero_copy_only=False)
    event = pc.fill_null(batch["event"].cast(pa.int16()), -1).to_numpy(zero_copy_only=False)
    kinds = [] if dictionary is None else list(enumerate(dictionary.events, _FIRST_NAMED))
    for size in np.unique(sizes[sizes >= 0]).tolist():
        left = sizes == size
        body = _matrix(payload, np.flatnonzero(left), size)
        place = np.cumsum(left) - 1
        for number, kind in kinds:
            if size == kind.size or (kind.open_ended and size > kind.size):
                rows = np.flatnonzero(left & (event == kind.id) & ~aborted)
                left[rows] = False
                lead = _column(len(rows), size - kind.size) if kind.open_ended else _column(len(rows))
                yield rows, number, np.concatenate([lead, body[place[rows]]], axis=1)
        rows = np.flatnonzero(left & ~aborted)
        known = event[rows].astype(np.uint8)[:, None]
        yield rows, _EVENT, np.concatenate([known, _column(len(rows), size), body[place[rows]]], axis=1)
        rows = np.flatnonzero(left & aborted)
        known = np.stack([event[rows] >= 0, np.maximum(event[rows], 0)], axis=1).astype(np.uint8)
        yield rows, _ABORTED, np.concatenate([known, _column(len(rows), size), body[place[rows]]], axis=1)


def _matrix(payload: pa.Array, rows: npt.NDArray[np.int64], size: int) -> _Bytes:
    return np.frombuffer(b"".join(payload.take(pa.array(rows)).to_pylist()), np.uint8).reshape(len(rows), size)


def _column(rows: int, *values: int) -> _Bytes:
    """The same bytes in every row."""
    return np.tile(np.array(values, np.uint8), (rows, 1))


# ------------------------------------------------------------------------------------------ metadata

_Kinds = list[tuple[int, EventKind]]


def _metadata(title: str, kinds: _Kinds) -> str:
    """The metadata of CTF 1.8."""
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    own = [(number, kind.name, _struct(kind)) for number, kind in kinds]
    return _METADATA.format(title=escaped) + "".join(
        _EVENT_FORM.format(name=name, number=number, fields=fields)
        for number, name, fields in [*((number, *form) for number, form in _PLAIN.items()), *own])


def _struct(kind: EventKind) -> str:
    """A payload in the format's syntax, bit by bit. If the last field has no size, its size precedes everything."""
    fields = " ".join(_field(field) for field in kind.fields)
    return f"uint8_t _length; {fields}" if kind.open_ended else fields


def _field(field: Field) -> str:
    # A leading underscore is not part of a name; with it, no name is a keyword of the language.
    if field.kind in ("char", "bytes"):
        encoding = "encoding = UTF8; " if field.kind == "char" else ""
        count = "_length" if field.bits is None else str(field.bits // 8)
        return f"integer {{ size = 8; align = 8; signed = false; {encoding}}} _{field.name}[{count}];"
    if field.kind == "f":
        exponent, mantissa = (8, 24) if field.bits == 32 else (11, 53)
        return f"floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = 8; }} _{field.name};"
    signed = str(field.kind == "i").lower()
    number = f"integer {{ size = {field.bits}; align = 1; signed = {signed}; }}"
    if field.values:
        labels = ", ".join(f'"{name}" = {value}' for name, value in field.values)
        return f"enum : {number} {{ {labels} }} _{field.name};"
    return f"{number} _{field.name};"


# That of CTF 2.0: CTF2-SPEC-2.0 of the DiaMon working group, section 5.

_Json = dict[str, Any]


def _fragments(title: str, kinds: _Kinds) -> str:
    """The metadata of CTF 2: a JSON text for each fragment, after a record separator (RFC 7464)."""
    fragments: list[_Json] = [
        {"type": "preamble", "version": 2},
        {"type": "trace-class", "name": title, "environment": {"tracer_name": "hypermon", "trace_name": title},
         "packet-header-field-class": _structure(
             magic=_unsigned(32, "packet-magic-number"), stream_id=_unsigned(32, "data-stream-class-id"),
             stream_instance_id=_unsigned(64, "data-stream-id"))},
        {"type": "clock-class", "id": "board", "name": "board", "frequency": 10**12,
         "description": "The board's time in picoseconds; 10^12 is its time 0.",
         "offset-from-origin": {"seconds": -1, "cycles": 0}},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "board",
         "packet-context-field-class": _structure(
             timestamp_begin=_unsigned(64, "default-clock-timestamp"),
             timestamp_end=_unsigned(64, "packet-end-default-clock-timestamp"),
             content_size=_unsigned(64, "packet-content-length"), packet_size=_unsigned(64, "packet-total-length"),
             events_discarded=_unsigned(64, "discarded-event-record-counter-snapshot"),
             packet_seq_num=_unsigned(64, "packet-sequence-number"), node=_unsigned(8)),
         "event-record-header-field-class": _structure(
             id=_unsigned(16, "event-record-class-id"), timestamp=_unsigned(64, "default-clock-timestamp"))}]
    payload = {"event": _unsigned(8), "length": _unsigned(8), "payload": _listed("length")}
    plain = {_NIBBLE: {"nibble": _unsigned(8)}, _WORD: {"word": _unsigned(32)}, _EVENT: payload,
             _ABORTED: {"named": _unsigned(8), **payload}, _ABORTED_WORD: {"word": _unsigned(32)}}
    events = [(number, _PLAIN[number][0], members) for number, members in plain.items()]
    events += [(number, kind.name, _members(kind)) for number, kind in kinds]
    fragments += [{"type": "event-record-class", "id": number, "data-stream-class-id": 0, "name": name,
                   "payload-field-class": _structure(**members)} for number, name, members in events]
    return "".join(f"\x1e{json.dumps(fragment, ensure_ascii=False)}\n" for fragment in fragments)


def _structure(**members: _Json) -> _Json:
    return {"type": "structure",
            "member-classes": [{"name": name, "field-class": member} for name, member in members.items()]}


def _unsigned(bits: int, role: str | None = None) -> _Json:
    """A number of whole bytes."""
    number = {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", "alignment": 8}
    return number if role is None else {**number, "roles": [role]}


def _listed(length: str) -> _Json:
    """Bytes whose number is in an earlier member of the payload."""
    return {"type": "dynamic-length-array", "element-field-class": _unsigned(8), "length-field-location": {
        "origin": "event-record-payload", "path": [length]}}


def _members(kind: EventKind) -> dict[str, _Json]:
    """A payload, bit by bit. If the last field has no size, its size precedes everything; no field has its name."""
    size = f"length of {kind.fields[-1].name}" if kind.open_ended else ""
    members = {size: _unsigned(8)} if size else {}
    return members | {field.name: _class(field, size) for field in kind.fields}


def _class(field: Field, size: str) -> _Json:
    """A field's class; ``size``: the member that has its size, if it has none of its own."""
    if field.kind in ("char", "bytes"):
        if field.bits is None:
            listed = _listed(size)
            return listed if field.kind == "bytes" else {
                "type": "dynamic-length-string", "length-field-location": listed["length-field-location"]}
        return {"type": "static-length-string", "length": field.bits // 8} if field.kind == "char" else {
            "type": "static-length-array", "element-field-class": _unsigned(8), "length": field.bits // 8}
    form = {"f": "floating-point-number", "i": "signed-integer"}.get(field.kind, "unsigned-integer")
    made: _Json = {"type": f"fixed-length-{form}", "length": field.bits, "byte-order": "little-endian"}
    if field.kind == "f":
        made["alignment"] = 8
    if field.values:
        made["mappings"] = {name: [[value, value]] for name, value in field.values}
    return made


# ------------------------------------------------------------------------------------------- streams

class _Stream:
    """One node's packets."""

    def __init__(self, path: Path, node: int, outages: list[LossSpan], begin_ps: int):
        self.node = node
        self.file: BinaryIO = open(path, "wb")  # noqa: SIM115
        self._outages = iter(outages)
        self._next = next(self._outages, None)
        self._times: list[npt.NDArray[np.int64]] = []
        self._sizes: list[npt.NDArray[np.int64]] = []
        self._data: list[_Bytes] = []
        self._held = self._discarded = self._packets = 0
        self._end = begin_ps
        # The number of discarded events is a difference: a packet must precede the first loss.
        self._packet(b"", begin_ps, begin_ps)

    def add(self, times: npt.NDArray[np.int64], data: _Bytes, sizes: npt.NDArray[np.int64]) -> None:
        self._times.append(times)
        self._data.append(data)
        self._sizes.append(sizes)
        self._held += len(data)

    def emit(self, until: int) -> None:
        """Everything before ``until`` has arrived: writes all whole packets."""
        while self._next is not None and self._next.to_ps < until:
            lost, from_ps, to_ps = self._next
            self._write(from_ps, from_ps)
            self._discarded += lost
            self._write(to_ps, to_ps)
            self._next = next(self._outages, None)
        if self._held >= _PACKET:
            self._write(PS_MAX if self._next is None else self._next.from_ps, None)

    def finish(self) -> None:
        self.emit(PS_MAX)
        if self._held:
            self._write(PS_MAX, None)

    def _write(self, last_ps: int, end_ps: int | None) -> None:
        """Writes a packet of the events until then, which ends at ``end_ps`` or with its last event."""
        times = np.concatenate(self._times) if self._times else np.zeros(0, np.int64)
        count = int(np.searchsorted(times, last_ps, side="right"))
        if count == 0 and end_ps is None:
            return
        sizes = np.concatenate(self._sizes) if self._sizes else np.zeros(0, np.int64)
        data = np.concatenate(self._data) if self._data else np.zeros(0, np.uint8)
        cut = int(sizes[:count].sum())
        begin = int(times[0]) if end_ps is None else self._end
        self._packet(data[:cut].data, begin, int(times[count - 1]) if end_ps is None else end_ps)
        self._times, self._sizes, self._data = [times[count:]], [sizes[count:]], [data[cut:]]
        self._held = len(data) - cut

    def _packet(self, data: bytes | memoryview, begin_ps: int, end_ps: int) -> None:
        bits = 8 * (_HEAD.size + len(data))
        self.file.write(_HEAD.pack(_MAGIC, 0, self.node, begin_ps + CLOCK_LATE_PS, end_ps + CLOCK_LATE_PS, bits, bits,
                                   self._discarded, self._packets, self.node))
        self.file.write(data)
        self._packets += 1
        self._end = end_ps


def _write(run: Run, out: str, selection: Selection, version: int = 1) -> None:
    with folder(out) as directory:
        write_ctf(directory, item_batches(run, selection), outages(run.loss(), run.info.nodes, selection),
                  begin_ps=run.info.scale.span_ps(0, 0)[0], dictionary=kept_dictionary(run),
                  title=run.path.resolve().name, version=version)


CTF = Format("ctf", _write, Tables.FRAMED, directory=True)
CTF2 = Format("ctf2", partial(_write, version=2), Tables.FRAMED, directory=True)
