"""Writes COMPACT payloads of the host's items, and says what is wrong with a payload.

``compact_encode.py`` beside it was written apart, from the page alone, and writes the same bytes.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from hypermon.hdl.layout import COMPACT_HEAD, GAP_GROUPS, GROUP_BITS, PORT_BITS, Code
from hypermon.host.blocks.compact_plain import IllegalError, LongItem, read
from hypermon.host.blocks.item_modes import ItemMode, ItemModes

__all__ = ["Item", "encode", "encode_items", "explain", "head_modes"]

#: Window, node, nibble.
Item = tuple[int, int, int]

#: Number of nodes in one window from which on ``WINDOW`` is the shorter form.
MERGE = 4

#: Bit of a number's group that indicates that another one follows, and bits of the number in a group.
_MORE, _BITS = 8, 3
#: Number of values of an age; the upper half of them is negative.
_AGES = 1 << _BITS * GAP_GROUPS


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


def explain(payload: bytes | memoryview, nodes: int, *, time: int = 0, items: bool = False,
            port_bits: int = PORT_BITS) -> tuple[int, str] | None:
    """The group from which on a payload is not legal, and the reason; None if it is legal."""
    try:
        read(payload, time, nodes, items, port_bits)
    except IllegalError as fault:
        position, reason = fault.args
        return position, reason
    return None


def head_modes(payload: bytes | memoryview, nodes: int) -> ItemModes | None:
    """The modes that the head of a payload states; None if it has no head."""
    if len(payload) < COMPACT_HEAD.bytes:
        return None
    head = COMPACT_HEAD.unpack(bytes(payload[:COMPACT_HEAD.bytes]))
    return ItemModes(head["words"], head["events"]).in_stream(nodes)
