"""Events of several boards in one order."""

import json
import random
from dataclasses import asdict, replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.blocks import item_merge
from hypermon.host.blocks.item_merge import time_order
from hypermon.host.errors import InputError
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.run import open_run
from hypermon.host.tables import windowed_merge
from hypermon.host.tables.parquet import EVENT_SCHEMA, EventWriter
from hypermon.host.tables.selection import Selection
from hypermon.host.tables.windowed_merge import merged_batches
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.host.fake_board import FakeBoard, random_run

#: A board: the times of its events, between which the gaps may be none, and its nodes.
BOARD = st.lists(st.tuples(st.sampled_from([0, 0, 1, 7, 10**13]), st.integers(0, 2)), max_size=40)


def write(folder, boards, base=-5, group=6):
    """The files of boards with three nodes each; returns these, and all rows in the order of the boards."""
    files, rows = [], []
    for number, own in enumerate(boards):
        times = np.cumsum([gap for gap, _ in own]).tolist() if own else []
        events = sorted((base + time, 3 * number + node) for time, (_, node) in zip(times, own, strict=True))
        numbered = [(*row, k % 16) for k, row in enumerate(events)]
        rows += numbered
        with EventWriter(folder / f"{number}", EVENT_SCHEMA, group=group) as writer:
            for row in numbered:
                writer.add(pa.table([[value] for value in row], schema=EVENT_SCHEMA))
                if row[2] == 11:
                    writer.end_file()
        files.append(sorted((folder / f"{number}").iterdir()))
    return files, rows


def read(files, selection=None):
    tables = [pa.Table.from_batches([batch]) for batch in merged_batches(files, selection or Selection())]
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()] if tables else []


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(windowed_merge, "_WANTED", 9)
    monkeypatch.setattr(windowed_merge, "SLICE_EVENTS", 12)


@settings(max_examples=60, deadline=None)
@given(boards=st.lists(BOARD, min_size=2, max_size=5),
       span=st.none() | st.tuples(st.integers(-6, 30), st.integers(0, 40)),
       nodes=st.none() | st.lists(st.integers(0, 14), max_size=3))
def test_any_boards_come_in_one_order(tmp_path_factory, boards, span, nodes):
    """Ties, boards without events, and boards that end early; with any selection. DuckDB says the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windowed_merge, "_WANTED", 9)
        patch.setattr(windowed_merge, "SLICE_EVENTS", 12)
        files, rows = write(tmp_path_factory.mktemp("boards"), boards)
        wanted = sorted(rows, key=lambda row: row[:2])
        assert read(files) == wanted
        names = [str(path) for own in files for path in own]
        asked = duckdb.read_parquet(names, file_row_number=True, filename=True)
        asked = asked.order("time_ps, node, filename, file_row_number").project("time_ps, node, nibble")
        assert asked.fetchall() == wanted
        begin, end = (None, None) if span is None else (span[0], span[0] + span[1])
        kept = [row for row in wanted if (span is None or begin <= row[0] < end) and (nodes is None or row[1] in nodes)]
        assert read(files, Selection(nodes, begin, end)) == kept
        assert read(files, Selection(nodes, begin, end, ["nibble", "node"])) == [row[:0:-1] for row in kept]


def test_slices_are_small_and_read_only_what_they_touch(tmp_path, small, monkeypatch):
    """The rows in memory do not grow with the run."""
    boards = [[(1, node % 3) for node in range(400)] for _ in range(3)]
    files, rows = write(tmp_path, boards)
    held, most, take = {}, [], windowed_merge._Source.take

    def counted(self, until):
        found = take(self, until)
        held[id(self)] = sum(map(len, [self._held or (), *found]))
        most.append(sum(held.values()))
        return found

    monkeypatch.setattr(windowed_merge._Source, "take", counted)
    sizes = [len(batch) for batch in merged_batches(files, Selection())]
    assert sum(sizes) == len(rows)
    assert max(sizes) <= 12
    assert max(most) <= 3 * (6 + 12)


def test_many_events_of_one_time(tmp_path, small):
    """They cannot be divided by time."""
    files, rows = write(tmp_path, [[(0, node % 3) for node in range(39)]] * 3)
    assert read(files) == sorted(rows, key=lambda row: row[:2])


#: Nibbles, words and events of mixed boards: nulls, bytes, flags; and columns that not every board has.
MIXED = pa.schema([("time_ps", pa.int64()), ("node", pa.int16()), ("word", pa.uint32()), ("payload", pa.binary()),
                   ("aborted", pa.bool_()), ("value", pa.float64())])


@settings(max_examples=40, deadline=None)
@given(boards=st.lists(BOARD, min_size=2, max_size=4), seed=st.integers(0, 99), span=st.none() | st.integers(0, 30),
       most=st.sampled_from([0, 1, 192]))
def test_columns_of_all_kinds(tmp_path_factory, boards, seed, span, most):
    """However few files may stay open, and whatever the rows before have become: they are kept until the end."""
    folder, rng, files, wanted = tmp_path_factory.mktemp("mixed"), random.Random(seed), [], []
    for number, own in enumerate(boards):
        times = np.cumsum([gap for gap, _ in own]).tolist()
        rows = [{"time_ps": time, "node": 3 * number + node, "word": rng.choice([None, 5, 2**32 - 1]),
                 "payload": rng.choice([None, b"", bytes(rng.randrange(40))]), "aborted": rng.random() < 0.5,
                 "value": rng.random()} for time, (_, node) in zip(times, own, strict=True)]
        table = pa.Table.from_pylist(rows, MIXED)
        columns = rng.choice([MIXED.names, MIXED.names[:4]])
        files.append([folder / f"{number}.parquet"])
        pq.write_table(table.select(columns), files[-1][0], row_group_size=5)
        wanted += [{name: row[name] if name in columns else None for name in row} for row in rows]
    wanted.sort(key=lambda row: row["time_ps"])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_WANTED", 9), ("SLICE_EVENTS", 12), ("_FILES", most)):
            patch.setattr(windowed_merge, name, value)
        merged = pa.concat_tables([pa.Table.from_batches([batch]) for batch in merged_batches(files, Selection(
            to_ps=span))] or [MIXED.empty_table()]).to_pylist()
    assert [{name: row.get(name) for name in MIXED.names} for row in merged] == [
        row for row in wanted if span is None or row["time_ps"] < span]


@pytest.mark.parametrize("most", [0, 2, 192])
def test_files_are_closed(tmp_path, small, monkeypatch, most):
    """Also if the reader stops early; and no more of them are open at a time than allowed."""
    files, _ = write(tmp_path, [[(1, node % 3) for node in range(90)] for _ in range(4)])
    monkeypatch.setattr(windowed_merge, "_FILES", most)
    made, opened = [], pq.ParquetFile

    def counted(*values, **more):
        made.append(opened(*values, **more))
        return made[-1]

    monkeypatch.setattr(windowed_merge.pq, "ParquetFile", counted)
    batches = merged_batches(files, Selection())
    for _ in range(9):
        next(batches)
        assert sum(not file.closed for file in made) <= most
    batches.close()
    assert made
    assert all(file.closed for file in made)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seeds=st.lists(st.integers(0, 9), min_size=2, max_size=4), frames=st.lists(st.sampled_from([0, 3, 30]),
       min_size=4, max_size=4), losses=st.sampled_from([0.0, 0.6]), drift=st.floats(-50, 50))
def test_runs_come_in_duckdbs_order(make_run, tmp_path_factory, seeds, frames, losses, drift):
    """Recordings that lose items, end early or are empty, some exactly together (ties), others with a drift."""
    path = tmp_path_factory.mktemp("run") / "run"
    path.mkdir()
    names = [f"board-{number}" for number in range(len(seeds))]
    for number, (seed, count) in enumerate(zip(seeds, frames, strict=False)):
        board = random_run(FakeBoard(2), random.Random(seed), count, losses=losses) if count else FakeBoard(2)
        part = make_run(board, name=str(path / names[number]), board=f"uart:{number}")
        save_clock(part.path, WallClock(10**18, drift * (number % 2), 400, 9))
    info = RunInfo.load(path / "board-0" / "recording.json")
    (path / "recording.json").write_text(json.dumps(asdict(
        replace(info, boards=names, board="all", nodes=2 * len(names)))))
    run = open_run(path)
    ours = [tuple(row.values()) for batch in run.batches() for row in batch.to_pylist()]
    theirs = duckdb.read_parquet([str(name) for name in run.event_files()], file_row_number=True, filename=True,
                                 hive_partitioning=False)
    wanted = theirs.order("time_ps, node, filename, file_row_number").project("time_ps, node, nibble").fetchall()
    assert ours == wanted
    assert len(ours) == run.stats()["events"]


def test_a_file_without_statistics_is_refused(tmp_path, small):
    files, _ = write(tmp_path, [[(1, 0)], [(1, 0)]])
    pq.write_table(pq.read_table(files[1][0]), files[1][0], write_statistics=False)
    with pytest.raises(InputError, match="do not state their times"):
        read(files)


@settings(deadline=None)
@given(times=st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 3), max_size=50))
@pytest.mark.parametrize("pure", [False, True])
def test_order_of_times(times, pure):
    """In C, where it is compiled, and with NumPy; also if they are as far apart as 64 bits allow."""
    with pytest.MonkeyPatch.context() as patch:
        if pure:
            patch.setattr(item_merge, "_ORDER", None)
        made, which = time_order(np.array(times, np.int64))
    assert which.tolist() == sorted(range(len(times)), key=lambda k: times[k])
    assert made.tolist() == sorted(times)


@pytest.mark.skipif(item_merge._ORDER is None, reason="the C part is not compiled")
def test_order_of_near_times():
    rng = np.random.default_rng(3)
    for count, apart in ((1, 1), (2, 1 << 62), (5000, 3), (5000, 1 << 40), (70_000, 1 << 33)):
        times = rng.integers(-apart, apart, count)
        made, which = time_order(times)
        assert np.array_equal(which, np.argsort(times, kind="stable"))
        assert np.array_equal(made, np.sort(times))
