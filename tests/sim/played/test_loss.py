"""Loss: bursts and stalls of the host; whatever happens, nothing is lost in silence and no stamp is wrong."""

import os

import numpy as np
import pytest
from hypermon.hdl.layout import NODES_MAX, BlockType, Cause, Sink, Window
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.accounts import balanced, outages
from tests.sim.plain_host import LIMIT, decode, once, play, start, write
from tests.sim.traffic import Mode, bursts, evenly, random_gaps, traffic

SINKS = list(Sink)


def seeds(count, base=0):
    """Seeds for a parametrized test: that many, all but the first slow, or the one of HYPERMON_SEED."""
    given = os.environ.get("HYPERMON_SEED")
    if given is not None:
        return [int(given)]
    return [pytest.param(base + k, marks=pytest.mark.slow if k else ()) for k in range(count)]


@pytest.fixture(params=["extended", "stored"])
def board(request):
    """With and without a store behind the blocker."""
    return request.getfixturevalue(request.param)


def random_stalls(rng, end_ms, longest_ms):
    """Pauses of the host, from none to the longest, by time."""
    lengths = [longest_ms * 10 ** rng.uniform(-3, 0) * rng.choice([0, 1, 1, 1]) for _ in range(rng.integers(1, 5))]
    return [(round(rng.uniform(0, end_ms), 6), round(length, 6)) for length in lengths]


def stalled(board, sink, seed, end_ms, longest_ms, most, modes=None, shell=None):
    """One run with everything at random; the books must balance."""
    rng = np.random.default_rng(seed)
    written = bursts(board, end_ms, rng, most, modes)
    stalls = random_stalls(rng, end_ms, longest_ms)
    rate = rng.choice([None, None, 50_000_000, 5_000_000])
    with VirtualLink(written.stimulus, board, stalls=stalls, drain_rate=rate, shell=shell) as link:
        write(link, "WORD_NODES", written.nodes_in(Mode.WORD))
        write(link, "EVENT_NODES", written.nodes_in(Mode.EVENT))
        # No item ends but by its last nibble, however long a pause is.
        write(link, "ITEM_TIMEOUT", 1 << 28)
        run = play(link, written.stimulus, Window.CLOCK, sink=sink)
    balanced(run, written)
    outages(run, written)
    return run, written


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("seed", seeds(3))
def test_bursts_and_stalls(board, sink, seed):
    stalled(board, sink, seed, 8, 8, 30_000)


#: Modes of as many nodes as a board may have.
ITEMS = {"words": [Mode.WORD] * NODES_MAX, "events": [Mode.EVENT] * NODES_MAX,
         "all modes": [list(Mode)[n % 3] for n in range(NODES_MAX)]}


@pytest.mark.parametrize("modes", ITEMS)
@pytest.mark.parametrize("seed", seeds(2))
def test_bursts_and_stalls_of_items(board, modes, seed):
    stalled(board, Sink.EXTENDED, seed, 8, 8, 30_000, ITEMS[modes][:board.nodes])


@pytest.mark.slow
@pytest.mark.parametrize("modes", ITEMS)
@pytest.mark.parametrize("seed", seeds(15, 3000))
def test_bursts_and_long_stalls_of_items(board, modes, seed):
    stalled(board, Sink.EXTENDED, seed, 60, 100, 200_000, ITEMS[modes][:board.nodes])


@pytest.mark.slow
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("seed", seeds(25, 1000))
def test_bursts_and_long_stalls(board, sink, seed):
    """Up to a tenth of a second."""
    stalled(board, sink, seed, 60, 100, 200_000)


@pytest.mark.slow
def test_bursts_and_stalls_with_external_memory(external):
    stalled(external, Sink.EXTENDED, 5, 4, 100, 200_000)


@pytest.mark.slow
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("seed", seeds(8, 2000))
def test_bursts_and_long_stalls_with_external_memory(external, sink, seed):
    """Longer than it takes to fill it."""
    stalled(external, sink, seed, 60, 300, 300_000)


@pytest.mark.parametrize("sink", SINKS)
def test_one_record_a_node_and_outage(board, sink):
    """A stall too long for what the board can hold, and no more until the host is back and all is read."""
    rng = np.random.default_rng(1)
    written = traffic(board, *evenly(board, 8_000_000, 0.1, 16), rng)
    run = once(written.stimulus, board, Window.CLOCK, sink, stalls=[(1, 9)], drain_rate=800_000_000)
    balanced(run, written)
    assert sorted(record["node"] for record in run.losses) == list(range(16))
    assert {record["causes"] for record in run.losses} == {Cause.FRAME_FIFO}
    assert all(100_000 < record["first"] < record["last"] < 1_100_000 for record in run.losses)
    # It goes on afterwards, to the end.
    assert max(window for window, _, _ in run.events) > 1_590_000
    assert len([window for window, _, _ in run.events if window > 1_200_000]) > 8_000 * 3.9


@pytest.mark.parametrize("sink", SINKS)
def test_reports_do_not_feed_the_overload(board, sink):
    """More than the link takes, for long: the records of what is lost are a small part of the stream."""
    rng = np.random.default_rng(2)
    written = traffic(board, *random_gaps(board, 20_000_000, 0.1, 6, rng), rng)
    run = once(written.stimulus, board, Window.CLOCK, sink, drain_rate=5_000_000)
    balanced(run, written)
    records = outages(run, written)
    assert run.lost > len(written) // 4
    assert records < run.lost // 100
    # Of five seeds, 9.5 to 10.2 % of the extended sink's stream: it says more in fewer bytes.
    reports = sum(48 + len(payload) for kind, _, payload in run.blocks if kind is BlockType.LOSS)
    assert reports < len(run.stream) // 8


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("windows", [1 << 16, (1 << 16) + 4096, 1 << 32, (1 << 33) + (1 << 16)])
def test_silence_in_a_stall(board, sink, windows):
    """The host is away, nodes write, are silent for longer than counters are wide, and write again: every
    stamp is exact."""
    rng = np.random.default_rng(windows % 1000)
    first = random_gaps(board, 1e6, 0.1, 1.1, rng)
    later = random_gaps(board, 1e6, 0.1, 1.1, rng)
    pause = windows + 300_000
    both = [np.concatenate(pair) for pair in ((first[0], later[0] + pause), (first[1], later[1]))]
    written = traffic(board, *both, rng)
    back_ms = (pause + 200_000) // 100_000
    with VirtualLink(written.stimulus, board, stalls=[(0.05, back_ms)], skip=False) as link:
        start(link, written.stimulus, Window.CLOCK, sink)
        stream = bytearray()
        while link.edge < 250_000:
            stream += link.stream(LIMIT)
        before, computed = link.edge, link.cycles
        link.leap(windows)
        assert link.edge - before >= windows
        assert link.cycles - computed < 1000
        while not link.ended:
            stream += link.stream(LIMIT)
        write(link, "CONTROL", 1 << 4 | Window.CLOCK << 2)
        while not (run := decode(bytes(stream), board)).stopped:
            stream += link.stream(LIMIT)
    balanced(run, written)
    assert any(window > pause for window, _, _ in run.events)


@pytest.mark.parametrize(("sink", "hours"), [
    pytest.param(sink, hours, marks=pytest.mark.slow if hours > 1 else ()) for sink in Sink for hours in (1, 5)])
def test_silence_of_hours_between(stored, sink, hours):
    """No stall but hours of idling: what comes before and behind is as if there were none."""
    board = stored
    rng = np.random.default_rng(5)
    edge, node = random_gaps(board, 1e6, 0.1, 0.3, rng)
    hours *= 3600 * board.clock_hz
    written = traffic(board, np.concatenate([edge, edge + hours]), np.concatenate([node, node]), rng)
    run = once(written.stimulus, board, Window.CLOCK, sink)
    balanced(run, written)
    assert not run.losses
