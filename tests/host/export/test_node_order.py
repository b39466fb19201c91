"""Items of several boards by node, numbered in the order of the run."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.analysis.semantic_tables import view_events
from hypermon.host.export import node_order
from hypermon.host.export.node_order import write_by_node
from hypermon.host.tables import windowed_merge
from hypermon.host.tables.parquet import EVENT_SCHEMA, EventWriter
from hypermon.host.tables.selection import Selection


@pytest.fixture
def files(tmp_path):
    """Tables of three boards of three nodes; many events have the same time; the last board ends early."""
    rng, found = np.random.default_rng(7), []
    for board, count in enumerate((400, 500, 40)):
        place = tmp_path / "events" / f"board={board:03d}" / "date=2026-11-23"
        place.parent.mkdir(parents=True)
        rows = sorted(zip(rng.integers(0, 300, count).tolist(), rng.integers(3 * board, 3 * board + 3, count).tolist(),
                          rng.integers(0, 16, count).tolist(), strict=True), key=lambda row: row[:2])
        with EventWriter(place, EVENT_SCHEMA, group=64) as writer:
            writer.add(pa.table([list(column) for column in zip(*rows, strict=True)], schema=EVENT_SCHEMA))
        found += sorted(place.iterdir())
    return found


def ordered(files):
    """All rows, in order, by DuckDB."""
    read = duckdb.read_parquet([str(path) for path in files], file_row_number=True, filename=True)
    return read.order("time_ps, node, filename, file_row_number").project("time_ps, node, nibble").fetchall()


def test_rows_are_those_of_the_run(files, tmp_path, monkeypatch):
    """A reader of a node reads few row groups, and finds its items in order with their numbers."""
    monkeypatch.setattr(windowed_merge, "_ROWS", 100)
    monkeypatch.setattr(node_order, "SLICE_EVENTS", 300)
    monkeypatch.setattr(node_order, "_GROUP", 16)
    write_by_node(files, Selection(), tmp_path / "by_node")
    rows = [tuple(row.values()) for row in pq.read_table(tmp_path / "by_node").to_pylist()]
    assert [row[:3] for row in sorted(rows, key=lambda row: row[3])] == ordered(files)
    assert [row[3] for row in sorted(rows, key=lambda row: row[3])] == list(range(940))
    for node in range(9):
        numbers = [row[3] for row in rows if row[1] == node]
        assert numbers == sorted(numbers)
    metadata = pq.read_metadata(tmp_path / "by_node")
    bounds = [metadata.row_group(k).column(1).statistics for k in range(metadata.num_row_groups)]
    assert sum(low.min <= 4 <= low.max for low in bounds) < len(bounds) / 2


def test_a_selection_is_numbered_on_its_own(files, tmp_path):
    write_by_node(files, Selection([1, 5], 100, 200), tmp_path / "by_node")
    wanted = [row for row in ordered(files) if row[1] in (1, 5) and 100 <= row[0] < 200]
    found = sorted(pq.read_table(tmp_path / "by_node").to_pylist(), key=lambda row: row["row"])
    assert [(row["time_ps"], row["node"], row["nibble"]) for row in found] == wanted


def test_nothing_selected(files, tmp_path):
    write_by_node(files, Selection(from_ps=10**9), tmp_path / "by_node")
    assert pq.read_table(tmp_path / "by_node").num_rows == 0


def test_a_view_of_several_boards_is_in_order(files, tmp_path):
    """Row numbers, which name the events of states and messages, follow from it."""
    aside = tmp_path / "aside"
    aside.mkdir()
    with duckdb.connect() as connection:
        view_events(connection, files, aside)
        numbered = connection.sql("select row_number() over () - 1 as row, * from events order by row").fetchall()
    assert [row[1:] for row in numbered] == ordered(files)
