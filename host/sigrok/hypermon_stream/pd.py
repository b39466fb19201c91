"""A protocol decoder for sigrok (libsigrokdecode, API 3); it runs in sigrok's own Python, without HYPERMON.

docs/frame-format.md describes the format.
"""

# mypy: ignore-errors
import struct
import zlib

import sigrokdecode as srd

BLOCK, ITEM, ABORTED, LOST, FRAME, WRONG = range(6)
CLK = 8
MAGIC = b"HMON"
HEADER = struct.Struct("<4sBBHIIQBBBBI")
TRAILER = 16
PAYLOAD_MAX = 1 << 16
FRAMES, COMPACT, LOSS, CENSUS = 1, 2, 3, 4
TYPES = {FRAMES: "FRAMES", COMPACT: "COMPACT", LOSS: "LOSS", CENSUS: "CENSUS"}
ITEMS, BYTES = 4, 16     # flags of a header
WINDOW, ABORT, LATE = range(3)
AGES = 1 << 21


class Groups:
    """A payload, four bits at a time, the low half of a byte first."""

    def __init__(self, payload, at, port_bits, wide):
        self.payload, self.at, self.unit, self.wide = payload, at, port_bits // 4, wide

    def left(self):
        return 2 * len(self.payload) - self.at

    def peek(self, ahead=0):
        place = self.at + ahead
        return self.payload[place // 2] >> 4 * (place % 2) & 15

    def take(self):
        value = self.peek()
        self.at += 1
        return value

    def field(self, groups):
        return sum(self.take() << 4 * k for k in range(groups))

    def number(self):
        value = shift = 0
        while True:
            group = self.take()
            value |= (group & 7) << shift
            shift += 3
            if not group & 8:
                return value

    def write(self):
        return self.field(self.unit)


class Decoder(srd.Decoder):
    api_version = 3
    id = "hypermon_stream"
    name = "HYPERMON stream"
    longname = "HYPERMON blocks, compact items"
    desc = "What a HYPERMON board sends to its host."
    license = "bsd"
    # sigrok accepts lists only.
    inputs = ["logic"]  # noqa: RUF012
    outputs = []  # noqa: RUF012
    tags = ["Debug/trace"]  # noqa: RUF012
    channels = tuple({"id": f"b{k}", "name": f"B{k}", "desc": f"Bit {k} of a byte"} for k in range(8))
    optional_channels = ({"id": "clk", "name": "CLK", "desc": "A byte is valid at its rising edge"},)
    annotations = (
        ("block", "Block"),
        ("item", "Item"),
        ("aborted", "Aborted item"),
        ("lost", "Lost"),
        ("frame", "Event frame"),
        ("wrong", "Wrong"),
    )
    annotation_rows = (
        ("blocks", "Blocks", (BLOCK, WRONG)),
        ("items", "Items", (ITEM, ABORTED, FRAME)),
        ("losses", "Losses", (LOST,)),
    )

    def __init__(self):
        self.reset()

    def reset(self):
        self.data, self.samples = bytearray(), []

    def start(self):
        self.out = self.register(srd.OUTPUT_ANN)

    def decode(self):
        clocked = self.has_channel(CLK)
        pins = self.wait({CLK: "r"} if clocked else {"skip": 0})
        while True:
            self.data.append(sum(bit << k for k, bit in enumerate(pins[:8])))
            self.samples.append(self.samplenum)
            self.take_blocks()
            pins = self.wait({CLK: "r"} if clocked else {"skip": 1})

    def say(self, first, behind, kind, *texts):
        """Annotates the bytes from ``first`` on, before ``behind``."""
        self.put(self.samples[first], self.samples[behind - 1] + 1, self.out, [kind, list(texts)])

    def drop(self, count):
        del self.data[:count], self.samples[:count]

    def take_blocks(self):
        """The block that has become whole, if one has; bytes that are not a block are skipped up to the next one."""
        while len(self.data) >= HEADER.size:
            head = HEADER.unpack_from(self.data)
            length = head[5]
            if head[0] != MAGIC or head[2] not in TYPES or length > PAYLOAD_MAX:
                self.skip("no block begins here")
                continue
            size = HEADER.size + (length + 15 & -16) + TRAILER
            if len(self.data) < size:
                return
            if zlib.crc32(self.data[:size - 4]) != struct.unpack_from("<I", self.data, size - 4)[0]:
                self.skip("a checksum is wrong")
                continue
            self.block(head, bytes(self.data[HEADER.size:HEADER.size + length]), size)
            self.drop(size)

    def skip(self, why):
        found = self.data.find(MAGIC[:1], 1)
        count = found if found > 0 else len(self.data)
        self.say(0, count, WRONG, why, "?")
        self.drop(count)

    def block(self, head, payload, size):
        kind, sequence, time, nodes, flags = head[2], head[4], head[6], head[7], head[10]
        cut = self.data[size - TRAILER] & 1
        self.say(0, size, BLOCK, f"{TYPES[kind]} {sequence}, window {time}{', cut' if cut else ''}", TYPES[kind])
        if kind == LOSS:
            for at in range(0, len(payload), 32):
                node, _, lost, first, last = struct.unpack_from("<BB6xQQQ", payload, at)
                self.say(HEADER.size + at, HEADER.size + at + 32, LOST,
                         f"node {node} lost {lost}, windows {first} to {last}", f"{lost} lost")
        elif kind == FRAMES:
            self.frames(payload, time, nodes)
        elif kind == COMPACT and not cut:
            try:
                self.items(payload, time, nodes, flags)
            except IndexError:
                self.say(0, size, WRONG, "an item is cut short", "?")

    def frames(self, payload, time, nodes):
        words = 4 if nodes <= 16 else 6
        for at in range(0, len(payload), 4 * words):
            row = struct.unpack_from(f"<{words}I", payload, at)
            window = time & ~0xffffffff | row[-1]
            nibbles = [(node, row[words - 3 - node // 8] >> 4 * (node % 8) & 15) for node in range(nodes)
                       if row[-2] >> node & 1]
            text = " ".join(f"{node}:{nibble:X}" for node, nibble in nibbles)
            self.say(HEADER.size + at, HEADER.size + at + 4 * words, FRAME, f"{window} {text}", text)

    def items(self, payload, time, nodes, flags):
        words = events = 0
        groups = Groups(payload, 0, 8 if flags & BYTES else 4, 2 if nodes > 16 else 1)
        if flags & ITEMS:
            words, events = struct.unpack_from("<II", payload)
            groups.at = 32
        pending = None     # an item whose end a code may change: where it begins, window, node, writes
        while groups.left() > 1:
            begin, code = groups.at, None
            if groups.peek() & 8 and groups.peek(1) == 0:
                code = groups.take() & 7
                groups.take()
            if code == ABORT and pending is not None:
                self.item(*pending, groups.at, filler=groups.field(2))
                pending = None
                continue
            if pending is not None:
                self.item(*pending, begin)
                pending = None
            if code == LATE:
                age = groups.number()
                window = time - (age - AGES if age >= AGES // 2 else age)
                pending = begin, window, *self.writes(groups, words, events)
            elif code == WINDOW:
                time += groups.number()
                vector = groups.field(4 * groups.wide)
                for node in range(nodes):
                    if vector >> node & 1:
                        at = groups.at
                        self.item(at, time, node, [groups.write()], groups.at)
            elif code is None:
                time += groups.number()
                pending = begin, time, *self.writes(groups, words, events)
            else:
                self.say(0, len(self.samples), WRONG, f"unknown code {code}", "?")
                return
        if pending is not None:
            self.item(*pending, groups.at)

    def writes(self, groups, words, events):
        """The node of an item, and its writes."""
        node, first = groups.field(groups.wide), groups.write()
        more = 0
        if events >> node & 1:
            more = (first & 15) * (2 // groups.unit)
        elif words >> node & 1:
            more = 8 // groups.unit - 1
        return node, [first, *(groups.write() for _ in range(more))]

    def item(self, begin, window, node, writes, behind, filler=0):
        """Shows an item: an annotation from the group at which it begins to the group after its last one."""
        whole = writes[:len(writes) - filler]
        text = " ".join(f"{value:X}" for value in whole)
        kind = ABORTED if filler else ITEM
        self.say(HEADER.size + begin // 2, HEADER.size + (behind + 1) // 2, kind, f"{window} {node}: {text}", text)
