"""Regeneration boards on a whole board: stamps of wired twins plus a constant; every loss counted and placed."""

import numpy as np
import pytest
from hypermon.hdl.layout import Geometry, Sink, Window
from hypermon.sim.stimulus.stimulus import Edge, Sample, Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import play, read, write
from tests.sim.traffic import Mode, Traffic, random_gaps, traffic

#: Clocks by which a link delays all stamps; and causes in a LOSS record, from docs/regeneration.md.
LATE, GATE, LINE = 4109, 16, 32
NODE_FIFO = 2
LINKED = Geometry(16, node_depth=64, vector_depth=256, frame_depth=64, sinks=tuple(Sink), links=1)
TWIN = Geometry(8, sinks=tuple(Sink))


@pytest.fixture(scope="module")
def linked(tools):
    """Sixteen nodes, of which eight are connected to a regeneration board."""
    from hypermon.sim.virtual.build import library

    library(LINKED)
    return LINKED


def twins(written: Traffic) -> Stimulus:
    """The same traffic from nodes 0 to 7, over the link, and from nodes 8 to 15, wired directly."""
    one = written.stimulus
    time, port = (np.concatenate([column, column]) for column in (one.time_ps, one.port))
    node = np.concatenate([one.node, one.node + 8])
    order = np.lexsort((node, time))
    return Stimulus(time[order], node[order].astype(np.int16), port[order], [0] * 16, [Edge.BOTH] * 16,
                    [Sample.AFTER] * 16)


def busy(rate, until_ms, seed, modes=None):
    rng = np.random.default_rng(seed)
    return traffic(TWIN, *random_gaps(TWIN, rate, 0.7, until_ms, rng), rng, modes)


def came(run, node):
    """Window and nibble of a node's items."""
    return sorted((window, nibble) for window, n, nibble in run.events if n == node)


def wait(link):
    for _ in range(16):
        link.stream(16)


def run_of(stimulus, board, sink, window=Window.CLOCK, **disturbance):
    """On a board that has had 2.6 ms since its power-up, in which all counts were told."""
    with VirtualLink(stimulus, board, seed=disturbance.pop("seed", None)) as link:
        wait(link)
        link.disturb(**disturbance)
        return play(link, stimulus, window, sink=sink)


def balanced(run, clocks=1):
    """To the last item: what did not come over the link is in its counts and in its records, each in its place. Returns
    items lost by cause."""
    by_cause = {GATE: 0, LINE: 0}
    for n in range(8):
        offered = came(run, n + 8)
        got = came(run, n)
        if clocks == 1:
            wrong = {(window - LATE, nibble) for window, nibble in got} - set(offered)
            assert not wrong, f"node {n}: an item that was not written: {wrong}"
        counts, row = run.links[n], run.census[n]
        assert row["accepted"] == row["delivered"] == len(got)
        assert len(offered) == len(got) + counts["refused"] + counts["lost"]
        records = [record for record in run.losses if record["node"] == n]
        for cause, name in ((GATE, "refused"), (LINE, "lost")):
            mine = sum(record["lost"] for record in records if record["causes"] == cause)
            assert mine == counts[name]
            by_cause[cause] += mine
        assert {record["causes"] for record in records} <= {GATE, LINE}
        if clocks == 1:
            missing = sorted({window + LATE for window, _ in offered} - {window for window, _ in got})
            for window in missing:
                assert any(record["first"] <= window <= record["last"] for record in records), (n, window, records)
            for record in records:
                inside = sum(record["first"] <= window <= record["last"] for window in missing)
                assert inside >= record["lost"], (record, missing)
    return by_cause


@pytest.mark.parametrize("sink", list(Sink))
def test_stamps_are_those_of_wired_twins(linked, sink):
    written = busy(3e6, 2, 1)
    run = run_of(twins(written), linked, sink)
    for n in range(8):
        assert came(run, n) == [(window + LATE, nibble) for window, nibble in came(run, n + 8)]
    assert len(run.events) == 2 * len(written)
    assert sum(balanced(run).values()) == 0
    assert run.census_flags >> 8 == 0


def test_random_delays_of_the_pads(linked):
    """Each of two twins may see an edge one clock later."""
    rng = np.random.default_rng(10)
    edge, node = random_gaps(TWIN, 3e6, 0.7, 2, rng)
    written = traffic(TWIN, edge // 4 * 4, node, rng)       # slow enough for a port with an aperture
    run = run_of(twins(written), linked, Sink.EXTENDED, seed=5)
    differences = set()
    for n in range(8):
        mine, wired = came(run, n), came(run, n + 8)
        assert [nibble for _, nibble in mine] == [nibble for _, nibble in wired]
        differences |= {a - b - LATE for (a, _), (b, _) in zip(mine, wired, strict=True)}
    assert differences == {-1, 0, 1}


@pytest.mark.parametrize("sink", list(Sink))
def test_wrong_bits(linked, sink):
    run = run_of(twins(busy(3e6, 4, 2)), linked, sink, errors=1e-4)
    lost = balanced(run)
    assert lost[GATE] == 0
    assert lost[LINE] > 20
    assert run.census_flags >> 8 == 0


def test_wrong_bits_in_long_windows(linked):
    lost = balanced(run_of(twins(busy(1e6, 4, 3)), linked, Sink.CLASSIC, Window.NS200, errors=1e-4), clocks=20)
    assert lost[LINE] > 5


def test_pulled_cable(linked):
    """It is back before the end: everything that was written meanwhile is lost, counted and placed."""
    run = run_of(twins(busy(2e6, 3, 4)), linked, Sink.EXTENDED, pulled=(1_200_000_000, 1_700_000_000))
    lost = balanced(run)
    assert lost[GATE] == 0
    assert lost[LINE] > 500
    # Nothing that came is in the gap, and the gap is not much longer than the cable was away.
    gap = [record for record in run.losses if record["causes"] == LINE]
    assert min(record["first"] for record in gap) > 120_000 - 500
    assert max(record["last"] for record in gap) < 170_000 + 2 * LATE + 5000
    assert run.census_flags >> 8 == 0


def test_cable_away_at_the_end(linked):
    """The stop does not wait for it for ever, and the last census says that more may be lost."""
    run = run_of(twins(busy(2e6, 2, 5)), linked, Sink.EXTENDED, pulled=(1_500_000_000, 10**15))
    assert run.stopped
    assert run.census_flags >> 8 & 15 == 1
    assert run.census_flags >> 12 == 0


def test_no_board_at_all(linked):
    stimulus = twins(busy(2e6, 1, 6))
    with VirtualLink(stimulus, linked) as link:
        link.disturb(0.5)
        wait(link)
        run = play(link, stimulus, Window.CLOCK)
    assert run.census_flags >> 8 == 0x10
    assert not any(came(run, n) for n in range(8))
    with VirtualLink(stimulus, linked) as link:
        link.disturb(0.5)
        wait(link)
        write(link, "NODE_MASK", 0xff00)
        assert play(link, stimulus, Window.CLOCK).census_flags >> 8 == 0


def test_refused_by_the_regeneration_board(linked):
    """More than the line carries."""
    run = run_of(twins(busy(2.5e7, 1.5, 7)), linked, Sink.EXTENDED)
    lost = balanced(run)
    assert lost[GATE] > 1000
    assert lost[LINE] == 0


def test_a_node_whose_strobe_floats_closes_no_other(linked):
    """Node 3 toggles 33 million times a second. All items of the other nodes arrive; its own are counted."""
    edge, node = random_gaps(TWIN, 1e6, 0.7, 2.5, np.random.default_rng(12))
    floats = np.arange(70_000, 250_000, 3)
    edge, node = np.concatenate([edge[node != 3], floats]), np.concatenate([node[node != 3], np.full(len(floats), 3)])
    order = np.argsort(edge, kind="stable")
    run = run_of(twins(traffic(TWIN, edge[order], node[order], np.random.default_rng(13))), linked, Sink.EXTENDED)
    balanced(run)
    for n in range(8):
        if n == 3:
            assert run.links[n]["refused"] > 30_000
        else:
            assert came(run, n) == [(window + LATE, nibble) for window, nibble in came(run, n + 8)]
            assert run.links[n]["refused"] == 0


def test_both_at_once(linked):
    rng = np.random.default_rng(8)
    parts = [random_gaps(TWIN, rate, begin, begin + 0.2, rng)
             for begin, rate in ((0.7, 2e6), (1.0, 3e7), (1.4, 1e6), (1.7, 4e7), (2.2, 1e5))]
    written = traffic(TWIN, *(np.concatenate(columns) for columns in zip(*parts, strict=True)), rng)
    lost = balanced(run_of(twins(written), linked, Sink.EXTENDED, errors=1e-4, pulled=(1_500_000_000, 1_600_000_000)))
    assert min(lost.values()) > 50


def test_events_and_words(linked):
    """Items of several nibbles come over the link as they were."""
    modes = [Mode.EVENT, Mode.WORD] * 4
    stimulus = twins(busy(4e6, 2, 9, modes))
    with VirtualLink(stimulus, linked) as link:
        write(link, "EVENT_NODES", 0x5555)
        write(link, "WORD_NODES", 0xaaaa)
        run = play(link, stimulus, Window.CLOCK, sink=Sink.EXTENDED)
    items = [[(item.window, item.nibbles) for item in sorted(run.items) if item.node == n] for n in range(16)]
    for n in range(8):
        assert items[n]
        assert items[n] == [(window + LATE, nibbles) for window, nibbles in items[n + 8]]


#: Four nodes in event mode, two in word mode, two in nibble mode; and the same of their twins.
MIXED = [Mode.EVENT, Mode.WORD, Mode.EVENT, Mode.NIBBLE] * 2


def items_of(written, board, **disturbance):
    """A run of nodes in these modes, without twins."""
    stimulus = written.stimulus
    with VirtualLink(stimulus, board) as link:
        write(link, "EVENT_NODES", 0x5555)
        write(link, "WORD_NODES", 0x2222)
        wait(link)
        link.disturb(**disturbance)
        return play(link, stimulus, Window.CLOCK, sink=Sink.EXTENDED)


def whole_or_cut(offered, run):
    """Each item that comes over the link is one that was written, whole or cut short; those that do not come are in the
    counts, to the last one. Returns the number of items written, cut short, refused and lost on the line."""
    written = cut = refused = lost = 0
    for n in range(8):
        due = {window + LATE: nibbles for window, nibbles in offered.offered(n).items()}
        mine = [item for item in run.items if item.node == n]
        for item in mine:
            nibbles = due.pop(item.window)
            length = len(nibbles) - item.missing
            assert item.nibbles == nibbles[:length] + bytes(item.missing), f"node {n}: an item that was not written"
            cut += item.missing > 0
            assert not item.missing or MIXED[n] is not Mode.NIBBLE
        counts, row = run.links[n], run.census[n]
        assert row["accepted"] == row["delivered"] == len(mine)
        records = [record for record in run.losses if record["node"] == n]
        own = sum(record["lost"] for record in records if record["causes"] == NODE_FIFO)
        assert len(due) == counts["refused"] + counts["lost"] + own
        assert sum(record["lost"] for record in records) == len(due)
        for window in due:
            assert any(record["first"] <= window <= record["last"] for record in records), (n, window, records)
        written, refused, lost = written + len(mine) + len(due), refused + counts["refused"], lost + counts["lost"]
    return written, cut, refused, lost


def errors_in_items(board, until_ms, seed):
    offered = busy(6e6, until_ms, seed, MIXED)
    written, cut, refused, lost = whole_or_cut(offered, items_of(offered, board, errors=1e-4))
    assert refused == 0
    assert min(cut, lost) > written // 1000
    return written, cut, lost


def test_wrong_bits_in_items(linked):
    """None becomes a wrong event: an item that lost a part is cut short, and the next one is whole."""
    errors_in_items(linked, 8, 13)


@pytest.mark.slow
def test_long_wrong_bits_in_items(linked, capsys):
    """A hundred thousand items with one bit in ten thousand wrong."""
    written, cut, lost = errors_in_items(linked, 60, 14)
    assert written >= 100_000
    with capsys.disabled():
        print(f"{written} items, {cut} cut short, {lost} lost, none wrong")


def test_items_that_the_regeneration_board_refuses(linked):
    """Whole ones; those that had begun when it was full are cut short."""
    offered = busy(2.5e7, 1.5, 15, MIXED)
    written, cut, refused, lost = whole_or_cut(offered, items_of(offered, linked))
    assert lost == 0
    assert min(cut, refused) > 50
    assert written > 3000


def test_items_and_a_pulled_cable(linked):
    rng = np.random.default_rng(16)
    parts = [random_gaps(TWIN, rate, begin, begin + 0.2, rng)
             for begin, rate in ((0.7, 2e6), (1.0, 3e7), (1.4, 4e6), (1.7, 4e7), (2.2, 1e5))]
    written = traffic(TWIN, *(np.concatenate(columns) for columns in zip(*parts, strict=True)), rng, MIXED)
    _, cut, refused, lost = whole_or_cut(written, items_of(
        written, linked, errors=1e-4, pulled=(1_500_000_000, 1_600_000_000)))
    assert min(cut, refused, lost) > 10


def test_too_soon(linked):
    """Capture begins when no count has been told yet: what was lost until then is in none."""
    stimulus = twins(busy(1e6, 1, 11))
    with VirtualLink(stimulus, linked) as link:
        assert play(link, stimulus, Window.CLOCK).census_flags >> 8 == 1


def recorded(tmp_path, monkeypatch, rate, until_ms, **disturbance):
    """A run of `hypermon sim`."""
    from hypermon.host import cli, open_run

    discard = VirtualLink.discard

    def disturbed(link):
        discard(link)
        link.disturb(**disturbance)

    monkeypatch.setattr(VirtualLink, "discard", disturbed)
    one = busy(rate, until_ms, 12).stimulus
    (tmp_path / "x.csv").write_text("time_ns,node,port\n" + "".join(
        f"{time // 1000},{node},{port}\n" for time, node, port in zip(
            one.time_ps.tolist(), one.node.tolist(), one.port.tolist(), strict=True)))
    assert cli._run(["sim", str(tmp_path / "x.csv"), "-o", str(tmp_path / "run"), "--nodes", "8", "--port", "0-7=line",
                     "--edge", "both", "--sample", "after", "--window", "1"]) == 0
    return open_run(tmp_path / "run"), len(one.time_ps)


def test_stats_and_report_name_the_cause(tools, tmp_path, monkeypatch, capsys):
    from hypermon.host import cli

    run, offered = recorded(tmp_path, monkeypatch, 3e7, 1.2, errors=1e-4)
    stats = run.stats()
    assert stats["accounted"]
    assert not stats["complete"]
    assert offered == stats["events"] + stats["lost"]
    causes = {name: count for name, count in stats["causes"].items() if count}
    assert sum(causes.values()) == stats["lost"] == sum(row["lost"] for row in run.loss().to_pylist())
    assert set(causes) == {"regeneration_gate", "regeneration_line"}
    said = capsys.readouterr().err
    texts = [f"regeneration board full: {causes['regeneration_gate']:,}",
             f"lost on a regeneration line: {causes['regeneration_line']:,}"]
    assert all(text in said for text in texts), said
    assert cli._run(["report", str(run.path), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "regeneration board full: " in page
    assert "lost on a regeneration line: " in page


def test_stats_say_what_is_not_known(tools, tmp_path, monkeypatch, capsys):
    run, _ = recorded(tmp_path, monkeypatch, 1e6, 1.2, pulled=(1_000_000_000, 10**15))
    stats = run.stats()
    assert not stats["accounted"]
    assert not stats["complete"]
    assert "nodes 0 to 7: their regeneration board" in capsys.readouterr().err


def test_state_in_a_register(linked):
    with VirtualLink(None, linked) as link:
        for _ in range(4):
            link.stream(16)
        assert read(link, "LINKS") == 0x101
