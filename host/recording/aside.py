"""New files of a RUN are made in a directory of their own, and moved into the RUN when they are whole.

A RUN may come from somebody else, and may contain links and pipes under any name. The directory therefore has a name
that nobody can know in advance, and did not exist before.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hypermon.host.errors import InputError, naming

__all__ = ["aside", "discard", "refuse_unwritable"]

_PREFIX = ".hypermon-"
#: Directories that this process uses now.
_LIVE: set[Path] = set()


def refuse_unwritable(run: Path, error: OSError, need: str) -> None:
    """Raises InputError if a file could not be made because the RUN cannot be written; ``need``: why it must be."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        raise InputError(run, None, f"{need}, and it cannot be written ({error.strerror}): make it writable once, for "
                                    f"hypermon decode {run}, or copy it") from None


def discard(directory: Path) -> None:
    """Removes a directory with what it contains, as far as it can be removed. Raises nothing.

    An error here would replace the one for which the directory is removed, and that one is to be told.
    """
    with suppress(OSError):
        shutil.rmtree(directory, ignore_errors=True)
        return
    # In spite of its option, that function raises if a directory cannot be closed, and leaves the rest.
    for folder, folders, files in os.walk(directory, topdown=False):
        for name, remove in [*((name, os.unlink) for name in files), *((name, os.rmdir) for name in folders)]:
            with suppress(OSError):
                remove(os.path.join(folder, name))
    with suppress(OSError):
        directory.rmdir()


@contextmanager
def aside(run: Path) -> Iterator[Path]:
    """A new, empty directory in a RUN, which is removed at the end.

    Directories that killed processes have left are removed, too. The caller holds the RUN's lock (:func:`.locked`), so
    that no other process uses one of them.

    Raises
    ------
    InputError
        if the RUN cannot be written.
    """
    for left in run.glob(f"{_PREFIX}*"):
        if left not in _LIVE:
            discard(left)       # of a link nothing is removed
    try:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=run))
    except OSError as error:
        refuse_unwritable(run, error, "tables must be made in it")
        raise
    _LIVE.add(made)
    try:
        with naming(run):
            yield made
    finally:
        _LIVE.discard(made)
        discard(made)
