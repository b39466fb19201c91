"""What boards reach is what the pages about nodes, links and formats say."""

import re
from pathlib import Path

import pytest
from hypermon.boards.model.links import uart, ulpi, usb_pins
from hypermon.boards.model.reach import FRAMES, carried, frame_cost, nibble_cost, strobes
from hypermon.boards.pinout.pinout import facts
from hypermon.boards.registry import BOARDS
from hypermon.hdl.layout import Geometry
from hypermon.hdl.sinks.classic.frames_source import FULL_BLOCK

DOCS = Path(__file__).parents[3] / "docs"
LINKS = (DOCS / "links.md").read_text()


def number(text):
    value, letter = re.fullmatch(r"([\d.]+) ([kM])(?:/s)?", text).groups()
    return float(value) * {"k": 1e3, "M": 1e6}[letter]


@pytest.mark.parametrize(("row", "cost"), [("classic, one nibble per frame", frame_cost),
                                       ("extended, mean gap 100 clocks", nibble_cost)])
def test_figures_of_a_uart_are_those_of_the_page(row, cost):
    asked, *rates = re.search(rf"^\| {row} \| (.*) \|$", LINKS, re.MULTILINE)[1].split(" | ")
    assert round(cost(Geometry()), 1) == float(asked)
    for baud, rate in zip((3_000_000, 12_000_000), rates, strict=True):
        assert carried(uart(baud), 16) / cost(Geometry()) == pytest.approx(number(rate), rel=0.03)


def test_figures_of_usb_are_those_of_the_page():
    assert "40 to 45 MB/s are usual" in LINKS
    assert ulpi().bytes_per_second == 40_000_000
    assert "the board reaches more than 1.0" in LINKS
    assert usb_pins().bytes_per_second == 1_000_000


def test_strobes_are_those_of_the_page():
    ns = int(re.search(r"write at most one nibble\s+every\s+(\d+)\s+ns", (DOCS / "nodes.md").read_text())[1])
    assert 1e9 / strobes(100_000_000) == pytest.approx(ns)


def test_blocks_of_a_store_are_as_short_as_they_begin():
    assert FRAMES == FULL_BLOCK
    assert frame_cost(Geometry.extended()) == 16 + 48 / 4
    assert frame_cost(Geometry(frame_depth=32)) == 16 + 48 / 32


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_node_writes_both_levels_of_its_strobe(board):
    said = dict(facts(board))
    level = int(re.search(r"hold each level for at least (\d+) ns", said["Strobe"])[1])
    assert number(re.search(r"up to ([\d.]+ [kM])", said["Rates"])[1]) <= 1e9 / (2 * level)


def test_a_board_of_more_than_16_nodes_needs_more():
    assert frame_cost(Geometry(nodes=32)) - frame_cost(Geometry(nodes=16)) == 8
    assert nibble_cost(Geometry(nodes=32)) - nibble_cost(Geometry(nodes=16)) == 0.5


def test_pages_say_it():
    said = {name: dict(facts(board))["Rates"] for name, board in BOARDS.items()}
    assert said["ice40-hx8k"] == ("a node writes up to 20 M nibbles/s, until the buffers are full. Over UART at "
                                  "3 Mbaud, the host receives about 300 kB/s: 17 k classic frames/s (in blocks of "
                                  "64 frames).")
    assert "Over high-speed USB, the host receives about 40 MB/s" in said["butterstick"]
    assert [name for name in BOARDS if ("extended" in said[name]) != (len(BOARDS[name].geometry().sinks) > 1)] == []
