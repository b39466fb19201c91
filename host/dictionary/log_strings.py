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
#: A log line has 16 bits for its string's offset.
_SECTION_MAX = 1 << 16
#: A conversion of printf: flags, width, precision, size, letter.
_CONVERSION = re.compile(r"%([-+ #0]*)(\d{1,3})?(?:\.(\d{0,3}))?(hh|ll|h|l|z|t|j)?([A-Za-z%])")
_LETTERS = "diuxXoc"
#: Sizes that depend on the program's processor: those of ``long``, and of these those of a pointer.
_LONG, _POINTER = ("l", "z", "t"), ("z", "t")
#: Processors whose ``int`` and pointers have 16 bits, by their numbers in ELF files: AVR, MSP430.
_SHORT_INT = (83, 105)


def elf_strings(path: Path) -> dict[int, str]:
    """The format strings in an ELF file, by number.

    The sizes ``l``, ``z`` and ``t`` become ``ll`` if the program's ``long`` has 64 bits, and are otherwise removed. If
    its ``int`` has 16 bits, ``z``, ``t`` and no size become ``h``: the node extends such values to 32 bits.

    Raises
    ------
    InputError
        if the file is not an ELF file, has no such section or one that is too long, or a string in it cannot be filled
        by a host.
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
    if len(section) > _SECTION_MAX:
        raise InputError(path, None, f"its format strings have {len(section):,} bytes; {_SECTION_MAX:,} are the most")
    found: dict[int, str] = {}
    at = 0
    wide, short = data[4] == 2, data[18 if data[5] == 1 else 19] in _SHORT_INT
    for part in section.removesuffix(b"\0").split(b"\0"):
        text = part.decode(errors="replace")
        if reason := unfit(text):
            raise InputError(path, None, f"HM_LOG({text!r:.80}): {reason}")
        found[at] = _CONVERSION.sub(lambda conversion: _sized(conversion, wide, short), text)
        at += len(part) + 1
    return found


def _sized(conversion: re.Match[str], wide: bool, short: bool) -> str:
    text, size, letter = conversion[0], conversion[4], conversion[5]
    if short and letter not in "c%" and (size is None or size in _POINTER):
        return f"{text[:-1].removesuffix(size or '')}h{letter}"
    if size not in _LONG:
        return text
    return f"{text[:-2]}{'ll' if wide else ''}{text[-1]}"


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
        if part[5] == "c" and part[4] == "l":
            return "%lc cannot be logged; write %c"
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
    if text is None or shift:
        return None
    parts = [part for part in _CONVERSION.finditer(text) if part[5] != "%"]
    if len(values) != len(parts) or any(value >> _widest(part) for value, part in zip(values, parts, strict=True)):
        return None
    left = iter(values)
    return _CONVERSION.sub(lambda part: "%" if part[5] == "%" else _one(part, next(left)), text)


def _widest(part: re.Match[str]) -> int:
    """Bits of the largest value that a program writes for a conversion."""
    return 64 if part[4] in ("ll", "j", *_LONG) else 32


def _one(part: re.Match[str], value: int) -> str:
    """What C's printf writes for a value."""
    flags, width, precision, size, letter = part.groups()
    if letter == "c":
        return _padded("", chr(value & 255), flags.replace("0", ""), width)
    # A value of a dictionary that does not state the size of a long may have either size.
    bits = {"hh": 8, "h": 16}.get(size or "", 64 if size in ("ll", "j") or value >> 32 else 32)
    value &= (1 << bits) - 1
    sign = ""
    if letter in "di":
        if value >> bits - 1:
            sign, value = "-", (1 << bits) - value
        else:
            sign = "+" if "+" in flags else " " if " " in flags else ""
    digits = format(value, {"x": "x", "X": "X", "o": "o"}.get(letter, "d"))
    if precision is not None:
        flags = flags.replace("0", "")
        digits = "" if value == 0 and int(precision or 0) == 0 else digits.zfill(int(precision or 0))
    if "#" in flags and letter == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and letter in "xX" and value:
        sign = "0" + letter
    return _padded(sign, digits, flags, width)


def _padded(sign: str, digits: str, flags: str, width: str | None) -> str:
    room = int(width or 0)
    if "-" in flags:
        return (sign + digits).ljust(room)
    return sign + digits.zfill(room - len(sign)) if "0" in flags else (sign + digits).rjust(room)
