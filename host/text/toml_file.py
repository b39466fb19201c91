"""TOML files from users: read with limits, and with the line of every fault."""

import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypermon.host.errors import InputError

__all__ = ["TomlFile", "plain_lines", "read_toml"]

#: Bytes of a file, and dots in a line, at most. A parser of TOML takes time and memory that grow with the square of the
#: number of parts of a key, and a key is within a line.
_LONGEST, _DOTS = 1 << 20, 256


class TomlFile(NamedTuple):
    """The bytes of a file, its text, and its tables."""

    source: bytes
    text: str
    tables: dict[str, Any]


def read_toml(path: str | os.PathLike[str], what: str) -> TomlFile:
    """Reads a TOML file.

    Parameters
    ----------
    what : what the file should be, for messages: "a dictionary".

    Raises
    ------
    InputError
        if the file is not readable, too long, or not TOML; it names the line and the reason.
    """
    try:
        with open(path, "rb") as file:
            source = file.read(_LONGEST + 1)
        if len(source) > _LONGEST:
            raise InputError(path, None, f"this is not {what}: it is longer than {_LONGEST:,} bytes")
        text = source.decode()
        for number, line in enumerate(text.split("\n"), 1):
            if line.count(".") > _DOTS:
                raise InputError(path, number, f"a line may have at most {_DOTS} dots: divide it")
        return TomlFile(source, text, tomllib.loads(text))
    except OSError as error:
        raise InputError(path, None, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise InputError(path, source.count(b"\n", 0, error.start) + 1, f"not UTF-8: {error.reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax(path, text, str(error)) from None
    except (RecursionError, ValueError) as error:
        # Thousands of nested arrays, numbers of thousands of digits.
        raise InputError(path, None, f"this is not {what}: {error}") from None


def _syntax(path: str | os.PathLike[str], text: str, message: str) -> InputError:
    """tomllib gives the line at the end of its message."""
    place = re.search(r" \((?:at line (\d+), column \d+|at end of document)\)$", message)
    line = (int(place[1]) if place[1] else text.count("\n") + (not text.endswith("\n"))) if place else None
    return InputError(path, line, f"not TOML: {message[:place.start()] if place else message}")


def plain_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of each line that does not begin inside a string of several lines. ``text`` is valid
    TOML.
    """
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        inside = quote
        for mark in re.findall(r'"""|\'\'\'', line):
            quote = "" if mark == quote else quote or mark
        if not inside:
            yield number, line
