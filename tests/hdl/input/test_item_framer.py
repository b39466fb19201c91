"""Framer: items begin and end where their nibbles say, whatever the gate does with them."""

import random

import pytest
from hypermon.hdl.input.item_framer import ItemFramer

from ..harness.resets import same_as_fresh
from ..harness.stage import run

NODES = 6
NIBBLE, WORD, EVENT = range(3)


class Model:
    """One node: what becomes of a pulse, a time-out, a reset."""

    def __init__(self, mode, bits):
        self.mode, self.bits, self.left, self.taken = mode, bits, 0, False

    def strobe(self, nibble, further=False):
        """start, goes on, ends"""
        if self.left:
            self.left -= 1
            return False, True, self.left == 0
        if (self.mode == EVENT and nibble & 15 == 0) or (self.mode != NIBBLE and further):
            return False, False, False
        self.left = {NIBBLE: 0, WORD: 32 // self.bits - 1, EVENT: 8 // self.bits * (nibble & 15)}[self.mode]
        return True, False, self.left == 0

    def expire(self):
        """Whether an item was open."""
        was, self.left = self.left > 0, 0
        return was


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("seed", range(4))
def test_frames(seed, bits):
    """Of nodes with links, in half of the seeds, it is known which nibbles do not begin an item."""
    rng = random.Random(seed)
    linked = 4 * (seed % 2)
    dut = ItemFramer(NODES, bits, linked)
    nodes = [Model(n % 3, bits) for n in range(NODES)]
    seen = {"start": 0, "cut": 0, "refused": 0, "restart": 0, "stray": 0 if linked else 2}

    async def bench(ctx):
        pending = [None] * NODES  # what this clock's outputs must say: start, goes on, ends, cut, nibble
        ctx.set(dut.words, sum(1 << n for n, node in enumerate(nodes) if node.mode == WORD)
                | sum(rng.getrandbits(1) << n for n, node in enumerate(nodes) if node.mode == EVENT))
        ctx.set(dut.events, sum(1 << n for n, node in enumerate(nodes) if node.mode == EVENT))
        for _ in range(3):
            await ctx.tick()
        for _ in range(2500):
            clear, change = rng.random() < 0.002, rng.random() < 0.002
            pulse, expired, data = (rng.getrandbits(NODES) for _ in range(3))
            expired &= rng.getrandbits(NODES) & rng.getrandbits(NODES) & rng.getrandbits(NODES)
            data = [rng.choice((0, 1, 2, 3, 15)) | rng.getrandbits(bits - 4) << 4 for _ in range(NODES)]
            admit = rng.getrandbits(NODES) & sum(1 << n for n in range(NODES) if pending[n] and pending[n][0])
            further = rng.getrandbits(linked) & rng.getrandbits(linked) if linked else 0
            if linked:
                ctx.set(dut.further, further)
            ctx.set(dut.pulse, pulse)
            ctx.set(dut.expired, expired)
            ctx.set(dut.data, sum(nibble << bits * n for n, nibble in enumerate(data)))
            ctx.set(dut.admit, admit)
            ctx.set(dut.clear, clear)
            modes = [node.mode for node in nodes]
            if change:
                n = rng.randrange(NODES)
                modes[n] = (modes[n] + 1) % 3
                ctx.set(dut.words, sum(1 << n for n, mode in enumerate(modes) if mode == WORD))
                ctx.set(dut.events, sum(1 << n for n, mode in enumerate(modes) if mode == EVENT))
            await ctx.delay(1e-10)
            for n, node in enumerate(nodes):
                bit = 1 << n
                start, more, ends, cut, nibble = pending[n] or (False, False, False, False, 0)
                assert bool(ctx.get(dut.start) & bit) == start
                if start:
                    node.taken = bool(admit & bit)
                    seen["start"] += 1
                    seen["refused"] += not node.taken
                push = bool(ctx.get(dut.push) & bit)
                assert push == ((start or more or cut) and node.taken)
                if push:
                    assert bool(ctx.get(dut.ends) & bit) == ends
                    assert bool(ctx.get(dut.cut) & bit) == cut
                    assert ctx.get(dut.nibble) >> bits * n & (1 << bits) - 1 == nibble
                    seen["cut"] += cut
                assert bool(ctx.get(dut.open) & bit) == (node.left > 0)
                pending[n] = None
                if modes[n] != node.mode:
                    # Framing restarts, with this clock's pulse, too.
                    seen["restart"] += 1
                if pulse & bit:
                    if node.left == 0 and modes[n] == node.mode:
                        # Of nibbles two are one, and of the seven behind a word's first four are made.
                        need = {NIBBLE: 0, WORD: 4 if bits == 4 else 3, EVENT: data[n] & 15}[node.mode]
                        assert sum((ctx.get(plane) >> n & 1) << b for b, plane in enumerate(dut.need)) == need
                    strays = not node.left and further >> n & 1 and node.mode != NIBBLE
                    seen["stray"] += bool(strays)
                    start, more, ends = node.strobe(data[n], further >> n & 1)
                    pending[n] = (start, more, ends, False, data[n])
                elif expired & bit and node.expire():
                    pending[n] = (False, False, True, True, 0)
                if clear:
                    node.taken = False
            await ctx.tick()
            if change:
                for n, node in enumerate(nodes):
                    if modes[n] != node.mode:
                        node.mode, node.left, node.taken = modes[n], 0, False

    run(dut, bench, clocks=20_000)
    assert min(seen.values()) > 1, seen


def test_reset():
    same_as_fresh(lambda: ItemFramer(3, linked=2),
                  settings={name: lambda rng: rng.getrandbits(3) for name in ("words", "events")})
