"""Asynchronous FIFO: every item once and in order, whatever the clocks, the stalls and the resets around it."""

import functools

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hypermon.hdl.transport.async_fifo import AsyncFifo

from ..benches.case import CASE, rng
from ..harness.rejects import rejects
from ..harness.runner import component, run, seeds

ITEMS = 3000


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def keeps(dut):
    choose = rng()
    periods = CASE["periods"] or [choose.randrange(4_000, 40_000, 2) for _ in range(2)]
    rates = (1.0, 1.0) if CASE["periods"] else [choose.choice([1.0, 0.6, 0.1]) for _ in range(2)]
    dut.rst.value = dut.link_rst.value = 1
    dut.i_valid.value = dut.o_ready.value = 0
    Clock(dut.clk, periods[0], "step").start(start_high=False)
    await Timer(choose.randrange(1, 40_000), "step")
    Clock(dut.link_clk, periods[1], "step").start(start_high=False)
    await Timer(200_000, "step")
    dut.rst.value = dut.link_rst.value = 0
    items = [choose.getrandbits(9) for _ in range(ITEMS)]
    came, clocks = [], [0, 0]

    async def give():
        for item in items:
            while choose.random() >= rates[0]:
                await FallingEdge(dut.clk)
            dut.i_valid.value, dut.i_payload.value = 1, item
            while True:
                await RisingEdge(dut.clk)
                clocks[0] += 1
                taken = dut.i_ready.value
                await FallingEdge(dut.clk)
                # A reset of one side alone must not disturb what is inside.
                dut.rst.value = choose.random() < CASE["resets"]
                if taken:
                    break
            dut.i_valid.value = 0

    async def take():
        while len(came) < ITEMS:
            await FallingEdge(dut.link_clk)
            clocks[1] += bool(came)
            dut.link_rst.value = choose.random() < CASE["resets"]
            dut.o_ready.value = ready = choose.random() < rates[1]
            await RisingEdge(dut.link_clk)
            if ready and dut.o_valid.value:
                came.append(int(dut.o_payload.value))
                assert came[-1] == items[len(came) - 1], f"item {len(came) - 1}"
    giving = cocotb.start_soon(give())
    await take()
    await giving
    dut.o_ready.value = 1
    for _ in range(20):
        await RisingEdge(dut.link_clk)
        assert not dut.o_valid.value, "an item that was never given"
    if CASE["periods"]:
        slower = 0 if periods[0] > periods[1] else 1
        assert clocks[slower] < ITEMS + 40, "slower than an item a clock of the slower side"


@functools.cache
def simulator():
    return component(AsyncFifo(9), "async_fifo", domains=("sync", "link"))


@pytest.mark.parametrize("seed", seeds(6))
def test_keeps(seed):
    run(simulator(), __name__, "keeps", seed, periods=None, resets=0.02)


@pytest.mark.parametrize("periods", [(10_000, 16_666), (16_666, 10_000)], ids=["fast to slow", "slow to fast"])
def test_keeps_pace(periods):
    run(simulator(), __name__, "keeps", 0, periods=periods, resets=0)


def test_a_wrong_depth_is_named():
    rejects(lambda: AsyncFifo(9, 12), 12)
    rejects(lambda: AsyncFifo(9, 4), 4)
