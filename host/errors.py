"""Errors that the user can fix, one line each. Exit status 2, or 3 if an incomplete recording is kept."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

__all__ = ["HypermonError", "IncompleteError", "InputError", "LinkError", "checkout", "naming", "system_reason",
           "to_install"]


def checkout() -> Path | None:
    """The root of the checkout that this program runs from; None if it is installed from a package."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def to_install(extra: str) -> str:
    """The command that installs what ``hypermon[extra]`` needs, for the Python that runs this, from any directory;
    ``studies`` is the distribution ``hypermon-studies``.

    In a checkout it keeps the editable install; a plain one would replace it by a copy.
    """
    root = checkout()
    if extra == "studies":
        what = "hypermon-studies" if root is None else f"-e {shlex.quote(f'{root}/studies')}"
    else:
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


def system_reason(error: OSError) -> str:
    """The system's words for an error, also for one that a library has told in words of its own."""
    return os.strerror(error.errno) if error.errno else error.strerror or str(error)


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """An OSError inside that names no file, as of a write or a close, is raised with this name.

    That the reader of a pipe has gone is passed on as it is.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, system_reason(error), os.fspath(path)) from None
