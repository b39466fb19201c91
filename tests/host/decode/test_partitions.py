"""The store of a run of several boards: parts of each, in the run's time."""

import json
import os
import random
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from hypermon.host.decode import partitions
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import InputError
from hypermon.host.record.recorder import record
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run

OLD = Path(__file__).parent / "old_layout"
#: 10 ms before a midnight.
LATE_NS = 1_795_391_999_990_000_000


@pytest.fixture
def run(make_run, tmp_path):
    """Three boards, of which the second begins 3 ms after the first, and one records nothing."""
    (tmp_path / "together").mkdir()
    boards = [random_run(FakeBoard(2), random.Random(1), 12, losses=0.6), FakeBoard(3),
              random_run(FakeBoard(4), random.Random(2), 12, losses=0.6)]
    for number, board in enumerate(boards):
        part = make_run(board, name=f"together/board-{number}", board=f"uart:{number}")
        save_clock(part.path, WallClock(LATE_NS + 3_000_000 * number, 20.0 * number, 400, 9))
    info = RunInfo.load(tmp_path / "together" / "board-0" / "recording.json")
    names = [f"board-{number}" for number in range(3)]
    (tmp_path / "together" / "recording.json").write_text(json.dumps(asdict(
        replace(info, boards=names, board="all", nodes=9))))
    return open_run(tmp_path / "together")


def rows(run):
    return [list(row.values()) for row in run.events().to_pylist()]


def stamps(run):
    """The directory of each board: a new one is written while the old one exists."""
    return {path.name: path.stat().st_ino for path in (run.path / "events").iterdir()}


def test_layout(run):
    """Nothing is stored twice; days are UTC's, and any engine finds the board in the path."""
    first = [path.relative_to(run.path).as_posix() for path in run.event_files()]
    assert [name.split("/")[1] for name in first] == ["board=000", "board=000", "board=001", "board=002", "board=002"]
    assert {name.split("/")[2] for name in first} == {"date=2026-11-22", "date=2026-11-23"}
    assert not list(run.path.glob("board-*/events"))
    assert not (run.path / "loss.parquet").exists()
    for path in run.event_files():
        days = run.utc(pq.ParquetFile(path).read()["time_ps"].to_numpy()).astype("datetime64[D]")
        assert {f"date={day}" for day in days} <= {path.parent.name}
    asked = duckdb.sql("select board::int, count(*), min(node), max(node) "
                       f"from read_parquet('{run.path}/events/*/*/*.parquet') group by all order by all").fetchall()
    counts = run.stats()["events_per_node"]
    assert asked == [(0, sum(counts[:2]), 0, 1), (2, sum(counts[5:]), 5, 8)]
    assert run.sql("select board, min(node), max(node) from events group by board order by board").fetchall() == [
        (0, 0, 1), (2, 5, 8)]
    lost = sum(run.stats()["lost_per_node"][5:])
    assert run.sql("select sum(lost) from loss where board = 2").fetchall() == [(lost,)]
    assert run.sql("select board, uri, first_node, how, uncertainty_ns from boards").fetchall() == [
        (0, "uart:0", 0, "first", 0), (1, "uart:1", 2, "host clock", 801), (2, "uart:2", 5, "host clock", 801)]


def test_a_new_alignment_rewrites_one_part(run):
    before, made = rows(run), stamps(run)
    save_clock(run.path / "board-2", WallClock(LATE_NS + 6_000_001, 40.0, 400, 9))
    moved = rows(run)
    assert [row for row in moved if row[1] < 5] == [row for row in before if row[1] < 5]
    assert [row[0] - 1000 for row in moved if row[1] >= 5] == [row[0] for row in before if row[1] >= 5]
    assert {name for name, time in stamps(run).items() if made[name] != time} == {"board=002"}


def _remove(path):
    path.unlink()


def _damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _exchange(path):
    shutil.copy(next((path.parents[2] / "board=001").rglob("*.parquet")), path)


def _add(path):
    shutil.copy(path, path.with_name("part-00007.parquet"))


@pytest.mark.parametrize("kind", ["events", "loss"])
@pytest.mark.parametrize("spoil", [_remove, _damage, _exchange, _add])
def test_a_part_that_is_not_whole_is_written_anew(run, capsys, kind, spoil):
    before, lost, made = rows(run), run.loss().to_pylist(), stamps(run)
    spoil(next((run.path / kind / "board=002").rglob("*.parquet")))
    assert (rows(run), run.loss().to_pylist()) == (before, lost)
    assert {name for name, time in stamps(run).items() if made[name] != time} == {"board=002"}


def test_a_part_of_no_board_is_removed(run):
    before = rows(run)
    shutil.copytree(run.path / "events" / "board=002", run.path / "events" / "board=003")
    assert rows(run) == before
    assert not (run.path / "events" / "board=003").exists()


@pytest.mark.parametrize("keep", ["raw", "events"])
def test_the_old_layout_is_read(tmp_path, keep):
    """One merged copy, made by a version before this layout."""
    shutil.copytree(OLD / keep, tmp_path / "run")
    account = (tmp_path / "run" / "decode.json").read_bytes()
    run = open_run(tmp_path / "run")
    wanted = json.loads((OLD / f"{keep}.json").read_text())
    assert (rows(run), [list(row.values()) for row in run.loss().to_pylist()]) == (wanted["events"], wanted["loss"])
    assert run.sql("select count(*), max(node) from events").fetchall() == [(485, 4)]
    assert (tmp_path / "run" / "decode.json").read_bytes() == account
    assert [path.parent.name for path in run.event_files()] == ["events"]


@pytest.mark.parametrize("keep", ["raw", "events"])
def test_the_old_layout_becomes_the_new_one(tmp_path, keep):
    """When its tables are not whole. Recordings of tables instead of blocks are converted."""
    shutil.copytree(OLD / keep, tmp_path / "run")
    (tmp_path / "run" / "events" / "part-00000.parquet").write_bytes(b"")
    run = open_run(tmp_path / "run")
    wanted = json.loads((OLD / f"{keep}.json").read_text())
    half_tick = 625     # that version corrected for drift to the picosecond
    for made, columns in ((rows(run), [0]), ([list(row.values()) for row in run.loss().to_pylist()], [2, 3])):
        old = wanted["events" if columns == [0] else "loss"]
        assert len(made) == len(old)
        for new, row in zip(made, old, strict=True):
            assert all(abs(new[k] - row[k]) <= half_tick + 2 if k in columns else new[k] == row[k]
                       for k in range(len(row))), (new, row)
    assert {path.parts[-3] for path in run.event_files()} == {"board=000", "board=001"}
    assert not list((tmp_path / "run" / "events").glob("*.parquet"))


@pytest.mark.parametrize("step", range(0, 40, 3))
def test_a_killed_decoder_leaves_no_half_written_part(run, monkeypatch, step):
    """At whichever step it dies: what is under the final names is whole, and the next decode has all."""
    left = [step]

    def dies(function):
        def call(*values, **more):
            if not left[0]:
                os._exit(9)
            left[0] -= 1
            return function(*values, **more)
        return call

    child = os.fork()
    if child == 0:
        for name in ("described", "put", "write_json", "sync_file", "sync_directory", "EventWriter"):
            setattr(partitions, name, dies(getattr(partitions, name)))
        run.decode()
        os._exit(0)
    os.waitpid(child, 0)
    for path in (run.path / "events").rglob("*.parquet"):
        pq.ParquetFile(path).read()
    for account in run.path.glob("board-*/partition.json"):
        parts = json.loads(account.read_text())["parts"]
        assert all((run.path / name).stat().st_size == part["bytes"] for name, part in parts.items())
    again = open_run(run.path)
    assert sum(again.stats()["events_per_node"]) == len(rows(again)) == 463
    assert not list(run.path.glob(".hypermon-*"))


def test_tables_recorded_instead_of_blocks(tmp_path):
    """``--keep events``: the board's own tables stay as they are, and the store has them in the run's time."""
    (tmp_path / "run").mkdir()
    for number in range(2):
        board = random_run(FakeBoard(2), random.Random(number), 12, losses=0.6)
        record(Device(FakeLink(board)), tmp_path / "run" / f"board-{number}", Settings(), keep="events")
    info = RunInfo.load(tmp_path / "run" / "board-0" / "recording.json")
    (tmp_path / "run" / "recording.json").write_text(json.dumps(asdict(
        replace(info, boards=["board-0", "board-1"], nodes=4, modes=[], end=None, keep="raw"))))
    run = open_run(tmp_path / "run")
    parts = [part.events().to_pylist() for part in run.parts()]
    assert [row[1:] for row in rows(run) if row[1] >= 2] == [[row["node"] + 2, row["nibble"]] for row in parts[1]]
    assert sum(run.loss()["lost"].to_pylist()) == sum(sum(part.loss()["lost"].to_pylist()) for part in run.parts())


def test_directories_above_with_such_names(run):
    """They are not taken for a board or a day."""
    above = run.path.parent / "board=7" / "date=1990-01-01" / "node=3"
    above.mkdir(parents=True)
    run.path.rename(above / "run")
    moved = open_run(above / "run")
    assert moved.sql("select board, min(node), max(node), max(year(date)) from events group by board order by board"
                     ).fetchall() == [(0, 0, 1, 2026), (2, 5, 8, 2026)]
    assert len(rows(moved)) == 463


def test_losses_of_several_boards_have_no_single_file(run):
    with pytest.raises(InputError, match=r"ask for loss_files\(\)"):
        run.loss_file()
    assert len(run.loss_files()) >= 3
