"""Batches of a RUN without tables, from its stream: the same rows as from its tables."""

import random
import shutil

import pyarrow as pa
import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.dictionary.run_dictionary import KEPT
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.run import Run
from hypermon.host.tables import item_order

from tests.host.fake_board import FakeBoard, random_run
from tests.host.items import TIMEOUT, emitted, hold_of, in_blocks, play

NIBBLE, WORD, EVENT, *_ = ItemMode
MODES = ([NIBBLE], [WORD], [EVENT], [NIBBLE, WORD, EVENT, EVENT])


def undecoded(run):
    return not (run.path / "decode.json").exists() and not (run.path / "events").exists()


def table_of(run, **selection):
    batches = list(run.batches(**selection))
    return pa.Table.from_batches(batches, batches[0].schema.remove_metadata())


def both(run, **selection):
    """From the stream, and from the tables of a copy."""
    copy = run.path.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run.path, copy)
    streamed = table_of(run, **selection)
    assert undecoded(run)
    other = Run(copy)
    other.decode()
    return streamed, table_of(other, **selection)


def of_items(make_run, modes, late=0.02, delay=None, gap=None):
    rng = random.Random(7)
    board = FakeBoard(4, window=Window.CLOCK, sink=Sink.EXTENDED)
    names = [modes[node].name.lower() for node in range(4)]
    delays = {} if delay is None else {"delay": delay * hold_of(board), "gap": gap * hold_of(board) // 200}
    items = emitted(rng, board, modes, 600, late=late, **delays)
    played = play(rng, board, modes, in_blocks(rng, items, modes))
    return make_run(played, modes=names, item_timeout_clocks=TIMEOUT)


@pytest.mark.parametrize("nodes", [4, 16, 32])
@pytest.mark.parametrize("losses", [0, 0.3])
@pytest.mark.parametrize("selection", [{}, {"columns": ["node", "time_ps"]}, {"nodes": [0, 2], "columns": ["nibble"]}])
def test_nibbles(make_run, nodes, losses, selection):
    run = make_run(random_run(FakeBoard(nodes), random.Random(nodes), 40, losses=losses))
    streamed, stored = both(run, **selection)
    assert streamed.equals(stored)
    assert streamed.schema.equals(stored.schema)
    assert len(streamed) > 100


@pytest.mark.parametrize("kinds", MODES[1:])
@pytest.mark.parametrize("batch", [10, 1 << 16])
def test_words_and_events(make_run, monkeypatch, kinds, batch):
    monkeypatch.setattr(item_order, "_BATCH", batch)
    modes = ItemModes.of((kinds * 4)[:4])
    run = of_items(make_run, modes)
    streamed, stored = both(run)
    assert streamed.equals(stored)
    assert streamed.schema.equals(stored.schema)
    assert len(streamed) == stored.num_rows > 500
    streamed, stored = both(run, nodes=[1], columns=["time_ps", "aborted"])
    assert streamed.equals(stored)
    assert 0 < len(streamed) < 500


def test_rows_that_cannot_be_in_order_are_refused(make_run, monkeypatch):
    """Tables have them in order, and are used from then on."""
    monkeypatch.setattr(item_order, "_BATCH", 10)
    run = of_items(make_run, ItemModes.of([NIBBLE, EVENT, WORD, EVENT]), late=0.1, delay=20, gap=20)
    with pytest.raises(InputError, match=r"arrived after later ones.*hypermon decode RUN"):
        list(run.batches())
    assert undecoded(run)
    assert run.decode()["too_late"] > 10
    times = table_of(run)["time_ps"].to_pylist()
    assert times == sorted(times)
    assert len(times) > 500


def test_spans_of_time_and_dictionaries_need_tables(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(1), 20))
    list(run.batches(from_ps=0))
    assert not undecoded(run)
    run = make_run(random_run(FakeBoard(), random.Random(1), 20), name="named")
    (run.path / KEPT).write_text("[start]\nid = 1\n")
    list(run.batches())
    assert not undecoded(run)


def test_tables_that_exist_are_read(make_run, monkeypatch):
    run = make_run(random_run(FakeBoard(), random.Random(1), 20))
    run.decode()
    monkeypatch.setattr(Run, "stream", None)
    assert len(table_of(run)) > 100


def test_unknown_columns_and_nodes_are_refused(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(1), 5))
    with pytest.raises(HypermonError, match="no column 'no'; there are time_ps, node, nibble"):
        next(run.batches(columns=["no"]))
    with pytest.raises(InputError, match="no node 16"):
        next(run.batches(nodes=[16]))
    assert undecoded(run)
