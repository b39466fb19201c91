"""Errors that the user can fix, one line each. Exit status 2, or 3 if an incomplete recording is kept."""

import shlex
import sys
from os import PathLike
from pathlib import Path

__all__ = ["HypermonError", "IncompleteError", "InputError", "LinkError", "checkout", "to_install"]


def checkout() -> Path | None:
    """The root of the checkout that this program runs from; None if it is installed from a package."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def to_install(extra: str) -> str:
    """The command that installs what ``hypermon[extra]`` needs, for the Python that runs this, from any directory.

    In a checkout it keeps the editable install; a plain one would replace it by a copy.
    """
    root = checkout()
    what = f"'hypermon[{extra}]'" if root is None else f"-e {shlex.quote(f'{root}[{extra}]')}"
    return f"{shlex.quote(sys.executable or 'python3')} -m pip install {what}"


class HypermonError(Exception):
    """An error that the user can fix. ``str()`` is one line: what is wrong, and what helps.

    ``status``: exit status of a command that ends with this error.
    """

    status = 2


class InputError(HypermonError):
    """A file is not what it should be.

    Parameters
    ----------
    file : its path, as the user gave it.
    line : line number from 1; None where there are no lines.
    reason : what is wrong, without the file's name.
    """

    def __init__(self, file: str | PathLike[str], line: int | None, reason: str):
        self.file, self.line, self.reason = str(file), line, reason
        super().__init__(f"{self.file}:{line}: {reason}" if line is not None else f"{self.file}: {reason}")


class LinkError(HypermonError):
    """A board that was open cannot be reached."""


class IncompleteError(HypermonError):
    """A recording did not end as requested. Everything up to that end is kept.

    Examples: a full disk, a board that never confirmed its stop, a link that failed, a wave that never arrived.
    """

    status = 3
