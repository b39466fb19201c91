"""JSON files that somebody else may have written: one line of what is wrong, whatever it is."""

import json
import os

import pytest
from hypermon.host import open_run
from hypermon.host.errors import InputError
from hypermon.host.text.json_file import (
    CHECK,
    anything,
    flag,
    integer,
    listed,
    mapping,
    maybe,
    number,
    one_of,
    parse_json,
    read_json,
    read_regular,
    sealed,
    table,
    text,
)

from tests.host.fake_board import FakeBoard

DEEP = "[" * 200_000
LONG = "9" * 4400


@pytest.mark.parametrize(("shape", "good", "bad"), [
    (integer(1, 5), [1, 5], [0, 6, True, 1.0, "1", None, 10**4000]),
    (number(-1, 1), [-1, 0.5, 1], [2, float("nan"), float("inf"), "0", True, None]),
    (text(3), ["", "abc", "\u00e4"], ["abcd", "\x1b[", "\n", "\x9b", 3, None]),
    (flag(), [True, False], [0, 1, "true", None]),
    (one_of("a", "b"), ["a"], ["c", 1, None, ["a"]]),
    (maybe(integer(0, 1)), [None, 1], [2]),
    (listed(integer(0, 9), 1, 2), [[1], [1, 2]], [[], [1, 2, 3], [10], "12", None]),
    (mapping(integer(0, 9), 1), [{}, {"a": 1}], [{"a": 1, "b": 2}, {"a": "1"}, {"\x1b": 1}, []]),
    (table({"a": flag()}, {"b": flag()}), [{"a": True}, {"a": True, "b": True}],
     [{}, {"b": True}, {"a": 1}, {"a": True, "c": 1}, []]),
    (table({}, more=True), [{}, {"c": [1, {"d": None}]}], [{"c": 1 << 70}, {"c": float("inf")}]),
    (anything(2), [1, "x", None, [1], [[1]], {"a": [1]}],
     [[[[1]]], {"a": {"b": {}}}, [1 << 64], [float("nan")], "\x1b"]),
])
def test_shapes(shape, good, bad):
    for value in good:
        shape("it", value)
    for value in bad:
        with pytest.raises(ValueError, match=r"it|name") as raised:
            shape("it", value)
        assert len(str(raised.value)) < 250
        assert str(raised.value).isprintable()


@pytest.mark.parametrize("text", [DEEP, '{"a":' * 100_000, LONG, "", "{", "\0", "NaN", "[Infinity]", "nul", '"\\x"'])
def test_what_is_no_json(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_what_is_no_file(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(FileNotFoundError):
        read_regular(path)
    for make in (path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"),
                 lambda: path.symlink_to(path.name)):
        make()
        with pytest.raises(InputError, match=r"x\.json: "):
            read_regular(path)
        path.rmdir() if path.is_dir() else path.unlink()
    path.write_bytes(b"123")
    assert read_regular(path, 3) == b"123"
    with pytest.raises(InputError, match="longer than 2 bytes"):
        read_regular(path, 2)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not readable"):
        read_json(path, anything())


def test_every_damaged_byte_is_noticed(tmp_path):
    """By the checksum, if the values are still of the shape."""
    path, values = tmp_path / "x.json", {"a": [1, 2.5, None], "b": {"c": "text", "d": 10**18}}
    path.write_text(json.dumps(sealed(values)))
    assert read_json(path, anything()) == values
    good = path.read_bytes()
    for at in range(len(good)):
        for bit in range(8):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:])
            try:
                assert read_json(path, table({"a": anything(), "b": anything()})) == values
            except InputError:
                continue
    path.write_text(json.dumps(values))
    assert read_json(path, anything()) == values


NASTY = [DEEP, "{" + f'"format": {LONG}' + "}", '{"format": 1e999}', "[]", "7", "", '{"format": NaN}']


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("name", ["recording.json", "clock.json", "decode.json", "ring.json", "semantics.json"])
def test_every_json_file_of_a_run(make_run, run_cli, name, text):
    """It is refused or made anew, in a line."""
    run = make_run(FakeBoard(nodes=2).start().frames([(1, {0: 1}), (2, {1: 2})]).stop(9))
    wanted = run.events()
    (run.path / name).write_text(text)
    status, _, err = run_cli("stats", run.path)
    assert (status, len(err)) in ((2, 1), (0, 1), (0, 0))
    assert (status == 0) == (name in ("decode.json", "semantics.json"))
    assert err == [] or name in err[0] or "decoded anew" in err[0]
    if status == 0:
        assert run.events().equals(wanted)
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    status, _, err = run_cli("stats", run.path)
    assert (status, len(err)) in ((2, 1), (0, 1), (0, 0))


@pytest.mark.parametrize(("member", "value"), [
    ("identity", [1]), ("identity", {"b": 1 << 90}), ("configuration", None), ("board", "\x1b]0;x\x07"),
    ("software", 7), ("drain", "tap"), ("boards", ["../../etc"]), ("boards", ["board-1\n"]), ("nodes", True),
    ("end", {"duration_ps": "1"}), ("end", {"duration_ps": 1 << 80}), ("end", {"stream": {"x": [1]}}),
    ("end", {"how": "\x1b[2J"}), ("modes", [[]]), ("modes", ["nibble"]), ("half_clock", 1), ("half_clock", True),
    ("quarter_clock", 1), ("quarter_clock", True),
    ("ring_seconds", "1"), ("started", "0001-01-01T00:00:00"), ("sink", None), ("clock_hz", 1), ("other", 1)])
def test_members_of_a_recording(make_run, member, value):
    run = make_run(FakeBoard(nodes=2).start())
    path = run.path / "recording.json"
    values = json.loads(path.read_text())
    values.pop(CHECK)
    path.write_text(json.dumps(values | {member: value}))
    with pytest.raises(InputError, match=rf"recording\.json: it makes no sense: .*{member}"):
        open_run(run.path)


@pytest.mark.parametrize("values", [
    {"utc_ns": "0); copy (select 1) to 'owned.txt'; create macro zz(t) as make_timestamp_ns(0"},
    {"utc_ns": 0, "drift_ppm": "0"}, {"utc_ns": 1 << 70}, {"utc_ns": 0, "drift_ppm": 1e300}, {"utc_ns": 0.5}, {},
    {"utc_ns": 0, "more": 1}, {"utc_ns": True}])
def test_a_clock_of_somebody_else(make_run, run_cli, tmp_path, monkeypatch, values):
    monkeypatch.chdir(tmp_path)
    run = make_run(FakeBoard(nodes=2).start().frames([(1, {0: 1})]).stop(9))
    (run.path / "clock.json").write_text(json.dumps(values))
    status, _, err = run_cli("query", run.path, "select utc(time_ps) from events")
    assert (status, len(err)) == (2, 1)
    assert "clock.json: it makes no sense: " in err[0]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("member", ["came", "recorded", "agreed", "counters", "last", "window"])
@pytest.mark.parametrize("damage", [
    lambda values: None, lambda values: [*values, 0] if isinstance(values, list) else "x"])
def test_members_of_a_ring(make_run, run_cli, member, damage):
    """Each is needed, with a value for each node."""
    run = make_run(FakeBoard(nodes=2).start().frames([(1, {0: 1})]).stop(9))
    account = {"came": [0, 0], "recorded": [0, 0], "agreed": [0, 0], "last": [-1, 1], "window": 0, "counters": None}
    path = run.path / "ring.json"
    path.write_text(json.dumps({"first": 0, "account": account}))
    assert run_cli("decode", run.path)[0] == 0
    (run.path / "decode.json").unlink()
    changed = damage(account[member])
    if member == "counters":
        changed = None if changed is None else [[0] * 8]
    values = {**account, member: changed} if changed is not None else {k: v for k, v in account.items() if k != member}
    path.write_text(json.dumps({"first": 0, "account": values}))
    status, _, err = run_cli("stats", run.path)
    assert (status, len(err)) == (2, 1)
    assert "ring.json: " in err[0]
