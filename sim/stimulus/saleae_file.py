"""Stimulus from the data that Saleae Logic exports as CSV: ``Time [s],Channel 0,...``, a row per change.

The levels of the first row are levels, not edges. ``X`` is not a level, as in a value change dump: the previous
level holds, and a strobe that becomes ``X`` is counted. If the first row is
before 0, as it is before a trigger, all times are later by that.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from hypermon.host.errors import InputError
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.picoseconds import LIMIT_PS
from hypermon.sim.stimulus.port_mapping import Mapping, option_text
from hypermon.sim.stimulus.rows import Track
from hypermon.sim.stimulus.samples import Port, Samples, Targets

__all__ = ["channels_of_saleae", "is_saleae", "read_saleae"]

_TIME = re.compile(rb"(\xef\xbb\xbf)?\"?Time ?\[s\]\"?[,\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?")
_LEVELS = {"0": "0", "1": "1", "X": "x", "x": "x"}
_EXACT = Context(prec=200)


def is_saleae(head: bytes) -> bool:
    """Whether a file begins like an export of Saleae Logic."""
    return _TIME.match(head) is not None


def channels_of_saleae(source: InputFile) -> list[str]:
    """Names of the channels; errors as :func:`read_saleae`."""
    return list(map(option_text, next(_rows(source))[1][1:]))


def read_saleae(source: InputFile, mappings: Sequence[Mapping]) -> list[Track]:
    """Reads the mapped channels; times finer than a picosecond are rounded up.

    Raises
    ------
    InputError
        with the line, if a row is malformed, times decrease or are beyond 2^63 ps, or there is no such channel.
    """
    rows = _rows(source)
    _, names = next(rows)
    ports = [Port(1 << len(mapping.channels) - 1) for mapping in mappings]
    targets: list[Targets] = [[] for _ in names]
    for port, mapping in zip(ports, mappings, strict=True):
        for i, channel in enumerate(mapping.channels):
            targets[_column(source.name, names, channel)].append((port, 1 << i, 0))
    samples, shown, begin = Samples(ports), [""] * len(names), 0
    for line, row in rows:
        if len(row) != len(names):
            raise InputError(source.name, line, f"{len(names)} fields expected, not {len(row)}")
        now = _picoseconds(source.name, line, row[0])
        if samples.now == 0 and not any(shown):
            begin = min(now, 0)
        if now - begin < samples.now:
            raise InputError(source.name, line, f"time decreases: {row[0]}")
        if now - begin >= LIMIT_PS:
            raise InputError(source.name, line, f"time is beyond 2^63 ps: {row[0]:.60}")
        samples.move_to(now - begin)
        for column, (before, value) in enumerate(zip(shown, row, strict=True)):
            if column and value != before:
                if value not in _LEVELS:
                    raise InputError(source.name, line, f"channel {names[column]} is not 0, 1 or X: {value!r:.60}")
                samples.value(targets[column], _LEVELS[value])
        shown = row
    samples.settle()
    moved = f"{source.name}: its first row is {-begin:,} ps before its time 0; all its times are later by that"
    return [port.track(notes=(moved,) if begin else ()) for port in ports]


def _rows(source: InputFile) -> Iterator[tuple[int, list[str]]]:
    """Lines with their numbers, the header first."""
    with source.opened() as file:
        lines = (line.decode("utf-8-sig" if number == 0 else "utf-8", "replace") for number, line in enumerate(file))
        reader = csv.reader(lines)
        try:
            for row in reader:
                yield reader.line_num, [field.strip(" \t") for field in row]
        except csv.Error as error:
            raise InputError(source.name, reader.line_num, f"not comma-separated values: {error}") from None


def _column(file: str, names: list[str], channel: str) -> int:
    found = [column for column, name in enumerate(names) if column and name == channel]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(file, None, f"{len(found)} channels are called {channel}")
    known = ", ".join(map(option_text, names[1:])) or "none"
    raise InputError(file, None, f"unknown channel {option_text(channel)}; there are {known}")


def _picoseconds(file: str, line: int, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InputError(file, line, f"time is not a number of seconds: {text!r:.60}; export it without ISO 8601 time "
                                     "stamps")
    return int(_EXACT.scaleb(Decimal(text), 12).to_integral_value(ROUND_CEILING))
