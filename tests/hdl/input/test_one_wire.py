"""One wire: bytes at a constant latency, at every rate and with wrong clocks; what is no byte is a fault."""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.input.one_wire import OneWire
from hypermon.hdl.layout import Front, front_latency, front_period

from ..harness import receiver
from ..harness.resets import same_as_fresh
from ..harness.senders import CLOCK, Wires, uart

#: Clocks from the delivery of a byte to the stamp, less those of a five-wire port; see test_front_ends.
_LATER = 7


def receive(wires, period, clocks):
    return receiver.receive(OneWire(), {"period": period}, {"level": wires.sampled(clocks, CLOCK)})


@pytest.mark.parametrize("baud", [12_000_000, 11_059_200, 5_000_000, 3_000_000, 921_600, 100_000])
@pytest.mark.parametrize("error", [-2, 0, 2])
def test_rates_with_wrong_clocks(baud, error):
    """At 100 MHz. Bytes that follow each other directly, and others."""
    rng = random.Random(baud + error)
    period, bit = front_period(100_000_000, baud), Fraction(100_000_000, baud) * (1 + Fraction(error, 100))
    wires, at = Wires([1, 0, 0]), 12 * bit
    written = []
    for _ in range(2 if baud < 500_000 else 8 if baud < 2_000_000 else 40):
        data = [rng.choice((0, 255, 0x55, rng.getrandbits(8))) for _ in range(rng.randrange(1, 4))]
        begins, at = uart(wires, at, bit, data, gap=rng.choice((0, Fraction(rng.randrange(1000), 70))))
        written += zip(begins, data, strict=True)
        at += Fraction(rng.randrange(1000), 37)
    came, faults, _, _ = receive(wires, period, int(at + 14 * bit))
    assert faults == []
    late = front_latency(Front.UART, period) - _LATER
    assert came == [(-(-begin // 1) + late, byte) for begin, byte in written]


def test_latency_is_nine_and_a_half_bits():
    for baud in (12_000_000, 1_000_000, 333_333, 100_000):
        period = front_period(100_000_000, baud)
        assert abs(front_latency(Front.SWO, period) - _LATER - 9.5 * 1e8 / baud) <= 1.5


def test_limits_of_rates():
    assert front_period(100_000_000, 12_500_000) == 8 << 8
    assert front_period(100_000_000, 763) < 1 << 25
    for baud in (12_600_000, 762, 0, -1):
        with pytest.raises(ValueError, match=f"receives at 763 to 12500000 baud, not {baud}"):
            front_period(100_000_000, baud)


@pytest.mark.parametrize("error", [-9, 9])
def test_a_clock_that_is_too_wrong_is_noticed(error):
    """By the stop bit: of bytes whose last bit or next start bit is in its place."""
    bit = 20 * (1 + Fraction(error, 100))
    data = [0x00] * 5 if error > 0 else [0x55, 0x2a] * 5
    wires = Wires([1, 0, 0])
    _, at = uart(wires, 300, bit, data, gap=0)
    came, faults, _, _ = receive(wires, 20 << 8, int(at) + 300)
    assert faults
    assert len(came) < len(data)


def test_faults():
    """A short low level, a stop bit that is low, a line that stays low: one fault each, and the next byte is whole."""
    wires, bit = Wires([1, 0, 0]), 16
    for at in (300, 330):
        wires.set(at, CLOCK, 0)
        wires.set(at + 6, CLOCK, 1)                     # less than half a bit
    (one,), at = uart(wires, 400, bit, [0x96])
    _, at = uart(wires, at + 40, bit, [0x5a], stop=0)
    (two,), at = uart(wires, at + 40, bit, [0x69])
    wires.set(at + 40, CLOCK, 0)                        # a break of 100 bits
    wires.set(at + 40 + 100 * bit, CLOCK, 1)
    (three,), at = uart(wires, at + 80 + 100 * bit, bit, [0xa5])
    came, faults, _, busy = receive(wires, bit << 8, int(at) + 300)
    assert [byte for _, byte in came] == [0x96, 0x69, 0xa5]
    assert len({clock - begin for (clock, _), begin in zip(came, (one, two, three), strict=True)}) == 1
    assert len(faults) == 4
    assert faults[1] < came[0][0] < faults[2] < came[1][0] < faults[3] < came[2][0]
    assert not any(busy[faults[3] + 5:faults[3] + 60 * bit]), "no clocks are counted in a break"


def test_pause():
    """After ten idle bits; a line that has never been high is not idle."""
    wires, bit = Wires([0, 0, 0]), 16
    wires.set(200, CLOCK, 1)
    (begin,), at = uart(wires, 600, bit, [0x0f])
    (again,), at = uart(wires, at + 8 * bit, bit, [0x0f])
    _, faults, pauses, busy = receive(wires, bit << 8, int(at) + 400)
    assert faults == []
    first, back, last = pauses[1:]
    assert pauses[0] == (0, 0)
    assert first[1] == 1
    assert abs(first[0] - 200 - 10 * bit) <= 3
    assert back == (begin + 1, 0)
    assert last[1] == 1
    assert abs(last[0] - (again + 9.5 * bit) - 10 * bit) <= 3
    assert busy[100] == 0
    assert busy[250] == 1
    assert busy[first[0] + 5] == 0
    assert busy[-1] == 0


def test_reset():
    """A line whose level changes after 12 clocks in the mean."""
    def line():
        return lambda traffic: {"level": traffic.values.get("level", 0) ^ (traffic.rng.random() < 1 / 12)}

    same_as_fresh(OneWire, settings={"period": lambda rng: rng.randrange(8 << 8, 12 << 8)}, player=line)
