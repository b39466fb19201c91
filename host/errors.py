"""Errors that the user can fix, one line each. Exit status 2, or 3 if an incomplete recording is kept."""

from os import PathLike

__all__ = ["HypermonError", "IncompleteError", "InputError", "LinkError"]


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
