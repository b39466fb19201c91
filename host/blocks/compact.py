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
from hypermon.host.blocks.compact_c import NATIVE, decode_native, decode_native_items
from hypermon.host.blocks.compact_numpy import decode_lanes
from hypermon.host.blocks.compact_rows import (
    ABORTED,
    ABORTED_NAMELESS,
    WHOLE,
    CompactRows,
    Decoded,
    DecodedItems,
    Fault,
    ItemRows,
    Payloads,
    Span,
    Spans,
)
from hypermon.host.blocks.item_modes import ItemMode, ItemModes

__all__ = ["CompactRows", "Decoded", "DecodedItems", "Fault", "Item", "ItemRows", "LongItem", "MERGE", "Payloads",
           "Span", "decode", "decode_items", "decode_items_joined", "decode_joined", "encode", "encode_items",
           "explain", "head_modes", "read"]

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
#: Where the modes are in a payload with a head: two words of 32 bits.
_MODE_BYTES = np.arange(8)
assert [(field.name, at) for at, field in COMPACT_HEAD.offsets()][:2] == [("words", 0), ("events", 4)]


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
    return _Reader(payload, time, nodes, items, port_bits).read()


class _Reader:
    """One payload. ``begin`` is the group in which the current item begins, ``at`` the next one to be taken."""

    def __init__(self, payload: bytes | memoryview, time: int, nodes: int, items: bool, port_bits: int):
        self.payload = bytes(payload)
        self.groups = [group for byte in self.payload for group in (byte & 15, byte >> 4)]
        self.time, self.nodes, self.items, self.port_bits = time, nodes, items, port_bits
        self.wide, self.unit = 2 if nodes > 16 else 1, port_bits // GROUP_BITS
        self.found: list[LongItem] = []
        self.begin = self.at = 0
        #: Window and node of the last item that is not late.
        self.before = (time, -1)
        self.modes = ItemModes()
        self.may_abort = False

    def read(self) -> list[LongItem]:
        if self.items:
            self._head()
        while len(self.groups) - self.at > 1:
            self.begin = self.at
            code = self._code()
            if code == Code.ABORTED:
                self._abort()
            elif code == Code.LATE:
                self._late()
            else:
                window = self.before[0] + self._number()
                self._place(self._window(window) if code == Code.WINDOW else [self._item(window)])
        if self.at < len(self.groups) and self.groups[self.at]:
            raise _IllegalError(self.at, "something after the last item that is not an item")
        return self.found

    def _take(self) -> int:
        if self.at == len(self.groups):
            raise _IllegalError(self.at, "an item that is cut short")
        self.at += 1
        return self.groups[self.at - 1]

    def _number(self) -> int:
        value = 0
        for k in range(GAP_GROUPS):
            group = self._take()
            value |= (group & ~_MORE) << _BITS * k
            if not group & _MORE:
                if k and not group:
                    raise _IllegalError(self.at - 1, "a number that ends in a group of 0")
                return value
        raise _IllegalError(self.at - 1, f"a number of more than {GAP_GROUPS} groups")

    def _field(self, groups: int) -> int:
        return sum(self._take() << 4 * k for k in range(groups))

    def _head(self) -> None:
        if len(self.groups) < _HEAD_GROUPS:
            raise _IllegalError(len(self.groups), "a head that is cut short")
        head = COMPACT_HEAD.unpack(self.payload[:COMPACT_HEAD.bytes])
        if head["zero"]:
            raise _IllegalError(_HEAD_GROUPS // 2, "a head that makes no sense")
        self.modes = ItemModes(head["words"], head["events"]).in_stream(self.nodes)
        self.at = _HEAD_GROUPS

    def _code(self) -> int | None:
        """The code of the item; None if it has none."""
        first, second = self.groups[self.at:self.at + 2]
        if not first & _MORE or second:
            return None
        code = first & ~_MORE
        if code not in set(Code) or (code != Code.WINDOW and not self.items):
            raise _IllegalError(self.at, f"unknown code {code}")
        self.at += 2
        return code

    def _nibbles(self, node: int, first: int) -> bytes:
        """All nibbles of an item that begins with this one."""
        if node >= self.nodes:
            raise _IllegalError(self.begin, "a node that the board does not have")
        if self.modes[node] is ItemMode.EVENT and not first & 15:
            raise _IllegalError(self.begin, "an event of no bytes")
        count = self.modes.writes(node, first, self.port_bits) - 1
        return bytes([first, *(self._field(self.unit) for _ in range(count))])

    def _abort(self) -> None:
        if not self.may_abort:
            raise _IllegalError(self.begin, "an abort without an item of several nibbles before it")
        filler = self._field(2)
        nibbles = self.found[-1].nibbles
        if not 0 < filler < len(nibbles):
            raise _IllegalError(self.begin, "an abort of more nibbles than there are, or of none")
        if any(nibbles[len(nibbles) - filler:]):
            raise _IllegalError(self.begin, "filler that is not zero")
        self.found[-1] = self.found[-1]._replace(filler=filler)
        self.may_abort = False

    def _late(self) -> None:
        if not self.found:
            raise _IllegalError(self.begin, "a late item in front")
        age, node, first = self._number(), self._field(self.wide), self._field(self.unit)
        if node < self.nodes and self.modes[node] is ItemMode.NIBBLE:
            raise _IllegalError(self.begin, "a late item of one nibble")
        window = self.before[0] - (age - _AGES if age >= _AGES // 2 else age)
        item = LongItem(window, node, self._nibbles(node, first), late=True)
        if window < 0:
            raise _IllegalError(self.begin, "a window before time 0")
        self.found.append(item)
        self.may_abort = True

    def _window(self, window: int) -> list[LongItem]:
        vector = self._field(4 * self.wide)
        if vector == 0:
            raise _IllegalError(self.begin, "an empty strobe vector")
        if vector >> self.nodes:
            raise _IllegalError(self.begin, "strobes of nodes that the board does not have")
        if vector & self.modes.longer:
            raise _IllegalError(self.begin, "a strobe vector with nodes that are not in nibble mode")
        return [LongItem(window, node, bytes([self._field(self.unit)]))
                for node in range(self.nodes) if vector >> node & 1]

    def _item(self, window: int) -> LongItem:
        node, first = self._field(self.wide), self._field(self.unit)
        return LongItem(window, node, self._nibbles(node, first))

    def _place(self, row: list[LongItem]) -> None:
        """Adds the items of a window, which must be in order."""
        if not self.found and row[0].window != self.time:
            raise _IllegalError(self.begin, "a first item that is not in the first window")
        if row[0][:2] <= self.before:
            raise _IllegalError(self.begin, "items of one window that are not in the order of their nodes")
        self.found += row
        self.before = row[-1][:2]
        self.may_abort = self.modes[self.before[1]] is not ItemMode.NIBBLE


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
    return ItemModes(head["words"], head["events"]).in_stream(nodes)


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
    return decode_joined(Payloads.of(payloads, times), nodes, port_bits)


def decode_joined(payloads: Payloads, nodes: int, port_bits: int = PORT_BITS) -> Decoded:
    """:func:`decode` of payloads that are one after the other."""
    if NATIVE is not None:
        return decode_native(NATIVE, payloads, nodes, port_bits)
    each = payloads.each()
    rows, spans, bad = decode_lanes(each, payloads.times.tolist(), nodes, port_bits)
    faults = [Fault(place, *(explain(each[place], nodes, port_bits=port_bits) or (0, "items that make no sense")))
              for place in bad]
    return Decoded(rows, Spans.of(spans), faults)


def decode_items(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                 modes: ItemModes, port_bits: int = PORT_BITS) -> DecodedItems:
    """The items of the payloads of COMPACT blocks that state the modes of their nodes, which must be these.

    Parameters
    ----------
    As for :func:`decode`.
    """
    return decode_items_joined(Payloads.of(payloads, times), nodes, modes, port_bits)


def decode_items_joined(payloads: Payloads, nodes: int, modes: ItemModes, port_bits: int = PORT_BITS) -> DecodedItems:
    """:func:`decode_items` of payloads that are one after the other."""
    wanted = modes.in_stream(nodes)
    others = _others(payloads, nodes, wanted)
    if not others:
        return _decode_alike(payloads, nodes, wanted, port_bits)
    left_out = set(others)
    places = [k for k in range(len(payloads)) if k not in left_out]
    each, times = payloads.each(), payloads.times.tolist()
    decoded = _decode_alike(Payloads.of([each[k] for k in places], [times[k] for k in places]), nodes, wanted,
                            port_bits)
    spans: list[Span | None] = [None] * len(payloads)
    for place, span in zip(places, decoded.spans, strict=True):
        spans[place] = span
    faults = [fault._replace(which=places[fault.which]) for fault in decoded.faults]
    faults += [Fault(k, 0, "other item modes than the run's") for k in others]
    return DecodedItems(decoded.parts, Spans.of(spans), sorted(faults))


def _others(payloads: Payloads, nodes: int, wanted: ItemModes) -> list[int]:
    """The payloads with a head that states other modes than these."""
    headed = np.flatnonzero(np.diff(payloads.ends, prepend=0) >= COMPACT_HEAD.bytes)
    bits = payloads.data[payloads.starts[headed, np.newaxis] + _MODE_BYTES].view("<u4")
    every = (1 << nodes) - 1
    words, events = bits[:, 0] & every, bits[:, 1] & every
    other: list[int] = headed[(words & ~events != wanted.words) | (events != wanted.events)].tolist()
    return other


def _decode_alike(payloads: Payloads, nodes: int, modes: ItemModes, port_bits: int) -> DecodedItems:
    if NATIVE is not None:
        return decode_native_items(NATIVE, payloads, nodes, modes, port_bits)
    return _read_all(payloads.each(), payloads.times.tolist(), nodes, modes, port_bits)


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
    return DecodedItems([_columns(found, modes, port_bits)] if found else [], Spans.of(spans), faults)


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
