"""The register map: addresses, bits, and the per-node counters."""

import enum
from dataclasses import dataclass

from .geometry import PRETRIGGER_MAX

__all__ = [
    "ABSENT_SHIFT", "ADDRESS_BITS", "BURST_BASE", "BURST_END", "COUNTERS", "COUNTERS_BASE", "COUNTERS_STRIDE",
    "Cause", "Control", "Counter", "FRONT_REGISTERS", "GATE_CAUSES", "POS_EPOCH_SHIFT", "REDUCTION_BASE",
    "REDUCTION_GAPS", "REDUCTION_GAP_BINS", "REDUCTION_GROUP",
    "REDUCTION_NODE_HIGH", "REDUCTION_SHARED", "REDUCTION_STORE_HIGH", "REDUCTION_VECTOR_HIGH", "REGISTERS",
    "REGISTER_VERSION", "Register", "Status",
]

#: Version of the register map.
REGISTER_VERSION = 1


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
    """Reason for a loss. The first three are the reasons why the gate refuses, the same bits as in STATUS."""

    FRAME_FIFO = 1 << 0
    NODE_FIFO = 1 << 1
    VECTOR_FIFO = 1 << 2
    #: The gate of a regeneration board refused.
    REGENERATION_GATE = 1 << 4
    #: A frame of a regeneration board did not arrive, or failed its check.
    REGENERATION_LINE = 1 << 5


#: Reasons why the gate refuses, in the order of their bits.
GATE_CAUSES = (Cause.FRAME_FIFO, Cause.NODE_FIFO, Cause.VECTOR_FIFO)


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
             "bit 0 reset (clears itself; discards all queued data except blocks in the store and in external "
             "memory, sets time and counters to 0, increments EPOCH), "
             "bit 1 capture enable, bits 3..2 window (0 = 800 ns, 1 = 400 ns, 2 = 200 ns, 3 = one clock; "
             "takes effect at the next reset), bit 4 stream enable (the stream drains the frame FIFO; "
             "FRAME_FIFO then reads 0 and pops nothing)"),
    Register(0x04, "STATUS", "R", 4,
             "bits 2..0, sticky until reset: each refusal at the gate sets one of them. Bit 0: the frame FIFO was "
             "full; otherwise bit 2: the strobe-vector FIFO was full; otherwise bit 1: a node FIFO was full. Bit 3: "
             "a complete frame, of which no word has been read, is ready"),
    Register(0x08, "FRAME_COUNT", "R", 12, "frames generated since reset, modulo 4096"),
    Register(0x0c, "FRAME_FIFO", "R", 32,
             "each read pops one word of the oldest frame; if the FIFO is empty, a read returns 0 and pops nothing"),
    Register(0x10, "FRAME_POS", "R", 32, "bits 7..0 word index within the frame, bits 31..16 EPOCH"),
    Register(0x40, "MAGIC", "R", 32, "0x4e4f4d48, 'HMON'"),
    Register(0x44, "VERSION", "R", 16, "bits 7..0 format version, bits 15..8 register map version"),
    Register(0x48, "BUILD", "R", 32, "hash of the capture core as elaborated"),
    Register(0x4c, "GEOMETRY", "R", 32,
             "bits 7..0 nodes, bits 15..8 data bits of a port, bits 17..16 sinks present (16 classic, 17 extended), "
             "bits 21..18 options of the extended sink that are absent (18 reduction, 19 node emulator, 20 rate limit, "
             "21 event mask), bits 23..22 samples of each strobe per clock (0 one, 2 two, 3 four), bits 31..24 "
             "current latency from pad to window in clocks"),
    Register(0x50, "CLOCK_HZ", "R", 32, "capture clock in hertz"),
    Register(0x54, "NODE_DEPTH", "R", 16, "capacity of a node FIFO, in port writes"),
    Register(0x58, "VECTOR_DEPTH", "R", 16, "capacity of the strobe-vector FIFO, in vectors"),
    Register(0x5c, "FRAME_DEPTH", "R", 16, "capacity of the frame FIFO, in frames; 0 on a board without the classic "
                                           "sink"),
    Register(0x60, "MODE", "RW", 1, "bit 0 sink: 0 classic, 1 extended; takes effect at the next reset. "
             "On a board with one sink, that sink is always active"),
    Register(0x64, "WINDOW", "R", 16, "current length of a window, in clocks"),
    Register(0x68, "EDGE_RISING", "RW", 32, "bit i: node i's rising edge is active; all ones after power-up"),
    Register(0x6c, "EDGE_FALLING", "RW", 32, "bit i: node i's falling edge is active; 0 after power-up"),
    Register(0x70, "SAMPLE_AFTER", "RW", 32, "bit i: node i is sampled after the edge; otherwise before it; 0 after "
                                             "power-up"),
    Register(0x74, "NODE_MASK", "RW", 32, "bit i: node i is captured; all ones after power-up"),
    Register(0x78, "FLUSH", "RW", 32, "longest time that a queued frame waits before its block starts, in windows; "
                                      "the default corresponds to 1 ms"),
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
             "selects the four words of the reduction that are read at 0xe0 to 0xff (boards with the extended sink); 0 "
             "on a board without the reduction"),
    Register(0xb0, "WORD_NODES", "RW", 32,
             "bit i: node i's items are words of 32 bits, with the extended sink; takes effect at the next reset; "
             "0 after power-up"),
    Register(0xb4, "EVENT_NODES", "RW", 32,
             "bit i: node i's items are events, which begin with their length. Overrides WORD_NODES; with both bits, "
             "each byte that a front end receives is an event of its own. Takes effect in the same way"),
    Register(0xb8, "ITEM_TIMEOUT", "RW", 32,
             "number of clocks without a strobe after which an incomplete word or event is aborted; the "
             "default corresponds to 10 ms"),
    Register(0xc0, "GLITCH", "RW", 4,
             "number of clocks that a strobe level must last to count; 0 and 1: every sampled level counts. A value n "
             "of at least 1 delays every item by n - 1 clocks; the latency in GEOMETRY and in block headers includes "
             "this delay. Takes effect at the next reset; 0 on a board without the filter"),
    Register(0xc4, "RATE_LIMIT", "RW", 13,
             "bits 7..0 maximum number of items of a node in an interval, 0 = no limit; bits 12..8 k: the interval is "
             "2^k windows. Takes effect at the next reset; 0 on a board without the limit"),
    Register(0xc8, "SYNC", "RW", 4,
             "bit 0: time follows another board's, over sync_in; takes effect at the next reset; 0 on a board without "
             "sync_in. Bit 3: with bit 0, the board keeps its own clock and marks its drift; from the next reset on; "
             "0 on a board "
             "without the extra drift. Read only: bit 1: capture is enabled, and time waits for the first rising edge "
             "of sync_in; bit 2: since the reset there has been at least one interval of four periods without an edge "
             "on sync_in, so time may be wrong"),
    Register(0xcc, "SYNC_STEPS", "R", 32,
             "corrections that were made to follow the other board, each modulo 65536: bits 31..16 windows shortened "
             "by a clock, bits 15..0 windows lengthened by a clock; on a board that keeps its own clock, "
             "the numbers of periods of the wave that were short and long by a clock"),
    Register(0x190, "EXTRAS", "R", 8,
             "parts that this board has in addition: bit 0 echo of sync_out, bit 1 pps_in, bit 2 trigger_in, bit 3 "
             "drift, bit 4 trigger_out"),
    Register(0x194, "SYNC_ECHO", "R", 32,
             "delay from sync_out to another board and back to sync_in: bits 18..0 sum of 256 echoes in clocks, bits "
             "31..19 number of such sums since the reset, modulo 8192; 0 on a board without the echo"),
    Register(0x198, "TRIGGER_PIN", "RW", 2,
             "bit 0: nothing is captured before the first rise of trigger_in; bit 1: nothing after the next rise, or "
             "the first one if bit 0 is 0. Change it only while capture is disabled; 0 on a board without trigger_in"),
    Register(0x1a0, "TRIGGER_OUT", "R", 2,
             "bit 0: trigger_out has risen since the reset; bit 1: it was late, because the item that fired it had "
             "waited too long on its way; 0 on a board without trigger_out"),
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
             "compare, 20..16 node, 28..24 mask of the node's bits to compare. Bit 30 selects what the value is "
             "compared with: if 1, the event id (only nodes in event mode match); if 0, the first write of an item "
             "(only nodes in other modes match). Boards with the extended sink. Change it only while capture is "
             "disabled; a reset clears TRIGGER_STATE"),
    Register(0x108, "TRIGGER_STOP", "RW", 32,
             "as TRIGGER_START; bit 31: nothing is kept after the window of the first item that matches. If a start is "
             "set, items match only after it"),
    Register(0x10c, "PRETRIGGER", "RW", 9,
             f"number of writes kept before the start; more than {PRETRIGGER_MAX} count as {PRETRIGGER_MAX}. The "
             "window of the first of them is kept whole"),
    Register(0x110, "TRIGGER_STATE", "R", 3,
             "bit 0: waiting for a start; bit 1: a start was found; bit 2: a stop was found and its window has ended"),
    Register(0x114, "DISCARDED_LOW", "R", 32,
             "items discarded by the start and stop triggers and by the event mask, bits 31..0; not latched"),
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
    Register(0x1bc, "PHASES", "RW", 1,
             "only on a board that samples strobes four times per clock: bit 0: the phases of its samples are known to "
             "be right. With windows of one clock, stamps count quarter clocks if it is set, and whole clocks "
             "otherwise. Takes effect at the next reset. After power-up 0 if a self-test has to check the phases "
             "first; 1 in a simulation"),
    Register(0x19c, "LINKS", "R", 12,
             "bits 2..0 number of groups of eight nodes, from node 0 on, that are connected to regeneration boards; "
             "bits 11..8: "
             "frames of group 0 to 3 arrive. 0 on a board without links"),
    Register(0x1c0, "FRONT_SPAN", "RW", 20,
             "number of clocks from the first edge of a byte, at a node of two or three wires, to its delivery; a byte "
             "that takes longer is rejected. 7 to 15 periods of the node's clock; 128 after power-up. This register "
             "and the next ones are only on a board with front ends; change it and the next three only while the nodes "
             "are silent"),
    Register(0x1c4, "UART_PERIOD", "RW", 25,
             "length of a bit at a node with a UART, in 1/256 clocks, at least 8 clocks; 1 Mbaud after power-up"),
    Register(0x1c8, "SWO_PERIOD", "RW", 25, "the same at a node with SWO; 2 Mbaud after power-up"),
    Register(0x1cc, "FRONT_LOWEST", "RW", 32,
             "nodes of two or three wires that send the lowest bit of a byte first; 0 after power-up"),
    Register(0x1d0, "FRONTS_0", "R", 32,
             "how nodes 0 to 7 are wired, four bits each, the first lowest: 0 strobe and data, 1 two wires (clock, "
             "data), 2 clock, data and chip select, 3 UART, 4 SWO; 0 on a board without front ends"),
    Register(0x1d4, "FRONTS_1", "R", 32, "the same for nodes 8 to 15"),
    Register(0x1d8, "FRONTS_2", "R", 32, "the same for nodes 16 to 23"),
    Register(0x1dc, "FRONTS_3", "R", 32, "the same for nodes 24 to 31"),
)}
#: Registers of boards with front ends.
FRONT_REGISTERS = ("FRONT_SPAN", "UART_PERIOD", "SWO_PERIOD", "FRONT_LOWEST", "FRONTS_0", "FRONTS_1", "FRONTS_2",
                   "FRONTS_3")
#: GEOMETRY: the first bit of the options that are absent, see :class:`~.geometry.Option`.
ABSENT_SHIFT = 18
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
    Counter.REJECTED: "strobes rejected by the glitch filter, items rejected by the nibble mask or the rate limit, and "
                      "errors and discarded bytes of a front end",
}
