"""Traces for Perfetto: read back packet by packet, and by Perfetto's own trace processor."""

import io
import random
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.dictionary.dictionary import Dictionary, load_dictionary
from hypermon.host.dictionary.fields import decode_fields
from hypermon.host.dictionary.semantics import TABLES, create_views
from hypermon.host.export import tracks
from hypermon.host.export.perfetto import write_trace
from hypermon.host.export.tracks import PLAIN, Tracks, plain
from hypermon.host.tables.parquet import LOSS_SCHEMA

from tests.host.external.trace_processor import query
from tests.host.fake_board import FakeBoard, random_run

trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

BOOK = """
[nodes]
0 = "master"
[begin]
id = 1
fields = { job = "u8", state = { type = "u8", values = { idle = 0, busy = 1 } } }
begin = "job"
key = "job"
[end]
id = 2
fields = { job = "u8" }
end = "job"
key = "job"
[level]
id = 3
fields = { level = "i16", big = "u64" }
counters = ["level", "big"]
[phase]
id = 4
end = "phase"
begin = "phase"
"""


def book(folder: Path) -> Dictionary:
    (folder / "book.toml").write_text(BOOK)
    return load_dictionary(folder / "book.toml")


def events(dictionary: Dictionary | None, *rows: tuple[int, int, int | None, bytes, bool]) -> pa.Table:
    """Rows of nanoseconds, node, id, payload, aborted."""
    times, nodes, ids, payloads, aborted = zip(*rows, strict=True) if rows else ((),) * 5
    table = pa.Table.from_arrays([
        pa.array([t * 1000 for t in times], pa.int64()), pa.array(nodes, pa.int16()), pa.array(ids, pa.uint8()),
        pa.array(payloads, pa.binary()), pa.array(aborted, pa.bool_())], schema=EVENT_SCHEMA)
    return table if dictionary is None else decode_fields(table, dictionary)[0]


def losses(*rows: tuple[int, int, int, int]) -> pa.Table:
    """Rows of node, lost, and nanoseconds."""
    return pa.Table.from_pylist([{"node": n, "lost": c, "from_ps": 1000 * a, "to_ps": 1000 * b} for n, c, a, b in rows],
                                schema=LOSS_SCHEMA)


def write(items: pa.Table, loss: pa.Table | None = None, *, nodes: int = 1, dictionary: Dictionary | None = None,
          file: io.BytesIO | None = None, **options: Any) -> bytes:
    file = io.BytesIO() if file is None else file
    loss = losses() if loss is None else loss
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for name, table in (("events", items), ("loss", loss)):
            pq.write_table(table, f"{folder}/{name}")
            connection.read_parquet(f"{folder}/{name}").create_view(name)
        create_views(connection, dictionary)
        for name in TABLES:     # a run has them in files
            connection.execute(f"copy {name} to '{folder}/{name}' (format parquet)")
            connection.execute(f"create or replace view {name} as from read_parquet('{folder}/{name}')")
        write_trace(file, Tracks(connection, dictionary), outages(loss, nodes), **options)
    return file.getvalue()


def read(data: bytes) -> dict[str, list[tuple[Any, ...]]]:
    """By track: (time, duration, name) of slices, -1 if one stays open; (time, value) of counters."""
    tracks: dict[int, str] = {}
    names: dict[int, str] = {}
    found = defaultdict(list)
    open_: dict[int, list[list[Any]]] = defaultdict(list)
    kinds = trace_pb2.TrackEvent
    for packet in trace_pb2.Trace.FromString(data).packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            above = tracks.get(packet.track_descriptor.parent_uuid)
            tracks[packet.track_descriptor.uuid] = f"{above}/{packet.track_descriptor.name}" if above else \
                packet.track_descriptor.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        track = tracks[event.track_uuid]
        name = event.name or names.get(event.name_iid)
        if event.type == kinds.TYPE_SLICE_BEGIN:
            open_[event.track_uuid].append([packet.timestamp, -1, name])
            found[track].append(open_[event.track_uuid][-1])
        elif event.type == kinds.TYPE_SLICE_END:
            slice_ = open_[event.track_uuid].pop()
            slice_[1] = packet.timestamp - slice_[0]
        elif event.type == kinds.TYPE_INSTANT:
            found[track].append([packet.timestamp, 0, name])
        else:
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            found[track].append([packet.timestamp, value])
    return {track: [tuple(row) for row in rows] for track, rows in found.items()}


@pytest.fixture
def scene(tmp_path: Path) -> bytes:
    """One of everything."""
    dictionary = book(tmp_path)
    items = events(
        dictionary,
        (-30, 0, 1, b"\x07\x01", False),   # begins before time 0
        (100, 0, 1, b"\x08\x00", False),
        (150, 0, 4, b"", False),           # a phase that begins, ends none
        (200, 0, 2, b"\x08", False),
        (200, 1, 3, b"\xfe\xff" + b"\xff" * 8, False),
        (250, 1, 3, b"\x05", False),       # too short for anything
        (300, 0, 2, b"\x09", False),       # ends nothing
        (350, 1, 77, b"ab", False),        # nobody knows it
        (400, 0, 1, b"\x0a", True),        # aborted: it may have begun any job
        (450, 1, None, b"", True),
        (500, 0, 4, b"", False),
        (550, 1, 1, b"\x01\x02", False),   # goes into a loss: its end may be in there
        (600, 0, 2, b"\x07", False),
        (650, 1, 1, b"\x02\x00", False),   # within a loss
        (700, 1, 1, b"\x03\x00", False),   # never ends; there is a loss behind it
        (900, 1, 2, b"\x02", False),
        (950, 1, 2, b"\x01", False),
    )
    return write(items, losses((1, 1234, 640, 680), (1, 5, 800, 850)), dictionary=dictionary, title="the run", nodes=3,
                 duration_ps=2_000_999)


MASTER, SECOND = "the run/master", "the run/node 1"
WANTED = {
    "the run": [(0, 2000, "recording")],
    MASTER: [(0, 400, "job"), (100, 100, "job"), (300, 0, "end"), (400, 0, "aborted event 1"),
             (500, -1, "phase"), (600, 0, "end")],
    f"{MASTER}/master (2)": [(150, 350, "phase")],
    # A job ends where something is lost. The ends that come later may be another's: they end nothing.
    SECOND: [(200, 0, "level"), (250, 0, "level"), (350, 0, "event 77"), (450, 0, "aborted"), (550, 90, "job"),
             (640, 40, "lost 1,234 items"), (650, 0, "job"), (700, 100, "job"), (800, 50, "lost 5 items"),
             (900, 0, "end"), (950, 0, "end")],
}


def test_packets(scene: bytes) -> None:
    found = read(scene)
    assert {track: sorted(rows) for track, rows in found.items()} == {
        **WANTED, f"{SECOND}/level": [(200, -2)], f"{SECOND}/big": [(200, 2.0**64)]}


def test_perfetto_reads_the_same(scene: bytes, tmp_path: Path) -> None:
    slices, counters, tracks, arguments = query(
        scene, tmp_path,
        "select t.name, s.ts, s.dur, s.name from slice s join track t on s.track_id = t.id order by s.ts, s.id",
        "select t.name, c.ts, c.value from counter c join track t on c.track_id = t.id order by t.name",
        "select t.name, p.name from track t left join track p on t.parent_id = p.id",
        "select s.ts, a.key, a.display_value from slice s join args a using(arg_set_id) "
        "where a.key like 'debug.%' order by s.ts, s.id, a.key")
    found = defaultdict(list)
    for track, *row in slices:
        found[track].append(tuple(row))
    assert {track: sorted(rows) for track, rows in found.items()} == {
        track.rpartition("/")[2]: rows for track, rows in WANTED.items()}
    assert counters == [("big", 200, 2.0**64), ("level", 200, -2.0)]
    assert ("master", "the run") in tracks
    assert ("master (2)", "master") in tracks
    said, lost = defaultdict(dict), "not seen, drawn until items were lost"
    for time, key, value in arguments:
        said[time][key.removeprefix("debug.")] = value
    assert said == {
        0: {"job": "7", "state": "busy", "ended": lost}, 100: {"job": "8", "state": "idle", "end.job": "8"},
        200: {"level": "-2", "big": "-1"}, 300: {"job": "9"}, 350: {"payload": "6162"}, 400: {"payload": "0a"},
        450: {"payload": ""}, 500: {"ended": "not seen"},
        550: {"job": "1", "state": "2", "ended": lost}, 650: {"job": "2", "state": "idle", "ended": lost},
        700: {"job": "3", "state": "idle", "ended": lost}, 600: {"job": "7"}, 900: {"job": "2"}, 950: {"job": "1"}}


def test_without_a_dictionary() -> None:
    items = events(None, (10, 0, 5, b"\x01", False), (20, 31, 6, b"", False))
    found = read(write(items, losses((2, 1, 5, 6)), nodes=32))
    assert found == {"hypermon/node 0": [(10, 0, "event 5")], "hypermon/node 2": [(5, 1, "lost 1 item")],
                     "hypermon/node 31": [(20, 0, "event 6")]}
    nibbles = pa.table({"time_ps": pa.array([1999, 2000], pa.int64()), "node": pa.array([0, 0], pa.int16()),
                        "nibble": pa.array([0, 15], pa.uint8())})
    assert read(write(nibbles)) == {"hypermon/node 0": [(1, 0, "nibble 0"), (2, 0, "nibble 15")]}
    words = pa.table({"time_ps": pa.array([5000], pa.int64()), "node": pa.array([0], pa.int16()),
                      "word": pa.array([0xdeadbeef], pa.uint32())})
    assert read(write(words)) == {"hypermon/node 0": [(5, 0, "word")]}
    assert read(write(nibbles.slice(0, 0))) == {}


def test_nibbles_that_are_written_together() -> None:
    """Times of every length of their varints, and both lengths of the numbers of tracks; aborted ones among them."""
    rng = random.Random(3)
    edges = [limit + off for shift in range(7, 50, 7) for limit in (1 << shift,) for off in (-1, 0, 1)]
    times = [-5, 0, 1, 2, *edges] * 40
    rng.shuffle(times)
    nodes = [rng.choice([0, 1, 30, 31, 700]) for _ in times]
    values = [rng.randrange(16) for _ in times]
    aborted = [rng.random() < 0.1 for _ in times]
    items = pa.table({
        "time_ps": pa.array([1000 * time + 999 for time in times], pa.int64()),
        "node": pa.array(nodes, pa.int16()), "nibble": pa.array(values, pa.uint8()),
        "aborted": pa.array([True if one else None for one in aborted], pa.bool_())})
    found = read(write(items, nodes=701))
    wanted = defaultdict(list)
    for time, node, value, broken in zip(items["time_ps"].to_pylist(), nodes, values, aborted, strict=True):
        wanted[f"hypermon/node {node}"].append((max(time // 1000, 0), 0, "aborted" if broken else f"nibble {value}"))
    assert {track: sorted(rows) for track, rows in found.items()} == {
        track: sorted(rows) for track, rows in wanted.items()}


@pytest.mark.parametrize("seed", range(4))
def test_items_that_are_written_together(seed: int) -> None:
    """Bytes of every number, words of as many digits as there are, of many nodes and ids, at times of all lengths."""
    rng, rows = random.Random(seed), []
    for _ in range(4000):
        node, time = rng.choice([0, 1, 15, 126, 127, 300]), rng.randrange(-(1 << 20), 1 << rng.randrange(20, 62))
        one = {"time_ps": time, "node": node, "nibble": None, "word": None, "event": None, "payload": None,
               "aborted": rng.random() < 0.02}
        match rng.randrange(3):
            case 0:
                one["nibble"] = rng.randrange(16)
            case 1:
                one["word"] = rng.randrange(1 << rng.randrange(1, 33))
            case _:
                one["event"] = rng.choice([None, 3, 9, rng.randrange(256)]) if one["aborted"] else rng.randrange(256)
                one["payload"] = rng.randbytes(rng.randrange(15))
        rows.append(one)
    kinds = {"time_ps": pa.int64(), "node": pa.int16(), "nibble": pa.uint8(), "word": pa.uint32(), "event": pa.uint8(),
             "payload": pa.binary(), "aborted": pa.bool_()}
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    trace = trace_pb2.Trace.FromString(write(table, nodes=301))
    names, keys, found = dict[int, str](), dict[int, str](), []
    for packet in trace.packet:
        names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
        keys |= {entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names}
        if packet.HasField("track_event"):
            of = packet.track_event
            assert (of.type, packet.sequence_flags, packet.trusted_packet_sequence_id) == (of.TYPE_INSTANT, 2, 1)
            said = {keys[note.name_iid]: note.string_value if note.HasField("string_value") else note.int_value
                    for note in of.debug_annotations}
            found.append((packet.timestamp, of.track_uuid, names[of.name_iid], sorted(said.items())))
    wanted = []
    for row in rows:
        name, said = plain({key: row[key] for key in PLAIN})
        wanted.append((max(row["time_ps"] // 1000, 0), (row["node"] + 1) << 16, name, sorted(
            (key, value.hex() if isinstance(value, bytes) else value) for key, value in said.items()
            if value is not None)))
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_many(seed: int, tmp_path: Path) -> None:
    """More than one piece of the file; every event is drawn once, whatever its order."""
    rng = random.Random(seed)
    dictionary = book(tmp_path)
    rows, time = [], 0
    for _ in range(6000):
        time += rng.randrange(3)
        kind = rng.choice([1, 1, 2, 2, 3, 4])
        rows.append((time, rng.randrange(4), kind, {1: bytes([rng.randrange(9), 1]), 2: bytes([rng.randrange(9)]),
                                                   3: bytes(10), 4: b""}[kind], False))
    items = events(dictionary, *rows)
    pieces: list[bytes] = []
    file = io.BytesIO()
    file.write = pieces.append
    write(items, dictionary=dictionary, nodes=4, file=file)
    assert len(pieces) > 2
    found = read(b"".join(pieces))
    count = defaultdict(int)
    ends = 0
    for track, own in found.items():
        if track.rpartition("/")[2] not in ("level", "big"):
            for _, duration, name in own:
                count[name] += 1
                ends += name == "job" and duration >= 0
    assert count["job"] == sum(kind == 1 for _, _, kind, *_ in rows)
    assert count["level"] == len([1 for track in found for _ in found[track] if track.endswith("/level")])
    assert count["end"] + ends == sum(kind == 2 for _, _, kind, *_ in rows)
    assert count["phase"] == sum(kind == 4 for _, _, kind, *_ in rows)


def test_export(make_run, tmp_path: Path) -> None:
    """Nibbles until somebody says that they are events."""
    nibbles = [2, 0x7, 0x4, 0xb, 0xa]
    board = FakeBoard(nodes=2).start().frames([(10 * i + 10, {0: v}) for i, v in enumerate(nibbles)]).stop(500)
    run = make_run(board)
    out = tmp_path / "out.pftrace"
    assert cli._run(["export", str(run.path), "--to", "perfetto", str(out)]) == 0
    assert [name for *_, name in read(out.read_bytes())["run/node 0"]] == [f"nibble {n}" for n in nibbles]
    assert cli._run(["decode", str(run.path), "--framing", "event"]) == 0
    assert cli._run(["export", str(run.path), "--to", "perfetto", str(out)]) == 0
    assert read(out.read_bytes()) == {"run": [(0, 12, "recording")],
                                      "run/node 0": [(board.ps(10) // 1000, 0, "event 71")]}
    (tmp_path / "book.toml").write_text("[nodes]\n0 = 'x'\n[hello]\nid = 71\n")
    assert cli._run(["decode", str(run.path), "--dictionary", str(tmp_path / "book.toml")]) == 0
    assert cli._run(["export", str(run.path), "--to", "perfetto", str(out)]) == 0
    assert read(out.read_bytes())["run/x"] == [(board.ps(10) // 1000, 0, "hello")]


def test_flows(tmp_path: Path) -> None:
    """Messages are arrows from what sends them to what receives them, be it an instant, a beginning or an end."""
    (tmp_path / "book.toml").write_text("""
[a]
id = 1
fields = { n = "u8" }
send = "x"
key = "n"
[b]
id = 2
fields = { n = "u8" }
receive = "x"
key = "n"
begin = "work"
[c]
id = 3
fields = { n = "u8" }
end = "work"
send = "x"
key = "n"
""")
    dictionary = load_dictionary(tmp_path / "book.toml")
    items = events(dictionary, (100, 0, 1, b"\x01", False), (200, 1, 2, b"\x01", False), (300, 1, 3, b"\x01", False),
                   (400, 0, 2, b"\x01", False), (500, 0, 1, b"\x09", False))
    [flows] = query(write(items, dictionary=dictionary, nodes=2), tmp_path,
                    "select a.name, a.ts, b.name, b.ts from flow join slice a on slice_out = a.id "
                    "join slice b on slice_in = b.id order by a.ts")
    assert flows == [("a", 100, "work", 200), ("ends work", 300, "work", 400)]


def test_without_utc_there_is_no_manifest(tmp_path: Path, make_run, capsys) -> None:
    run = make_run(FakeBoard(nodes=2).start().stop(500))
    assert cli._run(["export", str(run.path), "--to", "manifest", str(tmp_path / "m.json")]) == 2
    assert "never compared with UTC" in capsys.readouterr().err
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(("rows", "nodes"), [(1, 1), (9, 3), (1 << 30, 1 << 30)])
def test_items_that_are_fetched_together(make_run, tmp_path: Path, monkeypatch, rows: int, nodes: int) -> None:
    """However many nodes a query is for, the trace is the same, and has every item at its time."""
    board = random_run(FakeBoard(), random.Random(5), 12, losses=0.5)
    run = make_run(board)
    monkeypatch.setattr(tracks, "_ROWS", rows)
    monkeypatch.setattr(tracks, "_NODES", nodes)
    for options, kept in (([], range(16)), (["--nodes", "2,7-9"], (2, 7, 8, 9))):
        out = tmp_path / "run.pftrace"
        assert cli._run(["export", str(run.path), "--to", "perfetto", *options, str(out)]) == 0
        [found] = query(out.read_bytes(), tmp_path, "select t.name, s.ts, s.name from slice s join track t on "
                        "s.track_id = t.id where s.name like 'nibble%' order by 2, 1, 3")
        wanted = [(f"node {node}", max(time // 1000, 0), f"nibble {nibble}") for time, node, nibble in board.events()
                  if node in kept]
        assert found == sorted(wanted, key=lambda row: (row[1], row[0], row[2]))
