"""Stream FIFOs in operation: random stalls on both sides, full speed, full depth."""

import functools

import cocotb
import pytest
from hypermon.hdl.lib.fifo import SmallFifo, StreamFifo

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness import runner
from ..harness.stage import keeps_order, refuses, run

KINDS = {"small": SmallFifo, "stream": StreamFifo, "skid": functools.partial(StreamFifo, skid=True)}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@each_kind
@pytest.mark.parametrize("seed", range(4))
def test_keeps_order_under_stalls(kind, seed):
    keeps_order(kind(16, 16), seed)


@each_kind
def test_holds_its_depth_and_moves_one_a_clock(kind):
    depth = 16
    fifo = kind(16, depth)

    async def bench(ctx):
        ctx.set(fifo.i.valid, 1)
        for n in range(depth):
            assert ctx.get(fifo.i.ready), n
            ctx.set(fifo.i.p, n)
            await ctx.tick()
        assert not ctx.get(fifo.i.ready)
        assert ctx.get(fifo.level) == depth
        ctx.set(fifo.i.valid, 0)
        await ctx.tick().repeat(8)
        ctx.set(fifo.o.ready, 1)
        # With room for one more, it takes and gives one in every clock.
        await ctx.tick().repeat(3)
        ctx.set(fifo.i.valid, 1)
        for n in range(3, 200):
            assert ctx.get(fifo.o.valid)
            assert ctx.get(fifo.i.ready)
            assert ctx.get(fifo.o.p) == n
            ctx.set(fifo.i.p, n + depth - 3)
            await ctx.tick()

    run(fifo, bench)


@pytest.mark.parametrize("kind", [SmallFifo, StreamFifo])
@pytest.mark.parametrize("depth", [0, 2, 12])
def test_bad_depth_is_named(kind, depth):
    assert refuses(kind, 8, depth).endswith(f" {depth}")


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def passes(dut):
    """Items in order under stalls, and at the output ``latency`` clocks after they entered an empty FIFO."""
    stage, choose = Stage(dut), rng()
    await stage.start(i_valid=0, i_payload=0, o_ready=0)
    inside: list[tuple[int, int]] = []      # item, clock at which it may be seen
    offered, came = None, 0
    for phase in range(60):
        fast_in, fast_out = choose.choice([0.1, 0.5, 1.0]), choose.choice([0.0, 0.2, 0.9, 1.0])
        for _ in range(40 if phase % 2 else 10):
            if offered is None and choose.random() < fast_in:
                offered = choose.getrandbits(20)
            await stage.step(i_valid=int(offered is not None), i_payload=offered or 0,
                             o_ready=int(choose.random() < fast_out))
            assert stage.get("o_valid") == bool(inside and stage.now >= inside[0][1])
            assert len(inside) <= stage.get("level") <= len(inside) + 1
            if stage.get("o_valid") and stage.get("o_ready"):
                assert stage.get("o_payload") == inside.pop(0)[0]
                came += 1
                if inside:
                    # The next one stands there at once, or when it has come through.
                    inside[0] = inside[0][0], max(inside[0][1], stage.now + 1)
            if offered is not None and stage.get("i_ready"):
                inside.append((offered, stage.now + CASE["latency"]))
                offered = None
            await stage.clock()
    assert came > 300


@functools.cache
def simulator(kind):
    return runner.component(kind(20, 16, "ice40"), f"{kind.__name__.lower()}_ice40",
                            runner.CELLS / "sb_ram40_4k.v")


@pytest.mark.parametrize("seed", runner.seeds(2))
@pytest.mark.parametrize(("kind", "latency"), [(SmallFifo, 1), (StreamFifo, 2)])
def test_on_an_ice40(kind, latency, seed):
    runner.run(simulator(kind), __name__, "passes", seed, latency=latency)
