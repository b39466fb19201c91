import json
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner
from hypermon.boards.pinout import balls, drawing, page, wires
from hypermon.boards.registry import BOARDS
from hypermon.host.cli import cli


@pytest.mark.parametrize("name", BOARDS)
def test_kept_balls_are_those_of_the_platform(name):
    board = BOARDS[name]
    assert [wire.ball for wire in wires(board)] == balls(board)
    assert len(set(balls(board))) == 5 * board.nodes
    assert not any(":" in ball for ball in balls(board))


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
