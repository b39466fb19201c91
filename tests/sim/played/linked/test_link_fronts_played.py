"""Nodes with few wires at a regeneration board, through its line and the receiver to the board's stream: events of
twins that are wired to front ends of the board itself, a constant time later; garbage and losses are all counted.
"""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.layout import LINK_LATENCY, Front, Geometry, Sink, Window, front_period
from hypermon.hdl.verilog import verilog
from hypermon.sim.virtual.build import Shell, library, plain_harness
from hypermon.sim.virtual.link import VirtualLink

from tests.hdl.harness.senders import event_bytes
from tests.sim.fronted import CLOCK, Node, stimulus
from tests.sim.plain_host import play, write

#: Causes in a LOSS record, from docs/regeneration.md.
GATE, LINE = 16, 32
#: Nodes 0 to 7 at the regeneration board, and their twins at the board. A census needs 1.3 ms after the power-up.
SETTINGS = {Front.TWO_WIRE: 80, Front.SELECTED: 100, Front.UART: front_period(100_000_000, 12_000_000)}
#: With a clock of 40 MHz, the board itself would lose events of the twins.
PERIODS = {Front.TWO_WIRE: Fraction(10 * CLOCK), Front.SELECTED: Fraction(12 * CLOCK),
           Front.UART: Fraction(10**12, 12_000_000)}
REGISTERS = {Front.TWO_WIRE: "FRONT_SPAN", Front.SELECTED: "FRONT_SPAN", Front.UART: "UART_PERIOD"}
BEGIN_PS = 10**9


def geometry(front):
    return Geometry(16, node_depth=64, vector_depth=256, frame_depth=64, sinks=tuple(Sink), links=1,
                    fronts=(Front.PORT,) * 8 + (front,) * 8)


def shell(front):
    """The virtual board with front ends at its regeneration board."""
    return Shell("linkfronts", plain_harness(), lambda board: verilog(
        board, skips=True, link_front=(front, SETTINGS[front])),
                 defines=(("LINK_FRONT", int(front)), ("LINK_SETTING", SETTINGS[front])))


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda front: front.name)
def front(request, tools):
    library(geometry(request.param), shell(request.param))
    return request.param


def nodes_of(front, seed):
    """Eight nodes, whose clocks are up to 1 % off, at random phases."""
    rng = random.Random(f"{front} {seed}")
    nodes = [Node(front, PERIODS[front] * (1 + Fraction(rng.randrange(-10, 11), 1000)), rng) for _ in range(8)]
    for node in nodes:
        node.at = BEGIN_PS + Fraction(rng.randrange(1000 * CLOCK))
    return nodes


def write_events(nodes, count, pause):
    """Each node writes ``count`` events, and waits for ``pause(rng)`` clocks after each one."""
    for node in nodes:
        for _ in range(count):
            node.event()
            node.idle(pause(node.rng))


def go(nodes, front, seed=None, **disturbance):
    both = stimulus([*nodes, *nodes])
    with VirtualLink(both, geometry(front), shell=shell(front), seed=seed, skip=False) as link:
        write(link, REGISTERS[front], SETTINGS[front])
        write(link, "EVENT_NODES", 0xffff)
        for _ in range(16):
            link.stream(16)
        link.disturb(**disturbance)
        return play(link, both, Window.CLOCK, sink=Sink.EXTENDED)


def check(run, nodes):
    """Items over the link are the twins', whole or cut short; of each node, those that its twin has and it has not are
    in the counts and in LOSS records, beside the pieces that formed no event. Returns whole ones, those that the line
    or the gate has cut short, refused and lost ones."""
    total = [0] * 4
    for n in range(len(nodes)):
        mine = [item for item in run.items if item.node == n]
        twin = {item.window: item for item in run.items if item.node == n + 8}
        assert run.census[n + 8]["accepted"] == run.census[n + 8]["delivered"] == len(twin)
        begun = sum(item.missing > 0 for item in twin.values())
        pieces = run.census[n + 8]["rejected"] - begun
        for item in mine:
            other = twin.pop(item.window - LINK_LATENCY)
            length = len(item.nibbles) - item.missing
            assert item.nibbles[:length] == other.nibbles[:length]
            assert length <= len(other.nibbles) - other.missing, f"node {n}: an item that was not written"
            whole = item.missing == other.missing
            total[0] += whole and not item.missing
            total[1] += not whole
        counts, row = run.links[n], run.census[n]
        assert row["accepted"] == row["delivered"] == len(mine)
        assert len(twin) + pieces == counts["refused"] + counts["lost"]
        for cause, name in ((GATE, "refused"), (LINE, "lost")):
            assert sum(record["lost"] for record in run.losses
                       if record["node"] == n and record["causes"] == cause) == counts[name]
        total[2] += counts["refused"]
        total[3] += counts["lost"]
    return total


@pytest.mark.parametrize("seed", range(2))
def test_events_of_twins(front, seed):
    """At random phases, back to back and with stalls in the middle of events."""
    nodes = nodes_of(front, seed)
    for node in nodes:
        for _ in range(30):
            node.event(gap=node.rng.choice((0, 0, CLOCK * node.rng.randrange(500))))
            node.idle(node.rng.choice((300, 1000, 20_000)))
    run = go(nodes, front)
    whole, cut, refused, lost = check(run, nodes)
    assert whole == 8 * 30
    assert [cut, refused, lost] == [0, 0, 0]
    for n, node in enumerate(nodes):
        assert [item.nibbles for item in run.items if item.node == n] == [nibbles for _, nibbles in node.items]


def test_random_delays_of_the_pads(front):
    """Each of two twins may see an edge one clock later; the events are the same."""
    nodes = nodes_of(front, 2)
    write_events(nodes, 30, lambda rng: rng.choice((300, 1000)))
    run = go(nodes, front, seed=5)
    for n in range(8):
        mine, twin = ([item for item in run.items if item.node == node] for node in (n, n + 8))
        assert [item.nibbles for item in mine] == [item.nibbles for item in twin]
        assert {a.window - b.window - LINK_LATENCY for a, b in zip(mine, twin, strict=True)} <= {-1, 0, 1}


def test_wrong_bits_on_the_line(front):
    nodes = nodes_of(front, 3)
    write_events(nodes, 150, lambda rng: rng.randrange(300, 3000))
    whole, cut, refused, lost = check(go(nodes, front, errors=1e-4), nodes)
    assert whole > 900
    assert refused == 0
    assert min(cut, lost) > 5


def test_garbage(front):
    """Wrong bytes, random levels, and events between them: none that was not sent is whole but for what a check lets
    pass, and that is the twin's, too; everything is counted."""
    nodes = nodes_of(front, 4)
    for node in nodes:
        for _ in range(12):
            for _ in range(node.rng.randrange(100)):
                node.at += node.rng.randrange(1, 30 * CLOCK)
                node.wires.set(node.at, node.rng.randrange(3), node.rng.getrandbits(1))
            for wire, level in enumerate(node.wires.initial):
                node.wires.set(node.at + 20 * CLOCK, wire, level)
            node.idle(3000)
            data = bytearray(event_bytes(bytes(range(4))))
            data[node.rng.randrange(1, 6)] ^= 1 << node.rng.randrange(8)
            node.send(data)
            node.idle(3000)
            node.event()
            node.idle(1000)
    run = go(nodes, front)
    whole, cut, refused, lost = check(run, nodes)
    assert cut == lost == 0
    assert refused > 150
    # An event that is open in the garbage takes the bytes that follow; the next pause does not end it.
    assert 8 * 12 * 0.5 < whole <= 8 * 12 + 2


def test_more_than_the_line_carries(front):
    """The gate refuses whole events; those that had begun are cut short."""
    nodes = nodes_of(front, 6)
    # Without a pause, the board's own gate refuses an event of a twin now and then.
    write_events(nodes, 250, lambda rng: 60 if front is Front.TWO_WIRE else 0)
    whole, cut, refused, lost = check(go(nodes, front), nodes)
    assert lost == 0
    assert whole > 100
    assert min(cut, refused) > (50 if front is not Front.SELECTED else -1)


def test_pulled_cable(front):
    nodes = nodes_of(front, 7)
    write_events(nodes, 150, lambda rng: rng.randrange(300, 1500))
    whole, _, refused, lost = check(go(nodes, front, pulled=(1_300_000_000, 1_600_000_000)), nodes)
    assert refused == 0
    assert lost > 20
    assert whole > 100
