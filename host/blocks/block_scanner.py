"""The block scanner: turns the bytes of a link or a recording into blocks.

A block is verified by magic, version, plausible lengths and a CRC-32. Whatever a link or a disk has done to the bytes
between two blocks, scanning continues at the next whole block. Bytes that do not form a block are reported as
:class:`~.blocks.Torn`. :mod:`.sequence` reports missing sequence numbers.
"""

import struct
import zlib
from typing import NamedTuple

import numpy as np
from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    FORMAT_VERSION,
    LOSS_RECORD,
    MARK_RECORD,
    NODES_MAX,
    PORT_BITS,
    BlockFlag,
    BlockType,
    Geometry,
    TrailerFlag,
    Window,
    frame_bytes,
)
from hypermon.host.blocks.blocks import PAYLOAD_MAX, Block, Head, Scanned, Torn
from hypermon.host.blocks.blocks_joined import join
from hypermon.host.blocks.compact_rows import Payloads

__all__ = ["BlockScanner", "single_blocks"]

_MAGIC = struct.pack("<I", BLOCK_MAGIC)
_CUT = int(TrailerFlag.CUT)
#: Flags of stamps that count parts of a clock, at most one of them: stamps per clock.
_PHASES = {BlockFlag.HALF: 2, BlockFlag.QUARTER: 4}
_FINE = BlockFlag.HALF | BlockFlag.QUARTER
_FRAMES = BlockType.FRAMES
#: The blocks that contain events.
_JOINABLE = (BlockType.FRAMES, BlockType.COMPACT)
_HEADER_BYTES = BLOCK_HEADER.bytes
#: Header and trailer of a block.
_AROUND = _HEADER_BYTES + BLOCK_TRAILER.bytes

_OFFSET = {f.name: at for at, f in BLOCK_HEADER.offsets()}
#: Longer payloads are not worth joining.
_SHORT = 1 << 13
#: The header in three parts: two that stay the same from block to block, and the counting part between them.
_COUNTS = struct.Struct("<IIQ")
_FIXED_END, _REST_AT = _OFFSET["sequence"], _OFFSET["nodes"]
assert _OFFSET["time"] + 8 == _REST_AT == _FIXED_END + _COUNTS.size
#: The last word of a trailer; the first has the flags.
_CRC = struct.Struct("<I")
assert [f.name for f in BLOCK_TRAILER.fields][::3] == ["flags", "crc"]


class _Known(NamedTuple):
    """A verified head, and the payload sizes it allows: multiples of ``unit``, and only some of them if they are
    ``exact``."""

    head: Head
    unit: int
    exact: range | None


class BlockScanner:
    """Receives a stream in pieces of any size and returns its blocks as they become whole.

    Payloads are views into the fed bytes, or a copy of bytes carried over from an earlier piece; they stay valid.

    Parameters
    ----------
    join : return short consecutive FRAMES or COMPACT blocks as one :class:`Block`, if the C library makes that fast.

    Members
    -------
    offset : bytes of the stream that are settled: returned as blocks or as torn.
    """

    def __init__(self, join: bool = False) -> None:
        self.offset = 0
        self._join = join
        self._rest = b""
        self._heads: dict[bytes, _Known] = {}
        self._torn: Torn | None = None

    @property
    def pending(self) -> int:
        """Bytes fed but not settled."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[Scanned]:
        """Feeds a piece. Returns what has become whole."""
        return self._scan(self._rest + data if self._rest else data, final=False)

    def finish(self) -> list[Scanned]:
        """The rest, at the end of the stream: blocks after a torn one, and torn bytes."""
        return self._scan(self._rest, final=True)

    def _scan(self, data: bytes, final: bool) -> list[Scanned]:
        base = self.offset
        view = memoryview(data)
        end = len(data)
        at = 0
        unpack_counts, unpack_crc, crc32 = _COUNTS.unpack_from, _CRC.unpack_from, zlib.crc32
        heads, torn = self._heads, self._torn
        scanned: list[Scanned] = []
        append, make = scanned.append, Block._make  # a third of the time of calling Block
        while at < end:
            # _head makes every check after this look-up in full, once for each kind of header.
            known: _Known | str | None = heads.get(data[at:at + _FIXED_END] + data[at + _REST_AT:at + _HEADER_BYTES])
            if known is None:
                known = self._head(data, at)
            if known is None:  # cut short, but with a valid beginning
                if not final:
                    break
                reason = "a header is cut short"
            elif isinstance(known, str):
                reason = known
            else:
                head, unit, exact = known
                sequence, length, time = unpack_counts(data, at + _FIXED_END)
                crc_at = at + _AROUND - 4 + (length + 15 & -16)
                if length % unit or length > PAYLOAD_MAX or (exact is not None and length not in exact):
                    reason = f"{length} bytes of payload in a {head.type.name} block"
                elif crc_at + 4 > end:
                    if not final:
                        break
                    reason = "a block is cut short"
                elif crc32(view[at:crc_at]) != unpack_crc(data, crc_at)[0]:
                    reason = "a checksum is wrong"
                else:
                    if torn is not None:
                        scanned.append(torn)
                        torn = None
                    payload_at, after, count = at + _HEADER_BYTES, crc_at + 4, 1
                    if self._join and length <= _SHORT and head.type in _JOINABLE and (
                            joined := join(data, at, unit, PAYLOAD_MAX)):
                        after, count = at + joined.size, joined.blocks
                        append(make((head, sequence, time, False, joined.payload, base + at, joined.size, count,
                                     view[at:after], None if head.type is _FRAMES else Payloads(
                                         np.frombuffer(joined.payload, np.uint8), joined.ends, joined.times))))
                    else:
                        append(make((head, sequence, time, data[after - BEAT_BYTES] & _CUT != 0,
                                     view[payload_at:payload_at + length], base + at, after - at, 1, None, None)))
                    at = after
                    continue
            found = _next_magic(data, at + 1, final)
            torn = (Torn(base + at, found - at, reason) if torn is None
                    else torn._replace(size=base + found - torn.offset))
            at = found
        if final and torn is not None:
            scanned.append(torn)
            torn = None
        self._torn, self._rest, self.offset = torn, bytes(view[at:]), base + at
        return scanned

    def _head(self, data: bytes, at: int) -> _Known | str | None:
        """The head at ``at``; the reason if there is none; None if more bytes are needed to tell."""
        start = data[at:at + _HEADER_BYTES]
        if start[:4] != _MAGIC[:len(start)]:
            return "no block begins here"
        if len(start) < _HEADER_BYTES:
            return None
        fields = BLOCK_HEADER.unpack(start)
        if fields["version"] != FORMAT_VERSION:
            return f"a block of format version {fields['version']}, not {FORMAT_VERSION}"
        if fields["type"] not in set(BlockType):
            return f"a block of unknown type {fields['type']}"
        nodes, window, flags = fields["nodes"], fields["window"], fields["flags"]
        if (not 1 <= nodes <= NODES_MAX or window >= len(Window) or flags & ~sum(BlockFlag)
                or flags & _FINE == _FINE):
            return "a header makes no sense"
        try:
            Geometry(nodes=nodes, clock_hz=fields["clock_hz"])
        except ValueError as error:
            return f"a header makes no sense: {error}"
        head = Head(BlockType(fields["type"]), fields["epoch"], nodes, Window(window), fields["latency"],
                    bool(flags & BlockFlag.HOST), bool(flags & BlockFlag.EXTENDED), fields["clock_hz"],
                    bool(flags & BlockFlag.ITEMS), _PHASES.get(BlockFlag(flags & _FINE), 1),
                    8 if flags & BlockFlag.BYTES else PORT_BITS)
        if len(self._heads) > 1000:  # many boards' worth; a stream of noise must not fill memory
            self._heads.clear()
        known = self._heads[start[:_FIXED_END] + start[_REST_AT:]] = _known(head)
        return known


def single_blocks(block: Block) -> list[Block]:
    """The single blocks of a joined one."""
    if block.joined is None:
        return [block]
    singles = (piece for piece in BlockScanner().feed(bytes(block.joined)) if isinstance(piece, Block))
    return [single._replace(head=block.head, offset=block.offset + single.offset) for single in singles]


def _next_magic(data: bytes, at: int, final: bool) -> int:
    """The next position where a block could begin; a magic split by the end of the data waits."""
    found = data.find(_MAGIC, at)
    if found < 0:
        return len(data) if final else max(at, len(data) - len(_MAGIC) + 1)
    return found


def _known(head: Head) -> _Known:
    if head.type is BlockType.FRAMES:
        return _Known(head, frame_bytes(head.nodes), None)
    if head.type is BlockType.LOSS:
        return _Known(head, LOSS_RECORD.bytes, None)
    if head.type is BlockType.MARK:
        return _Known(head, MARK_RECORD.bytes, None)
    if head.type is BlockType.CENSUS:
        # A row for each node, and then one for each node of the links, which have eight each.
        own, link = CENSUS_BOARD.bytes + head.nodes * CENSUS_NODE.bytes, 8 * CENSUS_LINK.bytes
        return _Known(head, BEAT_BYTES, range(own, own + head.nodes // 8 * link + 1, link))
    return _Known(head, 1, None)
