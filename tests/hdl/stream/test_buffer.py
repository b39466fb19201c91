"""Buffer: every byte in order at full width, whoever stalls; full, it waits; and it says what moves in it."""

import random
from collections import deque

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.layout import BEAT_BYTES, NARROW_BYTES, SLIM_BYTES, Geometry
from hypermon.hdl.stream.buffer import Buffer

from ..harness.stage import run

#: Beats of 16 bytes that a buffer without a store holds: one that is packed.
PACKED = 1
#: Clocks after which nothing moves any more in a buffer that is full.
SETTLED = 40


def board(beat_bytes, store):
    if beat_bytes == NARROW_BYTES:
        return Geometry(beat_bytes=beat_bytes, vector_depth=256)
    return Geometry.extended(beat_bytes=beat_bytes, store_depth=store)


def clocked(dut):
    """With a clock, which a buffer that only passes beats has not got."""
    m = Module()
    m.submodules.dut = dut
    m.d.sync += Signal().eq(0)
    return m


class Bench:
    """A blocker and a link that stall at random. Beats may pass in the same clock, so one bench plays both of them."""

    def __init__(self, geometry, seed):
        self.rng, self.dut, self.width = random.Random(seed), Buffer(geometry), geometry.beat_bytes
        self.wide = geometry.stream_bytes
        count = 50 if self.width == self.wide else 130
        self.sent = [self.rng.randbytes(self.rng.choice((2, 3, 5)) * BEAT_BYTES) for _ in range(count)]
        self.beats = deque((block[at:at + self.width], at + self.width == len(block))
                           for block in self.sent for at in range(0, len(block), self.width))
        self.got, self.part, self.taken, self.offers = [], b"", 0, False

    async def clock(self, ctx, gives, takes):
        """One clock, with how likely each side is to offer a beat and to take one. An offer is held."""
        i, o = self.dut.i, self.dut.o
        self.offers = self.offers or (bool(self.beats) and self.rng.random() < gives)
        ready = self.rng.random() < takes
        data, last = self.beats[0] if self.offers else (self.rng.randbytes(self.width), self.rng.getrandbits(1))
        ctx.set(i.valid, self.offers)
        ctx.set(i.p.data, int.from_bytes(data, "little"))
        ctx.set(i.p.last, last)
        ctx.set(o.ready, ready)
        if self.offers and ctx.get(i.ready):
            self.beats.popleft()
            self.taken += self.width
            self.offers = False
        if ready and ctx.get(o.valid):
            self.part += ctx.get(o.p.data).to_bytes(self.wide, "little")
            if ctx.get(o.p.last):
                self.got.append(self.part)
                self.part = b""
        await ctx.tick()

    async def rest(self, ctx, gives, takes):
        while len(self.got) < len(self.sent):
            await self.clock(ctx, gives, takes)
        for _ in range(SETTLED):
            await self.clock(ctx, gives, 1.0)
        assert self.got == self.sent
        assert not self.part


@pytest.mark.parametrize("rates", [(1.0, 0.2), (0.3, 1.0), (1.0, 1.0), (0.6, 0.6)])
@pytest.mark.parametrize(("beat_bytes", "store"), [
    (BEAT_BYTES, 0), (BEAT_BYTES, 16), (SLIM_BYTES, 0), (SLIM_BYTES, 16), (NARROW_BYTES, 0)])
def test_blocks_pass_whole_and_in_order(beat_bytes, store, rates):
    bench = Bench(board(beat_bytes, store), repr(rates))

    async def both(ctx):
        await bench.rest(ctx, *rates)

    run(clocked(bench.dut), both, clocks=20_000)


@pytest.mark.parametrize(("beat_bytes", "store"), [(BEAT_BYTES, 16), (SLIM_BYTES, 16), (SLIM_BYTES, 0)])
def test_when_it_is_full_it_waits(beat_bytes, store):
    """Nothing is lost, the levels say how full it is, and nothing moves until the link takes a beat."""
    bench = Bench(board(beat_bytes, store), 5)
    dut = bench.dut

    async def link(ctx):
        for _ in range(BEAT_BYTES // beat_bytes * (store + 2) + SETTLED):
            await bench.clock(ctx, 1.0, 0.0)
        assert bench.offers
        assert not ctx.get(dut.i.ready)
        assert bench.taken // BEAT_BYTES == store + PACKED * (beat_bytes != BEAT_BYTES)
        assert (ctx.get(dut.level), ctx.get(dut.high)) == (store, store)
        assert not ctx.get(dut.moves)
        await bench.clock(ctx, 1.0, 1.0)
        assert ctx.get(dut.moves)
        for _ in range(200):
            await bench.clock(ctx, 0.0, 1.0)
        ctx.set(dut.clear, 1)
        await bench.clock(ctx, 0.0, 1.0)
        ctx.set(dut.clear, 0)
        await bench.clock(ctx, 0.0, 1.0)
        assert (ctx.get(dut.level), ctx.get(dut.high)) == (0, 0)
        await bench.rest(ctx, 0.7, 0.7)

    run(clocked(dut), link, clocks=20_000)
