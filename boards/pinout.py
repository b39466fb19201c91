"""Pinouts: which wire of which node goes where, as rows, and as the page and the drawing of a board's documentation.

The balls come from the board's Amaranth platform; :data:`BALLS` keeps them, so that a host prints a pinout without
Amaranth. ``make docs`` writes all of it anew.
"""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from .board import PIN_ROLES, Board

__all__ = ["Wire", "balls", "drawing", "page", "wires"]

#: The kept balls: ``{board: [ball, ...]}`` in the order of a board's pins.
BALLS = "balls.json"
#: Colours of nodes in the drawing: neighbours differ, in print too (Okabe and Ito's, without black).
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")
_ROW, _CELL, _PAIR, _NODE = 26, 112, 240, 70


@dataclass(frozen=True)
class Wire:
    """One wire of a node's port."""

    node: int
    role: str
    label: str
    ball: str


def balls(board: Board) -> list[str]:
    """The balls of its pins, from its platform (needs Amaranth); of a pair both, with a stroke between."""
    module, name = board.platform.split(":")
    mapping: dict[str, str] = {}
    for connector in getattr(importlib.import_module(module), name).connectors:
        mapping |= dict(connector)
    return ["/".join(mapping.get(name, name) for name in (pin.name, pin.negative) if name) for pin in board.pins]


@cache
def _kept() -> dict[str, list[str]]:
    kept: dict[str, list[str]] = json.loads(files(__package__).joinpath(BALLS).read_text())
    return kept


def wires(board: Board, of: list[str] | None = None) -> list[Wire]:
    """All wires, node by node, strobe first; with the kept balls, or those ``of`` its pins."""
    wide = len(PIN_ROLES)
    return [Wire(index // wide, PIN_ROLES[index % wide], pin.label, ball)
            for index, (pin, ball) in enumerate(zip(board.pins, of or _kept()[board.name], strict=True))]


def page(board: Board, every: list[Wire]) -> str:
    """The board's page, in Markdown."""
    capture, oscillator = board.clock_ratio
    lines = [
        f"# {board.title}", "",
        "<!-- Made by `make docs` from the board's file in boards/. -->", "",
        f"{board.nodes} nodes, {board.fpga}. Built by `hypermon build {board.name}`, put into the board by "
        f"`hypermon flash {board.name}`.", "",
        f"- **Level**: {board.level}. {_idle(board)}",
        f"- **Clock**: {board.capture_hz / 1e6:g} MHz, exactly {capture}/{oscillator} of the board's oscillator "
        f"({board.oscillator_hz / 1e6:g} MHz), so that time is as true as the oscillator.",
        f"- **Link**: {board.links[0].text}"
        + "".join(f", or with `--link {link.kind}` {link.text}" for link in board.links[1:])
        + "; `hypermon devices` finds it.",
        *([f"- **Deep buffer**: {board.memory.text}; [how long a host may be away](../buffers.md)."]
          if board.memory else []),
        "- **Ground**: one wire from every node's ground to the board's, beside the strobe.",
        *(f"- **Shared**: {text}" for text in board.shared),
        *(f"- **Source of the pins**: {text}" for text in board.documents), "",
        f"![Wiring]({board.name}.svg)", "",
        "| node | " + " | ".join(PIN_ROLES) + " |", "|---|" + "---|" * len(PIN_ROLES),
    ]
    wide = len(PIN_ROLES)
    for node in range(board.nodes):
        row = every[node * wide:(node + 1) * wide]
        lines.append(f"| {node} | " + " | ".join(f"{wire.label} ({wire.ball})" for wire in row) + " |")
    lines += ["", f"Pin on the board, with the FPGA's ball in brackets; `{_standard(board)}`.", ""]
    return "\n".join(lines)


def _idle(board: Board) -> str:
    if not board.pins[0].negative:
        way = "up" if "PULLUP" in board.attributes else "down"
        return f"Every pin is pulled {way}, so that a port with nothing at it is silent."
    return ("A pair with nothing at it may say anything: leave out its node (`--mask nodes=...`), or see "
            "[the regeneration board](../erb.md).")


def _standard(board: Board) -> str:
    return " ".join(f"{key}={value}" for key, value in board.attributes.items())


def drawing(board: Board, every: list[Wire]) -> str:
    """The board's wiring as an SVG: a row a node, a cell a wire, with the pin as it is printed on the board."""
    wide = len(PIN_ROLES)
    cell = _PAIR if board.pins[0].negative else _CELL
    width, height = _NODE + wide * cell + 20, (board.nodes + 2) * _ROW + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="20" font-size="15" font-weight="bold">{escape(board.title)}: where the wires go</text>',
    ]
    for column, role in enumerate(PIN_ROLES):
        parts.append(f'<text x="{_NODE + column * cell + 8}" y="{_ROW + 18}" fill="#555">{role}</text>')
    for index, wire in enumerate(every):
        node, column = divmod(index, wide)
        x, y = _NODE + column * cell, (node + 2) * _ROW
        colour = _COLOURS[node % len(_COLOURS)]
        if not column:
            parts.append(f'<text x="10" y="{y + 17}">node {node}</text>')
        parts.append(f'<rect x="{x}" y="{y}" width="{cell - 4}" height="{_ROW - 4}" rx="4" fill="{colour}" '
                     f'fill-opacity="{0.6 if not column else 0.25}"/>')
        parts.append(f'<text x="{x + 8}" y="{y + 16}" fill="#111">{escape(wire.label)}</text>')
        parts.append(f'<text x="{x + cell - 12}" y="{y + 16}" fill="#444" font-size="10" text-anchor="end">'
                     f'{escape(wire.ball)}</text>')
    return "\n".join([*parts, "</svg>", ""])
