"""Two wires: every byte a constant time after its first edge, up to the limits of rate; errors counted, after the bytes
before them."""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.input.two_wire import TwoWire

from ..harness import receiver
from ..harness.resets import same_as_fresh
from ..harness.senders import CLOCK, DATA, SELECT, Wires, spi


def receive(wires, span, clocks, falling=0, selected=False):
    names = {"clock": CLOCK, "data": DATA, **({"select": SELECT} if selected else {})}
    # An idle high clock has risen after power-up.
    return receiver.receive(TwoWire(selected), {"span": span, "falling": falling},
                            {name: wires.sampled(clocks, wire) for name, wire in names.items()}, idle=3 * span)


def clock_of(time):
    """The clock that first sees a change."""
    return -(-time // 1)


@pytest.mark.parametrize("mode", range(4))
def test_constant_latency_whatever_the_rate(mode):
    """Periods from 2.2 clocks to a seventh of the span, with and without gaps."""
    rng = random.Random(mode)
    span = 150
    wires, at, written = Wires([mode >> 1, 0, 0]), Fraction(20), []
    for _ in range(25):
        period = Fraction(rng.randrange(105, 211), 10)          # (span + 1) / 15 to (span - 2) / 7
        if rng.random() < 0.3:
            period = Fraction(rng.randrange(22, 105), 10)
            at += 2 * span                                      # one fast byte at a time
        data = [rng.getrandbits(8) for _ in range(rng.randrange(1, 6) if period > 10 else 1)]
        firsts, at = spi(wires, at + Fraction(rng.randrange(100), 100), period, data, mode,
                         gap=rng.choice((0, 0, rng.randrange(40))))
        at += 2 * span if period <= 10 else 0
        written += [(clock_of(first) + span + 1, byte) for first, byte in zip(firsts, data, strict=True)]
    came, faults, _, _ = receive(wires, span, int(at) + 400, falling=mode in (1, 2))
    assert faults == []
    assert came == written


@pytest.mark.parametrize(("span", "period", "good"), [
    (72, Fraction(10), True), (71, Fraction(10), True), (70, Fraction(10), False), (149, Fraction(10), True),
    (150, Fraction(10), True), (151, Fraction(10), False), (152, Fraction(10), False),
    # The fastest clock that two samples per period can follow.
    (16, Fraction(2), True), (29, Fraction(2), True), (33, Fraction(2), False)])
def test_limits(span, period, good):
    """The least and the largest span for bytes that follow each other directly, on a clock without jitter."""
    data = [0x5a, 0xc3, 0x0f, 0xf0, 0x81] * 4
    wires = Wires()
    firsts, end = spi(wires, 50, period, data)
    came, faults, _, _ = receive(wires, span, int(end) + 4 * span + 50)
    if good:
        assert faults == []
        assert came == [(clock_of(first) + span + 1, byte) for first, byte in zip(firsts, data, strict=True)]
    else:
        assert faults
        assert len(came) < len(data)


def test_incomplete_byte_is_a_fault_at_its_time_and_the_next_one_is_whole():
    for bits in (1, 4, 7):
        wires = Wires()
        firsts, end = spi(wires, 40, 8, [0x12, 0xff], bits=bits)
        assert len(firsts) == 2
        again, end = spi(wires, end + 200, 8, [0x34])
        came, faults, pauses, busy = receive(wires, 80, int(end) + 400)
        assert came == [(clock_of(firsts[0]) + 81, 0x12), (clock_of(again[0]) + 81, 0x34)]
        assert faults == [clock_of(firsts[1]) + 82]
        # No byte begins for two spans.
        assert pauses[:2] == [(0, 1), (clock_of(firsts[0]) + 1, 0)]
        assert pauses[-1] == (clock_of(again[0]) + 162, 1)
        assert busy[-1] == 0
        assert busy[clock_of(firsts[0]) + 1] == 1


def test_pause_after_two_spans():
    wires = Wires()
    (first,), end = spi(wires, 40, 8, [0x12])
    _, _, pauses, busy = receive(wires, 80, int(end) + 400)
    begin = clock_of(first)
    assert pauses == [(0, 1), (begin + 1, 0), (begin + 162, 1)]
    assert [clock for clock, level in enumerate(busy) if level] == list(range(begin + 1, begin + 161))


def test_chip_select():
    """Edges while it is high have no effect; a byte that it interrupts is a fault, after the byte before."""
    wires = Wires([0, 0, 1])
    _, end = spi(wires, 30, 6, [0xaa, 0x55])        # not selected
    firsts, end = spi(wires, end + 20, 6, [0x81, 0x7e, 0xf3], select=True, bits=3)     # while 0x7e waits
    second, end = spi(wires, end + 3, 6, [0x42], select=True)
    came, faults, pauses, busy = receive(wires, 85, int(end) + 300, selected=True)
    assert came == [(clock_of(first) + 86, byte)
                    for first, byte in zip([*firsts[:2], *second], [0x81, 0x7e, 0x42], strict=True)]
    assert len(faults) == 1
    assert came[1][0] < faults[0] < came[2][0]
    assert pauses[0] == (0, 1)
    assert pauses[-1][1] == 1
    assert pauses[-1][0] >= came[-1][0]
    assert busy[-1] == 0


@pytest.mark.parametrize("bits", [1, 3, 7])
def test_a_pause_by_chip_select_comes_after_the_fault(bits):
    """Of a byte that it interrupts, whether another one waits or not."""
    for data in ([0x81], [0x7e, 0x81]):
        wires = Wires([0, 0, 1])
        _, end = spi(wires, 30, 6, data, select=True, bits=bits)
        came, faults, pauses, _ = receive(wires, 85, int(end) + 300, selected=True)
        assert len(came) == len(data) - 1
        assert len(faults) == 1
        assert [level for _, level in pauses] == [1, 0, 1]
        assert pauses[-1][0] == faults[0] + 2


def test_selected_again_before_the_byte_is_delivered():
    """That was a pause, which is told after the byte before it; and none is told between bytes without one."""
    wires = Wires([0, 0, 1])
    _, end = spi(wires, 30, 6, [0x81, 0x7e], select=True)
    again, end = spi(wires, end - 4, 6, [0x42, 0x24], select=True)
    came, faults, pauses, _ = receive(wires, 85, int(end) + 300, selected=True)
    assert [byte for _, byte in came] == [0x81, 0x7e, 0x42, 0x24]
    assert faults == []
    assert int(again[0]) < came[1][0]
    rises = [clock for clock, level in pauses if level]
    assert rises[:2] == [0, came[1][0] + 1]
    assert rises[2] > came[3][0]


def test_a_node_that_is_always_selected_pauses_after_two_spans():
    wires = Wires([0, 0, 0])
    (first,), end = spi(wires, 40, 8, [0x12])
    came, faults, pauses, _ = receive(wires, 80, int(end) + 400, selected=True)
    begin = clock_of(first)
    assert (len(came), faults) == (1, [])
    assert pauses == [(0, 1), (begin + 1, 0), (begin + 162, 1)]


def test_too_fast_bytes_leave_order_and_are_counted():
    """Of bytes that end while the one before waits, that one comes, then a fault for them, and none is wrong."""
    data = list(range(1, 40))
    wires = Wires()
    _, end = spi(wires, 40, 3, data)
    came, faults, _, _ = receive(wires, 100, int(end) + 400)
    assert faults
    values = [byte for _, byte in came]
    assert values == sorted(set(values) & set(data))
    assert len(faults) == len(came)
    assert [fault - clock for fault, (clock, _) in zip(faults, came, strict=True)] == [1] * len(came)


@pytest.mark.parametrize("selected", [False, True])
def test_reset(selected):
    same_as_fresh(lambda: TwoWire(selected), settings={"span": lambda rng: rng.randrange(8, 40)})
