"""Whole-board bench: a board that follows a wave, which is a clock early or late where the bench wants it."""

from itertools import pairwise

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hypermon.hdl.layout import LATENCY, SYNC_LAG, CensusFlag, Control, Window
from hypermon.hdl.time.board_sync import QUIET_CLOCKS, period_bits
from hypermon.sim.bench.cocotb_models import now_ps

from .bench import Bench
from .case import CASE

#: SYNC: the setting, and what is read beside it.
FOLLOW, WAITS, MISSING = 1, 2, 4


class Line:
    """The line to ``sync_in``, and when ``sync_out`` has risen and fallen, in clocks."""

    def __init__(self, bench: Bench):
        self.bench, self.dut = bench, bench.dut
        self.edges: dict[int, list[int]] = {0: [], 1: []}

    def clock(self) -> int:
        return now_ps() // self.bench.period

    async def watch(self) -> None:
        out = self.dut.sync_out
        while True:
            await (FallingEdge(out) if out.value else RisingEdge(out))
            self.edges[int(out.value)].append(self.clock())

    async def rise(self, clocks: int) -> None:
        """A rise; the next one may come ``clocks`` later."""
        self.dut.sync_in.value = 1
        await self.bench.clocks(clocks // 2)
        self.dut.sync_in.value = 0
        await self.bench.clocks(clocks - clocks // 2)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def follows(dut):
    bench = Bench(dut)
    window = Window(CASE["window"])
    clocks = bench.geometry.window_clocks(window)
    period = clocks << period_bits(clocks)
    dut.sync_in.value = 0
    bench.bus.timeout_ns = 5 * bench.period     # a reset takes more than 1000 clocks
    await bench.start()
    line = Line(bench)
    cocotb.start_soon(line.watch())
    await bench.write("FLUSH", 100)
    await bench.control(Control.RESET, window)
    assert await bench.read("SYNC") == 0
    await bench.write("SYNC", FOLLOW)
    assert (await bench.read("GEOMETRY")) >> 24 == LATENCY
    await bench.control(Control.RESET, window)
    assert (await bench.read("GEOMETRY")) >> 24 == LATENCY - SYNC_LAG
    flags = Control.STREAM | Control.ENABLE
    await bench.control(flags, window)
    assert await bench.read("SYNC") == FOLLOW | WAITS

    # Not at a rise that is one of many, however long it has waited; and strobes count for nothing meanwhile.
    await FallingEdge(dut.clk)
    for low in (QUIET_CLOCKS - 900, QUIET_CLOCKS - 2):
        await line.rise(8)
        await bench.clocks(low - 4)
        dut.strobe.value = 1
        assert not dut.running.value
    dut.strobe.value = 0
    await line.rise(40)
    assert await bench.read("SYNC") == FOLLOW | WAITS
    await FallingEdge(dut.clk)
    await bench.clocks(QUIET_CLOCKS + 1)
    assert not dut.running.value
    assert line.edges == {0: [], 1: []}

    # Two flip-flops and the start; from then on each rise is where a period of its own begins.
    began = line.clock()
    await Timer(1, "step")
    playing = cocotb.start_soon(line.rise(period))
    await RisingEdge(dut.running)
    assert line.clock() - began == 2        # from a falling edge: at the third rising one
    await playing
    steps = [0, 0, 1, 0, 1, 1, -1, 0, -1, -1, 0, 1, -1, 0]
    for step in steps:
        await line.rise(period + step)
    await line.rise(period // 2)
    assert await bench.read("SYNC_STEPS") == steps.count(1) | steps.count(-1) << 16
    assert await bench.read("SYNC") == FOLLOW
    rises, falls = line.edges[1], line.edges[0]
    # What a rise shows is made up for in the period that begins then.
    assert [b - a - period for a, b in pairwise(rises)] == [0, 0, *steps][:len(rises) - 1]
    assert len(rises) >= len(steps) + 1
    assert all(fall - rise in (period // 2, period // 2 + 1, period // 2 - 1)
               for rise, fall in zip(rises, falls, strict=False))

    # Far away: a clock a period, by the shorter way. Then the line fails, and that is told when it has for long.
    await FallingEdge(dut.clk)
    await bench.clocks(period // 4 - (line.clock() - rises[-1]) % period + period)
    before = await bench.read("SYNC_STEPS")
    await FallingEdge(dut.clk)
    for _ in range(3):
        await line.rise(period)
    assert await bench.read("SYNC_STEPS") == before + 3
    await FallingEdge(dut.clk)
    await bench.clocks(period)
    assert await bench.read("SYNC") == FOLLOW
    await bench.clocks(3 * period)
    assert await bench.read("SYNC") == FOLLOW | MISSING
    await FallingEdge(dut.clk)
    await line.rise(period)
    assert await bench.read("SYNC") == FOLLOW | MISSING
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    assert all(CensusFlag.FOLLOWS in census.flags for census in run.censuses)
    assert CensusFlag.STRAYED not in run.censuses[0].flags
    assert CensusFlag.STRAYED in run.censuses[-1].flags
    assert not any(row["accepted"] for row in run.censuses[-1].nodes)
    await bench.control(Control.RESET, window)
    assert await bench.read("SYNC") == FOLLOW
    assert await bench.read("SYNC_STEPS") == 0
