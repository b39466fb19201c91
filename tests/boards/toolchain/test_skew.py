"""Skew of a port's wires: read from what place and route write, and refused beyond what is tolerated."""

import json

import pytest
from hypermon.boards.toolchain.skew import skews_ps, tolerated_ps

#: Delays in picoseconds of strobe and data of two nodes; those of the second are in fabric.
DELAYS = [[0, 0, 0, 0, 0], [412.5, 1187, 633, 540, 700]]


def pad(node, wire):
    return f"pads.node{node}[{wire}]$buf"


def files(folder, delays=DELAYS, kind="TRELLIS_IO", side="io", **parameters):
    """A netlist and delays as Yosys and nextpnr write them; nets of pins are counted from 2."""
    pins = {(node, wire): 2 + 5 * node + wire for node in range(len(delays)) for wire in range(5)}
    ports = {f"node_{node}__{part}__{side}": {"bits": [pins[node, wire] for wire in wires]}
             for node in range(len(delays)) for part, wires in (("strobe", [0]), ("data", [1, 2, 3, 4]))}
    cells = {pad(*pin): {"type": kind, "connections": {"B": [net], "O": [net + 100]}, "parameters": parameters}
             for pin, net in pins.items()}
    netlist, sdf = folder / "top.json", folder / "top.sdf"
    netlist.write_text(json.dumps({"modules": {"top": {"ports": ports, "cells": cells}}}))
    escaped = {pin: pad(*pin).replace("[", "\\[").replace("]", "\\]").replace("$", "\\$") for pin in pins}
    sdf.write_text("(DELAYFILE\n  (TIMESCALE 1ps)\n" + "".join(
        f"        (INTERCONNECT {escaped[node, wire]}/O other/D ({d}:{d}:{d}) ({d}:{d}:{d}))\n"
        for node, row in enumerate(delays) for wire, d in enumerate(row) if d is not None)
        + "        (INTERCONNECT logic.cell/F other/D (9e3:9e3:9e3) (9e3:9e3:9e3))\n)\n")
    return netlist, sdf, "top", range(len(delays))


@pytest.mark.parametrize("side", ["io", "p"])
def test_each_port_has_its_own(tmp_path, side):
    assert skews_ps(*files(tmp_path, side=side)) == [0, 774]


def test_nodes_of_one_wire_are_left_out(tmp_path):
    netlist, sdf, top, _ = files(tmp_path)
    assert skews_ps(netlist, sdf, top, [1]) == [774]
    assert skews_ps(netlist, sdf, top, []) == []


def test_registers_in_the_cells_of_an_ice40_have_none(tmp_path):
    assert skews_ps(*files(tmp_path, kind="SB_IO", PIN_TYPE="000000")) == [0, 0]


@pytest.mark.parametrize(("registered", "skews"), [("1", [0, 0]), ("0", [0, 774])])
def test_nor_those_of_a_gowin(tmp_path, registered, skews):
    assert skews_ps(*files(tmp_path, kind="IBUF", IOLOGIC_IOB=registered.zfill(32))) == skews


def test_without_delays_all_are_in_cells(tmp_path):
    netlist, sdf, _, nodes = files(tmp_path, kind="IBUF", IOLOGIC_IOB="1".zfill(32))
    netlist.write_text(netlist.read_text().replace('"top"', '"other"'))
    sdf.unlink()
    with pytest.raises(KeyError):
        skews_ps(netlist, sdf, "hypermon_board", nodes)
    netlist.write_text(netlist.read_text().replace('"other"', '"top"'))
    assert skews_ps(netlist, sdf, "hypermon_board", nodes) == [0, 0]
    netlist.write_text(netlist.read_text().replace("IOLOGIC_IOB", "OTHER"))
    with pytest.raises(ValueError, match="no way from a pin of node 0"):
        skews_ps(netlist, sdf, "hypermon_board", nodes)


def test_an_ice40_s_inputs_without_registers_have_what_is_routed(tmp_path):
    assert skews_ps(*files(tmp_path, kind="SB_IO", PIN_TYPE="000001")) == [0, 774]


def test_a_wire_that_is_not_found_is_no_zero(tmp_path):
    with pytest.raises(ValueError, match="no way from a pin of node 1"):
        skews_ps(*files(tmp_path, [[0] * 5, [0, 0, None, 0, 0]]))


def test_half_a_clock_is_tolerated():
    assert tolerated_ps(100_000_000) == 5000
