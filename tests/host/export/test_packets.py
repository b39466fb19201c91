"""Packets for Perfetto that are made from columns, many at once: those that its own classes read, in all cases."""

import math
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.export.packets import wire_format as wire
from hypermon.host.export.tracks import plain

from tests.host.export.test_perfetto import events, trace_pb2, write

#: Fields of every type; an event may be too short for the last ones.
BOOK = """
[numbers]
id = 1
fields = { a = "u3", b = "i13", c = "u32", d = "i64" }
[wide]
id = 2
fields = { e = "u64", f = "f32" }
[words]
id = 3
fields = { g = "f64", h = "char[3]", i = "bytes" }
[named]
id = 4
fields = { j = { type = "u8", values = { idle = 0, busy = 1 } }, text = "string" }
[nothing]
id = 5
"""
#: Counters: integers; those of 64 bits without a sign; beside real numbers.
COUNTED = {
    "integers": 'fields = { x = "i16", y = "u32" }\ncounters = ["x", "y"]',
    "wide": 'fields = { x = "u64", y = "i16" }\ncounters = ["x", "y"]',
    "real": 'fields = { x = "f32", y = "i16" }\ncounters = ["x", "y"]',
    "both": 'fields = { x = "f32", y = "u64" }\ncounters = ["x", "y"]',
}
NAN = "not a number"


def payload(rng: random.Random) -> bytes:
    size = rng.randrange(15)
    return rng.choice([rng.randbytes(size), b"\x01" + "\u00fc\u20acx".encode() + bytes(6), bytes(size), b"\xff" * size])


def rows_of(rng: random.Random, ids: list[int], count: int) -> list[tuple[int, int, int | None, bytes, bool]]:
    times = sorted(rng.randrange(-(1 << 10), 1 << rng.randrange(10, 52)) for _ in range(count))
    return [(time, rng.choice([0, 1, 7]), rng.choice(ids), payload(rng), rng.random() < 0.03) for time in times]


def same(value: Any) -> Any:
    """NaN is not equal to itself."""
    return NAN if isinstance(value, float) and math.isnan(value) else value.hex() if isinstance(value, bytes) else value


def read(data: bytes) -> list[tuple[int, int, str, list[tuple[str, Any]]]]:
    """Time, track, name and values of each instant."""
    names, keys, found = dict[int, str](), dict[int, str](), []
    for packet in trace_pb2.Trace.FromString(data).packet:
        names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
        keys |= {entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names}
        event = packet.track_event
        if event.type == event.TYPE_INSTANT:
            assert (packet.sequence_flags, packet.trusted_packet_sequence_id) == (2, 1)
            found.append((packet.timestamp, event.track_uuid, names[event.name_iid], [
                (keys[note.name_iid], same(getattr(note, note.WhichOneof("value"))))
                for note in event.debug_annotations]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_items_of_a_dictionary(seed: int, tmp_path: Path) -> None:
    """Every type of a field, with and without a value, in order; items that are cut short, or in no dictionary."""
    rng = random.Random(seed)
    (tmp_path / "book.toml").write_text(BOOK)
    dictionary = load_dictionary(tmp_path / "book.toml")
    table = events(dictionary, *rows_of(rng, [1, 2, 3, 4, 5, 1, 2, 3, 4, 77], 20_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(write(table, dictionary=dictionary, nodes=8))
    wanted = []
    for row in table.to_pylist():
        kind = None if row["aborted"] else dictionary.by_id.get(row["event"])
        name, said = (plain(row) if kind is None else (kind.name, {
            field.name: row[dictionary.columns[kind.name, field.name]] for field in kind.fields}))
        wanted.append((max(row["time_ps"] // 1000, 0), (row["node"] + 1) << 16, name, [
            (key, same(value)) for key, value in said.items() if value is not None]))

    def order(one: tuple[int, int, str, list[tuple[str, Any]]]) -> tuple[int, int, str, str]:
        return (*one[:3], str(one[3]))

    assert sorted(found, key=order) == sorted(wanted, key=order)
    for track in {one[1] for one in found}:
        known = [one for one in found if one[1] == track and "event" not in one[2]]
        assert known == sorted(known, key=lambda one: one[0]), "in order of time"


@pytest.mark.parametrize("of", COUNTED)
def test_counters(of: str, tmp_path: Path) -> None:
    """Each value, to its last digit, on the track of its name and node."""
    rng = random.Random(1)
    (tmp_path / "book.toml").write_text(f"[level]\nid = 1\n{COUNTED[of]}\n")
    dictionary = load_dictionary(tmp_path / "book.toml")
    table = events(dictionary, *rows_of(rng, [1], 10_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = write(table, dictionary=dictionary, nodes=8)
    tracks, found = {}, []
    for packet in trace_pb2.Trace.FromString(data).packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        event = packet.track_event
        if event.type == event.TYPE_COUNTER:
            track = tracks[event.track_uuid]
            value = getattr(event, event.WhichOneof("counter_value_field"))
            found.append((packet.timestamp, track.parent_uuid, track.name, same(value)))
    wanted = []
    for row in table.to_pylist():
        for name in "xy" if not row["aborted"] else "":
            value = row[dictionary.columns["level", name]]
            if value is not None:
                value = float(value) if value >= 2**63 else value
                wanted.append((max(row["time_ps"] // 1000, 0), (row["node"] + 1) << 16, name, same(value)))
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_varints(kind: str) -> None:
    """Integers of every length, as protobuf writes them."""
    rng = random.Random(1)
    low, high = (-(1 << 63), (1 << 63) - 1) if kind == "int64" else (0, (1 << 64) - 1)
    values = [low, high, 0, *(value for _ in range(2000) if low <= (value := rng.getrandbits(
        rng.randrange(1, 65)) * rng.choice([1, -1])) <= high)]
    part = wire.varints(np.array(values, kind))
    note = trace_pb2.DebugAnnotation
    for k, value in enumerate(values):
        wanted = note(int_value=value) if kind == "int64" else note(uint_value=value)
        assert wire.tag(4 if kind == "int64" else 3, wire.VARINT) + part.data[k][part.there[k]].tobytes() == \
            wanted.SerializeToString()
    assert wire.varints(np.array([], kind)).packed() == b""


def test_texts() -> None:
    """Texts of an array that is a part of another one, nulls, and nothing."""
    values = ["", "a", None, "\u20ac" * 90, "end"]
    array = pa.array(["before", *values, "after"])[1:6]
    part = wire.messages(6, [wire.texts(array)])
    packed = part.where(np.array([value is not None for value in values])).packed()
    note = trace_pb2.DebugAnnotation
    assert packed == b"".join(note(string_value=value).SerializeToString() for value in values if value is not None)
    assert wire.hexadecimal(wire.texts(pa.array([b"\x0f\xa0", None, b""]))).packed() == b"0fa0"
    assert wire.texts(pa.array([], pa.string())).packed() == b""
