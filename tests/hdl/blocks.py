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
    LATENCY,
    LOSS_RECORD,
    BlockType,
    Cause,
    CensusFlag,
    Geometry,
    TrailerFlag,
    frame_bytes,
    frame_words,
    padded,
)

from .scoreboard import Frame, Loss

__all__ = ["Block", "Census", "Run", "parse", "parse_frame", "runs"]


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
    """A CENSUS payload: board row, node rows, header time, number of frames before it."""

    board: dict[str, int]
    nodes: list[dict[str, int]]
    time: int
    frames_before: int

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
    assert header["latency"] == LATENCY, header
    assert header["flags"] == 0, header
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
    else:
        assert block.type is BlockType.CENSUS, header
        assert length == CENSUS_BOARD.bytes + geometry.nodes * CENSUS_NODE.bytes, header
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


class Run:
    """What one epoch said: frames, LOSS records by node with their causes, censuses, cuts."""

    def __init__(self, epoch: int, geometry: Geometry):
        self.epoch, self.geometry = epoch, geometry
        self.frames: list[Frame] = []
        self.losses: dict[int, list[Loss]] = {n: [] for n in range(geometry.nodes)}
        self.causes: dict[int, list[Cause]] = {n: [] for n in range(geometry.nodes)}
        self.censuses: list[Census] = []
        self.cut = False
        self.windows: set[int] = set()
        self.frame_blocks: list[int] = []

    def add(self, block: Block) -> None:
        """The epoch's next block."""
        assert not self.cut, f"a {block.type.name} block of epoch {self.epoch} after the one that its reset cut"
        self.cut |= block.cut
        self.windows.add(block.header["window"])
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
            assert not ended, "a frame behind the filler of a cut block"
            assert position or frame.stamp == time, f"header time {time} is not the first frame's, {frame.stamp}"
            self.push(frame)

    def push(self, frame: Frame) -> None:
        """The epoch's next frame, by whatever way it has come."""
        assert not self.frames or frame.stamp > self.frames[-1].stamp, (self.frames[-1:], frame)
        self.frames.append(frame)

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
        assert board["zero"] == 0, board
        nodes = [CENSUS_NODE.unpack(block.payload, at)
                 for at in range(CENSUS_BOARD.bytes, len(block.payload), CENSUS_NODE.bytes)]
        assert all(row["zero"] == 0 for row in nodes), nodes
        self.censuses.append(Census(board, nodes, block.header["time"], len(self.frames)))

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
