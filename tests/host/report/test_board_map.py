"""The map of a machine's boards: every node is there once, with its figures."""

import re

from hypermon.host.report.board_map import BoardRow, board_map

BOARDS = [BoardRow("a", ["0", "1", "2"], [10, 1000, 505], [0, 0, 0]),
          BoardRow("b", ["3", "x", "5"], [10, 10, 10], [4, 0, 16])]


def test_every_board_is_a_tile_that_opens_to_its_nodes() -> None:
    tiles = board_map(BOARDS, 2.0).split("<details>")[1:]
    assert len(tiles) == 2
    assert "board 0: 1,515 items, 0 lost" in tiles[0]
    assert "board 1: 30 items, 20 lost" in tiles[1]
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td.*?>(.*?)</td></tr>", tiles[0] + tiles[1])
    assert rows == [("0", "10", "5", "0"), ("1", "1,000", "500", "0"), ("2", "505", "252", "0"),
                    ("3", "10", "5", "4"), ("x", "10", "5", "0"), ("5", "10", "5", "16")]


def test_cells_are_darker_for_more_items_and_red_by_the_share_that_was_lost() -> None:
    first, second = board_map(BOARDS, 2.0).split("<details>")[1:]
    fills = re.findall(r'fill="(#\w+)"', first)
    assert (fills[0], fills[1]) == ("#deebf7", "#08306b")
    assert fills[0] > fills[2] > fills[1]
    red = re.findall(r'width="([\d.]+)" height="[\d.]+" fill="#c0392b"', second)
    assert [float(width) for width in red] == [3.5, 7.0]
    assert "#c0392b" not in first


def test_a_run_without_items_or_duration_has_a_map() -> None:
    assert "board 0: 0 items, 0 lost" in board_map([BoardRow("a", ["0"], [0], [0])], 0.0)
