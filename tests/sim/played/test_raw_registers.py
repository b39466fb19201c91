"""Any value in any register: a capture still ends, and its accounts hold."""

import numpy as np
import pytest
from hypermon.hdl.layout import PRETRIGGER_MAX, REGISTERS, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import play, read, start, write
from tests.sim.played.test_ending import ends, until
from tests.sim.played.test_items import EVENT, Node, board, modes, plays
from tests.sim.played.triggers.test_trigger_played import match

#: Values of each kind: a few bits, all, none, one, the bounds of fields, anything.
KINDS = (lambda rng: 0, lambda rng: 0xffff_ffff, lambda rng: 1 << int(rng.integers(32)),
         lambda rng: 0xffff_ffff ^ 1 << int(rng.integers(32)), lambda rng: int(rng.integers(1 << 32)),
         lambda rng: int(rng.integers(1 << 32)) >> int(rng.integers(32)), lambda rng: int(rng.integers(470, 515)))
#: Such that there is an end to wait for: a time-out in clocks, and no board that is followed and does not exist.
BOUNDS = {"ITEM_TIMEOUT": 0x3fff, "SYNC": 0xffff_fffe}


@pytest.mark.parametrize("raw", [PRETRIGGER_MAX, PRETRIGGER_MAX + 1, 500, 511, 512, 1023, 0xffff_ffff])
def test_pretrigger(extended, raw):
    """More than there is room for is as much as there is room for, and the longest windows find it."""
    rng = np.random.default_rng(raw)
    nodes = [Node(EVENT) for _ in range(extended.nodes)]
    for node in nodes:
        for k in range(8):
            node.item(rng, gap=20, after=20 + 31 * 20 * k, size=15)
            node.clock = 100 + 1500 * (k + 1)
    played = plays(nodes)
    with VirtualLink(played, extended) as link:
        write(link, "EVENT_NODES", modes(nodes, EVENT))
        write(link, "TRIGGER_START", match(8))      # no node writes nibbles
        write(link, "PRETRIGGER", raw)
        assert read(link, "PRETRIGGER") == PRETRIGGER_MAX
        run = play(link, played, Window.CLOCK, sink=Sink.EXTENDED)
        discarded = read(link, "DISCARDED_LOW")
    assert not run.items
    assert not run.lost
    assert discarded == sum(node["accepted"] for node in run.census) == sum(len(node.items) for node in nodes)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 100))])
def test_any_values(extended, seed):
    """All registers that can be written hold anything; capture is disabled at any time."""
    rng = np.random.default_rng(seed)
    nodes = board(extended, [Node(int(rng.integers(3)), 100 + int(rng.integers(100))) for _ in range(extended.nodes)])
    for node in nodes:
        for _ in range(12):
            node.item(rng, gap=int(rng.integers(4, 60)), after=int(rng.integers(8, 600)))
    played = plays(nodes)
    names = [r.name for r in REGISTERS.values() if "W" in r.access and r.name != "CONTROL"]
    with VirtualLink(played, extended) as link:
        for name in rng.permutation(names * 2):
            write(link, name, KINDS[rng.integers(len(KINDS))](rng) & BOUNDS.get(name, 0xffff_ffff))
        sink = Sink(read(link, "MODE")) if rng.random() < 0.3 else Sink.EXTENDED
        window = Window(int(rng.integers(4)))
        start(link, played, window, sink)
        latency = read(link, "GEOMETRY") >> 24
        until(link, int(rng.integers(20_000)))
        run, _ = ends(link, window, latency=latency)
        discarded = read(link, "DISCARDED_HIGH") << 32 | read(link, "DISCARDED_LOW")
    accepted, delivered = (sum(node[name] for node in run.census) for name in ("accepted", "delivered"))
    assert accepted == delivered + discarded
    assert delivered == len(run.items if sink else run.events)
    assert run.lost == sum(node[name] for node in run.census for name in node if name.startswith("lost"))
