"""Event dictionaries: what they say, and what is wrong with them."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.dictionary.dictionary import Logging, load_dictionary
from hypermon.host.errors import InputError


def write(folder: Path, text: str) -> Path:
    path = folder / "events.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("number", [0, 255])
def test_first_and_last_id(tmp_path: Path, number: int) -> None:
    assert list(load_dictionary(write(tmp_path, f"[one]\nid = {number}\n")).by_id) == [number]
    for wrong in (-1, 256):
        with pytest.raises(InputError, match=f"id is 0..255, not {wrong}"):
            load_dictionary(write(tmp_path, f"[one]\nid = {wrong}\n"))


def test_events_of_one_kind(tmp_path: Path) -> None:
    dictionary = load_dictionary(write(tmp_path, """
        [send]
        id = 2
        fields = { peer = "u8", sequence = "u16", change = "i32" }
        [halt]
        id = 0xff
    """))
    kinds = dictionary.by_id
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


def test_everything_it_can_say(tmp_path: Path) -> None:
    dictionary = load_dictionary(write(tmp_path, """
        [nodes]
        0 = "master"
        31 = "disk"

        [enter]
        id = 1
        doc = "A call begins."
        begin = "call"
        key = "depth"
        [enter.fields]
        depth = "u5"
        kind.type = "u3"
        kind.doc = "What is called."
        kind.values = { read = 0, write = 7 }
        level = "i16"
        who = "string"

        [leave]
        id = 2
        fields = { depth = "u8", level = "i16" }
        end = "call"
        key = "depth"
        counters = ["level"]
    """))
    assert (dictionary.nodes, dictionary.node_name(1)) == ({0: "master", 31: "disk"}, "node 1")
    enter, leave = dictionary.events
    assert (enter.doc, enter.begin, enter.end, enter.key) == ("A call begins.", "call", None, "depth")
    assert [(f.name, f.kind, f.offset, f.bits) for f in enter.fields] == [
        ("depth", "u", 0, 5), ("kind", "u", 5, 3), ("level", "i", 8, 16), ("who", "char", 24, None)]
    assert (enter.fields[1].values, enter.fields[1].doc) == ((("read", 0), ("write", 7)), "What is called.")
    assert (enter.size, enter.open_ended, leave.size, leave.counters) == (3, True, 3, ("level",))


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "dictionary.md").read_text()
    example, logging = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    call, reply, _ = load_dictionary(write(tmp_path, example)).events
    assert (call.size, call.open_ended, reply.size) == (3, True, 6)
    assert load_dictionary(write(tmp_path, example + logging)).logging == Logging(strings={0: "sensor %u: %d mV"})
    assert load_dictionary(write(tmp_path, "[logging]")).logging == Logging()


def test_columns(tmp_path: Path) -> None:
    """A field of one type is one column; where types differ, or the table has such a column, the event's name helps."""
    dictionary = load_dictionary(write(tmp_path, """
        [a]
        id = 1
        fields = { peer = "u7", size = "u8", state = { type = "u8", values = { x = 1 } }, event = "u8" }
        [b]
        id = 2
        fields = { peer = "u8", size = "u9", state = "u8" }
    """))
    assert dictionary.columns == {
        ("a", "peer"): "peer", ("a", "size"): "a_size", ("a", "state"): "a_state", ("a", "event"): "a_event",
        ("b", "peer"): "peer", ("b", "size"): "b_size", ("b", "state"): "b_state"}


A = "[a]\nid = 1\n"


@pytest.mark.parametrize(("text", "line", "reason"), [
    ("[a", 1, "not TOML: "),
    ("[a]\nid = 'x\n", 2, "not TOML: "),
    ("[b]\nx = 'a'\nx = 2\n[c]", 3, "not TOML: "),
    ("a = 1", 1, "a: an event is a table"),
    ("\n[a]\nid = 1\nname = 'x'", 4, "a: an event has id, doc, fields, begin, end, send, receive, key, "
     "peer, counters; not 'name'"),
    ("['a b']\nid = 1", 1, "a b: a name is letters, digits and _, no digit first, 63 at most"),
    ("\n\n[a]", 3, "a: id is missing, 0..255"),
    ("[a]\nid = 256", 2, "a: id is 0..255, not 256"),
    ("[a]\nid = true", 2, "a: id is 0..255, not True"),
    (f"{A}[b]\nid = 1", 4, "b: a has the same id, 1"),
    (f"{A}[A]\nid = 2", 3, "A: a differs only in capital letters"),
    (f"{A}doc = 3", 3, "a: doc is a line of text, not 3"),
    (f"{A}begin = ''", 3, "a: begin is a line of text, not ''"),
    (f"{A}fields = 3", 3, "a: fields is a table of names and types, not 3"),
    (f"{A}fields = {{ x = 'u65' }}", 3, "a: field x: a type is u1..u64, i1..i64, f32, f64, char[N], bytes[N], or "
                                        "string or bytes as the last one; not 'u65'"),
    (f"{A}fields.x = 'u0'", 3, "a: field x: a type is"),
    (f"{A}[a.fields]\nx = 'u8'\ny = 'char'", 5, "a: field y: a type is"),
    (f"{A}[a.fields.x]\ndoc = 'no type'", 3, "a: field x: a type is u1"),
    (f"{A}fields = {{ x = {{ type = 'u8', width = 3 }} }}", 3, "a: field x: it has type, doc and values; not 'width'"),
    (f"{A}fields = {{ Node = 'u8' }}", 3, "a: field Node: every event has a node already"),
    (f"{A}fields = {{ '1' = 'u8' }}", 3, "a: field '1': a name is letters"),
    (f"{A}fields = {{ x = 'u8', X = 'u8' }}", 3, "a: field X: another name differs only in capital letters"),
    (f"{A}[a.fields]\nx = 'u64'\ny = 'u48'\nz = 'u1'", 6, "a: field z: 15 bytes; a payload has 14 at most"),
    (f"{A}[a.fields]\nx = 'string'\ny = 'u8'", 5, "a: field y: x before it takes all that is left"),
    (f"{A}[a.fields]\nx = 'u4'\ny = 'f32'", 5, "a: field y: f32 begins at a whole byte, not at bit 4 of one"),
    (f"{A}[a.fields.x]\ntype = 'u2'\nvalues = {{ y = 4 }}", 5, "a: field x: y is 0..3, not 4"),
    (f"{A}[a.fields.x]\ntype = 'i2'\nvalues = {{ y = -3 }}", 5, "a: field x: y is -2..1, not -3"),
    (f"{A}[a.fields.x]\ntype = 'f32'\nvalues = {{ y = 4 }}", 5, "a: field x: only values of u and i types have names"),
    (f"{A}[a.fields.x]\ntype = 'u8'\n[a.fields.x.values]\ny = 4\nz = 4", 7, "a: field x: z is y too"),
    (f"{A}[a.fields.x]\ntype = 'u8'\n[a.fields.x.values]\ny = 4\nY = 5", 7, "a: field x: Y is y too"),
    (f"{A}key = 'x'\nbegin = 'y'", 3, "a: key must be the name of one of its fields, not 'x'"),
    (f"{A}fields = {{ x = 'u8' }}\nkey = 'x'", 4, "a: a key without begin, end, send or receive"),
    (f"{A}fields = {{ x = 'u8' }}\npeer = 'x'", 4, "a: a peer without send or receive"),
    (f"{A}fields = {{ x = 'f32' }}\nsend = 'y'\npeer = 'x'", 5,
     "a: peer is the name of one of its whole numbers without names, not 'x'"),
    (f"{A}send = 'y'", 3, "a: nothing receives 'y'"),
    (f"{A}fields = {{ x = 'u8' }}\nsend = 'y'\npeer = 'x'\n[b]\nid = 2\nreceive = 'y'", 4,
     "a: of a and b one has a peer, for 'y', and the other has not"),
    (f"{A}begin = 'y'", 3, "a: nothing ends 'y'"),
    (f"{A}end = 'y'", 3, "a: nothing begins 'y'"),
    (f"{A}begin = 'y'\n[b]\nid = 2\nend = 'y'\nfields = {{ x = 'u8' }}\nkey = 'x'", 3,
     "a: of a and b one has a key, for 'y', and the other has not"),
    (f"{A}fields = {{ x = 'string' }}\ncounters = ['x']", 4,
     "a: a counter is one of its numbers without names, not 'x'"),
    (f"{A}fields = {{ x = 'u8' }}\ncounters = ['x', 'x']", 4, "a: a counter is given twice"),
    (f"{A}counters = 'x'", 3, "a: counters is a list of fields, not 'x'"),
    (f"{A}[a.fields]\nevent = 'u8'\na_event = 'u8'", 5,
     "a: field a_event: its column would be a_event, which a.event has"),
    (f"{A}fields = {{ Name = 'u8', a_name = 'u8' }}", 3,
     "a: field a_name: its column would be a_name, which a.Name has"),
    ("nodes = 3", 1, "nodes: this name is taken"),
    ("[nodes]\n32 = 'x'", 2, "nodes: a node is 0..31, not '32'"),
    ("[nodes]\n0 = 'x'\n01 = 'y'", 3, "nodes: a node is 0..31, not '01'"),
    ("[nodes]\n0 = 'x'\n1 = 'x'", 3, "nodes: 'x' is the name of two nodes"),
    (f"[nodes]\n0 = '{257 * 'x'}'", 2, "nodes: a name has at most 256 characters, not 257"),
    ("[nodes]\n0 = ''", 2, "nodes: a name is a line of text, not ''"),
    ("# [a]\n[a]\ndoc = '''\n[b]\n'''\nid = 300", 6, "a: id is 0..255, not 300"),
])
def test_says_what_is_wrong_and_where(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_dictionary(path)
    assert str(caught.value).startswith(f"{path}:{line}: {reason}")


def test_not_readable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_dictionary(tmp_path / "none.toml")
    (tmp_path / "binary").write_bytes(b"[a]\nid = 1\ndoc = '\xff'\n")
    with pytest.raises(InputError, match="binary:3: not UTF-8"):
        load_dictionary(tmp_path / "binary")
