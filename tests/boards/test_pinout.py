import json
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner
from hypermon.boards.pairs import pairs
from hypermon.boards.pinout import balls, drawing, page, wires
from hypermon.boards.registry import BOARDS, DIFFERENTIAL
from hypermon.host.cli import cli


@pytest.mark.parametrize("name", BOARDS)
def test_kept_balls_are_those_of_the_platform(name):
    board = BOARDS[name]
    assert [wire.ball for wire in wires(board)] == balls(board)
    single = [ball for of in balls(board) for ball in of.split("/")]
    assert len(set(single)) == (10 if board.pins[0].negative else 5) * board.nodes
    assert not any(":" in ball for ball in single)


@pytest.mark.parametrize("name", DIFFERENTIAL)
def test_kept_pairs_are_those_of_the_part(name):
    board = BOARDS[name]
    found = pairs(board, balls(board))
    assert BOARDS[f"{name}-lvds"].nodes == len(found) // 5
    taken = [(pin.name, pin.negative) for pin in BOARDS[f"{name}-lvds"].pins]
    assert taken == [(board.pins[p].name, board.pins[n].name) for p, n in found][:len(taken)]


def test_pairs_that_the_board_was_made_for():
    """ButterStick's connector D pairs, as its own platform and LiteX's name them: S0 with S2, S1 with S3, and so on."""
    pins = {(pin.name, pin.negative) for pin in BOARDS["butterstick-lvds"].pins}
    for port in (0, 1):
        for first in (0, 1, 4, 5, 8, 9, 12, 13):
            assert (f"syzygy_{port}:S{first}", f"syzygy_{port}:S{first + 2}") in pins


def test_wires_are_five_a_node():
    first, *_, last = wires(BOARDS["ulx3s-85f"])
    assert (first.node, first.role, first.label, first.ball) == (0, "strobe", "J1 GP0", "B11")
    assert (last.node, last.role, last.label, last.ball) == (10, "data3", "J2 GP27", "D13")


def test_page_and_drawing_name_every_pin():
    board = BOARDS["ulx3s-25f"]
    every = wires(board)
    text, picture = page(board, every), drawing(board, every)
    shown = ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter()]
    for wire in every:
        assert f"{wire.label} ({wire.ball})" in text
        assert wire.label in shown
        assert wire.ball in shown


def test_command(tmp_path):
    run = CliRunner().invoke(cli, ["pinout", "ulx3s-12f", "--json"])
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == 55
    assert lines[6] == {"node": 1, "signal": "data0", "pin": "J1 GP3", "ball": "B9"}
    assert CliRunner().invoke(cli, ["pinout", "ulx3s-12f", "--svg", str(tmp_path / "a.svg")]).exit_code == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    listed = CliRunner().invoke(cli, ["pinout", "--json"]).stdout.splitlines()
    assert [json.loads(line)["board"] for line in listed] == list(BOARDS)
    wrong = CliRunner().invoke(cli, ["pinout", "ulx4s"])
    assert wrong.exit_code == 2
    assert "there is no board 'ulx4s'" in wrong.stderr
