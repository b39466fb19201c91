import json

import pytest
from hypermon.boards.toolchain.crossing_check import Crossing, clock_names, crossings, late, undeclared

#: Nets: two clocks, two flip-flops in a row with a gate between, and a way to a memory.
A, B, DATA, FIRST, GATE, SECOND, READ = range(2, 9)
WAYS = {"input": ("CLK", "DI", "CE", "LSR", "A", "B", "WCK", "WRE", "WAD", "RAD", "SCLK", "D", "A0", "B0"),
        "output": ("Q", "Z", "DO", "Q0", "Q1", "P0")}


def cell(kind, **pins):
    ways = {port: "input" if port in WAYS["input"] else "output" for port in pins}
    return {"type": kind, "connections": {port: [net] for port, net in pins.items()}, "port_directions": ways}


def netlist(path, *cells):
    names = {"a": A, "b": B, "data": DATA, "first": FIRST, "gate": GATE, "crossing.second": SECOND, "read": READ}
    path.write_text(json.dumps({"modules": {"top": {
        "cells": {str(n): c for n, c in enumerate(cells)}, "netnames": {n: {"bits": [b]} for n, b in names.items()}}}}))
    return path


def test_a_path_through_a_gate_is_found(tmp_path):
    found = crossings(netlist(
        tmp_path / "n.json", cell("TRELLIS_FF", CLK=A, DI=DATA, Q=FIRST), cell("LUT4", A=FIRST, B=DATA, Z=GATE),
        cell("TRELLIS_FF", CLK=B, DI=GATE, Q=SECOND)), "top")
    assert found == [Crossing("a", "b", "crossing.second")]
    assert undeclared(found, ("crossing.",)) == []
    assert undeclared(found, ("other.",)) == found


def test_a_net_of_several_names(tmp_path):
    """The shortest name, but a preferred one first: Yosys makes short names for nets that are declared."""
    path = netlist(tmp_path / "n.json", cell("TRELLIS_FF", CLK=A, DI=DATA, Q=FIRST),
                   cell("TRELLIS_FF", CLK=B, DI=FIRST, Q=SECOND))
    design = json.loads(path.read_text())
    design["modules"]["top"]["netnames"] |= {"short": {"bits": [SECOND]}, "$1": {"bits": [SECOND]}}
    path.write_text(json.dumps(design))
    assert crossings(path, "top") == [Crossing("a", "b", "short")]
    assert crossings(path, "top", ("crossing.",)) == [Crossing("a", "b", "crossing.second")]


def test_a_strobe_that_is_sampled_twice_a_clock(tmp_path):
    """The cell at the pin gives both samples with one clock; from there to another clock is a path."""
    pad = cell("IDDRX1F", SCLK=A, D=DATA, Q0=FIRST, Q1=READ)
    assert crossings(netlist(tmp_path / "n.json", pad, cell("TRELLIS_FF", CLK=A, DI=READ, Q=SECOND)), "top") == []
    assert crossings(netlist(tmp_path / "n.json", pad, cell("TRELLIS_FF", CLK=B, DI=READ, Q=SECOND)), "top") == [
        Crossing("a", "b", "crossing.second")]


def test_a_multiplier_is_logic_and_nothing_else(tmp_path):
    product = cell("MULT18X18D", A0=FIRST, B0=DATA, P0=GATE)
    ends = cell("TRELLIS_FF", CLK=A, DI=DATA, Q=FIRST), cell("TRELLIS_FF", CLK=B, DI=GATE, Q=SECOND)
    assert crossings(netlist(tmp_path / "n.json", product, *ends), "top") == [Crossing("a", "b", "crossing.second")]
    kept = product | {"parameters": {"REG_OUTPUT_CLK": "CLK0"}}
    with pytest.raises(ValueError, match="kind MULT18X18D, whose clock is not known"):
        crossings(netlist(tmp_path / "n.json", kept, *ends), "top")


def test_an_enable_is_a_path_too(tmp_path):
    assert crossings(netlist(
        tmp_path / "n.json", cell("TRELLIS_FF", CLK=A, DI=DATA, Q=FIRST),
        cell("TRELLIS_FF", CLK=B, DI=DATA, CE=FIRST, Q=SECOND)), "top") == [Crossing("a", "b", "crossing.second")]


def test_within_a_clock_there_is_none(tmp_path):
    assert crossings(netlist(
        tmp_path / "n.json", cell("TRELLIS_FF", CLK=A, DI=DATA, Q=FIRST), cell("LUT4", A=FIRST, B="0", Z=GATE),
        cell("TRELLIS_FF", CLK=A, DI=GATE, Q=SECOND)), "top") == []


def test_what_a_memory_keeps_comes_from_its_writer(tmp_path):
    assert crossings(netlist(
        tmp_path / "n.json", cell("TRELLIS_DPR16X4", WCK=A, DI=DATA, WRE="1", WAD="0", RAD="0", DO=READ),
        cell("TRELLIS_FF", CLK=B, DI=READ, Q=SECOND)), "top") == [Crossing("a", "b", "crossing.second")]


def test_a_row_that_releases_a_reset(tmp_path):
    """A set that is asynchronous may come from anywhere if what it sets goes with the clock again, in a row."""
    def row(first, mode="ASYNC"):
        cells = [cell("TRELLIS_FF", CLK=A, DI=DATA, Q=GATE), cell("TRELLIS_FF", CLK=B, DI=first, LSR=GATE, Q=FIRST),
                 cell("TRELLIS_FF", CLK=B, DI=FIRST, LSR=GATE, Q=SECOND)]
        return [c | {"parameters": {"SRMODE": mode}} for c in cells]

    assert crossings(netlist(tmp_path / "n.json", *row("0")), "top") == []
    assert [c.into for c in crossings(netlist(tmp_path / "n.json", *row(READ)), "top")] == ["first"]
    assert len(crossings(netlist(tmp_path / "n.json", *row("0", "LSR_OVER_CE")), "top")) == 2


def path(source, target, *delays):
    return {"from": source, "to": target, "path": [{"delay": delay} for delay in delays]}


def test_clocks_in_phase_are_timed_from_one_to_the_other():
    clocks = {"deep.usb_clk": "usb", "usb_clk": "usb", "usb_io_clk": "usb_io"}
    quick = path("posedge $glbnet$deep.usb_clk", "posedge $glbnet$usb_io_clk", 5.0, 15.0)
    slow = path("posedge $glbnet$usb_io_clk", "posedge $glbnet$deep.usb_clk", 9.0, 12.5)
    beside = [path("posedge usb_clk", "posedge usb_clk", 60.0), path("posedge capture_clk", "posedge usb_clk", 60.0)]
    assert late({"critical_paths": [quick, *beside]}, clocks, 48_000_000) == ""
    assert late({"critical_paths": [quick, slow]}, clocks, 48_000_000) == "usb_io to usb 21.5 ns of 20.8"
    assert late({}, clocks, 48_000_000) == ""


def test_clocks_have_all_the_names_of_their_nets(tmp_path):
    pll = cell("EHXPLLL", CLKI=DATA, CLKOP=A, CLKOS=B) | {
        "attributes": {"FREQUENCY_PIN_CLKI": "48", "FREQUENCY_PIN_CLKOP": "120", "FREQUENCY_PIN_CLKOS": "48"}}
    made = netlist(tmp_path / "n.json", pll)
    design = json.loads(made.read_text())
    design["modules"]["top"]["netnames"]["deep.b"] = {"bits": [B]}
    made.write_text(json.dumps(design))
    assert clock_names(made, "top", {"capture": 120_000_000, "usb_io": 48_000_000}) == {
        "a": "capture", "b": "usb_io", "deep.b": "usb_io"}
    assert clock_names(made, "top", {"other": 1_000_000}) == {}


def test_a_clock_from_outside_is_named_after_its_domain(tmp_path):
    """Its net may have other names too: one of a queue's, for instance, is the one that nextpnr shows."""
    made = netlist(tmp_path / "n.json", cell("EHXPLLL", CLKI=DATA, CLKOP=A) | {"attributes": {
        "FREQUENCY_PIN_CLKI": "48", "FREQUENCY_PIN_CLKOP": "120"}})
    design = json.loads(made.read_text())
    design["modules"]["top"]["netnames"] |= {
        "deep.behind_clk": {"bits": [B]}, "deep.receiver.usb_clk": {"bits": [B]}, "deep.usb_clk": {"bits": [A]}}
    made.write_text(json.dumps(design))
    found = clock_names(made, "top", {"capture": 120_000_000}, ("usb",))
    assert (found["deep.behind_clk"], found["a"], found["deep.usb_clk"]) == ("usb", "capture", "capture")
    assert "deep.behind_clk" not in clock_names(made, "top", {"capture": 120_000_000})


def test_a_loop_of_gates_is_refused(tmp_path):
    with pytest.raises(ValueError, match="loop of gates"):
        crossings(netlist(
            tmp_path / "n.json", cell("LUT4", A=GATE, B=READ, Z=FIRST), cell("LUT4", A=FIRST, B=DATA, Z=GATE),
            cell("TRELLIS_FF", CLK=B, DI=GATE, Q=SECOND)), "top")


def test_an_unknown_cell_is_refused(tmp_path):
    with pytest.raises(ValueError, match="kind FANCY"):
        crossings(netlist(tmp_path / "n.json", cell("FANCY", CLK=A, Q=FIRST)), "top")


def test_gowins_memories_too(tmp_path):
    assert crossings(netlist(
        tmp_path / "n.json", cell("RAM16SDP4", CLK=A, DI=DATA, WRE="1", WAD="0", RAD="0", DO=READ),
        cell("DFFE", CLK=B, CE=READ, DI=DATA, Q=SECOND)), "top") == [Crossing("a", "b", "crossing.second")]
