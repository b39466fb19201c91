"""Converts a value change dump to FST, GTKWave's own format: compact, and opened at once whatever its length.

GTKWave's ``vcd2fst`` packs the dump while it is written, so no intermediate file is stored. It ends with status 0 even
if the disk is full, and replaces a pipe or a device by a file; both are handled here.
"""

import glob
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from hypermon.host.errors import HypermonError
from hypermon.host.export.format import Format, Tables
from hypermon.host.export.sinks import sink
from hypermon.host.export.vcd import dump, say_limits
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["FST", "packed"]

_PROGRAM = "vcd2fst"


#: A block: type, and bytes after the type.
_BLOCK = struct.Struct(">BQ")
#: Types of blocks: the header, signal values in any of three forms, and the hierarchy of names in any of three forms.
_HEADER, _VALUES, _NAMES = 0, (1, 5, 8), (4, 6, 7)
#: Where the header of a file has the number of its blocks with values.
_VALUE_BLOCKS = 65


@contextmanager
def packed(path: Path, out: str) -> Iterator[BinaryIO]:
    """Receives a dump; at the end it is at ``path`` as FST. Errors name ``out``.

    Raises
    ------
    HypermonError
        if GTKWave is not installed, rejects the dump, or could not write all of it.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise HypermonError(f"FST needs GTKWave's {_PROGRAM}, which is not installed: apt-get install gtkwave "
                            "(or export --to vcd)")
    with tempfile.TemporaryFile() as said:
        try:
            with subprocess.Popen([program, "-", str(path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=said) as process:
                yield cast(BinaryIO, process.stdin)
        except BrokenPipeError:     # it has ended, and its status gives the reason
            pass
        finally:
            for left in path.parent.glob(f"{glob.escape(path.name)}.*"):    # of a program that gave up
                left.unlink(missing_ok=True)
        said.seek(0)
        if process.returncode > 0:
            words = said.read(200).decode(errors="replace").split("\n")[0]
            raise HypermonError(f"{out}: {_PROGRAM} ended with status {process.returncode} {words}".rstrip())
    if process.returncode < 0 or not _whole(path):      # a full disk also ends it by a signal
        raise HypermonError(f"{out}: {_PROGRAM} could not write all of it; the disk may be full; nothing is left of it")


def _whole(path: Path) -> bool:
    """Whether a file consists of whole blocks: a header, as many blocks with values as it states, and names."""
    kinds, size = [], path.stat().st_size
    with open(path, "rb") as file:
        header = file.read(_VALUE_BLOCKS + 8)
        at = 0
        while at < size:
            file.seek(at)
            head = file.read(_BLOCK.size)
            if len(head) < _BLOCK.size:
                return False
            kind, length = _BLOCK.unpack(head)
            if length < 8:      # its own field
                return False
            kinds.append(kind)
            at += 1 + length
    return (at == size and kinds[:1] == [_HEADER] and any(kind in _NAMES for kind in kinds)
            and sum(kind in _VALUES for kind in kinds) == int.from_bytes(header[_VALUE_BLOCKS:], "big"))


def _write(run: Run, out: str, selection: Selection) -> None:
    if out == "-" or (os.path.exists(out) and not os.path.isfile(out) and not os.path.isdir(out)):
        raise HypermonError(f"{out}: {_PROGRAM} writes no pipe and no device; give the name of a file")
    with sink(out) as file, packed(Path(file.name), out) as dumped:
        limits = dump(run, dumped, selection)
    say_limits(run, *limits)


FST = Format("fst", _write, Tables.FRAMED)
