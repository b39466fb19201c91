"""The compiled part of the host: C without Python's headers, called through ctypes, by several threads at once.

It is compiled when the package is installed. If that was not possible, equivalent Python code is used.
"""

import ctypes
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

__all__ = ["cores", "native"]


def _load() -> ctypes.CDLL | None:
    """None if the library was not compiled, or if HYPERMON_PURE is set in the environment."""
    if os.environ.get("HYPERMON_PURE"):
        return None
    # The one for all versions of Python first: a checkout may still have one of an older build beside it.
    for suffix in (".abi3.so", *EXTENSION_SUFFIXES):
        path = Path(__file__).with_name("_native" + suffix)
        if path.is_file():
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    return None


_LIBRARY = _load()


def native(name: str, *arguments: Any) -> Any:
    """The C function of that name, which returns a 64-bit number; None if it does not exist.

    The number in the name changes whenever the arguments do, so an outdated compiled library is never called.
    """
    try:
        function = getattr(_LIBRARY, name)
    except AttributeError:  # the library is older, or None
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int64
    return function


def cores() -> int:
    """Number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
