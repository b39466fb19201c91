"""Store: keeps every beat in order, a beat a clock, says how many there are and were; full, it waits."""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.stream.store import SEGMENT, Store, segments

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, pack
from ..harness.rejects import rejects
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

#: Clocks that a beat takes through an empty FIFO.
FIFO_CLOCKS = 4
#: Clocks until a place that has fallen free at one end of a FIFO is one at the other.
PLACE_CLOCKS = 2


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def stores(dut):
    stage, choose, depth = Stage(dut), rng(), CASE["depth"]
    await stage.start(i_valid=0, i_payload=0, o_ready=0, clear=0)
    inside, high, level_before = deque(), 0, 0
    offered, refused, full, waited, cleared = None, 0, 0, 0, 0
    # Given and taken a clock; full speed both ways, filling up, running empty, and in between.
    phases = [(0.7, 0.7), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.3, 0.9), (0.9, 0.3), (1.0, 0.02), (0.05, 1.0)]
    rates, until, steady = (0.5, 0.5), 0, 0
    for clock in range(CASE["clocks"]):
        if clock == until:
            rates, until = choose.choice(phases), clock + choose.choice([depth // 2, depth, 2 * depth]) + 20
            steady = 0
        # What is offered stays until it is taken.
        if offered is None and choose.random() < rates[0]:
            offered = pack(beat_layout(), data=choose.getrandbits(128), last=choose.getrandbits(1))
        ready, clear = choose.random() < rates[1], choose.random() < 0.001
        shown = choose.getrandbits(129) if offered is None else offered
        await stage.step(i_valid=int(offered is not None), i_payload=shown, o_ready=int(ready), clear=int(clear))
        level, takes, gives = stage.get("level"), stage.get("i_ready"), stage.get("o_valid")
        assert level == len(inside), "the level is exact"
        assert stage.get("high") in (high, level_before), "the high-water mark follows in a clock"
        assert stage.get("high") >= level_before
        refused = 0 if takes or level == depth else refused + 1
        assert refused <= PLACE_CLOCKS * len(segments(depth)), "takes unless it is full"
        assert not takes or level < depth
        full += level == depth
        waited = 0 if gives or not inside else waited + 1
        assert waited <= FIFO_CLOCKS * len(segments(depth)), "keeps a beat back"
        assert not gives or inside, "gives a beat that it has not got"
        if gives:
            assert stage.get("o_payload") == inside[0], "another beat"
        # Both sides at full speed, with some beats inside: a beat in and out every clock.
        steady = steady + 1 if rates == (1.0, 1.0) else 0
        if steady > 8 * len(segments(depth)):
            assert takes, "slower than a beat a clock"
            assert gives, "slower than a beat a clock"
        high = level if clear else max(high, level)
        cleared += clear
        if gives and ready:
            inside.popleft()
        if takes and offered is not None:
            inside.append(offered)
            offered = None
        level_before = level
        await stage.clock()
    assert full > 20
    assert cleared
    # All of it leaves, and nothing more.
    stage.put(i_valid=0, o_ready=1, clear=0)
    for _ in range(len(inside) + 8 * len(segments(depth))):
        await stage.settle()
        if stage.get("o_valid"):
            assert stage.get("o_payload") == inside.popleft()
        await stage.clock()
    await stage.settle()
    assert not inside
    assert not stage.get("level")


@functools.cache
def simulator(depth):
    return component(Store(depth), f"store{depth}")


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("depth", [16, SEGMENT + 64, pytest.param(3 * SEGMENT, marks=pytest.mark.slow)])
def test_stores(depth, seed):
    run(simulator(depth), __name__, "stores", seed, depth=depth, clocks=max(8000, 6 * depth))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(10, 1000))
def test_many_seeds(seed):
    depth = (16, 512, SEGMENT + 64)[seed % 3]
    run(simulator(depth), __name__, "stores", seed, depth=depth, clocks=max(60_000, 20 * depth))


def test_a_store_is_made_of_as_few_memories_as_can_be():
    assert segments(1024) == [1024]
    assert segments(SEGMENT) == [SEGMENT]
    assert segments(2 * SEGMENT + 1024) == [SEGMENT, SEGMENT, 1024]


def test_a_wrong_depth_is_named():
    rejects(lambda: Store(SEGMENT + 3), 3)


def test_reset():
    same_as_fresh(lambda: Store(16), episodes=10)
