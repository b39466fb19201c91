"""Serial line: bytes at an exact rate out; in, at any rate the other side may have; no byte from what is none."""

import random
from fractions import Fraction

import pytest
from amaranth.sim import Simulator
from hypermon.hdl.transport.uart.line import UartReceiver, UartTransmitter

from ...harness.rejects import rejects
from ...harness.resets import same_as_fresh

CLOCK = 100_000_000
RATES = [3_000_000, 12_000_000, 7_777_777]


def levels(data, bit, choose, pauses=0.0):
    """Time in clocks, and level of the line from then on, of bytes sent at ``bit`` clocks a bit; and the end."""
    at, changes = Fraction(choose.randrange(1000), 1000) + 30, []
    for byte in data:
        for level in (0, *(byte >> k & 1 for k in range(8)), 1):
            changes.append((at, level))
            at += bit
        if choose.random() < pauses:
            at += choose.randrange(100)
    return changes, at


def received(baud, changes, end):
    """Bytes that come out of a line."""
    dut, came = UartReceiver(CLOCK, baud), []

    async def bench(ctx):
        waiting, clock = list(changes), 0
        while clock < end + 40:
            while waiting and waiting[0][0] <= clock:
                ctx.set(dut.rx, waiting.pop(0)[1])
            *_, valid, byte = await ctx.tick().sample(dut.o.valid, dut.o.p)
            if valid:
                came.append(byte)
            clock += 1
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return came


@pytest.mark.parametrize("baud", RATES)
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_receives_at_any_rate_it_must(baud, side):
    choose = random.Random(baud + side)
    bit = Fraction(CLOCK, baud)
    tolerance = (Fraction(1, 2) - 3 / bit) / 10
    data = choose.randbytes(30 if baud == RATES[0] else 60) + b"\0\xff\x55\xaa\0"
    changes, end = levels(data, bit / (1 + side * tolerance), choose, pauses=0.2)
    assert bytes(received(baud, changes, end)) == data


def test_what_is_no_byte():
    choose, baud = random.Random(1), RATES[1]
    bit = Fraction(CLOCK, baud)

    def sent(data, at):
        changes, end = levels(data, bit, choose)
        return [(when + at, level) for when, level in changes], end + at

    first, at = sent(b"\x11", 0)
    spike = [(at + 20, 0), (at + 20 + bit / 4, 1)]                       # over in the middle of a start bit
    second, at = sent(b"\x22", at + 60)
    held = [(at + 20, 0), (at + 20 + 35 * bit, 1)]                       # a break
    third, at = sent(b"\x33", at + 20 + 36 * bit)
    unstopped = [*sent(b"\x44", at)[0][:-1], (at + 31 + 9 * bit, 0), (at + 30 + 11 * bit, 1)]
    last, at = sent(b"\x55", at + 12 * bit)
    assert received(baud, first + spike + second + held + third + unstopped + last, at) == [0x11, 0x22, 0x33, 0x55]


@pytest.mark.parametrize("baud", RATES)
@pytest.mark.parametrize("pauses", [False, True])
def test_transmits(baud, pauses):
    dut, choose = UartTransmitter(CLOCK, baud), random.Random(baud)
    data = choose.randbytes(30) + b"\0\xff"
    falls, line = [], []

    async def give(ctx):
        for byte in data:
            while pauses and choose.random() < 0.95:
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p, byte)
            while True:
                *_, taken = await ctx.tick().sample(dut.i.ready)
                if taken:
                    falls.append(len(line))
                    break
            ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        while True:
            *_, level = await ctx.tick().sample(dut.tx)
            line.append(level)
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(give)
    simulator.add_testbench(watch, background=True)
    simulator.run()
    simulator.run_until(1e-8 * (len(line) + 12 * CLOCK // baud))
    # Read as the other side would: in the middle of bits, by a clock of its own.
    bit, at, came = Fraction(CLOCK, baud), 0, []
    while 0 in line[int(at):]:
        begin = line.index(0, int(at))
        bits = [line[int(begin + (k + Fraction(1, 2)) * bit)] for k in range(10)]
        assert (bits[0], bits[9]) == (0, 1)
        came.append(sum(level << k for k, level in enumerate(bits[1:9])))
        at = begin + Fraction(19, 2) * bit
    assert bytes(came) == data
    if not pauses:
        assert abs((falls[-1] - falls[1]) - (len(data) - 2) * 10 * bit) <= 1, "bytes without a pause are on time"


def test_a_rate_that_the_clock_cannot_make_is_named():
    rejects(lambda: UartReceiver(CLOCK, 12_500_001), 12_500_001)
    rejects(lambda: UartTransmitter(CLOCK, 0), 0)


def test_reset():
    """A line whose level changes after ten clocks in the mean, and stays low."""
    def line():
        return lambda traffic: {"rx": traffic.values.get("rx", 1) ^ (traffic.rng.random() < 0.1)}

    same_as_fresh(lambda: UartReceiver(8, 1), player=line, after=300)
    same_as_fresh(lambda: UartTransmitter(33, 4), episodes=8, after=300)
