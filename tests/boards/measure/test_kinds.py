"""Sizes by kind of nodes: what is counted, that rows of earlier measurements stay, and what five wires do not pay."""

import csv
import json
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("amaranth")

from hypermon.boards.measure import kinds
from hypermon.hdl.layout import FRONT_WIRES, Front

ROOT = Path(__file__).parents[3]
SMALL = [core for core in kinds.CORES if core.nodes < kinds.LARGE]


@pytest.fixture
def tools(monkeypatch):
    """Synthesis that makes two lookup tables and a block RAM of any design; place and route that reaches 123.4 MHz with
    seed 1, and a MHz more with each further one."""
    def synthesize(design, folder):
        folder.mkdir(parents=True, exist_ok=True)
        wires = {"connections": {"A": [2], "Z": [3]}, "port_directions": {"A": "input", "Z": "output"}}
        none = {"connections": {}, "port_directions": {}}
        cells = {f"c{k}": {"type": kind, **none} for k, kind in enumerate(("LUT4", "DP16KD", "$scopeinfo"))}
        cells["ports.fronts"] = {"type": "$scopeinfo", **none}
        cells["ports.fronts.x"] = {"type": "LUT4", **wires}
        cells["ports.fronts.y"] = {"type": "TRELLIS_FF", "connections": {"DI": [3], "Q": [2]},
                                   "port_directions": {"DI": "input", "Q": "output"}}
        (folder / "core.json").write_text(json.dumps({"modules": {"top": {"cells": cells}}}))

    monkeypatch.setattr(kinds, "synthesize", synthesize)
    monkeypatch.setattr(kinds, "SerialShell", lambda geometry, ram: None)
    monkeypatch.setattr(kinds, "build_hash", lambda geometry: 0x1234)
    monkeypatch.setattr(kinds, "place", lambda folder, seed, target: {"fmax": {
        "a": {"achieved": 122.44 + seed}, "b": {"achieved": 200.0}}})


@pytest.mark.parametrize("core", kinds.CORES, ids=lambda core: "-".join(core.key))
def test_nodes_are_of_the_kind(core):
    made = core.geometry()
    assert made.nodes == core.nodes
    assert len(made.fronts) == (core.of if core.front is not Front.PORT else 0)
    assert {*made.fronts} == ({core.front} if core.front is not Front.PORT else set())


def test_rows_are_kept(tools, tmp_path, capsys):
    table = tmp_path / "kinds.csv"
    where = ["--table", str(table), "--output", str(tmp_path / "out")]
    kinds.main(["--only", "uart", "--nodes", "16", *where])
    kinds.main(["--only", "port", "--nodes", "4", *where])
    kinds.main(["--only", "port", "--nodes", "4", "--unplaced", *where])
    with table.open(newline="") as file:
        uart, port = csv.DictReader(file)
    assert (port["kind"], port["wires"], port["LUT4"], port["block RAMs"], port["MHz"]) == (
        "port", str(4 * FRONT_WIRES[Front.PORT]), "2", "1", "123.4; 124.4; 125.4")
    assert (uart["kind"], uart["wires"], uart["MHz"], uart["build"]) == ("uart", "16", "", "00001234")
    assert (uart["levels"], uart["front levels"]) == ("1", "1")
    assert capsys.readouterr().out.startswith("kind uart, nodes 16, of the kind 16, wires 16, LUT4 2, ")


def test_mhz_of_another_core_is_not_kept(tools, tmp_path, monkeypatch):
    table = tmp_path / "kinds.csv"
    where = ["--only", "port", "--nodes", "4", "--table", str(table), "--output", str(tmp_path / "out")]
    kinds.main(where)
    monkeypatch.setattr(kinds, "build_hash", lambda geometry: 0x1235)
    kinds.main([*where, "--unplaced"])
    (row,) = kinds.read(table).values()
    assert (row["build"], row["MHz"]) == ("00001235", "")


def test_a_mixture_counts_its_own_wires(tools, tmp_path):
    core = kinds.Core(Front.UART, kinds.SMALL, 1)
    assert kinds.measure(core, tmp_path / "out", [])["wires"] == 1 + (kinds.SMALL - 1) * FRONT_WIRES[Front.PORT]


def modules(core):
    """Modules of a capture core as it is elaborated: their texts without numbers, by name."""
    from amaranth.back import rtlil
    from hypermon.hdl.capture import Capture

    text = rtlil.convert(Capture(core.geometry(), build=0), name="capture", emit_src=False)
    found = re.findall(r"^module \\(\S+)\n(.*?)^end$", text, re.MULTILINE | re.DOTALL)
    return {name: re.sub(r"\$\d+", "$", body) for name, body in found}


def test_a_board_of_ports_has_no_part_of_a_front_end():
    """Neither a module nor a wire; a node with a UART adds modules, and the module is noticed."""
    port = modules(kinds.Core(Front.PORT, kinds.SMALL, kinds.SMALL))
    uart = modules(kinds.Core(Front.UART, kinds.SMALL, 1))
    fronts = re.compile(r"fronts|front__|\bfront_span|uart_period|swo_period")
    assert [name for name, text in port.items() if "fronts" in name or fronts.search(text)] == []
    assert any("fronts" in name for name in uart)
    assert any(fronts.search(text) for text in uart.values())
    added = {name.removeprefix("capture.") for name in {*uart} - {*port}}
    assert {name for name in added if not name.startswith("ports.fronts")} == {"ports"}


@pytest.fixture(scope="module")
def generate():
    return runpy.run_path(str(ROOT / "docs" / "tools" / "generate.py"))


def test_the_table_says_which_rows_are_older(generate, monkeypatch):
    """The small cores of the table are those of today's sources, or it says that they are not. (That the page has this
    table is a test of `tests/test_docs.py`.)"""
    from hypermon.hdl import verilog

    rows = kinds.read(ROOT / "docs" / "tools" / "kinds.csv")
    assert [core.key for core in SMALL if core.key not in rows] == []
    monkeypatch.setattr(verilog, "build_hash", lambda geometry: 0)
    lines = generate["kinds_table"](False).splitlines()[2:]
    assert len(lines) == len(SMALL)
    assert [line for line in lines if not line.endswith(", older |")] == []


def test_costs_are_differences(generate):
    rows = kinds.read(ROOT / "docs" / "tools" / "kinds.csv")
    ffs = {key: int(row["flip-flops"]) for key, row in rows.items()}
    cost = {line.split(" | ")[0].removeprefix("| "): int(line.split(" | ")[3])
            for line in generate["kinds_cost"]().splitlines()[2:]}
    for kind in ("uart", "swo", "two_wire", "selected"):
        made = ffs["port", "4", "4"] + cost["once, if any node has no port"] + 4 * cost[
            f"the same with `{kind}` instead: more by"]
        assert abs(made - ffs[kind, "4", "4"]) <= 4
    assert abs(ffs["port", "2", "2"] + 2 * cost["a node with a port"] - ffs["port", "4", "4"]) <= 1
