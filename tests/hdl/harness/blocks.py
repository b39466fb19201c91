"""The board's stream, taken apart and checked: every block whole, every field right."""

import struct
import zlib
from dataclasses import dataclass

from hypermon.hdl.layout import (
    BEAT_BYTES,
    BLOCK_BYTES_MAX,
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_NODE,
    FORMAT_VERSION,
    GAP_GROUPS,
    LATENCY,
    LOSS_RECORD,
    SYNC_LAG,
    BlockFlag,
    BlockType,
    Cause,
    CensusFlag,
    Code,
    Geometry,
    TrailerFlag,
    frame_bytes,
    frame_words,
    padded,
)

from .scoreboard import Frame, Loss

__all__ = ["Block", "Census", "Run", "parse", "parse_frame", "parse_items", "runs"]

#: A window of so many nodes is shorter written as one than item by item.
WIDE = 4


@dataclass(frozen=True)
class Block:
    """One block: header fields by name, payload without padding, whether a reset cut it."""

    header: dict[str, int]
    payload: bytes
    cut: bool

    @property
    def type(self) -> BlockType:
        return BlockType(self.header["type"])


@dataclass(frozen=True)
class Census:
    """A CENSUS payload: board row, node rows, header time, nibbles of each node before it."""

    board: dict[str, int]
    nodes: list[dict[str, int]]
    time: int
    before: list[int]

    @property
    def flags(self) -> CensusFlag:
        return CensusFlag(self.board["flags"])


def parse(data: bytes, geometry: Geometry) -> Block:
    """One block from its bytes; AssertionError names what is wrong with it."""
    assert len(data) % BEAT_BYTES == 0, f"{len(data)} bytes are no whole beats"
    assert len(data) >= BLOCK_HEADER.bytes + BLOCK_TRAILER.bytes, f"a block of {len(data)} bytes"
    assert len(data) <= BLOCK_BYTES_MAX, f"a block of {len(data)} bytes"
    header = BLOCK_HEADER.unpack(data)
    length = header["length"]
    assert header["magic"] == BLOCK_MAGIC, header
    assert header["version"] == FORMAT_VERSION, header
    assert len(data) == BLOCK_HEADER.bytes + padded(length) + BLOCK_TRAILER.bytes, (len(data), header)
    assert header["nodes"] == geometry.nodes, header
    least, most = (-SYNC_LAG if geometry.synced else 0), (14 if geometry.guarded else 0)
    assert least <= header["latency"] - LATENCY <= most, header
    assert header["flags"] in (0, BlockFlag.EXTENDED), header
    assert header["clock_hz"] == geometry.clock_hz, header
    trailer = BLOCK_TRAILER.unpack(data, len(data) - BLOCK_TRAILER.bytes)
    assert trailer["crc"] == zlib.crc32(data[:-4]), "the CRC is wrong"
    assert trailer["flags"] in (0, TrailerFlag.CUT), trailer
    assert trailer["zero_1"] == trailer["zero_2"] == 0, trailer
    payload = data[BLOCK_HEADER.bytes:BLOCK_HEADER.bytes + length]
    rest = data[BLOCK_HEADER.bytes + length:-BLOCK_TRAILER.bytes]
    assert not any(rest), "the padding is not zero"
    block = Block(header, payload, bool(trailer["flags"] & TrailerFlag.CUT))
    size = {BlockType.FRAMES: frame_bytes(geometry.nodes), BlockType.LOSS: LOSS_RECORD.bytes}.get(block.type)
    if size is not None:
        assert length, f"an empty {block.type.name} block"
        assert length % size == 0, header
    elif block.type is BlockType.CENSUS:
        assert length == CENSUS_BOARD.bytes + geometry.nodes * CENSUS_NODE.bytes, header
    sink = {BlockType.FRAMES: 0, BlockType.COMPACT: BlockFlag.EXTENDED}.get(block.type, header["flags"])
    assert header["flags"] == sink, header
    return block


def parse_frame(words: tuple[int, ...], geometry: Geometry, high: int) -> Frame | None:
    """An event frame from its 32-bit words; None if its vector is zero (filler after a cut, which may
    begin within a frame)."""
    assert len(words) == frame_words(geometry.nodes), words
    *rows, vector, stamp = words
    if not vector:
        assert not stamp, f"a frame without nibbles: {words}"
        return None
    assert vector < 1 << geometry.nodes, f"a vector bit of a node that is not there: {vector:#x}"
    nibbles = {}
    for node in range(8 * len(rows)):
        # The first row holds the nodes with the highest numbers.
        nibble = rows[len(rows) - 1 - node // 8] >> 4 * (node % 8) & 0xF
        if vector >> node & 1:
            nibbles[node] = nibble
        else:
            assert nibble == 0, f"node {node} has a nibble without a vector bit: {words}"
    return Frame(high << 32 | stamp, nibbles)


def parse_items(payload: bytes, time: int, nodes: int) -> list[tuple[int, int, int]]:
    """Window, node and nibble of every item of a COMPACT payload; windows must not fall, nor must nodes
    within a window repeat."""
    groups = [group for byte in payload for group in (byte & 15, byte >> 4)]
    width = 1 if nodes <= 16 else 2
    found: list[tuple[int, int, int]] = []
    at = alone = 0

    def bits(count: int) -> int:
        nonlocal at
        assert at + count <= len(groups), "the last item is cut off"
        at += count
        return sum(group << 4 * k for k, group in enumerate(groups[at - count:at]))

    def gap() -> int:
        value, place, group = 0, 0, 8
        while group & 8:
            group = bits(1)
            assert group or not place, "a number with a useless group"
            value |= (group & 7) << place
            place += 3
        assert place <= 3 * GAP_GROUPS, "a gap of too many groups"
        return value

    while len(groups) - at > 1:
        if groups[at] & 8 and not groups[at + 1]:
            assert groups[at] == 8 | Code.WINDOW, f"code {groups[at]:#x}"
            at += 2
            step, vector = gap(), bits(4 * width)
            assert vector >> nodes == 0, f"a vector bit of a node that is not there: {vector:#x}"
            members = [n for n in range(nodes) if vector >> n & 1]
            assert len(members) >= WIDE, f"a window of {members}, which is shorter item by item"
            assert step or not found, "one window, two codes"
        else:
            step, members = gap(), [bits(width)]
            assert members[0] < nodes, members
        assert found or not step, "a gap in front of the first item"
        time += step
        found += [(time, node, bits(1)) for node in members]
        alone = 0 if len(members) > 1 else 1 if step else alone + 1
        assert alone < WIDE, f"window {time} is shorter as one"
    assert not any(groups[at:]), "half a byte that is not zero"
    assert found, "an empty COMPACT block"
    return found


class Run:
    """What one epoch said: frames, LOSS records by node with their causes, censuses, cuts."""

    def __init__(self, epoch: int, geometry: Geometry):
        self.epoch, self.geometry = epoch, geometry
        self.frames: list[Frame] = []
        self.losses: dict[int, list[Loss]] = {n: [] for n in range(geometry.nodes)}
        self.causes: dict[int, list[Cause]] = {n: [] for n in range(geometry.nodes)}
        self.censuses: list[Census] = []
        self.cut = False
        self.said = 0    # time of the last LOSS or CENSUS block: when it began
        self.arrived = [0] * geometry.nodes  # nibbles
        self.windows: set[int] = set()
        self.flags: set[int] = set()
        self.frame_blocks: list[int] = []

    def add(self, block: Block) -> None:
        """The epoch's next block."""
        assert not self.cut, f"a {block.type.name} block of epoch {self.epoch} after the one that its reset cut"
        self.cut |= block.cut
        if block.type in (BlockType.LOSS, BlockType.CENSUS):
            assert block.header["time"] >= self.said, (block, self.said)
            self.said = block.header["time"]
        self.windows.add(block.header["window"])
        self.flags.add(block.header["flags"])
        getattr(self, f"_{block.type.name.lower()}")(block)

    def _frames(self, block: Block) -> None:
        words, time = frame_words(self.geometry.nodes), block.header["time"]
        rows = list(struct.iter_unpack(f"<{words}I", block.payload))
        self.frame_blocks.append(len(rows))
        ended = False
        for position, row in enumerate(rows):
            frame = parse_frame(row, self.geometry, time >> 32)
            if frame is None:
                assert block.cut, "a frame without nibbles in a block that no reset has cut"
                ended = True
                continue
            if block.cut and not row[-1] and (position or time % 2**32):
                ended = True    # cut between its strobe vector and its stamp, which short beats can be
                continue
            assert not ended, "a frame behind the filler of a cut block"
            assert position or frame.stamp == time, f"header time {time} is not the first frame's, {frame.stamp}"
            self.push(frame)

    def push(self, frame: Frame) -> None:
        """The epoch's next frame, by whatever way it has come."""
        assert not self.frames or frame.stamp > self.frames[-1].stamp, (self.frames[-1:], frame)
        self.frames.append(frame)
        for node in frame.nibbles:
            self.arrived[node] += 1

    def _compact(self, block: Block) -> None:
        if block.cut:
            return
        items = parse_items(block.payload, block.header["time"], self.geometry.nodes)
        for stamp, node, nibble in items:
            if self.frames and self.frames[-1].stamp == stamp:
                nibbles = self.frames[-1].nibbles
                assert node not in nibbles, f"node {node} twice in window {stamp}"
                self.frames[-1] = Frame(stamp, {**nibbles, node: nibble})
                self.arrived[node] += 1
            else:
                self.push(Frame(stamp, {node: nibble}))

    def _loss(self, block: Block) -> None:
        for at in range(0, len(block.payload), LOSS_RECORD.bytes):
            record = LOSS_RECORD.unpack(block.payload, at)
            if block.cut and not any(record.values()):
                continue
            if block.cut and not record["last"]:
                continue  # torn by the cut: its second half is filler
            assert record["zero_1"] == record["zero_2"] == 0, record
            assert 0 < record["causes"] < 8, record
            assert record["node"] < self.geometry.nodes, record
            self.losses[record["node"]].append(Loss(record["lost"], record["first"], record["last"]))
            self.causes[record["node"]].append(Cause(record["causes"]))

    def _census(self, block: Block) -> None:
        if block.cut:
            return
        board = CENSUS_BOARD.unpack(block.payload)
        assert board["discarded"] == 0, board
        nodes = [CENSUS_NODE.unpack(block.payload, at)
                 for at in range(CENSUS_BOARD.bytes, len(block.payload), CENSUS_NODE.bytes)]
        assert self.geometry.guarded or all(row["rejected"] == 0 for row in nodes), nodes
        self.censuses.append(Census(board, nodes, block.header["time"], list(self.arrived)))

    @property
    def stopped(self) -> bool:
        return bool(self.censuses and self.censuses[-1].flags & CensusFlag.STOP)

    def delivered(self, node: int) -> list[tuple[int, int]]:
        """Stamp and nibble of each of a node's nibbles."""
        return [(f.stamp, f.nibbles[node]) for f in self.frames if node in f.nibbles]


def runs(stream: list[bytes], geometry: Geometry) -> list[Run]:
    """All epochs of a stream of blocks since power-up; sequence numbers have no gap."""
    found: list[Run] = []
    for number, data in enumerate(stream):
        block = parse(data, geometry)
        assert block.header["sequence"] == number, block.header
        epoch = block.header["epoch"]
        if not found or found[-1].epoch != epoch:
            assert not found or epoch > found[-1].epoch, "a block of an old epoch"
            found.append(Run(epoch, geometry))
        found[-1].add(block)
    return found
