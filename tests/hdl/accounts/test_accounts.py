"""Accounts: what is reported of a run is what has happened in it, whichever way it is read, and then all is quiet."""

import random

import pytest
from amaranth.hdl import ClockDomain
from hypermon.hdl.accounts.accounts import Accounts
from hypermon.hdl.layout import (
    CENSUS_BOARD,
    CENSUS_NODE,
    COUNTERS,
    LOSS_RECORD,
    REDUCTION_SHARED,
    REDUCTION_VECTOR_HIGH,
    CensusFlag,
    Counter,
    Geometry,
    Sink,
    Window,
)

from ..harness.stage import run
from ..harness.taker import Taker

NODES = 3
LOST = (Counter.LOST_FRAME_FIFO, Counter.LOST_NODE_FIFO, Counter.LOST_VECTOR_FIFO)
BOARDS = {
    "classic": {}, "narrow": {"beat_bytes": 2}, "extended": {"sinks": (Sink.EXTENDED,)},
    "half clocks": {"sinks": (Sink.EXTENDED,), "phases": 2},
}
# Clocks; events per clock, node and kind; outages per clock and node; grants and beats of the blocker per clock.
PHASES = {"calm": (400, 0.01, 0.005, 0.5, 0.9), "storm": (400, 0.4, 0.05, 0.3, 0.8), "stalled": (300, 0.1, 0.03, 0, 0),
          "silent": (200, 0.0, 0.0, 0.5, 0.9)}


class Bench:
    """Intake, merge, sinks and host around the accounts, and a tally of what they have done."""

    def __init__(self, dut, rng):
        self.dut, self.rng, self.extended = dut, rng, dut.extended
        self.now = rng.getrandbits(40)
        self.sums = [dict.fromkeys(Counter, 0) for _ in range(NODES)]
        self.refusals: list[list[tuple[int, int]]] = [[] for _ in range(NODES)]     # windows and causes
        self.outages = 0
        self.closed: list[int | None] = [None] * NODES      # the cause of an outage
        self.gates = 0                                      # ... of the clock before
        self.lags = [0] * NODES
        self.items = [0] * NODES                            # that have passed the tap
        self.shared = [0] * (NODES + 1)                     # windows by the number of their items
        self.window: list[int] = []                         # nodes whose items of a window are still to pass
        self.losses, self.census = Taker(dut.loss, rng), Taker(dut.census, rng)

    def put(self, target, values: list[int], counter: Counter | None = None) -> None:
        """A bit or a number of bits per node, which are counted."""
        for n, value in enumerate(values):
            if counter is not None:
                self.sums[n][counter] += value
        self.ctx.set(target, sum(value << n for n, value in enumerate(values)))

    def gate(self, rate: float, outages: float) -> None:
        """Every node's item is admitted or refused, in outages."""
        rng, merge = self.rng, self.dut.merge
        admitted, refused = [0] * NODES, [[0] * NODES for _ in LOST]
        for n in range(NODES):
            begins = self.closed[n] is None and rng.random() < outages
            if begins:
                self.closed[n] = rng.randrange(3)
                self.outages += 1
            if self.closed[n] is None:
                admitted[n] = int(rng.random() < rate)
            elif begins or rng.random() < rate:
                refused[self.closed[n]][n] = 1
                self.refusals[n].append((self.now + 1, self.closed[n]))     # the window of the next clock
            elif not rate or rng.random() < 0.05:
                self.closed[n] = None
        self.put(merge.admitted, admitted, Counter.ACCEPTED)
        for by, bits, counter in zip(merge.refused_by, refused, LOST, strict=True):
            self.put(by, bits, counter)
        self.ctx.set(merge.closed, self.gates)
        self.gates = sum(1 << n for n in range(NODES) if self.closed[n] is not None)

    def some(self, rate: float) -> list[int]:
        return [int(self.rng.random() < rate) for _ in range(NODES)]

    def others(self, rate: float) -> None:
        """What the window, the intake and the sinks tell."""
        dut, rng, ctx = self.dut, self.rng, self.ctx
        self.put(dut.merge.carried, self.some(rate), Counter.CARRIED)
        for n in range(NODES):
            if rng.random() < rate / 20:
                self.lags[n] = max(self.lags[n], rng.randrange(1, 60))
        for b, plane in enumerate(dut.merge.beyond):
            self.put(plane, [lag + 2 >> b & 1 for lag in self.lags])
        self.put(dut.sinks.delivered, self.some(rate), Counter.DELIVERED)
        if dut.geometry.guarded:
            rejected = self.some(rate)
            self.put(dut.intake.rejected, rejected, Counter.REJECTED)
            if dut.doubled:
                self.put(dut.intake.twice, [bit & rng.getrandbits(1) for bit in rejected], Counter.REJECTED)
        if self.extended:
            node = self.window[0] if self.window else None
            taps = node is not None and not ctx.get(dut.sinks.free) and rng.random() < 0.7
            ctx.set(dut.sinks.tap, taps)
            if taps:
                tapped = dut.sinks.tapped
                for name, value in (("node", node), ("begins", 1), ("last", len(self.window) == 1), ("time", self.now)):
                    ctx.set(tapped[name], value)
                self.items[node] += 1
                self.window.pop(0)
            elif not self.window and rng.random() < rate:
                self.window = rng.sample(range(NODES), rng.randint(1, NODES))
                self.shared[len(self.window)] += 1

    async def step(self, ctx, rate, outages, grant, take, **members):
        dut, self.ctx = self.dut, ctx
        for target, value in ((dut.time.window.now, self.now), (dut.time.now, self.now), *(
                (getattr(dut, name), value) for name, value in members.items())):
            ctx.set(target, value)
        self.gate(rate, outages)
        self.others(rate)
        self.losses.step(ctx, grant, take)
        self.census.step(ctx, grant, take)
        await ctx.tick()
        self.now += 1

    def judge_losses(self) -> None:
        """Each refusal is in one record, in order, with the windows and the causes of its record's ends."""
        at, records = [0] * NODES, 0
        for _, payload in self.losses.blocks:
            for k in range(0, len(payload), LOSS_RECORD.bytes):
                record = LOSS_RECORD.unpack(payload, k)
                n, lost = record["node"], record["lost"]
                part = self.refusals[n][at[n]:at[n] + lost]
                at[n], records = at[n] + lost, records + 1
                assert (record["first"], record["last"], len(part)) == (part[0][0], part[-1][0], lost)
                assert record["causes"] == sum(1 << cause for cause in {cause for _, cause in part})
        assert at == [len(refusals) for refusals in self.refusals]
        assert 0 < records <= self.outages

    def judge_census(self, payload: bytes, flags: CensusFlag, board: dict[str, int], sums: list[dict]) -> None:
        head = CENSUS_BOARD.unpack(payload)
        assert {name: head[name] for name in board} == board
        assert head["flags"] == flags
        for n in range(NODES):
            row = CENSUS_NODE.unpack(payload, CENSUS_BOARD.bytes + n * CENSUS_NODE.bytes)
            assert row == {c.name.lower(): sums[n][c] for c in Counter}, f"node {n}"


@pytest.mark.parametrize("board", BOARDS)
def test_a_run_is_told_as_it_was(board):
    rng = random.Random(board)
    geometry = Geometry(nodes=NODES, vector_depth=256, **BOARDS[board])
    dut = Accounts(geometry)
    bench = Bench(dut, rng)
    discarded = 0 if geometry.narrow else 345
    fixed = {"frames": 987654, "frame_level": 21, "vector_level": 13}
    told = {**fixed, "status": 5, "discarded": discarded}
    idle, silent = (0, 0, 1, 1), (0, 0, 0.5, 0.9)

    async def word(ctx, node, counter):
        ctx.set(dut.settings.address, node * 8 + counter)
        ctx.set(dut.settings.reading, 1)
        for _ in range(8):
            await bench.step(ctx, *idle)
        return ctx.get(dut.settings.counter)

    async def reduced(ctx, address):
        ctx.set(dut.settings.reduction_address, address)
        for _ in range(6):
            await bench.step(ctx, *idle)
        return ctx.get(dut.settings.reduction_word)

    async def play(ctx):
        settings = dut.settings
        ctx.set(dut.merge.level, fixed["vector_level"])
        for name, value in (("frames", 987654), ("frame_level", 21), ("discarded", discarded)):
            ctx.set(getattr(dut.sinks, name), value)
        ctx.set(settings.window, Window.CLOCK)
        for field, value in ((settings.status, 5), (settings.follow, 1), (settings.missing, 1), (settings.trigger, 2),
                             (dut.sinks.horizon, 2**32 - 1)):
            ctx.set(field, value)
        while ctx.get(settings.clearing) or bench.now % 1024:
            await bench.step(ctx, *idle, clear=1)
        ctx.set(dut.time.running, 1)
        ctx.set(settings.enable, 1)
        ctx.set(dut.time.window.enable, 1)
        for _ in range(300):
            await bench.step(ctx, *silent, clear=0)
        flags = CensusFlag.FOLLOWS | CensusFlag.STRAYED | CensusFlag.TRIGGERED
        zero = [dict.fromkeys(Counter, 0) for _ in range(NODES)]
        [(_, first)] = bench.census.blocks
        bench.judge_census(first, CensusFlag.START | flags, told, zero)

        ctx.set(dut.merge.pending, 1)
        for name in (*PHASES, "storm", "calm"):
            long, *rates = PHASES[name]
            for _ in range(long):
                await bench.step(ctx, *rates)
                assert not ctx.get(dut.rest.quiet)
        # The last ones of the run; something is still on its way for a while.
        ctx.set(settings.enable, 0)
        ctx.set(dut.time.window.enable, 0)
        for k in range(700):
            ctx.set(dut.merge.pending, k < 100)
            ctx.set(dut.sinks.waiting, k < 200)
            ctx.set(dut.sinks.counting, k < 250)
            await bench.step(ctx, *silent, busy=k < 50)
            assert k > 100 or not ctx.get(dut.ending)
            assert k > 200 or len(bench.census.blocks) == 1, "a stop is reported, and something waits"
        for n in range(NODES):
            bench.sums[n][Counter.LAG_MAX] = bench.lags[n]
        assert ctx.get(dut.ending)
        [_, (_, last)] = bench.census.blocks
        bench.judge_census(last, CensusFlag.STOP | flags, told, bench.sums)
        bench.judge_losses()
        # Quiet only if no other board's time is followed.
        assert not ctx.get(dut.rest.quiet)
        ctx.set(settings.follow, 0)
        await bench.step(ctx, *silent)
        assert ctx.get(dut.rest.quiet)
        horizon = ctx.get(dut.rest.horizon)
        ctx.set(dut.sinks.horizon, 99)
        await ctx.tick()
        assert horizon > 99 == ctx.get(dut.rest.horizon)

        # The host's own copy.
        ctx.set(settings.latch, 1)
        await bench.step(ctx, *silent)
        ctx.set(settings.latch, 0)
        for _ in range(4000):
            await bench.step(ctx, *silent)
            if ctx.get(settings.latched):
                break
        assert ctx.get(settings.latched)
        for n in range(NODES):
            for counter in COUNTERS:
                assert await word(ctx, n, counter) == bench.sums[n][counter], f"{counter.name} of node {n}"
        if bench.extended:
            for n in range(NODES):
                bins = [await reduced(ctx, 64 * n + k) for k in range(64)]
                assert sum(bins) == max(0, bench.items[n] - 1), "gaps between items"
            assert [await reduced(ctx, REDUCTION_SHARED + k) for k in range(NODES + 1)] == bench.shared
            assert await reduced(ctx, REDUCTION_VECTOR_HIGH) == fixed["vector_level"]

    run(dut, play, spine=ClockDomain("spine"))
