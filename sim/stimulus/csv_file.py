"""Stimulus as comma-separated values: ``time_ns,node,port``.

``port`` is the new 5-bit value of the node's port (bit 4 is the strobe). For a port of 8 data bits it is the new 9-bit
value (bit 8 is the strobe). Times do not decrease and may have decimals. All ports are 0 at the start. A header alone
is valid.
"""

import re
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from hypermon.host.errors import InputError
from hypermon.host.text.numbers import whole
from hypermon.host.text.printable import printable
from hypermon.sim.stimulus.input_file import InputFile
from hypermon.sim.stimulus.picoseconds import LIMIT_PS
from hypermon.sim.stimulus.rows import Rows, level_type

__all__ = ["HEADER", "read_csv"]

HEADER = "time_ns,node,port"

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_EXACT = Context(prec=20_000)


def read_csv(source: InputFile, nodes: int, port_bits: int = 4) -> Rows:
    """Reads a file; decimals beyond a picosecond are rounded up.

    Raises
    ------
    InputError
        with the line of the first fault.
    """
    with source.opened() as file:
        data = file.read()
    path = source.name
    data = data.removeprefix(b"\xef\xbb\xbf")
    head, _, body = data.partition(b"\n")
    if [word.strip().strip('"') for word in head.decode("latin-1").split(",")] != HEADER.split(","):
        raise InputError(path, 1, f"the header {HEADER} is missing" + _instead(head))
    if not body.strip():
        return Rows.none()
    rows = _read_fast(body, nodes, port_bits)
    return _read_slowly(path, body, nodes, port_bits) if rows is None else rows


def _instead(head: bytes) -> str:
    """A clause that names the first line, if it is a text."""
    text = head.rstrip(b"\r").decode("utf-8", "replace")
    if "\r" in text:
        return "; its lines end with carriage returns alone: convert them with tr '\\r' '\\n'"
    if not text or not text.replace("\t", " ").isprintable():
        return "" if text == "" else "; it is no text"
    return f"; instead there is {printable(text):.60}"


def _read_fast(body: bytes, nodes: int, port_bits: int) -> Rows | None:
    """Reads millions of rows per second; None if any value is not plain and valid."""
    # Arrow would accept hexadecimal numbers, and a carriage return as the end of a line.
    if b"x" in body or b"X" in body or body.count(b"\r") != body.count(b"\r\n"):
        return None
    names = HEADER.split(",")
    types = dict(zip(names, (pa.decimal128(22, 3), pa.int16(), pa.int16()), strict=True))
    try:
        table = pacsv.read_csv(
            pa.BufferReader(body),
            read_options=pacsv.ReadOptions(column_names=names),
            parse_options=pacsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=pacsv.ConvertOptions(column_types=types, null_values=[]))
    except pa.ArrowInvalid:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    if any(column.null_count for column in columns):
        return None
    # A decimal is a 128-bit integer of picoseconds, least significant half first.
    halves = np.frombuffer(columns[0].buffers()[1], np.int64)[2 * columns[0].offset:][:2 * len(table)]
    time, high = halves[0::2], halves[1::2]
    node, port = columns[1].to_numpy(), columns[2].to_numpy()
    right = (not high.any() and (time >= 0).all() and (time[1:] >= time[:-1]).all()
             and (node >= 0).all() and (node < nodes).all() and (port >= 0).all() and (port < 2 << port_bits).all())
    return Rows(time.copy(), node, port.astype(level_type(port_bits))) if right else None


def _read_slowly(path: str, body: bytes, nodes: int, port_bits: int) -> Rows:
    """Reads every valid form of a number, and locates the first fault."""
    time: list[int] = []
    node: list[int] = []
    port: list[int] = []
    before = Decimal(0)
    lines = body.rstrip().decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines, start=2):
        def wrong(reason: str, number: int = number) -> InputError:
            return InputError(path, number, reason)

        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 3:
            raise wrong(f"3 fields expected ({HEADER}), not {len(fields) if line.strip() else 0}")
        if not _NUMBER.fullmatch(fields[0]):
            raise wrong(f"time_ns is not a number: {fields[0]!r}")
        now = Decimal(fields[0])
        if now < 0:
            raise wrong(f"negative time: {fields[0]}")
        if now < before:
            raise wrong(f"time decreases: {fields[0]} after {before}")
        picoseconds = int(_EXACT.scaleb(now, 3).to_integral_value(ROUND_CEILING))
        if picoseconds >= LIMIT_PS:
            raise wrong(f"time is beyond 2^63 ps: {fields[0]:.60}")
        before = now
        for name, field, size, into in (("node", fields[1], nodes, node), ("port", fields[2], 2 << port_bits, port)):
            if not _WHOLE.fullmatch(field):
                raise wrong(f"{name} is not a number: {field!r}")
            if not 0 <= whole(field) < size:
                raise wrong(f"{name} {field:.60} is not in 0..{size - 1}")
            into.append(whole(field))
        time.append(picoseconds)
    return Rows(np.array(time, np.int64), np.array(node, np.int16), np.array(port, level_type(port_bits)))
