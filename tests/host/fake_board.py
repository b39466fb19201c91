"""A board in plain Python: it makes valid streams from what is to be in them, and plays a link.

Slow and obvious on purpose: it is the oracle of the host's tests, and uses of the project only
the tables of ``hdl/layout``. COMPACT payloads are written by ``compact_encode.py`` beside it.
"""

import struct
import zlib
from collections import Counter as Tally

from hypermon.hdl.layout import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    BURST_BASE,
    CENSUS_BOARD,
    CENSUS_LINK,
    CENSUS_NODE,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    LATENCY,
    LOSS_RECORD,
    REGISTER_VERSION,
    REGISTERS,
    BlockFlag,
    BlockType,
    CensusFlag,
    Geometry,
    Sink,
    Window,
)

from tests.host.compact_encode import compact_payload, items_payload

Frame = tuple[int, dict[int, int]]  # window number, nibble by node


def frame(nodes: int, stamp: int, nibbles: dict[int, int]) -> bytes:
    """An event frame, word by word as in ``layout.frame_words``."""
    halves = 2 if nodes <= 16 else 4
    words = [0] * halves
    for node, nibble in nibbles.items():
        words[halves - 1 - node // 8] |= nibble << 4 * (node % 8)
    vector = sum(1 << node for node in nibbles)
    return struct.pack(f"<{halves + 2}I", *words, vector, stamp & 0xffffffff)


def block(type, payload, *, nodes=16, clock_hz=100_000_000, window=Window.NS800, epoch=1, sequence=0, time=0,
          flags=0, cut=False, latency=LATENCY, version=FORMAT_VERSION) -> bytes:
    head = BLOCK_HEADER.pack(magic=BLOCK_MAGIC, version=version, type=type, epoch=epoch, sequence=sequence,
                             length=len(payload), time=time, nodes=nodes, window=window, latency=latency,
                             flags=flags, clock_hz=clock_hz)
    data = head + payload + bytes(-len(payload) % 16) + struct.pack("<III", int(cut), 0, 0)
    return data + struct.pack("<I", zlib.crc32(data))


def renumbered(data: bytes, sequence: int) -> bytes:
    """The block with another sequence number."""
    data = data[:8] + struct.pack("<I", sequence) + data[12:-4]
    return data + struct.pack("<I", zlib.crc32(data))


class FakeBoard:
    """Writes a stream, block by block, and counts as a board does.

    Members
    -------
    blocks : the blocks so far.
    always : flags of every census. ``lined``: nodes on lines, of which every census has rows.
    discarded : items that triggers and the mask of events have discarded, in every census from now on.
    queued : items that every node has in the board, by the next census.
    kinds : what each is: ``(type, contents)``; contents are frames, items, loss records or census flags.
    """

    def __init__(self, nodes=16, clock_hz=100_000_000, window=Window.NS800, epoch=1, host=False, sink=Sink.CLASSIC):
        self.always = self.lined = 0
        self.nodes, self.clock_hz, self.window, self.epoch, self.host = nodes, clock_hz, window, epoch, host
        self.sink = sink
        self.blocks: list[bytes] = []
        self.kinds: list[tuple[BlockType, object]] = []
        self.sequence = self.host_sequence = self.time = self.frame_count = 0
        self.delivered, self.refused, self.lag, self.carried = Tally(), Tally(), Tally(), Tally()
        self.rejected = Tally()
        self.discarded = 0
        self.queued = Tally()

    @property
    def data(self) -> bytes:
        return b"".join(self.blocks)

    def _add(self, type, payload, contents, time, host=False, flags=0, **more):
        sequence = self.host_sequence if host else self.sequence
        flags |= (BlockFlag.HOST if host else 0) | (BlockFlag.EXTENDED if self.sink else 0)
        self.blocks.append(block(type, payload, nodes=self.nodes, clock_hz=self.clock_hz, window=self.window,
                                 epoch=self.epoch, sequence=sequence, time=time, flags=flags, **more))
        self.kinds.append((type, contents))
        if host:
            self.host_sequence += 1
        else:
            self.sequence += 1

    def frames(self, rows: list[Frame], **more):
        payload = b"".join(frame(self.nodes, stamp, nibbles) for stamp, nibbles in rows)
        assert len({stamp >> 32 for stamp, _ in rows}) == 1
        self._add(BlockType.FRAMES, payload, rows, rows[0][0], self.host, **more)
        for _, nibbles in rows:
            self.delivered.update(nibbles.keys())
        self.frame_count += len(rows)
        self.time = max(self.time, rows[-1][0])
        return self

    def compact(self, items: list[tuple[int, int, int]], port_bits=4, **more):
        """A block of window, node, nibble."""
        self._add(BlockType.COMPACT, compact_payload(items, self.nodes, port_bits), items, items[0][0], **more)
        if not more.get("cut"):
            self.delivered.update(node for _, node, _ in items)
        self.frame_count += len({window for window, _, _ in items})
        self.time = max(self.time, items[-1][0])
        return self

    def items(self, items, modes, **more):
        """A block of items of any mode; see items.py."""
        payload = items_payload(items, modes.words, modes.events, self.nodes)
        self._add(BlockType.COMPACT, payload, items, items[0].window, flags=BlockFlag.ITEMS, **more)
        self.delivered.update(item.node for item in items)
        self.time = max(self.time, *(item.window for item in items))
        return self

    def refuse(self, node: int, lost: int, cause: int = 2):
        """Counts refusals whose record comes later."""
        self.refused[node, cause] += lost
        return self

    def loss(self, records: list[tuple[int, int, int, int]], cause: int = 2, counted=False):
        """Records node, lost, first, last."""
        payload = b""
        for node, lost, first, last in records:
            payload += LOSS_RECORD.pack(node=node, causes=cause, lost=lost, first=first, last=last)
            if not counted:
                self.refused[node, cause] += lost
            self.time = max(self.time, last)
        self._add(BlockType.LOSS, payload, records, self.time)
        return self

    def census(self, flags=0, time=None):
        self.time = self.time if time is None else time
        payload = CENSUS_BOARD.pack(frames=self.frame_count, flags=flags | self.always, discarded=self.discarded)
        for node in range(self.nodes):
            lost = [self.refused[node, cause] for cause in (1, 2, 4)]
            payload += CENSUS_NODE.pack(
                accepted=self.delivered[node] + self.queued[node], delivered=self.delivered[node],
                lost_frame_fifo=lost[0], lost_node_fifo=lost[1], lost_vector_fifo=lost[2], carried=self.carried[node],
                lag_max=self.lag[node], rejected=self.rejected[node])
        payload += CENSUS_LINK.pack(refused=0, lost=0) * self.lined
        self._add(BlockType.CENSUS, payload, flags, self.time)
        return self

    def start(self):
        return self.census(CensusFlag.START, 0)

    def stop(self, time=None):
        return self.census(CensusFlag.STOP, time)

    def events(self, keep=lambda index: True) -> list[tuple[int, int, int]]:
        """The events of those blocks: time, node, nibble."""
        found = []
        for index, (type, rows) in enumerate(self.kinds):
            if type is BlockType.FRAMES and keep(index):
                found += [(self.ps(stamp), node, nibbles[node]) for stamp, nibbles in rows for node in sorted(nibbles)]
            elif type is BlockType.COMPACT and keep(index):
                found += [(self.ps(window), node, nibble) for window, node, nibble in rows]
        return found

    def ps(self, stamp: int) -> int:
        return (stamp * self.window.clocks(self.clock_hz) - LATENCY) * 10**12 // self.clock_hz


def random_run(board: FakeBoard, rng, count: int, gap: int = 1000, size: int = 20, losses: float = 0) -> FakeBoard:
    """START, then ``count`` blocks of events among censuses and losses, then STOP.

    Blocks of the extended sink may end inside a window.
    """
    board.start()
    stamp = 0
    for _ in range(count):
        rows = []
        for _ in range(rng.randint(1, size)):
            stamp += rng.randint(1, gap)
            nodes = rng.sample(range(board.nodes), rng.randint(1, board.nodes))
            rows.append((stamp, {node: rng.randrange(16) for node in nodes}))
        if board.sink is Sink.EXTENDED:
            items = [(window, node, nibbles[node]) for window, nibbles in rows for node in sorted(nibbles)]
            while items:
                end = rng.randint(1, len(items))
                far = [k for k in range(1, end) if items[k][0] - items[k - 1][0] >= 1 << 21]
                end = min(far, default=end)
                board.compact(items[:end])
                items = items[end:]
            rows = []
        while rows:
            high = [r for r in rows if r[0] >> 32 == rows[0][0] >> 32]
            board.frames(high)
            rows = rows[len(high):]
        if rng.random() < losses:
            first = stamp - rng.randint(0, 5)
            board.loss([(rng.randrange(board.nodes), rng.randint(1, 99), max(first, 0), stamp)],
                       rng.choice([1, 2, 4]))
        if rng.random() < 0.3:
            board.census()
    return board.stop(stamp + 10)


class FakeLink:
    """A link to a board that plays a :class:`FakeBoard`'s blocks after the start, the last after the stop.

    With STREAM off, its frames wait for FRAME_FIFO and only the other blocks come by the stream.

    Parameters
    ----------
    board : what to play; its last block must be the STOP census. The board's epoch must be 1.
    piece : bytes a :meth:`stream` call gives at most.
    mute : the STOP census never comes.
    trickle : frames that become ready for FRAME_FIFO with each :meth:`stream` call; None: all at once.
    """

    uri = "fake"
    slow = False
    away = False
    slowness = 1.0
    board_ps = None
    played = None

    def __init__(self, board: FakeBoard, piece=1000, mute=False, endless=False, trickle=None,
                 geometry: Geometry | None = None):
        g = Geometry(nodes=board.nodes, clock_hz=board.clock_hz)
        self.board, self.piece, self.mute, self.endless, self.trickle = board, piece, mute, endless, trickle
        self.ready = 0
        self.registers = {r.offset: 0 for r in REGISTERS.values()}
        self.by_name = {name: r.offset for name, r in REGISTERS.items()}
        self.put(MAGIC=IDENTITY_MAGIC, VERSION=REGISTER_VERSION << 8 | FORMAT_VERSION, BUILD=0xabcd,
                 GEOMETRY=g.nodes | 4 << 8 | (3 if board.sink else 1) << 16 | LATENCY << 24,
                 CLOCK_HZ=g.clock_hz, NODE_DEPTH=g.node_depth, VECTOR_DEPTH=g.vector_depth, FRAME_DEPTH=g.frame_depth,
                 WINDOW=board.window.clocks(board.clock_hz))
        self.control: list[int] = []
        self.outages = []
        self.blocks = board.blocks
        self.pending = b""
        self.words: list[int] = []
        self.waiting: list[Frame] = []
        self.closed = False
        self.polls = 0
        self.on_poll = lambda polls: None

    def put(self, **values):
        for name, value in values.items():
            self.registers[self.by_name[name]] = value

    def read(self, address):
        if address == self.by_name["RUN"]:
            highs = [stamp >> 32 for stamp, _ in self.waiting[:None if self.trickle is None else self.ready]]
            return next((i for i, high in enumerate(highs) if high != highs[0]), len(highs))
        if address == self.by_name["FRAME_HIGH"]:
            return self.waiting[0][0] >> 32
        return self.registers[address]

    def write(self, address, value):
        if address == self.by_name["MODE"] and not self.board.sink:
            value = 0
        self.registers[address] = value
        if address == self.by_name["CONTROL"]:
            self.control.append(value)
            if value & 1:
                self.put(FRAME_POS=1 << 16)
            elif value & 2:
                self.blocks = self.board.blocks
                if not value & 16:
                    kinds = self.board.kinds
                    self.waiting = [f for t, rows in kinds if t is BlockType.FRAMES for f in rows]
                    others = [b for b, (t, _) in zip(self.blocks, kinds, strict=True) if t is not BlockType.FRAMES]
                    self.blocks = [renumbered(b, k) for k, b in enumerate(others)]
                self.pending += b"".join(self.blocks[:-1])
            elif not self.mute:
                self.pending += self.blocks[-1]
        if address == self.by_name["LATCH"]:
            self.put(TIME_LOW=self.board.time & 0xffffffff, TIME_HIGH=self.board.time >> 32)

    def read_burst(self, address, words):
        assert address == BURST_BASE
        assert 0 < words <= 1024
        while len(self.words) < words:
            stamp, nibbles = self.waiting.pop(0)
            self.ready -= 1
            data = frame(self.board.nodes, stamp, nibbles)
            self.words += struct.unpack(f"<{len(data) // 4}I", data)
        taken, self.words = self.words[:words], self.words[words:]
        return struct.pack(f"<{words}I", *taken)

    def stream(self, limit):
        self.polls += 1
        self.ready += self.trickle or 0
        self.on_poll(self.polls)
        size = min(limit, self.piece)
        taken, self.pending = self.pending[:size], self.pending[size:]
        return taken

    def discard(self):
        self.pending = b""

    @property
    def ended(self):
        return not self.endless and not self.pending and not self.waiting

    def close(self):
        self.closed = True
