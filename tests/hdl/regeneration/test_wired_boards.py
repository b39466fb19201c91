"""Wired boards: frames on each line, two samples per bit, and what disturbs them."""

from itertools import pairwise

import pytest
from hypermon.hdl.layout import Front
from hypermon.hdl.regeneration.wired_boards import WiredBoards

from ..harness.senders import CLOCK, DATA, Wires, event_bytes, spi, uart
from ..harness.stage import run
from .models.link_model import counts, items, nibbles, opened


def line(samples, link):
    """Bits of a line, each of which has two equal samples."""
    bits = []
    for word in samples:
        own = word >> 4 * link & 15
        assert own in (0, 3, 12, 15)
        bits += [own & 1, own >> 2 & 1]
    return bits


def found(bits):
    """Frames wherever they begin: position and contents."""
    return [(at, got) for at in range(len(bits) - 256) if bits[at:at + 8] == [1, 1, 1, 0, 1, 0, 0, 0]
            and (got := opened(bits[at:at + 256])) is not None]


def test_lines():
    dut, samples, clean, pulled = WiredBoards(2), [], [], []

    async def bench(ctx):
        ctx.set(dut.rising, 0x00ff)
        ctx.set(dut.falling, 0xff00)
        for clock in range(2000):
            if clock in (1400, 1440):     # nodes 2 and 13; the other board takes falling edges
                ctx.set(dut.strobe, (1 << 2 | 1 << 13) * (clock == 1400))
            ctx.set(dut.data, 9 << 4 * 2 | 6 << 4 * 13)
            samples.append(ctx.get(dut.samples))
            await ctx.tick()
        for clock in range(300):        # every bit of link 1 is inverted, then link 0 is pulled
            ctx.set(dut.wrong, 0b1100)
            clean.append(ctx.get(dut.samples))
            if clock % 2:
                ctx.set(dut.wrong, 0)
                assert ctx.get(dut.samples) == clean[-1] ^ 0xf0
                ctx.set(dut.wrong, 0b1100)
            await ctx.tick()
        ctx.set(dut.wrong, 0)
        ctx.set(dut.pulled, 1)
        for _ in range(50):
            pulled.append(ctx.get(dut.samples))
            await ctx.tick()

    run(dut, bench)
    times = []
    for link, (node, nibble) in enumerate(((2, 9), (5, 6))):
        frames = found(line(samples, link))
        assert len(frames) >= 5
        assert {b[0] - a[0] for a, b in pairwise(frames)} == {256}
        came = [item for at, (lag, _, data) in frames for item in items(at // 2, lag, data)]
        assert [item[1:] for item in came] == [(node, nibble)]
        times.append(came[0][0])
    assert times[1] - times[0] == 40
    assert not found(line(clean, 1))
    assert found(line(clean, 0))
    assert not any(line(pulled, 0))
    assert any(line(pulled, 1))


@pytest.mark.parametrize("front", [Front.TWO_WIRE, Front.UART], ids=lambda front: front.name)
def test_front_ends(front):
    """A checked event of one node of each board is on its line, and what is none is in its count; with two wires, data
    of the second board's nodes are sampled at falling edges."""
    setting = {Front.TWO_WIRE: 120, Front.UART: 16 << 8}[front]
    dut, samples, payload = WiredBoards(2, front=front, setting=setting), [], bytes([0x5a, 0xc3])
    nodes, clocks = {2: 0, 13: 1}, 128 * 92
    wires = {node: Wires([1, 0, 0] if front is Front.UART else [0, 0, 0]) for node in nodes}
    for node, falling in nodes.items():
        for at, data in ((1500, event_bytes(payload)), (3500, b"\x33")):
            if front is Front.UART:
                uart(wires[node], at, 16, data)
            else:
                spi(wires[node], at, 12, data, mode=falling)
    levels = {node: [wires[node].sampled(clocks, wire) for wire in (CLOCK, DATA)] for node in nodes}

    async def bench(ctx):
        ctx.set(dut.rising, 0x00ff)
        ctx.set(dut.falling, 0xff00)
        for clock in range(clocks):
            ctx.set(dut.strobe, sum(levels[node][0][clock] << node for node in nodes))
            ctx.set(dut.data, sum(levels[node][1][clock] << 4 * node for node in nodes))
            samples.append(ctx.get(dut.samples))
            await ctx.tick()

    run(dut, bench, clocks=clocks + 10)
    for link, (node, _) in enumerate(nodes.items()):
        frames = [got for _, got in found(line(samples, link))]
        came = [item[1:] for lag, _, data in frames for item in nibbles(0, lag, data)]
        assert came == [(node % 8, value, at > 0) for at, value in enumerate([2, 0xa, 5, 3, 0xc])]
        # The first frame of all has the mark.
        sides = [side for _, side, _ in frames]
        assert [k for k, side in enumerate(sides) if side & 2] == [0]
        assert sum(side & 1 for side in sides) == 1
        told = counts([*sides[32:], *[None] * (288 - len(sides)), *sides[:32]])
        assert told[1:3] == ([0, 1] if link == 0 else [0, 0])
