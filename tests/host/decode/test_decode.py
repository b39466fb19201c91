"""Recorded runs to tables: complete, idempotent, atomic, and exact over any silence."""

import json
import os
import random
import shutil

import duckdb
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import BlockType, CensusFlag, Sink, Window
from hypermon.host import open_run
from hypermon.host.analysis.stats import stats
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.decode.decode import count_run, decode_run
from hypermon.host.errors import InputError
from hypermon.host.run import Run
from hypermon.host.tables import parquet

from tests.host.fake_board import FakeBoard, random_run


def rows(run):
    return [tuple(r.values()) for r in run.events().to_pylist()]


def tree(path):
    return {p.relative_to(path): (p.stat().st_mtime_ns, p.read_bytes()) for p in path.rglob("*") if p.is_file()}


@pytest.mark.parametrize("nodes", [1, 16, 17, 32])
@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("sink", Sink)
def test_as_the_oracle(make_run, nodes, window, sink):
    board = random_run(FakeBoard(nodes, 35_000_000, window, sink=sink), random.Random(nodes), 20, losses=0.3)
    run = make_run(board)
    assert rows(run) == board.events()
    table = run.events()
    assert [(f.name, str(f.type)) for f in table.schema] == [
        ("time_ps", "int64"), ("node", "int16"), ("nibble", "uint8")]
    loss = run.loss()
    assert [(f.name, str(f.type)) for f in loss.schema] == [
        ("node", "int16"), ("lost", "int64"), ("from_ps", "int64"), ("to_ps", "int64")]
    assert sum(loss["lost"].to_pylist()) == sum(board.refused.values()) == run.stats()["lost"]


@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("clock_hz", [100_000_000, 35_000_000, 200_000_000])
def test_two_events_two_hours_apart(make_run, window, clock_hz):
    """32 bits of windows wrap up to 335 times in between, and the frames do not say so."""
    board = FakeBoard(2, clock_hz, window).start()
    later = 100 + 7200 * clock_hz // window.clocks(clock_hz)
    board.frames([(100, {0: 3})]).frames([(later, {1: 4})]).stop()
    assert later >> 32
    first, second = rows(make_run(board))
    assert (first, second) == ((board.ps(100), 0, 3), (board.ps(later), 1, 4))
    assert abs(second[0] - first[0] - 7200 * 10**12) <= 10**12 / clock_hz * window.clocks(clock_hz)


def test_no_events_at_all(make_run):
    run = make_run(FakeBoard().start().stop(5))
    assert (run.events().num_rows, run.loss().num_rows) == (0, 0)
    assert duckdb.sql(f"select count(*) from '{run.path}/events/*.parquet'").fetchall() == [(0,)]


@pytest.mark.parametrize("sink", Sink)
def test_segments_are_bounded_and_ordered(make_run, monkeypatch, sink):
    monkeypatch.setattr(parquet, "_GROUP", 100)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 2)
    monkeypatch.setattr(parquet, "_ROWS", 7)
    monkeypatch.setattr("hypermon.host.decode.ledger._BATCH", {BlockType.FRAMES: 2000, BlockType.COMPACT: 200})
    board = random_run(FakeBoard(4, sink=sink), random.Random(2), 60, losses=1)
    run = make_run(board)
    assert rows(run) == board.events()
    assert run.loss().num_rows == sum(len(made) for kind, made in board.kinds if kind is BlockType.LOSS)
    assert pq.ParquetFile(run.path / "loss.parquet").num_row_groups > 1
    files = sorted((run.path / "events").iterdir())
    assert len(files) > 3
    assert all(pq.ParquetFile(f).num_row_groups <= 2 for f in files)
    column = pq.ParquetFile(files[0]).metadata.row_group(0).column(0)
    assert "DELTA_BINARY_PACKED" in column.encodings
    query = f"select time_ps, node, nibble from '{run.path}/events/*.parquet' order by time_ps, node"
    assert duckdb.sql(query).fetchall() == board.events()


def test_decoding_again_changes_nothing(make_run):
    run = make_run(random_run(FakeBoard(3), random.Random(1), 5, losses=1))
    first = decode_run(run)
    before = tree(run.path)
    assert decode_run(open_run(run.path)) == first
    assert tree(run.path) == before


def test_a_board_with_regeneration_boards_is_decoded_once(make_run):
    board = FakeBoard(3)
    board.always = CensusFlag.LINKS
    run = make_run(random_run(board, random.Random(1), 5))
    first = decode_run(run)
    assert (first["links_unsure"], first["links_absent"], first["links_restarted"]) == ([], [], [])
    before = tree(run.path)
    said = []
    assert decode_run(open_run(run.path), tell=said.append) == first
    assert (said, tree(run.path)) == ([], before)


def test_what_was_recorded_since_is_decoded_too(make_run):
    board = random_run(FakeBoard(3), random.Random(1), 5)
    half = len(board.data) // 2
    run = make_run(board, board.data[:half], end=False)
    few = run.events().num_rows
    with open(run.stream_path, "ab") as file:
        file.write(board.data[half:])
    assert few < run.events().num_rows == len(board.events())


@pytest.mark.parametrize("where", ["decode._put_in_place", "account.write_json"])
def test_a_decode_that_is_killed_has_not_happened(make_run, monkeypatch, where):
    board = random_run(FakeBoard(3), random.Random(1), 5, losses=1)
    run = make_run(board)
    run.events()
    wanted = {p: b for p, (_, b) in tree(run.path).items()}
    with open(run.stream_path, "ab") as file:
        file.write(b"more")
    with monkeypatch.context() as patch:
        patch.setattr(f"hypermon.host.decode.{where}", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            decode_run(run)
    os.truncate(run.stream_path, len(board.data))
    assert rows(run) == board.events()
    assert {p: b for p, (_, b) in tree(run.path).items()} == wanted


def test_a_missing_table_is_made_anew(make_run):
    board = random_run(FakeBoard(3), random.Random(1), 5)
    run = make_run(board)
    run.decode()
    (run.path / "loss.parquet").unlink()
    assert run.loss().num_rows == 0
    shutil.rmtree(run.path / "events")
    assert rows(run) == board.events()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_recording_cut_at_any_byte_opens_with_every_whole_block(make_run, step):
    board = random_run(FakeBoard(2), random.Random(4), 3, size=3, losses=1)
    ends = [sum(map(len, board.blocks[:k + 1])) for k in range(len(board.blocks))]
    run = make_run(board, b"", end=False)
    data = board.data
    near = {e + d for e in ends for d in (-1, 0, 1)}
    for cut in sorted({*range(0, len(data), step), *near} - {len(data) + 1}):
        run.stream_path.write_bytes(data[:cut])
        (run.path / "decode.json").unlink(missing_ok=True)
        assert rows(run) == board.events(lambda i, cut=cut: ends[i] <= cut)
        assert run.stats()["accounted"] == (cut == len(data))


@pytest.mark.parametrize("sink", Sink)
@pytest.mark.parametrize("seed", range(30))
def test_corruption_costs_blocks_and_never_makes_an_event(make_run, seed, sink):
    """What is missing is counted by the censuses, to the event."""
    rng = random.Random(seed)
    board = random_run(FakeBoard(4, sink=sink), rng, 20)
    data, first, last = bytearray(board.data), len(board.blocks[0]), len(board.data) - len(board.blocks[-1])
    for _ in range(rng.randint(1, 6)):
        data[rng.randrange(first, last)] ^= rng.randint(1, 255)
    scanner = BlockScanner()
    kept = {i.offset for items in (scanner.feed(bytes(data)), scanner.finish()) for i in items if hasattr(i, "payload")}
    offsets = [sum(map(len, board.blocks[:k])) for k in range(len(board.blocks))]
    run = make_run(board, bytes(data))
    assert rows(run) == board.events(lambda i: offsets[i] in kept)
    stats = run.stats()
    assert stats["events"] + stats["lost"] == len(board.events())
    assert stats["torn_bytes"] > 0
    assert not stats["complete"]


def test_stats_keys(make_run):
    board = FakeBoard(nodes=2).start().frames([(1, {0: 1, 1: 2}), (3, {0: 1})]).loss([(1, 4, 5, 6)])
    board.carried[0], board.lag[0] = 3, 2
    board.carried[1], board.lag[1] = 1, 5
    run = make_run(board.stop(9))
    stats = run.stats()
    assert {k: stats[k] for k in (
        "events", "frames", "lost", "lost_per_node", "events_per_node", "late_nibbles", "late_max_ps", "stream_bytes",
        "payload_bytes", "duration_ps", "clock_hz", "window_ps")} == {
            "events": 3, "frames": 2, "lost": 4, "lost_per_node": [0, 4], "events_per_node": [2, 1],
            "late_nibbles": 4, "late_max_ps": 5 * 800_000, "stream_bytes": len(board.data), "payload_bytes": 32,
            "duration_ps": 12345, "clock_hz": 100_000_000, "window_ps": 800_000}
    assert stats["merged_percent"] == pytest.approx(200 / 3)
    assert stats["causes"] == {"frame_fifo": 0, "node_fifo": 4, "vector_fifo": 0, "link": 0, "unsaid": 0}
    json.dumps(stats)


def test_duration_of_a_run_without_an_end(make_run):
    run = make_run(FakeBoard(nodes=2).start().frames([(1, {0: 1})]).census(time=99), end=False)
    assert run.stats()["duration_ps"] == 100 * 800_000


@pytest.mark.parametrize(("text", "reason"), [
    ("{", "not readable"), ("[]", "not a JSON object"), ('{"format": 2}', "pip install --upgrade"),
    ('{"format": 1}', "makes no sense"), ('{"format": 1, "what": 3}', "makes no sense")])
def test_a_recording_that_is_none(make_run, text, reason):
    run = make_run(FakeBoard().start())
    (run.path / "recording.json").write_text(text)
    with pytest.raises(InputError, match=reason):
        open_run(run.path)


@pytest.mark.parametrize(("key", "value"), [
    ("nodes", 0), ("nodes", 33), ("nodes", "2"), ("clock_hz", 0), ("window", "7"), ("epoch", -1), ("latency", 256),
    ("started", "yesterday"), ("started", 7), ("end", "soon")])
def test_a_recording_of_nonsense(make_run, key, value):
    run = make_run(FakeBoard().start())
    path = run.path / "recording.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(InputError, match=f"{key} is"):
        open_run(run.path)


def test_no_recording(tmp_path):
    with pytest.raises(InputError, match=r"no recording\.json here"):
        open_run(tmp_path)


def test_no_stream(make_run):
    run = make_run(FakeBoard().start())
    run.stream_path.unlink()
    with pytest.raises(InputError, match=r"no stream\.bin here"):
        open_run(run.path)


@pytest.mark.parametrize("text", ["{", "{}", '{"first": 0, "account": null}'])
def test_a_damaged_ring_is_said(make_run, text):
    run = make_run(FakeBoard().start().stop(9))
    (run.path / "ring.json").write_text(text)
    with pytest.raises(InputError, match=r"ring\.json: (not readable|it makes no sense)"):
        Run(run.path)


@pytest.mark.parametrize("step", range(6))
def test_a_decode_that_is_killed_between_two_files(make_run, monkeypatch, step):
    """While tables are being replaced there is no account of them; then all is done again."""
    board = random_run(FakeBoard(3), random.Random(1), 5, losses=1)
    run = make_run(board, board.data[:len(board.data) // 2], end=False)
    run.events()
    with open(run.stream_path, "ab") as file:
        file.write(board.data[len(board.data) // 2:])
    rename, calls = os.rename, []

    def killed(old, new):
        calls.append(new)
        if len(calls) > 1:
            assert not (run.path / "decode.json").exists()
        if len(calls) > step:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", killed)
        if step < 5:
            with pytest.raises(KeyboardInterrupt):
                decode_run(run)
        else:
            decode_run(run)
    assert len(calls) == min(step + 1, 5)
    assert rows(open_run(run.path)) == board.events()
    assert sum(row["lost"] for row in run.loss().to_pylist()) == sum(board.refused.values())
    assert not list(run.path.glob(".hypermon-*"))


@pytest.mark.parametrize("sink", Sink)
def test_figures_need_no_tables(make_run, sink):
    run = make_run(random_run(FakeBoard(4, sink=sink), random.Random(5), 40, losses=1))
    before = tree(run.path)
    counted = count_run(run)
    figures = stats(run, counted)
    assert tree(run.path) == before
    done = decode_run(run)
    assert counted == {name: value for name, value in done.items() if name in counted}
    assert counted["events"] > 0
    assert counted["lost"] > 0
    assert count_run(run) == done
    assert run.stats() == figures
