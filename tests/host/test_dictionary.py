"""Event dictionaries: names and fields for ids and payloads."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypermon.host.dictionary import load_dictionary
from hypermon.host.errors import InputError
from hypermon.host.framing import EVENT_SCHEMA


def write(folder: Path, text: str) -> Path:
    path = folder / "events.toml"
    path.write_text(text)
    return path


def test_fields_come_out(tmp_path: Path) -> None:
    kinds = load_dictionary(write(tmp_path, """
        [send]
        id = 2
        fields = { peer = "u8", sequence = "u16", change = "i32" }
        [halt]
        id = 0xff
    """))
    assert {i: k.name for i, k in kinds.items()} == {2: "send", 255: "halt"}
    events = pa.Table.from_arrays([
        pa.array([10, 20, 30, 40, 50], pa.int64()), pa.array([0, 1, 2, 3, 4], pa.int16()),
        pa.array([2, 255, 2, 2, None], pa.uint8()),
        pa.array([bytes.fromhex("073412feffffff"), b"", b"\x01", bytes.fromhex("08cdab05000000"), b""], pa.binary()),
        pa.array([False, False, True, False, True])], schema=EVENT_SCHEMA)
    assert kinds[2].rows(events).to_pydict() == {
        "time_ps": [10, 40], "node": [0, 3], "peer": [7, 8], "sequence": [0x1234, 0xabcd], "change": [-2, 5]}
    assert kinds[255].rows(events).to_pydict() == {"time_ps": [20], "node": [1]}
    assert kinds[2].rows(events.slice(0, 0)).num_rows == 0
    with pytest.raises(ValueError, match="halt: a payload of 7 bytes, not 0"):
        kinds[255].rows(events.set_column(2, EVENT_SCHEMA.field("event"), pa.array([255] * 5, pa.uint8())))


@pytest.mark.parametrize(("text", "reason"), [
    ("[a", "not TOML"),
    ("a = 1", "a: an event is a table with `id` and `fields`, nothing else"),
    ("[a]\nid = 1\nname = 'x'", "a: an event is a table with `id` and `fields`, nothing else"),
    ("[a]", "a: id is 0..255, not None"),
    ("[a]\nid = 256", "a: id is 0..255, not 256"),
    ("[a]\nid = true", "a: id is 0..255, not True"),
    ("[a]\nid = 1\nfields = 3", "a: fields is a table of names and types, not 3"),
    ("[a]\nid = 1\nfields = { x = 'u7' }", "a: x is of type u8, u16, u32, u64, i8, i16, i32, i64, not 'u7'"),
    ("[a]\nid = 1\nfields = { node = 'u8' }", "a: every event has a node already"),
    ("[a]\nid = 1\nfields = { x = 'u64', y = 'u64' }", "a: 16 bytes of fields; a payload has 14 at most"),
    ("[a]\nid = 1\n[b]\nid = 1", "b and a have the same id, 1"),
])
def test_says_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_dictionary(path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_dictionary(tmp_path / "none.toml")
