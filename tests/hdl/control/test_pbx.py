"""Bus target: one access for each handshake, whatever the master's clock."""

import functools

import cocotb
import pytest
from cocotb.triggers import FallingEdge, Timer
from hypermon.hdl.control.pbx import Pbx
from hypermon.sim.bench.cocotb_models import PbxMaster

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.resets import same_as_fresh
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
    dut.bus_more.value = 0
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


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def bursts(dut):
    """Words of bursts of any length, and single accesses between them: one access for each, in order, whatever the
    master's and the target's delays are; a word stays until the next edge of the request."""
    stage, choose = Stage(dut), rng()
    slow = choose.choice([1, 3_000, 60_000])
    reads, gives = [], []
    dut.bus_req.value = dut.bus_more.value = dut.bus_write.value = dut.bus_addr.value = dut.bus_wdata.value = 0
    await stage.start(access_done=0, access_rdata=0)

    async def target():
        while True:
            # A word that is read ahead may start in the clock after the one before it is done.
            if not dut.access_start.value:
                await FallingEdge(dut.clk)
                continue
            reads.append((int(dut.access_addr.value), int(dut.access_again.value)))
            for _ in range(choose.choice([0, 1, 7])):
                await FallingEdge(dut.clk)
                assert not dut.access_start.value, "a second access before the first one is done"
            await FallingEdge(dut.clk)
            gives.append(choose.getrandbits(32))
            stage.put(access_done=1, access_rdata=gives[-1])
            await FallingEdge(dut.clk)
            stage.put(access_done=0)

    cocotb.start_soon(target())
    for _ in range(60):
        at, words, level, came = 4 * choose.randrange(64), choose.choice([1, 1, 2, 3, 16, 33]), 0, []
        begin = len(reads)
        dut.bus_addr.value = at
        for k in range(words):
            await Timer(1 + choose.randint(0, slow), "step")
            level = 1 - level
            dut.bus_more.value = k + 1 < words
            await Timer(1, "step")
            dut.bus_req.value = level
            while int(dut.bus_ack.value) != level:
                await dut.bus_ack.value_change
            await Timer(1 + choose.randint(0, slow), "step")
            assert int(dut.bus_ack.value) == level
            came.append(int(dut.bus_rdata.value))
        if level:
            dut.bus_req.value = 0
            await FallingEdge(dut.bus_ack)
        await Timer(60_000, "step")
        assert not dut.busy.value
        assert reads[begin:] == [(at, int(k > 0)) for k in range(words)]
        assert came == gives[begin:]


@functools.cache
def simulator(direct=False):
    return component(Pbx(direct))


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("seed", seeds(3))
def test_bursts(seed, direct):
    run(simulator(direct), __name__, "bursts", seed)


@pytest.mark.parametrize("seed", seeds(3))
def test_answers(seed):
    run(simulator(), __name__, "answers", seed)


@pytest.mark.parametrize("direct", [False, True])
def test_reset(direct):
    same_as_fresh(lambda: Pbx(direct))
