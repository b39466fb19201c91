"""Skipped time: whatever the gaps, the modes and the host, the stream is the same as when every clock is computed."""

import numpy as np
import pytest
from hypermon.hdl.layout import BEAT_BYTES, Control, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import decode, ends_in_census, once, play, start, write
from tests.sim.virtual.test_link import MS, at, stimulus, strobes

#: Clocks that a run may take when every one of them is computed.
LONGEST = 400_000
#: Computed clocks that one isolated strobe costs at most: to its frame, to its block, and its share of a census.
ISOLATED = 120


def random_strobes(rng, geometry) -> Stimulus:
    """Bursts of strobes, in each of which the gaps have a scale of their own: one clock to a millisecond."""
    rows, edge, free = [], 40, [0] * geometry.nodes
    while edge < LONGEST:
        scale = 10 ** rng.uniform(0, 5)
        few = int(rng.integers(1, geometry.nodes + 1))
        for _ in range(int(rng.integers(1, 30))):
            edge += 1 + int(rng.exponential(scale))
            node = int(rng.integers(few))
            begin = max(edge, free[node])
            before, high, low = (int(k) for k in rng.integers(1, 20, 3))
            nibble = int(rng.integers(16))
            rows += [
                (at(geometry, begin), node, nibble),
                (at(geometry, begin + before), node, 16 | nibble),
                (at(geometry, begin + before + high), node, nibble),
            ]
            free[node] = begin + before + high + low
            if edge > LONGEST:
                break
    return stimulus(rows, geometry.nodes)


def configured(rng, geometry, sink) -> dict[str, int]:
    """Values of registers, by name; a clock of every timer is somewhere between a few and a few ten thousand."""
    values = {"FLUSH": int(10 ** rng.uniform(0.5, 4.5))}
    if sink is Sink.EXTENDED:
        every = (1 << geometry.nodes) - 1
        if rng.random() < 0.6:
            words, events = (int(rng.integers(every + 1)) & int(rng.integers(every + 1)) for _ in range(2))
            values |= {"WORD_NODES": words, "EVENT_NODES": events & ~words}
        values["ITEM_TIMEOUT"] = int(10 ** rng.uniform(2, 4))
    return values


def host(rng) -> dict[str, object]:
    """A quick host, a slow one, or one that is away at times; some of them see changes late."""
    options: dict[str, object] = {"seed": int(rng.integers(100)) if rng.random() < 0.3 else None}
    kind = rng.integers(4)
    if kind == 1:
        options["drain_rate"] = int(10 ** rng.uniform(5, 7.5))
    elif kind == 2:
        options["stalls"] = [(round(rng.uniform(0, 2), 3), round(rng.uniform(0, 3), 3)), (6, 0.7)]
    return options


def beats(link, played, window, sink) -> tuple[bytes, list[int]]:
    """The stream from a reset to the census of the stop, and the edge after each beat.

    A call for a single beat returns with it. A call for more may also return when the board is quiet, and that is later
    if clocks were skipped: the counters then wait for a whole sweep.
    """
    start(link, played, window, sink)
    stream, edges = bytearray(), []

    def beat() -> None:
        piece = link.stream(BEAT_BYTES)
        stream.extend(piece)
        edges.extend([link.edge] * bool(piece))

    while not link.ended:
        beat()
    write(link, "CONTROL", Control.STREAM | window << 2)
    for _ in range(100_000):
        beat()
        if ends_in_census(stream, link.geometry) and decode(bytes(stream), link.geometry).stopped:
            return bytes(stream), edges
    raise AssertionError("no census of the stop")


@pytest.mark.parametrize(
    ("board", "sink"),
    [
        ("classic", Sink.CLASSIC),
        ("odd", Sink.CLASSIC),
        ("wide", Sink.CLASSIC),
        ("odd_extended", Sink.EXTENDED),
        ("odd_extended", Sink.CLASSIC),
        ("stored", Sink.EXTENDED),
        ("in_halves", Sink.EXTENDED),
        ("in_quarters", Sink.EXTENDED),
        ("byte_wide", Sink.EXTENDED),
    ],
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 12))])
def test_random_gaps(request, board, sink, seed):
    """Byte for byte and clock for clock, with gaps to a millisecond, in all modes, with all kinds of hosts."""
    geometry = request.getfixturevalue(board)
    rng = np.random.default_rng([seed, geometry.nodes, sink])
    played = random_strobes(rng, geometry)
    window = Window(int(rng.integers(4)))
    values, options = configured(rng, geometry, sink), host(rng)
    streams, edges, cycles = [], [], []
    for skip in (True, False):
        with VirtualLink(played, geometry, skip=skip, **options) as link:
            for name, value in values.items():
                write(link, name, value)
            stream, at = beats(link, played, window, sink)
            streams.append(stream)
            edges.append(at)
            cycles.append(link.cycles)
    assert streams[0] == streams[1], (window, values, options)
    assert edges[0] == edges[1]
    assert cycles[0] < cycles[1], "nothing was skipped"


@pytest.mark.parametrize("rate", [1000, 20_000])
def test_an_isolated_strobe_costs_few_clocks(classic, rate):
    """With its block, and its share of a census."""
    rng = np.random.default_rng(rate)
    count = 2000
    edges = np.unique(rng.integers(100, count * classic.clock_hz // rate, count) // 200 * 200)
    played = stimulus(strobes(classic, edges.tolist(), hold=5))
    with VirtualLink(played, classic) as link:
        before = link.cycles
        run = play(link, played)
        cost = (link.cycles - before) / len(edges)
    assert len(run.events) == len(edges)
    assert cost <= ISOLATED


def test_a_slow_host_is_waited_for_in_no_time(classic):
    """Beats that wait for the host cost nothing until it takes them."""
    rng = np.random.default_rng(1)
    played = stimulus(strobes(classic, np.unique(rng.integers(10, 10**6, 3000) // 20 * 20).tolist()))
    with VirtualLink(played, classic, drain_rate=100_000) as link:
        run = play(link, played)
        assert link.cycles < link.edge // 10
    assert len(run.stream) > 20_000


def test_one_node_many_times(classic):
    """A counter gains thousands between skips of all lengths, and none is missed."""
    rng = np.random.default_rng(2)
    edges = (np.cumsum(rng.integers(60, 700, 3000)) + 50).tolist()
    run = once(stimulus(strobes(classic, edges)), classic, Window.NS200)
    assert [run.census[0][k] for k in ("accepted", "delivered")] == [len(edges)] * 2
    assert edges[-1] < MS
