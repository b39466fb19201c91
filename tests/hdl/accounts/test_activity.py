"""Activity: drained, ending and quiet come in time, and never too early."""

import functools

import cocotb
import pytest
from hypermon.hdl.accounts.activity import CALM, ENDING, SETTLED, Activity

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run, seeds

STIRRING = ("strobed", "changed", "pending", "outages")
#: Whatever is waiting, it may be skipped.
WAITING = ("frames", "pending", "outages")


#: Clocks after a disable in which a strobe may be admitted.
ADMITTED = 8


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def watches(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(enable=1, **dict.fromkeys((*STIRRING, "frames", "busy", "moving", "owed", "skips"), 0))
    # Clocks since the last activity: what may be queued, what may be on its way to a sink, anything; since the enable.
    queued, coming, moving, disabled = 0, 0, 0, 0
    enable, busy_for, skips = 1, 0, 0
    reached = {"drained": 0, "ending": 0, "quiet": 0, "owed": 0, "skips": 0}
    for _ in range(160):
        active = choose.choice([*STIRRING, "frames", "busy", "moving"])
        length = choose.choice([1, 1, 5, 60, SETTLED + 20])
        owed = int(choose.random() < 0.3)
        if choose.random() < 0.4:
            enable = 1 - enable
        for clock in range(length + choose.choice([10, SETTLED + 20])):
            on = clock < length
            settled = all(since > 3 or (on and not since) for since in (queued, coming))
            skips = int(stage.get("quiet") and moving > 2 * CALM and settled and choose.random() < 0.1)
            stage.put(enable=enable, owed=owed, skips=skips, **{active: int(on)})
            await stage.clock()
            busy_for = busy_for + 1 if on else 0
            disabled = 0 if enable else disabled + 1
            # Strobes that come after a disable stand for nothing.
            idle = active == "strobed" and disabled > ADMITTED
            queued = 0 if on and active not in ("busy", "moving") and not idle else queued + 1
            coming = 0 if on and active not in ("busy", "frames", "moving") and not idle else coming + 1
            moving = 0 if on and active not in WAITING else moving + 1
            if skips:
                reached["skips"] += 1
                queued, coming = (since and since + ENDING for since in (queued, coming))
            for name, since in (("drained", queued), ("ending", min(coming, disabled))):
                now = stage.get(name)
                reached[name] += now
                seen = busy_for == 1  # a clock on its way
                least = 8 if name == "ending" else 16
                assert not now or seen or since > least, f"{name} {since} clocks after {active}"
                assert now or since < SETTLED + 4, f"not {name} {since} clocks after the last activity"
            assert not stage.get("ending") or coming > ENDING or busy_for == 1
            # Quiet is a promise that a simulation relies on.
            quiet = stage.get("quiet")
            reached["quiet"] += quiet
            reached["owed"] += quiet and owed
            outage = active == "outages" and on and busy_for > 1
            assert not quiet or moving >= (SETTLED if outage else CALM)
            if not owed:
                assert quiet or moving < (SETTLED if active == "outages" else CALM) + 4, f"not quiet: {active}"
            elif quiet and busy_for > 1:
                assert active in WAITING, "something else than the host is waited for"
                assert active != "frames" or coming > ENDING + CALM
            elif quiet:
                assert (not busy_for and queued <= 2) or busy_for == 1
    assert all(reached.values()), reached


@functools.cache
def simulator():
    return component(Activity())


@pytest.mark.parametrize("seed", seeds(2))
def test_watches(seed):
    run(simulator(), __name__, "watches", seed)
