"""Converts payloads of COMPACT blocks into items (docs/frame-format.md, COMPACT): in C, or in plain Python.

Plain Python decodes where no compiler was when the package was installed.

With ports of 8 bits (``port_bits``), read "byte" (two groups) for every "nibble" here.
"""

from collections.abc import Sequence

import numpy as np
from hypermon.hdl.layout import COMPACT_HEAD, PORT_BITS
from hypermon.host.blocks.compact_c import NATIVE, decode_native, decode_native_items
from hypermon.host.blocks.compact_plain import LongItem, read_items, read_nibbles
from hypermon.host.blocks.compact_rows import (
    CompactRows,
    Decoded,
    DecodedItems,
    Fault,
    ItemRows,
    Payloads,
    Span,
    Spans,
)
from hypermon.host.blocks.item_modes import ItemModes

__all__ = ["CompactRows", "Decoded", "DecodedItems", "Fault", "ItemRows", "LongItem", "Payloads", "Span", "decode",
           "decode_items", "decode_items_joined", "decode_joined"]

#: Where the modes are in a payload with a head: two words of 32 bits.
_MODE_BYTES = np.arange(8)
assert [(field.name, at) for at, field in COMPACT_HEAD.offsets()][:2] == [("words", 0), ("events", 4)]


def decode(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
           port_bits: int = PORT_BITS) -> Decoded:
    """The items of the payloads of COMPACT blocks of single nibbles.

    Parameters
    ----------
    payloads : the payloads, without padding. More of them per call are faster, up to about a thousand.
    times : their blocks' times, each less than 2**62.
    nodes, port_bits : of the board.
    """
    return decode_joined(Payloads.of(payloads, times), nodes, port_bits)


def decode_joined(payloads: Payloads, nodes: int, port_bits: int = PORT_BITS) -> Decoded:
    """:func:`decode` of payloads that are one after the other."""
    if NATIVE is not None:
        return decode_native(NATIVE, payloads, nodes, port_bits)
    return read_nibbles(payloads, nodes, port_bits)


def decode_items(payloads: Sequence[bytes | memoryview], times: Sequence[int], nodes: int,
                 modes: ItemModes, port_bits: int = PORT_BITS) -> DecodedItems:
    """The items of the payloads of COMPACT blocks that state the modes of their nodes, which must be these.

    Parameters are those of :func:`decode`.
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
    return read_items(payloads, nodes, modes, port_bits)
