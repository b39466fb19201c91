"""Millions of writes against a host in logic: order of data and head, every beat once, and a host that stalls."""

import functools

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import Timer
from hypermon.hdl.transport.pcie.ring import Ring
from hypermon.hdl.transport.pcie.ultrascale_plus import UltrascalePlus

from ...benches.case import CASE, rng
from ...formal.prover import broken
from ...harness.runner import component, run, seeds
from .host_in_logic import ERRORS, HostInLogic

PERIOD = 4000
#: 100 ms at 250 MHz, and clocks from an event to the next one.
STALL, EVENT = 25_000_000, 250


async def _started(dut, **settings):
    for name, value in {"seed": CASE["seed"] * 0x9e3779b97f4a7c15 % (1 << 64) | 1, "comes": 256, "ends": 1,
                        "taken": 256, "waits": 0, "lacks": 0, "drains": 256, "tells": 256, "every": 0, "pages": 0,
                        "mps": 0, "flush": 200, **settings}.items():
        getattr(dut, name).value = value
    dut.rst.value = 1
    Clock(dut.clk, PERIOD, "step").start()
    await Timer(10 * PERIOD, "step")
    dut.rst.value = 0


def _figures(dut):
    found = [text for k, text in enumerate(ERRORS) if int(dut.errors.value) >> k & 1]
    assert not found, found
    return {name: int(getattr(dut, name).value) for name in ("offered", "delivered", "written", "reported", "blocked")}


@cocotb.test()
async def traffic(dut):
    """Random chances of everything, which change every 20,000 clocks, until enough has been written; then all that was
    offered is delivered."""
    choose = rng()
    await _started(dut, pages=choose.randrange(3), mps=choose.randrange(3), flush=choose.choice([20, 200, 2500]))
    figures = _figures(dut)
    while figures[CASE["of"]] < CASE["count"]:
        for name, values in (("comes", (20, 128, 256)), ("ends", (1, 30, 128)), ("taken", (40, 200, 256)),
                             ("waits", (0, 40, 200)), ("lacks", (0, 0, 60)), ("drains", (60, 256, 256)),
                             ("tells", (2, 20, 256))):
            getattr(dut, name).value = choose.choice(values)
        await Timer(20_000 * PERIOD, "step")
        assert _figures(dut)["offered"] > figures["offered"], "it moves"
        figures = _figures(dut)
    dut.comes.value = dut.lacks.value = 0
    for name in ("drains", "tells", "taken"):
        getattr(dut, name).value = 256
    await Timer(40_000 * PERIOD, "step")
    figures = _figures(dut)
    dut._log.warning("%s", figures)
    assert figures["delivered"] == figures["offered"]
    assert figures["blocked"] > 0


@cocotb.test()
async def stall(dut):
    """The host consumes nothing for 100 ms, at a beat for each of a million events a second: the ring of 4 MiB takes
    all; nothing waits before it for longer than a few clocks."""
    await _started(dut, pages=10, mps=1, every=EVENT - 1, ends=3, drains=0, flush=2500)
    await Timer(STALL * PERIOD // 100 * CASE["hundredths"], "step")
    figures = _figures(dut)
    dut._log.warning("%s", figures)
    assert figures["offered"] >= CASE["hundredths"] * 990
    assert figures["delivered"] == 0
    assert figures["blocked"] == 0, "no back-pressure: the store stays empty, and the gate open"
    dut.drains.value, dut.comes.value = 256, 0
    await Timer(2 * figures["offered"] * PERIOD + 20_000 * PERIOD, "step")
    figures = _figures(dut)
    assert figures["delivered"] == figures["offered"]


@functools.cache
def simulator():
    return component(HostInLogic(), "pcie_host")


def test_order_short():
    run(simulator(), __name__, "traffic", 0, of="reported", count=20_000)


def test_broken_orders_are_noticed():
    """Reports that may pass data, and a ring that reports what it has only planned."""
    relaxed = broken(UltrascalePlus, ("Const(_WRITE, 4), Const(0, 49)", "Const(_WRITE, 4), Const(1 << 46, 49)"))
    early = broken(Ring, ("Cat(Const(0, 4), state.written,", "Cat(Const(0, 4), state.written + 1,"))
    for model in (HostInLogic(adapter=relaxed), HostInLogic(ring=early)):
        with pytest.raises(AssertionError, match="the head is before its data"):
            run(component(model, "pcie_host_broken"), __name__, "traffic", 0, of="reported", count=20_000)


@pytest.mark.slow
def test_order():
    run(simulator(), __name__, "traffic", 1, of="reported", count=1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(20, fast=0))
def test_traffic(seed):
    run(simulator(), __name__, "traffic", seed, of="written", count=1_000_000)


@pytest.mark.parametrize("hundredths", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_stall(hundredths):
    run(simulator(), __name__, "stall", 0, hundredths=hundredths)
