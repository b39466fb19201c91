"""Two whole boards with oscillators of their own, one of which follows the other."""

import itertools
import random
from collections import Counter

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hypermon.hdl.layout import LATENCY, SYNC_LAG, CensusFlag, Control, Window
from hypermon.sim.bench.cocotb_models import Pads, now_ps

from .bench import Bench
from .case import CASE, rng

#: SYNC: the setting, and what is read beside it.
FOLLOW, WAITS, MISSING = 1, 2, 4


class Side:
    """The ports of one of the boards."""

    def __init__(self, dut, name: str):
        self._dut, self._name = dut, name

    def __getattr__(self, port: str):
        handle = getattr(self._dut, f"{self._name}_{port}")
        setattr(self, port, handle)
        return handle


class Oscillator:
    """A clock that is off by up to ``ppm``, and wanders."""

    def __init__(self, clk, period: int, ppm: float, rng: random.Random):
        self.clk, self.period, self.ppm, self.rng = clk, period, ppm, rng
        self.off = rng.uniform(-ppm, ppm)
        self.edges = 0

    async def run(self) -> None:
        edge = float(now_ps() + self.rng.randrange(1, self.period))
        while True:
            if self.edges % 256 == 0:
                self.off = min(max(self.off + self.rng.gauss(0, self.ppm / 20), -self.ppm), self.ppm)
            for level in (1, 0):
                await Timer(max(1, round(edge) - now_ps()), "step")
                self.clk.value = level
                edge += self.period * (1 + self.off * 1e-6) / 2
            self.edges += 1


class Pair:
    """The boards: ``first`` makes the wave, ``second`` may follow."""

    def __init__(self, dut):
        self.sides = Side(dut, "a"), Side(dut, "b")
        self.first, self.second = self.boards = [Bench(side) for side in self.sides]
        self.plugged = True

    async def start(self) -> None:
        clocks = rng("oscillators")
        for bench in self.boards:
            dut = bench.dut
            bench.bus.timeout_ns = 200_000
            dut.rst.value, dut.advance.value, dut.clk.value, dut.sync_in.value = 1, 0, 0, 0
            bench.pads = Pads(dut.strobe, dut.data, [0] * bench.nodes)
            cocotb.start_soon(Oscillator(dut.clk, bench.period, CASE["ppm"], clocks).run())
        cocotb.start_soon(self._line())
        await Timer(4 * self.first.period, "step")
        for bench in self.boards:
            bench.dut.rst.value = 0
        await self.first.clocks(800)

    async def _line(self) -> None:
        """From sync_out to sync_in. The delay is of the line; and now and then the first flip-flop takes a clock more,
        when it samples in the very moment of the change."""
        out, into, choose = self.sides[0].sync_out, self.sides[1].sync_in, rng("line")
        while True:
            await (FallingEdge(out) if out.value else RisingEdge(out))
            level = int(out.value)
            await Timer(CASE["line_ps"] + choose.randint(1, 500), "step")
            if self.plugged:
                into.value = level

    async def begin(self, window: Window, *, late: bool = False) -> None:
        """Both are enabled, the one that follows first, or too late."""
        for bench in self.boards:
            await bench.write("EDGE_FALLING", (1 << bench.nodes) - 1)
            await bench.write("SAMPLE_AFTER", (1 << bench.nodes) - 1)
            await bench.write("FLUSH", 100)
        await self.second.write("SYNC", FOLLOW)
        await self.second.control(Control.RESET, window)
        await self.first.control(Control.RESET, window)
        await self.second.clocks(4500)
        flags = Control.STREAM | Control.ENABLE
        first, second = (self.second, self.first) if not late else (self.first, self.second)
        await first.control(flags, window)
        if late:
            await first.clocks(3000)
        else:
            await self.waiting()
        await second.control(flags, window)

    async def waiting(self) -> None:
        assert await self.second.read("SYNC") == FOLLOW | WAITS
        assert not self.sides[1].running.value

    async def end(self, window: Window) -> None:
        for bench in self.boards:
            await bench.clocks(200)
            await bench.control(Control.STREAM, window)
        for bench in self.boards:
            await bench.stopped()


async def probe(pair: Pair, count: int, gaps: tuple[int, int]) -> None:
    """The same strobes at both boards, at the same moments."""
    choose = rng("probes")
    for k in range(count):
        await Timer(choose.randint(*gaps), "step")
        for side in pair.sides:
            side.data.value = k & 15
            side.strobe.value = 1 - k % 2


@cocotb.test(timeout_time=200, timeout_unit="ms")
async def aligned(dut):
    """What both boards see has the same time on both, to a tick and the input's latency, however long they run."""
    pair = Pair(dut)
    window = Window(CASE["window"])
    clocks = pair.first.geometry.window_clocks(window)
    await pair.start()
    await pair.begin(window)
    period = pair.first.period
    await pair.first.clocks(40)
    await probe(pair, CASE["count"], (30 * max(period, clocks * period // 8), 160 * max(period, clocks * period // 8)))
    await pair.end(window)
    # Node 0 of either board.
    runs = [bench.runs()[-1] for bench in pair.boards]
    (first, second) = ([stamp for stamp, _ in run.delivered(0)] for run in runs)
    nibbles = [[nibble for _, nibble in run.delivered(0)] for run in runs]
    assert nibbles[0] == nibbles[1] == [k & 15 for k in range(CASE["count"])]
    latencies = LATENCY, LATENCY - SYNC_LAG
    times = [[stamp * clocks - latency for stamp in stamps]
             for stamps, latency in zip((first, second), latencies, strict=True)]
    errors = [two - one for one, two in zip(*times, strict=True)]
    assert all(one < two for stamps in (first, second) for one, two in itertools.pairwise(stamps))
    steps = await pair.second.read("SYNC_STEPS")
    elapsed = times[0][-1]
    cocotb.log.info(
        "%d clocks, %d probes, windows made longer %d, shorter %d, error in clocks %s", elapsed, len(errors),
        steps & 0xffff, steps >> 16, sorted(Counter(errors).items()))
    # A tick, and a clock of the input's latency, which is what may differ from rise to rise; that is seldom seen.
    assert max(map(abs, errors)) <= clocks + 1, Counter(errors)
    assert sum(abs(error) > clocks for error in errors) <= len(errors) // 100, Counter(errors)
    assert await pair.second.read("SYNC") == FOLLOW
    assert await pair.first.read("SYNC") == 0
    assert await pair.first.read("SYNC_STEPS") == 0
    drifted = abs((steps & 0xffff) - (steps >> 16))
    assert bool(CASE["drifts"]) <= (drifted > 3), "the oscillators were not different enough"
    for run, follows in zip(runs, (False, True), strict=True):
        for census in run.censuses:
            assert (CensusFlag.FOLLOWS in census.flags) == follows
            assert CensusFlag.STRAYED not in census.flags


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def late(dut):
    """Who is enabled when the other board runs already does not start off by some periods: it waits."""
    pair = Pair(dut)
    await pair.start()
    await pair.begin(Window.CLOCK, late=True)
    for _ in range(3):
        await pair.second.clocks(2500)
        await pair.waiting()
    # Strobes are not captured meanwhile. When the other board has been silent, its next run is the start.
    await probe(pair, 4, (10**6, 10**6))
    await pair.first.control(Control.RESET, Window.CLOCK)
    await pair.first.clocks(4500)
    await pair.waiting()
    await pair.first.control(Control.STREAM | Control.ENABLE, Window.CLOCK)
    await pair.first.clocks(100)
    assert await pair.second.read("SYNC") == FOLLOW
    await probe(pair, 8, (10**6, 10**6))
    await pair.end(Window.CLOCK)
    (first, second) = ([stamp for stamp, _ in bench.runs()[-1].delivered(0)] for bench in pair.boards)
    assert len(first) == len(second) == 8
    assert max(abs(two + SYNC_LAG - one) for one, two in zip(first, second, strict=True)) <= 2


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def unplugged(dut):
    """A line that fails is told, for ever, and time goes on; when it is back, own time is led back."""
    pair = Pair(dut)
    await pair.start()
    await pair.begin(Window.CLOCK)
    await pair.first.clocks(20_000)
    assert await pair.second.read("SYNC") == FOLLOW
    pair.plugged = False
    await pair.first.clocks(2500)
    assert await pair.second.read("SYNC") == FOLLOW, "two periods are no failure"
    await pair.first.clocks(4000)
    assert await pair.second.read("SYNC") == FOLLOW | MISSING
    await pair.first.clocks(20_000)
    pair.plugged = True
    await pair.first.clocks(30_000)
    assert await pair.second.read("SYNC") == FOLLOW | MISSING
    await probe(pair, 8, (10**6, 10**6))
    await pair.end(Window.CLOCK)
    (first, second) = ([stamp for stamp, _ in bench.runs()[-1].delivered(0)] for bench in pair.boards)
    assert len(first) == len(second) == 8
    assert max(abs(two + SYNC_LAG - one) for one, two in zip(first, second, strict=True)) <= 2
    assert CensusFlag.STRAYED in pair.second.runs()[-1].censuses[-1].flags
