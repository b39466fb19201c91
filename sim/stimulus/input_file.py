"""Files that a stimulus is read from: on a disk, standard input, pipes; compressed with gzip or not."""

import gzip
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

from hypermon.host.errors import InputError

__all__ = ["InputFile"]

_GZIP = b"\x1f\x8b"
#: Bytes from which a kind of file is recognized.
_HEAD = 4096


class InputFile:
    """A file that may be read several times.

    Parameters
    ----------
    name : path, or ``-`` for standard input. A pipe is copied to a temporary file when it is first read.

    Members
    -------
    head : the first bytes, decompressed.
    size : bytes on the disk, compressed.
    """

    def __init__(self, name: str):
        self.name = name
        self._copy: IO[bytes] | None = None

    def __del__(self) -> None:
        if self._copy is not None:
            self._copy.close()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The content, decompressed, from the beginning.

        Raises
        ------
        InputError
            if it cannot be opened, read or decompressed.
        """
        try:
            with self._raw() as raw:
                packed = raw.read(2) == _GZIP
                raw.seek(0)
                if packed:
                    with gzip.open(raw) as plain:
                        yield plain
                else:
                    yield raw
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(self.name, None, f"its compressed data are damaged: {error}") from None
        except OSError as error:
            raise InputError(self.name, None, f"cannot be read: {error.strerror or error}") from None

    @cached_property
    def head(self) -> bytes:
        with self.opened() as file:
            return file.read(_HEAD)

    @cached_property
    def size(self) -> int:
        with self._raw() as raw:
            return os.fstat(raw.fileno()).st_size

    def _raw(self) -> IO[bytes]:
        if self._copy is None:
            if self.name != "-" and not stat.S_ISFIFO(os.stat(self.name).st_mode):
                return Path(self.name).open("rb")
            self._copy = tempfile.TemporaryFile()  # noqa: SIM115, closed with this object
            if self.name == "-":
                shutil.copyfileobj(sys.stdin.buffer, self._copy)
            else:
                with Path(self.name).open("rb") as pipe:
                    shutil.copyfileobj(pipe, self._copy)
        self._copy.seek(0)
        return os.fdopen(os.dup(self._copy.fileno()), "rb")
