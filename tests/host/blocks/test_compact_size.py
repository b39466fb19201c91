"""The calculator of the size study, tests/bench/bench_compact_size.py, against hand counts and plain sums."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SPEC = importlib.util.spec_from_file_location(
    "bench_compact_size", Path(__file__).parents[2] / "bench" / "bench_compact_size.py")
study = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(study)


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_numbers_take_a_group_for_every_three_bits():
    assert study.groups(numbers(0, 1, 7, 8, 63, 64, 511, 512, 2**21 - 1)).tolist() == [1, 1, 1, 2, 2, 3, 3, 4, 7]


@pytest.mark.parametrize(("size", "gap", "bits"), [
    (study.single_groups, 7, 12), (study.single_groups, 64, 20),
    (study.single_bytes, 127, 16), (study.single_bytes, 128, 24),
    (study.single_halfwords, 254, 16), (study.single_halfwords, 255, 32), (study.single_halfwords, 1 << 15, 48),
    (lambda gap: study.window_groups(gap, 16), 1, 4 * 23), (lambda gap: study.window_groups(gap, 1, 32), 8, 4 * 13),
    (lambda gap: study.window_items(gap, 2), 8, 4 * 7), (lambda gap: study.window_items(gap, 2, 32), 8, 4 * 9),
    (lambda gap: study.event_groups(gap, 3), 8, 4 * 10), (lambda gap: study.event_aligned(gap, 3), 7, 4 * 10),
    (lambda gap: study.event_wide(gap, 3), 127, 4 * 10), (lambda gap: study.event_wide(gap, 3), 128, 4 * 11),
    (lambda gap: study.event_counted(gap, 3), 1, 4 * 9), (lambda gap: study.event_counted(gap, 3), 2, 4 * 10),
    (lambda gap: study.event_counted(gap, 3), 32, 4 * 11), (lambda gap: study.event_bytes(gap, 3), 128, 48),
])
def test_items_take_what_a_hand_counts(size, gap, bits):
    assert size(numbers(gap)).tolist() == [bits]


@pytest.mark.parametrize("mean", [1, 1.5, 10, 100])
def test_entropy_is_that_of_the_gaps(mean):
    p = (1 - 1 / mean) ** np.arange(10_000) / mean
    p = p[p > 0]
    assert study.gap_entropy(mean) == pytest.approx(-(p * np.log2(p)).sum(), abs=1e-9)


@pytest.mark.parametrize("flush", [1, 40, 100_000])
def test_blocks_are_those_of_a_writer_that_takes_item_after_item(flush, monkeypatch):
    monkeypatch.setattr(study, "CAPACITY", 8 * 32)
    gap = np.random.default_rng(1).geometric(1 / 10, 500)
    blocks, begun, now = [], 0, 0
    for g in gap.tolist():
        now += g
        bits = int(study.single_groups(numbers(g))[0])
        if not blocks or now - begun >= flush or blocks[-1] + bits > 8 * 32:
            blocks.append(0)
            begun, bits = now, 12
        blocks[-1] += bits
    lengths = [(bits + 7) // 8 for bits in blocks]
    made = study.stream(gap, study.single_groups, flush)
    assert (len(made.begins), made.payload) == (len(blocks), sum(lengths))
    assert made.total == sum(48 + (length + 15) // 16 * 16 for length in lengths)
    assert made.items == study.single_groups(gap).sum() / 8


def test_censuses():
    """Of 16 nodes one has 1104 bytes: 100 a second of a full stream, ten of a thin one, else one in 113 parts."""
    assert study.census_bytes() == 32 + 32 + 16 * 64 + 16
    assert study.census_rate(20e6) == pytest.approx(110_400)
    assert study.census_rate(10e3) == pytest.approx(11_040)
    assert study.census_rate(2.24e6) == pytest.approx(20_000)


def test_the_goals_are_met_and_the_program_says_if_not(monkeypatch, capsys):
    """A tenth of a million items a row; what is asked for is a little more than what they take."""
    monkeypatch.setattr(study.sys, "argv", ["bench_compact_size.py", "--events", "100000"])
    assert study.main() == 0
    assert "goals not met: none" in capsys.readouterr().out
    monkeypatch.setattr(study, "CENSUS_GOAL", 0.005)
    assert study.main() == 1
    assert "censuses, gap 100: 0.89%, goal 0.5%" in capsys.readouterr().out
    monkeypatch.setattr(study, "SINGLE_GOALS", study.SINGLE_GOALS | {100: 2.2})
    assert study.main() == 1
    assert "goals not met: \n" in capsys.readouterr().out
