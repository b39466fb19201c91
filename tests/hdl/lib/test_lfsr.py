"""Numbers that go round without a carry: all of them come by."""

import pytest
from amaranth.hdl import Module, Signal
from hypermon.hdl.lib.lfsr import lfsr_next

from ..harness.stage import run


@pytest.mark.parametrize("bits", [*range(1, 11), *(pytest.param(b, marks=pytest.mark.slow) for b in range(11, 16))])
def test_all_come_by(bits):
    m = Module()
    number = Signal(bits)
    m.d.sync += number.eq(lfsr_next(number))

    async def bench(ctx):
        seen = []
        for _ in range(1 << bits):
            seen.append(ctx.get(number))
            await ctx.tick()
        assert sorted(seen) == list(range(1 << bits))
        assert ctx.get(number) == seen[0]

    run(m, bench, clocks=1 << bits + 1)
