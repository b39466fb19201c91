"""Pinouts of boards with nodes of several kinds: the pins are those of the build, in table, picture and JSON."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner
from hypermon.boards.pinout.pinout import drawing, kept, wires
from hypermon.boards.registry import find
from hypermon.hdl.layout import FRONT_WIRES
from hypermon.host.cli import cli

SVG = "{http://www.w3.org/2000/svg}"
#: Board, kinds of its nodes, reference clock.
MIXTURES = (
    ("ulx3s-85f", "0-3=port,4-9=uart,10=serial,11=selected,12=swo", None), ("orangecrab-25f", "1=selected,uart", None),
    ("ecpix5-45f", "0=swo,two_wire", None), ("ulx3s-85f", "0-10=port,uart", None),
    ("orangecrab-85f", "1=port,uart", 25_000_000), ("butterstick-lvds", "0=uart,selected", None))


def run(*words):
    return CliRunner().invoke(cli, ["pinout", *words], env={"COLUMNS": "200"})


def asked(name, ports, reference):
    return [name, "--ports", ports, *(["--reference", str(reference)] if reference else [])]


def built(board):
    """Balls of each node's wires, as the tools get them: the strobe, the clock or the line, then the data."""
    platform_of = pytest.importorskip("hypermon.boards.toolchain.top").platform_of
    platform = platform_of(board, board.nodes)

    def ball(name):
        while name in platform._conn_pins:
            name = platform._conn_pins[name]
        return name

    nodes = []
    for number in range(board.nodes):
        nodes.append([])
        for part in platform.lookup("node", number).ios:
            pins, = part.ios
            sides = (pins.p.names, pins.n.names) if hasattr(pins, "p") else (pins.names,)
            nodes[-1] += ["/".join(map(ball, of)) for of in zip(*sides, strict=True)]
    return nodes


@pytest.mark.parametrize(("name", "ports", "reference"), MIXTURES)
def test_the_pins_are_those_of_the_build(name, ports, reference):
    before = find(name)
    board = (before.fed(reference) if reference else before).mixed(ports)
    lines = [json.loads(line) for line in run(*asked(name, ports, reference), "--json").stdout.splitlines()]
    nodes = built(board)
    assert [[line["ball"] for line in lines if line["node"] == node] for node in range(board.nodes)] == nodes
    assert [len(node) for node in nodes] == [FRONT_WIRES[front] for front in board.ports]
    for line in lines:
        assert line["kind"] == board.ports[line["node"]].name.lower()
        if name != "butterstick-lvds":
            assert ("PULLMODE=UP" in line["standard"]) == (line["kind"] in ("uart", "swo"))


@pytest.mark.parametrize(("name", "ports", "reference"), MIXTURES[:5])
def test_table_picture_and_json_say_the_same(name, ports, reference, tmp_path):
    lines = [json.loads(line) for line in run(*asked(name, ports, reference), "--json").stdout.splitlines()]
    words = run(*asked(name, ports, reference)).stdout
    for line in lines:
        row = next(row for row in words.splitlines() if re.match(rf"│ {line['node']} ", row))
        assert f" {line['kind']} " in row
        assert f"{line['signal']} {line['pin']} ({line['ball']})" in row
    assert run(*asked(name, ports, reference), "--svg", str(tmp_path / "a.svg")).exit_code == 0
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text())
    drawn = {}
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "wire":
            holds, *beside = ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
            drawn[holds] = " ".join(beside).split()
    short = {"strobe": "S", "clock": "C", "select": "CS", "line": "L", "data": "D"}
    assert drawn.keys() == {f"{line['node']} {short.get(line['signal'], line['signal'].replace('data', 'D'))}"
                            for line in lines}
    for line in lines:
        beside = drawn[f"{line['node']} {short.get(line['signal'], line['signal'].replace('data', 'D'))}"]
        assert {line["pin"].split()[-1], line["ball"]} <= set(beside)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert f"node {lines[-1]['node']}, {lines[-1]['kind']}" in texts


@pytest.mark.parametrize(("ports", "nodes"), [("port", 11), ("two_wire", 28), ("selected", 18), ("uart", 32),
                                              ("swo", 32), ("0-2=port", 3)])
def test_as_many_nodes_as_named_or_as_there_are_pins_for(ports, nodes):
    said = [json.loads(line)["node"] for line in run("ulx3s-85f", "--ports", ports, "--json").stdout.splitlines()]
    assert sorted(set(said)) == [*range(nodes)]
    first = run("ulx3s-85f", "--ports", ports, "--json", "--nodes", "2").stdout.splitlines()
    assert {json.loads(line)["node"] for line in first} == {0, 1}


def test_what_there_is_to_know():
    said = run("ulx3s-85f", "--ports", "0-3=port,uart").stdout
    assert "\nBuild: hypermon build ulx3s-85f --ports 0-3=port,4-31=uart.\n" in said
    assert "\nPins: 48 of 56; free: J2 GP24, " in said
    assert "The lines of uart are pulled up instead" in said
    assert "\nClock: 120 MHz, exactly 24/5 of the board's oscillator" in said
    fed = run("ulx3s-85f", "--ports", "0=port", "--reference", "10000000").stdout
    assert "--reference 10000000 --ports 0=port." in fed
    assert "\nClock: 120 MHz, 12 times the external clock of 10 MHz at J1 GP1 (A10); " in fed
    assert "pulled up" not in fed


@pytest.mark.parametrize(("words", "reason"), [
    (("--ports", "uart"), "--ports is for one board: give its name"),
    (("ulx3s-85f", "--nodes", "2"), "--nodes is for --ports: give the kinds of nodes"),
    (("ulx3s-85f", "--reference", "10000000"), "--reference is for --ports"),
    (("ulx3s-85f", "--ports", "0=spi"), "--ports 0=spi: there is no kind 'spi', but port, two_wire, selected, uart"),
    (("ulx3s-85f", "--ports", "0-3=port,3=uart"), "node 3 is named twice"),
    (("ulx3s-85f", "--ports", "0-11=port"), "ulx3s-85f has 56 pins for nodes, and the first 12 nodes need more"),
    (("icebreaker", "--ports", "uart"), "uart needs the extended configuration, which icebreaker has no room for"),
])
def test_what_cannot_be_is_one_line_as_for_the_build(words, reason, capsys):
    from hypermon.host import cli as command

    assert command._run(["pinout", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert reason in err


def test_kept_balls_follow_the_pins():
    before = find("ulx3s-85f")
    fed = before.fed(10_000_000)
    at = {wire.label: wire.ball for wire in wires(before)}
    moved = dict(zip([pin.label for pin in fed.pins], kept(fed, before), strict=False))
    assert {label: at[label] for label in moved if label in at} == {label: of for label, of in moved.items()
                                                                    if label in at}
    assert drawing(before, wires(before)).count("C its clock") == 0
