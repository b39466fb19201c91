import pytest
from hypermon.boards.pll import ecp_ratios
from hypermon.boards.registry import BOARDS


@pytest.mark.parametrize("name", BOARDS)
def test_the_clocks_of_every_board_are_exact(name):
    board = BOARDS[name]
    r = ecp_ratios(board.oscillator_hz, board.capture_hz, board.link_hz)
    vco = board.capture_hz * r.capture
    assert board.oscillator_hz * r.feedback == board.capture_hz * r.reference
    assert vco == board.link_hz * r.link
    assert 400_000_000 <= vco <= 800_000_000
    assert board.oscillator_hz >= 10_000_000 * r.reference


@pytest.mark.parametrize("clocks", [(25_000_000, 101_000_000, 50_000_000), (25_000_000, 100_000_000, 47_000_000),
                                    (12_000_000, 100_000_000, 50_000_000)])
def test_clocks_out_of_reach(clocks):
    with pytest.raises(ValueError, match="cannot make exactly"):
        ecp_ratios(*clocks)
