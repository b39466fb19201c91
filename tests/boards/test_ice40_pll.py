"""Clocks of an iCE40's PLL."""

import pytest
from hypermon.boards.ice40_pll import ice40_ratios, made_hz
from hypermon.boards.registry import BOARDS

MHZ = 1_000_000


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.family == "ice40"])
def test_the_clocks_of_every_board_are_exact(name):
    board = BOARDS[name]
    made = made_hz({"capture": board.capture_hz, **board.link().clocks})
    ratios = ice40_ratios(board.oscillator_hz, made)
    assert made == board.capture_hz * (2 if board.capture_hz < 16 * MHZ else 1)
    assert made * ratios.reference << ratios.output == board.oscillator_hz * ratios.feedback
    assert 533 * MHZ <= made << ratios.output <= 1066 * MHZ
    assert board.oscillator_hz >= 10 * MHZ * ratios.reference


@pytest.mark.parametrize(("mhz", "feedback", "output"), [(30, 80, 5), (45, 60, 4), (60, 80, 4)])
def test_the_oscillator_inside_is_in_its_range(mhz, feedback, output):
    ratios = ice40_ratios(12 * MHZ, mhz * MHZ)
    assert (ratios.reference, ratios.feedback, ratios.output) == (1, feedback, output)


@pytest.mark.parametrize("mhz", [15, 31, 280, 20])
def test_a_clock_out_of_reach(mhz):
    with pytest.raises(ValueError, match=f"cannot make exactly {mhz}000000 Hz"):
        ice40_ratios(12 * MHZ, mhz * MHZ)


def test_one_clock_and_no_more():
    with pytest.raises(ValueError, match="makes one clock"):
        made_hz({"capture": 30 * MHZ, "link": 60 * MHZ})
