"""What the board counts by itself is what its events say: every bin, at every moment."""

import json

import numpy as np
import pytest
from hypermon.hdl.layout import BEAT_BYTES, LATENCY, BlockType, Counter, Sink, Window
from hypermon.host.cli import _run
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.reduction import read_reduction
from hypermon.host.errors import HypermonError
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import LIMIT, decode
from tests.sim.virtual.test_link import MS, dense, sparse, stimulus


def expected_gaps(windows, count=None):
    """The histogram of the first ``count`` gaps between a node's windows."""
    gaps = np.diff(np.array(windows, np.int64))[:count]
    _, bits = np.frexp(gaps.astype(float))
    return np.bincount(bits - 1, minlength=64).tolist()


def expected_shared(windows, nodes):
    """Windows by their number of items."""
    _, items = np.unique(np.array(windows), return_counts=True)
    return np.bincount(items, minlength=nodes + 1).tolist()


def play(played, geometry, window=Window.CLOCK, looks=0, every=1 << 12, flush=None, **options):
    """One run; reads the reduction up to ``looks`` times while it goes on, and when it is over.

    Returns the run, what was read on the way, and what at the end."""
    with VirtualLink(played, geometry, **options) as link:
        device = Device(link)
        device.prepare(Settings(window=window, sink=Sink.EXTENDED))
        if flush:
            device.write("FLUSH", flush)
        device.start()
        stream, on_the_way = bytearray(), []
        while not link.ended:
            stream += link.stream(every if len(on_the_way) < looks else LIMIT)
            if len(on_the_way) < looks:
                on_the_way.append(read_reduction(device))
        device.stop()
        for _ in range(1000):
            stream += link.stream(LIMIT)
            run = decode(bytes(stream), geometry)
            if run.stopped:
                return run, on_the_way, read_reduction(device)
    raise AssertionError("no census of the stop")


def check_end(run, reduction, nodes):
    for node in range(nodes):
        assert reduction.gaps[node] == expected_gaps(run.windows(node)), node
    assert reduction.shared == expected_shared([window for window, _, _ in run.events], nodes)
    assert reduction.accepted == [node["accepted"] for node in run.census]
    assert sum(reduction.lost) == run.lost
    items = len(run.events)
    alone = expected_shared([window for window, _, _ in run.events], nodes)[1]
    assert reduction.merged_percent == pytest.approx(100 * (items - alone) / items)


@pytest.mark.parametrize("window", list(Window))
def test_sparse(extended, window):
    played = stimulus(sparse(np.random.default_rng(window), extended, 400, 4 * MS))
    run, _, reduction = play(played, extended, window)
    check_end(run, reduction, extended.nodes)
    assert len([k for k in range(64) if any(row[k] for row in reduction.gaps)]) > 8 or window is not Window.CLOCK
    assert max(reduction.node_high) >= 1
    assert all(high <= extended.node_depth for high in reduction.node_high)


@pytest.mark.parametrize("options", [{}, {"drain_rate": 20_000_000}, {"stalls": [(0.1, 0.7)], "seed": 4}])
def test_dense_and_read_on_the_way(odd_extended, options):
    """Each copy is that of one moment: of every node, the gaps up to some item of it."""
    played = stimulus(dense(odd_extended, 2 * MS, 300_000), odd_extended.nodes)
    run, on_the_way, reduction = play(played, odd_extended, looks=20, **options)
    check_end(run, reduction, odd_extended.nodes)
    assert len(on_the_way) > 2
    assert run.lost or options != {"drain_rate": 20_000_000}
    grown = 0
    for before, after in zip([None, *on_the_way], [*on_the_way, reduction], strict=True):
        for node, gaps in enumerate(after.gaps):
            assert gaps == expected_gaps(run.windows(node), sum(gaps))
            assert sum(gaps) <= after.accepted[node]
            grown += before is not None and gaps != before.gaps[node]
        items = sum(k * count for k, count in enumerate(after.shared))
        first = [window for window, _, _ in run.events][:items]
        assert after.shared == expected_shared(first, odd_extended.nodes)
    assert grown > 50


def test_looking_changes_nothing(extended):
    """The stream is the same, whether the host looks or not, and with and without skipping."""
    played = stimulus(sparse(np.random.default_rng(5), extended, 100, MS))
    ways = [play(played, extended, looks=looks, skip=skip) for looks, skip in ((0, True), (0, False), (30, True))]
    assert ways[0][0].stream == ways[1][0].stream
    assert ways[0][2] == ways[1][2]
    assert ways[0][0].events == ways[2][0].events
    assert ways[0][2].gaps == ways[2][2].gaps
    assert ways[0][2].shared == ways[2][2].shared


def test_high_water(extended):
    """A host that stalls: what stands before it fills up, and says how far."""
    played = stimulus(dense(extended, MS, 200_000))
    _, _, free = play(played, extended)
    run, _, stalled = play(played, extended, stalls=[(0.05, 0.6)])
    assert run.lost
    assert stalled.store_high > free.store_high
    assert stalled.vector_high > extended.vector_depth - extended.node_depth - 8
    assert stalled.vector_high <= extended.vector_depth
    # A nibble a window goes to all but the last entries, which the vector FIFO keeps the gate from using.
    assert max(free.node_high) < 8


@pytest.mark.parametrize("most", [3, 11, 19])
def test_node_high_water(extended, most):
    """Bursts within a window of each node stand in its FIFO until the window ends."""
    count = [1 + (5 * n + most) % most for n in range(extended.nodes)]
    # Windows are 80 clocks; the first strobe is the first of its window.
    edges = [(800 * (n + 1) - LATENCY + 4 * k, n, k % 16) for n, many in enumerate(count) for k in range(many)]
    played = stimulus([(10_000 * (edge + at), n, strobe | nibble) for edge, n, nibble in edges
                       for at, strobe in ((-1, 0), (0, 16), (2, 0))])
    run, _, reduction = play(played, extended, Window.NS800)
    assert reduction.node_high == count
    assert not run.lost


def test_full_node_fifos(extended):
    """Faster than they are read: they fill up, and not an entry more."""
    played = stimulus([(10_000 * (500 + 4 * k + at), n, strobe | k % 16) for n in range(extended.nodes)
                       for k in range(3 * extended.node_depth) for at, strobe in ((-1, 0), (1, 16), (3, 0))])
    run, _, reduction = play(played, extended, Window.NS800)
    assert reduction.node_high == [extended.node_depth] * extended.nodes
    assert run.lost


@pytest.mark.parametrize("items", [20, 150, 700])
def test_store_high_water(extended, items):
    """A block that is open until its time is over waits whole."""
    played = stimulus([(200_000 * k + at, k % 5, strobe | k % 16)
                       for k in range(1, items) for at, strobe in ((0, 0), (60_000, 16), (120_000, 0))])
    run, _, reduction = play(played, extended, flush=200_000)
    lengths = [len(payload) for kind, _, payload in run.blocks if kind is BlockType.COMPACT]
    assert len(lengths) == 1
    assert reduction.store_high == -(-lengths[0] // BEAT_BYTES)


def test_vector_high_water(extended):
    """A host that is away: what stands in the FIFO then is the most that ever does."""
    played = stimulus(dense(extended, MS // 2, 200_000))
    with VirtualLink(played, extended, stalls=[(0, 0.4)]) as link:
        device = Device(link)
        device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED))
        device.start()
        while link.board_ps < 0.3 * MS:
            link.stream(16)
        level = device.read("LEVEL") >> 16
        while not link.ended:
            link.stream(LIMIT)
        assert level > extended.vector_depth - extended.node_depth - 8
        assert read_reduction(device).vector_high == level


def test_a_reset_zeroes_it(extended):
    played = stimulus(dense(extended, 4 * MS, 800_000))
    with VirtualLink(played, extended) as link:
        device = Device(link)
        for _ in range(2):
            device.prepare(Settings(window=Window.CLOCK, sink=Sink.EXTENDED))
            zero = read_reduction(device)
            assert not any(map(any, zero.gaps))
            assert not any(zero.shared)
            assert not any(zero.node_high)
            assert not zero.vector_high
            assert not zero.store_high
            device.start()
            read_reduction(device)      # which takes its time
            assert any(map(any, read_reduction(device).gaps))


def test_rates(extended):
    played = stimulus(dense(extended, 2 * MS, 400_000))
    _, on_the_way, reduction = play(played, extended, looks=3)
    for before, after in zip([None, on_the_way[0]], on_the_way, strict=False):
        assert after.rates(before) == pytest.approx([2.5e6] * extended.nodes, rel=0.2)
    assert reduction.as_dict()["rate_per_node"] == reduction.rates()


def test_counters_are_told_apart(extended):
    """Of a run with loss: accepted and lost, as the last census has them."""
    played = stimulus(dense(extended, MS, 200_000))
    run, _, reduction = play(played, extended, drain_rate=5_000_000)
    assert run.lost
    causes = [c.name.lower() for c in Counter if c.name.startswith("LOST")]
    assert reduction.lost == [sum(node[c] for c in causes) for node in run.census]


def test_classic_boards_do_not_count(classic, extended):
    for geometry in (classic, extended):
        with VirtualLink(None, geometry) as link:
            device = Device(link)
            device.prepare(Settings())
            with pytest.raises(HypermonError, match="only an extended board has these counters"):
                read_reduction(device)


def test_counting_alone(extended, tmp_path, capsys):
    """`hypermon counters`: the same figures, and nothing recorded."""
    rows = sorted(sparse(np.random.default_rng(8), extended, 100, MS // 10), key=lambda row: row[:2])
    played = stimulus(rows)
    path = tmp_path / "played.csv"
    path.write_text("time_ns,node,port\n" + "".join(f"{t / 1000},{n},{v}\n" for t, n, v in rows))
    run, _, expected = play(played, extended)
    assert _run(["counters", "-b", f"sim:{path}", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["gap_bins_per_node"] == expected.gaps
    assert figures["windows_by_items"] == expected.shared
    assert sum(figures["accepted_per_node"]) == len(run.events) == 100
    last = max(t for t, _, _ in rows) / 1e12
    assert last <= figures["seconds"] < last + 50e-6
    assert figures["rate_per_node"][0] == pytest.approx(figures["accepted_per_node"][0] / figures["seconds"])
    assert _run(["counters", "-b", f"sim:{path}", "--every", "0.001"]) == 0
    text = capsys.readouterr().out
    assert text.count("time between items of a node") >= 2
    assert "100" in text
