"""Base of all verilated boards: loads the shared library, passes it the stimulus without a copy, and closes it."""

import ctypes
import functools
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from hypermon.hdl.layout import Geometry
from hypermon.sim.stimulus.stimulus import Stimulus

__all__ = ["VerilatedBoard", "declares"]

_Signature = tuple[Any, ...]


def declares(functions: Iterable[_Signature]) -> Callable[[str], ctypes.CDLL]:
    """A loader for a library whose functions are ``(name, result, *arguments)``; it loads each path once."""
    @functools.cache
    def load(path: str) -> ctypes.CDLL:
        dll = ctypes.CDLL(path)
        for name, result, *arguments in functions:
            function = getattr(dll, name)
            function.restype, function.argtypes = result, arguments
        return dll
    return load


class VerilatedBoard:
    """A board from a library, from :meth:`_begin` to :meth:`close`."""

    geometry: Geometry

    def _begin(self, dll: ctypes.CDLL, prefix: str, geometry: Geometry, stimulus: Stimulus, *first: Any) -> None:
        """Creates the board with the library's ``prefix_new``: ``first``, then the stimulus, as arrays that are kept.
        """
        self.geometry = geometry
        self._dll, self._prefix = dll, prefix
        # The board reads the arrays in place.
        self._kept = (
            np.ascontiguousarray(stimulus.time_ps, np.int64), np.ascontiguousarray(stimulus.node, np.int16),
            np.ascontiguousarray(stimulus.port, np.uint16),
            np.array(stimulus.initial + [0] * (geometry.nodes - stimulus.nodes), np.uint16))
        new = getattr(dll, f"{prefix}_new")
        self._board = new(*first, len(stimulus), *(array.ctypes.data for array in self._kept))

    def close(self) -> None:
        """Ends the board; may be called again."""
        board, self._board = getattr(self, "_board", None), None
        if board:
            getattr(self._dll, f"{self._prefix}_free")(board)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
