"""A copy of a RUN that cannot be written, made of links: in it, tables can be made."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tempfile

__all__ = ["as_given", "given", "linked_copy"]

#: Removed when the process ends.
_KEPT: "list[tempfile.TemporaryDirectory[str]]" = []
#: Each copy, and its RUN as the user gave it.
_GIVEN: dict[Path, Path] = {}


def linked_copy(run: Path) -> Path:
    """A directory of the RUN's name with links to its files, in a temporary directory that the process removes at its
    end.

    What is written into it replaces a link, and never the file that it leads to. Hidden files are left out.

    Raises
    ------
    OSError
        if it cannot be made.
    """
    import tempfile  # slow to import, and not needed to open a RUN

    folder = tempfile.TemporaryDirectory(prefix="hypermon-", ignore_cleanup_errors=True)
    _KEPT.append(folder)
    made = Path(folder.name) / (run.resolve().name or "run")
    _GIVEN[made] = run
    _link(run.resolve(), made)
    return made


def given(run: Path) -> Path:
    """The path that the user gave for a RUN; that of a copy no longer exists when the user reads a message."""
    for copy, original in _GIVEN.items():
        if run.is_relative_to(copy):
            return original / run.relative_to(copy)
    return run


def as_given(text: str) -> str:
    """A message in which RUNs have the paths that the user gave, and not those of their copies."""
    for copy, original in _GIVEN.items():
        text = text.replace(str(copy), str(original))
    return text


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for entry in os.scandir(source):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            _link(Path(entry.path), target / entry.name)
        else:
            os.symlink(entry.path, target / entry.name)
