"""Numbers in bins, against sums that are made one by one, and their files."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.view.bins import Bins, BinsFile, Kinds, keep

KINDS = Kinds([0, 0, 1, 1, 2, 2], "open_ps", ["idle", "it's busy"])


def some_bins(rng, most=64):
    begin = rng.randrange(-2000, 3000)
    bins = Bins.empty(6, begin, begin + rng.randrange(1, 100_000), most)
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    bins.values[:] = numbers.integers(0, 1 << 40, bins.values.shape) * (numbers.random(bins.values.shape) < 0.5)
    return bins


def plain_columns(bins, begin, end, columns):
    found = np.zeros((columns, bins.values.shape[1]))
    width = (end - begin) / columns
    for number, row in enumerate(bins.values):
        low = max((bins.first + number) << bins.shift, bins.begin_ps)
        high = min((bins.first + number + 1) << bins.shift, bins.end_ps)
        for column in range(columns):
            left = begin + column * width
            found[column] += row * (max(min(high, left + width) - max(low, left), 0) / (high - low))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_columns(seed):
    rng = random.Random(seed)
    bins = some_bins(rng)
    assert 1 <= len(bins.values) <= 64
    for _ in range(5):
        begin = rng.randrange(-5000, 60_000)
        end = begin + rng.randrange(40, 90_000)
        wanted = plain_columns(bins, begin, end, 37)
        assert bins.columns(begin, end, 37) == pytest.approx(wanted, rel=1e-6, abs=1e4)
        assert (bins.columns(begin, end, 37, slice(2, 4)) == bins.columns(begin, end, 37)[:, 2:4]).all()


@pytest.mark.parametrize("seed", range(5))
def test_longer_bins_are_exact_sums(seed):
    bins = some_bins(random.Random(seed))
    longer = bins.coarser(10)
    assert len(longer.values) <= 10
    assert (longer.begin_ps, longer.end_ps) == (bins.begin_ps, bins.end_ps)
    for number, row in enumerate(longer.values):
        own = [(bins.first + k) << bins.shift >> longer.shift == longer.first + number for k in range(len(bins.values))]
        assert (bins.values[own].sum(axis=0) == row).all()


def test_a_file(tmp_path):
    bins = some_bins(random.Random(3))
    lengths = [bins.coarser(8), bins]
    keep(tmp_path, "some.parquet", KINDS, lengths, {"of": [1, 2]}, note=["a"])
    assert [path.name for path in tmp_path.iterdir()] == ["some.parquet"]
    file = BinsFile(tmp_path / "some.parquet", KINDS, {"of": [1, 2]})
    assert file.note == ["a"]
    for number, one in enumerate(lengths):
        found = file.read(number)
        assert (found.shift, found.begin_ps, found.end_ps) == (one.shift, one.begin_ps, one.end_ps)
        assert (found.values == one.values).all()
    assert file.read(2) is None
    other = BinsFile(tmp_path / "some.parquet", KINDS, {"of": [1, 3]})
    assert (other.note, other.read(0)) == (None, None)
    assert BinsFile(tmp_path / "none.parquet", KINDS, {}).read(0) is None


def test_a_file_that_is_damaged(tmp_path):
    """Numbers or a description that were changed, in a file that Parquet reads: nothing is read."""
    bins, path = some_bins(random.Random(3)), tmp_path / "some.parquet"
    keep(tmp_path, path.name, KINDS, [bins], {}, note="a")
    with pq.ParquetFile(path) as file:
        table, noted = file.read(), dict(file.metadata.metadata)

    def written(values, about):
        changed = table.set_column(table.column_names.index(KINDS.value), table.field(KINDS.value), values)
        pq.write_table(changed.replace_schema_metadata(about), path)
        return BinsFile(path, KINDS, {})

    same = written(table[KINDS.value], noted)
    assert same.note == "a"
    assert (same.read(0).values == bins.values).all()
    numbers = table[KINDS.value].to_pylist()
    other = written(pa.chunked_array([pa.array([numbers[0] + 1, *numbers[1:]])]), noted)
    assert other.note == "a"
    assert other.read(0) is None
    [text] = [key for key, value in noted.items() if b'"note": "a"' in value]
    other = written(table[KINDS.value], noted | {text: noted[text].replace(b'"note": "a"', b'"note": "b"')})
    assert (other.note, other.read(0)) == (None, None)


def test_nothing_is_written_without_numbers_or_into_what_cannot_be_written(tmp_path):
    keep(tmp_path, "some.parquet", KINDS, [Bins.empty(6, 0, 10, 4)], {})
    assert list(tmp_path.iterdir()) == []
    keep(tmp_path / "none", "some.parquet", KINDS, [some_bins(random.Random(1))], {})
    assert list(tmp_path.iterdir()) == []
