"""A store port in front of a transmitter: events that it refuses are in the count that the line tells."""

import random

from amaranth.hdl import Module
from amaranth.lib import wiring
from hypermon.hdl.regeneration.transmitter import Transmitter
from hypermon.hdl.store_port import StorePort

from ..harness.stage import run
from .models.link_model import items, number, opened

#: The node; its count of refused items is in frames 16 to 31.
NODE = 1


def test_offered_is_sent_and_refused():
    rng = random.Random(1)
    m = Module()
    m.submodules.board = board = Transmitter()
    m.submodules.port = port = StorePort(8, 3)
    wiring.connect(m, port.refused, board.before[NODE])
    m.d.comb += [board.strobe[NODE].eq(port.strobe), board.data.word_select(NODE, 4).eq(port.data)]
    offered, bits, done = [], [], []

    async def node(ctx):
        ctx.set(board.rising, 255)
        ctx.set(board.falling, 255)
        ctx.set(board.live, 255)
        ctx.set(board.events, 1 << NODE)
        ctx.set(port.bus.cyc, 1)
        ctx.set(port.bus.sel, 15)
        ctx.set(port.bus.we, 1)
        await ctx.tick().repeat(1600)       # after the frames that the test begins with
        for _ in range(50):
            event = rng.getrandbits(24)
            offered.append(event)
            ctx.set(port.bus.dat_w, event << 8 | 3)
            ctx.set(port.bus.stb, 1)
            while not ctx.get(port.bus.ack):
                await ctx.tick()
            await ctx.tick()
            ctx.set(port.bus.stb, 0)
            await ctx.tick().repeat(rng.choice([1, 5, 40]))

    async def line(ctx):
        # A frame's first bits come two clocks after it begins.
        for _ in range(128 * 76):
            pair = ctx.get(board.bits)
            bits.extend((pair & 1, pair >> 1))
            await ctx.tick()
        done.append(True)

    run(m, node, line, clocks=128 * 77)
    begin = next(at for at in range(3000) if opened(bits[at:at + 256]) and opened(bits[at + 256:at + 512]))
    frames = [opened(bits[at:at + 256]) for at in range(begin, len(bits) - 255, 256)]
    # The first frame of all has the mark; two other counts precede those of refused items.
    assert frames[0][1] & 2
    first = 16 * (2 + NODE)
    told = number([side >> b & 1 for _, side, _ in frames[first:first + 16] for b in (2, 3)])
    came = [nibble for k, (lag, _, data) in enumerate(frames)
            for _, n, nibble in items(128 * k, lag, data) if n == NODE]
    assert len(came) % 7 == 0
    events = [number([bit for nibble in came[at + 1:at + 7] for bit in (nibble & 1, nibble >> 1 & 1, nibble >> 2 & 1,
                                                                        nibble >> 3)])
              for at in range(0, len(came), 7)]
    assert all(came[at] == 3 for at in range(0, len(came), 7))
    due = iter(offered)
    assert all(event in due for event in events)
    assert told > 10
    assert len(offered) == len(events) + told
