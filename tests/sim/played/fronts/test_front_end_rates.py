"""Front ends at their rates: 100,000 bytes at each, with clocks that are wrong by 2 %, at random phases; none is wrong,
and each one has the time of its first edge."""

import random
from fractions import Fraction
from itertools import product

import pytest
from hypermon.hdl.layout import Front, Geometry, Sink, front_span

from tests.sim.fronted import CLOCK, Node, differences, go

HZ = 10**12 // CLOCK
BUFFERS = {"node_depth": 64, "vector_depth": 512, "frame_depth": 16, "sinks": tuple(Sink), "compact_depth": 1024,
           "store_depth": 1024}
UARTS = Geometry(8, **BUFFERS, fronts=(Front.UART,) * 8)
#: Each SPI mode with both orders of the bits, without and with chip select.
CLOCKED = Geometry(16, **BUFFERS, fronts=(Front.TWO_WIRE,) * 8 + (Front.SELECTED,) * 8)


def burst(node, left):
    """Up to eight bytes, and a pause after them; returns how many bytes are left."""
    count = min(left, node.rng.randrange(1, 9))
    node.single(count, gap=node.rng.choice((0, 0, node.rng.randrange(20 * CLOCK))))
    # Now and then longer than two spans of ten periods; and the link has time for the items of all nodes.
    node.at += node.rng.randrange(4 * CLOCK, max(40 * int(node.period), 5000 * CLOCK)) + node.rng.randrange(CLOCK)
    return left - count


def sent(nodes, count):
    for node in nodes:
        left = count
        while left:
            left = burst(node, left)


def uart(baud, count, seed):
    """Half of the nodes send 2 % too slowly, half of them 2 % too fast."""
    rng = random.Random(seed)
    nodes = [Node(Front.UART, Fraction(10**12, baud) * Fraction(98 + 4 * (n % 2), 100), rng) for n in range(8)]
    sent(nodes, count)
    return differences(go(nodes, UARTS, uart_baud=baud, events=0xff, words=0xff, seed=seed), nodes)


def serial(hertz, count, seed):
    rng = random.Random(seed)
    nodes = [Node(front, Fraction(10**12, hertz), rng, mode, lowest)
             for front, mode, lowest in product((Front.TWO_WIRE, Front.SELECTED), range(4), (False, True))]
    sent(nodes, count)
    run = go(nodes, CLOCKED, span=front_span(HZ, hertz), events=0xffff, words=0xffff, seed=seed)
    return differences(run, nodes)


UART_RATES, SERIAL_RATES = (100_000, 921_600, 3_000_000, 12_000_000), (100_000, 1_000_000, 8_000_000, 25_000_000)


@pytest.mark.parametrize(("kind", "rate", "count", "seed"), [
    *((uart, baud, 250, 1) for baud in UART_RATES[2:]),
    *((serial, hertz, 100, 2) for hertz in (SERIAL_RATES[1], SERIAL_RATES[3]))])
def test_rates(tools, kind, rate, count, seed):
    assert kind(rate, count, seed) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("kind", "rate", "count", "seed"), [
    *((uart, baud, 6_250, 10) for baud in UART_RATES), *((serial, hertz, 1_600, 20) for hertz in SERIAL_RATES)])
def test_rates_with_100_000_bytes(tools, kind, rate, count, seed, part):
    """At each rate. UARTs: 50,000 per part, half of them too slow, half too fast; serial clocks: 25,600 per part."""
    assert kind(rate, count, seed + part) == {0, 1}
