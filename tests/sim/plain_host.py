"""A run of the virtual board without the host's tools: registers by name, blocks by their layout."""

import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from hypermon.hdl.layout import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BLOCK_TRAILER,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    COMPACT_HEAD,
    FORMAT_VERSION,
    LATENCY,
    LOSS_RECORD,
    REGISTERS,
    WORD_NIBBLES,
    BlockFlag,
    BlockType,
    CensusFlag,
    Code,
    Control,
    Geometry,
    Sink,
    TrailerFlag,
    Window,
    frame_bytes,
    padded,
)
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

#: Stream bytes asked for at a time.
LIMIT = 1 << 16
_MAGIC = BLOCK_MAGIC.to_bytes(4, "little")


class Item(NamedTuple):
    """An item of the extended sink: of its writes (nibbles, or bytes) so many, the last ones, are missing. With half
    clocks they are what ``window`` counts."""

    window: int
    node: int
    nibbles: bytes
    missing: int = 0
    late: bool = False


@dataclass
class Run:
    """What a run gave: the stream as it came, and what it says."""

    stream: bytes
    clocks: int
    events: list[tuple[int, int, int]] = field(default_factory=list)  # window, node, first nibble
    items: list[Item] = field(default_factory=list)                   # of the extended sink, as they came
    losses: list[dict[str, int]] = field(default_factory=list)
    census: list[dict[str, int]] = field(default_factory=list)        # of the nodes, in the last one
    links: list[dict[str, int]] = field(default_factory=list)         # of the links' nodes, in the last one
    census_flags: int = 0
    stopped: bool = False
    frames: int = 0
    blocks: list[tuple[BlockType, int, bytes]] = field(default_factory=list)  # type, time, payload
    flags: set[int] = field(default_factory=set)    # of the headers of COMPACT blocks

    def nibbles(self, node: int) -> list[int]:
        """Nibbles of a node in order."""
        return [nibble for _, n, nibble in self.events if n == node]

    def windows(self, node: int) -> list[int]:
        """Windows of a node's nibbles in order."""
        return [window for window, n, _ in self.events if n == node]

    @property
    def lost(self) -> int:
        return sum(record["lost"] for record in self.losses)


def write(link: VirtualLink, name: str, value: int) -> None:
    link.write(REGISTERS[name].offset, value)


def read(link: VirtualLink, name: str) -> int:
    return link.read(REGISTERS[name].offset)


def start(link: VirtualLink, stimulus: Stimulus, window: Window = Window.NS800, sink: Sink = Sink.CLASSIC) -> None:
    """Sets the ports and the sink up, resets, enables: time 0."""
    write(link, "MODE", sink)
    write(link, "EDGE_RISING", stimulus.rising)
    write(link, "EDGE_FALLING", stimulus.falling)
    write(link, "SAMPLE_AFTER", stimulus.after)
    write(link, "CONTROL", Control.RESET | window << 2)
    write(link, "CONTROL", Control.ENABLE | Control.STREAM | window << 2)


def play(link: VirtualLink, stimulus: Stimulus, window: Window = Window.NS800, before: bytes = b"",
         sink: Sink = Sink.CLASSIC, latency: int = LATENCY) -> Run:
    """From a reset to the census of the stop; ``before`` is what has come already."""
    start(link, stimulus, window, sink)
    return finish(link, window, before, latency)


def finish(link: VirtualLink, window: Window = Window.NS800, before: bytes = b"", latency: int = LATENCY) -> Run:
    """To the end of the stimulus and the census of the stop."""
    stream = bytearray(before)
    while not link.ended:
        stream += link.stream(LIMIT)
    write(link, "CONTROL", Control.STREAM | window << 2)
    for _ in range(100_000):
        piece = link.stream(LIMIT)
        stream += piece
        if len(piece) < LIMIT and ends_in_census(stream, link.geometry):
            run = decode(bytes(stream), link.geometry, latency)
            if run.stopped:
                run.clocks = link.geometry.window_clocks(window)
                return run
    raise AssertionError("no census of the stop")


def ends_in_census(stream: bytes | bytearray, geometry: Geometry) -> bool:
    """Whether the stream may end in a census; that of the stop is the last block before silence.

    Other data can look the same and is decoded in vain."""
    rows = geometry.nodes * CENSUS_NODE.bytes + geometry.linked_nodes * CENSUS_LINK.bytes
    size = BLOCK_HEADER.bytes + padded(CENSUS_BOARD.bytes + rows) + BLOCK_TRAILER.bytes
    return stream[-size:].startswith(bytes([*_MAGIC, FORMAT_VERSION, BlockType.CENSUS]))


def once(stimulus: Stimulus, geometry: Geometry, window: Window = Window.NS800, sink: Sink = Sink.CLASSIC,
         **options) -> Run:
    """One run on a board of its own."""
    with VirtualLink(stimulus, geometry, **options) as link:
        return play(link, stimulus, window, sink=sink)


def decode(stream: bytes, geometry: Geometry, latency: int = LATENCY) -> Run:
    """Takes whole blocks apart, each checked by its CRC and its number; a cut end is left.

    A census must count as delivered just what stands before it in its epoch."""
    run = Run(stream, 0)
    at, sequence, epoch, delivered = 0, None, None, [0] * geometry.nodes
    size = frame_bytes(geometry.nodes)
    while at + BLOCK_HEADER.bytes <= len(stream):
        header = BLOCK_HEADER.unpack(stream, at)
        assert header["magic"] == BLOCK_MAGIC
        assert header["latency"] == latency
        body = at + BLOCK_HEADER.bytes
        end = body + padded(header["length"])
        if end + BLOCK_TRAILER.bytes > len(stream):
            break
        assert BLOCK_TRAILER.unpack(stream, end)["crc"] == zlib.crc32(stream[at:end + 12])
        assert sequence is None or header["sequence"] == sequence + 1
        assert not run.stopped, "a block after the census of the stop"
        sequence = header["sequence"]
        payload = stream[body:body + header["length"]]
        run.blocks.append((BlockType(header["type"]), header["time"], payload))
        cut = stream[end] & TrailerFlag.CUT
        if header["epoch"] != epoch:
            epoch, delivered = header["epoch"], [0] * geometry.nodes
        new: list[tuple[int, int, int]] = []
        if header["type"] == BlockType.CENSUS:
            head = CENSUS_BOARD.unpack(payload)
            nodes_end = CENSUS_BOARD.bytes + geometry.nodes * CENSUS_NODE.bytes
            run.frames = head["frames"]
            run.stopped = bool(head["flags"] & CensusFlag.STOP)
            run.census = [CENSUS_NODE.unpack(payload, offset)
                          for offset in range(CENSUS_BOARD.bytes, nodes_end, CENSUS_NODE.bytes)]
            run.links = [CENSUS_LINK.unpack(payload, offset)
                         for offset in range(nodes_end, len(payload), CENSUS_LINK.bytes)]
            run.census_flags = head["flags"]
            assert len(run.links) == geometry.linked_nodes
            assert bool(head["flags"] & CensusFlag.LINKS) == bool(geometry.links)
            assert cut or [node["delivered"] for node in run.census] == delivered
        elif header["type"] == BlockType.LOSS:
            run.losses += [LOSS_RECORD.unpack(payload, offset)
                           for offset in range(0, len(payload), LOSS_RECORD.bytes)]
        elif header["type"] == BlockType.FRAMES:
            for offset in range(0, len(payload), size):
                new += _events(payload[offset:offset + size], header["time"])
        elif header["type"] == BlockType.COMPACT and not cut:
            run.flags.add(header["flags"])
            assert bool(header["flags"] & BlockFlag.BYTES) == (geometry.port_bits == 8)
            items = _items(payload, header["time"], geometry.nodes, bool(header["flags"] & BlockFlag.ITEMS),
                           2 if header["flags"] & BlockFlag.BYTES else 1)
            run.items += items
            new = [(item.window, item.node, item.nibbles[0]) for item in items]
        if header["type"] != BlockType.COMPACT:
            assert not header["flags"] & (BlockFlag.HALF | BlockFlag.BYTES)
        for _, node, _ in new:
            delivered[node] += 1
        run.events += new
        at = end + BLOCK_TRAILER.bytes
    return run


def _events(frame: bytes, time: int) -> list[tuple[int, int, int]]:
    *nibbles, vector, stamp = (int.from_bytes(frame[i:i + 4], "little") for i in range(0, len(frame), 4))
    stamp |= time & ~0xffff_ffff
    rows = 0
    for word in nibbles:
        rows = rows << 32 | word
    return [(stamp, n, rows >> 4 * n & 15) for n in range(32) if vector >> n & 1]


def _items(payload: bytes, time: int, nodes: int, modes: bool, unit: int = 1) -> list[Item]:
    """Items of a COMPACT payload, group by group; ``unit``: groups of a write."""
    words = events = 0
    if modes:
        head = COMPACT_HEAD.unpack(payload)
        words, events = head["words"] & ~head["events"], head["events"]
        assert (words | events) >> nodes == 0
        payload = payload[COMPACT_HEAD.bytes:]
    groups = [group for byte in payload for group in (byte & 15, byte >> 4)]
    at: int = 0
    out: list[Item] = []
    rows = 1 if nodes <= 16 else 2

    def number() -> int:
        nonlocal at
        value, place = 0, 0
        while True:
            group = groups[at]
            value |= (group & 7) << place
            at, place = at + 1, place + 3
            if not group & 8:
                assert group or place == 3
                return value

    def bits(count: int) -> int:
        nonlocal at
        at += count
        return sum(group << 4 * k for k, group in enumerate(groups[at - count:at]))

    def item(window: int, late: bool = False) -> Item:
        nonlocal at
        node = bits(rows)
        assert node < nodes
        count = WORD_NIBBLES // unit if words >> node & 1 else 1
        if events >> node & 1:
            assert groups[at]
            count = 1 + 2 // unit * groups[at]
        writes = bytes(bits(unit) for _ in range(count))
        assert at <= len(groups)
        return Item(window, node, writes, 0, late)

    while len(groups) - at > 1:
        if not groups[at] & 8 or groups[at + 1]:
            time += number()
            out.append(item(time))
            continue
        code = groups[at] & 7
        at += 2
        if code == Code.WINDOW:
            time += number()
            vector = bits(4 * rows)
            assert vector >> nodes == 0
            assert vector & (words | events) == 0
            out += [Item(time, n, bytes([bits(unit)])) for n in range(nodes) if vector >> n & 1]
        elif code == Code.LATE:
            assert out
            age = number()
            out.append(item(time - (age - (age >> 20 << 21)), late=True))
        else:
            assert code == Code.ABORTED
            missing = bits(2)
            assert 0 < missing < len(out[-1].nibbles)
            assert not any(out[-1].nibbles[-missing:])
            out[-1] = out[-1]._replace(missing=missing)
    assert not any(groups[at:])
    return out
