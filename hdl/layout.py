"""Everything that crosses the wire: registers, event frames, blocks, records, format versions.

Plain Python, no Amaranth and no NumPy. The gateware (:mod:`hypermon.hdl`) builds its structures
from these tables, the host (:mod:`hypermon.host`) its decoders, and ``docs/`` its tables. A width or
an offset is defined here and nowhere else.

Sources: "the paper" is Malony & Reed, *A Hardware-Based Performance Monitor for the Intel iPSC/2
Hypercube* (1990); section numbers are the paper's.
"""

import builtins
import enum
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "BLOCK_BYTES_MAX", "BLOCK_HEADER", "BLOCK_MAGIC", "BLOCK_TRAILER", "BEAT_BYTES",
    "BlockFlag", "BlockType", "CENSUS_BOARD", "CENSUS_NODE", "CENSUS_SHARE", "CENSUS_TIMES", "CODES",
    "COMPACT_BEATS", "COMPACT_HEAD", "COUNTERS",
    "COUNTERS_BASE", "Code", "GAP_GROUPS", "GROUP_BITS",
    "COUNTERS_STRIDE", "COUNTER_BITS", "Cause", "CensusFlag", "Control", "Counter", "EVENT_IDS", "EVENT_MASK_ROW",
    "EVENT_NIBBLES_MAX", "EVENT_SIZE_BITS",
    "FORMAT_VERSION",
    "EmulatorPattern",
    "FRAME_WINDOW", "Field", "Geometry", "IDENTITY_MAGIC", "LATENCY", "LOSS_RECORD", "NARROW_BYTES", "NODES_MAX",
    "PORT_BITS", "PRETRIGGER_MAX", "REDUCTION_BASE", "REDUCTION_GAPS", "REDUCTION_GAP_BINS", "REDUCTION_GROUP",
    "REDUCTION_NODE_HIGH", "REDUCTION_SHARED", "REDUCTION_STORE_HIGH", "REDUCTION_VECTOR_HIGH",
    "REGISTERS", "REGISTER_VERSION", "Record", "Register", "SYNC_LAG", "Sink", "Status",
    "TrailerFlag", "UART_ESCAPE", "UART_REPLY", "UART_REQUEST", "UART_WORDS_MAX", "USB_BURST_BYTES", "USB_MANUFACTURER",
    "USB_NAME", "USB_PRODUCT", "USB_STREAM", "USB_VENDOR", "UartMark", "UartOp", "UsbRequest", "WORD_NIBBLES", "Window",
    "event_writes", "frame_bytes", "frame_words", "padded", "word_writes",
]

#: Version of blocks, records and frames; a host rejects a stream of any other version.
FORMAT_VERSION = 1
#: Version of the register map.
REGISTER_VERSION = 1
#: ``HMON`` in a register (least significant byte first).
IDENTITY_MAGIC = int.from_bytes(b"HMON", "little")
#: Data bits of a node's port; bit 4 of the port is the strobe (section 3.1). A board may have 8-bit ports
#: instead (:attr:`Geometry.port_bits`), which carry one byte per write.
PORT_BITS = 4
#: Maximum number of nodes of one board; the paper's cabinet holds 32 (section 3.1).
NODES_MAX = 32
#: Clocks from the clock edge that samples the pads to the one that counts the strobe into a
#: window: two synchronizer stages, the sample-point stage, the strobe register, the gate and
#: its register. The host subtracts it from every time stamp.
LATENCY = 6
#: Clocks by which a board that follows another one by ``sync_in`` is late: two flip-flops, its start, and up to one
#: because the rise may come anywhere in a clock. Its latency is smaller by this number.
SYNC_LAG = 4
#: Bits of a per-node counter. At one item per clock and 200 MHz they wrap after 16 days.
COUNTER_BITS = 48
#: A COMPACT payload is a row of groups of this number of bits, the low half of a byte first.
GROUP_BITS = 4
#: Maximum number of groups of a gap: 21 bits. A longer gap begins another block.
GAP_GROUPS = 7
#: Maximum number of writes before a start trigger that can be requested.
PRETRIGGER_MAX = 480
#: Number of event ids; number of ids that share a row of the event mask.
EVENT_IDS = 256
EVENT_MASK_ROW = 8
#: Width of the stream in bytes; header, payload and trailer of a block are padded to it.
BEAT_BYTES = 16
#: Width inside a board of few cells, where a beat takes eight clocks: that of an iCE40's block RAM.
NARROW_BYTES = 2
#: Maximum number of beats of the payload of a COMPACT block.
COMPACT_BEATS = 256


# --------------------------------------------------------------------------------------- records

@dataclass(frozen=True)
class Field:
    """One little-endian field of a :class:`Record`: name, width in bits, meaning."""

    name: str
    bits: int
    doc: str


@dataclass(frozen=True)
class Record:
    """A row of little-endian fields, packed in order, least significant bit first.

    Every field is a whole number of bytes (8, 16, 32 or 64 bits). A record is therefore at the
    same time a :mod:`struct` format, a NumPy dtype and an Amaranth structure.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for f in self.fields:
            if f.bits not in (8, 16, 32, 64):
                raise ValueError(f"{self.name}.{f.name}: {f.bits} bits; a field has 8, 16, 32 or 64")

    @property
    def bits(self) -> int:
        return sum(f.bits for f in self.fields)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def format(self) -> str:
        """The record as a :mod:`struct` format string."""
        return "<" + "".join({8: "B", 16: "H", 32: "I", 64: "Q"}[f.bits] for f in self.fields)

    def offsets(self) -> Iterator[tuple[int, Field]]:
        """Pairs of byte offset and field."""
        at = 0
        for f in self.fields:
            yield at, f
            at += f.bits // 8

    def numpy(self) -> list[tuple[str, str]]:
        """The record as a NumPy dtype description."""
        return [(f.name, f"<u{f.bits // 8}") for f in self.fields]

    def unpack(self, data: builtins.bytes | bytearray | memoryview, offset: int = 0) -> dict[str, int]:
        """Returns the fields by name of the record at ``offset``; raises :exc:`struct.error` if the data are cut
        short.
        """
        values = struct.unpack_from(self.format, data, offset)
        return {f.name: v for f, v in zip(self.fields, values, strict=True)}

    def pack(self, **values: int) -> builtins.bytes:
        """The record's bytes; fields that are not named are 0."""
        unknown = set(values) - {f.name for f in self.fields}
        if unknown:
            raise TypeError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        return struct.pack(self.format, *(values.get(f.name, 0) for f in self.fields))


# --------------------------------------------------------------------------------------- windows

class Window(enum.IntEnum):
    """CONTROL bits 3..2: the synchronization window (section 3.2.1 and its footnote 3)."""

    NS800 = 0
    NS400 = 1
    NS200 = 2
    CLOCK = 3

    @property
    def ns(self) -> int | None:
        """Length in nanoseconds; None for one clock."""
        return (800, 400, 200, None)[self]

    def clocks(self, clock_hz: int) -> int:
        """Length in capture clocks, at least 1; exact, because the clock is a multiple of 5 MHz."""
        return 1 if self.ns is None else self.ns * clock_hz // 1_000_000_000


#: The name of each window on the command line and in ``recording.json``.
FRAME_WINDOW = {"800": Window.NS800, "400": Window.NS400, "200": Window.NS200, "1": Window.CLOCK}


class Sink(enum.IntEnum):
    """MODE bit 0: the sink after the strobe-vector FIFO."""

    CLASSIC = 0
    EXTENDED = 1


class EmulatorPattern(enum.IntEnum):
    """EMULATOR bits 2..1: the pattern that the node emulator writes."""

    ALL = 0
    TURNS = 1
    REPLAY = 2


@dataclass(frozen=True)
class Geometry:
    """Properties that are fixed when the gateware is built.

    Parameters
    ----------
    nodes : 1..32.
    clock_hz : capture clock, a multiple of 5 MHz, so that every window is whole clocks.
    node_depth, vector_depth, frame_depth : FIFO depths in entries, powers of two;
        the vector FIFO keeps one node FIFO's worth of slots in reserve (see ``hdl/merge/gate_room.py``),
        so it must be at least four times as deep.
    sinks : the sinks that exist after the strobe-vector FIFO.
    compact_depth : beats that the extended sink keeps until their block is complete, a power of two.
    store_depth : beats of whole blocks that wait in block RAM for the link: 0 for none, a power of
        two up to 1024, or a multiple of 1024.
    external_depth : beats that wait in external memory after it: 0 for none, or a power of two.
    guard : a board with the extended sink has a glitch filter and a rate limit.
    sync : a board with the extended sink has ``sync_in`` and ``sync_out``.
    half_clock : strobes are sampled twice per clock, and with a window of one clock the extended sink stamps to
        half a clock.
    port_bits : data bits of a port, 4 or 8; 8 with the extended sink alone, because a frame has room for nibbles.
    emulator : a board without the extended sink has a node emulator, too, for its self-test.
    beat_bytes : bytes per clock that the stages after the frame FIFO move: 16, or 2 on a board of few cells, with
        the classic sink alone, up to 16 nodes and no store. The stream's bytes are the same.

    Raises
    ------
    ValueError
        with the offending value, for anything else.
    """

    nodes: int = 16
    clock_hz: int = 100_000_000
    node_depth: int = 64
    vector_depth: int = 1024
    frame_depth: int = 1024
    sinks: tuple[Sink, ...] = field(default=(Sink.CLASSIC,))
    compact_depth: int = 512
    store_depth: int = 0
    external_depth: int = 0
    guard: bool = True
    sync: bool = True
    half_clock: bool = False
    port_bits: int = PORT_BITS
    emulator: bool = False
    beat_bytes: int = BEAT_BYTES

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise ValueError(f"nodes must be 1..{NODES_MAX}, not {self.nodes!r}")
        if self.clock_hz <= 0 or self.clock_hz % 5_000_000 or self.clock_hz > 1_000_000_000:
            raise ValueError(
                f"the capture clock must be a multiple of 5 MHz up to 1 GHz, not {self.clock_hz!r} Hz")
        if not self.sinks or set(self.sinks) - set(Sink):
            raise ValueError(f"sinks must be the classic one, the extended one or both, not {self.sinks!r}")
        for name, low in (("node_depth", 4), ("vector_depth", 16), ("frame_depth", 4),
                          ("compact_depth", 2 * COMPACT_BEATS)):
            depth = getattr(self, name)
            if depth < low or depth > 32768 or depth & (depth - 1):
                raise ValueError(f"{name} must be a power of two in {low}..32768, not {depth!r}")
        depth = self.store_depth
        if depth and (not 16 <= depth <= 32768 or (depth & (depth - 1) if depth < 1024 else depth % 1024)):
            raise ValueError(f"store_depth must be 0, a power of two in 16..1024 or a multiple of 1024 up to 32768, "
                             f"not {depth!r}")
        depth = self.external_depth
        if depth and (not 1024 <= depth <= 1 << 28 or depth & (depth - 1)):
            raise ValueError(f"external_depth must be 0 or a power of two in 1024..{1 << 28}, not {depth!r}")
        if self.vector_depth < 4 * self.node_depth:
            raise ValueError(
                f"vector_depth must be at least 4 * node_depth = {4 * self.node_depth}, "
                f"not {self.vector_depth!r}")
        if self.port_bits not in (PORT_BITS, 8):
            raise ValueError(f"port_bits must be {PORT_BITS} or 8, not {self.port_bits!r}")
        if self.port_bits == 8 and tuple(self.sinks) != (Sink.EXTENDED,):
            raise ValueError(f"ports of 8 bits need the extended sink alone, not {self.sinks!r}")
        if self.half_clock and Sink.EXTENDED not in self.sinks:
            raise ValueError(f"half clocks need the extended sink, not {self.sinks!r}")
        if self.beat_bytes not in (BEAT_BYTES, NARROW_BYTES):
            raise ValueError(f"beat_bytes must be {BEAT_BYTES} or {NARROW_BYTES}, not {self.beat_bytes!r}")
        if self.narrow and (tuple(self.sinks) != (Sink.CLASSIC,) or self.nodes > 16
                            or self.store_depth or self.external_depth):
            raise ValueError(
                f"beats of {self.beat_bytes} bytes need the classic sink alone, up to 16 nodes and no store")

    @classmethod
    def extended(cls, nodes: int = 16, clock_hz: int = 100_000_000, store_depth: int = 3072,
                 external_depth: int = 0, half_clock: bool = False, port_bits: int = PORT_BITS) -> "Geometry":
        """The extended board, with buffer sizes that fit an ECP5-25F.

        The frame FIFO is small, for distributed memory: with either sink, blocks wait in the store. The
        strobe-vector FIFO is half the classic board's: 512 words fit the wide form of a block RAM. With 8-bit
        ports there is no classic sink in addition to the extended one.
        """
        sinks = tuple(Sink) if port_bits == PORT_BITS else (Sink.EXTENDED,)
        return cls(nodes, clock_hz, vector_depth=512, frame_depth=16, sinks=sinks, compact_depth=1024,
                   store_depth=store_depth, external_depth=external_depth, half_clock=half_clock, port_bits=port_bits)

    @property
    def first_sink(self) -> "Sink":
        """The sink in force after power-up."""
        return min(self.sinks)

    @property
    def narrow(self) -> bool:
        """The stages after the frame FIFO are narrow."""
        return self.beat_bytes == NARROW_BYTES

    @property
    def row_nodes(self) -> int:
        """Nodes a frame has room for: 16, or 32 on boards of more than 16 nodes."""
        return 16 if self.nodes <= 16 else 32

    @property
    def guarded(self) -> bool:
        """There is a glitch filter and a rate limit."""
        return self.guard and Sink.EXTENDED in self.sinks

    @property
    def emulated(self) -> bool:
        """There is a node emulator."""
        return self.emulator or Sink.EXTENDED in self.sinks

    @property
    def synced(self) -> bool:
        """There are ``sync_in`` and ``sync_out``."""
        return self.sync and Sink.EXTENDED in self.sinks

    def window_clocks(self, window: Window) -> int:
        return window.clocks(self.clock_hz)

    def ps(self, ticks: int) -> int:
        """Picoseconds of the given number of capture clocks, rounded down, exact."""
        g = math.gcd(10**12, self.clock_hz)
        return ticks * (10**12 // g) // (self.clock_hz // g)


# ------------------------------------------------------------------------------------- registers

class Control(enum.IntFlag):
    """CONTROL, the writable 8-bit register of section 3.3."""

    RESET = 1 << 0
    ENABLE = 1 << 1
    WINDOW_0 = 1 << 2
    WINDOW_1 = 1 << 3
    STREAM = 1 << 4


class Status(enum.IntFlag):
    """STATUS, the 4-bit register of section 3.3; bits 2..0 are sticky until reset."""

    FRAME_FULL = 1 << 0
    NODE_FULL = 1 << 1
    VECTOR_FULL = 1 << 2
    READY = 1 << 3


class Cause(enum.IntFlag):
    """Reason why the gate refused; the same bits as in STATUS."""

    FRAME_FIFO = 1 << 0
    NODE_FIFO = 1 << 1
    VECTOR_FIFO = 1 << 2


@dataclass(frozen=True)
class Register:
    """One register: byte offset, name, access (R, W, RW), width in bits, meaning."""

    offset: int
    name: str
    access: str
    bits: int
    doc: str


REGISTERS: dict[str, Register] = {r.name: r for r in (
    Register(0x00, "CONTROL", "W", 8,
             "bit 0 reset (clears itself; discards all queued data except blocks in store and external memory, "
             "sets time and counters to 0, increments EPOCH), "
             "bit 1 capture enable, bits 3..2 window (0 = 800 ns, 1 = 400 ns, 2 = 200 ns, 3 = one clock; "
             "takes effect at the next reset), bit 4 stream enable (the stream drains the frame FIFO; "
             "FRAME_FIFO then reads 0 and pops nothing)"),
    Register(0x04, "STATUS", "R", 4,
             "bits 2..0, sticky until reset: the gate has refused an item. Bit 0: the frame FIFO was full at that "
             "moment; otherwise bit 1: a node FIFO was full, bit 2: the strobe-vector FIFO was full. Bit 3: a "
             "complete frame, of which no word has been read, is ready"),
    Register(0x08, "FRAME_COUNT", "R", 12, "frames generated since reset, modulo 4096"),
    Register(0x0c, "FRAME_FIFO", "R", 32,
             "each read pops one word of the oldest frame; if the FIFO is empty, a read returns 0 and pops nothing"),
    Register(0x10, "FRAME_POS", "R", 32, "bits 7..0 word index within the frame, bits 31..16 EPOCH"),
    Register(0x40, "MAGIC", "R", 32, "0x4e4f4d48, 'HMON'"),
    Register(0x44, "VERSION", "R", 16, "bits 7..0 format version, bits 15..8 register map version"),
    Register(0x48, "BUILD", "R", 32, "hash of the capture core as elaborated"),
    Register(0x4c, "GEOMETRY", "R", 32,
             "bits 7..0 nodes, 15..8 data bits of a port, 22..16 sinks present (bit 16 classic, bit 17 extended), "
             "23 strobes are sampled twice per clock, 31..24 current latency from pad to window in clocks"),
    Register(0x50, "CLOCK_HZ", "R", 32, "capture clock in hertz"),
    Register(0x54, "NODE_DEPTH", "R", 16, "capacity of a node FIFO, in port writes"),
    Register(0x58, "VECTOR_DEPTH", "R", 16, "capacity of the strobe-vector FIFO, in vectors"),
    Register(0x5c, "FRAME_DEPTH", "R", 16, "capacity of the frame FIFO, in frames; 0 on a board without the classic "
                                           "sink"),
    Register(0x60, "MODE", "RW", 1, "bit 0 sink: 0 classic, 1 extended; takes effect at the next reset. "
             "On a board with one sink, that sink is always in force"),
    Register(0x64, "WINDOW", "R", 16, "current length of a window, in clocks"),
    Register(0x68, "EDGE_RISING", "RW", 32, "bit i: node i's rising edge is active; all ones after power-up"),
    Register(0x6c, "EDGE_FALLING", "RW", 32, "bit i: node i's falling edge is active; 0 after power-up"),
    Register(0x70, "SAMPLE_AFTER", "RW", 32, "bit i: node i is sampled after the edge; otherwise before it; 0 after "
                                             "power-up"),
    Register(0x74, "NODE_MASK", "RW", 32, "bit i: node i is captured; all ones after power-up"),
    Register(0x78, "FLUSH", "RW", 32, "longest time that a queued frame waits before its block starts, in windows; 1 "
                                      "ms after power-up"),
    Register(0x7c, "CENSUS", "RW", 1, "interval of the census while counters change: 0 = 10 to 100 ms, 1 = 0.1 to 1 s"),
    Register(0x80, "LEVEL", "R", 32, "bits 15..0 frames in the frame FIFO, 31..16 vectors in the strobe-vector FIFO"),
    Register(0x84, "RUN", "R", 16, "number of frames at the head of the frame FIFO that share FRAME_HIGH"),
    Register(0x88, "FRAME_HIGH", "R", 32, "bits 63..32 of the oldest frame's time stamp"),
    Register(0x90, "LATCH", "W", 1, "any write latches TIME, FRAMES, all per-node counters and all histograms"),
    Register(0x98, "TIME_LOW", "R", 32, "latched: windows since time 0, bits 31..0"),
    Register(0x9c, "TIME_HIGH", "R", 32, "latched: windows since time 0, bits 63..32"),
    Register(0xa0, "FRAMES_LOW", "R", 32, "latched: frames generated since reset, bits 31..0"),
    Register(0xa4, "FRAMES_HIGH", "R", 32, "latched: frames generated since reset, bits 63..32"),
    Register(0xd0, "REDUCTION_INDEX", "RW", 11,
             "selects the four words of the reduction that are read at 0xe0 to 0xff (boards with the extended sink)"),
    Register(0xb0, "WORD_NODES", "RW", 32,
             "bit i: node i's items are words of 32 bits, with the extended sink; takes effect at the next reset; "
             "0 after power-up"),
    Register(0xb4, "EVENT_NODES", "RW", 32,
             "bit i: node i's items are events, which begin with their length. Overrides WORD_NODES. Takes "
             "effect in the same way"),
    Register(0xb8, "ITEM_TIMEOUT", "RW", 32,
             "number of clocks without a strobe after which an incomplete word or event is aborted; 10 ms after "
             "power-up"),
    Register(0xc0, "GLITCH", "RW", 4,
             "number of clocks that a strobe level must last to count; 0 and 1: every sampled level counts. A value n "
             "delays every item by n - 1 clocks; the latency in GEOMETRY and in block headers includes this delay. "
             "Takes effect at the next reset; 0 on a board without the filter"),
    Register(0xc4, "RATE_LIMIT", "RW", 13,
             "bits 7..0 maximum number of items of a node in an interval, 0 = no limit; bits 12..8 k: the interval is "
             "2^k windows. Takes effect at the next reset; 0 on a board without the limit"),
    Register(0xc8, "SYNC", "RW", 3,
             "bit 0: time follows another board's, over sync_in; takes effect at the next reset; 0 on a board without "
             "sync_in. Read only: bit 1: capture is enabled, and time waits for the first rising edge of sync_in; bit "
             "2: since the reset, sync_in has failed for some periods, so time may be wrong"),
    Register(0xcc, "SYNC_STEPS", "R", 32,
             "windows shortened by a clock to follow, bits 31..16, and lengthened by a clock, bits 15..0, each modulo "
             "65536"),
    Register(0x100, "NIBBLE_MASK", "RW", 16,
             "bit v: items of one nibble with the value v are kept; all ones after power-up, and on a board without "
             "the filter or with ports of 8 bits"),
    Register(0x140, "EMULATOR", "RW", 3,
             "bit 0 run: the node emulator drives the ports, from the beginning of its pattern when the bit rises; "
             "bits 2..1 pattern: 0 all nodes at once, 1 one node after the other, 2 the replay memory; 0 on a board "
             "without an emulator"),
    Register(0x144, "EMULATOR_PERIOD", "RW", 16, "clocks from one write to the next, at least 4"),
    Register(0x148, "EMULATOR_COUNT", "RW", 32, "total number of writes"),
    Register(0x14c, "EMULATOR_REPLAY", "W", 32,
             "appends a port write to the replay memory while the emulator is stopped: bits 15..0 clocks since the "
             "previous one, at least 4, 19..16 nibble, 24..20 node, 28..25 upper half of the byte with ports of 8 "
             "bits, bit 31: the last one, after which the pattern repeats"),
    Register(0x104, "TRIGGER_START", "RW", 32,
             "bit 31: nothing is kept until an item matches. Bits 7..0 value, 15..8 mask of the value's bits to "
             "compare, 20..16 node, 28..24 mask of the node's bits to compare, 30 meaning of the value: 1 the event "
             "id (only nodes in event mode match), 0 the first write (only other nodes match). Boards with the "
             "extended sink. Change it only while capture is disabled; a reset clears what was found"),
    Register(0x108, "TRIGGER_STOP", "RW", 32,
             "as TRIGGER_START; bit 31: nothing is kept after the window of the first item that matches. If a start is "
             "set, items match only after it"),
    Register(0x10c, "PRETRIGGER", "RW", 9,
             f"number of writes kept before the start; more than {PRETRIGGER_MAX} count as {PRETRIGGER_MAX}. The "
             "window of the first of them is kept whole"),
    Register(0x110, "TRIGGER_STATE", "R", 3,
             "bit 0: waiting for a start; bit 1: a start was found; bit 2: a stop was found and its window has ended"),
    Register(0x114, "DISCARDED_LOW", "R", 32,
             "items discarded by start, stop and event mask, bits 31..0; not latched"),
    Register(0x118, "DISCARDED_HIGH", "R", 32, "the same, bits 47..32"),
    Register(0x11c, "EVENT_MASK", "W", 13,
             "bits 7..0: if bit b is set, events with the id 8 k + b are discarded; bits 12..8: k. Write it only while "
             "capture is disabled. After power-up no events are discarded"),
    Register(0x180, "STORE_DEPTH", "R", 32,
             "capacity for blocks that wait for the link, in beats of 16 bytes: bits 15..0 in block RAM; "
             "bits 23..16 k: 2^k beats in external memory, none if k is 0"),
    Register(0x184, "STORE_LEVEL", "R", 32,
             "beats in the store in block RAM: bits 15..0 now, bits 31..16 maximum since reset"),
    Register(0x188, "EXTERNAL_LEVEL", "R", 32, "beats in external memory, and in transit to and from it"),
    Register(0x18c, "EXTERNAL_HIGH", "R", 32, "maximum of EXTERNAL_LEVEL since power-up"),
)}

#: FRAME_POS fields.
POS_EPOCH_SHIFT = 16
#: Per-node counters, latched: node i, counter c at COUNTERS_BASE + COUNTERS_STRIDE * i + 8 * c.
COUNTERS_BASE = 0x800
COUNTERS_STRIDE = 64
#: The reduction, 64 bits per word: the lower half of word w is at REDUCTION_BASE + 8 * (w % 4)
#: when REDUCTION_INDEX is w // 4.
REDUCTION_BASE = 0xe0
REDUCTION_GROUP = 4
#: Words of the reduction. Latched: node i's items that came at least 2**b windows, but fewer than
#: twice that, after the one before, at REDUCTION_GAPS + 64 * i + b; windows with k items at
#: REDUCTION_SHARED + k.
REDUCTION_GAPS = 0
REDUCTION_GAP_BINS = 64
REDUCTION_SHARED = 2048
#: Not latched, but these values only grow: the largest number of nibbles that node i's FIFO has held, at
#: REDUCTION_NODE_HIGH + i, the largest number of vectors, and of beats in the extended sink's memory.
REDUCTION_NODE_HIGH = 4096
REDUCTION_VECTOR_HIGH = 4128
REDUCTION_STORE_HIGH = 4129
#: FRAME_FIFO again at every word, for burst reads.
BURST_BASE = 0x1000
BURST_END = 0x2000
#: Byte-address bits of the bus.
ADDRESS_BITS = 13


class Counter(enum.IntEnum):
    """Order of the per-node counters, in the registers and in a CENSUS."""

    ACCEPTED = 0
    DELIVERED = 1
    LOST_FRAME_FIFO = 2
    LOST_NODE_FIFO = 3
    LOST_VECTOR_FIFO = 4
    CARRIED = 5
    LAG_MAX = 6
    REJECTED = 7


COUNTERS: dict[Counter, str] = {
    Counter.ACCEPTED: "items that the gate admitted",
    Counter.DELIVERED: "items that left the frame FIFO, over the stream or through FRAME_FIFO",
    Counter.LOST_FRAME_FIFO: "items refused because the frame FIFO was full and blocked the stages before it",
    Counter.LOST_NODE_FIFO: "items refused because the node FIFO was full",
    Counter.LOST_VECTOR_FIFO: "items refused because the strobe-vector FIFO had no slot",
    Counter.CARRIED: "items carried into a later window, and therefore stamped late",
    Counter.LAG_MAX: "largest number of windows by which an item was carried",
    Counter.REJECTED: "strobes rejected by the glitch filter, and items rejected by the nibble mask or the rate limit",
}


# ----------------------------------------------------------------------------------- event frame

def frame_words(nodes: int) -> int:
    """32-bit words of an event frame: 4 up to 16 nodes (section 3.2.1, Figure 5), 6 up to 32.

    ========  ==================================  ==========================================
    word      up to 16 nodes                      17 to 32 nodes
    ========  ==================================  ==========================================
    0         nibbles of nodes 15..8              nibbles of nodes 31..24
    1         nibbles of nodes 7..0               nibbles of nodes 23..16
    2         strobe vector in bits 15..0         nibbles of nodes 15..8
    3         time stamp                          nibbles of nodes 7..0
    4                                             strobe vector
    5                                             time stamp
    ========  ==================================  ==========================================

    The lower node is in the lower bits; fields of nodes whose vector bit is clear are zero.
    """
    return 4 if nodes <= 16 else 6


def frame_bytes(nodes: int) -> int:
    """Bytes of an event frame, 16 or 24."""
    return 4 * frame_words(nodes)


# ---------------------------------------------------------------------------------------- blocks

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


class TrailerFlag(enum.IntFlag):
    """Trailer ``flags``."""

    #: A reset occurred while the block was being sent: the rest of the payload is zero, and a CENSUS
    #: with this mark has no valid contents.
    CUT = 1 << 0


BLOCK_HEADER = Record("block header", "Two beats before every payload.", (
    Field("magic", 32, "0x4e4f4d48, the bytes 'HMON'"),
    Field("version", 8, "format version"),
    Field("type", 8, "1 FRAMES, 2 COMPACT, 3 LOSS, 4 CENSUS"),
    Field("epoch", 16, "resets since power-up, modulo 65536"),
    Field("sequence", 32, "blocks since power-up, modulo 2**32; never reset"),
    Field("length", 32, "bytes of payload, without the padding to a multiple of 16"),
    Field("time", 64, "windows since time 0 (half clocks if flag bit 3 is set): in FRAMES and COMPACT, of the first "
                      "frame or item; otherwise of the start of the block. All frames of a block share bits 63..32"),
    Field("nodes", 8, "nodes of the board"),
    Field("window", 8, "window setting in force: 0 = 800 ns, 1 = 400 ns, 2 = 200 ns, 3 = one clock"),
    Field("latency", 8, "clocks from pad to window; the host subtracts it from every time"),
    Field("flags", 8, "bit 0 extended sink, bit 1 written by the host; in COMPACT: bit 2 item modes, bit 3 times "
                      "in half clocks, bit 4 ports of 8 bits"),
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

# --------------------------------------------------------------------------------------- compact

class Code(enum.IntEnum):
    """Codes of a COMPACT payload other than an item: one group ``8 | code``, then one of 0.

    A number never ends in a group of 0 after another group, so these two groups are no number.
    """

    #: Many nodes in one window.
    WINDOW = 0
    #: The item before it was ended by the time-out.
    ABORTED = 1
    #: An item that was still open when its window was written.
    LATE = 2


#: The groups that follow the two groups of a code.
CODES = {
    Code.WINDOW: "gap; strobe vector, one bit per node, node 0 lowest, 4 nodes per group; then the nibble of "
                 "every node whose bit is set, lowest node first, one group each",
    Code.ABORTED: "two groups, low one first: the number of nibbles at the end of the previous item that are filler, "
                  "which is zero",
    Code.LATE: "age as a number, of 21 bits in two's complement; node; nibble; further nibbles. The item's window "
               "is the current window minus the age",
}
#: Nibbles of an item of a node in word mode, and of the longest one in event mode.
WORD_NIBBLES = 8
EVENT_NIBBLES_MAX = 1 + 2 * 15
#: Bits of the number of bytes of an event.
EVENT_SIZE_BITS = 4


def word_writes(port_bits: int) -> int:
    """Number of writes that make a word of 32 bits."""
    return 4 * WORD_NIBBLES // port_bits


def event_writes(port_bits: int, size: int = 15) -> int:
    """Number of writes that make an event of the given number of bytes, including the length."""
    return 1 + 8 // port_bits * size

COMPACT_HEAD = Record("compact head", "One beat before the groups of a COMPACT block with flag bit 2.", (
    Field("words", 32, "bit i: node i is in word mode"),
    Field("events", 32, "bit i: node i is in event mode; overrides `words`"),
    Field("zero", 64, "0"),
))
assert COMPACT_HEAD.bytes == BEAT_BYTES

LOSS_RECORD = Record("loss record", "One outage of one node, in a LOSS block.", (
    Field("node", 8, "node number"),
    Field("causes", 8, "bit 0 frame FIFO, bit 1 node FIFO, bit 2 strobe-vector FIFO"),
    Field("zero_1", 16, "0"),
    Field("zero_2", 32, "0"),
    Field("lost", 64, "items refused"),
    Field("first", 64, "window of the first refused item"),
    Field("last", 64, "window of the last refused item"),
))
assert LOSS_RECORD.bytes == 2 * BEAT_BYTES


class CensusFlag(enum.IntFlag):
    """CENSUS ``flags``."""

    #: The first one after an enable.
    START = 1 << 0
    #: Capture is disabled and everything queued has left: the final counts of this run.
    STOP = 1 << 1
    #: Time follows another board's.
    FOLLOWS = 1 << 2
    #: Since the reset the other board's wave has failed for some periods: time may be wrong.
    STRAYED = 1 << 3
    #: Nothing is kept yet: the trigger waits for an item that matches.
    AWAITS = 1 << 4
    #: A start was found.
    TRIGGERED = 1 << 5
    #: A stop was found, and its window has ended: nothing is kept any more.
    ENDED = 1 << 6


#: While counters change, a census comes when this many times its own size has left in other blocks since the last
#: one, but not before the first of these times in seconds, nor after the second; in silence it comes after the third.
#: On a slow link the first two times are ten times as long: each then equals the next one of the three.
CENSUS_SHARE = 112
CENSUS_TIMES = 0.01, 0.1, 1

CENSUS_BOARD = Record("census, board", "Head of a CENSUS payload.", (
    Field("frames", 64, "frames generated since reset"),
    Field("frame_level", 32, "frames in the frame FIFO"),
    Field("vector_level", 32, "vectors in the strobe-vector FIFO"),
    Field("flags", 32, "bit 0 start, bit 1 stop, bit 2 time follows another board's, bit 3 time may be wrong because "
                       "that board's wave failed, bit 4 waiting for a start trigger, bit 5 it was found, bit 6 a stop "
                       "was found"),
    Field("status", 32, "STATUS"),
    Field("discarded", 64, "items that start, stop and event mask have discarded; they do not count as delivered"),
))
assert CENSUS_BOARD.bytes == 2 * BEAT_BYTES

CENSUS_NODE = Record("census, node", "One per node, in order, after the head.", (
    *(Field(c.name.lower(), 64, COUNTERS[c]) for c in Counter),
))
assert CENSUS_NODE.bytes == COUNTERS_STRIDE

# ------------------------------------------------------------------------------------------ UART

#: The escape byte: the next one gives its meaning. 0xdb is rare in blocks, and also SLIP's (RFC 1055).
UART_ESCAPE = 0xdb
#: Maximum number of words that a request can read.
UART_WORDS_MAX = 256


class UartMark(enum.IntEnum):
    """Meaning of an escape byte, by the byte after it. Before any other byte an escape byte is damaged, and both are
    dropped; but if the second is an escape byte, too, it counts."""

    #: The byte 0xdb itself.
    LITERAL = 0
    #: A packet begins here: a request from the host, a reply from the board.
    PACKET = 1


class UartOp(enum.IntEnum):
    """Operation of a request."""

    #: A host starts: the board forgets all requests before this one.
    HELLO = 0
    READ = 1
    WRITE = 2


UART_REQUEST = Record("UART request", "Host to board, after a PACKET mark.", (
    Field("sequence", 8, "differs from that of the previous request. If it is equal, the request is not executed "
                         "again, and the previous reply is repeated"),
    Field("op", 8, "0 HELLO, 1 READ, 2 WRITE"),
    Field("address", 16, "byte address of a register"),
    Field("value", 32, f"READ: number of consecutive words, 1 to {UART_WORDS_MAX}; WRITE: the value; HELLO: 0"),
    Field("crc", 32, "CRC-32 (IEEE 802.3, as in zlib) of the fields before it; a request with a wrong CRC is ignored"),
))

UART_REPLY = Record("UART reply", "Board to host, after a PACKET mark; words follow, then a CRC-32.", (
    Field("sequence", 8, "that of the request"),
    Field("status", 8, "0 done, 1 request not understood"),
    Field("words", 16, "number of 32-bit words that follow: those that a READ requested, otherwise 0; after them 32 "
                       "bits, the CRC-32 of head and words"),
))

# ------------------------------------------------------------------------------------------- USB

#: pid.codes' identity for tests. Others use it too: a board is identified by manufacturer and name as well.
USB_VENDOR = 0x1209
USB_PRODUCT = 0x0001
USB_MANUFACTURER = "HYPERMON"
USB_NAME = "HYPERMON event capture board"
#: Endpoint address of the stream, bulk IN.
USB_STREAM = 0x81
#: The longest READ: the operating systems' limit for one control transfer.
USB_BURST_BYTES = 4096


class UsbRequest(enum.IntEnum):
    """Vendor requests to the device. ``wIndex`` is the byte address of a register."""

    #: IN: ``wLength`` bytes, a multiple of 4 up to USB_BURST_BYTES: consecutive registers.
    READ = 1
    #: OUT: four bytes, one register, written when the host asks for the status.
    WRITE = 2
    #: IN: the Microsoft OS 2.0 descriptor set, at ``wIndex`` 7.
    MICROSOFT = 3
