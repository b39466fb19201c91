"""The extended sink on the virtual board: COMPACT blocks hold what frames would, and all of it is accounted for."""

import numpy as np
import pytest
from hypermon.hdl.layout import BlockType, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import once, play, read, start, write
from tests.sim.virtual.test_link import MS, dense, sparse, stimulus


def accounted(run, offered):
    """Offered = accepted + lost, and all that was accepted has come."""
    accepted = [node["accepted"] for node in run.census]
    assert sum(accepted) + run.lost == offered
    assert [node["delivered"] for node in run.census] == accepted
    assert len(run.events) == sum(accepted)
    assert run.events == sorted(run.events, key=lambda event: event[0])


@pytest.mark.parametrize("window", list(Window))
@pytest.mark.parametrize("seed", [None, 3])
def test_says_what_frames_would(classic, extended, window, seed):
    played = stimulus(sparse(np.random.default_rng(window), classic, 200, MS // 2))
    frames = once(played, classic, window, seed=seed)
    items = once(played, extended, window, Sink.EXTENDED, seed=seed)
    assert items.events == frames.events
    assert len(items.events) == 200
    assert items.census[:classic.nodes] == frames.census
    assert not [kind for kind, _, _ in items.blocks if kind is BlockType.FRAMES]


def test_the_classic_sink_is_the_same_beside_it(classic, extended):
    played = stimulus(sparse(np.random.default_rng(1), classic, 100, MS))
    assert once(played, classic).stream == once(played, extended).stream


def test_a_flood(extended):
    """A nibble from some node every clock, which is all that the sink takes: nothing is lost."""
    rows = dense(extended, MS, 160_000)
    played = stimulus(rows)
    run = once(played, extended, Window.CLOCK, Sink.EXTENDED)
    accounted(run, len(rows) // 2)
    assert not run.lost


@pytest.mark.parametrize("options", [
    {"drain_rate": 5_000_000}, {"drain_rate": 50_000_000}, {"stalls": [(0.1, 0.7), ("1.2", 2)], "seed": 4},
    {"drain_rate": 1_500_000, "seed": 5},
])
@pytest.mark.parametrize("window", [Window.CLOCK, pytest.param(Window.NS800, marks=pytest.mark.slow)])
def test_overrun(odd_extended, options, window):
    """Whatever the host does, each item has come or is in a record, and stamps stay true."""
    rows = dense(odd_extended, 2 * MS, 400_000)
    played = stimulus(rows, odd_extended.nodes)
    run = once(played, odd_extended, window, Sink.EXTENDED, **options)
    accounted(run, len(rows) // 2)
    assert run.lost or options.get("drain_rate", 0) > 10_000_000 or "stalls" in options
    if window is Window.CLOCK:
        free = {(time, node): nibble for time, node, nibble in once(played, odd_extended, window, Sink.EXTENDED).events}
        if "seed" not in options:
            assert all(free[time, node] == nibble for time, node, nibble in run.events)
    for record in run.losses:
        assert record["first"] <= record["last"]


@pytest.mark.parametrize("way", ["plain", "random delay", "slow host", "stalls"])
@pytest.mark.parametrize("window", [
    Window.CLOCK, *(pytest.param(w, marks=pytest.mark.slow) for w in (Window.NS800, Window.NS400, Window.NS200))])
def test_skipping_changes_nothing(odd_extended, way, window):
    options = {
        "plain": {}, "random delay": {"seed": 2}, "slow host": {"drain_rate": 300_000},
        "stalls": {"stalls": [(1, 3), ("5.5", 2.25)], "seed": 9},
    }[way]
    rng = np.random.default_rng(100 + window)
    played = stimulus(sparse(rng, odd_extended, 40, 4 * MS), odd_extended.nodes)
    kept = [once(played, odd_extended, window, Sink.EXTENDED, skip=skip, **options).stream for skip in (True, False)]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("flush", [10, 1000, 15_000, 25_000, 50_000])
def test_flush(extended, flush):
    """A block that nobody fills leaves when FLUSH windows have passed: what comes later is in another one."""
    apart = 20_000
    played = stimulus([(k * MS + 100_000 + (second * apart + half) * extended.ps(1), 3, half * 16 + (2 * k + second))
                       for k in range(4) for second in (0, 1) for half in (0, 1)])
    with VirtualLink(played, extended) as link:
        write(link, "FLUSH", flush)
        run = play(link, played, Window.CLOCK, sink=Sink.EXTENDED)
    assert [nibble for _, _, nibble in run.events] == list(range(8))
    assert len([kind for kind, _, _ in run.blocks if kind is BlockType.COMPACT]) == (8 if flush < apart else 4)


def test_the_sink_is_taken_at_the_reset(extended):
    played = stimulus(sparse(np.random.default_rng(1), extended, 20, MS))
    with VirtualLink(played, extended) as link:
        write(link, "FLUSH", 1000)
        start(link, played, Window.CLOCK, Sink.EXTENDED)
        write(link, "MODE", Sink.CLASSIC)
        assert read(link, "MODE") == Sink.CLASSIC
        stream = b""
        while not link.ended:
            stream += link.stream(1 << 16)
        kinds = {stream[at + 5] for at in range(0, len(stream), 16) if stream[at:at + 4] == b"HMON"}
        assert BlockType.COMPACT in kinds
        assert BlockType.FRAMES not in kinds


@pytest.mark.parametrize("after", [1, 150, 1000, 20_000, 40_000])
def test_reset_in_the_middle(extended, after):
    """What was queued is gone, nothing of it appears behind the reset, and the next run is whole."""
    rows = dense(extended, MS // 2, 3_000_000)
    played = stimulus(rows)
    free = once(played, extended, Window.CLOCK, Sink.EXTENDED)
    assert not free.lost
    with VirtualLink(played, extended, drain_rate=20_000_000) as link:
        start(link, played, Window.CLOCK, Sink.EXTENDED)
        before = b""
        while link.cycles < 2000 + after:
            before += link.stream(256)
        run = play(link, played, Window.CLOCK, before, Sink.EXTENDED)
    accepted = sum(node["accepted"] for node in run.census)
    assert sum(node["delivered"] for node in run.census) == accepted == len(run.events)
    # What the nodes wrote from then on, as it stands at the end of a run without the reset, in the time of this one.
    assert not run.lost
    same = free.events[len(free.events) - accepted:]
    assert [event[1:] for event in run.events] == [event[1:] for event in same]
    later = {old[0] - new[0] for old, new in zip(same, run.events, strict=True)}
    assert len(later) == 1
    assert later.pop() >= after


def test_a_board_without_it_stays_classic(classic):
    with VirtualLink(None, classic) as link:
        write(link, "MODE", Sink.EXTENDED)
        assert read(link, "MODE") == Sink.CLASSIC
