"""Logic levels of a netlist: the walk on small netlists made by hand, and the bounds of the core."""

from pathlib import Path

import pytest
from hypermon.boards.measure.core_timing import SerialShell, synthesize
from hypermon.boards.measure.levels import deepest, deepest_by_room, size_by_room
from hypermon.hdl.layout import Geometry

#: Levels of the core's deepest path: in the trigger, two more than 150 MHz allow on an ECP5 of speed 6.
DEEPEST = 6
#: The same after a block RAM.
DEEPEST_AFTER_BLOCK_RAM = 3
OUTPUTS = {"LUT4": "Z", "TRELLIS_FF": "Q", "DP16KD": "DOB0", "CCU2C": "COUT S0 S1", "TRELLIS_DPR16X4": "DO"}


def cell(kind, **pins):
    """A cell whose pins are wires by number; a string is a constant."""
    return {"type": kind, "connections": {pin: wire if isinstance(wire, list) else [wire]
                                          for pin, wire in pins.items()},
            "port_directions": {pin: "output" if pin in OUTPUTS[kind].split() else "input" for pin in pins}}


def stage(name):
    return {name: {"type": "$scopeinfo", "connections": {}, "port_directions": {}}}


def levels(cells, **options):
    return {path.cells[-1]: path.levels for path in deepest(cells, **options)}


def test_the_deeper_of_two_ways_counts():
    cells = {
        "a": cell("TRELLIS_FF", CLK=1, DI=90, Q=2), "x": cell("LUT4", A=2, B="1", C="0", D="0", Z=3),
        "y": cell("LUT4", A=2, B=3, C="0", D="0", Z=4), "b": cell("TRELLIS_FF", CLK=1, DI=3, CE=4, Q=5),
        "c": cell("TRELLIS_FF", CLK=4, DI=2, Q=6),
    }
    assert levels(cells) == {"a": 0, "b": 2, "c": 0}
    assert {path.cells for path in deepest(cells)} >= {("a", "x", "y", "b")}


def test_a_distributed_memory_that_is_read_is_a_level():
    cells = {
        "a": cell("TRELLIS_FF", CLK=1, DI=90, Q=2), "x": cell("LUT4", A=2, Z=3),
        "m": cell("TRELLIS_DPR16X4", WCK=1, DI=2, WAD=2, WRE=2, RAD=3, DO=[4, 5, 6, 7]),
        "k": cell("TRELLIS_DPR16X4", WCK=1, DI=2, WAD=2, WRE=2, RAD="0", DO=[8]),
        "b": cell("TRELLIS_FF", CLK=1, DI=7, Q=9), "c": cell("TRELLIS_FF", CLK=1, DI=8, Q=10),
    }
    assert levels(cells) == {"a": 0, "m": 0, "k": 0, "b": 2, "c": 1}


@pytest.mark.parametrize(("blocks", "expected"), [(2, 1), (8, 1), (9, 2), (17, 3)])
def test_a_carry_chain(blocks, expected):
    """Of one level, and another one for every eight blocks that the carry passes."""
    cells = {"a": cell("TRELLIS_FF", CLK=1, DI=90, Q=2), "b": cell("TRELLIS_FF", CLK=1, DI=199 + blocks, Q=3)}
    for k in range(blocks):
        first = {"A0": 2} if k == 0 else {"A0": "0"}
        cells[f"c{k}"] = cell("CCU2C", CIN=100 + k if k else "0", **first, A1="0", S0=199 + k + 1, COUT=101 + k)
    assert levels(cells)["b"] == expected


def test_a_sum_does_not_depend_on_the_bits_above_it():
    cells = {
        "a": cell("TRELLIS_FF", CLK=1, DI=90, Q=2), "x": cell("LUT4", A=2, Z=3),
        "c": cell("CCU2C", CIN="0", A0=2, A1=3, S0=4, S1=5, COUT=6),
        "low": cell("TRELLIS_FF", CLK=1, DI=4, Q=7), "high": cell("TRELLIS_FF", CLK=1, DI=5, Q=8),
    }
    assert levels(cells) == {"a": 0, "low": 1, "high": 2}


def test_levels_after_a_block_ram():
    cells = {
        "a": cell("TRELLIS_FF", CLK=1, DI=90, Q=2), "ram": cell("DP16KD", CLKB=1, ADB0=2, DOB0=3),
        "x": cell("LUT4", A=2, Z=4), "y": cell("LUT4", A=4, B=3, Z=5), "b": cell("TRELLIS_FF", CLK=1, DI=5, Q=6),
        "direct": cell("TRELLIS_FF", CLK=1, DI=3, CE=4, Q=7),
    }
    assert levels(cells, from_block_rams=True) == {"b": 1, "direct": 0}
    assert levels(cells)["b"] == 2


def test_rooms():
    cells = {
        **stage("core.merge$7"), **stage("core.merge$7.fifo"),
        "core.merge$7.a_TRELLIS_FF_Q": cell("TRELLIS_FF", CLK=1, DI=2, Q=3),
        "core.merge$7.fifo.entry.time_TRELLIS_FF_Q": cell("TRELLIS_FF", CLK=1, DI=4, Q=2),
        "core.merge$7.fifo.x": cell("LUT4", A=3, Z=4), "y": cell("TRELLIS_DPR16X4", WCK=1, RAD=3, DO=5),
        "core.merge$7.z": cell("CCU2C", A0=3, S0=6),
    }
    assert {room: path.levels for room, path in deepest_by_room(cells).items()} == {
        "core.merge": 0, "core.merge.fifo": 1}
    assert size_by_room(cells) == {"core.merge": (2, 1), "core.merge.fifo": (1, 1), "top": (6, 0)}


@pytest.fixture(scope="module")
def core(tools, tmp_path_factory):
    """Cells of an extended board with all options and few nodes, which has all rooms."""
    import os

    from hypermon.boards.measure.levels import netlist

    folder = tmp_path_factory.mktemp("core", numbered=True)
    before = Path.cwd()
    os.chdir(folder)        # Yosys in WebAssembly does not see /tmp by its absolute path
    try:
        synthesize(SerialShell(Geometry.extended(2), "ecp5"), Path("netlist"))
        return netlist(Path("netlist"))
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("ram", "bound"), [(False, DEEPEST), (True, DEEPEST_AFTER_BLOCK_RAM)],
                         ids=["every path", "after a block RAM"])
def test_the_core_has_not_become_deeper(core, ram, bound):
    """One bound for all rooms, not one for each.

    Yosys makes the deepest path as short as it can, and then saves LUTs wherever no path becomes deeper than that one.
    So the levels of every other room change by chance, with a name or with the number of nodes. Lower a bound when the
    core no longer reaches it. Raise one only with the reason in the commit.
    """
    rooms = deepest_by_room(core, ram)
    assert len(rooms) > (5 if ram else 50)
    deeper = {room: path for room, path in rooms.items() if path.levels > bound}
    assert not deeper, "\n".join(f"{room}: {path.levels}, {path.cells[0]} -> {path.cells[-1]}"
                                 for room, path in sorted(deeper.items()))
