"""Lines of text, from bytes of nodes in line mode: exact, complete or not, whatever the batches are."""

import csv
import random

import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.export.formats import export
from hypermon.host.tables import parquet

from tests.host.fake_board import FakeBoard
from tests.host.items import TIMEOUT, in_blocks

CLOCK_PS = 10_000
MODES = ["line", "byte", "line"]


def item(window, node, byte):
    return LongItem(window, node, bytes((1, byte & 15, byte >> 4)), 0, False)


def recorded(make_run, rng, sent, losses=()):
    """A run of (window, node, byte), and of records of losses at its end."""
    modes = ItemModes.of([ItemMode[mode.upper()] for mode in MODES])
    board = FakeBoard(3, window=Window.CLOCK, sink=Sink.EXTENDED)
    blocks = in_blocks(rng, [item(*one) for one in sent], modes, 9)
    board.start()
    for block in blocks:
        board.items(block, modes)
    if losses:
        board.loss(list(losses))
    board.stop(200_000)
    return board, make_run(board, modes=MODES, item_timeout_clocks=TIMEOUT)


def printed(run, tmp_path):
    export(run, "logs", str(tmp_path / "logs.csv"))
    with open(tmp_path / "logs.csv", newline="") as file:
        return [(int(row["time_ps"]), int(row["begun_ps"]), int(row["node"]), row["name"], row["complete"], row["text"])
                for row in csv.DictReader(file)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("group", [1 << 20, 5])
def test_lines(make_run, tmp_path, monkeypatch, seed, group):
    monkeypatch.setattr(parquet, "_GROUP", group)
    rng = random.Random(seed)
    sent, expected, at = [], [], {0: 100, 1: 107, 2: 113}
    board = FakeBoard(3, window=Window.CLOCK, sink=Sink.EXTENDED)
    for _ in range(40):
        node = rng.randrange(3)
        text = "".join(rng.choice("abc ,\"é") for _ in range(rng.randrange(0, 12)))
        data, end = text.encode(), rng.choice((b"\n", b"\r", b"\r\n"))
        windows = [at[node] + 10 * k for k in range(len(data + end))]
        sent += [(window, node, byte) for window, byte in zip(windows, data + end, strict=True)]
        at[node] = windows[-1] + rng.randrange(10, 400, 10)
        if node != 1 and data:
            expected.append((board.ps(windows[len(data)]), board.ps(windows[0]), node, "line", "true", text))
    _, run = recorded(make_run, rng, sorted(sent))
    assert printed(run, tmp_path) == sorted(expected)
    export(run, "csv", str(tmp_path / "bytes.csv"))
    rows = (tmp_path / "bytes.csv").read_text().splitlines()[1:]
    assert rows == [f"{board.ps(window)},{node},{byte}" for window, node, byte in sorted(sent)]


def test_a_line_without_its_end(make_run, tmp_path):
    rng = random.Random(1)
    sent = [(100 + k, 0, byte) for k, byte in enumerate(b"one\ntw\xff")]
    board, run = recorded(make_run, rng, sent)
    assert printed(run, tmp_path) == [
        (board.ps(103), board.ps(100), 0, "line", "true", "one"),
        (board.ps(106), board.ps(104), 0, "line", "false", "tw\N{REPLACEMENT CHARACTER}")]


def test_a_line_that_a_loss_touches(make_run, tmp_path):
    """Of its own node; the lines before and after it, and those of other nodes, are complete."""
    text = b"one\ntwo\nthree\n"
    sent = [(100 + 10 * k, node, byte) for k, byte in enumerate(text) for node in (0, 2)]
    _, run = recorded(make_run, random.Random(3), sent, [(0, 2, 155, 155)])
    assert [(row[2], row[4], row[5]) for row in printed(run, tmp_path)] == [
        (0, "true", "one"), (2, "true", "one"), (0, "false", "two"), (2, "true", "two"),
        (0, "true", "three"), (2, "true", "three")]


def test_a_long_line_is_cut(make_run, tmp_path):
    sent = [(100 + k, 2, ord("x")) for k in range(5000)] + [(6000, 2, 10)]
    _, run = recorded(make_run, random.Random(2), sent)
    assert [(row[4], len(row[5])) for row in printed(run, tmp_path)] == [("false", 4096), ("true", 904)]
