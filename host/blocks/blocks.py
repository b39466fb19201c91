"""Blocks: the container format of every link and recording, and how one is built. :mod:`.block_scanner` reads them."""

import struct
import zlib
from typing import NamedTuple

from hypermon.hdl.layout import (
    BLOCK_BYTES_MAX,
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BLOCK_TRAILER,
    FORMAT_VERSION,
    LATENCY,
    PORT_BITS,
    BlockFlag,
    BlockType,
    Geometry,
    TrailerFlag,
    Window,
    padded,
)
from hypermon.host.blocks.compact_rows import Payloads
from hypermon.host.blocks.times import TimeScale

__all__ = ["PAYLOAD_MAX", "Block", "Head", "Scanned", "Torn", "build_block"]

_NO_FLAGS = BlockFlag(0)
#: Maximum bytes of payload in a block.
PAYLOAD_MAX = BLOCK_BYTES_MAX - BLOCK_HEADER.bytes - BLOCK_TRAILER.bytes


class Head(NamedTuple):
    """What the headers of one run have in common.

    ``by_host``: the host wrapped it; such blocks have a sequence of their own. ``items``: a COMPACT_HEAD precedes the
    groups. ``phases``: times of a COMPACT block are this part of a
    clock. ``port_bits``: of the writes in it.
    """

    type: BlockType
    epoch: int
    nodes: int
    window: Window
    latency: int
    by_host: bool
    extended: bool
    clock_hz: int
    items: bool = False
    phases: int = 1
    port_bits: int = PORT_BITS

    @property
    def scale(self) -> TimeScale:
        """Scale for windows. Times of all blocks count windows, except those of COMPACT blocks with
        several ``phases``."""
        return TimeScale(self.clock_hz, self.window, self.latency)


class Block(NamedTuple):
    """One whole, verified block, or several joined ones.

    ``offset`` and ``size`` are bytes of the stream; ``payload`` is without padding; ``time`` is a window number;
    ``cut`` means that a reset occurred while the block was made.

    Consecutive FRAMES or COMPACT blocks are joined as if the board had made a longer one: ``blocks`` of them, with the
    number and the time of the first, from the bytes ``joined``. ``payloads``: those of joined COMPACT blocks, each.
    """

    head: Head
    sequence: int
    time: int
    cut: bool
    payload: memoryview
    offset: int
    size: int
    blocks: int = 1
    joined: memoryview | None = None
    payloads: Payloads | None = None


class Torn(NamedTuple):
    """Bytes of the stream that are not a block, and why the first of them is not."""

    offset: int
    size: int
    reason: str


Scanned = Block | Torn


def build_block(type: BlockType, payload: bytes, *, geometry: Geometry, window: Window, epoch: int,
                sequence: int, time: int, flags: BlockFlag = _NO_FLAGS, cut: bool = False,
                latency: int | None = None) -> bytes:
    """The bytes of a block.

    Raises
    ------
    ValueError
        if the payload does not fit a block.
    """
    if len(payload) > PAYLOAD_MAX:
        raise ValueError(f"{len(payload)} bytes do not fit a block, which holds {PAYLOAD_MAX}")
    header = BLOCK_HEADER.pack(
        magic=BLOCK_MAGIC, version=FORMAT_VERSION, type=type, epoch=epoch & 0xffff,
        sequence=sequence & 0xffffffff, length=len(payload), time=time, nodes=geometry.nodes,
        window=window, latency=LATENCY if latency is None else latency, flags=flags,
        clock_hz=geometry.clock_hz)
    body = header + payload + bytes(padded(len(payload)) - len(payload))
    flag_word = struct.pack("<III", TrailerFlag.CUT if cut else 0, 0, 0)
    return body + flag_word + struct.pack("<I", zlib.crc32(body + flag_word))
