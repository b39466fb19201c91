"""Start and stop triggers on the virtual board: what passes is a slice of what would have come, in whole windows."""

import json

import numpy as np
import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.cli import _run
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import play, read, write
from tests.sim.virtual.test_link import MS, dense, sparse, stimulus

ON = 1 << 31


def match(nibble, mask=15, node=None):
    """TRIGGER_START or TRIGGER_STOP for single nibbles."""
    return ON | nibble | mask << 8 | (0 if node is None else node << 16 | 31 << 24)


def triggered(played, geometry, start=0, stop=0, before=0, window=Window.CLOCK, **options):
    """The run, TRIGGER_STATE and the items thrown away."""
    with VirtualLink(played, geometry, **options) as link:
        write(link, "TRIGGER_START", start)
        write(link, "TRIGGER_STOP", stop)
        write(link, "PRETRIGGER", before)
        run = play(link, played, window, sink=Sink.EXTENDED)
        return run, read(link, "TRIGGER_STATE"), read(link, "DISCARDED_HIGH") << 32 | read(link, "DISCARDED_LOW")


def hits(events, word):
    value, mask, node, node_mask = word & 255, word >> 8 & 255, word >> 16 & 31, word >> 24 & 31
    return [k for k, (_, n, v) in enumerate(events) if not (v ^ value) & mask and not (n ^ node) & node_mask]


def expected(events, start, stop, before):
    """The slice, from all events in the order of their windows and nodes."""
    begin, end, after, state = 0, len(events), -1, 0
    if start:
        found = hits(events, start)
        if not found:
            return [], 1
        after, state = found[0], 2
        first = events[max(0, after - before)][0]
        begin = next(k for k, event in enumerate(events) if event[0] == first)
    if stop and (found := [k for k in hits(events, stop) if k > after]):
        end = next((k for k, event in enumerate(events) if event[0] > events[found[0]][0]), len(events))
        state |= 4 * (end < len(events))
    return events[begin:end], state


def check(played, geometry, start, stop, before, window=Window.CLOCK, every=None, **options):
    every = every or play_all(played, geometry, window)
    run, state, discarded = triggered(played, geometry, start, stop, before, window, **options)
    events, said = expected(every.events, start, stop, before)
    assert run.events == events
    assert state == said
    # Accepted is delivered or thrown away, of every node; and nothing else is different.
    assert not run.lost
    accepted = [node["accepted"] for node in run.census]
    assert accepted == [node["accepted"] for node in every.census]
    assert [node["delivered"] for node in run.census] == [len(run.nibbles(n)) for n in range(geometry.nodes)]
    assert discarded == sum(accepted) - len(run.events)
    return len(run.events), discarded


def play_all(played, geometry, window):
    with VirtualLink(played, geometry) as link:
        return play(link, played, window, sink=Sink.EXTENDED)


@pytest.mark.parametrize("window", [Window.CLOCK, Window.NS800])
def test_slices(extended, window):
    """One node's nibble begins it, another's ends it; windows of one item and of many."""
    played = stimulus(sparse(np.random.default_rng(window), extended, 400, MS // 40))
    every = play_all(played, extended, window)
    for start, stop, before in (
            (match(5, 5, 3), 0, 0), (match(5, 5, 3), 0, 20), (match(5, 5, 3), match(9), 7),
            (0, match(1, 3, 12), 0), (match(0, 0, 7), match(8, 8, 2), 1), (match(8, 8, 15), match(0), 480)):
        kept, thrown = check(played, extended, start, stop, before, window, every)
        assert kept
        assert thrown or before == 480


@pytest.mark.parametrize(("items", "before"), [(200, 50), (1, 5), (2, 5), (4, 5), (8, 9), (16, 20), (32, 40), (64, 64),
                                               (128, 200), (256, 480)])
def test_a_start_that_never_comes(extended, items, before):
    """Nothing passes, and the run ends properly: all that waited has been thrown away."""
    rows = [(t, n, v & 0x17) for t, n, v in sparse(np.random.default_rng(7), extended, items, MS // 100)]
    assert check(stimulus(rows), extended, match(8, 8), 0, before) == (0, items)


def test_dense(extended):
    """A flood: a trigger keeps pace with it."""
    played = stimulus(dense(extended, MS // 4, 300_000))
    kept, thrown = check(played, extended, match(5, node=5), match(5, node=5), 300)
    assert kept
    assert thrown


@pytest.mark.parametrize("skip", [True, False])
def test_skipping_changes_nothing(extended, skip):
    played = stimulus(sparse(np.random.default_rng(9), extended, 60, MS))
    run, *rest = triggered(played, extended, match(3), match(12), 4, skip=skip)
    other, *others = triggered(played, extended, match(3), match(12), 4)
    assert run.stream == other.stream
    assert rest == others


def test_options(extended, tmp_path, capsys):
    """`hypermon sim --start ... --stop ... --pretrigger`; what makes no sense is one line."""
    path = tmp_path / "played.csv"
    rows = [(1000 * k + 60 * half, k % 5, 16 * half | k % 16) for k in range(1, 200) for half in (0, 1)]
    path.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{v}\n" for t, n, v in rows))
    out, table = tmp_path / "run", tmp_path / "events.csv"
    base = ["sim", str(path), "--config", "extended", "-o"]
    assert _run([*base, str(out), "--start", "node=3,nibble=0xd", "--stop", "nibble=8/8", "--pretrigger", "4"]) == 0
    assert _run(["export", str(out), "--to", "csv", str(table)]) == 0
    events = [tuple(map(int, line.split(",")[1:])) for line in table.read_text().splitlines()[1:]]
    begin = next(k for k in range(1, 200) if k % 5 == 3 and k % 16 == 13)
    end = next(k for k in range(begin + 1, 200) if k & 8)
    assert events == [(k % 5, k % 16) for k in range(begin - 4, end + 1)]
    capsys.readouterr()
    assert _run(["stats", str(out), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["events"], figures["discarded"], figures["lost"]) == (len(events), 199 - len(events), 0)
    assert figures["trigger"] == "stop found"
    for arguments, said in ((["--start", "nibble=99"], "--start nibble=99: expected"),
                            (["--pretrigger", "3"], "it needs --start"),
                            (["--start", "nibble=1", "--pretrigger", "1000"], "at most 480 writes"),
                            (["--config", "classic", "--stop", "nibble=1"], "add --config extended")):
        assert _run([*base, str(tmp_path / "other"), *arguments]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert said in error
