"""Payloads into fields, against a decoder that takes one bit after the other."""

import random
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.dictionary import fields
from hypermon.host.dictionary.dictionary import Dictionary, EventKind, Field, load_dictionary
from hypermon.host.dictionary.fields import decode_fields


def dictionary(folder: Path, text: str) -> Dictionary:
    path = folder / "events.toml"
    path.write_text(text)
    return load_dictionary(path)


def table(*rows: tuple[int | None, bytes, bool]) -> pa.Table:
    return pa.Table.from_arrays([
        pa.array(range(len(rows)), pa.int64()), pa.array([0] * len(rows), pa.int16()),
        pa.array([r[0] for r in rows], pa.uint8()), pa.array([r[1] for r in rows], pa.binary()),
        pa.array([r[2] for r in rows], pa.bool_())], schema=EVENT_SCHEMA)


def plain(field: Field, payload: bytes, aborted: bool) -> object:
    """A field, bit by bit."""
    bits = [byte >> i & 1 for byte in payload for i in range(8)]
    if field.bits is None:
        if aborted or len(bits) < field.offset:
            return None
        part = payload[field.offset // 8:]
    else:
        if len(bits) < field.offset + field.bits:
            return None
        own = bits[field.offset:field.offset + field.bits]
        number = sum(bit << i for i, bit in enumerate(own))
        part = number.to_bytes((field.bits + 7) // 8, "little")
        if field.kind == "f":
            return struct.unpack("<f" if field.bits == 32 else "<d", part)[0]
        if field.kind in "ui":
            number -= (1 << field.bits) if field.kind == "i" and own[-1] else 0
            return {v: n for n, v in field.values}.get(number, str(number)) if field.values else number
    return part.rstrip(b"\0").decode(errors="replace") if field.kind == "char" else part


def random_kind(rng: random.Random, number: int) -> EventKind:
    found: list[Field] = []
    offset = 0
    while rng.random() < 0.85:
        kind = rng.choice("uuuiif") if offset % 8 == 0 or rng.random() < 0.5 else rng.choice("ui")
        if kind == "f" or rng.random() < 0.2:
            offset += -offset % 8
            kind = rng.choice(["f", "char", "bytes"])
        bits = {"f": rng.choice([32, 64]), "char": 8 * rng.randint(1, 5), "bytes": 8 * rng.randint(1, 5)}.get(
            kind, rng.randint(1, 64))
        if offset + bits > 112:
            break
        values = ((("low", 0), ("high", 1)) if kind == "u" and rng.random() < 0.3 else ())
        found.append(Field(f"f{number}_{len(found)}", kind, offset, bits, values))
        offset += bits
    if offset % 8 == 0 and rng.random() < 0.3:
        found.append(Field(f"f{number}_rest", rng.choice(["char", "bytes"]), offset, None))
    return EventKind(f"e{number}", number, tuple(found))


@pytest.mark.parametrize("seed", range(8))
def test_any_fields_of_any_payload(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_PIECE", 37)
    rng = random.Random(seed)
    kinds = [random_kind(rng, number) for number in range(12)]
    book = Dictionary(b"", tuple(kinds), {})
    rows = []
    for _ in range(300):
        kind = rng.randrange(14)
        size = kinds[kind].size if kind < 12 and rng.random() < 0.5 else rng.randint(0, 14)
        payload = bytes(rng.choice([0, 1, 255, rng.randrange(256)]) for _ in range(size))
        rows.append((None if rng.random() < 0.05 else kind, payload, rng.random() < 0.1))
    decoded, fit = decode_fields(table(*rows), book)
    got = decoded.to_pylist()
    coded = [column for column in decoded.columns if pa.types.is_dictionary(column.type)]
    assert len(coded) > 1
    assert [len({str(chunk.dictionary) for chunk in column.chunks}) for column in coded] == [1] * len(coded)
    named = [(kinds[k], p, a) for k, p, a in rows if k is not None and k < 12]
    assert (fit.named, fit.unknown) == (len(named), sum(k in (12, 13) for k, *_ in rows))
    assert fit.short == sum(not a and len(p) < k.size for k, p, a in named)
    assert fit.long == sum(not a and len(p) > k.size and not k.open_ended for k, p, a in named)
    for (number, payload, aborted), row in zip(rows, got, strict=True):
        wanted: dict[str, object] = {f.name: None for k in kinds for f in k.fields}
        if number is not None and number < 12:
            assert row["name"] == kinds[number].name
            wanted |= {f.name: plain(f, payload, aborted) for f in kinds[number].fields}
        else:
            assert row["name"] is None
        assert {name: repr(row[name]) for name in wanted} == {name: repr(value) for name, value in wanted.items()}


def test_shared_columns_and_parquet(tmp_path: Path) -> None:
    book = dictionary(tmp_path, """
        [send]
        id = 1
        fields = { peer = "u8", state = { type = "i8", values = { idle = 0, busy = -1 } } }
        [receive]
        id = 2
        fields = { peer = "u8", size = "u64" }
    """)
    events = table((1, b"\x07\xff", False), (2, b"\x08" + b"\xff" * 8, False), (3, b"\x01", False), (1, b"\x09", False),
                   (1, b"\x0a\x05", False), (None, b"", True), (2, b"\x0b" + bytes(9), False))
    decoded, fit = decode_fields(events, book)
    assert vars(fit) == {"named": 5, "unknown": 1, "short": 1, "long": 1}
    assert fit.as_text() == ("5 events named, 1 of unknown ids, 1 payloads too short for their fields, "
                             "1 longer than their fields")
    pq.write_table(decoded, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").select(["name", "peer", "state", "size"]).to_pydict() == {
        "name": ["send", "receive", None, "send", "send", None, "receive"], "peer": [7, 8, None, 9, 10, None, 11],
        "state": ["busy", None, None, None, "5", None, None], "size": [None, 2**64 - 1, None, None, None, None, 0]}
    again, _ = decode_fields(decoded, book)
    assert again.equals(decoded)
    assert again.schema.names == [*EVENT_SCHEMA.names, "name", "peer", "state", "size"]


def test_nothing_to_decode(tmp_path: Path) -> None:
    book = dictionary(tmp_path, "[a]\nid = 1\nfields = { x = 'u8', y = 'string' }\n")
    decoded, fit = decode_fields(EVENT_SCHEMA.empty_table(), book)
    assert decoded.num_rows == 0
    assert decoded.schema.names == [*EVENT_SCHEMA.names, "name", "x", "y"]
    assert fit.as_text() == "0 events named"
    decoded, fit = decode_fields(table((1, b"\x07", False)), dictionary(tmp_path, ""))
    assert decoded.schema.names == [*EVENT_SCHEMA.names, "name"]
    assert (fit.unknown, decoded["name"].to_pylist()) == (1, [None])
