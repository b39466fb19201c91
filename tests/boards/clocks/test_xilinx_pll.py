import pytest
from hypermon.boards.clocks.xilinx_pll import xilinx_ratios
from hypermon.boards.registry import BOARDS

MHZ = 1_000_000


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.family == "xilinx7"])
def test_the_clocks_of_every_board_are_exact(name):
    board = BOARDS[name]
    clocks = (board.capture_hz, *board.link().clocks.values())
    for in_hz in (board.oscillator_hz, *board.references_hz):
        ratios = xilinx_ratios(in_hz, clocks)
        vco = clocks[0] * ratios.clocks[0]
        assert vco * ratios.reference == in_hz * ratios.multiplier
        assert [vco == hz * divider for hz, divider in zip(clocks, ratios.clocks, strict=True)] == [True] * len(clocks)
        assert 800 * MHZ <= vco <= 1600 * MHZ
        assert in_hz >= 19 * MHZ * ratios.reference


@pytest.mark.parametrize("clocks", [(100, 101, 50), (100, 500), (18, 90), (100, 100, 100, 100, 100, 100, 100, 100)])
def test_clocks_out_of_reach(clocks):
    in_hz, *made = (mhz * MHZ for mhz in clocks)
    with pytest.raises(ValueError, match="cannot make exactly"):
        xilinx_ratios(in_hz, tuple(made))
