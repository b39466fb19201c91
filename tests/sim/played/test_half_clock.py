"""Stamps to half or a quarter of a clock on the virtual board, against a model that knows the pads' times alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, BlockFlag, BlockType, Sink, Window
from hypermon.sim.stimulus.port_mapping import Edge
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import once, play, write
from tests.sim.virtual.test_link import stimulus
from tests.sim.writers import EVENT, NIBBLE, WORD, accounted, came, expected, go, writers

FLAGS = {2: BlockFlag.HALF, 4: BlockFlag.QUARTER}


def parts(run, geometry):
    return {item.window % geometry.phases for item in run.items}


def test_single_nibbles(halved):
    """Every strobe is right to its part of a clock; some windows hold strobes of several, which are kept apart."""
    rng = np.random.default_rng(1)
    nodes = writers(halved, [NIBBLE])
    for node in nodes:
        for _ in range(400):
            node.item(rng, after=int(rng.integers(4, 12)))
    run = go(nodes, halved)
    assert came(run) == expected(nodes, halved)
    assert [item[:2] for item in run.items] == sorted(item[:2] for item in run.items)
    stamps = {item.window for item in run.items}
    for part in range(1, halved.phases):
        assert sum(at + part in stamps for at in stamps if at % halved.phases == 0) > 50, "windows of several parts"
    assert run.flags == {BlockFlag.EXTENDED | FLAGS[halved.phases]}
    accounted(run, nodes, halved)


@pytest.mark.parametrize("window", list(Window))
def test_every_mode_at_once(halved, window):
    """Longer windows have whole stamps, and say so."""
    rng = np.random.default_rng(window)
    nodes = writers(halved)
    clocks = halved.window_clocks(window)
    for node in nodes:
        for _ in range(40):
            node.item(rng, gap=int(rng.integers(4, 12)), after=int(rng.integers(clocks + 4, 5 * clocks + 300)))
    run = go(nodes, halved, window)
    assert came(run) == expected(nodes, halved, window)
    half = FLAGS[halved.phases] if window is Window.CLOCK else 0
    assert run.flags == {BlockFlag.EXTENDED | BlockFlag.ITEMS | half}
    assert not half or parts(run, halved) == set(range(halved.phases))
    accounted(run, nodes, halved, window)


def test_late_items_keep_their_half(halved):
    """An event that is passed over comes with the stamp of its first strobe."""
    rng = np.random.default_rng(2)
    nodes = writers(halved, [EVENT, EVENT, NIBBLE])
    for slow in nodes[::3]:
        for _ in range(12):
            slow.item(rng, gap=300, size=13)
    for n, node in enumerate(nodes):
        while n % 3 and node.clock < nodes[0].clock:
            node.item(rng, size=2, after=20)
    run = go(nodes, halved, drain_rate=50_000_000)
    assert came(run) == expected(nodes, halved)
    assert {item.window % halved.phases for item in run.items if item.late} == set(range(halved.phases))
    accounted(run, nodes, halved)


def test_time_out(halved):
    rng = np.random.default_rng(4)
    nodes = writers(halved, [WORD, EVENT, NIBBLE])
    for keep in (1, 2, 7):
        for node in nodes:
            if node.mode != NIBBLE:
                node.item(rng)
                node.cut(rng, keep, after=3060)
    for node in nodes:
        node.item(rng)
    run = go(nodes, halved, timeout=3000)
    assert came(run) == expected(nodes, halved)
    accounted(run, nodes, halved)


@pytest.mark.parametrize("options", [{"drain_rate": 400_000}, {"stalls": [(0.1, 0.7)]}])
def test_overrun(halved, options):
    """Whatever the host does, each item has come with its own half, or is in a record."""
    rng = np.random.default_rng(5)
    nodes = writers(halved)
    for node in nodes:
        while node.clock < 100_000:
            node.item(rng, after=int(rng.integers(4, 30)))
    run = go(nodes, halved, **options)
    assert run.lost
    accounted(run, nodes, halved)


@pytest.mark.parametrize("seed", [None, 3])
def test_skipping_changes_nothing(halved, seed):
    rng = np.random.default_rng(6)
    nodes = writers(halved)
    for node in nodes:
        for _ in range(4):
            node.item(rng, after=int(rng.integers(1000, 60_000)))
    kept = [go(nodes, halved, skip=skip, seed=seed).stream for skip in (True, False)]
    assert kept[0] == kept[1]


def test_random_delay(halved):
    """A strobe that comes just as a sample is taken may be seen by the next one, half or a quarter of a clock later."""
    rng = np.random.default_rng(7)
    nodes = writers(halved, [NIBBLE])
    for node in nodes:
        for _ in range(200):
            node.item(rng, after=int(rng.integers(30, 60)))
    run = go(nodes, halved, seed=1)
    late = 0
    for n, node in enumerate(nodes):
        mine = [(at, values) for at, other, values, _ in expected(nodes, halved) if other == n]
        got = [(item.window, item.nibbles) for item in run.items if item.node == n]
        assert [values for _, values in got] == [values for _, values in mine]
        assert len(got) == len(node.items)
        assert all(0 <= b - a <= 1 for (a, _), (b, _) in zip(mine, got, strict=True))
        late += sum(a != b for (a, _), (b, _) in zip(mine, got, strict=True))
    # A nanosecond of every five, or of every two and a half, half of the time.
    share = halved.phases * 0.05
    assert share / 2 < late / sum(len(node.items) for node in nodes) < share * 3 / 2


def test_frames_have_no_halves(halved):
    rng = np.random.default_rng(8)
    nodes = writers(halved, [NIBBLE])
    for node in nodes:
        for _ in range(30):
            node.item(rng, after=40)
    rows = sorted((time, n, port) for n, node in enumerate(nodes) for time, port in node.rows)
    run = once(stimulus(rows, len(nodes)), halved, Window.CLOCK, Sink.CLASSIC)
    wanted = {(-(-time // 10_000) + 6, n, values[0]) for n, node in enumerate(nodes) for time, values, _ in node.items}
    assert set(run.events) == wanted
    assert not run.flags
    assert {kind for kind, _, _ in run.blocks} == {BlockType.FRAMES, BlockType.CENSUS}


def pulses(samples, more: int, rising: bool, falling: bool, phases: int) -> int:
    """Edges that count, of a strobe of which every ``phases``-th sample is that of a clock edge."""
    edges = [h for h in range(1, len(samples)) if samples[h] != samples[h - 1]]
    active = {h for h in edges if (rising if samples[h] else falling)}
    if not more:
        return len({-(-h // phases) for h in active})
    known, count = samples[0], 0
    for h, following in zip(edges, [*edges[1:], 1 << 40], strict=True):
        if -(-following // phases) > -(-h // phases) + more:
            count += h in active and samples[h] != known
            known = samples[h]
    return count


@pytest.mark.parametrize("glitch", [0, 4])
def test_runts_are_counted(halved, glitch):
    """Active edges are pulses or rejected, those of runts that begin and end between two clock edges, too."""
    rng = np.random.default_rng(glitch)
    edges = [Edge.RISING, Edge.FALLING, Edge.BOTH]
    rows, samples, phases = [], [], halved.phases
    apart = 10_000 // phases
    for node in range(halved.nodes):
        one = [0] * 40 * phases
        for _ in range(150):
            least = 3 * phases
            lengths = [rng.integers(15 * phases, 30 * phases), *rng.choice(
                [1, 1, 2, 3, least + 1, least + 2, least + phases, 10 * phases], int(rng.integers(1, 4 * phases)))]
            for length in lengths:
                one += [1 - one[-1]] * int(length)
        one += [0] * 40 * phases
        # A change is in the middle between two samples.
        rows += [(apart * h - apart // 2, node, one[h] << 4 | node) for h in range(1, len(one)) if one[h] != one[h - 1]]
        samples.append(one)
    time, node, port = (np.array(column) for column in zip(*sorted(rows), strict=True))
    played = Stimulus(time.astype(np.int64), node.astype(np.int16), port.astype(np.uint16), [0] * halved.nodes,
                      [edges[n % 3] for n in range(halved.nodes)])
    with VirtualLink(played, halved) as link:
        write(link, "GLITCH", glitch)
        told = play(link, played, Window.CLOCK, sink=Sink.EXTENDED, latency=LATENCY + max(0, glitch - 1))
    assert not told.lost
    for n, one in enumerate(samples):
        rising, falling = edges[n % 3] is not Edge.FALLING, edges[n % 3] is not Edge.RISING
        active = sum(a != b and (rising if b else falling) for a, b in pairwise(one))
        counts = told.census[n]
        assert counts["accepted"] == pulses(one, max(0, glitch - 1), rising, falling, phases)
        assert counts["accepted"] + counts["rejected"] == active
