"""Errors that the user can mend: one line each. Exit status 2, or 3 if a recording is kept but incomplete."""

from os import PathLike

__all__ = ["HypermonError", "IncompleteError", "InputError", "LinkError"]


class HypermonError(Exception):
    """Something the user can mend. ``str()`` is one line that says what is wrong and what helps.

    ``status``: the exit status of a command that ends with it.
    """

    status = 2


class InputError(HypermonError):
    """A file that is not what it should be.

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
    """A recording ended otherwise than it was asked to. What came before the end is kept.

    Examples: a full disk, a board that never confirmed its stop, a link that went away, a wave that never came.
    """

    status = 3
