"""Items that a front end stamps late by a constant: tables, losses and their order are of the first edges."""

import json
import random

import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger
from hypermon.host.errors import InputError
from hypermon.host.live.follow import Follow, Loss
from hypermon.host.tables import item_order
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.fake_board import FakeBoard
from tests.host.items import TIMEOUT, emitted, in_blocks, made_up_modes, play

CLOCK_PS = 10_000


def longer_modes(rng, nodes):
    """Random ones, of which one at least has items of several nibbles."""
    while not (modes := made_up_modes(rng, nodes)).longer:
        pass
    return modes


def board_of(nodes):
    return FakeBoard(nodes, window=Window.CLOCK, sink=Sink.EXTENDED)


def late_of(rng, nodes, modes):
    return [rng.choice((0, 1, 40, 3000, 200_000)) if modes.longer >> node & 1 else 0 for node in range(nodes)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch", [1, 1 << 16])
def test_tables_have_the_times_of_first_edges(make_run, monkeypatch, seed, batch):
    monkeypatch.setattr(item_order, "_BATCH", batch)
    rng = random.Random(seed)
    nodes = rng.choice((1, 3, 16))
    modes = longer_modes(rng, nodes)
    board, late = board_of(nodes), late_of(rng, nodes, modes)
    items = emitted(rng, board, modes, 500)
    named = [modes.said(node).name.lower() for node in range(nodes)]
    run = make_run(play(rng, board, modes, in_blocks(rng, items, modes)), modes=named,
                   item_timeout_clocks=TIMEOUT, configuration={"front_late_clocks": late})
    table = run.events()
    expected = sorted((item.window - late[item.node], item.node) for item in items)
    assert list(zip(table["time_ps"].to_pylist(), table["node"].to_pylist(), strict=True)) == [
        (board.ps(window), node) for window, node in expected]
    assert run.stats()["late_nibbles"] == 0
    # A reader of the growing stream has the same items, in the same order.
    following = Follow(run.info)
    parts = [*following.feed(board.data), *following.finish()]
    assert [time for part in parts if not isinstance(part, Loss) for time in part["time_ps"].to_pylist()] == table[
        "time_ps"].to_pylist()


def test_a_constant_is_longer_than_any_item_waits(make_run, monkeypatch):
    """Rows are held back for it, too: an item of the late node still comes before those of the other one."""
    monkeypatch.setattr(item_order, "_BATCH", 1)
    modes, late = ItemModes.of([ItemMode.EVENT] * 2), 5_000_000
    items = [LongItem(late + 1000 * k, k % 2, bytes((1, 5, 0)), 0, False) for k in range(400)]
    board = board_of(2)
    run = make_run(play(random.Random(5), board, modes, in_blocks(random.Random(5), items, modes, 3)),
                   modes=["event", "event"], item_timeout_clocks=1, configuration={"front_late_clocks": [late, 0]})
    assert run.decode()["too_late"] == 0
    assert run.events()["node"].to_pylist() == [0] * 200 + [1] * 200


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 20]), st.floats(0, 1))
def test_what_is_missing_has_the_time_of_its_first_edge(seed, nodes, share):
    rng = random.Random(seed)
    modes = longer_modes(rng, nodes)
    board, late = board_of(nodes), late_of(rng, nodes, modes)
    play(rng, board, modes, in_blocks(rng, emitted(rng, board, modes, 100), modes, 20))
    dropped = {k for k in range(1, len(board.blocks) - 1) if rng.random() < share}
    scale = TimeScale(board.clock_hz, board.window, LATENCY)
    ledger, scanner = Ledger(nodes, scale, 1, False, modes, TIMEOUT, late=late), BlockScanner()
    data = b"".join(block for k, block in enumerate(board.blocks) if k not in dropped)
    for items in (scanner.feed(data), scanner.finish()):
        for _ in ledger.event_rows(items):
            pass
    for _ in ledger.finish():
        pass
    assert ledger.too_late == 0
    rows = ledger.take_losses()
    for item in (item for k in dropped if not isinstance(board.kinds[k][1], int) for item in board.kinds[k][1]):
        time = board.ps(item.window) - CLOCK_PS * late[item.node]
        assert any(n == item.node and begin <= time <= end for n, _, begin, end in rows)


def test_a_refused_item_is_lost_at_its_first_edge(make_run):
    """The same record, with and without a constant: the interval is earlier by exactly this."""
    rows = {}
    for late in (0, 700):
        board = board_of(2).start().loss([(1, 3, 5000, 6000)]).stop(9000)
        run = make_run(board, name=f"run{late}", modes=["event", "event"], item_timeout_clocks=TIMEOUT,
                       configuration={"front_late_clocks": [0, late]})
        [rows[late]] = [(row["from_ps"], row["to_ps"]) for row in run.loss().to_pylist() if row["node"] == 1]
    assert [a - b for a, b in zip(rows[0], rows[700], strict=True)] == [700 * CLOCK_PS] * 2


@pytest.mark.parametrize("late", [[1], [1, -1], [1, "a"], 5, [1, 2**40]])
def test_a_constant_that_no_board_has(make_run, late):
    run = make_run(board_of(2).start().stop(10), modes=["event", "event"])
    path = run.path / "recording.json"
    values = json.loads(path.read_text())
    values.pop("check", None)
    values["configuration"]["front_late_clocks"] = late
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="front_late_clocks"):
        type(run)(run.path).decode()


def test_tables_are_made_anew_for_another_constant(make_run):
    board = board_of(1)
    rng = random.Random(1)
    modes = ItemModes.of([ItemMode.EVENT])
    run = make_run(play(rng, board, modes, in_blocks(rng, emitted(rng, board, modes, 20), modes)), modes=["event"],
                   item_timeout_clocks=TIMEOUT, configuration={"front_late_clocks": [0]})
    first = run.events()["time_ps"].to_pylist()
    path = run.path / "recording.json"
    values = json.loads(path.read_text())
    values.pop("check", None)
    values["configuration"]["front_late_clocks"] = [9]
    path.write_text(json.dumps(values))
    assert type(run)(run.path).events()["time_ps"].to_pylist() == [time - 9 * CLOCK_PS for time in first]
