"""What of the host is compiled: C without Python's headers, called by ctypes.

It is compiled when the package is installed. Where that was not possible, there is the same in Python.
"""

import ctypes
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

__all__ = ["native"]


def _load() -> ctypes.CDLL | None:
    """None if it was not compiled, or if HYPERMON_PURE is set in the environment."""
    if os.environ.get("HYPERMON_PURE"):
        return None
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_native" + suffix)
        if path.is_file():
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    return None


_LIBRARY = _load()


def native(name: str, *arguments: Any) -> Any:
    """The C function of that name, which gives a number of 64 bits; None if it is not there.

    The number in its name is another one whenever its arguments are: what was compiled before them is not called.
    """
    try:
        function = getattr(_LIBRARY, name)
    except AttributeError:  # of a library that is older, or of None
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int64
    return function
