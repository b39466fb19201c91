import pytest
from hypermon.boards.clocks.ecp5_pll import Ratios, ecp_ratios, ecp_stages
from hypermon.boards.registry import BOARDS

MHZ = 1_000_000


def check(in_hz, clocks):
    """The dividers of one PLL make these clocks, within the data sheet's limits."""
    r = ecp_ratios(in_hz, tuple(clocks.values()))
    vco = in_hz * r.feedback * r.fed_back // r.reference
    assert vco * r.reference == in_hz * r.feedback * r.fed_back
    assert [vco == hz * divider for hz, divider in zip(clocks.values(), r.clocks, strict=True)] == [True] * len(clocks)
    assert 400 * MHZ <= vco <= 800 * MHZ
    assert in_hz >= 10 * MHZ * r.reference
    assert len({r.fed_back, *r.clocks}) <= 4


@pytest.mark.parametrize(("name", "link"), [
    (name, link) for name, board in BOARDS.items() if board.family == "ecp5" for link in board.links],
                         ids=lambda of: of if isinstance(of, str) else of.kind)
def test_the_clocks_of_every_board_are_exact(name, link):
    board = BOARDS[name]
    asked = {"capture": board.capture_hz, **link.clocks}
    for in_hz in (board.oscillator_hz, *board.references_hz):
        first, second = ecp_stages(in_hz, asked)
        assert {**first, **second}.items() >= asked.items()
        check(in_hz, first)
        if second:
            assert first["between"] >= 20 * MHZ
            check(first["between"], second)


@pytest.mark.parametrize("clocks", [(25 * MHZ, 101 * MHZ, 50 * MHZ), (25 * MHZ, 100 * MHZ, 47 * MHZ),
                                    (9 * MHZ, 100 * MHZ, 50 * MHZ)])
def test_clocks_out_of_reach(clocks):
    with pytest.raises(ValueError, match="cannot make exactly"):
        ecp_ratios(clocks[0], clocks[1:])


def test_two_plls_where_one_does_not_do():
    asked = {"capture": 100 * MHZ, "usb_io": 48 * MHZ, "usb": 12 * MHZ}
    assert ecp_stages(25 * MHZ, asked) == ({"capture": 100 * MHZ, "between": 20 * MHZ},
                                           {"usb_io": 48 * MHZ, "usb": 12 * MHZ})
    with pytest.raises(ValueError, match="two PLLs of an ECP5 cannot make exactly 100000000 and 7000001 Hz"):
        ecp_stages(25 * MHZ, {"capture": 100 * MHZ, "link": 7_000_001})


def test_the_fastest_comparison_with_the_first_clock_fed_back():
    assert ecp_ratios(25 * MHZ, (100 * MHZ, 50 * MHZ)) == Ratios(reference=1, feedback=4, fed_back=8, clocks=(8, 16))


def test_an_output_that_nobody_asked_for_is_fed_back():
    assert ecp_ratios(12 * MHZ, (100 * MHZ, 50 * MHZ)) == Ratios(reference=1, feedback=1, fed_back=50, clocks=(6, 12))
