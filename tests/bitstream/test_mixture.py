"""The bits of a board with nodes of three kinds record what the virtual board does."""

import pytest

pytest.importorskip("amaranth_boards")

import check
from stimuli import mixture as stimulus
from test_check import broken, outcomes

pytestmark = pytest.mark.slow
#: Not the self-test, which takes hours on this board: its store of 256 KiB is emptied over a serial line.
ASKED = {"mixture-1", "mixture-2", "mixture-3"}


def test_the_bits_record_what_the_virtual_board_does(mixture, tmp_path):
    assert outcomes(mixture, tmp_path, plays=check.plays_of(mixture, tmp_path, 4), only=ASKED) == {}


def test_two_uarts_exchanged_are_noticed(mixture, tmp_path):
    exchanged = broken(mixture, wiring=mixture.wiring.swapped((4, 0), (11, 0)))
    play = stimulus(tmp_path, mixture.geometry, mixture.link.bytes_per_second, bursts=1, seed=3)
    assert "in the simulation" in outcomes(exchanged, tmp_path, plays=[play], only=ASKED)["mixture-3"]
