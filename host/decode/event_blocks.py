"""Converts blocks with items to rows, or returns the reason why no board can have sent them.

Each function takes blocks that all have one head. A reason concerns at least one of several blocks: the caller then
asks again for each block alone.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypermon.hdl.layout import BlockType
from hypermon.host.blocks.blocks import Block, Head
from hypermon.host.blocks.compact import Decoded, DecodedItems, Payloads, decode_items_joined, decode_joined
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.item_modes import ItemModes
from hypermon.host.blocks.times import PS_MAX, TimeScale

__all__ = ["BEYOND", "frame_rows", "item_rows", "nibble_rows", "unlike"]

#: Why a block with a time that is not valid is left out.
BEYOND = "a time beyond 2^63 ps"
#: By how much a late item's window can follow that of the item before it.
_AHEAD = 1 << 20

_Found = TypeVar("_Found", Decoded, DecodedItems)


def unlike(head: Head, scale: TimeScale, modes: ItemModes, port_bits: int) -> str | None:
    """Why events of blocks with this head cannot belong to a run; None if they can.

    Parameters
    ----------
    scale, modes, port_bits : of the run.
    """
    if head.phases != scale.phases:
        return "other stamps than the run's"
    if head.type is BlockType.FRAMES:
        return None
    if head.items != bool(modes.longer):
        return "other item modes than the run's"
    return "other ports than the run's" if head.port_bits != port_bits else None


def frame_rows(batch: Sequence[Block], nodes: int, last: int, stamp_max: int) -> FrameRows | str:
    """The frames of FRAMES blocks.

    Parameters
    ----------
    nodes : of the board.
    last : stamp of the last frame before them. ``stamp_max``: the last valid one.
    """
    highs = {block.time >> 32 for block in batch}
    high = highs.pop()
    if highs or high >= 1 << 31:
        return BEYOND
    rows = FrameRows(batch[0].payload if len(batch) == 1 else b"".join(b.payload for b in batch), nodes, high)
    if batch[0].cut:
        rows = rows.without_filler(batch[0].time)
    return rows.fault(last, stamp_max) or rows


def nibble_rows(batch: Sequence[Block], nodes: int, port_bits: int, last: tuple[int, int],
                stamp_max: int) -> Decoded | str:
    """The items of COMPACT blocks of single nibbles.

    Parameters
    ----------
    nodes, port_bits : of the board.
    last : stamp and node of the last item before them. ``stamp_max``: the last valid stamp.
    """
    payloads = _payloads(batch, stamp_max)
    if payloads is None:
        return BEYOND
    decoded = decode_joined(payloads, nodes, port_bits)
    if not decoded.faults and not decoded.spans.rise(last):
        return "items that do not rise"
    return _sound(decoded, stamp_max)


def item_rows(batch: Sequence[Block], nodes: int, modes: ItemModes, port_bits: int,
              stamp_max: int) -> DecodedItems | str:
    """The items of COMPACT blocks that state the modes of their nodes.

    Parameters
    ----------
    nodes, modes, port_bits : of the board. ``stamp_max``: the last valid stamp.
    """
    payloads = _payloads(batch, stamp_max)
    return BEYOND if payloads is None else _sound(decode_items_joined(payloads, nodes, modes, port_bits),
                                                  stamp_max - _AHEAD)


def _payloads(batch: Sequence[Block], stamp_max: int) -> Payloads | None:
    """The payloads of COMPACT blocks; None if a block's time is later than the last valid stamp."""
    payloads = Payloads.joined([
        Payloads.of([block.payload], [min(block.time, PS_MAX)]) if block.payloads is None else block.payloads
        for block in batch])
    return payloads if payloads.times.min() >= 0 and payloads.times.max() <= stamp_max else None


def _sound(decoded: _Found, newest: int) -> _Found | str:
    """The contents of payloads, if all are legal and none ends after that stamp."""
    if decoded.faults:
        return decoded.faults[0].reason
    return decoded if decoded.spans.present[2].max(initial=newest) <= newest else BEYOND
