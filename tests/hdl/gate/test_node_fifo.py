"""Node FIFOs: order, exact depth, exact full."""

import functools
import random
from collections import deque

import cocotb
import pytest
from hypermon.hdl.gate.node_fifo import NodeFifos

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness.rejects import rejects
from ..harness.runner import component, run, seeds
from ..harness.stage import run as run_stage

NODES = 3


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def holds(dut):
    stage, choose = Stage(dut), rng()
    depth, bits = CASE["depth"], CASE["bits"]
    value = (1 << bits) - 1
    await stage.start(admit=0, data=0, pop=0)
    queues = [deque() for _ in range(NODES)]  # clock of admission, nibble
    popped = [None] * NODES
    seen_full = seen_empty = 0
    for _ in range(3000):
        phase = stage.now // 300 % 3  # fill, drain, both
        full, half, nibble = stage.get("full"), stage.get("half"), stage.get("nibble")
        admit, pop, data = 0, 0, choose.getrandbits(bits * NODES)
        for node, queue in enumerate(queues):
            bit = 1 << node
            assert bool(full & bit) == (len(queue) == depth), f"node {node}: {len(queue)} inside"
            standing = sum(at < stage.now - 1 for at, _ in queue)
            assert bool(half & bit) == (standing <= depth // 2), f"node {node}: {standing} inside"
            if popped[node] is not None:
                assert nibble >> bits * node & value == popped[node]
            popped[node] = None
            seen_full += len(queue) == depth
            seen_empty += not queue
            if queue and queue[0][0] <= stage.now - 2 and choose.random() < (0.1, 0.9, 0.6)[phase]:
                pop |= bit
            if len(queue) < depth and choose.random() < (0.9, 0.1, 0.6)[phase]:
                admit |= bit
        stage.put(admit=admit, pop=pop, data=data)
        for node, queue in enumerate(queues):
            if pop >> node & 1:
                popped[node] = queue.popleft()[1]
            if admit >> node & 1:
                queue.append((stage.now, data >> bits * node & value))
        await stage.clock()
    assert seen_full > 50
    assert seen_empty > 50


@functools.cache
def simulator(depth, bits):
    return component(NodeFifos(NODES, depth, port_bits=bits))


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(("depth", "bits"), [(4, 4), (64, 4), (16, 8)])
def test_holds(depth, bits, seed):
    run(simulator(depth, bits), __name__, "holds", seed, depth=depth, bits=bits)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("depth", [16, 64])
def test_misfit(depth, bits):
    """An item does not fit unless two places stay free behind it; exact for bytes, and of nibbles to one."""
    rng = random.Random(depth)
    dut = NodeFifos(1, depth, framed=True, port_bits=bits)
    seen = set()

    async def bench(ctx):
        level = 0
        for _ in range(600):
            up = rng.randrange(depth - level + 1)
            for admit, pop, count in ((1, 0, up), (0, 1, rng.randrange(level + up + 1))):
                level += count if admit else -count
                for _ in range(count):
                    ctx.set(dut.admit, admit)
                    ctx.set(dut.pop, pop)
                    ctx.set(dut.fresh, 1)
                    await ctx.tick()
                ctx.set(dut.admit, 0)
                ctx.set(dut.pop, 0)
                await ctx.tick().repeat(3)
            need = rng.randrange(16)
            for b, plane in enumerate(dut.need):
                ctx.set(plane, need >> b & 1)
            await ctx.tick()
            left = depth - level - 1 - need * (8 // bits)
            says = bool(ctx.get(dut.misfit))
            if not need or left >= 2 + (bits == 4):
                assert not says, f"{level} inside, {need} needed"
            elif left < 2:
                assert says, f"{level} inside, {need} needed"
            seen.add(says)

    run_stage(dut, bench, clocks=200_000)
    assert seen == {False, True}


def test_a_cut_item_gives_its_mark_until_the_next_one():
    """Pops beyond the end of an item that was cut short repeat its last nibble, and take none of the next item."""
    rng = random.Random(1)
    dut = NodeFifos(1, 32, framed=True)
    cut_short = 0

    async def bench(ctx):
        nonlocal cut_short
        ctx.set(dut.items, 1)
        for _ in range(100):
            items = []
            for _ in range(3):
                wanted = rng.choice((1, 3, 8))
                length = wanted if rng.random() < 0.5 else rng.randrange(1, wanted + 1)
                items.append(([rng.randrange(16) for _ in range(length)], wanted))
            ctx.set(dut.admit, 1)
            for nibbles, wanted in items:
                for k, nibble in enumerate(nibbles):
                    ctx.set(dut.data, nibble)
                    ctx.set(dut.cut, k == len(nibbles) - 1 and len(nibbles) < wanted)
                    await ctx.tick()
            ctx.set(dut.admit, 0)
            await ctx.tick().repeat(3)
            for nibbles, wanted in items:
                cut_short += len(nibbles) < wanted
                for k in range(wanted):
                    ctx.set(dut.pop, 1)
                    ctx.set(dut.fresh, k == 0)
                    await ctx.tick()
                    ctx.set(dut.pop, 0)
                    assert ctx.get(dut.nibble) == nibbles[min(k, len(nibbles) - 1)]
                    assert ctx.get(dut.mark) == (len(nibbles) < wanted and k >= len(nibbles) - 1)
                    for _ in range(rng.choice((0, 0, 2))):
                        await ctx.tick()
            assert sum(ctx.get(plane) for plane in dut.level) == 0

    run_stage(dut, bench, clocks=20_000)
    assert cut_short > 50


@pytest.mark.parametrize("depth", [0, 2, 5, 63])
def test_a_wrong_depth_is_named(depth):
    rejects(lambda: NodeFifos(NODES, depth), depth)
