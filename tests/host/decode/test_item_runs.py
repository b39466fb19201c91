"""Runs with words and events, from blocks to tables: complete, in order, and every item accounted for."""

import random
import struct
import zlib
from collections import Counter as Tally

import pytest
from hypermon.hdl.layout import LATENCY, Sink, Window
from hypermon.host import cli
from hypermon.host.analysis.stats import headline
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes, hold_windows
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger
from hypermon.host.errors import InputError
from hypermon.host.events import framed_events
from hypermon.host.export.formats import export
from hypermon.host.tables import item_order, parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.fake_board import FakeBoard
from tests.host.items import TIMEOUT, emitted, hold_of, in_blocks, made_up_modes, meaning, play

NIBBLE, WORD, EVENT, *_ = ItemMode

def board_of(nodes, window=Window.CLOCK):
    return FakeBoard(nodes, window=window, sink=Sink.EXTENDED)


def stored(board, items, modes):
    """The rows that these items are to become."""
    found = []
    for item in sorted(items, key=lambda item: item[:2]):
        mode, value, payload, aborted = meaning(item, modes)
        row = {"time_ps": board.ps(item.window), "node": item.node,
               "nibble": value if mode is NIBBLE else None, "word": value if mode is WORD else None,
               "event": value if mode is EVENT else None, "payload": payload if mode is EVENT else None,
               "aborted": aborted}
        there = {modes[node] for node in range(board.nodes)}
        for name, own in (("nibble", NIBBLE), ("word", WORD), ("event", EVENT), ("payload", EVENT)):
            if own not in there:
                del row[name]
        found.append(row)
    return found


def named(modes, nodes):
    return {"modes": [modes[node].name.lower() for node in range(nodes)], "item_timeout_clocks": TIMEOUT}


@pytest.fixture
def make(make_run):
    def make(board, modes, data=None, **more):
        return make_run(board, data, **named(modes, board.nodes), **more)
    return make


@pytest.mark.parametrize("nodes", [1, 3, 16, 32])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch", [1, 100, 1 << 16])
def test_as_they_were_made(make, monkeypatch, nodes, seed, batch):
    monkeypatch.setattr(item_order, "_BATCH", batch)
    monkeypatch.setattr(parquet, "_GROUP", 300)
    rng = random.Random(seed * 100 + nodes)
    modes = made_up_modes(rng, nodes)
    board = board_of(nodes, rng.choice(list(Window)))
    items = emitted(rng, board, modes, 1000)
    run = make(play(rng, board, modes, in_blocks(rng, items, modes)), modes)
    if not modes.longer:
        assert run.decode()["faults"]
        return
    assert run.events().to_pylist() == stored(board, items, modes)
    stats = run.stats()
    whole = [item for item in items if not item.filler]
    windows = Tally(item.window for item in items)
    assert (stats["events"], stats["aborted"], stats["lost"]) == (len(whole), len(items) - len(whole), 0)
    assert stats["events_per_node"] == [sum(item.node == node for item in whole) for node in range(nodes)]
    assert stats["aborted_per_node"] == [sum(item.node == node for item in items if item.filler)
                                         for node in range(nodes)]
    assert stats["frames"] == len(windows)
    assert stats["merged_percent"] == pytest.approx(
        100 * sum(windows[item.window] > 1 for item in whole) / max(len(whole), 1))
    assert headline("run", run.decode()) is None
    # Again, and nothing changes.
    assert run.decode() == run.decode()


@pytest.mark.parametrize(("names", "columns"), [
    ("nibble nibble", {"nibble": "uint8"}),
    ("word word", {"word": "uint32", "aborted": "bool"}),
    ("event event", {"event": "uint8", "payload": "binary", "aborted": "bool"}),
    ("word event", {"word": "uint32", "event": "uint8", "payload": "binary", "aborted": "bool"}),
    ("nibble event", {"nibble": "uint8", "event": "uint8", "payload": "binary", "aborted": "bool"})])
def test_columns(make, names, columns):
    modes = ItemModes.of([ItemMode[name.upper()] for name in names.split()])
    run = make(board_of(2).start().stop(10), modes)
    schema = run.events().schema
    assert {f.name: str(f.type) for f in schema} == {"time_ps": "int64", "node": "int16"} | columns
    assert schema == parquet.event_schema(modes, 2)


def of(rows, node):
    return sum(lost for n, lost, _, _ in rows if n == node)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 20]), st.floats(0, 1))
def test_any_blocks_may_go_missing(seed, nodes, share):
    """Exact per node, aborted ones too, and every row holds as many of the missing items as it says."""
    rng = random.Random(seed)
    modes = made_up_modes(rng, nodes)
    board = board_of(nodes)
    blocks = in_blocks(rng, emitted(rng, board, modes, 200), modes, 20) if modes.longer else []
    play(rng, board, modes, blocks)
    dropped = {k for k in range(1, len(board.blocks) - 1) if rng.random() < share}
    ledger = Ledger(nodes, TimeScale(board.clock_hz, board.window, LATENCY), 1, False, modes, TIMEOUT)
    scanner = BlockScanner()
    data = b"".join(block for k, block in enumerate(board.blocks) if k not in dropped)
    for items in (scanner.feed(data), scanner.finish()):
        for _ in ledger.event_rows(items):
            pass
    for _ in ledger.finish():
        pass
    rows = ledger.take_losses()
    gone = [item for k in dropped if not isinstance(board.kinds[k][1], int) for item in board.kinds[k][1]]
    for node in range(nodes):
        lost = sum(item.node == node for item in gone)
        assert ledger.per_node[node] + ledger.aborted[node] + lost == board.delivered[node]
        assert ledger.link_lost[node] == ledger.lost_per_node[node] == of(rows, node) == lost
    for item in gone:
        time = board.ps(item.window)
        assert any(n == item.node and begin <= time <= end for n, _, begin, end in rows)
    assert (ledger.too_late, ledger.faults, ledger.missing_blocks) == (0, {}, len(dropped))


@pytest.mark.parametrize("seed", range(3))
def test_blocks_that_come_twice_count_once(make, seed):
    """Of words and events, too, whose blocks need not begin where the one before ended."""
    rng = random.Random(seed)
    modes = made_up_modes(rng, 4)
    modes = modes if modes.longer else ItemModes(words=1, events=2)
    board = board_of(4)
    play(rng, board, modes, in_blocks(rng, emitted(rng, board, modes, 300), modes, 20))
    blocks, at = board.blocks, len(board.blocks) // 2
    once = make(board, modes)
    for name, data in {"next": [*blocks[:at], blocks[at - 1], *blocks[at:]], "twice": blocks * 2,
                       "stretch": [*blocks[:at], *blocks[at - 5:at], *blocks[at:]]}.items():
        run = make(board, modes, b"".join(data), name=name)
        assert run.events() == once.events()
        repeats = len(data) - len(blocks)
        assert run.loss().num_rows == 0
        assert run.decode()["repeated_blocks"] == run.stats()["repeated_blocks"] == repeats
        own = {"repeated_blocks": 0, "stream_size": 0, "made_of": 0, "parts": 0}
        assert {**run.decode(), **own} == {**once.decode(), **own}
        assert headline("run", run.decode()) == f"run: {repeats} blocks arrived more than once and are counted once"


def test_later_than_an_item_can_be(make, monkeypatch):
    """It is said, and the rows are in their places all the same."""
    monkeypatch.setattr(item_order, "_BATCH", 10)
    monkeypatch.setattr(parquet, "_GROUP", 50)
    rng = random.Random(5)
    board, modes = board_of(4), ItemModes.of([NIBBLE, EVENT, WORD, EVENT])
    items = emitted(rng, board, modes, 400, late=0.1, delay=20 * hold_of(board), gap=hold_of(board) // 10)
    run = make(play(rng, board, modes, in_blocks(rng, items, modes)), modes)
    assert run.events().to_pylist() == stored(board, items, modes)
    done = run.decode()
    assert done["too_late"] > 10
    assert done["events"] + done["aborted"] == len(items)
    assert f"{done['too_late']} items arrived later than the board allows" in headline("run", done)
    assert not (run.path / "events.more").exists()


def test_rows_of_one_time_and_node(make):
    """In the order in which they came, whatever comes before and behind."""
    board, modes = board_of(2), ItemModes(events=2)
    items = [LongItem(5, 0, b"\1"), LongItem(9, 0, b"\2")]
    items += [LongItem(7, 1, bytes([1, k & 15, k >> 4]), 0, True) for k in range(200)]
    run = make(board.start().items([*items, LongItem(10, 0, b"\3")], modes).stop(20), modes)
    assert [row["event"] for row in run.events().to_pylist()] == [None, *range(200), None, None]


def test_rows_of_one_time_that_came_too_late(make, monkeypatch):
    """Behind what was there, in their own order; also behind all rows."""
    monkeypatch.setattr(item_order, "_BATCH", 1)
    board, modes = board_of(2), ItemModes(events=2)
    far = 40 * hold_of(board)
    event = [LongItem(window, 1, bytes([1, k, 0])) for k, window in enumerate((5, 5, 7, far - 9))]
    board.start().items([LongItem(5, 0, b"\1"), LongItem(5, 1, bytes([1, 9, 0]))], modes)
    board.items([LongItem(far, 0, b"\2")], modes).items([LongItem(3 * far, 0, b"\3")], modes).census()
    for item in event:
        board.items([item], modes)
    run = make(board.stop(4 * far), modes)
    rows = [(r["time_ps"], r["nibble"] or r["event"]) for r in run.events().to_pylist()]
    assert rows == [(board.ps(5), 1), (board.ps(5), 9), (board.ps(5), 0), (board.ps(5), 1), (board.ps(7), 2),
                    (board.ps(far - 9), 3), (board.ps(far), 2), (board.ps(3 * far), 3)]
    assert run.decode()["too_late"] == 4


@pytest.mark.parametrize("bad", ["payload", "modes", "no head", "time"])
def test_blocks_that_no_board_of_this_run_can_have_sent(make, bad):
    board, modes = board_of(2), ItemModes(events=2)
    good = LongItem(5, 1, bytes([1, 7, 0]))
    board.start().items([good], modes)
    if bad == "payload":
        board.items([LongItem(9, 1, bytes([1, 7, 0]))], modes)
        payload = bytearray(board.blocks[-1])
        payload[32 + 16 + 1] ^= 1  # event without bytes
        board.blocks[-1] = bytes(payload[:-4]) + struct.pack("<I", zlib.crc32(payload[:-4]))
    elif bad == "modes":
        board.items([LongItem(9, 0, bytes([1, 7, 0]))], ItemModes(events=1))
    elif bad == "no head":
        board.compact([(9, 0, 1)])
    else:
        board.items([LongItem(1 << 62, 1, bytes([1, 7, 0]))], modes)
        board.time = 9
    board.items([LongItem(12, 0, b"\3")], modes)
    run = make(board.stop(100), modes)
    assert [row["node"] for row in run.events().to_pylist()] == [1, 0]
    done = run.decode()
    assert (len(done["faults"]), done["lost"], done["events"]) == (1, 1, 2)


def test_exports(make, tmp_path, capfd):
    board, modes = board_of(3), ItemModes(words=1, events=2)
    items = [LongItem(10, 0, bytes([1, 2, *[0] * 6])), LongItem(10, 1, bytes([2, 3, 1, 5, 4])),
             LongItem(10, 2, b"\x0c"), LongItem(12, 1, bytes([1, 0, 0]), 2)]
    run = make(board.start().items(items, modes).stop(20), modes)
    export(run, "csv", str(tmp_path / "csv"))
    assert (tmp_path / "csv").read_text() == f"time_ps,node,nibble\n{board.ps(10)},2,12\n"
    export(run, "events", str(tmp_path / "events"))
    assert (tmp_path / "events").read_text() == f"time_ps,node,event,payload_hex\n{board.ps(10)},1,19,45\n"
    assert capfd.readouterr().err == f"{run.path}: 1 aborted events are left out\n"
    assert framed_events(run) == 1  # of node 2


@pytest.mark.parametrize(("mode", "form", "reason"), [
    (EVENT, "csv", "no node of this run was in nibble mode: export its events with --to events"),
    (WORD, "csv", "its words are in RUN/events"), (WORD, "events", "all nodes of this run were in word mode")])
def test_what_cannot_be_exported(make, tmp_path, mode, form, reason):
    run = make(board_of(2).start().stop(10), ItemModes.of([mode] * 2))
    with pytest.raises(InputError, match=reason):
        export(run, form, str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="nothing to frame"):
        framed_events(run)


@pytest.mark.parametrize(("arguments", "line"), [
    (["--mode", "event"], "--mode event: the classic configuration has nibbles only; add --config extended"),
    (["--mode", "2=word"], "--mode word: the classic configuration has nibbles only; add --config extended"),
    (["--mode", "32=word", "--config", "extended"], "--mode 32=word: there are nodes 0 to 15"),
    (["--mode", "bits", "--config", "extended"], "--mode bits: expected [NODE=]nibble|word|event"),
    (["--item-timeout-ms", "0"], "Invalid value for '--item-timeout-ms'")])
def test_modes_that_cannot_be(tmp_path, monkeypatch, capfd, arguments, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("time_ns,node,port\n")
    assert cli._run(["sim", "x.csv", "-o", "run", *arguments]) == 2
    error = capfd.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_how_long_is_held_back():
    """31 time-outs and a millisecond, rounded up."""
    assert hold_windows(1000, 100_000_000, 1) == 31_000 + 100_000 + 1
    assert hold_windows(1000, 100_000_000, 80) == 1638 + 1
