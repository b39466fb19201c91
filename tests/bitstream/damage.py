"""Damage to an iCE40's bits, in IceStorm's text of them: a bit here, a bit there, for tests that see it noticed.

Where a bit is: Project IceStorm, "LOGIC Tile Documentation" and "RAM Tile Documentation" (Debian: fpga-icestorm, html).
"""

import re
from dataclasses import dataclass

__all__ = ["Place", "cleared", "flipped", "lookup_table", "ram_bit", "ram_mode", "routing", "table_of_pin"]

#: A cell's bits begin at this column of its two rows; the first entry of its table is the fifth of them.
_CELL_COLUMN, _CELL_WIDTH, _FIRST = 36, 10, 4
_LOGIC_WIDTH = 54


@dataclass(frozen=True)
class Place:
    """A bit: the kind of its tile as the text has it, the tile, row and column."""

    kind: str
    x: int
    y: int
    row: int
    column: int


def _at(text: str, place: Place) -> int:
    header = f".{place.kind} {place.x} {place.y}\n"
    start = text.index(header) + len(header)
    for _ in range(place.row):
        start = text.index("\n", start) + 1
    return start + place.column


def flipped(text: str, place: Place) -> str:
    """With that bit the other way round; of RAM contents a digit, its lowest bit."""
    at = _at(text, place)
    return f"{text[:at]}{int(text[at], 16) ^ 1:x}{text[at + 1:]}"


def cleared(text: str, place: Place) -> str:
    """With that bit 0, which was 1."""
    assert text[_at(text, place)] == "1"
    return flipped(text, place)


def table_of_pin(verilog: str, pin: str) -> tuple[int, int, int]:
    """Tile and cell of a lookup table that takes what an input pin's register holds; ``verilog`` : icebox_vlog's."""
    register = re.search(rf"^always @.* (\w+) <= pin_{pin};$", verilog, re.MULTILINE)[1]
    wire = re.search(rf"^assign (\w+) = {register};$", verilog, re.MULTILINE)[1]
    table = re.search(rf"^assign \w+ += /\* LUT +(\d+) +(\d+) +(\d+) \*/ .*\b{wire}\b", verilog, re.MULTILINE)
    x, y, cell = map(int, table.groups())
    return x, y, cell


def lookup_table(x: int, y: int, cell: int) -> Place:
    """The entry of a lookup table that counts when all its inputs are low."""
    return Place("logic_tile", x, y, 2 * cell, _CELL_COLUMN + _FIRST)


def routing(text: str, x: int, y: int) -> list[Place]:
    """The bits of a logic tile that connect wires, and are set."""
    places = [Place("logic_tile", x, y, row, column) for row in range(16) for column in range(_LOGIC_WIDTH)
              if not _CELL_COLUMN <= column < _CELL_COLUMN + _CELL_WIDTH]
    return [place for place in places if text[_at(text, place)] == "1"]


def ram_bit(text: str) -> Place:
    """A bit of the first block RAM's contents."""
    x, y = map(int, re.search(r"^\.ram_data (\d+) (\d+)$", text, re.MULTILINE).groups())
    return Place("ram_data", x, y, 0, 63)


def ram_mode(verilog: str) -> Place:
    """The bit that makes words of a node's FIFO half as wide to write: RamConfig.CBIT_0 of its upper tile.

    ``verilog`` : icebox_vlog's; these FIFOs alone are of 4 bits.
    """
    x, y = map(int, re.search(r"\.WRITE_MODE\(2\),.*?\) ram40_(\d+)_(\d+) ", verilog, re.DOTALL).groups())
    return Place("ramt_tile", x, y + 1, 1, 7)
