"""Links: two regeneration boards' ports at their places, equally late with and without the consumer's pad stage."""

import random

from amaranth.hdl import Module
from hypermon.hdl.regeneration.links import Links
from hypermon.hdl.regeneration.wired_boards import WiredBoards

from ..harness.stage import run

#: Clocks in which the line is found, and by which a replayed strobe is later than one that is wired directly.
SEARCH, LATE = 40 * 128, 4109


def test_ports_of_two_boards():
    rng = random.Random(1)
    m = Module()
    m.submodules.wired = wired = WiredBoards(2)
    m.submodules.own = own = Links(2, pad_stage=True)
    m.submodules.late = late = Links(2, pad_stage=False)
    m.d.comb += [links.samples.eq(wired.samples) for links in (own, late)]
    written, seen, levels = [], [], []

    async def bench(ctx):
        ctx.set(wired.rising, 0xffff)
        await ctx.tick().repeat(SEARCH)
        assert ctx.get(own.account0.locked)
        assert ctx.get(own.account1.locked)
        before, queue = (ctx.get(own.strobe), ctx.get(own.data)), {}
        for clock in range(LATE + 900):
            if clock < 600 and clock % 40 == 0:
                node, nibble = rng.randrange(16), rng.getrandbits(4)
                ctx.set(wired.data, nibble << 4 * node)
                queue[clock + 4], queue[clock + 8] = 1 << node, 0
                written.append((clock + 4, node, nibble))
            if clock in queue:
                ctx.set(wired.strobe, queue[clock])
            await ctx.tick()
            now = ctx.get(own.strobe), ctx.get(own.data)
            assert (ctx.get(late.strobe), ctx.get(late.data)) == before, "one clock later"
            seen.extend((clock, n, before[1] >> 4 * n & 15) for n in range(16) if (now[0] ^ before[0]) >> n & 1)
            levels.append(now)
            before = now

    run(m, bench, clocks=SEARCH + LATE + 1000)
    assert [item[1:] for item in seen] == [item[1:] for item in written]
    assert {at - when for (at, *_), (when, *_) in zip(seen, written, strict=True)} == {LATE - 1}
