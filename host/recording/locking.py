"""Locks of a RUN: one writer of tables at a time, on POSIX systems and on Windows, and whether its recorder is at work.

The system releases a lock when its process ends, however it ends. No decision therefore depends on a clock.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    try:
        import fcntl
    except ImportError:  # neither POSIX nor Windows
        fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "held", "hold", "locked"]

#: The locks of each thread.
_HERE = threading.local()

#: Held in place of the directory where a directory cannot be locked (Windows).
LOCK = ".lock"


@contextmanager
def locked(directory: Path, tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """Holds the directory's lock inside the context, and waits for it if another process or thread has it.

    A thread that holds it may take it again. The lock is released when the process ends, however it ends. On POSIX
    systems it is the directory's own and leaves no file. On Windows it is that of a file, ``.lock``, which stays.

    Parameters
    ----------
    tell : called with one line if another process has the lock; it names that process, if the system does.

    Raises
    ------
    OSError
        if the directory cannot be opened, or cannot be locked on Windows for ten seconds' worth of tries.
    """
    if sys.platform == "win32":
        handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT)
    else:
        handle = os.open(directory, os.O_RDONLY)
    status = os.fstat(handle)
    own, held = (status.st_dev, status.st_ino), _held()
    try:
        if own not in held:
            _wait_for(handle, tell, directory)
        held[own] = held.get(own, 0) + 1
        try:
            yield
        finally:
            held[own] -= 1
            if not held[own]:
                del held[own]
    finally:
        with suppress(OSError):     # it would replace an error that is on its way, and nothing was written through it
            os.close(handle)


def _held() -> dict[tuple[int, int], int]:
    """How often this thread holds the locks that it holds, by device and file."""
    if not hasattr(_HERE, "held"):
        _HERE.held = {}
    found: dict[tuple[int, int], int] = _HERE.held
    return found


def _wait_for(handle: int, tell: Callable[[str], None] | None, directory: Path) -> None:
    """On Windows the lock is that of the first byte of a file, and one call tries for ten seconds only."""
    if sys.platform != "win32":
        if fcntl is None:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tell is not None:
                tell(f"{directory}: waiting for {_holder(handle)}, which is working on its tables")
            fcntl.flock(handle, fcntl.LOCK_EX)
    else:
        while True:
            try:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
            except OSError:
                continue


def _holder(handle: int) -> str:
    """The process that holds a lock, where the system lists locks (Linux)."""
    inode = f":{os.fstat(handle).st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii", "replace").splitlines():
            words = line.split()
            if "FLOCK" in words[1:2] and len(words) > 5 and words[5].endswith(inode):
                return f"process {words[4]}"
    return "another process"


def hold(path: Path) -> int | None:
    """Locks a file until the descriptor that this returns is closed, or the process ends.

    Returns
    -------
    None where files cannot be locked in this way (Windows, some network file systems).
    """
    if sys.platform != "win32" and fcntl is not None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return descriptor
        except OSError:
            with suppress(OSError):
                os.close(descriptor)
    return None


def held(path: Path) -> bool | None:
    """Whether a process has the file locked by :func:`hold`; None if that cannot be told, or there is no such file."""
    if sys.platform != "win32" and fcntl is not None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            with suppress(OSError):
                os.close(descriptor)
    return None
