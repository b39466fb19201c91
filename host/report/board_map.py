"""A machine of many boards in a page: a tile per board, a cell per node; a tile opens to the board's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from hypermon.host.text.numbers import significant

__all__ = ["MANY_NODES", "BoardRow", "board_map"]

#: Runs of several boards with more nodes than this show boards first.
MANY_NODES = 64
#: Side of a cell, and the colours of the fewest and the most items.
_CELL = 10
_FEWEST, _MOST = (222, 235, 247), (8, 48, 107)

#: Styles of the map.
STYLE = """<style>
.boards { display: grid; grid-template-columns: repeat(auto-fill, minmax(2.5rem, 1fr)); gap: .3rem; margin: .8rem 0; }
.boards details[open] { grid-column: 1 / -1; border: 1px solid #999; padding: .4rem; overflow-x: auto; }
.boards summary { cursor: pointer; list-style: none; text-align: center; font-size: .7rem; color: #333; }
.boards summary::-webkit-details-marker { display: none; }
.boards summary:focus-visible { outline: 2px solid #08306b; }
.boards summary svg { display: block; width: 100%; max-width: 3rem; margin: 0 auto; }
</style>"""


@dataclass(frozen=True)
class BoardRow:
    """What the map shows of a board, per node: ``names``, ``items`` and ``lost``; ``title`` is the board's, for people.

    All texts are HTML already.
    """

    title: str
    names: Sequence[str]
    items: Sequence[int]
    lost: Sequence[int]


def board_map(boards: Sequence[BoardRow], seconds: float) -> str:
    """The map, as HTML without scripts. ``seconds``: duration of the run."""
    every = [count for board in boards for count in board.items]
    span = min(every, default=0), max(every, default=0)
    most_lost = max((count for board in boards for count in board.lost), default=0)
    tiles = "".join(_tile(number, board, span, most_lost, seconds) for number, board in enumerate(boards))
    legend = (f"<p>Each tile is a board, each cell a node. Light to dark: {span[0]:,} to {span[1]:,} items. Red: the "
              f"node lost items, at most {most_lost:,}; the larger, the more. Click a tile for the board's nodes.</p>")
    return f'{STYLE}{legend}<div class="boards">{tiles}</div>'


def _tile(number: int, board: BoardRow, span: tuple[int, int], most_lost: int, seconds: float) -> str:
    side = ceil(sqrt(len(board.items)))
    rows = ceil(len(board.items) / side)
    cells = "".join(_cell(node, side, board, span, most_lost) for node in range(len(board.items)))
    lost = sum(board.lost)
    told = f"board {number}: {sum(board.items):,} items, {lost:,} lost"
    lines = "".join(f"<tr><td>{name}</td><td>{items:,}</td><td>{significant(items / seconds, 3) if seconds else '-'}"
                    f"</td><td{' class=loss' if gone else ''}>{gone:,}</td></tr>"
                    for name, items, gone in zip(board.names, board.items, board.lost, strict=True))
    return (f'<details><summary><svg viewBox="0 0 {side * _CELL} {rows * _CELL}" role="img" aria-label="{told}">'
            f"<title>{told}</title>{cells}</svg>{number}</summary><p>{told}. {board.title}</p><table><tr><th>node</th>"
            f"<th>items</th><th>items/s</th><th>lost</th></tr>{lines}</table></details>")


def _cell(node: int, side: int, board: BoardRow, span: tuple[int, int], most_lost: int) -> str:
    """A node's square, and in it a red one whose area shows the share of the largest loss."""
    x, y = node % side * _CELL, node // side * _CELL
    least, most = span
    share = (board.items[node] - least) / (most - least) if most > least else 1.0
    colour = "#" + "".join(f"{round(low + (high - low) * share):02x}"
                           for low, high in zip(_FEWEST, _MOST, strict=True))
    drawn = f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" fill="{colour}"/>'
    if board.lost[node]:
        size = max(sqrt(board.lost[node] / most_lost) * (_CELL - 3), 2)
        at = (_CELL - 1 - size) / 2
        drawn += f'<rect x="{x + at:.1f}" y="{y + at:.1f}" width="{size:.1f}" height="{size:.1f}" fill="#c0392b"/>'
    return drawn
