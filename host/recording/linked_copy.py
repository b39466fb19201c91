"""A copy of a RUN that cannot be written, made of links: in it, tables can be made."""

import os
import tempfile
from pathlib import Path

__all__ = ["linked_copy"]

#: Removed when the process ends.
_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def linked_copy(run: Path) -> Path:
    """A directory of the RUN's name with links to its files, in a temporary directory that the process removes at its
    end.

    What is written into it replaces a link, and never the file that it leads to. Hidden files are left out.

    Raises
    ------
    OSError
        if it cannot be made.
    """
    folder = tempfile.TemporaryDirectory(prefix="hypermon-", ignore_cleanup_errors=True)
    _KEPT.append(folder)
    made = Path(folder.name) / (run.resolve().name or "run")
    _link(run.resolve(), made)
    return made


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for entry in os.scandir(source):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            _link(Path(entry.path), target / entry.name)
        else:
            os.symlink(entry.path, target / entry.name)
