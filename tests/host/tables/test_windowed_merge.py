"""Events of several boards in one order."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.blocks import item_merge
from hypermon.host.blocks.item_merge import time_order
from hypermon.host.errors import InputError
from hypermon.host.tables import windowed_merge
from hypermon.host.tables.parquet import EVENT_SCHEMA, EventWriter
from hypermon.host.tables.selection import Selection
from hypermon.host.tables.windowed_merge import merged_batches
from hypothesis import given, settings
from hypothesis import strategies as st

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
        held[id(self)] = len(self._held) + len(found)
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
