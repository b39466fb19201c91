"""What goes wrong in a way the user can mend: one line each, exit status 2."""

from os import PathLike

__all__ = ["HypermonError", "InputError", "LinkError"]


class HypermonError(Exception):
    """Something the user can mend. ``str()`` is one line that says what is wrong and what helps."""


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
