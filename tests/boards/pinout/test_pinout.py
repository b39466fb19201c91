import importlib
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypermon.boards.model.connectors import Connector, Hole, Use
from hypermon.boards.model.lvds import pairs
from hypermon.boards.pinout.pinout import balls, drawing, facts, wires
from hypermon.boards.registry import BOARDS, DIFFERENTIAL
from hypermon.host.cli import cli


@pytest.mark.parametrize("name", BOARDS)
def test_kept_balls_are_those_of_the_platform(name):
    board = BOARDS[name]
    assert [wire.ball for wire in wires(board)] == balls(board)[:len(board.pins)]
    single = [ball for of in balls(board) for ball in of.split("/")]
    assert len(set(single)) == (10 if board.pins[0].negative else 5) * board.nodes + len(board.spare)
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


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", BOARDS)
def test_holes_are_what_the_platform_says(name):
    """What is a pin is one of the platform's connector, at the connector that its label names; what is none is none."""
    board = BOARDS[name]
    module, cls = board.platform.split(":")
    platform = {}
    for connector in getattr(importlib.import_module(module), cls).connectors:
        platform |= dict(connector)
    at = {hole.pin: (connector, hole) for connector in board.shapes for hole in connector.holes if hole.pin}
    assert [pin for pin in at if ":" in pin and pin not in platform] == []
    for pin in board.pins:
        for of, label in zip(filter(None, (pin.name, pin.negative)), pin.label.split(" / "), strict=True):
            connector, hole = at[of]
            assert label.split()[-1] == hole.label
            assert set(label.split()[:-1]) <= {*connector.name.split(), "pin"}
    for connector in board.shapes:
        counted = {hole.pin.rpartition(":")[0] for hole in connector.holes if hole.pin.endswith(f":{hole.number}")}
        assert [hole.number for hole in connector.holes for of in counted
                if hole.use is not Use.PIN and f"{of}:{hole.number}" in platform] == []
        assert all(not hole.pin for hole in connector.holes if hole.use is not Use.PIN)


def test_a_pin_that_is_at_no_hole_is_refused():
    board = BOARDS["icebreaker"]
    with pytest.raises(ValueError, match=r"not at one hole of the connectors: pmod_2:1, pmod_2:10, pmod_2:2,"):
        replace(board, connectors=board.connectors[:2])
    with pytest.raises(ValueError, match=r"not at one hole of the connectors: pmod_0:1"):
        replace(board, connectors=(*board.connectors, Connector("X", ((Hole("1", Use.PIN, "pmod_0:1"),),))))


def test_a_supply_that_destroys_the_fpga_is_crossed_out():
    root = ElementTree.fromstring(drawing(BOARDS["ulx3s-85f"], wires(BOARDS["ulx3s-85f"])))
    supplies = [group for group in root.iter(f"{SVG}g") if group.get("class") == "supply"]
    crossed = ["".join(group.itertext()).strip() for group in supplies if group.find(f"{SVG}path") is not None]
    assert crossed == ["5 V in 39", "40 5 V out"]
    assert len(supplies) == 12


def test_ground_is_said_for_every_connector():
    said = {name: dict(facts(BOARDS[name]))["Grounds"].partition(": ")[2] for name in BOARDS}
    assert said["ulx3s-85f"] == "J1 3, 4, 21, 22, 37, 38; J2 3, 4, 21, 22, 37, 38."
    assert said["orangecrab-25f"] == "J2 4, 16."
    assert said["ice40-hx8k"] == "for J2, J3, see the board's schematic."
    assert all(said.values())


def test_command(tmp_path):
    run = CliRunner().invoke(cli, ["pinout", "ulx3s-12f", "--json"])
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == 55
    assert lines[6] == {"node": 1, "signal": "data0", "pin": "J1 GP3", "ball": "B9",
                        "standard": "IO_TYPE=LVCMOS33 PULLMODE=DOWN"}
    words = CliRunner().invoke(cli, ["pinout", "ulx3s-12f"], env={"COLUMNS": "200"}).stdout
    for wire in wires(BOARDS["ulx3s-12f"]):
        assert f"{wire.label} ({wire.ball})" in words
    assert "\nStandard: IO_TYPE=LVCMOS33 PULLMODE=DOWN.\n" in words
    assert "; J2 3, 4, 21, 22, 37, 38.\n" in words
    assert CliRunner().invoke(cli, ["pinout", "ulx3s-12f", "--svg", str(tmp_path / "a.svg")]).exit_code == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    listed = CliRunner().invoke(cli, ["pinout", "--json"]).stdout.splitlines()
    assert [json.loads(line)["board"] for line in listed] == list(BOARDS)
    wrong = CliRunner().invoke(cli, ["pinout", "ulx4s"])
    assert wrong.exit_code == 2
    assert "there is no board 'ulx4s'" in wrong.stderr
