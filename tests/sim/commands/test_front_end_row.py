"""Rows of the table of front ends: 100,000 bytes at a rate through `hypermon sim`, of which none is wrong."""

from dataclasses import replace

import pytest

from tests.sim.commands.front_end_row import CLOCK_PS, RATES, Row, compared, row

SENT = [(1000, 5), (90_000, 6), (180_000, 7)]


@pytest.mark.parametrize(("came", "wrong", "late"), [
    ([(1000, 5), (90_011, 6), (180_002, 7)], 0, [0, 11, 2]),
    ([(1000, 5), (90_011, 9), (180_002, 7)], 1, [0, 2]),
    ([(1000, 5), (180_002, 7)], 1, [0, 2]),
    ([(1000, 5), (45_000, 1), (90_000, 6), (180_000, 7)], 1, [0, 0, 0]),
    ([(1000, 5), (90_000, 6), (180_000, 7), (300_000, 1)], 1, [0, 0, 0]),
    ([(300, 5), (90_000, 6), (180_000, 7)], 0, [-700, 0, 0]),
    ([], 3, []),
])
def test_each_byte_that_differs_is_wrong(came, wrong, late):
    assert compared(SENT, came, 20_000) == (wrong, late)


@pytest.mark.parametrize(("change", "right"), [
    ({}, True), ({"wrong": 1}, False), ({"rejected": 1}, False), ({"lost": 1}, False), ({"least_ps": -1}, False),
    ({"most_ps": 2 * CLOCK_PS}, False)])
def test_what_a_right_row_is(change, right):
    assert replace(Row(3, 0, 0, 0, 0, CLOCK_PS + 900, 1.0), **change).right is right


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "rate"), [(kind, rate) for kind, rates in RATES.items() for rate in rates])
def test_100_000_bytes(tools, tmp_path, kind, rate):
    """The slowest rates take some minutes."""
    found = row(kind, rate, 100_000, tmp_path)
    assert found.right, found
