"""What is measured of runs, and `hypermon compare` on them."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.compare import measures
from hypermon.host.compare.estimates import Ratio, Samples
from hypermon.host.compare.measures import BLOCKS, Measured
from hypermon.host.compare.recording import Measure, Recording
from hypermon.host.contracts.doubts import opened_trace

from tests.host.conftest import event_item
from tests.host.fake_board import FakeBoard
from tests.host.telling import BOOK

from .conftest import US


def test_a_latency_is_of_two_nodes(two) -> None:
    """Times of two nodes may be off by more than those of one."""
    recording = Recording(two()[0], BLOCKS)
    recording._part = replace(recording._part, slack_ps=3, apart_ps=5)
    assert recording.latencies("cast").slack_ps == 5
    assert recording.periods(["caught"])["caught"].slack_ps == 3


def test_values(two) -> None:
    found = Measured(two()[:1])
    border, job, share = found[Measure("latency", "cast")], found[Measure("duration", "it's a job")], \
        found[Measure("share", "it's a job")]
    assert isinstance(border, Samples)
    assert isinstance(job, Samples)
    assert isinstance(share, Ratio)
    assert (len(border.values), border.values.min(), border.values.max()) == (240, 5 * US, 13 * US)
    assert (len(border.starts), border.starts[0], border.starts[-1]) == (BLOCKS + 1, 0, 240)
    assert (set(job.values.tolist()), job.missing, job.slack_ps > 0) == ({30 * US}, 0, True)
    assert share.part.sum() == pytest.approx(240 * 30 * US)
    period, rate = found[Measure("period", "begin")], found[Measure("rate", "begin")]
    assert isinstance(period, Samples)
    assert isinstance(rate, Ratio)
    assert set(period.values.tolist()) == {40 * US}
    assert rate.part.sum() == 240
    assert Measure("lost", "") not in found      # there are no items of which any could be lost


def test_losses_widen(two) -> None:
    """Events that were framed from nibbles: how many are missing after a loss is not known."""
    found = Measured(two([(0, 5, 40, 41)])[:1])
    assert found[Measure("latency", "cast")].missing == math.inf
    assert found[Measure("share", "it's a job")].more == math.inf
    assert found[Measure("lost", "")].part.sum() == 5


def test_messages_that_a_loss_leaves_open_are_missing(make_run, tmp_path, run_cli) -> None:
    """An item is lost, so the later messages of this key may be matched wrongly: their latencies are not known."""
    modes = ItemModes.of([ItemMode.EVENT] * 2)
    board = FakeBoard(nodes=2, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    board.items([event_item(1000 * at, at % 2, 6 + at % 2, 1, 0) for at in range(2, 8)], modes)
    board.loss([(0, 1, 3500, 3500)])
    run = make_run(board.stop(10_000), modes=["event", "event"], item_timeout_clocks=1000)
    (tmp_path / "book.toml").write_text(BOOK)
    assert run_cli("decode", run.path, "--dictionary", tmp_path / "book.toml")[0] == 0
    found = Measured([run])[Measure("latency", "cast")]
    assert isinstance(found, Samples)
    assert (found.values.tolist(), found.missing, found.wrong) == ([10 * US], 3, 1)


def test_a_loss_of_items_counts(make_run, losing_run) -> None:
    found = Measured([losing_run])
    lost = losing_run.loss()["lost"].to_numpy().sum()
    periods = [own for name, own in found.items() if name.kind == "period"]
    assert {(own.missing, own.wrong) for own in periods} == {(2 * lost, lost)}
    table = losing_run.events()
    times, nodes = (table[name].to_numpy()[table["nibble"].to_numpy() == 7] for name in ("time_ps", "node"))
    gaps = np.concatenate([np.diff(times[nodes == node]) for node in range(16)])
    assert sorted(found[Measure("period", "nibble:7")].values) == sorted(gaps)


def test_the_command(two, run_cli) -> None:
    first, second = (run.path for run in two())
    status, out, err = run_cli("compare", first, second, "--json", "--fail-if", "latency.p50 > 0 ns")
    found = {figure["name"]: figure for figure in json.loads(out)["figures"]}
    assert (status, err, found["latency:cast.p50"]["verdict"]) == (1, [], "higher")
    assert found["latency:cast.p50"]["difference"][0] <= 4 * US <= found["latency:cast.p50"]["difference"][1]
    assert (found["period:begin.p50"]["verdict"], found["latency:cast.p99"]["verdict"]) == ("same", "few")
    status, out, _ = run_cli("compare", first, second, "--fail-if", "latency.p50 > +500 %")
    assert (status, "latency:cast.p50" in out) == (0, True)
    assert run_cli("compare", first, first, "--fail-if", "latency.p50 > +0.01 %")[0] == 4
    assert "All" in run_cli("compare", first, second, "--markdown")[1]


def test_a_loss_leaves_it_undecided(two, run_cli) -> None:
    first, second = (run.path for run in two([(0, 5, 40, 41)]))
    status, out, _ = run_cli("compare", first, second, "--json", "--fail-if", "latency.p50 > 0 ns")
    found = {figure["name"]: figure for figure in json.loads(out)["figures"]}
    assert (status, found["latency:cast.p50"]["verdict"]) == (4, "undecided")
    assert found["period:begin.p50"]["verdict"] == "undecided"


def test_groups(two, tmp_path, run_cli) -> None:
    paths = [run.path for run in two()]
    for path in paths:
        (tmp_path / f"group-{path.name}").mkdir()
        path.rename(tmp_path / f"group-{path.name}" / "a")
    status, out, _ = run_cli("compare", tmp_path / "group-first", tmp_path / "group-second", "--json")
    found = {figure["name"]: figure["verdict"] for figure in json.loads(out)["figures"]}
    assert (status, found["latency:cast.p50"]) == (0, "higher")
    (tmp_path / "none").mkdir()
    status, _, [line] = run_cli("compare", tmp_path / "none", tmp_path / "group-second")
    assert (status, "neither a run nor a directory of runs" in line) == (2, True)


def test_what_the_command_refuses(two, run_cli) -> None:
    first, second = (run.path for run in two())
    for more, said in ((["--json", "--markdown"], "choose one"), (["--fail-if", "x"], "expected MEASURE")):
        status, out, [line] = run_cli("compare", first, second, *more)
        assert (status, out, said in line) == (2, "", True)


def test_nothing_to_compare(make_run, two, run_cli) -> None:
    """Runs without an item or a loss have no figure: that is no agreement."""
    first, second = (make_run(FakeBoard(2).start().stop(10**6), name=name, board="sim:x").path for name in ("a", "b"))
    for more in ([], ["--json"], ["--markdown"], ["--html", first.parent / "page.html"]):
        status, out, [line] = run_cli("compare", first, second, *more)
        assert (status, out) == (2, "")
        assert line == (f"hypermon: {first}, {second}: nothing to compare: neither has an item, a loss or a state that "
                        "a figure could be of")
    assert not (first.parent / "page.html").exists()
    # One side is enough for a table.
    assert run_cli("compare", first, two()[0].path)[0] == 0


def test_periods_are_read_in_parts(two, monkeypatch) -> None:
    """Two recordings of a group, with room for one name's intervals, or for all: the same samples, block by block."""
    runs = two()

    def read() -> list:
        return [(name, own.values.tolist(), own.starts.tolist()) for name, own in Measured(runs).items()
                if isinstance(own, Samples)]

    reads = []
    monkeypatch.setattr(Recording, "periods", lambda own, names, periods=Recording.periods: (
        reads.append(len(names)), periods(own, names))[1])
    whole = read()
    [every, _] = reads
    monkeypatch.setattr(measures, "_MOST", 1)
    assert read() == whole
    assert reads == [every, every, *[1] * (2 * every)]
    assert every > 2


def test_blocks_have_their_own_intervals(losing_run) -> None:
    """Against each interval by itself: the block in which it begins."""
    found = Measured([losing_run])[Measure("period", "nibble:7")]
    assert isinstance(found, Samples)
    table = losing_run.events()
    times, nodes, nibbles = (table[name].to_numpy() for name in ("time_ps", "node", "nibble"))
    with opened_trace(losing_run) as (trace, _):
        start, end = min(own.start for own in trace.nodes), max(own.end for own in trace.nodes)
    expected = [[] for _ in range(BLOCKS)]
    for node in range(16):
        own = times[(nodes == node) & (nibbles == 7)].tolist()
        for begin, until in pairwise(own):
            expected[min((begin - start) * BLOCKS // (end - start), BLOCKS - 1)].append(until - begin)
    blocks = [sorted(found.values[a:b].tolist()) for a, b in pairwise(found.starts.tolist())]
    assert blocks == [sorted(own) for own in expected]
    assert sum(map(bool, blocks)) > 10


def test_a_recording_without_the_measure(two, make_run) -> None:
    """A group of which one recording has no such event: its blocks are empty."""
    [run] = two()[:1]
    other = make_run(FakeBoard(2).start().stop(10**6), name="silent", board="sim:x")
    found = Measured([other, run])[Measure("period", "begin")]
    assert isinstance(found, Samples)
    assert (found.starts[BLOCKS // 2], found.starts[-1], len(found.starts)) == (0, 239, BLOCKS + 1)
