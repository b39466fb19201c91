"""Skid: order under stalls, an item a clock, and a `ready` that the consumer's does not reach."""

import pytest
from hypermon.hdl.lib.skid import Skid

from ..harness.stage import keeps_order, run


@pytest.mark.parametrize("seed", range(4))
def test_keeps_order_under_stalls(seed):
    keeps_order(Skid(16), seed)


def test_an_item_a_clock_through_a_register():
    dut = Skid(8)

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        for n in range(50):
            # Ready or not shows a clock later, when one item is kept.
            ctx.set(dut.o.ready, n % 7 != 3)
            assert ctx.get(dut.i.ready) == (n % 7 != 4)
            ctx.set(dut.o.ready, 1)
            assert ctx.get(dut.i.ready) == (n % 7 != 4)
            ctx.set(dut.o.ready, n % 7 != 3)
            ctx.set(dut.i.p, n)
            assert ctx.get(dut.o.valid)
            assert ctx.get(dut.o.p) == (n - 1 if n % 7 == 4 else n)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        assert not ctx.get(dut.o.valid)

    run(dut, bench)
