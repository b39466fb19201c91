"""One decoder at a time: the lock of a run's directory, on POSIX systems and on Windows."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    try:
        import fcntl
    except ImportError:  # neither POSIX nor Windows
        fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "locked"]

#: Held in place of the directory where a directory cannot be locked (Windows).
LOCK = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the directory's lock inside the context, and waits for it if another process has it.

    The lock is released when the process ends, however it ends. On POSIX systems it is the directory's own and leaves
    no file. On Windows it is that of a file, ``.lock``, which stays.

    Raises
    ------
    OSError
        if the directory cannot be opened, or cannot be locked on Windows for ten seconds' worth of tries.
    """
    if sys.platform == "win32":
        handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT)
        _wait_for(handle)
    else:
        handle = os.open(directory, os.O_RDONLY)
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int) -> None:
    """Locks the first byte of a file on Windows, where one call tries for ten seconds only."""
    if sys.platform == "win32":
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
            except OSError:
                continue
