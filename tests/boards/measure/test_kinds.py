"""Sizes by kind of nodes: what is counted, and that rows of earlier measurements stay."""

import csv
import json

import pytest

pytest.importorskip("amaranth")

from hypermon.boards.measure import kinds
from hypermon.hdl.layout import FRONT_WIRES, Front


@pytest.fixture
def tools(monkeypatch):
    """Synthesis that makes two lookup tables and a block RAM of any design; place and route that reaches 123.4 MHz."""
    def synthesize(design, folder):
        folder.mkdir(parents=True)
        cells = {f"c{k}": {"type": kind} for k, kind in enumerate(("LUT4", "LUT4", "DP16KD", "$scopeinfo"))}
        (folder / "core.json").write_text(json.dumps({"modules": {"top": {"cells": cells}}}))

    monkeypatch.setattr(kinds, "synthesize", synthesize)
    monkeypatch.setattr(kinds, "SerialShell", lambda geometry, ram: None)
    monkeypatch.setattr(kinds, "place", lambda folder, seed, target: {"fmax": {
        "a": {"achieved": 123.44}, "b": {"achieved": 200.0}}})


@pytest.mark.parametrize("front", Front)
def test_all_nodes_are_of_the_kind(front):
    made = kinds.geometry(front)
    assert made.nodes == kinds.NODES
    assert {*made.fronts} == ({front} if front is not Front.PORT else set())


def test_rows_are_kept(tools, tmp_path, capsys):
    table = tmp_path / "kinds.csv"
    where = ["--table", str(table), "--output", str(tmp_path / "out")]
    kinds.main(["--only", "uart", "--unplaced", *where])
    kinds.main(["--only", "port", *where])
    with table.open(newline="") as file:
        port, uart = csv.DictReader(file)
    assert (port["kind"], port["wires"], port["LUT4"], port["block RAMs"], port["MHz"]) == (
        "port", str(16 * FRONT_WIRES[Front.PORT]), "2", "1", "123.4")
    assert (uart["kind"], uart["wires"], uart["MHz"]) == ("uart", "16", "")
    assert capsys.readouterr().out.startswith("kind uart, wires 16, LUT4 2, ")
