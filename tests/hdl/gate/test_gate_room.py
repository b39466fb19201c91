"""GateRoom: what the gate is told of the memories behind it."""

import functools

import cocotb
import pytest
from hypermon.hdl.gate.gate_room import VECTOR_MARGIN, GateRoom
from hypermon.hdl.layout import Geometry

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

GEOMETRY = Geometry(nodes=3, node_depth=4, vector_depth=16, frame_depth=4)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def tells(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(vector_level=0, builder_busy=0, stuck=0)
    backed_up, before = False, (0, 0)
    for clock in range(3000):
        level = choose.choice([0, 0, choose.randint(0, GEOMETRY.vector_depth)])
        busy, stuck = choose.random() < 0.3, choose.random() < 0.1
        if clock:
            old_level, old_busy = before
            spare = old_level + GEOMETRY.node_depth + VECTOR_MARGIN <= GEOMETRY.vector_depth
            assert stage.get("room") == spare, "a slot for every nibble of a node FIFO, and for those on their way"
            assert stage.get("half") == (spare and old_level <= GEOMETRY.vector_depth // 2)
            assert stage.get("gone") == (old_level == 0 and not old_busy)
            assert stage.get("backed_up") == backed_up
        await stage.step(vector_level=level, builder_busy=int(busy), stuck=int(stuck))
        backed_up = stuck or (backed_up and not stage.get("gone"))
        before = level, busy
        await stage.clock()


@functools.cache
def simulator():
    return component(GateRoom(GEOMETRY))


@pytest.mark.parametrize("seed", seeds(1))
def test_tells(seed):
    run(simulator(), __name__, "tells", seed)


def test_reset():
    same_as_fresh(lambda: GateRoom(Geometry.extended(3)))
