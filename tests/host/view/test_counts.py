"""Counts of items over time, against the items."""

import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypermon.host.blocks.frames import Events
from hypermon.host.errors import InputError
from hypermon.host.recording.parts import described
from hypermon.host.tables import parquet
from hypermon.host.view.counts import COUNTS, OVERVIEW, Counts, keep_counts

NODES, COLUMNS = 5, 300


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Files of 20 row groups, dense ones and quiet ones; their items; their parts."""
    monkeypatch.setattr(parquet, "_GROUP", 4000)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 7)
    rng = np.random.default_rng(4)
    gaps = np.concatenate([rng.integers(0, 10 ** rng.integers(2, 9), 4000) for _ in range(19)] + [[5] * 1234])
    times, nodes = np.cumsum(gaps) - 1000, rng.integers(0, NODES, len(gaps)).astype(np.int16)
    with parquet.EventWriter(tmp_path / "events") as writer:
        writer.add(Events(times, nodes, np.zeros(len(times), np.uint8)))
    files = sorted((tmp_path / "events").iterdir())
    return files, times, nodes, {f"events/{file.name}": described(file) for file in files}


def stretches(times, count):
    rng = random.Random(2)
    yield int(times[0]), int(times[-1]) + 1
    for _ in range(count):
        span = int(10 ** rng.uniform(2, np.log10(times[-1] - times[0])))
        begin = rng.randint(int(times[0]) - span // 3, int(times[-1]))
        yield begin, begin + span


def exact(times, nodes, begin, end):
    """Items in columns, one by one."""
    inside = (times >= begin) & (times < end)
    at = np.minimum(((times[inside] - begin) * (COLUMNS / (end - begin))).astype(int), COLUMNS - 1)
    return np.bincount(at * NODES + nodes[inside], minlength=COLUMNS * NODES).reshape(COLUMNS, NODES)


@pytest.mark.parametrize("counted", [False, True])
def test_every_item_is_drawn_where_it_is(made, counted):
    files, times, nodes, _ = made
    counts = Counts(files, NODES)
    assert (len(counts.groups), counts.rows) == (20, len(times))
    if counted:
        counts.make(lambda: False)
    coarse = wide = 0
    for begin, end in stretches(times, 150):
        found, wanted = counts.stretch(begin, end, COLUMNS), exact(times, nodes, begin, end)
        assert counts.rows_between(begin, end, 1 << 60) == wanted.sum()
        touched = len(counts.between(begin, end))
        if not counted:
            assert found.estimated == (touched > 4)
        if touched <= 4 and not counted:
            assert np.array_equal(found.items, wanted)
        elif counted:
            assert not found.estimated
            # A bin is spread over the columns that it reaches: sums up to a column differ by less than a bin's items.
            most = max(group.counts.max() for group in counts.groups)
            apart = np.abs(found.items.cumsum(axis=0) - wanted.cumsum(axis=0))
            coarse = max(coarse, apart.max())
            if (end - begin) / COLUMNS < 2 * counts.whole.bin_ps:
                assert apart.max() <= 2 * most
            else:
                # Bins of the whole run are half a column at most: no item is drawn further from where it is.
                wide += 1
                edges = begin + np.arange(1, COLUMNS + 1) * ((end - begin) / COLUMNS)
                sums = found.items.sum(axis=1).cumsum()
                before, after = (np.searchsorted(times, edges + way) - np.searchsorted(times, begin - way)
                                 for way in (-counts.whole.bin_ps, counts.whole.bin_ps))
                assert (sums >= before - 1e-6).all()
                assert (sums <= after + 1e-6).all()
        else:
            # Two row groups at the ends may be partly outside.
            assert abs(found.items.sum() - wanted.sum()) <= 2 * 4000
    if counted:
        assert wide > 10
        assert counts.counted == 1
        whole = counts.stretch(int(times[0]), int(times[-1]) + 1, COLUMNS).items
        assert np.allclose(whole.sum(axis=0), np.bincount(nodes))


def test_counts_are_kept_with_the_tables_they_were_made_of(made, tmp_path):
    files, times, _, parts = made
    counts = Counts(files, NODES)
    assert not counts.load(tmp_path, parts)
    counts.make(lambda: False)
    counts.save(tmp_path, parts)
    rows = pq.read_table(tmp_path / COUNTS)
    assert rows["items"].to_numpy().sum() == len(times)
    again = Counts(files, NODES)
    assert again.load(tmp_path, parts)
    for one, two in zip(counts.groups, again.groups, strict=True):
        assert np.array_equal(one.counts, two.counts)
    name = next(iter(parts))
    other = {**parts, name: {**parts[name], "crc32": 1}}
    assert not Counts(files, NODES).load(tmp_path, other)
    assert not Counts(files, NODES + 1).load(tmp_path, parts)
    # Rows that do not add up, under the right note.
    metadata = pq.read_metadata(tmp_path / COUNTS).metadata
    with pq.ParquetWriter(tmp_path / "less", rows.schema) as writer:
        writer.write_table(rows.slice(1))
        writer.add_key_value_metadata({"hypermon.made_of": metadata[b"hypermon.made_of"].decode()})
    (tmp_path / "less").replace(tmp_path / COUNTS)
    assert not Counts(files, NODES).load(tmp_path, parts)
    (tmp_path / COUNTS).write_bytes(b"PAR1")
    assert not Counts(files, NODES).load(tmp_path, parts)


def test_a_picture_is_the_same_from_the_overview_and_from_the_tables(made, tmp_path):
    """Equal numbers, for any stretch of a run: from the file alone, and from a file with nothing before it."""
    files, times, _, parts = made
    one, two = Counts(files, NODES), Counts(files, NODES)
    one.make(lambda: False)
    one.save(tmp_path, parts)
    assert two.load_whole(tmp_path, parts)
    assert two.counted == 1
    wide = 0
    for begin, end in stretches(times, 200):
        found, wanted = (counts.stretch(begin, end, COLUMNS) for counts in (two, one))
        if end - begin >= 2 * one.whole.bin_ps * COLUMNS:
            wide += 1
            assert np.array_equal(found.items, wanted.items)
            assert not found.estimated
    assert wide > 20
    assert two.load(tmp_path, parts)
    for begin, end in stretches(times, 200):
        assert np.array_equal(two.stretch(begin, end, COLUMNS).items, one.stretch(begin, end, COLUMNS).items)


def test_an_overview_of_other_tables_or_damaged_is_not_used(made, tmp_path):
    files, _, _, parts = made
    assert not Counts(files, NODES).load_whole(tmp_path, parts)
    keep_counts(tmp_path, files, NODES, parts)
    whole = (tmp_path / OVERVIEW).read_bytes()
    assert Counts(files, NODES).load_whole(tmp_path, parts)
    name = next(iter(parts))
    assert not Counts(files, NODES).load_whole(tmp_path, {**parts, name: {**parts[name], "crc32": 1}})
    assert not Counts(files, NODES + 1).load_whole(tmp_path, parts)
    rng = random.Random(1)
    wanted = Counts(files, NODES)
    wanted.load_whole(tmp_path, parts)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        (tmp_path / OVERVIEW).write_bytes(damaged)
        found = Counts(files, NODES)
        assert not found.load_whole(tmp_path, parts) or np.array_equal(found.whole.values, wanted.whole.values)
    (tmp_path / OVERVIEW).write_bytes(whole[:1000])
    assert not Counts(files, NODES).load_whole(tmp_path, parts)
    keep_counts(tmp_path, files, NODES, parts)          # it is made again
    assert Counts(files, NODES).load_whole(tmp_path, parts)


def test_counts_of_an_older_version_get_an_overview(made, tmp_path):
    files, _, _, parts = made
    keep_counts(tmp_path, files, NODES, parts)
    (tmp_path / OVERVIEW).unlink()
    counts = Counts(files, NODES)
    assert (counts.load_whole(tmp_path, parts), counts.load(tmp_path, parts)) == (False, True)
    counts.make(lambda: False)
    assert int(counts.whole.values.sum()) == counts.rows


def test_files_of_boards_overlap_in_time(made):
    """Each board's file is in order, one after the other."""
    files, times, nodes, _ = made
    counts = Counts([*files, *files], NODES)
    for begin, end in stretches(times, 20):
        assert counts.rows_between(begin, end, 1 << 60) == 2 * exact(times, nodes, begin, end).sum()
    counts.make(lambda: False)
    whole = counts.stretch(int(times[0]), int(times[-1]) + 1, COLUMNS).items
    assert np.allclose(whole.sum(axis=0), 2 * np.bincount(nodes))


def test_counting_can_be_stopped(made):
    counts = Counts(made[0], NODES)
    left = [3]

    def stop():
        left[0] -= 1
        return left[0] < 0

    counts.make(stop)
    assert counts.counted == 3 / 20


def test_nodes_that_do_not_exist(made):
    counts = Counts(made[0], NODES - 1)
    with pytest.raises(InputError, match="nodes that are not 0 to 3"):
        counts.count(0)
