"""Format strings of log lines: read from a program's ELF file, and filled with the values that a node has written.

The macro ``HM_LOG`` of the node library (``hypermon/log.h``) places the strings in the section ``hypermon_log``. A
string's number is its offset there.
"""

import re
import struct
from collections.abc import Mapping
from pathlib import Path

from hypermon.host.errors import InputError

__all__ = ["elf_strings", "filled", "unfit"]

_SECTION = b"hypermon_log"
#: A conversion of printf: flags, width, precision, size, letter.
_CONVERSION = re.compile(r"%([-+ #0]*)(\d{1,3})?(?:\.(\d{1,3}))?(hh|ll|h|l|z|t|j)?([A-Za-z%])")
_LETTERS = "diuxXoc"


def elf_strings(path: Path) -> dict[int, str]:
    """The format strings in an ELF file, by number.

    Raises
    ------
    InputError
        if the file is not an ELF file, has no such section, or a string in it cannot be filled by a host.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(path, None, error.strerror or str(error)) from None
    if data[:4] != b"\x7fELF":
        raise InputError(path, None, "not an ELF file: give the program as the linker wrote it")
    try:
        section = _section(data)
    except (struct.error, IndexError, ValueError):
        raise InputError(path, None, "its ELF headers are damaged") from None
    if section is None:
        raise InputError(path, None, f"it has no section {_SECTION.decode()}: no HM_LOG() is in the program")
    found: dict[int, str] = {}
    at = 0
    for part in section.split(b"\0"):
        if part:
            text = part.decode(errors="replace")
            if reason := unfit(text):
                raise InputError(path, None, f"HM_LOG({text!r:.80}): {reason}")
            found[at] = text
        at += len(part) + 1
    return found


def _section(data: bytes) -> bytes | None:
    """The contents of the section; None without one."""
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    table, = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    size, count, names = struct.unpack_from(order + "HHH", data, 58 if wide else 46)

    def header(number: int) -> tuple[int, int, int]:
        """Name, offset and size of a section."""
        at = table + number * size
        name, = struct.unpack_from(order + "I", data, at)
        offset, length = struct.unpack_from(order + ("QQ" if wide else "II"), data, at + (24 if wide else 16))
        return name, offset, length

    _, text, _ = header(names)
    for number in range(count):
        name, offset, length = header(number)
        if data[text + name:data.index(b"\0", text + name)] == _SECTION:
            return data[offset:offset + length]
    return None


def unfit(text: str) -> str | None:
    """Why a host cannot fill a format; None if it can."""
    for part in _CONVERSION.finditer(text):
        if part[5] not in _LETTERS + "%":
            return f"%{part[5]} cannot be logged; values are integers: {', '.join('%' + one for one in _LETTERS)}"
    return "a % without a conversion" if "%" in _CONVERSION.sub("", text) else None


def filled(strings: Mapping[int, str], payload: bytes) -> str | None:
    """The text of a log line; None if its string is unknown, or its values are not those of the string.

    Parameters
    ----------
    payload : the string's number, then the values, 7 bits per byte, the lowest first.
    """
    text = strings.get(int.from_bytes(payload[:2], "little")) if len(payload) >= 2 else None
    values, value, shift = [], 0, 0
    for byte in payload[2:]:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    if text is None or shift or any(one >> 32 for one in values):
        return None
    if len(values) != sum(part[5] != "%" for part in _CONVERSION.finditer(text)):
        return None
    left = iter(values)
    return _CONVERSION.sub(lambda part: "%" if part[5] == "%" else _one(part, next(left)), text)


def _one(part: re.Match[str], value: int) -> str:
    flags, width, precision, size, letter = part.groups()
    if letter == "c":
        return chr(value & 255).rjust(int(width or 0)) if "-" not in flags else chr(value & 255).ljust(int(width or 0))
    bits = {"hh": 8, "h": 16}.get(size or "", 32)
    value &= (1 << bits) - 1
    if letter in "di" and value >> bits - 1:
        value -= 1 << bits
    flags = flags.replace("#", "") if letter not in "xXo" or value == 0 else flags
    spec = f"%{flags}{width or ''}{'.' + precision if precision else ''}"
    if letter == "o" and "#" in flags:      # C's prefix is 0, Python's 0o
        return (spec.replace("#", "") + "s") % f"0{value:o}"
    return (spec + ("d" if letter == "u" else letter)) % value
