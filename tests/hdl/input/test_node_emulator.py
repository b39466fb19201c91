"""Node emulator: each pattern, write by write, as a node would."""

import random

import pytest
from amaranth.hdl import Signal
from hypermon.hdl.input.node_emulator import REPLAY_DEPTH, NodeEmulator, replay_layout
from hypermon.hdl.layout import EmulatorPattern

from ..harness.stage import run


def play(nodes, pattern, count, period=4, replay=(), stop=None, bits=4):
    """Clock, node and nibble of every rising strobe; what the ports keep is checked beside."""
    dut = NodeEmulator(nodes, bits)
    seen = []
    assert Signal(replay_layout(bits)).shape().size == 32

    async def bench(ctx):
        for k, (wait, node, nibble) in enumerate(replay, 1):
            last = k == len(replay)
            ctx.set(dut.settings.entry, wait | (nibble & 15) << 16 | node << 20 | nibble >> 4 << 25 | last << 31)
            ctx.set(dut.settings.load, 1)
            await ctx.tick()
        ctx.set(dut.settings.load, 0)
        for _ in range(4):
            await ctx.tick()
        ctx.set(dut.settings.pattern, pattern)
        ctx.set(dut.settings.period, period)
        ctx.set(dut.settings.count, count)
        ctx.set(dut.settings.run, 1)
        before = [(0, 0)] * nodes
        now = 0
        while True:
            await ctx.tick()
            strobe, data = ctx.get(dut.strobe), ctx.get(dut.data)
            for n in range(nodes):
                level, nibble = strobe >> n & 1, data >> bits * n & (1 << bits) - 1
                if level and not before[n][0]:
                    assert nibble == before[n][1], "data and strobe change at once"
                    seen.append((now, n, nibble))
                assert level or not before[n][0] or nibble == before[n][1]
                before[n] = (level, nibble)
            now += 1
            if now == stop:
                ctx.set(dut.settings.run, 0)
                await ctx.tick()
                await ctx.tick()
                assert not ctx.get(dut.strobe)
                return
            if not ctx.get(dut.busy):
                assert not strobe
                return

    run(dut, bench, clocks=20_000)
    return seen


@pytest.mark.parametrize("nodes", [1, 5, 16])
@pytest.mark.parametrize("period", [4, 7])
def test_all(nodes, period):
    seen = play(nodes, EmulatorPattern.ALL, 20, period)
    first = seen[0][0]
    assert seen == [(first + period * k, n, (k + n) % 16) for k in range(20) for n in range(nodes)]


@pytest.mark.parametrize("nodes", [1, 5, 16])
@pytest.mark.parametrize("bits", [4, 8])
def test_turns(nodes, bits):
    count = nodes * (1 << bits) + 10 if nodes == 1 else 70
    seen = play(nodes, EmulatorPattern.TURNS, count, 5, bits=bits)
    first = seen[0][0]
    assert seen == [(first + 5 * k, k % nodes, (k // nodes + k % nodes) % (1 << bits)) for k in range(count)]


@pytest.mark.parametrize("length", [1, 2, 50, REPLAY_DEPTH])
@pytest.mark.parametrize("bits", [4, 8])
def test_replay(length, bits):
    rng = random.Random(length)
    replay = [(rng.choice((4, 5, 6, 30)), rng.randrange(16), rng.randrange(1 << bits)) for _ in range(length)]
    count = 2 * length + 1
    seen = play(16, EmulatorPattern.REPLAY, count, 4, replay, bits=bits)
    at = seen[0][0] - replay[0][0]
    for k in range(count):
        wait, node, nibble = replay[k % length]
        at += wait
        assert seen[k] == (at, node, nibble)
    assert len(seen) == count


def test_stops_at_once():
    assert len(play(3, EmulatorPattern.ALL, 1000, 4, stop=50)) < 3 * 15


def test_nothing_to_do():
    assert play(3, EmulatorPattern.ALL, 0) == []
