"""On-chip port: what a store writes leaves as writes of a port, once, in order, and a synchronizer sees each."""

import functools

import cocotb
import pytest
from hypermon.hdl.onchip_port import STORE_NIBBLE, STORE_WORD, OnchipPort

from .benches.case import CASE, rng
from .benches.cocotb_stage import Stage
from .harness.runner import component, run, seeds
from .harness.stage import refuses


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def stores(dut):
    """The port is watched as a board samples it: at each rising strobe, the data of the sample before."""
    stage, choose, bits, hold = Stage(dut), rng(), CASE["bits"], CASE["hold"]
    await stage.start(bus_cyc=0, bus_stb=0, bus_we=0, bus_adr=0, bus_sel=0, bus_dat_w=0)
    busy = 1.0 if CASE["seed"] == 0 else choose.choice([0.05, 0.9])
    due, seen, asked, left, before, since, idle_for = [], [], None, 120, (0, 0), 0, 0
    while left or len(seen) < len(due):
        if asked is None and left and choose.random() < busy:
            asked = {"bus_we": choose.choice([1, 1, 1, 0]), "bus_adr": choose.choice([STORE_NIBBLE, STORE_WORD]),
                     "bus_sel": choose.choice([0xf, 0xf, 1, choose.randrange(16)]),
                     "bus_dat_w": choose.getrandbits(32)}
        stage.put(**(asked or {"bus_we": choose.getrandbits(1)}), bus_cyc=int(asked is not None),
                  bus_stb=int(asked is not None))
        await stage.settle()
        ack, err = stage.get("bus_ack"), stage.get("bus_err")
        if asked is None:
            assert (ack, err) == (0, 0)
        elif ack or err:
            word = asked["bus_adr"] == STORE_WORD
            legal = not asked["bus_we"] or (asked["bus_sel"] == 0xf if word else asked["bus_sel"] & 1)
            assert (ack, err) == ((1, 0) if legal else (0, 1))
            if not asked["bus_we"]:
                assert stage.get("bus_dat_r") == (idle_for > 0), "1 when everything has left"
            elif legal:
                count = 32 // bits if word else 1
                due += [asked["bus_dat_w"] >> bits * k & (1 << bits) - 1 for k in range(count)]
            asked, left = None, left - 1
        await stage.clock()
        now = stage.get("strobe"), stage.get("data")
        if now[0] != before[0]:
            assert since >= hold, "each level lasts"
            if now[0]:
                assert now[1] == before[1], "data stand a clock before the strobe"
                seen.append(now[1])
                assert seen == due[:len(seen)]
            since = 0
        since += 1
        idle_for = 0 if len(seen) < len(due) or now[0] else idle_for + 1
        before = now
    assert seen == due
    if busy == 1:
        assert stage.now <= 2 * hold * len(due) + 120 + 4, "a write takes two levels, and no more"


@functools.cache
def simulator(bits, hold):
    return component(OnchipPort(bits, hold), f"onchip_port{bits}_{hold}")


@pytest.mark.parametrize("seed", seeds(6, fast=2))
@pytest.mark.parametrize(("bits", "hold"), [
    (4, 1), pytest.param(4, 5, marks=pytest.mark.slow), pytest.param(8, 3, marks=pytest.mark.slow)])
def test_stores(bits, hold, seed):
    run(simulator(bits, hold), __name__, "stores", seed, bits=bits, hold=hold)


def test_a_time_that_is_none():
    assert refuses(OnchipPort, 4, 0) == "hold must be at least 1, not 0"
