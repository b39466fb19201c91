"""Frame FIFO: frames whole and in order, and how many share the upper half of their time."""

import functools
from collections import deque

import cocotb
import pytest
from hypermon.hdl.layout import Geometry
from hypermon.hdl.sinks.classic.frame_builder import frame_layout
from hypermon.hdl.sinks.classic.frame_fifo import FrameFifo

from ...benches.case import CASE, rng
from ...benches.cocotb_stage import Stage, fields, pack
from ...harness.runner import component, run, seeds

SMALL = {"node_depth": 4, "vector_depth": 16, "frame_depth": 16}
BOARDS = {"wide": Geometry(nodes=2, **SMALL), "narrow": Geometry(nodes=10, **SMALL, beat_bytes=2)}
#: Bits of a frame that mean something with 10 nodes, which is what narrow beats keep.
KEPT = (1 << 8) - 1 | (1 << 32) - 1 << 32 | (1 << 10) - 1 << 64 | (1 << 32) - 1 << 96


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def holds(dut):
    stage, choose = Stage(dut), rng()
    geometry = BOARDS[CASE["board"]]
    layout, kept = frame_layout(geometry), KEPT if geometry.narrow else -1
    apart = 4 if geometry.narrow else 1         # clocks from frame to frame at least
    await stage.start(i_valid=0, i_payload=0, o_ready=0)
    inside, high, number = deque(), 5, 0
    last_push = last_pop = last_wrap = -100
    budget = 0          # frames that may still be taken in a row
    runs = splits = 0
    for clock in range(6000):
        push_rate, pop_rate = [(0.7, 0.2), (0.2, 0.7), (0.6, 0.6), (0.1, 0.1)][clock // 300 % 4]
        calm = clock - max(last_push, last_pop) > 4
        run, split = stage.get("run"), stage.get("split")
        head = sum(1 for h, _ in inside if h == inside[0][0]) if inside else 0
        if clock - last_pop > 4:
            assert run <= head, f"{run} said to share a half, {head} do"
        if calm:
            assert run == head
            assert split == (len({h for h, _ in inside}) > 1)
            splits += split
        # A second upper half waits for the first to be gone.
        may_wrap = not split and clock - last_wrap > 4
        wrap = may_wrap and choose.random() < 0.1
        push = choose.random() < push_rate and len(inside) < geometry.frame_depth - 1 and clock - last_push >= apart
        frame = number << 96 | choose.getrandbits(96)
        if clock - last_pop > 4:
            budget = run
        pop = budget > 0 and choose.random() < pop_rate
        await stage.step(
            i_valid=int(push), o_ready=int(pop),
            i_payload=pack(layout, frame=frame, high=high + wrap, wrap=int(wrap)) if push else choose.getrandbits(64))
        assert not push or stage.get("i_ready")
        if pop and stage.get("o_valid"):
            out = fields(layout, stage.get("o_payload"))
            high_then, frame_then = inside.popleft()
            assert (out["high"], out["frame"]) == (high_then, frame_then & kept)
            last_pop, budget = clock, budget - 1
            runs += 1
        if push:
            high += wrap
            inside.append((high, frame))
            number, last_push = number + 1, clock
            if wrap:
                last_wrap = clock
        assert len({h for h, _ in inside}) <= 2
        await stage.clock()
    assert runs > 300
    assert splits > 20


@functools.cache
def simulator(board):
    return component(FrameFifo(BOARDS[board]))


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("seed", seeds(3))
def test_holds(seed, board):
    run(simulator(board), __name__, "holds", seed, board=board)
