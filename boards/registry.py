"""All boards by name. To add one, add a file with ``BOARDS`` to ``boards/``, and its name to this module."""

from typing import Any

from . import (
    arty_a7,
    butterstick,
    colorlight,
    cynthion,
    ecp5_evn,
    ecpix5,
    ice40_hx8k,
    icebreaker,
    icepi_zero,
    icesugar_pro,
    orangecrab,
    tang_nano,
    tang_primer,
    ulx3s,
)
from .model.board import Board
from .model.lvds import differential

__all__ = ["BOARDS", "DIFFERENTIAL", "find"]

_MODULES = (
    butterstick, ecpix5, ulx3s, ecp5_evn, cynthion, orangecrab, icepi_zero, icesugar_pro, colorlight, tang_primer,
    tang_nano, ice40_hx8k, icebreaker, arty_a7)
_BOARDS = tuple(board for module in _MODULES for board in module.BOARDS)
#: Boards with enough pairs, and what differs then. The banks are at 2.5 V, the native level of LVDS.
DIFFERENTIAL: dict[str, dict[str, Any]] = {
    "butterstick": {"options": {"VCCIOA": "2V5", "VCCIOB": "2V5", "VCCIOC": "3V3"}, "supplies": (2.5, 2.5, 3.3),
                    "shared": (),
                    "notes": ("The supplies of connectors 0 and 1 (VIO) are set to 2.5 V by the bitstream.",)},
    "ecp5-evn": {"shared": (), "notes": (
        "The serial port reaches the FPGA only if R34 and R35 are fitted, R22 and R23 are removed, and port B of the "
        "FT2232H is configured as a serial port (github.com/trabucayre/fixFT2232_ecp5evn).",
        "The supplies of the banks remain at the board's 3.3 V. The internal resistors of 100 ohm have not "
        "been tested: measure a pair with the bitstream loaded, or fit 100 ohm across it at the connector.")},
}

BOARDS: dict[str, Board] = {board.name: board for board in (
    *_BOARDS, *(differential(board, **DIFFERENTIAL[board.name]) for board in _BOARDS if board.name in DIFFERENTIAL))}


def find(name: str) -> Board:
    """The board of that name.

    Raises
    ------
    ValueError
        for a board that does not exist; the message lists those that do.
    """
    if name not in BOARDS:
        raise ValueError(f"there is no board {name!r}; there are: {', '.join(BOARDS)}")
    return BOARDS[name]
