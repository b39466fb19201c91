"""The computed MTBF: against the example of the note that the constants are from, and for every board."""

import math

import pytest
from hypermon.boards.measure.metastability import PATHS_NS, TAU_S, decides_s, mtbf_s, said
from hypermon.boards.model.board import PHASES
from hypermon.boards.registry import BOARDS

YEAR = 365.25 * 86400


def test_example_of_the_note():
    """AC312: 100 MHz, edges at 12.5 MHz: an error every 51.2 us without time to decide; with 2.96 ns one a year."""
    assert mtbf_s(100e6, 12.5e6, 0) == pytest.approx(51.2e-6, rel=0.01)
    assert mtbf_s(100e6, 12.5e6, 2.96e-9) == pytest.approx(365 * 86400, rel=0.1)


def test_of_faster_clocks_and_more_edges():
    """Twice the edges fail twice as often, and each tau of time is a factor of e."""
    one = mtbf_s(100e6, 1e6, 5e-9)
    assert mtbf_s(100e6, 2e6, 5e-9) == pytest.approx(one / 2)
    assert mtbf_s(200e6, 1e6, 5e-9) == pytest.approx(one / 2)
    assert mtbf_s(100e6, 1e6, 5e-9 + TAU_S) == pytest.approx(one * math.e)


def test_time_to_decide():
    """Of an ECP5 at 150 MHz: two clocks less two paths; with half clocks half a clock in the cell, and one."""
    board = BOARDS["butterstick"]
    assert board.capture_hz == 150_000_000
    assert decides_s(board) == pytest.approx(2 * (6.667e-9 - 3e-9), rel=1e-3)
    assert decides_s(board, phases=2) == pytest.approx(3.333e-9 - 1e-9 + 6.667e-9 - 3e-9, rel=1e-3)


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_every_board_outlives_its_user(board):
    assert board.family in PATHS_NS
    for phases in {PHASES.get(config, 1) for config in board.configs}:
        assert mtbf_s(board.capture_hz, 2e6, decides_s(board, phases)) > 1000 * YEAR


def test_said():
    assert said(86400 * 3) == "3 days"
    assert said(YEAR * 4.04e4) == "40,000 years"
    assert said(YEAR * 1.2e9) == "1e9 years"
    assert said(YEAR * 1e10) == "> 4.5e9 years"
