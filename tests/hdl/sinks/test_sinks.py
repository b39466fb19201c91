"""Sinks: the one that is chosen gets every vector, the other one none, and what both tell is joined."""

import random
import struct
from collections import deque

import pytest
from amaranth.hdl import ClockDomain
from hypermon.hdl.layout import Geometry, Sink, Window, frame_words
from hypermon.hdl.sinks.sinks import Sinks

from ..harness.blocks import parse_frame, parse_items
from ..harness.stage import run
from ..harness.taker import Taker

NODES, FLUSH, NEVER = 5, 100, 2**32 - 1
CLASSIC, EXTENDED = Sink.CLASSIC, Sink.EXTENDED
# Clocks; vectors per clock; grants and beats of the blocker per clock.
PHASES = {"calm": (400, 0.05, 0.5, 0.9), "flood": (500, 0.9, 0.3, 0.7), "stalled": (1100, 0.9, 0.0, 0.0),
          "fast": (400, 0.5, 1.0, 1.0), "silent": (300, 0.0, 0.5, 1.0)}


def items_of(sink: Sink, blocks: list[tuple[int, bytes]], geometry: Geometry) -> list[tuple[int, int, int]]:
    """Window, node and nibble of each item, by the readers of whole streams."""
    if sink is EXTENDED:
        return [item for time, payload in blocks for item in parse_items(payload, time, NODES)]
    frames = [parse_frame(words, geometry, time >> 32) for time, payload in blocks
              for words in struct.iter_unpack(f"<{frame_words(NODES)}I", payload)]
    return [(frame.stamp, node, nibble) for frame in frames for node, nibble in frame.nibbles.items()]


@pytest.mark.parametrize(("sinks", "chosen"), [
    ((CLASSIC,), CLASSIC), ((EXTENDED,), EXTENDED), ((CLASSIC, EXTENDED), CLASSIC), ((CLASSIC, EXTENDED), EXTENDED)])
def test_the_chosen_one_gets_everything(sinks, chosen):
    rng = random.Random(f"{sinks} {chosen}")
    geometry = Geometry(nodes=NODES, node_depth=8, vector_depth=32, frame_depth=16, compact_depth=512, sinks=sinks)
    dut = Sinks(geometry)
    sources = {sink: Taker(getattr(dut, name), rng) for sink, name in ((CLASSIC, "frames"), (EXTENDED, "compact"))
               if sink in sinks}
    written, seen = [], {"stuck": 0, "waits": 0}

    async def bench(ctx):
        i, settings, account = dut.i, dut.settings, dut.account
        for field, value in ((settings.extended, chosen is EXTENDED), (settings.stream, 1), (settings.flush, FLUSH),
                             (settings.window, Window.CLOCK)):
            ctx.set(field, value)
        now = rng.getrandbits(36) | 1 << 33
        vectors, queues = deque(), [deque() for _ in range(NODES)]
        popped, inside, delivered, since, first = 0, 0, [0] * NODES, 0, True

        async def step(rate, grant, take, ending=0):
            nonlocal now, popped, inside, since, first
            now += 1
            if len(vectors) < 8 and rng.random() < rate:
                members = {n: rng.getrandbits(4) for n in range(NODES) if rng.random() < 0.4} or {0: 5}
                vectors.append((now, members))
                for n, nibble in members.items():
                    queues[n].append(nibble)
                    written.append((now, n, nibble))
            ctx.set(i.vectors.valid, bool(vectors))
            if vectors:
                ctx.set(i.vectors.p.time, vectors[0][0])
                ctx.set(i.vectors.p.vector, sum(1 << n for n in vectors[0][1]))
                ctx.set(i.vectors.p.wrap, first)
            ctx.set(i.nibble, sum((queues[n].popleft() if popped >> n & 1 else rng.getrandbits(4)) << 4 * n
                                  for n in range(NODES)))
            popped = ctx.get(i.pop)
            ctx.set(dut.time.now, now)
            ctx.set(dut.ending, ending)
            for sink, source in sources.items():
                source.step(ctx, grant, take)
                assert sink is chosen or not ctx.get(source.source.request), "the other sink has something"
            counted = ctx.get(account.delivered)
            for n in range(NODES):
                delivered[n] += counted >> n & 1
            inside -= counted.bit_count()
            since = 0 if vectors and ctx.get(i.vectors.ready) else since + 1
            assert ctx.get(i.busy) or ctx.get(account.waiting) or not inside or since < 4, "something is inside"
            seen["stuck"] += ctx.get(i.stuck)
            horizon = ctx.get(account.horizon)
            assert horizon == NEVER or horizon <= FLUSH
            # The register holds 0 until the first clock is over.
            seen["waits"] += horizon not in (NEVER, 0)
            if vectors and ctx.get(i.vectors.ready):
                inside += len(vectors.popleft()[1])
                first = False
            await ctx.tick()

        for name in rng.sample(list(PHASES), len(PHASES)):
            long, *rates = PHASES[name]
            for _ in range(long):
                await step(*rates)
        for k in range(1000):
            await step(0, 1, 1, int(k > 300))
        assert [ctx.get(signal) for signal in (account.waiting, account.owing, account.counting, i.stuck)] == [0] * 4
        assert ctx.get(account.horizon) == NEVER
        for n in range(NODES):
            assert delivered[n] == sum(node == n for _, node, _ in written)

    run(dut, bench, spine=ClockDomain("spine"))
    assert items_of(chosen, sources[chosen].blocks, geometry) == written
    assert not any(source.blocks for sink, source in sources.items() if sink is not chosen)
    assert all(seen.values()), seen


@pytest.mark.parametrize("phases", [2, 4])
def test_the_blocks_flags_follow_the_settings(phases):
    """Stamps count parts of a clock with the extended sink and windows of one clock; some items are longer."""
    dut = Sinks(Geometry(nodes=NODES, sinks=(CLASSIC, EXTENDED), phases=phases))

    async def bench(ctx):
        settings = dut.settings
        for extended, fine in ((0, 1), (1, 1), *([(1, 0)] if phases == 4 else [])):
            if phases == 4:
                ctx.set(settings.fine, fine)
            for window in Window:
                for words, events in ((0, 0), (0b100, 0), (0, 0b11), (0b10, 0b1)):
                    for field, value in ((settings.extended, extended), (settings.window, window),
                                         (settings.words, words), (settings.events, events)):
                        ctx.set(field, value)
                    await ctx.tick()
                    assert ctx.get(dut.half) == (extended and fine and window is Window.CLOCK)
                    assert ctx.get(dut.longer) == bool(words or events)

    run(dut, bench, spine=ClockDomain("spine"))
