"""Standard output and standard error of the command: every byte is written or its loss is an error, and a terminal gets
text only.

Files and pipes get the bytes as they are. A terminal gets escapes in place of characters that it would interpret, so
that nothing in a run, a name or a command line can move its cursor or hide text. What a stream's encoding does not have
is written as an escape, too.
"""

import codecs
import io
import os
import select
import sys
from typing import TYPE_CHECKING, Any, TextIO

from hypermon.host.text.printable import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["STANDARD_OUTPUT", "ReaderGoneError", "drain", "give_up", "plain", "set_up"]

#: The name of the file in errors of writing to it.
STANDARD_OUTPUT = "standard output"


class ReaderGoneError(Exception):
    """The reader of standard output has closed it. (It is not an OSError: click would end the program with 1.)"""


class _Descriptor(io.FileIO):
    """Writes to an open descriptor. Errors have the name of the file.

    Parameters
    ----------
    needed : if not, what cannot be written is dropped: an error about standard error could not be shown.
    """

    def __init__(self, number: int, needed: bool):
        super().__init__(number, "wb", closefd=False)
        self._needed = needed

    def write(self, data: "ReadableBuffer", /) -> int:
        while True:
            try:
                count: int | None = super().write(data)
            except OSError as error:
                if not self._needed:
                    return memoryview(data).nbytes
                if isinstance(error, BrokenPipeError):
                    raise ReaderGoneError from None
                raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None
            if count is not None:
                return count
            select.select([], [self], [])       # it was set not to block, and is full


class _Terminal(io.TextIOWrapper):
    """A terminal that is shown what texts are. ``plain`` is the same without that, for libraries that draw."""

    def __init__(self, under: Any, plain: TextIO, **options: Any):
        super().__init__(under, **options)
        self.plain = plain
        self._bytes = _TerminalBytes(self)

    @property
    def buffer(self) -> Any:
        return self._bytes

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):       # click tries whether a stream accepts bytes
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.plain.write("".join(one if one in "\n\t" else visible(one) for one in text))
        self.plain.flush()
        return len(text)

    def flush(self) -> None:
        self.plain.flush()


class _TerminalBytes(io.BufferedIOBase):
    """The same for bytes."""

    def __init__(self, text: TextIO):
        self._text, self._decoder = text, codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        data = bytes(data)
        self._text.write(self._decoder.decode(data))
        return len(data)


def set_up() -> None:
    """Replaces ``sys.stdout`` and ``sys.stderr``.

    Streams that the program's parent has closed become ones that are empty (standard input), that cannot be written
    (standard output) or that drop everything (standard error). Their descriptors are in use then: otherwise the next
    file that is opened would get them, and with it what libraries print.

    On Windows, a console has an interface of its own, and both stay as they are. So does a stream without a descriptor,
    which a program has put there to read it.
    """
    if sys.platform == "win32":
        return
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            number = stream.fileno()
        except io.UnsupportedOperation:
            continue
        stream.flush()
        under: Any = io.BufferedWriter(_Descriptor(number, name == "stdout"))
        options = {"encoding": stream.encoding, "errors": "backslashreplace", "line_buffering": stream.isatty()}
        made = io.TextIOWrapper(under, **options)
        setattr(sys, name, _Terminal(under, made, **options) if stream.isatty() else made)


def plain(stream: TextIO) -> TextIO:
    """The stream for a library that draws on a terminal and escapes texts itself."""
    found: TextIO = getattr(stream, "plain", stream)
    return found


def drain() -> None:
    """Writes what standard output still holds.

    Raises
    ------
    OSError
        with the name :data:`STANDARD_OUTPUT`.
    ReaderGoneError
        if nobody reads it.
    """
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up() -> None:
    """Standard output cannot be written: what it still holds goes nowhere, so that the end of the program is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1 if sys.stdout is None else sys.stdout.fileno())
