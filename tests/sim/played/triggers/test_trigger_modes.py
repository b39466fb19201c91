"""Triggers on the virtual board with words and events, fast and slow ones: what is kept is a matter of stamps alone,
however long a block may wait and however much there is to do. The model knows what was written, and when."""

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import play, read, write
from tests.sim.played.test_items import EVENT, FAST, NIBBLE, WORD, Node, board, expected, modes, plays
from tests.sim.played.triggers.test_trigger_played import ON, match

FLUSHES = (500, 30_000, 0xffff_ffff)


def event(identity, node=None, mask=0xff):
    """TRIGGER_START or TRIGGER_STOP for an event id."""
    return ON | 1 << 30 | identity | mask << 8 | (0 if node is None else node << 16 | 31 << 24)


def triggered(nodes, geometry, start=0, stop=0, before=0, flush=None, window=Window.CLOCK, timeout=None, **options):
    """The run, TRIGGER_STATE, the items thrown away."""
    played = plays(nodes)
    with VirtualLink(played, geometry, **options) as link:
        settings = {"WORD_NODES": modes(nodes, WORD), "EVENT_NODES": modes(nodes, EVENT), "TRIGGER_START": start,
                    "TRIGGER_STOP": stop, "PRETRIGGER": before, "FLUSH": flush, "ITEM_TIMEOUT": timeout}
        for name, value in settings.items():
            if value is not None:
                write(link, name, value)
        run = play(link, played, window, sink=Sink.EXTENDED)
        return run, read(link, "TRIGGER_STATE"), read(link, "DISCARDED_HIGH") << 32 | read(link, "DISCARDED_LOW")


def matches(wanted, nodes, item):
    _, n, nibbles, _ = item
    of_event = nodes[n].mode == EVENT
    value = nibbles[1] | nibbles[2] << 4 if of_event else nibbles[0]
    return (wanted >> 30 & 1 == of_event and not (value ^ wanted) & wanted >> 8 & 255
            and not (n ^ wanted >> 16) & wanted >> 24 & 31)


def capture(nodes, start, stop, before, clocks=1):
    """Items that belong to it, by window and node, and TRIGGER_STATE."""
    items = expected(nodes, clocks)
    begin, after, first, state = 0, -1, -1, 0
    if start:
        after = next((k for k, item in enumerate(items) if matches(start, nodes, item)), None)
        if after is None:
            return [], 1
        state = 2
        # Nibbles are counted back from the one that decides.
        owner = [k for k, item in enumerate(items) for _ in item[2]]
        at = owner.index(after) + (2 if nodes[items[after][1]].mode == EVENT else 0)
        begin = owner[max(0, at - before)]
        first = items[begin][0]
    last = next((item[0] for k, item in enumerate(items) if stop and k > after and matches(stop, nodes, item)), None)
    if last is None:
        return [item for item in items if item[0] >= first], state
    state |= 4 * (items[-1][0] > last)
    return [item for item in items if first <= item[0] <= last], state


def came(run):
    return sorted((item.window, item.node, item.nibbles, item.missing) for item in run.items)


def accounted(run, nodes, discarded):
    """Accepted is delivered or thrown away."""
    assert not run.lost
    accepted = [node["accepted"] for node in run.census]
    assert accepted == [len(node.items) for node in nodes]
    assert [node["delivered"] for node in run.census] == [
        sum(item.node == n for item in run.items) for n in range(len(nodes))]
    assert discarded == sum(accepted) - len(run.items)


def mixed(geometry, rng, count=12):
    """Nodes of all modes, with slow ones among them; what is written while an item is open leaves the FIFOs room."""
    nodes = [Node(int(rng.integers(3)), 100 + int(rng.integers(500))) for _ in range(geometry.nodes)]
    for node in nodes:
        slow = rng.random() < 0.4
        for _ in range(count):
            node.item(rng, gap=int(rng.integers(60, 200)) if slow else FAST, after=int(rng.integers(300, 1500)),
                      size=int(rng.integers(1, 4)))
    return nodes


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))])
def test_words_and_events(extended, seed):
    """All modes, starts and stops on each, nibbles before the start; FLUSH makes no difference."""
    rng = np.random.default_rng(seed)
    nodes = mixed(extended, rng)
    window = Window.CLOCK if seed % 2 else Window.NS200
    clocks = extended.window_clocks(window)
    found = 0
    for _ in range(4):
        items = expected(nodes, clocks)
        words = []
        for low, high in ((0.1, 0.5), (0.5, 1)):
            _, n, nibbles, _ = items[int(rng.integers(low * len(items), high * len(items)))]
            words.append(event(nibbles[1] | nibbles[2] << 4, mask=0xff if rng.random() < 0.5 else 7)
                         if nodes[n].mode == EVENT else match(nibbles[0], node=n))
        start, stop = (word if rng.random() < 0.8 else 0 for word in words)
        before = int(rng.choice([0, 3, 40, 200])) if start else 0
        kept, state = capture(nodes, start, stop, before, clocks)
        for flush in FLUSHES:
            run, said, discarded = triggered(nodes, extended, start, stop, before, flush, window)
            assert came(run) == kept
            assert said == state
            accounted(run, nodes, discarded)
        found += bool(kept) and len(kept) < len(items)
    assert found


def crowded(rng, clocks=40_000):
    """Slow nodes, and others that leave no time to wait for them: their items come late."""
    nodes = [Node(EVENT, 100 + 61 * n) for n in range(6)] + [Node(NIBBLE, 100 + n) for n in range(3)]
    for node in nodes[:6]:
        while node.clock < clocks:
            node.item(rng, gap=int(rng.integers(400, 800)), after=100, size=int(rng.integers(1, 4)))
    for n, node in enumerate(nodes[6:]):
        while node.clock < clocks:
            # Nodes 7 and 8 write a 15 each, in the middle.
            nibble = 15 if n and abs(node.clock - clocks * n // 3) < 6 else int(rng.integers(15))
            node.items.append((node.clock, bytes([nibble]), 0))
            node.write([nibble], after=8)
    return nodes


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_late_items(extended, seed):
    """Under load items come late; what is kept is what was stamped from the start's window to the stop's."""
    rng = np.random.default_rng(seed)
    nodes = board(extended, crowded(rng))
    everything = triggered(nodes, extended)[0]
    late = {(item.window, item.node) for item in everything.items if item.late}
    for start, stop in ((match(15, node=7), match(15, node=8)), (0, match(15, node=7)), (match(15, node=8), 0)):
        kept, state = capture(nodes, start, stop, 0)
        for flush in FLUSHES:
            run, said, discarded = triggered(nodes, extended, start, stop, 0, flush)
            assert came(run) == kept
            assert said == state
            accounted(run, nodes, discarded)
            assert any(item.late for item in run.items)
        # Late ones are on both sides, near the border: they come after it, and are of before it, or the reverse.
        windows = [item[0] for item in kept]
        slow = [c + LATENCY for node in nodes[:6] for c, _, _ in node.items]
        assert any(windows[0] <= w for w in slow)
        assert {(w, n) for w, n, _, _ in kept} & late
        assert late - {(w, n) for w, n, _, _ in kept}


@pytest.mark.parametrize("before", [5, 200, 480])
def test_late_items_before_the_start(extended, before):
    """What is kept before the start is whole, from its first window on: at least so many nibbles, less late items'."""
    nodes = board(extended, crowded(np.random.default_rng(before)))
    start = match(15, node=8)
    without, _ = capture(nodes, start, 0, 0)
    run, _, discarded = triggered(nodes, extended, start, 0, before)
    accounted(run, nodes, discarded)
    kept = came(run)
    first = kept[0][0]
    assert kept == [item for item in expected(nodes) if item[0] >= first]
    assert len(kept) > len(without)
    assert before - 100 <= sum(len(item[2]) for item in kept) - sum(len(item[2]) for item in without) <= before + 200


@pytest.mark.parametrize("flush", FLUSHES)
def test_late_items_that_start_and_stop(extended, flush):
    """A slow node's event starts, and another one stops, by their own stamps."""
    nodes = board(extended, crowded(np.random.default_rng(5)))
    items = expected(nodes)
    slow = [item for item in items if item[1] < 6]
    start, stop = (event(item[2][1] | item[2][2] << 4, item[1]) for item in (slow[10], slow[60]))
    begin = next(item for item in items if matches(start, nodes, item))
    end = next(item for item in items if matches(stop, nodes, item) and item[0] > begin[0])
    run, state, discarded = triggered(nodes, extended, start, stop, 0, flush)
    accounted(run, nodes, discarded)
    kept = came(run)
    assert state == 6
    assert {begin, end} <= set(kept)
    assert kept[0][0] == begin[0]
    # All that was stamped until the stop, since the start was known; a little more had left before the stop was.
    known = begin[0] + 4000
    assert [item for item in kept if known < item[0] <= end[0]] == [
        item for item in items if known < item[0] <= end[0]]
    assert kept[-1][0] < end[0] + 6000


@pytest.mark.parametrize("flush", [1000, 0xffff_ffff])
@pytest.mark.parametrize("last", [1, 2])
def test_an_item_that_is_open_at_the_stop(extended, flush, last):
    """A capture ends when the items that are open in the stop's window have ended, or have timed out."""
    rng = np.random.default_rng(last)
    nodes = board(extended, [Node(EVENT, 500), Node(NIBBLE, 1000), Node(NIBBLE, 300)])
    nodes[0].item(rng, gap=2000, size=1)
    if last == 1:       # its last nibble never comes
        nodes[0].items[0] = (500, nodes[0].items[0][1][:2] + bytes(1), 1)
        nodes[0].rows = nodes[0].rows[:-3]
    nodes[1].items.append((1000, b"\x0f", 0))
    nodes[1].write([15])
    while nodes[2].clock < 12_000:
        nodes[2].item(rng, after=last * 900)
    stop = match(15, node=1)
    run, state, discarded = triggered(nodes, extended, stop=stop, flush=flush, timeout=3000)
    assert came(run) == capture(nodes, 0, stop, 0)[0]
    assert any(item.node == 0 for item in run.items)
    assert state == 4
    accounted(run, nodes, discarded)
