"""Blocks: header, trailer, types and flags."""

import enum

from .geometry import BEAT_BYTES
from .record import Field, Record

__all__ = [
    "BLOCK_BYTES_MAX", "BLOCK_HEADER", "BLOCK_MAGIC", "BLOCK_TRAILER", "BlockFlag", "BlockType", "FORMAT_VERSION",
    "IDENTITY_MAGIC", "TrailerFlag", "padded",
]

#: Version of blocks, records and frames; a host rejects a stream of any other version.
FORMAT_VERSION = 1
#: ``HMON`` in a register (least significant byte first).
IDENTITY_MAGIC = int.from_bytes(b"HMON", "little")
#: Maximum length of a block, header and trailer included.
BLOCK_BYTES_MAX = 65536
BLOCK_MAGIC = IDENTITY_MAGIC


def padded(length: int) -> int:
    """Bytes that a payload occupies in the stream: the next multiple of :data:`BEAT_BYTES`."""
    return -(-length // BEAT_BYTES) * BEAT_BYTES


class BlockType(enum.IntEnum):
    """Contents of a block's payload."""

    FRAMES = 1
    COMPACT = 2
    LOSS = 3
    CENSUS = 4
    #: Only from boards with pins for marks; older hosts skip it, and report bytes that they do not know.
    MARK = 5


class BlockFlag(enum.IntFlag):
    """Header ``flags``."""

    #: The extended sink wrote it.
    EXTENDED = 1 << 0
    #: The host wrote it around frames that it read through FRAME_FIFO; such blocks have their own sequence.
    HOST = 1 << 1
    #: A COMPACT block of a board with nodes in word or event mode: its payload begins with a COMPACT_HEAD.
    ITEMS = 1 << 2
    #: A COMPACT block whose times, the header's and all in its payload, count half clocks.
    HALF = 1 << 3
    #: A COMPACT block of a board with ports of 8 bits: a write is two groups, the low one first.
    BYTES = 1 << 4
    #: As HALF, but they count quarter clocks. Only from boards with four samples per clock; older hosts reject it.
    QUARTER = 1 << 5


class TrailerFlag(enum.IntFlag):
    """Trailer ``flags``."""

    #: A reset occurred while the block was being sent: the rest of the payload is zero, and a CENSUS
    #: with this mark has no valid contents.
    CUT = 1 << 0


BLOCK_HEADER = Record("block header", "Two beats before every payload.", (
    Field("magic", 32, "0x4e4f4d48, the bytes 'HMON'"),
    Field("version", 8, "format version"),
    Field("type", 8, "1 FRAMES, 2 COMPACT, 3 LOSS, 4 CENSUS, 5 MARK"),
    Field("epoch", 16, "resets since power-up, modulo 65536"),
    Field("sequence", 32, "blocks since power-up, modulo 2**32; never reset"),
    Field("length", 32, "bytes of payload, without the padding to a multiple of 16"),
    Field("time", 64, "windows since time 0 (half clocks if flag bit 3 is set, quarters if bit 5): in FRAMES and "
                      "COMPACT, of the first frame or item; otherwise of the start of the block. All frames of a block "
                      "share bits 63..32"),
    Field("nodes", 8, "nodes of the board"),
    Field("window", 8, "window setting in force: 0 = 800 ns, 1 = 400 ns, 2 = 200 ns, 3 = one clock"),
    Field("latency", 8, "clocks from pad to window; the host subtracts it from every time"),
    Field("flags", 8, "bit 0 extended sink, bit 1 written by the host; in COMPACT: bit 2 item modes, bit 3 times "
                      "in half clocks, bit 4 ports of 8 bits, bit 5 times in quarter clocks"),
    Field("clock_hz", 32, "capture clock in hertz"),
))
assert BLOCK_HEADER.bytes == 2 * BEAT_BYTES

BLOCK_TRAILER = Record("block trailer", "One beat after every padded payload.", (
    Field("flags", 32, "bit 0 cut: a reset occurred while the block was being sent"),
    Field("zero_1", 32, "0"),
    Field("zero_2", 32, "0"),
    Field("crc", 32, "CRC-32 (IEEE 802.3, as in zlib) of all preceding bytes of the block"),
))
assert BLOCK_TRAILER.bytes == BEAT_BYTES
