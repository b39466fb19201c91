"""All boards by name. A new one: a file beside this one with ``BOARDS``, and its name here."""

from . import butterstick, cynthion, ecp5_evn, ecpix5, orangecrab, ulx3s
from .board import Board

__all__ = ["BOARDS", "find"]

_MODULES = (butterstick, ecpix5, ulx3s, ecp5_evn, cynthion, orangecrab)

BOARDS: dict[str, Board] = {board.name: board for module in _MODULES for board in module.BOARDS}


def find(name: str) -> Board:
    """The board of that name.

    Raises
    ------
    ValueError
        for one that does not exist, with the names of those that do.
    """
    if name not in BOARDS:
        raise ValueError(f"there is no board {name!r}; there are: {', '.join(BOARDS)}")
    return BOARDS[name]
