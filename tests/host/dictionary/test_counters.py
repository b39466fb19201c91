"""Counted fields keep all 64 bits of an integer, in the tables, in queries and in exports."""

import json
import struct

import pyarrow as pa
import pytest
from hypermon.host import cli
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.semantics import columns
from hypermon.host.run import Run

SIGNED = [-2**63, -9007199254740993, -1, 0, 9007199254740993, 2**63 - 1]
UNSIGNED = [0, 1, 9007199254740993, 2**63 - 1, 2**63, 2**64 - 1]
REAL = [1.5, float("nan"), float("inf"), -0.0, 1e300, float("-inf")]
#: Fields, the bytes of a payload, the counters, the type of ``value``, whether there is ``whole``.
CASES = [
    ({"a": "i64"}, "<q", [SIGNED], pa.int64(), False),
    ({"a": "u32", "b": "i48"}, None, [[7, 2**32 - 1], [-2**47, 2**47 - 1]], pa.int64(), False),
    ({"a": "u63"}, None, [[2**63 - 1, 9007199254740993]], pa.int64(), False),
    ({"a": "u64"}, "<Q", [UNSIGNED], pa.decimal128(20, 0), False),
    ({"a": "u64", "b": "i32"}, "<Qi", [UNSIGNED, [-1, 2, -3, 4, -5, 6]], pa.decimal128(20, 0), False),
    ({"a": "f64"}, "<d", [REAL], pa.float64(), False),
    ({"a": "f32", "b": "i53"}, None, [[0.5, -2.0], [-2**52, 2**52 - 1]], pa.float64(), False),
    ({"a": "u64", "b": "f32"}, "<Qf", [UNSIGNED, [1.5, 0.25, -0.5, 2.0, 1.0, 0.0]], pa.float64(), True),
    ({"a": "f32", "b": "i54"}, None, [[0.5, 1.0], [2**53 - 1, -2**53]], pa.float64(), True)]


def packed(types: list[str], values: tuple) -> bytes:
    """A payload, its fields from the lowest bit on."""
    number = at = 0
    for kind, value in zip(types, values, strict=True):
        bits = int(kind[1:])
        raw = value % (1 << bits) if kind[0] in "ui" else int.from_bytes(
            struct.pack({32: "<f", 64: "<d"}[bits], value), "little")
        number, at = number | raw << at, at + bits
    return number.to_bytes(-(-at // 8), "little")


def recorded(told, fields: dict[str, str], values: list[list]) -> Run:
    book = f"[count]\nid = 1\nfields = {{ {', '.join(f'{n} = {t!r}' for n, t in fields.items())} }}\ncounters = " \
           f"{json.dumps(list(fields))}\n"
    rows = [(number * 10**6, 0, 1, packed(list(fields.values()), of), False)
            for number, of in enumerate(zip(*values, strict=True))]
    return told(rows, book=book)


@pytest.mark.parametrize(("fields", "form", "values", "kind", "whole"), CASES)
def test_exact(told, fields, form, values, kind, whole) -> None:
    if form is not None:
        assert packed(list(fields.values()), tuple(v[0] for v in values)) == struct.pack(form, *(v[0] for v in values))
    run = recorded(told, fields, values)
    table = run.counters()
    assert table.schema.field("value").type == kind
    assert ("whole" in table.column_names) == whole
    for (name, type_), wanted in zip(fields.items(), values, strict=True):
        rows = [row for row in table.to_pylist() if row["counter"] == name]
        found = [row["whole"] if whole and type_[0] != "f" else row["value"] for row in rows]
        assert list(map(repr, map(float if type_[0] == "f" else int, found))) == list(map(repr, wanted))
        if whole and type_[0] == "f":
            assert {row["whole"] for row in rows} == {None}
        if whole and type_[0] != "f":
            assert [row["value"] for row in rows] == list(map(float, wanted))


def test_columns_without_a_dictionary(tmp_path) -> None:
    assert columns(None)["counters"]["value"] == "bigint"
    (tmp_path / "none.toml").write_text("[a]\nid = 1\nfields = { x = 'f32' }\n")
    assert columns(load_dictionary(tmp_path / "none.toml")) == columns(None)


def test_a_query_prints_them(told, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(told, {"a": "u64"}, [UNSIGNED])
    for option in ("--csv", "--json"):
        assert cli._run(["query", str(run.path), option, "select value from counters order by row"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:7] == list(map(str, UNSIGNED))
    assert [json.loads(line)["value"] for line in lines[7:]] == UNSIGNED


@pytest.mark.parametrize(("fields", "values", "wanted"), [
    ({"a": "i64"}, [SIGNED], SIGNED),
    ({"a": "u64", "b": "f32"}, [UNSIGNED, [0.5] * 6], [*UNSIGNED[:4], 2.0**63, 2.0**64])])
def test_perfetto_has_them(told, tmp_path, fields, values, wanted) -> None:
    """Integers below 2^63 are integers there; its counters have no others."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    run, trace = recorded(told, fields, values), pb.Trace()
    assert cli._run(["export", str(run.path), "--to", "perfetto", str(tmp_path / "out")]) == 0
    trace.ParseFromString((tmp_path / "out").read_bytes())
    events = [packet.track_event for packet in trace.packet
              if packet.track_event.type == pb.TrackEvent.TYPE_COUNTER]
    found = [event.counter_value if event.HasField("counter_value") else event.double_counter_value
             for event in events]
    assert [value for value in found if value != 0.5] == wanted


def test_a_picture_is_json(told) -> None:
    """A line has no points where a number is infinite or none: JSON has no such numbers."""
    pytest.importorskip("aiohttp")
    from hypermon.host.view.picture import Pictures

    pictures = Pictures(recorded(told, {"a": "f64"}, [REAL]))
    try:
        pictures.prepare()
        pictures._thread.join()
        answer = pictures.picture(0, 10**7, 100, range(4))
    finally:
        pictures.close()
    size, = struct.unpack_from("<I", answer)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = json.loads(answer[4:4 + size], parse_constant=refuse)["counters"]
    assert [row[4] for row in lines["a"]] == [1.5, 0.0, 1e300]
