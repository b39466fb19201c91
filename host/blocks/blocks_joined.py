"""Consecutive blocks, joined into one payload in C, ``blocks.c``."""

import ctypes
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import BEAT_BYTES, BLOCK_HEADER, BLOCK_TRAILER, TrailerFlag
from hypermon.host.blocks.native import native

__all__ = ["JOINED_BYTES", "Joined", "crc32", "join"]

# Also defined in blocks.c.
_OFFSET = {f.name: at for at, f in BLOCK_HEADER.offsets()}
assert (_OFFSET["sequence"], _OFFSET["length"], _OFFSET["time"]) == (8, 12, 16)
assert (BLOCK_HEADER.bytes, BLOCK_TRAILER.bytes, BEAT_BYTES, int(TrailerFlag.CUT)) == (32, 16, 16, 1)

#: Maximum payload of a joined block, in bytes.
JOINED_BYTES = 1 << 20

#: Maximum number of blocks joined.
_BLOCKS_MAX = 1 << 12

_JOIN = native("hypermon_blocks_2", ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p, *[ctypes.c_int64] * 2,
               *[ctypes.c_void_p] * 3)
_CRC = native("hypermon_crc_1", ctypes.c_void_p, *[ctypes.c_int64] * 2)
if _CRC is not None:
    # The first call makes the tables; after this one, several threads may call.
    _CRC(np.zeros(1, np.uint8).ctypes.data, 1, 0)


def crc32(data: bytes, before: int = 0) -> int:
    """:func:`zlib.crc32`, faster where the processor multiplies without carry."""
    if _CRC is None or not data:
        return zlib.crc32(data, before)
    crc: int = _CRC(np.frombuffer(data, np.uint8).ctypes.data, len(data), before)
    return crc & 0xffffffff


class Joined(NamedTuple):
    """The given number of blocks, their bytes in the stream, and their joined contents.

    ``ends``: where in the joined payload that of each block ends. ``times``: the times of the blocks.
    """

    blocks: int
    size: int
    payload: memoryview
    ends: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


def join(data: bytes, at: int, unit: int, longest: int) -> Joined | None:
    """Joins the whole, verified blocks from ``at`` on that are alike and consecutive, two at least.

    They have one head, rising sequence numbers, one upper half of the time and payloads of multiples of ``unit`` bytes
    up to ``longest``, and none was cut. None if there are fewer, or if the C library is not available; the caller then
    processes blocks one by one.
    """
    if _JOIN is None:
        return None
    room = min(len(data) - at, JOINED_BYTES)
    payload, sizes = np.empty(room, np.uint8), np.empty(2, np.int64)
    ends, times = np.empty((2, _BLOCKS_MAX), np.int64)
    count = _JOIN(np.frombuffer(data, np.uint8, offset=at).ctypes.data, len(data) - at, unit, longest,
                  payload.ctypes.data, room, _BLOCKS_MAX, ends.ctypes.data, times.ctypes.data, sizes.ctypes.data)
    if count < 2:
        return None
    size, used = sizes.tolist()
    return Joined(count, size, payload.data[:used], ends[:count], times[:count])
