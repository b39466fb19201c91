"""The table of states that is written in parts is the one that is written at once."""

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.analysis import state_table
from hypermon.host.analysis.state_table import write_states
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.semantics import create_views

BOOK = """
begin = { id = 1, fields = { job = "u8" }, begin = "job", key = "job" }
end = { id = 2, fields = { job = "u8" }, end = "job", key = "job" }
work = { id = 3, end = "rest", begin = "work" }
rest = { id = 4, end = "work", begin = "rest" }
"""
NODES, ROWS = 7, 2000


@pytest.fixture
def connection(tmp_path):
    """Random events of all nodes but one, and losses."""
    rng, time = random.Random(5), 0
    events = []
    for _ in range(ROWS):
        time += rng.randrange(3)
        number = rng.choice([0, 1, 2, 3, 4])
        events.append({"time_ps": time, "node": rng.choice([0, 1, 3, 4, 5, 6]), "event": number,
                       "name": None if number == 0 else str(number), "aborted": rng.random() < 0.05,
                       "job": rng.randrange(4) if number in (1, 2) else None})
    losses = [{"node": rng.randrange(NODES), "lost": 1, "from_ps": at, "to_ps": at + rng.randrange(9)}
              for at in sorted(rng.sample(range(time), 20))]
    with duckdb.connect() as made:
        for name, rows in (("events", events), ("loss", losses)):
            made.register(f"given_{name}", pa.Table.from_pylist(rows))
            made.execute(f"create table {name} as from given_{name}")
        yield made


def written(connection, tmp_path: Path, book: str, nodes: int = NODES) -> tuple[pa.Table, Path]:
    (tmp_path / "book.toml").write_text(book)
    create_views(connection, load_dictionary(tmp_path / "book.toml"), [(3, 1500, 1 << 62)])
    path = tmp_path / "states"
    write_states(connection, ROWS, nodes, path, tmp_path)
    return pq.read_table(path), path


@pytest.mark.parametrize(("nodes", "parts"), [(NODES, [0, 1, 3, 4, 5, 6]), (3, [0, 1, 2]), (1, [])])
def test_parts_of_nodes(connection, tmp_path, monkeypatch, nodes, parts):
    """A node without states has no part; nodes share parts if there are more of them."""
    expected = connection.cursor()
    whole, _ = written(expected, tmp_path, BOOK)
    assert not list(tmp_path.glob("states-*"))
    assert whole.num_rows > 100
    assert whole["lost_ps"].null_count < whole.num_rows
    for view in ("states", "messages", "counters", "state_edges", "lost", "masked", "named"):
        expected.execute(f"drop view {view}")
    for name, value in (("_PART", 10), ("_STRETCH", 170), ("_GROUP", 20)):
        monkeypatch.setattr(state_table, name, value)
    made, path = written(connection, tmp_path, BOOK, nodes)
    assert made.cast(whole.schema).equals(whole)
    assert sorted(int(part.name[7:]) for part in tmp_path.glob("states-*")) == parts
    groups = pq.read_metadata(path).num_row_groups
    assert groups >= made.num_rows // 20 if parts else groups == 1


def test_no_states(connection, tmp_path, monkeypatch):
    monkeypatch.setattr(state_table, "_PART", 10)
    made, _ = written(connection, tmp_path, BOOK.replace("id = ", "id = 1"))
    assert made.num_rows == 0
    assert "lost_ps" in made.column_names


def test_no_events_of_states(connection, tmp_path, monkeypatch):
    monkeypatch.setattr(state_table, "_PART", 10)
    made, _ = written(connection, tmp_path, "begin = { id = 1 }\n")
    assert made.num_rows == 0


def test_ends_that_a_mask_discards(connection, tmp_path):
    """Nothing is known of the states that they end after these begin; other states, and other nodes, are as before."""
    (tmp_path / "book.toml").write_text(BOOK)
    book = load_dictionary(tmp_path / "book.toml")
    whole = connection.cursor()
    create_views(whole, book)
    before = whole.execute("from states order by all").fetchall()
    for view in ("states", "messages", "counters", "state_edges", "lost", "masked", "named"):
        whole.execute(f"drop view {view}")
    create_views(connection, book, (), [(1, 2)])
    [of] = {kind.end for kind in book.events if kind.id == 2}
    assert {row[0] for row in before if row[1] == of} > {1}
    assert connection.execute("from states order by all").fetchall() == sorted((
        (*row[:4], None, row[3], row[6], None) if row[:2] == (1, of) else row for row in before),
        key=lambda row: [(value is None, value) for value in row])
