"""How the boards of one recording are wired for a common time: a star, a chain, or a tree."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from hypermon.host.errors import HypermonError

__all__ = ["DEPTH_MAX", "Pipes", "Wiring"]

#: Wires from the first board to any other of a tree. A chain may be longer, and is called one.
DEPTH_MAX = 3


@dataclass(frozen=True)
class Wiring:
    """Which board's ``sync_out`` each board's ``sync_in`` is wired to.

    Parameters
    ----------
    parents : for each board the number of the board that it follows; None for the first.
    topology : ``star``, ``chain`` or ``tree``.
    """

    parents: tuple[int | None, ...]
    topology: str

    @classmethod
    def parse(cls, text: str, boards: int) -> "Wiring":
        """The wiring of a number of boards: ``star``, ``chain``, or the number of the board that each one after the
        first follows, such as ``0,0,1``.

        Raises HypermonError if it is none.
        """
        if text == "star":
            return cls((None, *[0] * (boards - 1)), text)
        if text == "chain":
            return cls((None, *range(boards - 1)), text)
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            raise HypermonError(f"--wires {text}: expected star, chain, or the number of the board that each board "
                                "after the first follows, such as 0,0,1") from None
        if len(numbers) != boards - 1:
            raise HypermonError(f"--wires {text}: {len(numbers)} numbers, and {boards - 1} boards follow")
        for own, parent in enumerate(numbers, 1):
            if not 0 <= parent < own:
                raise HypermonError(f"--wires {text}: board {own} cannot follow board {parent}, only one before it")
        tree = cls((None, *numbers), "tree")
        deepest = max(map(tree.depth, range(boards)))
        if deepest > DEPTH_MAX:
            raise HypermonError(f"--wires {text}: {deepest} wires one after the other, and a tree has at most "
                                f"{DEPTH_MAX}; if that is how they are wired: --wires chain")
        return tree

    def depth(self, board: int) -> int:
        """Wires between the first board and this one."""
        parent = self.parents[board]
        return 0 if parent is None else 1 + self.depth(parent)

    def followers(self, board: int) -> list[int]:
        """The boards that follow this one."""
        return [own for own, parent in enumerate(self.parents) if parent == board]

    def starting_order(self) -> list[int]:
        """All boards, each after those that follow it: a board that is enabled too late waits for ever."""
        return sorted(range(len(self.parents)), key=lambda board: (-self.depth(board), board))


class Pipes:
    """Wires between virtual boards of several processes: a pipe for each board that follows.

    Parameters
    ----------
    wiring : how the boards are wired.
    boards : their URIs.
    follow : whether they are wired at all.

    Raises
    ------
    HypermonError
        if some of the boards are virtual, but not all.
    """

    def __init__(self, wiring: Wiring, boards: Sequence[str], follow: bool):
        virtual = [board.startswith("sim:") for board in boards]
        self._wiring, self._boards = wiring, boards
        self._ends: dict[int, tuple[int, int]] = {}
        self.some = follow and any(virtual)
        if self.some and not all(virtual):
            raise HypermonError(f"{boards[virtual.index(True)]} is virtual and {boards[virtual.index(False)]} is not: "
                                "they cannot be wired; omit --follow")
        if self.some:
            self._ends = {own: os.pipe() for own, parent in enumerate(wiring.parents) if parent is not None}

    def of(self, board: int) -> tuple[str, list[int]]:
        """The URI of a board with the files that are its ends of wires, and these files."""
        into = [self._ends[board][0]] if board in self._ends else []
        out = [self._ends[own][1] for own in self._wiring.followers(board) if own in self._ends]
        words = [f"{name}={','.join(map(str, files))}"
                 for name, files in (("sync_in", into), ("sync_out", out)) if files]
        uri = self._boards[board]
        return uri + ("&" if "?" in uri else "?") * bool(words) + "&".join(words), into + out

    def close(self) -> None:
        """Closes this process's copies: a board then notices when the other end is closed."""
        for ends in self._ends.values():
            for file in ends:
                os.close(file)
        self._ends = {}
