"""Node FIFOs: order, exact depth, exact full."""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.node_fifo import NodeFifos

from .benches.case import CASE, rng
from .benches.stage import Stage
from .rejects import rejects
from .runner import component, run, seeds

NODES = 3


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def holds(dut):
    stage, choose = Stage(dut), rng()
    depth = CASE["depth"]
    await stage.start(admit=0, data=0, pop=0)
    queues = [deque() for _ in range(NODES)]  # clock of admission, nibble
    popped = [None] * NODES
    seen_full = seen_empty = 0
    for _ in range(3000):
        phase = stage.now // 300 % 3  # fill, drain, both
        full, half, nibble = stage.get("full"), stage.get("half"), stage.get("nibble")
        admit, pop, data = 0, 0, choose.getrandbits(4 * NODES)
        for node, queue in enumerate(queues):
            bit = 1 << node
            assert bool(full & bit) == (len(queue) == depth), f"node {node}: {len(queue)} inside"
            standing = sum(at < stage.now - 1 for at, _ in queue)
            assert bool(half & bit) == (standing <= depth // 2), f"node {node}: {standing} inside"
            if popped[node] is not None:
                assert nibble >> 4 * node & 15 == popped[node]
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
                queue.append((stage.now, data >> 4 * node & 15))
        await stage.clock()
    assert seen_full > 50
    assert seen_empty > 50


@functools.cache
def simulator(depth):
    return component(NodeFifos(NODES, depth))


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("depth", [4, 64])
def test_holds(depth, seed):
    run(simulator(depth), __name__, "holds", seed, depth=depth)


@pytest.mark.parametrize("depth", [0, 2, 5, 63])
def test_a_wrong_depth_is_named(depth):
    rejects(lambda: NodeFifos(NODES, depth), depth)
