"""Reads the JSON files of a RUN as untrusted input.

A file is read only if it is a regular file of a reasonable size. Its values are used only if they have the required
types, ranges and lengths. Everything else is an :class:`.InputError` that names the file and the member.

A shape defines what a value must be. It is a function that is called with the path of the value, for the message, and
with the value, and that raises ValueError. The functions below make shapes.
"""

import json
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from hypermon.host.errors import InputError

__all__ = ["CHECK", "Shape", "anything", "flag", "integer", "listed", "mapping", "maybe", "number", "one_of",
           "parse_json", "read_json", "read_regular", "sealed", "table", "text"]

Shape = Callable[[str, Any], None]

#: How a file is opened that may be anything. Without O_NONBLOCK, opening a pipe would block; without O_BINARY, Windows
#: would change line ends.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: The member of a file that is a checksum of all others. Files without it, as of older versions, are read all the same.
CHECK = "check"
#: Maximum bytes of a file, characters of a text, members of a list or table, and nesting depth of values of which
#: nothing is required.
_FILE, _TEXT, _MEMBERS, _DEPTH = 1 << 26, 1 << 12, 1 << 16, 16


def read_regular(path: Path, longest: int = _FILE) -> bytes:
    """The bytes of a regular file, or of one that a link points to.

    Raises
    ------
    FileNotFoundError
        if there is nothing.
    InputError
        if it is something else (a directory, a pipe, a device), longer than ``longest``, or cannot be read.
    """
    try:
        number = os.open(path, _READ)
        with open(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise InputError(path, None, "it is not a regular file")
            data = file.read(min(os.fstat(file.fileno()).st_size, longest) + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(path, None, f"cannot be read: {error.strerror or error}") from None
    if len(data) > longest:
        raise InputError(path, None, f"it is longer than {longest} bytes")
    return data


def read_json(path: Path, shape: Shape) -> dict[str, Any]:
    """The values of a JSON file that is an object of this shape.

    Raises
    ------
    FileNotFoundError
        if there is nothing.
    InputError
        as :func:`read_regular` does, and if the values do not have that shape.
    """
    try:
        values = parse_json(read_regular(path))
    except ValueError as error:
        raise InputError(path, None, f"not readable: {error}") from None
    if not isinstance(values, dict):
        raise InputError(path, None, "not readable: it is not a JSON object")
    found = values.pop(CHECK, None)
    try:
        shape("", values)
    except ValueError as error:
        raise InputError(path, None, f"it makes no sense: {error}") from None
    if found is not None and found != _check(values):
        raise InputError(path, None, f"it was damaged or changed since it was written (if on purpose, remove {CHECK!r} "
                                     "from it)")
    return values


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with their checksum, to be written to a file that :func:`read_json` reads."""
    plain = json.loads(json.dumps(values))
    return {**plain, CHECK: _check(plain)}


def _check(values: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def parse_json(data: bytes | str) -> Any:
    """The value of a text in JSON. Raises ValueError, whatever the fault."""
    try:
        return json.loads(data if isinstance(data, str) else data.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _wrong(where: str, value: object, wanted: str) -> NoReturn:
    try:
        shown = repr(value)
    except (RecursionError, ValueError):    # an integer of more digits than Python prints
        shown = "something else"
    raise ValueError(f"{where or 'the file'} is {shown if len(shown) <= 60 else f'{shown[:60]}...'}, not {wanted}")


def integer(low: int, high: int) -> Shape:
    """An integer from ``low`` to ``high``."""
    def check(where: str, value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            _wrong(where, value, f"an integer from {low} to {high}")
    return check


def number(low: float, high: float) -> Shape:
    """A number from ``low`` to ``high``, integer or not."""
    def check(where: str, value: Any) -> None:
        if type(value) not in (int, float) or not low <= value <= high:
            _wrong(where, value, f"a number from {low:g} to {high:g}")
    return check


#: Control characters.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def text(longest: int = _TEXT) -> Shape:
    """A text without control characters, so that a terminal interprets nothing in it."""
    def check(where: str, value: Any) -> None:
        if type(value) is not str or len(value) > longest or _CONTROL.search(value):
            _wrong(where, value, f"a text of at most {longest} characters, without control characters")
    return check


def flag() -> Shape:
    """true or false."""
    def check(where: str, value: Any) -> None:
        if type(value) is not bool:
            _wrong(where, value, "true or false")
    return check


def one_of(*names: str) -> Shape:
    """One of these texts."""
    def check(where: str, value: Any) -> None:
        if type(value) is not str or value not in names:
            _wrong(where, value, f"one of {', '.join(names)}")
    return check


def maybe(shape: Shape) -> Shape:
    """null, or a value of that shape."""
    def check(where: str, value: Any) -> None:
        if value is not None:
            shape(where, value)
    return check


def listed(shape: Shape, least: int = 0, most: int = _MEMBERS) -> Shape:
    """A list of ``least`` to ``most`` values of that shape."""
    def check(where: str, value: Any) -> None:
        if type(value) is not list or not least <= len(value) <= most:
            _wrong(where, value, f"a list of {least} to {most} values")
        for at, one in enumerate(value):
            shape(f"{where}[{at}]", one)
    return check


def mapping(shape: Shape, most: int = _MEMBERS) -> Shape:
    """An object with any names, and values of that shape."""
    name_shape = text()

    def check(where: str, value: Any) -> None:
        if type(value) is not dict or len(value) > most:
            _wrong(where, value, f"an object of at most {most} members")
        for name, one in value.items():
            name_shape(f"a name in {where or 'the file'}", name)
            shape(f"{where}.{name}" if where else name, one)
    return check


def table(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None, *, more: bool = False) -> Shape:
    """An object with these members. ``more``: it may have others, which are :func:`anything`."""
    known = {**required, **(optional or {})}
    others = anything()

    def check(where: str, value: Any) -> None:
        if type(value) is not dict:
            _wrong(where, value, "an object")
        dot = f"{where}." if where else ""
        for name in required:
            if name not in value:
                raise ValueError(f"{dot}{name} is missing")
        for name, one in value.items():
            if name in known:
                known[name](f"{dot}{name}", one)
            elif more:
                others(f"{dot}{name!a}", one)
            else:
                raise ValueError(f"{dot}{ascii(name)[:60]} is not a member that this version knows")
    return check


def anything(depth: int = _DEPTH) -> Shape:
    """Any values that can be printed: finite numbers of at most 64 bits, nested at most ``depth`` deep."""
    short, many, whole = text(), _MEMBERS, integer(-(1 << 63), (1 << 64) - 1)

    def check(where: str, value: Any) -> None:
        if isinstance(value, list | dict):
            if not depth or len(value) > many:
                raise ValueError(f"{where[:60]} is nested too deeply or too long")
            inner = anything(depth - 1)
            (listed(inner) if isinstance(value, list) else mapping(inner))(where, value)
        elif isinstance(value, str):
            short(where, value)
        elif isinstance(value, float) and not math.isfinite(value):
            _wrong(where, value, "a finite number")
        elif type(value) is int:
            whole(where, value)
    return check
