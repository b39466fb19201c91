"""Blocker: whole blocks with a right sum, whatever the sources, the link and resets do."""

import functools
import random
import zlib
from dataclasses import dataclass, replace

import cocotb
import pytest
from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_TRAILER,
    FORMAT_VERSION,
    LATENCY,
    BlockType,
    Geometry,
    TrailerFlag,
    padded,
)
from hypermon.hdl.stream.blocker import Blocker, beat_layout

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, fields
from ..harness import runner
from ..harness.resets import same_as_fresh
from ..harness.stage import run

GEOMETRY = Geometry(nodes=4)
TYPES = (BlockType.LOSS, BlockType.CENSUS, BlockType.FRAMES)
#: Clocks of a reset.
RESET = 70
#: Beats of payload of a block after which the blocker's FIFO has no room for another header.
FILLING = 6


@pytest.mark.parametrize("wide", [16, 4, 2])
@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_makes_whole_blocks(seed, resets, wide):
    rng = random.Random(seed)
    geometry = Geometry(nodes=4, beat_bytes=wide)
    dut = Blocker(geometry, (BlockType.LOSS, BlockType.FRAMES))
    payloads = [[rng.randbytes(8 * rng.randint(2, 21)) for _ in range(8)] for _ in range(2)]
    times = [[rng.getrandbits(64) for _ in range(8)] for _ in range(2)]
    blocks, begun = [], []
    sent = {0: 0, 1: 0, "done": 0}
    state = {"clear": False}
    fast = rng.choice((0.3, 0.95))

    def source(k):
        async def bench(ctx):
            port = getattr(dut, f"source{k}")
            for payload, time in zip(payloads[k], times[k], strict=True):
                for _ in range(rng.choice((0, 10, 60))):
                    await ctx.tick()
                while state["clear"]:
                    await ctx.tick()
                ctx.set(port.request, 1)
                ctx.set(port.length, len(payload))
                ctx.set(port.time, time)
                granted = False
                while not granted and not state["clear"]:
                    _, _, granted = await ctx.tick().sample(port.grant)
                ctx.set(port.request, 0)
                beats = payload + bytes(padded(len(payload)) - len(payload))
                at = 0
                while at < len(beats) and not state["clear"]:
                    offer = rng.random() < fast
                    ctx.set(port.beats.valid, offer)
                    ctx.set(port.beats.p, int.from_bytes(beats[at:at + wide], "little"))
                    _, _, ready = await ctx.tick().sample(port.beats.ready)
                    at += wide if offer and ready else 0
                ctx.set(port.beats.valid, 0)
                sent[k] += at >= len(beats)
            sent["done"] += 1
        return bench

    async def reset(ctx):
        while sent["done"] < 2:
            await ctx.tick().repeat(rng.randint(20, 150 * 16 // wide))
            if resets:
                state["clear"] = True
                ctx.set(dut.clear, 1)
                await ctx.tick().repeat(70)
                ctx.set(dut.clear, 0)
                state["clear"] = False

    async def link(ctx):
        block = b""
        idle = 0
        while sent["done"] < 2 or idle < 100:
            ready = rng.random() < fast
            ctx.set(dut.o.ready, ready)
            _, _, valid, beat, last = await ctx.tick().sample(dut.o.valid, dut.o.p.data, dut.o.p.last)
            idle = 0 if valid else idle + 1
            if valid and ready:
                block += beat.to_bytes(wide, "little")
                if last:
                    blocks.append(block)
                    block = b""
        assert block == b""

    run(dut, source(0), source(1), reset, link, clocks=12_000)
    whole = {t: [] for t in BlockType}
    for number, block in enumerate(blocks):
        header = BLOCK_HEADER.unpack(block)
        trailer = BLOCK_TRAILER.unpack(block, len(block) - 16)
        begun.append(header["type"])
        assert header["magic"].to_bytes(4, "little") == b"HMON"
        assert (header["sequence"], header["nodes"], header["clock_hz"]) == (number, 4, geometry.clock_hz)
        assert len(block) == 32 + padded(header["length"]) + 16
        assert trailer["crc"] == zlib.crc32(block[:-4])
        payload = block[32:32 + header["length"]]
        k = 0 if header["type"] == BlockType.LOSS else 1
        original = payloads[k][times[k].index(header["time"])]
        if trailer["flags"] & TrailerFlag.CUT:
            beats = range(0, len(original), wide)
            kept = next((n for n in beats if payload[n:n + wide] != original[n:n + wide]), len(original))
            assert payload[kept:] == bytes(len(payload) - kept)
        else:
            assert payload == original
            whole[header["type"]].append(payload)
    if not resets:
        assert whole[BlockType.LOSS] == payloads[0]
        assert whole[BlockType.FRAMES] == payloads[1]
    else:
        assert blocks


@dataclass
class Asked:
    """A block that a source asks for; how many beats of it have been taken."""

    payload: bytes
    time: int
    taken: int = 0
    granted: bool = False
    wide: int = BEAT_BYTES

    def beat(self) -> int:
        return int.from_bytes(self.payload[self.wide * self.taken:self.wide * (self.taken + 1)], "little")

    @property
    def done(self) -> bool:
        return self.taken * self.wide >= padded(len(self.payload))


class Sources:
    """All sources, and the link: a clock at a time. ``ready`` says whether the link takes a beat."""

    def __init__(self, stage, choose, ready, wide=BEAT_BYTES):
        self.stage, self.choose, self.ready, self.wide = stage, choose, ready, wide
        self.asked: list[Asked | None] = [None] * len(TYPES)
        self.blocks: list[bytes] = []
        self.beats = b""
        self.clearing = 0       # clocks that a reset still goes on
        self.epoch = 7
        self.under_way = 0

    def ask(self, k: int, length: int) -> Asked:
        self.asked[k] = Asked(self.choose.randbytes(length), self.choose.getrandbits(64), wide=self.wide)
        return self.asked[k]

    def reset(self) -> None:
        """A reset begins at this clock."""
        self.clearing = RESET
        self.epoch += 1

    async def clock(self, *, eager: bool = False) -> None:
        stage, choose = self.stage, self.choose
        inputs = {"clear": int(self.clearing > 0), "epoch": self.epoch, "window": self.epoch % 4,
                  "o_ready": int(self.ready())}
        for k, asked in enumerate(self.asked):
            offers = asked and asked.granted and not asked.done and (eager or choose.random() < 0.8)
            inputs |= {
                f"source{k}_request": int(bool(asked and not asked.granted)),
                f"source{k}_length": len(asked.payload) if asked else choose.getrandbits(12),
                f"source{k}_time": asked.time if asked else choose.getrandbits(64),
                f"source{k}_beats_valid": int(bool(offers)),
                f"source{k}_beats_payload": asked.beat() if offers else choose.getrandbits(8 * self.wide),
            }
        await stage.step(**inputs)
        grants = 0
        for k, asked in enumerate(self.asked):
            grant, ready = stage.get(f"source{k}_grant"), stage.get(f"source{k}_beats_ready")
            grants += grant
            if grant:
                assert asked, "granted to who has not asked"
                assert not asked.granted
                asked.granted = True
                continue
            if ready:
                # In the clock behind the first one of a reset it is still asked for what it has no more.
                owes = asked and asked.granted and not asked.done
                assert owes or self.clearing == RESET - 1, "beats are taken of a source that owes none"
                if owes and inputs[f"source{k}_beats_valid"]:
                    asked.taken += 1
        assert grants <= 1
        self.under_way += grants and not self.clearing
        if stage.get("o_valid"):
            assert stage.get("busy")
            if inputs["o_ready"]:
                beat = fields(beat_layout(self.wide), stage.get("o_payload"))
                self.beats += beat["data"].to_bytes(self.wide, "little")
                if beat["last"]:
                    self.blocks.append(self.beats)
                    self.beats = b""
        assert stage.get("busy") or not self.beats, "not busy in the middle of a block"
        await stage.clock()
        if self.clearing:
            # The sources are reset too: nothing is asked for or owed any more.
            self.clearing -= 1
            self.asked = [None] * len(TYPES)


def taken_apart(block: bytes, *, kind: BlockType, sequence: int, epoch: int, asked: Asked) -> tuple[bytes, bool]:
    """Payload with its padding, and whether it was cut; everything else is checked."""
    header = BLOCK_HEADER.unpack(block)
    assert header == {
        "magic": int.from_bytes(b"HMON", "little"), "version": FORMAT_VERSION, "type": kind, "epoch": epoch,
        "sequence": sequence, "length": len(asked.payload), "time": asked.time, "nodes": GEOMETRY.nodes,
        "window": epoch % 4, "latency": LATENCY, "flags": 0, "clock_hz": GEOMETRY.clock_hz}
    trailer = BLOCK_TRAILER.unpack(block, len(block) - BLOCK_TRAILER.bytes)
    assert trailer["flags"] in (0, TrailerFlag.CUT)
    assert trailer["zero_1"] == trailer["zero_2"] == 0
    assert trailer["crc"] == zlib.crc32(block[:-4])
    payload = block[BLOCK_HEADER.bytes:-BLOCK_TRAILER.bytes]
    assert len(payload) == padded(len(asked.payload))
    return payload, bool(trailer["flags"])


async def started(dut) -> Stage:
    stage = Stage(dut)
    inputs = {f"source{k}_{name}": 0 for k in range(len(TYPES))
              for name in ("request", "length", "time", "beats_valid", "beats_payload")}
    await stage.start(**inputs, epoch=0, window=0, clear=0, o_ready=0)
    return stage


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def cuts(dut):
    """A reset at every clock of a block: what had been taken stands in it, then zeros, and it says CUT;
    the next block is whole and of the next epoch."""
    stage, choose = await started(dut), rng()
    open_from = 0
    link = {"fast": lambda: True, "slow": lambda: choose.random() < 0.3}
    sources = Sources(stage, choose, link.get(CASE["link"], lambda: stage.now >= open_from))
    sequence = cut_blocks = none = whole = 0
    for beats in (1, 2, 5, 40):
        for after in range(0, 24 + beats, 1 if beats < 40 else 3):
            k = choose.randrange(len(TYPES))
            before = None
            if CASE["link"] == "full":
                # The block before fills the FIFO: not even the header of the next one gets in.
                open_from = stage.now + 10**6
                before = sources.ask(k, FILLING * BEAT_BYTES)
                for _ in range(60):
                    await sources.clock(eager=True)
                assert before.done
            asked = sources.ask(k, BEAT_BYTES * beats - choose.choice([0, 8]))
            open_from = stage.now + after + choose.choice([0, RESET // 2, 2 * RESET])
            for _ in range(after):
                await sources.clock(eager=True)
            granted, done_before, epoch = asked.granted, asked.done, sources.epoch
            sources.reset()
            await sources.clock(eager=True)
            taken = asked.taken
            for _ in range(RESET + 400):
                if not sources.clearing and not stage.get("busy"):
                    break
                await sources.clock()
            assert not stage.get("busy"), "busy for ever"
            assert not sources.beats, "half a block"
            if before:
                block = sources.blocks.pop(0)
                payload, cut = taken_apart(block, kind=TYPES[k], sequence=sequence, epoch=epoch, asked=before)
                assert (payload, cut) == (before.payload, False)
                sequence += 1
            if not sources.blocks:
                assert not granted or asked.taken == 0, "a block that was begun has gone"
                none += 1
            else:
                block, = sources.blocks
                payload, cut = taken_apart(block, kind=TYPES[k], sequence=sequence, epoch=epoch, asked=asked)
                kept = asked.payload[:BEAT_BYTES * taken]
                assert payload == kept + bytes(len(payload) - len(kept)), f"{taken} beats of {beats} were taken"
                assert cut or taken == beats, "zeros in a block that says it is whole"
                assert not cut or not done_before, "CUT, and all of it had been taken"
                cut_blocks, whole, sequence = cut_blocks + cut, whole + (not cut), sequence + 1
            # After it all is well.
            sources.blocks.clear()
            asked = sources.ask(choose.randrange(len(TYPES)), 40)
            kind = TYPES[sources.asked.index(asked)]
            while not sources.blocks:
                await sources.clock()
            block = sources.blocks.pop()
            payload, cut = taken_apart(block, kind=kind, sequence=sequence, epoch=sources.epoch, asked=asked)
            assert payload[:40] == asked.payload
            assert not cut, "a whole block that says CUT"
            sequence += 1
            sources.asked = [None] * len(TYPES)
    cocotb.log.info("%d blocks cut, %d whole, %d not begun", cut_blocks, whole, none)
    assert min(cut_blocks, none) > 4
    assert whole or CASE["link"] == "full"


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def orders(dut):
    """The most urgent source goes first; when the link stalls, all wait, and nothing is lost."""
    stage, choose = await started(dut), rng()
    stalled_until = 0
    sources = Sources(stage, choose, lambda: stage.now >= stalled_until and choose.random() < 0.9, CASE["wide"])
    number = 0
    for _ in range(12):
        # While a block of anybody's holds the blocker, all ask.
        first = choose.randrange(len(TYPES))
        asked = {first: sources.ask(first, 8 * choose.randint(2, 90))}
        stalled_until = stage.now + choose.choice([0, 200])
        while not asked[first].granted:
            await sources.clock(eager=True)
        for k in set(range(len(TYPES))) - {first}:
            asked[k] = sources.ask(k, 8 * choose.randint(2, 90))
        order = [first, *sorted(set(asked) - {first})]
        for _ in range(3000):
            await sources.clock(eager=True)
            if len(sources.blocks) == len(TYPES):
                break
        for k, block in zip(order, sources.blocks, strict=True):
            payload, cut = taken_apart(block, kind=TYPES[k], sequence=number, epoch=sources.epoch, asked=asked[k])
            assert payload[:len(asked[k].payload)] == asked[k].payload
            assert not any(payload[len(asked[k].payload):])
            assert not cut
            number += 1
        sources.blocks.clear()
        sources.asked = [None] * len(TYPES)
        for _ in range(8):
            await sources.clock()
        assert not stage.get("busy")


@functools.cache
def simulator(wide):
    return runner.component(Blocker(replace(GEOMETRY, beat_bytes=wide), TYPES))


@pytest.mark.parametrize("seed", runner.seeds(1))
@pytest.mark.parametrize("link", ["fast", "slow", "stalled", "full"])
def test_a_reset_cuts_the_block_under_way(link, seed):
    runner.run(simulator(16), __name__, "cuts", seed, link=link)


@pytest.mark.parametrize("wide", [16, 4, 2])
@pytest.mark.parametrize("seed", runner.seeds(2))
def test_the_most_urgent_goes_first(seed, wide):
    runner.run(simulator(wide), __name__, "orders", seed, wide=wide)


def test_reset():
    """Two sources, each of which has blocks of up to six beats."""
    def sources():
        asks = [{}, {}]

        def play(traffic):
            values, rng = {}, traffic.rng
            for k, ask in enumerate(asks):
                name = f"source{k}"
                if not traffic.values or traffic.get(f"{name}.grant"):
                    ask.clear()
                if not ask and rng.random() < 0.1:
                    ask.update({f"{name}.request": 1, f"{name}.length": 8 * rng.randrange(1, 12)})
                values |= {f"{name}.request": 0} | ask
            return values
        return play

    same_as_fresh(lambda: Blocker(GEOMETRY, TYPES[:2]), {"clear": lambda rng: rng.random() < 0.002}, player=sources,
                  episodes=10)
