"""FRAMES blocks: every frame once and in order, in blocks that begin when they should."""

import functools
from collections import deque
from itertools import groupby

import cocotb
import pytest
from hypermon.hdl.layout import Geometry, frame_bytes
from hypermon.hdl.sinks.classic.frame_builder import frame_layout
from hypermon.hdl.sinks.classic.frames_source import BLOCK_FRAMES_MAX, FULL_BLOCK, FrameSource

from ...benches.case import CASE, rng
from ...benches.cocotb_stage import Stage, pack
from ...benches.source import Link
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds

#: Clocks that a frame takes from its entry to the output of its FIFO, and until ``run`` counts it.
THROUGH, COUNTED = 4, 2
#: Clocks from a reason to begin a block to its request.
PROMPT = 8
NEVER = 0xFFFFFFFF


class Frames:
    """The frame FIFO and the port behind it, by their contracts."""

    def __init__(self, geometry: Geometry):
        self.geometry, self.layout = geometry, frame_layout(geometry)
        self.inside: deque[tuple[int, int, int]] = deque()      # clock of entry, upper half, frame
        self.levels = deque([0] * 2, 2)
        self.clock = 0
        self.left = -100

    def heads(self, before: int) -> int:
        """Frames at the head with one upper half that had entered by that clock."""
        at_head = next(groupby(self.inside, lambda frame: frame[1]), (0, ()))[1]
        return sum(1 for clock, _, _ in at_head if clock <= before)

    def shown(self) -> dict[str, int]:
        """What the stage sees of them in this clock."""
        known = [frame for frame in self.inside if frame[0] <= self.clock - COUNTED]
        there = self.inside and self.inside[0][0] <= self.clock - THROUGH
        _, high, frame = self.inside[0] if there else (0, 0x5A, 0x5A)
        return {
            "i_valid": int(bool(there)),
            "i_payload": pack(self.layout, frame=frame, high=high, wrap=0),
            "level": max(self.levels), "run": self.heads(self.clock - COUNTED),
            "split": int(len({high for _, high, _ in known}) > 1),
        }

    def pass_clock(self, taken: bool) -> None:
        if taken:
            self.inside.popleft()
            self.left = self.clock
        self.levels.append(len(self.inside))
        self.clock += 1


# Clocks; frames a clock; how ready the link is to begin and to take.
PHASES = {
    "lone": (1500, 0.004, 0.5, 0.8),
    "some": (900, 0.05, 0.1, 0.5),
    "flood": (900, 0.6, 0.05, 0.4),
    "stalled": (600, 0.2, 0.0, 0.0),
    "fast": (600, 0.9, 1.0, 1.0),
    "silent": (400, 0.0, 0.5, 0.8),
}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def sends(dut):
    stage, choose = Stage(dut), rng()
    geometry = Geometry(
        nodes=CASE["nodes"], node_depth=4, vector_depth=16, frame_depth=CASE["depth"], beat_bytes=CASE["wide"])
    size, depth = frame_bytes(geometry.nodes), geometry.frame_depth
    enough, most = min(FULL_BLOCK, depth // 4), min(BLOCK_FRAMES_MAX, depth)
    frames, link = Frames(geometry), Link(stage, choose, CASE["wide"])
    now, flush, enable, port = choose.getrandbits(32), 50, 1, 1
    high, number = choose.getrandbits(32), 0
    await stage.start(**frames.shown(), streaming=0, now=now, flush=flush, source_grant=0, source_beats_ready=0)
    written, sent = [], []              # upper half and frame
    waiting: int | None = None          # window in which the frames inside began to wait
    noticed = 0                         # window two clocks later
    waits = 0                           # clocks since then
    reasons = 0                         # clocks for which there has been a reason to begin
    owed, requested = 0, 0
    calm = 0                            # clocks for which nothing may come after a skip
    streaming_before, reason_before = 0, deque([True] * PROMPT, PROMPT)
    lengths: list[int] = []
    totals = {"flushed": 0, "full": 0, "split": 0, "switched": 0, "held": 0, "jumps": 0, "odd": 0}

    async def step(rate: float, patience: float, ready: float, span: int, may_switch: bool) -> None:
        nonlocal now, enable, port, high, number, waiting, noticed, waits, reasons, owed, requested, streaming_before
        if len(frames.inside) < depth and choose.random() < rate:
            # A second upper half waits for the first to be gone.
            halves = len({h for _, h, _ in frames.inside})
            if halves < 2 and frames.clock - frames.left > 4 and choose.random() < 0.08:
                high += 1
            frame = choose.getrandbits(8 * size - 32) << 16 & ~0xFFFF | number % 65536
            number += 1
            frames.inside.append((frames.clock, high, frame))
            written.append((high, frame))
        if may_switch and choose.random() < 0.005:
            enable ^= 1
            totals["switched"] += 1
        shown = frames.shown()
        streaming = int(port and enable)
        stage.put(**{**shown, "i_valid": int(port and shown["i_valid"])}, streaming=streaming, now=now & NEVER)
        await stage.settle()

        # Why a block may begin, and by when it must.
        request, hold, level = stage.get("source_request"), stage.get("hold"), shown["level"]
        if level and streaming and not hold:
            waiting, waits = (now, 0) if waiting is None else (waiting, waits + 1)
        else:
            waiting, waits = None, 0
        noticed = now if waits <= 2 else noticed
        late = waiting is not None and now - waiting >= flush
        reason = level >= enough or bool(shown["split"]) or (late and now - noticed >= flush)
        reasons = reasons + 1 if reason and streaming and not hold and shown["i_valid"] else 0
        assert reasons <= PROMPT + 2, f"no block: {shown}, waited since {waiting}, now {now}"
        if request and not requested:
            assert streaming_before, "a block is asked for that the stream will not drain"
            assert any(reason_before), f"a block is asked for with {level} frames after {waits} clocks"
            totals["flushed"] += not shown["split"] and level < enough
            totals["split"] += shown["split"]
        horizon = stage.get("horizon")
        if waiting is None:
            assert horizon == NEVER or waits == 0
        elif waits > 6 and calm < 12:
            left = flush - (now - waiting)
            assert max(0, left) <= horizon <= max(0, left + 6), f"horizon {horizon}, {left} windows left"
        assert hold or not (request or owed), "not held in a block"
        reason_before.append(reason or late)
        requested, streaming_before = request, streaming

        link.offer(patience, ready)
        await stage.settle()
        done = link.take()
        if stage.get("source_grant"):
            block = link.blocks[-1]
            count, odd = divmod(block.length, size)
            assert odd == 0
            assert min(most, frames.heads(frames.clock - PROMPT)) <= count <= min(most, frames.heads(frames.clock))
            _, first_high, first = frames.inside[0]
            assert block.time == first_high << 32 | first >> 8 * size - 32
            owed = count
            lengths.append(count)
            totals["full"] += level == depth
            totals["odd"] += size % 16 != 0 and count % 2
            totals["held"] += not enable
        taken = bool(stage.get("i_valid") and stage.get("i_ready"))
        if taken:
            assert owed, "a frame has been taken that is in no block"
            owed -= 1
            if sent and sent[-1][0] != frames.inside[0][1]:
                assert sum(lengths) - owed - 1 == sum(lengths[:-1]), "two upper halves in one block"
            sent.append(frames.inside[0][1:])
        if done:
            assert owed == 0
            payload = done.payload
            told = [int.from_bytes(payload[at:at + size], "little") for at in range(0, len(payload), size)]
            assert told == [frame for _, frame in sent[len(sent) - len(told):]]
            assert {h for h, _ in sent[len(sent) - len(told):]} == {done.time >> 32}
            link.blocks.clear()
        if not hold:
            port = enable
        frames.pass_clock(taken)
        await stage.clock()
        now += choose.random() * span < 1

    for _ in range(2):
        order = list(PHASES)
        choose.shuffle(order)
        for name in order:
            clocks, rate, patience, ready = PHASES[name]
            span = choose.choice([1, 1, 3, 20])
            while frames.inside and name == "lone":
                enable = 1
                await step(0, 1, 1, 1, False)
            if not frames.inside:
                flush = choose.choice([50, 300] if name == "lone" else [0, 1, 7, 50, 300])
                stage.put(flush=flush)
                for _ in range(8):
                    await step(0, 0, 0, 1, False)
            for _ in range(clocks):
                # Idle time is skipped, up to what the stage allows.
                horizon, calm = stage.get("horizon"), calm - 1
                idle = frames.clock - frames.left > 20 and calm < 0 and not requested
                if idle and not frames.inside and choose.random() < 0.02:
                    now, calm = now + choose.randint(1, 2**31 - 1), 16
                elif idle and waits > 16 and NEVER != horizon > 9 and choose.random() < 0.2:
                    now, calm = now + choose.randint(1, horizon - 8), 16
                    totals["jumps"] += 1
                await step(rate if calm < 0 else 0, patience, ready, span, name != "stalled")
            if name == "stalled" and enable:
                while len(frames.inside) < depth:
                    await step(0.9, 0, 0, 1, False)
                for _ in range(20):
                    await step(0.9, 0, 0, 1, False)
                assert not stage.get("i_ready"), "a full FIFO waits for the link"
                assert requested or link.busy
    enable = 1
    for _ in range(6 * depth + 700):
        await step(0, 1, 1, 1, False)
    assert sent == written, f"{len(written)} frames, {len(sent)} sent"
    assert not stage.get("hold")
    assert stage.get("horizon") == NEVER
    cocotb.log.info("%d frames in %d blocks, the longest of %d; %s", len(sent), len(lengths), max(lengths), totals)
    assert all(totals[name] for name in ("flushed", "full", "split", "switched", "jumps")), totals
    assert totals["odd"] or size % 16 == 0


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def longest(dut):
    """More frames than one block may hold: the FIFO is full, and the link comes late."""
    stage, choose = Stage(dut), rng()
    geometry = Geometry(nodes=CASE["nodes"], frame_depth=CASE["depth"], beat_bytes=CASE["wide"])
    size = frame_bytes(geometry.nodes)
    layout, count = frame_layout(geometry), geometry.frame_depth
    assert count > BLOCK_FRAMES_MAX
    link, at, told = Link(stage, choose, CASE["wide"]), 0, []
    await stage.start(i_valid=1, i_payload=0, level=count, run=count, split=0, streaming=1, now=0, flush=1000,
                      source_grant=0, source_beats_ready=0)
    while len(told) < count:
        left = count - at
        stage.put(i_valid=int(left > 0), level=left, run=left,
                  i_payload=pack(layout, frame=at | 7 << 8 * size - 32, high=0, wrap=0), now=stage.now)
        await stage.settle()
        link.offer(0.1, 1.0)
        await stage.settle()
        done = link.take()
        if done:
            assert done.length == size * min(BLOCK_FRAMES_MAX, count - len(told))
            assert done.length + 48 <= 65536
            told += [int.from_bytes(done.payload[k:k + size], "little") & 0xFFFF for k in range(0, done.length, size)]
        at += stage.get("i_valid") and stage.get("i_ready")
        await stage.clock()
    assert told == list(range(count))


@functools.cache
def simulator(nodes, depth, wide=16):
    return component(FrameSource(
        Geometry(nodes=nodes, node_depth=4, vector_depth=16, frame_depth=depth, beat_bytes=wide)))


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize(("nodes", "depth", "wide"), [
    (16, 16, 16), (17, 16, 16), (16, 256, 16), (16, 16, 4), (17, 16, 4)])
def test_sends(nodes, depth, wide, seed):
    run(simulator(nodes, depth, wide), __name__, "sends", seed, nodes=nodes, depth=depth, wide=wide)


@pytest.mark.parametrize("nodes", [16, 17])
def test_longest_block(nodes):
    run(simulator(nodes, 4096), __name__, "longest", 0, nodes=nodes, depth=4096, wide=16)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(30, 1000))
def test_many_seeds(seed):
    nodes, depth = ((5, 16), (16, 16), (17, 32), (32, 256))[seed % 4]
    wide = (16, 4)[seed // 4 % 2]
    run(simulator(nodes, depth, wide), __name__, "sends", seed, nodes=nodes, depth=depth, wide=wide)


def test_reset():
    """Frames of a beat and a half, in blocks of up to three."""
    def blocker():
        return lambda traffic: {"source.grant": traffic.get("source.request") & (traffic.rng.random() < 0.4)}

    same_as_fresh(lambda: FrameSource(Geometry(nodes=20)), player=blocker, settings={
        "run": lambda rng: rng.randrange(1, 4), "level": lambda rng: rng.randrange(1, 4),
        "flush": lambda rng: rng.getrandbits(4)})
