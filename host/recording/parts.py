"""The tables of a RUN, as its JSON file describes them: rows, bytes and a checksum of each file.

Opening a RUN compares its tables with the description. A table that was partly copied, damaged, or taken from another
run is therefore not used. The comparison is cheap, because each verified file is marked: the nanoseconds of its
modification time are set to its checksum. Any change to the file changes that time, and then the whole file is read
again.

Damage that changes no time (a failing disk, a copy that keeps times) is found before rows are used: a program that
needs them reads each file once as a whole, whatever its mark.
"""

import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.recording.aside import discard
from hypermon.host.recording.segments import write_json
from hypermon.host.text.json_file import anything, integer, read_json, table

__all__ = ["ACCOUNT", "NEXT", "PART", "PARTS", "Part", "all_or_none", "checksum", "described", "fault", "faults", "put",
           "replace_part"]

#: The account file of a decode, its member with the tables, and its member with the table that is being replaced.
ACCOUNT, PARTS, NEXT = "decode.json", "parts", "next_parts"

#: ``rows``, ``bytes`` and ``crc32`` of a file.
Part = dict[str, int]
#: The shape of a Part.
PART = table({"rows": integer(0, 1 << 62), "bytes": integer(0, 1 << 62), "crc32": integer(0, 0xffffffff)})
_SECOND = 10**9
_PIECE = 1 << 22
#: Files that this process has read as a whole, and what they were then: inode, time, checksum.
_READ: dict[Path, tuple[int, int, int]] = {}


def described(path: Path) -> Part:
    """Describes a Parquet file that has just been written."""
    rows = pq.read_metadata(path).num_rows
    status, crc = path.stat(), checksum(path)
    _mark(path, status, crc)
    return {"rows": rows, "bytes": status.st_size, "crc32": crc}


def fault(path: Path, part: Part, whole: bool = False) -> str | None:
    """Why a file does not match its description; None if it matches.

    Parameters
    ----------
    whole : read it even if it is marked, unless this process has done so.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a file"
        if status.st_size != part["bytes"]:
            return f"has {status.st_size} bytes instead of {part['bytes']}"
        read = _READ.get(path.absolute()) == (status.st_ino, status.st_mtime_ns, part["crc32"])
        if status.st_mtime_ns % _SECOND == part["crc32"] % _SECOND and (read or not whole):
            return None
        if checksum(path) != part["crc32"]:
            _mark(path, status, part["crc32"] + 1)      # it counts as verified no longer
            return "has other contents than were written"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    _mark(path, status, part["crc32"])
    if whole:
        with suppress(OSError):
            _READ[path.absolute()] = status.st_ino, path.stat().st_mtime_ns, part["crc32"]
    return None


def _mark(path: Path, status: os.stat_result, crc: int) -> None:
    """Marks a file as verified. On a read-only medium it is read again the next time."""
    second = status.st_mtime_ns // _SECOND * _SECOND
    with suppress(OSError, NotImplementedError):    # the file that a link points to is not the RUN's to change
        os.utime(path, ns=(status.st_atime_ns, second + crc % _SECOND), follow_symlinks=not path.is_symlink())


def faults(directory: Path, parts: Mapping[str, Part], whole: bool = False) -> list[str]:
    """Checks several files in a directory: name and :func:`fault` of each that does not match."""
    found = ((name, fault(directory / name, part, whole)) for name, part in parts.items())
    return [f"{name} {reason}" for name, reason in found if reason is not None]


def checksum(path: Path) -> int:
    """CRC-32 of a file."""
    crc = 0
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return crc


def put(new: Path, place: Path, aside: Path) -> None:
    """Moves a file or directory to its final path; anything already there moves to the directory ``aside``."""
    if os.path.lexists(place):
        os.rename(place, aside / f"old-{place.name}")
    os.rename(new, place)


@contextmanager
def all_or_none(paths: Iterable[Path]) -> Iterator[None]:
    """Removes these files and directories if an exception ends what puts them in place, and describes them."""
    try:
        yield
    except BaseException:
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                discard(path)
            else:
                path.unlink(missing_ok=True)
        raise


def replace_part(run: Path, new: Path, name: str) -> None:
    """Replaces a table of a decoded RUN with a new file, or adds it.

    If the process is killed at any moment, the RUN has either the old table or the new one. The caller must ensure that
    nothing else decodes the RUN meanwhile.
    """
    values = read_json(run / ACCOUNT, anything())
    part = described(new)
    write_json(run / ACCOUNT, {**values, NEXT: {name: part}})
    os.replace(new, run / name)
    write_json(run / ACCOUNT, {**values, PARTS: {**values[PARTS], name: part}, NEXT: {}})
