"""Files and directories that appear when they are whole."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hypermon.host.errors import HypermonError, naming, system_reason
from hypermon.host.recording.aside import discard
from hypermon.host.recording.owned import refuse_owned
from hypermon.host.recording.writer import refuse_existing

__all__ = ["folder", "refuse_output", "sink", "written"]


def _aside(path: Path) -> Path:
    """What a file or directory is called until it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.new")


def written(out: str) -> int:
    """Bytes that an export of this process to ``out`` has written so far; 0 for one that needs no other name."""
    aside = _aside(Path(out).resolve())
    files = aside.rglob("*") if aside.is_dir() else [aside] if aside.exists() else []
    return sum(file.stat().st_size for file in files)


def refuse_output(out: str | os.PathLike[str], *, directory: bool = False) -> None:
    """Raises the errors of :func:`sink`, or of :func:`folder`, that are known before anything is written.

    Commands call it before they compute what they write.
    """
    path = Path(out)
    if str(out) == "-":
        if directory:
            raise HypermonError("-: this format is a directory; give its name")
        if sys.stdout is None:
            raise HypermonError("-: standard output is closed")
        return
    if directory:
        if os.path.lexists(path):
            raise HypermonError(f"{out}: it exists already; name a new directory")
        refuse_existing(path)
    elif path.is_dir():
        raise HypermonError(f"{out}: it is a directory")
    elif not path.parent.is_dir():
        raise HypermonError(f"{out}: there is no directory {path.parent}")
    refuse_owned(path)
    aside = path.resolve().parent
    if not (path.exists() and not path.is_file()) and not os.access(aside, os.W_OK | os.X_OK):
        raise HypermonError(f"{out}: nothing can be written in {aside}; name a folder of your own")


@contextmanager
def sink(out: str) -> Iterator[BinaryIO]:
    """The file ``out``, which appears when it is whole; ``-`` is standard output.

    A symbolic link is kept, and its target is written. If the path is not a regular file, such as a pipe or a device,
    it is written directly.

    Raises
    ------
    HypermonError
        if it is a directory, is not in an existing directory where files can be written, is a file of a RUN, or
        standard output is closed.
    """
    refuse_output(out)
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(out)
    if path.exists() and not path.is_file():
        with naming(out), open(path, "wb") as file:
            yield file
        return
    path = path.resolve()
    aside = _aside(path)
    try:
        with _named(out):
            aside.unlink(missing_ok=True)       # of an earlier process with the same number
            with open(aside, "xb") as file:
                yield file
            os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _named(out: str) -> Iterator[None]:
    """For an error of the system that names no file, states which file could not be written."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise HypermonError(f"{out}: {system_reason(error)}; nothing is left of it") from None


@contextmanager
def folder(out: str) -> Iterator[Path]:
    """The directory ``out``, which appears when it is whole."""
    refuse_output(out, directory=True)
    path = Path(out)
    aside = _aside(path)
    aside.mkdir()
    try:
        with _named(out):
            yield aside
            os.rename(aside, path)
    finally:
        discard(aside)
