import pytest
from hypermon.boards.clocks.gowin_pll import gowin_ratios, ordered
from hypermon.boards.registry import BOARDS

MHZ = 1_000_000


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.family == "gowin"])
def test_the_clocks_of_every_board_are_exact(name):
    board = BOARDS[name]
    clocks = {"capture": board.capture_hz, **board.link().clocks}
    fast, slow = (clocks[name] for name in ordered(clocks))
    for in_hz in (board.oscillator_hz, *board.references_hz):
        ratios = gowin_ratios(in_hz, fast, slow)
        assert fast >= slow
        assert fast * ratios.reference == in_hz * ratios.feedback
        assert slow * ratios.fraction == fast
        assert 500 * MHZ <= fast * ratios.output <= 1200 * MHZ
        assert in_hz >= 3 * MHZ * ratios.reference


@pytest.mark.parametrize("clocks", [
    (27, 90, 30),      # an odd fraction
    (27, 90, 40), (27, 103, 103 / 2), (27, 1000, 500), (2, 90, 45)])
def test_clocks_out_of_reach(clocks):
    with pytest.raises(ValueError, match="cannot make exactly"):
        gowin_ratios(*(int(mhz * MHZ) for mhz in clocks))


def test_two_clocks_and_no_more():
    with pytest.raises(ValueError, match="makes two clocks, not 3"):
        ordered({"a": 90 * MHZ, "b": 45 * MHZ, "c": 9 * MHZ})
