"""Reset net: what stands at its end, and where boards have it."""

import functools

import cocotb
import pytest
from hypermon.hdl.layout import Geometry
from hypermon.hdl.lib.reset_net import ResetNet
from hypermon.hdl.verilog import bus_verilog, verilog

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import CELLS, component, run

SMALL = Geometry(nodes=2, node_depth=4, vector_depth=16, frame_depth=16)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def follows(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(i=1)
    for _ in range(100):
        level = choose.getrandbits(1)
        await stage.step(i=level)
        assert stage.get("o") == level
        await stage.clock()


@functools.cache
def simulator(ram):
    return component(ResetNet(ram), f"reset_net_{ram}", *([CELLS / "dcca.v"] * (ram == "ecp5")))


@pytest.mark.parametrize("ram", ["portable", "ecp5"])
def test_follows_in_the_same_clock(ram):
    run(simulator(ram), __name__, "follows", 1)


@pytest.mark.parametrize(("made", "nets"), [(verilog, 1), (bus_verilog, 2)])
def test_an_ecp5_has_one_for_each_reset(made, nets):
    """That of the spine, and behind a link that of the board."""
    assert made(SMALL, ram="ecp5").count("DCCA ") == nets
    assert "DCCA" not in made(SMALL)
