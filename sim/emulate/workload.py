"""Items of a node to be played: read from a recorded run, or from the tables that `hypermon export` prints."""

import csv
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from hypermon.host.errors import InputError
from hypermon.sim.pins import PAYLOAD_MAX

__all__ = ["Item", "Kind", "Workload", "load_workload"]

_NIBBLES = ["time_ps", "node", "nibble"]
_EVENTS = ["time_ps", "node", "event", "payload_hex"]


class Kind(IntEnum):
    """What an item is; the firmware's numbers."""

    NIBBLE = 1
    WORD = 2
    EVENT = 3


@dataclass(frozen=True, order=True)
class Item:
    """One item that a node writes. ``data``: the nibble, or byte of a port of 8 bits; the word's four bytes; an event's
    id and payload.
    """

    time_ps: int
    node: int
    kind: Kind
    data: bytes


@dataclass(frozen=True)
class Workload:
    """Items by time, ties by node. ``name``: their origin. ``port_bits``: width of the ports that they are for."""

    name: str
    items: tuple[Item, ...]
    port_bits: int = 4

    @property
    def nodes(self) -> list[int]:
        """The nodes that have items."""
        return sorted({item.node for item in self.items})

    def of(self, node: int) -> list[Item]:
        """The items of one node.

        Raises
        ------
        InputError
            if it has none.
        """
        mine = [item for item in self.items if item.node == node]
        if not mine:
            raise InputError(self.name, None, f"node {node} has no items in it; nodes that have: "
                                              + (", ".join(map(str, self.nodes)) or "none"))
        return mine


def load_workload(path: str | Path, port_bits: int | None = None) -> Workload:
    """Reads a run's items, or a table of nibbles (``time_ps,node,nibble``) or events
    (``time_ps,node,event,payload_hex``). Times before 0, within the board's latency, become 0.

    Parameters
    ----------
    port_bits : of the ports that will play it, 4 or 8; with 8 the column ``nibble`` contains bytes. If not given, those
        of the run, 4 for a table.

    Raises
    ------
    InputError
        names file, line and reason.
    """
    path = Path(path)
    items, bits = _of_run(path, port_bits) if path.is_dir() else _of_table(path, port_bits or 4)
    return Workload(str(path), tuple(sorted(items, key=lambda item: (item.time_ps, item.node))), bits)


def _of_run(path: Path, port_bits: int | None) -> tuple[list[Item], int]:
    from hypermon.host import open_run

    run = open_run(path)
    bits = port_bits or run.info.port_bits
    table: Any = run.events()
    columns = {name: table[name].to_pylist() for name in table.column_names}
    nothing = [None] * table.num_rows
    items = []
    for time, node, nibble, word, event, payload, aborted in zip(
            columns["time_ps"], columns["node"],
            *(columns.get(name, nothing) for name in ("nibble", "word", "event", "payload", "aborted")), strict=True):
        if aborted:
            continue
        if nibble is not None:
            if bits < run.info.port_bits:
                raise InputError(path, None, f"its nodes wrote bytes, to ports of {run.info.port_bits} bits: "
                                             f"--port-bits {run.info.port_bits}")
            kind, data = Kind.NIBBLE, bytes([nibble])
        elif word is not None:
            kind, data = Kind.WORD, word.to_bytes(4, "little")
        else:
            kind, data = Kind.EVENT, bytes([event]) + payload
        items.append(Item(max(time, 0), node, kind, data))
    return items, bits


def _of_table(path: Path, port_bits: int) -> tuple[list[Item], int]:
    items = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if header not in (_NIBBLES, _EVENTS):
                raise InputError(path, 1, f"the header {','.join(_NIBBLES)} or {','.join(_EVENTS)} is missing")
            for number, row in enumerate(rows, start=2):
                try:
                    items.append(_item(row, len(header), port_bits))
                except ValueError as error:
                    raise InputError(path, number, str(error)) from None
    except csv.Error as error:
        raise InputError(path, rows.line_num, str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, None, f"cannot be read: {getattr(error, 'strerror', error)}") from None
    return items, port_bits


def _item(row: list[str], fields: int, port_bits: int) -> Item:
    if len(row) != fields:
        raise ValueError(f"{fields} fields expected, not {len(row)}")
    time, node, value = (int(field) for field in row[:3])
    if node < 0:
        raise ValueError(f"node {node} is negative")
    if fields == len(_NIBBLES):
        if not 0 <= value < 1 << port_bits:
            raise ValueError(f"{'nibble' if port_bits == 4 else 'byte'} {value} is not in 0..{(1 << port_bits) - 1}")
        return Item(max(time, 0), node, Kind.NIBBLE, bytes([value]))
    payload = bytes.fromhex(row[3])
    if not 0 <= value <= 255 or len(payload) > PAYLOAD_MAX:
        raise ValueError(f"an event has an id 0..255 and up to {PAYLOAD_MAX} bytes, not {value} and {len(payload)}")
    return Item(max(time, 0), node, Kind.EVENT, bytes([value]) + payload)
