"""Bookmarks of a RUN: addresses of pictures, with notes, in ``bookmarks.json`` beside the recording."""

import os
import re
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError, system_reason
from hypermon.host.recording.locking import locked
from hypermon.host.recording.segments import write_json
from hypermon.host.text.json_file import integer, listed, read_json, table, text
from hypermon.host.text.printable import printable

__all__ = ["BOOKMARKS", "add", "bookmarks", "remove"]

BOOKMARKS = "bookmarks.json"
#: Maximum number of bookmarks of a RUN; of characters of a note, and of an address.
_MOST, _NOTE, _ADDRESS = 500, 400, 2000
#: The part of a picture's address after the ``#``.
_SHAPE_OF_ADDRESS = re.compile(r"[A-Za-z0-9_=&%.+*~-]*")
_SHAPE = table({"bookmarks": listed(table({"number": integer(1, 2**31), "note": text(), "address": text()}))})


def bookmarks(run: Path) -> list[dict[str, Any]]:
    """The bookmarks: number, note, address. Raises InputError if the file is not readable or not valid."""
    try:
        found: list[dict[str, Any]] = read_json(run / BOOKMARKS, _SHAPE)["bookmarks"]
    except FileNotFoundError:
        return []
    return [each for each in found if _SHAPE_OF_ADDRESS.fullmatch(each["address"])]


def add(run: Path, note: str, address: str) -> list[dict[str, Any]]:
    """Adds one, and returns all.

    Raises
    ------
    HypermonError
        if the note or the address is too long, or not one, or the file cannot be written.
    """
    note = printable(note)
    if len(note) > _NOTE:
        raise HypermonError(f"a note has at most {_NOTE} characters")
    if len(address) > _ADDRESS or not _SHAPE_OF_ADDRESS.fullmatch(address):
        raise HypermonError("that is not the address of a picture")
    try:
        with locked(run):
            known = bookmarks(run)
            if len(known) >= _MOST:
                raise HypermonError(f"there are {_MOST} bookmarks: remove some first")
            number = max((each["number"] for each in known), default=0) + 1
            return _written(run, [*known, {"number": number, "note": note, "address": address}])
    except OSError as error:
        raise HypermonError(f"{run / BOOKMARKS} cannot be written: {system_reason(error)}") from None


def remove(run: Path, number: int) -> list[dict[str, Any]]:
    """Removes one, and returns the others. Raises HypermonError if the file cannot be written."""
    try:
        with locked(run):
            return _written(run, [each for each in bookmarks(run) if each["number"] != number])
    except OSError as error:
        raise HypermonError(f"{run / BOOKMARKS} cannot be written: {system_reason(error)}") from None


def _written(run: Path, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if known:
        write_json(run / BOOKMARKS, {"bookmarks": known})
    elif os.path.lexists(run / BOOKMARKS):
        os.unlink(run / BOOKMARKS)
    return known
