"""Rate limit: so many items of a node in an interval, exactly; the other nodes and skips change nothing."""

import random

import pytest
from hypermon.hdl.input.rate_limit import ITEMS_BITS, RateLimit

from ..harness.stage import run

NODES = 3
#: Clocks from the window number to the end of the interval before it.
DELAY = 4


class Plan:
    """Windows and offers, clock by clock, with stretches of idle windows in which nothing is offered."""

    def __init__(self, rng: random.Random, span: int, rates: list[float]):
        self.clocks: list[tuple[int, int]] = []
        window = rng.choice([0, 2**32 - 3 * 2**span]) if span < 20 else 0
        self.clocks += [(window + k, 0) for k in range(1, 2 * DELAY)]
        window += 2 * DELAY - 1
        for _ in range(30):
            for _ in range(rng.randint(1, 4 * 2**min(span, 7))):
                window += 1
                offers = sum((rng.random() < rate) << i for i, rate in enumerate(rates))
                self.clocks.append((window, offers))
            idle = rng.choice([0, 0, 2 * DELAY, rng.randint(0, 2**span), 2**31 - 1])
            # On either side of what is skipped a few clocks are not.
            for skipped in (max(0, idle - 4 * DELAY), 0):
                for _ in range(min(idle, 2 * DELAY)):
                    window += 1
                    self.clocks.append((window, 0))
                window += skipped


def allowed(plan: Plan, items: int, span: int) -> list[int]:
    """What passes in each clock."""
    passed = []
    counts = [0] * NODES
    windows = [plan.clocks[0][0] - 1] * DELAY + [w for w, _ in plan.clocks]
    for k, (_, offers) in enumerate(plan.clocks):
        # The interval in force is that of the window of DELAY clocks ago.
        if windows[k] >> span != windows[max(0, k - 1)] >> span:
            counts = [0] * NODES
        let = 0
        for i in range(NODES):
            if offers >> i & 1 and (not items or counts[i] < items):
                counts[i] += 1
                let |= 1 << i
        passed.append(let)
    return passed


@pytest.mark.parametrize("items", [0, 1, 2, 3, 8, 100, 255])
@pytest.mark.parametrize("span", [0, 1, 4, 9, 31])
def test_limits(items, span):
    rng = random.Random(100 * items + span)
    dut = RateLimit(NODES)
    assert items < 1 << ITEMS_BITS
    # One node offers nothing but noise, one hardly anything.
    rates = [1.0, rng.choice([0.05, 0.5]), 0.9]
    plan = Plan(rng, span, rates)
    expected = allowed(plan, items, span)

    async def bench(ctx):
        ctx.set(dut.items, items)
        ctx.set(dut.span, span)
        ctx.set(dut.now, (plan.clocks[0][0] - 1) % 2**32)
        await ctx.tick().repeat(8)
        passed = kept = 0
        for k, (window, offers) in enumerate(plan.clocks):
            ctx.set(dut.now, window % 2**32)
            ctx.set(dut.offer, offers)
            let = ctx.get(dut.allow) & offers
            assert let == expected[k], f"clock {k}, window {window:#x}"
            passed, kept = passed + bin(let).count("1"), kept + bin(offers & ~let).count("1")
            await ctx.tick()
        assert passed
        assert bool(kept) == (items > 0 and items < 2**span), (passed, kept)

    run(dut, bench, clocks=60_000)
