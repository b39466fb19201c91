"""Bus target: one access for each handshake, whatever the master's clock."""

import functools

import cocotb
import pytest
from cocotb.triggers import FallingEdge, Timer
from hypermon.hdl.control.pbx import Pbx
from hypermon.sim.bench.cocotb_models import PbxMaster

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run, seeds


class Names:
    """The bus under the names that the board gives it."""

    def __init__(self, dut):
        for name in ("req", "write", "addr", "wdata", "ack", "rdata"):
            setattr(self, f"pbx_{name}", getattr(dut, f"bus_{name}"))


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def answers(dut):
    stage, choose = Stage(dut), rng()
    slow = choose.choice([0, 3_000, 60_000])
    bus = PbxMaster(Names(dut), lambda: choose.randint(0, slow))
    await stage.start(access_done=0, access_rdata=0)
    memory, starts = {}, []

    async def target():
        busy = False
        while True:
            await FallingEdge(dut.clk)
            if not dut.access_start.value:
                busy = bool(dut.busy.value)
                continue
            assert busy, "busy only when the access has begun"
            starts.append(stage.now)
            for _ in range(choose.choice([0, 1, 7])):
                await FallingEdge(dut.clk)
                assert not dut.access_start.value, "a second access in one handshake"
            at, write = int(dut.access_addr.value), bool(dut.access_write.value)
            if write:
                memory[at] = int(dut.access_wdata.value)
            stage.put(access_done=1, access_rdata=choose.getrandbits(32) if write else memory.get(at, at))
            await FallingEdge(dut.clk)
            stage.put(access_done=0, access_rdata=choose.getrandbits(32))
    cocotb.start_soon(target())
    written = {}
    for number in range(300):
        assert bool(dut.busy.value) is False or slow == 0
        at = 4 * choose.randrange(64)
        if choose.random() < 0.5:
            value = choose.getrandbits(32)
            await bus.write(at, value)
            written[at] = value
        else:
            assert await bus.read(at) == written.get(at, at)
        assert len(starts) == number + 1
        await Timer(40_000 + choose.randint(0, slow), "step")
    assert memory == written


@functools.cache
def simulator():
    return component(Pbx())


@pytest.mark.parametrize("seed", seeds(3))
def test_answers(seed):
    run(simulator(), __name__, "answers", seed)
