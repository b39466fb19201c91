"""Front ends on a whole board: exact items at constant latencies, at the fastest and slowest rates and with wrong
clocks; garbage is counted, and never a whole event but for what a check lets pass."""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.layout import REGISTERS, Front, Geometry, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.hdl.harness.senders import event_bytes, itm_bytes
from tests.sim.fronted import CLOCK, Node, differences, go, stimulus
from tests.sim.plain_host import finish, play, start, write

KINDS = (Front.TWO_WIRE, Front.UART, Front.SWO, Front.SELECTED)
BOARD = Geometry(8, node_depth=64, vector_depth=512, frame_depth=16, sinks=tuple(Sink), compact_depth=1024,
                 store_depth=1024, fronts=(*KINDS, Front.TWO_WIRE, Front.UART, Front.SWO))


@pytest.fixture(scope="module")
def fronted(tools):
    """Seven nodes with front ends of every kind, and one with a port."""
    from hypermon.sim.virtual.build import library

    library(BOARD)
    return BOARD


def test_registers():
    assert [REGISTERS[name].offset for name in ("FRONT_SPAN", "UART_PERIOD", "SWO_PERIOD", "FRONTS_0")] == [
        0x1c0, 0x1c4, 0x1c8, 0x1d0]


def nodes_of(rng, spi_period, uart_period, swo_period, error=0):
    """A node of each kind; two of most kinds, one whose clock is slow by so many per cent and one whose clock is fast,
    the second with another SPI mode."""
    periods = {Front.UART: uart_period, Front.SWO: swo_period}
    return [Node(front, periods.get(front, spi_period) * (1 + Fraction(error if n < len(KINDS) else -error, 100)), rng,
                 mode=3 if n == 4 else 0) for n, front in enumerate(BOARD.fronts)]


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("skip", [True, False])
def test_exact_events(fronted, seed, skip):
    rng = random.Random(1)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 100, CLOCK * 50, error=1)
    for node in nodes:
        for _ in range(40):
            node.event(gap=rng.choice((0, 0, 100 * rng.randrange(2000))))
            node.idle(rng.choice((0, 3, 400, 20_000)))
    late = differences(go(nodes, fronted, swo_baud=2_000_000, seed=seed, skip=skip), nodes)
    assert late == ({0} if seed is None else {0, 1})


def test_skipping_changes_nothing(fronted):
    rng = random.Random(2)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 100, CLOCK * 50)
    for node in nodes:
        for _ in range(20):
            node.event()
            node.idle(rng.randrange(30_000))
        node.send([0x55], **({"stop": 0} if node.front in (Front.UART, Front.SWO) else {"bits": 5}))
        node.idle(30_000)
        node.event()
    streams = [go(nodes, fronted, swo_baud=2_000_000, skip=skip).stream for skip in (False, True)]
    assert streams[0] == streams[1]


def fastest(fronted, error, seed, count):
    """12 Mbaud, and an SPI clock of 40 MHz at a board of 100 MHz: one event of one byte after the other."""
    rng, bit = random.Random(seed), Fraction(10**12, 12_000_000)
    nodes = nodes_of(rng, Fraction(25 * CLOCK, 10), bit, bit, error)
    for node in nodes:
        for _ in range(count):
            node.event(size=1)
    return differences(go(nodes, fronted, span=24, uart_baud=12_000_000, swo_baud=12_000_000, seed=3), nodes)


@pytest.mark.parametrize("error", [0, 2])
def test_fastest_rates(fronted, error):
    assert fastest(fronted, error, error, 2000) == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("error", [2, -2])
@pytest.mark.parametrize("part", range(10))
def test_fastest_rates_with_100_000_items(fronted, error, part):
    """Of each front end, 5,000 per part and sign of the error."""
    assert fastest(fronted, error, part, 5_000) == {0, 1}


def slowest(fronted, error, count, seed=4):
    """100 kbaud, and an SPI clock of 15.4 kHz: bytes of which each is two items; a fifth as many over SPI."""
    nodes = nodes_of(random.Random(seed), 6500 * CLOCK, 1000 * CLOCK, 1000 * CLOCK, error)
    for node in nodes:
        node.raw(count // 5 if node.front in (Front.TWO_WIRE, Front.SELECTED) else count)
    return differences(go(nodes, fronted, span=65_000, uart_baud=100_000, swo_baud=100_000, events=0, seed=4), nodes)


def test_slowest_rates(fronted):
    assert slowest(fronted, 2, 40) <= {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("error", [2, -2])
@pytest.mark.parametrize("part", range(10))
def test_slowest_rates_with_100_000_items(fronted, error, part):
    """Of UART and SWO; 20,000 of two wires, and 10,000 of those with a chip select."""
    assert slowest(fronted, error, 1_250, part) <= {0, 1}


@pytest.mark.parametrize("seed", range(3))
def test_garbage(fronted, seed):
    """Random levels on all wires, then a pause and good events: these come whole, and what was garbage is counted."""
    rng = random.Random(seed)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 16, CLOCK * 16)
    last = []
    for node in nodes:
        for _ in range(rng.choice((3000, 6000))):
            node.at += rng.randrange(1, 20 * CLOCK)
            node.wires.set(node.at, rng.randrange(3), rng.getrandbits(1))
        for wire, level in enumerate(node.wires.initial):
            node.wires.set(node.at + 20 * CLOCK, wire, level)
        node.idle(3000)
        last.append(node.at)
        for _ in range(10):
            node.event()
    # Of events that are open when the garbage ends, the time-out comes in the pause.
    run = go(nodes, fronted, uart_baud=6_250_000, swo_baud=6_250_000, timeout=1000, seed=seed)
    for n, node in enumerate(nodes):
        mine = [item for item in run.items if item.node == n]
        after = [item for item in mine if item.window * CLOCK > last[n]]
        before = [item for item in mine if item.window * CLOCK <= last[n]]
        assert [item.nibbles for item in after] == [nibbles for _, nibbles in node.items], f"node {n}"
        assert run.census[n]["rejected"] > 30
        if node.front is not Front.SWO:
            whole = [item for item in before if not item.missing]
            assert len(whole) <= 2, "1 of 4096 per byte"
        assert run.census[n]["accepted"] == len(mine)
    assert run.lost == 0


def test_an_interrupted_event_ends_with_the_time_out(fronted):
    """Its item is aborted, it counts as rejected, and the next event is whole."""
    rng = random.Random(5)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 16, CLOCK * 16)
    for node in nodes:
        data = itm_bytes(3, b"\x11\x22\x33\x44") if node.front is Front.SWO else event_bytes(b"\x03\x11\x22\x33\x44")
        node.send(data[:4])
        node.idle(4000)
        node.event()
    run = go(nodes, fronted, uart_baud=6_250_000, swo_baud=6_250_000, timeout=1500)
    for n, node in enumerate(nodes):
        cut, good = (item for item in run.items if item.node == n)
        assert cut.nibbles[:5] == bytes([5, 3, 0, 1, 1])
        assert cut.missing == (2 if node.front is Front.SWO else 6)
        assert (good.nibbles, good.missing) == (node.items[0][1], 0)
        assert run.census[n]["rejected"] == 1


def test_errors_in_the_middle_of_an_event(fronted):
    """A stop bit that is low, a clock that is missing, a bit that is wrong: the event is aborted."""
    rng = random.Random(6)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 16, CLOCK * 16)
    for node in nodes:
        node.event()
        data = itm_bytes(3, b"\x11\x22\x33\x44") if node.front is Front.SWO else event_bytes(b"\x03\x11\x22\x33\x44")
        if node.front in (Front.UART, Front.SWO):
            node.send(data[:4], stop=0)
            node.send(data[4:])
        elif node.front is Front.SELECTED:
            node.send(data[:4], bits=7)
            node.send(data[4:])
        else:
            node.send([*data[:4], data[4] ^ 0x20, *data[5:]])
        node.idle(1000)
        node.event()
    run = go(nodes, fronted, uart_baud=6_250_000, swo_baud=6_250_000)
    for n, node in enumerate(nodes):
        first, cut, last = (item for item in run.items if item.node == n)
        assert (first.nibbles, last.nibbles) == (node.items[0][1], node.items[1][1])
        assert first.missing == last.missing == 0
        assert cut.missing >= 2
        assert cut.nibbles[:3] == bytes([5, 3, 0])
        assert run.census[n]["rejected"] >= 1


def test_stop_and_start_again(fronted):
    """After an event that was not completed, a new run begins with nothing of it."""
    rng = random.Random(8)
    nodes = nodes_of(rng, 12 * CLOCK, CLOCK * 100, CLOCK * 50)
    for node in nodes:
        node.event()
        node.send(itm_bytes(3, b"\x11\x22")[:2] if node.front is Front.SWO else event_bytes(b"\x11\x22\x33")[:3])
    played = stimulus(nodes)
    with VirtualLink(played, fronted) as link:
        write(link, "EVENT_NODES", 0x7f)
        run = play(link, played, Window.CLOCK, sink=Sink.EXTENDED)
        assert sum(not item.missing for item in run.items) == len(nodes)
        again = play(link, Stimulus.idle(8), Window.CLOCK, sink=Sink.EXTENDED)
        assert again.items == []


def test_the_emulator_has_all_nodes(fronted):
    """Front ends have no part in what it plays."""
    with VirtualLink(Stimulus.idle(8), fronted) as link:
        write(link, "EVENT_NODES", 0)
        write(link, "EMULATOR_PERIOD", 16)
        write(link, "EMULATOR_COUNT", 20)
        start(link, Stimulus.idle(8), Window.CLOCK, Sink.EXTENDED)
        write(link, "EMULATOR", 1)
        came = bytearray()
        for _ in range(100):
            came += link.stream(1 << 16)
        run = finish(link, Window.CLOCK, bytes(came))
    for n in range(8):
        assert run.nibbles(n) == [k + n & 15 for k in range(20)]
