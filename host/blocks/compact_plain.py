"""Converts payloads of COMPACT blocks into items, group by group. This module defines which payloads are legal.

It decodes runs where no compiler was when the package was installed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypermon.hdl.layout import COMPACT_HEAD, GAP_GROUPS, GROUP_BITS, PORT_BITS, Code
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

__all__ = ["IllegalError", "LongItem", "read", "read_items", "read_nibbles"]

assert GROUP_BITS == 4

#: Bit of a number's group that indicates that another one follows, and bits of the number in a group.
_MORE, _BITS = 8, 3
#: Number of values of an age; the upper half of them is negative.
_AGES = 1 << _BITS * GAP_GROUPS
_HEAD_GROUPS = 2 * COMPACT_HEAD.bytes
#: Each write of an item, as its nibbles.
_WRITES = [bytes([value]) for value in range(256)]


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


class IllegalError(Exception):
    """A payload is not legal. ``args``: the first bad group, and the reason."""


def read(payload: bytes | memoryview, time: int, nodes: int, items: bool = False,
         port_bits: int = PORT_BITS) -> list[LongItem]:
    """The items of a payload, read group by group.

    Parameters
    ----------
    time : of its block.
    items : the payload has a head that states the modes of the nodes.

    Raises
    ------
    IllegalError
        with position and reason.
    """
    return _Reader(payload, time, nodes, items, port_bits).read()


class _Reader:
    """One payload. ``begin`` is the group in which the current item begins, ``at`` the next one to be taken."""

    def __init__(self, payload: bytes | memoryview, time: int, nodes: int, items: bool, port_bits: int):
        self.payload = bytes(payload)
        data = np.frombuffer(self.payload, np.uint8)
        self.groups = np.stack([data & 15, data >> 4], 1).tobytes()
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
        while len(self.groups) - self._singles() > 1:
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
            raise IllegalError(self.at, "something after the last item that is not an item")
        return self.found

    def _singles(self) -> int:
        """Reads legal items of one write, up to the first other item. Returns where that begins.

        Most payloads consist of such items, and reading them this way is four times as fast.
        """
        groups, longer, wide, unit = self.groups, self.modes.longer, self.wide, self.unit
        at, (window, last), found = self.at, self.before, self.found
        end = len(groups) - GAP_GROUPS - wide - unit
        while at < end:
            gap, next_ = groups[at], at + 1
            if gap >= _MORE:
                gap, shift = gap & ~_MORE, _BITS
                while groups[next_] >= _MORE and next_ - at < GAP_GROUPS - 1:
                    gap |= (groups[next_] & ~_MORE) << shift
                    shift += _BITS
                    next_ += 1
                if not 0 < groups[next_] < _MORE:
                    break
                gap |= groups[next_] << shift
                next_ += 1
            node = groups[next_] if wide == 1 else groups[next_] | groups[next_ + 1] << 4
            next_ += wide
            if node >= self.nodes or longer >> node & 1 or (not gap and node <= last) or (gap and not found):
                break
            window, last = window + gap, node
            write = groups[next_] if unit == 1 else groups[next_] | groups[next_ + 1] << 4
            found.append(LongItem(window, node, _WRITES[write]))
            at = next_ + unit
        if at != self.at:
            self.at, self.before, self.may_abort = at, (window, last), False
        return at

    def _take(self) -> int:
        if self.at == len(self.groups):
            raise IllegalError(self.at, "an item that is cut short")
        self.at += 1
        return self.groups[self.at - 1]

    def _number(self) -> int:
        value = 0
        for k in range(GAP_GROUPS):
            group = self._take()
            value |= (group & ~_MORE) << _BITS * k
            if not group & _MORE:
                if k and not group:
                    raise IllegalError(self.at - 1, "a number that ends in a group of 0")
                return value
        raise IllegalError(self.at - 1, f"a number of more than {GAP_GROUPS} groups")

    def _field(self, groups: int) -> int:
        return sum(self._take() << 4 * k for k in range(groups))

    def _head(self) -> None:
        if len(self.groups) < _HEAD_GROUPS:
            raise IllegalError(len(self.groups), "a head that is cut short")
        head = COMPACT_HEAD.unpack(self.payload[:COMPACT_HEAD.bytes])
        if head["zero"]:
            raise IllegalError(_HEAD_GROUPS // 2, "a head that makes no sense")
        self.modes = ItemModes(head["words"], head["events"]).in_stream(self.nodes)
        self.at = _HEAD_GROUPS

    def _code(self) -> int | None:
        """The code of the item; None if it has none."""
        first, second = self.groups[self.at:self.at + 2]
        if not first & _MORE or second:
            return None
        code = first & ~_MORE
        if code not in set(Code) or (code != Code.WINDOW and not self.items):
            raise IllegalError(self.at, f"unknown code {code}")
        self.at += 2
        return code

    def _nibbles(self, node: int, first: int) -> bytes:
        """All nibbles of an item that begins with this one."""
        if node >= self.nodes:
            raise IllegalError(self.begin, "a node that the board does not have")
        if self.modes[node] is ItemMode.EVENT and not first & 15:
            raise IllegalError(self.begin, "an event of no bytes")
        count = self.modes.writes(node, first, self.port_bits) - 1
        return bytes([first, *(self._field(self.unit) for _ in range(count))])

    def _abort(self) -> None:
        if not self.may_abort:
            raise IllegalError(self.begin, "an abort without an item of several nibbles before it")
        filler = self._field(2)
        nibbles = self.found[-1].nibbles
        if not 0 < filler < len(nibbles):
            raise IllegalError(self.begin, "an abort of more nibbles than there are, or of none")
        if any(nibbles[len(nibbles) - filler:]):
            raise IllegalError(self.begin, "filler that is not zero")
        self.found[-1] = self.found[-1]._replace(filler=filler)
        self.may_abort = False

    def _late(self) -> None:
        if not self.found:
            raise IllegalError(self.begin, "a late item in front")
        age, node, first = self._number(), self._field(self.wide), self._field(self.unit)
        if node < self.nodes and self.modes[node] is ItemMode.NIBBLE:
            raise IllegalError(self.begin, "a late item of one nibble")
        window = self.before[0] - (age - _AGES if age >= _AGES // 2 else age)
        item = LongItem(window, node, self._nibbles(node, first), late=True)
        if window < 0:
            raise IllegalError(self.begin, "a window before time 0")
        self.found.append(item)
        self.may_abort = True

    def _window(self, window: int) -> list[LongItem]:
        vector = self._field(4 * self.wide)
        if vector == 0:
            raise IllegalError(self.begin, "an empty strobe vector")
        if vector >> self.nodes:
            raise IllegalError(self.begin, "strobes of nodes that the board does not have")
        if vector & self.modes.longer:
            raise IllegalError(self.begin, "a strobe vector with nodes that are not in nibble mode")
        return [LongItem(window, node, bytes([self._field(self.unit)]))
                for node in range(self.nodes) if vector >> node & 1]

    def _item(self, window: int) -> LongItem:
        node, first = self._field(self.wide), self._field(self.unit)
        return LongItem(window, node, self._nibbles(node, first))

    def _place(self, row: list[LongItem]) -> None:
        """Adds the items of a window, which must be in order."""
        if not self.found and row[0].window != self.time:
            raise IllegalError(self.begin, "a first item that is not in the first window")
        if row[0][:2] <= self.before:
            raise IllegalError(self.begin, "items of one window that are not in the order of their nodes")
        self.found += row
        self.before = row[-1][:2]
        self.may_abort = self.modes[self.before[1]] is not ItemMode.NIBBLE


def read_nibbles(payloads: Payloads, nodes: int, port_bits: int) -> Decoded:
    """The contents of payloads of single nibbles, one after the other."""
    found, spans, faults = _read_all(payloads, nodes, False, port_bits)
    if not found:
        return Decoded([], spans, faults)
    columns = np.array([(item.window, item.node, item.nibbles[0]) for item in found], np.int64).T
    return Decoded([CompactRows(columns[0].copy(), columns[1].astype(np.uint8), columns[2].astype(np.uint8))],
                   spans, faults)


def read_items(payloads: Payloads, nodes: int, modes: ItemModes, port_bits: int) -> DecodedItems:
    """The contents of payloads that state the modes of their nodes, which must be these, one after the other."""
    found, spans, faults = _read_all(payloads, nodes, True, port_bits)
    return DecodedItems([_columns(found, modes, port_bits)] if found else [], spans, faults)


def _read_all(payloads: Payloads, nodes: int, items: bool,
              port_bits: int) -> tuple[list[LongItem], Spans, list[Fault]]:
    found: list[LongItem] = []
    spans: list[Span | None] = []
    faults = []
    for k, (payload, time) in enumerate(zip(payloads.each(), payloads.times.tolist(), strict=True)):
        own: list[LongItem] = []
        try:
            own = read(payload, time, nodes, items, port_bits)
        except IllegalError as fault:
            faults.append(Fault(k, *fault.args))
        found += own
        regular = [item[:2] for item in own if not item.late]
        spans.append(Span(regular[0], regular[-1]) if own else None)
    return found, Spans.of(spans), faults


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
