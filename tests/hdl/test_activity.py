"""Activity: drained and quiet come in time, and never too early."""

import functools

import cocotb
import pytest
from hypermon.hdl.activity import SETTLED, Activity

from .benches.case import rng
from .benches.stage import Stage
from .runner import component, run, seeds

STIRRING = ("strobed", "changed", "pending", "outages")


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def watches(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(**dict.fromkeys((*STIRRING, "frames", "busy"), 0))
    queued, moving = 0, 0  # clocks since the last activity
    busy_for = 0
    reached = {"drained": 0, "quiet": 0}
    for _ in range(60):
        active = choose.choice([*STIRRING, "frames", "busy"])
        length = choose.choice([1, 1, 5])
        for clock in range(length + choose.choice([10, SETTLED + 20])):
            stage.put(**{active: int(clock < length)})
            await stage.clock()
            on = clock < length
            busy_for = busy_for + 1 if on else 0
            queued = 0 if on and active != "busy" else queued + 1
            moving = 0 if on and active != "frames" else moving + 1
            for name, since in (("drained", queued), ("quiet", moving)):
                now = stage.get(name)
                reached[name] += now
                seen = busy_for == 1 and name == "drained"  # a clock on its way
                assert not now or since > 16 or seen, f"{name} {since} clocks after {active}"
                assert now or since < SETTLED + 4, f"not {name} {since} clocks after the last activity"
            # Quiet is a promise that a simulation relies on.
            assert not stage.get("quiet") or moving >= SETTLED
    assert all(reached.values())


@functools.cache
def simulator():
    return component(Activity())


@pytest.mark.parametrize("seed", seeds(2))
def test_watches(seed):
    run(simulator(), __name__, "watches", seed)
