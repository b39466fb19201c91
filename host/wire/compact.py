"""Converts payloads of COMPACT blocks into items and back (docs/frame-format.md, COMPACT).

With ports of 8 bits (``port_bits``), read "byte" (two groups) for every "nibble" here.

:func:`encode` and :func:`read` are plain, and define what is legal. :func:`decode` and :func:`decode_items` decode
runs: in C if the package was installed with a compiler, else with NumPy, and item by item if items have several
nibbles.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from hypermon.hdl.layout import COMPACT_HEAD, GAP_GROUPS, GROUP_BITS, PORT_BITS, Code
from hypermon.host.wire.compact_c import NATIVE, decode_native, decode_native_items
from hypermon.host.wire.compact_numpy import decode_lanes
from hypermon.host.wire.compact_rows import (
    ABORTED,
    ABORTED_NAMELESS,
    WHOLE,
    CompactRows,
    Decoded,
    DecodedItems,
    Fault,
    ItemRows,
    Span,
)
from hypermon.host.wire.item_modes import ItemMode, ItemModes

__all__ = ["CompactRows", "Decoded", "DecodedItems", "Fault", "Item", "ItemRows", "LongItem", "MERGE", "Span",
           "decode", "decode_items", "encode", "encode_items", "explain", "head_modes", "read"]

assert GROUP_BITS == 4

#: Window, node, nibble.
Item = tuple[int, int, int]


class LongItem(NamedTuple):
    """An item of any mode.

    Parameters
    ----------
    window, node : its time and source.
    nibbles : its writes in order, one byte each.
    filler : how many of them, at the end, the board added when it ended the item; 0 if it is whole.
    late : it is not in the order of its window.
    """

    window: int
    node: int
    nibbles: bytes
    filler: int = 0
    late: bool = False


#: Number of nodes in one window from which on ``WINDOW`` is the shorter form.
MERGE = 4

#: Bit of a number's group that indicates that another one follows, and bits of the number in a group.
_MORE, _BITS = 8, 3
#: Number of values of an age; the upper half of them is negative.
_AGES = 1 << _BITS * GAP_GROUPS
_HEAD_GROUPS = 2 * COMPACT_HEAD.bytes


# ------------------------------------------------------------------------------------------ writing

def _number(value: int) -> list[int]:
    groups = []
    while value >= _MORE:
        groups.append(_MORE | value % _MORE)
        value >>= _BITS
    return [*groups, value]


def _field(value: int, groups: int) -> list[int]:
    return [value >> 4 * k & 15 for k in range(groups)]


def encode(items: Iterable[Item], nodes: int, port_bits: int = PORT_BITS) -> bytes:
    """The payload of items of one nibble, by window, ties by node; its block has the time of the first one.

    Simple, and only as fast as tests need.

    Raises
    ------
    ValueError
        if no payload can contain these items.
    """
    def long() -> Iterator[LongItem]:
        for window, node, nibble in items:
            if not (0 <= node < nodes and 0 <= nibble < 1 << port_bits):
                raise ValueError(f"no item has node {node} of {nodes} and nibble {nibble}")
            yield LongItem(window, node, bytes([nibble]))

    return _pack(_groups(long(), ItemModes(), nodes, port_bits))


def encode_items(items: Iterable[LongItem], modes: ItemModes, nodes: int, port_bits: int = PORT_BITS) -> bytes:
    """The payload of items of any mode, head included.

    Parameters
    ----------
    items : by window, ties by node; late ones anywhere except first.

    Raises
    ------
    ValueError
        if no payload can contain these items.
    """
    return COMPACT_HEAD.pack(words=modes.words, events=modes.events) + _pack(_groups(items, modes, nodes, port_bits))


def _pack(groups: list[int]) -> bytes:
    groups += [0] * (len(groups) % 2)
    return bytes(low | high << 4 for low, high in zip(groups[::2], groups[1::2], strict=True))


def _groups(items: Iterable[LongItem], modes: ItemModes, nodes: int, port_bits: int) -> list[int]:
    wide, unit = 2 if nodes > 16 else 1, port_bits // GROUP_BITS
    groups: list[int] = []
    time: int | None = None
    before = (-1, -1)

    def written(writes: Iterable[int]) -> list[int]:
        return [group for write in writes for group in _field(write, unit)]

    def write(item: LongItem, front: list[int]) -> None:
        if not 0 <= item.node < nodes:
            raise ValueError(f"no item has node {item.node} of {nodes}")
        if (not item.nibbles or max(item.nibbles) >> port_bits
                or (modes[item.node] is ItemMode.EVENT and not item.nibbles[0] & 15)
                or len(item.nibbles) != modes.writes(item.node, item.nibbles[0], port_bits)):
            raise ValueError(f"no item of node {item.node} has the nibbles {item.nibbles.hex(' ')}")
        if not 0 <= item.filler < len(item.nibbles) or any(item.nibbles[len(item.nibbles) - item.filler:]):
            raise ValueError(f"the last {item.filler} of the nibbles {item.nibbles.hex(' ')} are no filler")
        groups.extend([*front, *_field(item.node, wide), *written(item.nibbles)])
        if item.filler:
            groups.extend([_MORE | Code.ABORTED, 0, *_field(item.filler, 2)])

    for (late, window), chunk in groupby(items, lambda item: (item.late, item.window)):
        row = list(chunk)
        if late:
            for item in row:
                age = (time or 0) - window
                if time is None or not -_AGES // 2 <= age < _AGES // 2:
                    raise ValueError(f"an item {age} windows late begins another block")
                write(item, [_MORE | Code.LATE, 0, *_number(age % _AGES)])
            continue
        gap = _number(window - time) if time is not None and window >= time else [0]
        if len(gap) > GAP_GROUPS:
            raise ValueError(f"a gap of {window - (time or 0)} windows begins another block")
        time = window
        for item in row:
            if (window, item.node) <= before:
                raise ValueError(f"an item of window {window}, node {item.node} follows one of {before}")
            before = (window, item.node)
        vector = sum(1 << item.node for item in row if 0 <= item.node < nodes)
        if len(row) >= MERGE and not vector & modes.longer:
            groups += [_MORE | Code.WINDOW, 0, *gap, *_field(vector, 4 * wide)]
            groups += written(item.nibbles[0] for item in row)
            continue
        for item in row:
            write(item, gap)
            gap = [0]
    return groups


# ------------------------------------------------------------------------------------------ reading

class _IllegalError(Exception):
    """``args``: position and reason."""


def read(payload: bytes | memoryview, time: int, nodes: int, items: bool = False,
         port_bits: int = PORT_BITS) -> list[LongItem]:
    """The items of a payload, read group by group.

    Parameters
    ----------
    time : of its block.
    items : the payload has a head that states the modes of the nodes.

    Raises
    ------
    _IllegalError
        with position and reason.
    """
    groups = [group for byte in bytes(payload) for group in (byte & 15, byte >> 4)]
    wide, unit = 2 if nodes > 16 else 1, port_bits // GROUP_BITS
    found: list[LongItem] = []
    at, before = 0, (time, -1)
    modes = ItemModes()
    may_abort = False

    def take() -> int:
        nonlocal at
        if at == len(groups):
            raise _IllegalError(at, "an item that is cut short")
        at += 1
        return groups[at - 1]

    def number() -> int:
        value = 0
        for k in range(GAP_GROUPS):
            group = take()
            value |= (group & ~_MORE) << _BITS * k
            if not group & _MORE:
                if k and not group:
                    raise _IllegalError(at - 1, "a number that ends in a group of 0")
                return value
        raise _IllegalError(at - 1, f"a number of more than {GAP_GROUPS} groups")

    def field(groups: int) -> int:
        return sum(take() << 4 * k for k in range(groups))

    def rest(node: int, first: int) -> bytes:
        """All nibbles of an item that begins with this one."""
        if node >= nodes:
            raise _IllegalError(begin, "a node that the board does not have")
        if modes[node] is ItemMode.EVENT and not first & 15:
            raise _IllegalError(begin, "an event of no bytes")
        return bytes([first, *(field(unit) for _ in range(modes.writes(node, first, port_bits) - 1))])

    if items:
        if len(groups) < _HEAD_GROUPS:
            raise _IllegalError(len(groups), "a head that is cut short")
        head = COMPACT_HEAD.unpack(bytes(payload[:COMPACT_HEAD.bytes]))
        if head["zero"]:
            raise _IllegalError(_HEAD_GROUPS // 2, "a head that makes no sense")
        modes = ItemModes(head["words"], head["events"]).on(nodes)
        at = _HEAD_GROUPS
    while len(groups) - at > 1:
        begin = at
        code = groups[at] & ~_MORE if groups[at] & _MORE and groups[at + 1] == 0 else None
        if code is not None:
            if code not in set(Code) or (code != Code.WINDOW and not items):
                raise _IllegalError(at, f"unknown code {code}")
            at += 2
        if code == Code.ABORTED:
            if not may_abort:
                raise _IllegalError(begin, "an abort behind no item of several nibbles")
            filler = field(2)
            nibbles = found[-1].nibbles
            if not 0 < filler < len(nibbles):
                raise _IllegalError(begin, "an abort of more nibbles than there are, or of none")
            if any(nibbles[len(nibbles) - filler:]):
                raise _IllegalError(begin, "filler that is not zero")
            found[-1] = found[-1]._replace(filler=filler)
            may_abort = False
            continue
        if code == Code.LATE:
            if not found:
                raise _IllegalError(begin, "a late item in front")
            age, node, first = number(), field(wide), field(unit)
            if node < nodes and modes[node] is ItemMode.NIBBLE:
                raise _IllegalError(begin, "a late item of one nibble")
            window = before[0] - (age - _AGES if age >= _AGES // 2 else age)
            item = LongItem(window, node, rest(node, first), late=True)
            if window < 0:
                raise _IllegalError(begin, "a window before time 0")
            found.append(item)
            may_abort = True
            continue
        window = before[0] + number()
        if code == Code.WINDOW:
            vector = field(4 * wide)
            if vector == 0:
                raise _IllegalError(begin, "an empty strobe vector")
            if vector >> nodes:
                raise _IllegalError(begin, "strobes of nodes that the board does not have")
            if vector & modes.longer:
                raise _IllegalError(begin, "a strobe vector with nodes that are not in nibble mode")
            row = [LongItem(window, node, bytes([field(unit)])) for node in range(nodes) if vector >> node & 1]
        else:
            node, first = field(wide), field(unit)
            row = [LongItem(window, node, rest(node, first))]
        if not found and window != time:
            raise _IllegalError(begin, "a first item that is not in the first window")
        if row[0][:2] <= before:
            raise _IllegalError(begin, "items of one window that are not in the order of their nodes")
        found += row
        before = row[-1][:2]
        may_abort = modes[before[1]] is not ItemMode.NIBBLE
    if at < len(groups) and groups[at]:
        raise _IllegalError(at, "something behind the last item that is none")
    return found


def explain(payload: bytes | memoryview, nodes: int, *, time: int = 0, items: bool = False,
            port_bits: int = PORT_BITS) -> tuple[int, str] | None:
    """The group from which on a payload is not legal, and the reason; None if it is legal."""
    try:
        read(payload, time, nodes, items, port_bits)
    except _IllegalError as fault:
        position, reason = fault.args
        return position, reason
    return None


def head_modes(payload: bytes | memoryview, nodes: int) -> ItemModes | None:
    """The modes that the head of a payload states; None if it has no head."""
    if len(payload) < COMPACT_HEAD.bytes:
        return None
    head = COMPACT_HEAD.unpack(bytes(payload[:COMPACT_HEAD.bytes]))
    return ItemModes(head["words"], head["events"]).on(nodes)


# --------------------------------------------------------------------------------------------- in bulk

def decode(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
           port_bits: int = PORT_BITS) -> Decoded:
    """The items of the payloads of COMPACT blocks of single nibbles.

    Parameters
    ----------
    payloads : the payloads, without padding. More at a time is faster, up to about a thousand.
    times : their blocks' times, each less than 2**62.
    nodes, port_bits : of the board.
    """
    if NATIVE is not None:
        return decode_native(NATIVE, payloads, times, nodes, port_bits)
    rows, spans, bad = decode_lanes(payloads, times, nodes, port_bits)
    faults = [Fault(place, *(explain(payloads[place], nodes, port_bits=port_bits) or (0, "items that make no sense")))
              for place in bad]
    return Decoded(rows, spans, faults)


def decode_items(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                 modes: ItemModes, port_bits: int = PORT_BITS) -> DecodedItems:
    """The items of the payloads of COMPACT blocks that state the modes of their nodes, which must be these.

    Parameters
    ----------
    As for :func:`decode`.
    """
    wanted = modes.on(nodes)
    others = {k for k, payload in enumerate(payloads) if head_modes(payload, nodes) not in (wanted, None)}
    places = [k for k in range(len(payloads)) if k not in others]
    ours, their_times = [payloads[k] for k in places], [times[k] for k in places]
    decoded = (decode_native_items(NATIVE, ours, their_times, nodes, wanted, port_bits)
               if NATIVE is not None else _read_all(ours, their_times, nodes, wanted, port_bits))
    if not others:
        return decoded
    spans: list[Span | None] = [None] * len(payloads)
    for place, span in zip(places, decoded.spans, strict=True):
        spans[place] = span
    faults = [fault._replace(which=places[fault.which]) for fault in decoded.faults]
    faults += [Fault(k, 0, "other item modes than the run's") for k in others]
    return DecodedItems(decoded.parts, spans, sorted(faults))


def _read_all(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
              modes: ItemModes, port_bits: int) -> DecodedItems:
    """One after the other, with :func:`read`."""
    found: list[LongItem] = []
    spans: list[Span | None] = []
    faults = []
    for k, (payload, time) in enumerate(zip(payloads, times, strict=True)):
        items: list[LongItem] = []
        try:
            items = read(payload, time, nodes, True, port_bits)
        except _IllegalError as fault:
            faults.append(Fault(k, *fault.args))
        found += items
        regular = [item[:2] for item in items if not item.late]
        spans.append(Span(regular[0], regular[-1]) if items else None)
    return DecodedItems([_columns(found, modes, port_bits)] if found else [], spans, faults)


def _columns(items: Sequence[LongItem], modes: ItemModes, port_bits: int) -> ItemRows:
    values, states, ends, data = [], [], [], bytearray()
    pair = 8 // port_bits
    for item in items:
        nibbles = item.nibbles
        value = sum(nibble << port_bits * k for k, nibble in enumerate(nibbles[:32 // port_bits]))
        state = ABORTED if item.filler else WHOLE
        if modes[item.node] is ItemMode.EVENT:
            event = nibbles[1:] if pair == 1 else bytes(
                low | high << 4 for low, high in zip(nibbles[1::2], nibbles[2::2], strict=True))
            value = event[0]
            whole = (len(nibbles) - 1 - item.filler) // pair
            if item.filler and not whole:
                state = ABORTED_NAMELESS
            data += event[1:whole]
        values.append(value)
        states.append(state)
        ends.append(len(data))
    return ItemRows(np.array([item.window for item in items], np.int64),
                    np.array([item.node for item in items], np.uint8), np.array(values, np.uint32),
                    np.array(states, np.uint8), np.array(ends, np.int32), np.frombuffer(bytes(data), np.uint8), modes)
