"""Trigger out: the pin rises a constant time after the item, or at once and says that it is late."""

import random

import pytest
from hypermon.hdl.layout import TRIGGER_OUT_PULSE, TRIGGER_OUT_WINDOWS, Window
from hypermon.hdl.trigger.trigger_out import TriggerOut

from ..harness.stage import run

#: Clocks of a window, by setting.
CLOCKS = {Window.NS800: 80, Window.NS400: 40, Window.NS200: 20, Window.CLOCK: 1}


@pytest.mark.parametrize("window", Window)
@pytest.mark.parametrize("begin", [0, 65_000, (1 << 16) - 40])
def test_it_rises_once_at_its_time(window, begin):
    """However long the item was on its way; a second one has no effect."""
    clocks, wait = CLOCKS[window], TRIGGER_OUT_WINDOWS[window]
    rng = random.Random(f"{window} {begin}")
    for age in (0, 1, wait - 1, wait, wait + 1, wait + rng.randrange(2, 500)):
        dut = TriggerOut()
        fired_at, again = 20 + rng.randrange(clocks), rng.choice((3, 30, 2000))
        seen = []

        async def bench(ctx, dut=dut, age=age, fired_at=fired_at, again=again, seen=seen):
            ctx.set(dut.window, window)
            for clock in range(fired_at + (wait + 2) * clocks + 3 * TRIGGER_OUT_PULSE):
                now = begin + clock // clocks
                ctx.set(dut.now, now % (1 << 16))
                fires = clock in (fired_at, fired_at + again)
                ctx.set(dut.fired, fires)
                ctx.set(dut.time, (now - age if fires else 12_345) % (1 << 16))
                seen.append((ctx.get(dut.pin), ctx.get(dut.done), ctx.get(dut.late), ctx.get(dut.busy)))
                await ctx.tick()

        run(dut, bench, clocks=10**6)
        rises = [k for k in range(1, len(seen)) if seen[k][0] and not seen[k - 1][0]]
        falls = [k for k in range(1, len(seen)) if seen[k - 1][0] and not seen[k][0]]
        # The clock in which `now` is first that of the item and the wait.
        due = (fired_at // clocks - age + wait) * clocks
        late = due < fired_at + 1 and fired_at // clocks - age + wait < (fired_at + 1) // clocks
        assert rises == [max(due, fired_at + 1) + 1]
        assert falls == [rises[0] + TRIGGER_OUT_PULSE]
        for k, (_, done, was_late, busy) in enumerate(seen):
            assert done == (k >= rises[0])
            assert was_late == (late and k >= rises[0])
            assert busy or not fired_at <= k < falls[0]
            assert not busy or fired_at <= k < falls[0] or k == fired_at + again
