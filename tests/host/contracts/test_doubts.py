"""What is not known of a RUN: losses, framing, filters, masks, ends."""

import json
import random

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.contracts.doubts import apart_of, kept_back, opened_trace, slack_of
from hypermon.host.contracts.judge import judge
from hypermon.host.contracts.trace import ENDLESS, MANY
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard
from tests.host.items import TIMEOUT, in_blocks, play


def gaps(run):
    with opened_trace(run) as (trace, _):
        return trace.db.execute("select node, lo, hi, n, cause, framed from gaps order by cause, lo, node").fetchall()


def test_losses_of_items(mixed_run):
    found = gaps(mixed_run)
    lost = mixed_run.loss().to_pylist()
    assert [(node, lo, hi, n) for node, lo, hi, n, cause, _ in found if cause == "loss"] == sorted(
        [(row["node"], row["from_ps"], row["to_ps"], row["lost"]) for row in lost], key=lambda row: (row[1], row[0]))
    aborted = mixed_run.events().to_pylist()
    assert sum(cause == "aborted" for *_, cause, _ in found) == sum(row["aborted"] for row in aborted) > 0


def test_framing_after_a_loss(told):
    """Nothing is known from the last whole event before a loss to the first one after it."""
    rows = [(t * 10**6, 0, 4, b"\x01\x07", t == 40) for t in (10, 20, 30, 40, 50, 60)]
    found = [row for row in gaps(told(rows, [(0, 3, 28, 28)])) if row[5]]
    # Window 28 of 800 ns is the time from 22.4 us on. The event at 40 us was aborted.
    assert [(node, lo, hi, n) for node, lo, hi, n, *_ in found] == [
        (0, 20 * 10**6 + 1, 30 * 10**6 - 1, MANY + 3), (0, 30 * 10**6 + 1, 50 * 10**6 - 1, MANY)]


@pytest.mark.parametrize(("configuration", "nodes"), [({"nodes_kept": [0, 2]}, [1, 3]), ({}, [])])
def test_masked_nodes(told, configuration, nodes):
    run = told([])
    run.info.configuration.update(configuration)
    assert [node for node, *_, cause, _ in gaps(run) if cause == "unsure"] == nodes


def test_a_stream_that_was_cut(losing_run, make_run):
    assert {cause for *_, cause, _ in gaps(losing_run)} == {"loss"}
    assert [(node, n, cause) for node, _, _, n, cause, _ in gaps(make_run(FakeBoard(2).start(), name="cut"))] == [
        (0, MANY, "unsure"), (1, MANY, "unsure")]


def test_extents_and_slack(told):
    run = told([(10**6, 0, 4, b"\x01\x07", False), (9 * 10**6, 1, 4, b"\x01\x07", False)])
    with opened_trace(run) as (trace, book):
        assert book is not None
        assert {(own.start, own.end) for own in trace.nodes} == {(-60_000, 9 * 10**6)}
        assert trace.slack(False) == 800_001 + 10_000       # a window, rounded up, and a clock
    # A real board may have stopped up to a second before the host learned its time; the virtual one has not.
    run.info.end["duration_ps"] = 20 * 10**6
    for board, end in (("sim:x", 20 * 10**6), ("usb:", 9 * 10**6)):
        run.info.board = board
        with opened_trace(run) as (trace, _):
            assert trace.nodes[0].end == end
    # The times of a part: the first one is in it, the last one is not.
    run.info.configuration["trimmed"] = {"from_ps": 2 * 10**6, "to_ps": 5 * 10**6}
    with opened_trace(run) as (trace, _):
        assert (trace.nodes[0].start, trace.nodes[0].end) == (2 * 10**6, 5 * 10**6 - 1)


def test_slack_of_carried_and_regenerated_items(told):
    run = told([])
    assert slack_of(run.info, 3) - slack_of(run.info, 0) == 3 * 800_001
    # A superframe of a line, and the path through both boards.
    assert (apart_of(run, False), apart_of(run, True)) == (0, (4096 + 64) * 10_000)


@pytest.mark.parametrize(("configuration", "cause"), [
    ({}, "filter"), ({"events_out": [7]}, "masked"), ({"events_out": [7], "start": {"node": 1}}, "filter")])
def test_what_a_board_discarded(told, configuration, cause):
    """A mask of ids discards these only; a trigger, anything."""
    run = told([])
    run.info.configuration.update(configuration)
    assert kept_back(run.info, 2, 5) == [(0, 5, cause), (1, 5, cause)]


@pytest.mark.parametrize(("cut", "info", "late"), [
    (False, {}, 2), (True, {}, 11), (True, {"configuration": {"start": "nibble=1"}}, 64),
    (True, {"configuration": {"start": "nibble=1"}, "identity": {"node_depth": 32}}, 32)])
def test_items_may_be_carried_after_the_last_census(make_run, cut, info, late):
    """No census states by how much. They fill the windows through which one of them was carried, unless items that the
    board discarded did."""
    board = FakeBoard(2).start()
    board.frames([(window, {0: 1, 1: 2}) for window in (10, 500, 501, 502)])
    board.carried[0], board.lag[0] = 2, 2
    board.census()
    board.frames([(window, {0: 1}) for window in (900, *range(1000, 1012), 1100)])
    run = make_run(board, board.data) if cut else make_run(board.stop(2000))
    for name, value in info.items():
        setattr(run.info, name, value)
    with opened_trace(run) as (trace, _):
        assert trace.slack_ps == 800_001 * (1 + late) + 10_000


def test_an_accounting_that_does_not_state_until_when(make_run):
    """Of an older version: any item may have been carried as far as the memory of a node reaches."""
    board = FakeBoard(2).start().frames([(10, {0: 1})])
    board.carried[0], board.lag[0] = 1, 1
    run = make_run(board, board.census().data)
    run.decode()
    file = run.path / "decode.json"
    done = json.loads(file.read_text())
    del done["counted_until"], done["check"]
    file.write_text(json.dumps(done))
    with opened_trace(Run(run.path)) as (trace, _):
        assert trace.slack_ps == 800_001 * (1 + 64) + 10_000


def test_settings_cannot_be_changed(told):
    with opened_trace(told([])) as (trace, _), pytest.raises(Exception, match="locked"):
        trace.db.execute("set memory_limit = '9GB'")
    assert ENDLESS > 10**18


@pytest.mark.parametrize("front", ["swo", "port"])
def test_an_overflow_of_an_itm_may_be_of_many(make_run, tmp_path, front):
    """The packet does not say how many items were lost. From a port, the same nibbles are an event."""
    modes, windows = ItemModes.of([ItemMode.EVENT]), [500, 1500, 2500, 5400, 5500, 6500]
    items = [LongItem(window, 0, bytes((1, 0, 4)) if window == 5400 else bytes((2, 3, 0, 5, 0)), 0, False)
             for window in windows]
    board = FakeBoard(1, window=Window.CLOCK, sink=Sink.EXTENDED)
    data = play(random.Random(1), board, modes, in_blocks(random.Random(1), items, modes, 7))
    run = make_run(data, modes=["event"], item_timeout_clocks=TIMEOUT, identity={"fronts": [front]})
    every = board.ps(1000) // 1000
    (tmp_path / "rules.toml").write_text(f"""
[[rule]]
name = "steady"
kind = "period"
event = "event:3"
every = "{every} ns"
tolerance = "{every // 10} ns"
""")
    [found] = judge(run, tmp_path / "rules.toml")
    assert found.verdict == ("undecided" if front == "swo" else "fail")
