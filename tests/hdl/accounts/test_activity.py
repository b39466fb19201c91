"""Activity: drained, ending and quiet come in time, and never too early."""

import functools

import cocotb
import pytest
from hypermon.hdl.accounts.activity import ENDING, SETTLED, Activity

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run, seeds

STIRRING = ("strobed", "changed", "pending", "outages")


#: Clocks after a disable in which a strobe may be admitted.
ADMITTED = 8


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def watches(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(enable=1, **dict.fromkeys((*STIRRING, "frames", "busy"), 0))
    # Clocks since the last activity: what may be queued, what may be on its way to a sink, anything; since the enable.
    queued, coming, moving, disabled = 0, 0, 0, 0
    enable, busy_for = 1, 0
    reached = {"drained": 0, "ending": 0, "quiet": 0}
    for _ in range(120):
        active = choose.choice([*STIRRING, "frames", "busy"])
        length = choose.choice([1, 1, 5, 60])
        if choose.random() < 0.4:
            enable = 1 - enable
        for clock in range(length + choose.choice([10, SETTLED + 20])):
            on = clock < length
            stage.put(enable=enable, **{active: int(on)})
            await stage.clock()
            busy_for = busy_for + 1 if on else 0
            disabled = 0 if enable else disabled + 1
            # Strobes that come after a disable stand for nothing.
            idle = active == "strobed" and disabled > ADMITTED
            queued = 0 if on and active != "busy" and not idle else queued + 1
            coming = 0 if on and active not in ("busy", "frames") and not idle else coming + 1
            moving = 0 if on and active != "frames" else moving + 1
            for name, since in (("drained", queued), ("ending", min(coming, disabled)), ("quiet", moving)):
                now = stage.get(name)
                reached[name] += now
                seen = busy_for == 1 and name != "quiet"  # a clock on its way
                least = 8 if name == "ending" else 16
                assert not now or seen or since > least, f"{name} {since} clocks after {active}"
                assert now or since < SETTLED + 4, f"not {name} {since} clocks after the last activity"
            assert not stage.get("ending") or coming > ENDING or busy_for == 1
            # Quiet is a promise that a simulation relies on.
            assert not stage.get("quiet") or moving >= SETTLED
    assert all(reached.values())


@functools.cache
def simulator():
    return component(Activity())


@pytest.mark.parametrize("seed", seeds(2))
def test_watches(seed):
    run(simulator(), __name__, "watches", seed)
