"""The properties of a board that are fixed when it is built, and the constants of ports, items and frames."""

import enum
import math
from dataclasses import dataclass, field

from .fronts import Front

__all__ = [
    "BEAT_BYTES", "COMPACT_BEATS", "COUNTER_BITS", "ECHOES", "ECHO_CLOCKS", "ECHO_LAG", "ECHO_SUM_BITS",
    "EVENT_IDS", "EVENT_MASK_ROW", "EVENT_NIBBLES_MAX", "EVENT_SIZE_BITS", "EmulatorPattern", "Extra",
    "FRAME_WINDOW", "Geometry", "LATENCY", "NARROW_BYTES", "NODES_MAX", "Option", "PERIOD_CLOCKS", "PHASES",
    "PORT_BITS", "PRETRIGGER_MAX", "SLIM_BYTES", "SYNC_LAG", "Sink", "TRIGGER_OUT_CLOCKS", "TRIGGER_OUT_PULSE",
    "TRIGGER_OUT_WINDOWS", "WORD_NIBBLES", "Window", "event_writes", "frame_bytes", "frame_words", "period_bits",
    "word_writes",
]

#: Data bits of a node's port; bit 4 of the port is the strobe (section 3.1). A board may have 8-bit ports
#: instead (:attr:`Geometry.port_bits`), which carry one byte per write.
PORT_BITS = 4
#: Numbers of samples of a strobe that a board can take per clock.
PHASES = (1, 2, 4)
#: Maximum number of nodes of one board; the paper's cabinet holds 32 (section 3.1).
NODES_MAX = 32
#: Clocks from the clock edge that samples the pads to the one that counts the strobe into a
#: window: two synchronizer stages, the sample-point stage, the strobe register, the gate and
#: its register. The host subtracts it from every time stamp.
LATENCY = 6
#: Clocks by which a board that follows another one by ``sync_in`` is late: two flip-flops, its start, and up to one
#: because the rise may come anywhere in a clock. Its latency is smaller by this number.
SYNC_LAG = 4
#: Minimum period of the wave between boards, in clocks; the period is less than twice as long.
PERIOD_CLOCKS = 1024
#: Windows from that of an item that fires the trigger to the rise of ``trigger_out``, for each setting: what items need
#: on their way when the board is not busy, and more; clocks in addition, of registers; clocks that the pulse lasts.
TRIGGER_OUT_WINDOWS, TRIGGER_OUT_CLOCKS, TRIGGER_OUT_PULSE = (3, 4, 6, 96), 1, 16
#: Echoes of a set that is summed; clocks within which an echo must come; bits of the sum of a set.
ECHOES, ECHO_CLOCKS, ECHO_SUM_BITS = 256, 1024, 19
#: Twice the mean clocks of an echo over wires without delay: the mean lag of the board that follows, 3.5; on the way
#: back two flip-flops, the first of which samples the line half a clock late in the mean.
ECHO_LAG = 10
#: Bits of a per-node counter. At one item per clock and 200 MHz they wrap after 16 days.
COUNTER_BITS = 48
#: Maximum number of writes before a start trigger that can be requested.
PRETRIGGER_MAX = 480
#: Number of event ids; number of ids that share a row of the event mask.
EVENT_IDS = 256
EVENT_MASK_ROW = 8
#: Width of the stream in bytes; header, payload and trailer of a block are padded to it.
BEAT_BYTES = 16
#: Width inside a board of few cells, where a beat takes eight clocks: that of an iCE40's block RAM.
NARROW_BYTES = 2
#: Width from the packer to the checksum inside an extended board that has to be small.
SLIM_BYTES = 4
#: Maximum number of beats of the payload of a COMPACT block.
COMPACT_BEATS = 256


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


class Option(enum.IntEnum):
    """Parts that a board with the extended sink can leave out, in favour of size and clock rate. GEOMETRY has a bit for
    each, which is set if the board lacks it."""

    REDUCTION = 0
    EMULATOR = 1
    RATE_LIMIT = 2
    EVENT_MASK = 3


class Extra(enum.IntEnum):
    """Parts that a board with the extended sink and ``sync_in`` can have in addition. EXTRAS has a bit for each, which
    is set if the board has it."""

    #: Measures the wave's way to another board and back.
    ECHO = 0
    #: The pin ``pps_in``: a MARK record each pulse.
    PPS = 1
    #: The pin ``trigger_in``: a MARK record each rise, which may start and stop the capture.
    TRIGGER_IN = 2
    #: A board that follows may keep its own clock: it marks rises of ``sync_in`` that show how far it has drifted.
    DRIFT = 3
    #: The pin ``trigger_out``: a pulse when the trigger fires.
    TRIGGER_OUT = 4


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
        the vector FIFO keeps one node FIFO's worth of slots in reserve (see ``hdl/gate/gate_room.py``),
        so it must be at least four times as deep.
    sinks : the sinks that exist after the strobe-vector FIFO.
    compact_depth : beats that the extended sink keeps until their block is complete, a power of two.
    store_depth : beats of whole blocks that wait in block RAM for the link: 0 for none, a power of
        two up to 1024, or a multiple of 1024.
    external_depth : beats that wait in external memory after it: 0 for none, or a power of two.
    guard : a board with the extended sink has a glitch filter and a rate limit.
    sync : a board with the extended sink has ``sync_in`` and ``sync_out``.
    phases : samples of each strobe per clock: 1, 2 or 4, evenly spaced. With more than one and a window of one clock,
        the extended sink stamps to half or a quarter of a clock.
    port_bits : data bits of a port, 4 or 8; 8 with the extended sink alone, because a frame has room for nibbles.
    emulator : a board without the extended sink has a node emulator, too, for its self-test.
    absent : options that a board with the extended sink leaves out.
    extras : parts that a board with the extended sink and ``sync_in`` has in addition; the pins only with beats of 16
        bytes.
    beat_bytes : bytes per clock that the stages after the frame FIFO move: 16; 4 on a board that has to be small, as
        far as the store, which holds beats of 16; or 2 on a board of few cells, with the classic sink alone, up to 16
        nodes and no store. The stream's bytes are the same.
    links : the given number of groups of eight nodes, from node 0 on, are connected to regeneration boards: their
        strobes arrive over a line each and not over wires of their own. Up to 4, with ports of 4 bits, and not with
        beats of 2 or 4 bytes.
    fronts : how the nodes are wired, from node 0 on; the others have a port. With the extended sink and ports of 4
        bits, and PORT for nodes of links.

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
    phases: int = 1
    port_bits: int = PORT_BITS
    emulator: bool = False
    beat_bytes: int = BEAT_BYTES
    absent: tuple[Option, ...] = ()
    extras: tuple[Extra, ...] = ()
    links: int = 0
    fronts: tuple[Front, ...] = ()

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
        if self.phases not in PHASES:
            raise ValueError(f"phases must be {', '.join(map(str, PHASES[:-1]))} or {PHASES[-1]}, not {self.phases!r}")
        if self.phases > 1 and Sink.EXTENDED not in self.sinks:
            raise ValueError(f"{self.phases} samples per clock need the extended sink, not {self.sinks!r}")
        if self.absent and (Sink.EXTENDED not in self.sinks or set(self.absent) - set(Option)):
            raise ValueError(f"only a board with the extended sink can leave out options of {[*Option]}, "
                             f"not {self.absent!r}")
        if self.extras and (not self.synced or set(self.extras) - set(Extra)):
            raise ValueError(f"only a board with the extended sink and sync_in can have extras of {[*Extra]}, "
                             f"not {self.extras!r}")
        if self.beat_bytes not in (BEAT_BYTES, SLIM_BYTES, NARROW_BYTES):
            raise ValueError(
                f"beat_bytes must be {BEAT_BYTES}, {SLIM_BYTES} or {NARROW_BYTES}, not {self.beat_bytes!r}")
        if not 0 <= 8 * self.links <= self.nodes:
            raise ValueError(f"links must be 0..{self.nodes // 8}, eight of the {self.nodes} nodes each, "
                             f"not {self.links!r}")
        if self.links and (self.port_bits != PORT_BITS or self.beat_bytes != BEAT_BYTES):
            raise ValueError(f"links need ports of {PORT_BITS} bits and beats of {BEAT_BYTES} bytes")
        if self.fronts and (len(self.fronts) > self.nodes or set(self.fronts) - set(Front)
                            or set(self.fronts[:self.linked_nodes]) - {Front.PORT}
                            or Sink.EXTENDED not in self.sinks or self.port_bits != PORT_BITS):
            raise ValueError(f"fronts need the extended sink, ports of {PORT_BITS} bits, one of {[*Front]} for each "
                             f"of up to {self.nodes} nodes, and PORT for those of links, not {self.fronts!r}")
        if self.marked and self.beat_bytes != BEAT_BYTES:
            raise ValueError(f"marks of pins need beats of {BEAT_BYTES} bytes, not {self.beat_bytes!r}")
        if self.narrow and (tuple(self.sinks) != (Sink.CLASSIC,) or self.nodes > 16
                            or self.store_depth or self.external_depth):
            raise ValueError(
                f"beats of {self.beat_bytes} bytes need the classic sink alone, up to 16 nodes and no store")

    @classmethod
    def extended(cls, nodes: int = 16, clock_hz: int = 100_000_000, store_depth: int = 3072,
                 external_depth: int = 0, phases: int = 1, port_bits: int = PORT_BITS,
                 absent: tuple[Option, ...] = (), beat_bytes: int = BEAT_BYTES,
                 extras: tuple[Extra, ...] = (), fronts: tuple[Front, ...] = ()) -> "Geometry":
        """The extended board, with buffer sizes that fit an ECP5-25F.

        The frame FIFO is small, for distributed memory: with either sink, blocks wait in the store. The
        strobe-vector FIFO is half the classic board's: 512 words fit the wide form of a block RAM. With 8-bit
        ports there is no classic sink in addition to the extended one.
        """
        sinks = tuple(Sink) if port_bits == PORT_BITS else (Sink.EXTENDED,)
        return cls(nodes, clock_hz, vector_depth=512, frame_depth=16, sinks=sinks, compact_depth=1024,
                   store_depth=store_depth, external_depth=external_depth, phases=phases, port_bits=port_bits,
                   absent=absent, beat_bytes=beat_bytes, extras=extras, fronts=fronts)

    def has(self, option: Option) -> bool:
        """The board has the extended sink with this option."""
        return Sink.EXTENDED in self.sinks and option not in self.absent

    @property
    def first_sink(self) -> "Sink":
        """The sink in force after power-up."""
        return min(self.sinks)

    @property
    def linked_nodes(self) -> int:
        """Number of nodes, from node 0 on, whose strobes arrive over links."""
        return 8 * self.links

    @property
    def fronted(self) -> int:
        """Nodes that have fewer wires than a port, one bit each."""
        return sum(1 << node for node, front in enumerate(self.fronts) if front is not Front.PORT)

    @property
    def narrow(self) -> bool:
        """The stages after the frame FIFO are narrow."""
        return self.beat_bytes == NARROW_BYTES

    @property
    def slim(self) -> bool:
        """The stages from the packer to the checksum are narrow, and the store and the stream are not."""
        return self.beat_bytes == SLIM_BYTES

    @property
    def stream_bytes(self) -> int:
        """Bytes per beat of the board's stream."""
        return BEAT_BYTES if self.slim else self.beat_bytes

    @property
    def bus_rate(self) -> int:
        """Bytes per second of FRAME_FIFO that the host bus carries at most: in a burst, a word takes four clocks, and
        the first one of a frame five. Boards with narrow beats read no word ahead, and carry less."""
        words = frame_words(self.nodes)
        return 4 * words * self.clock_hz // (4 * words + 1)

    @property
    def row_nodes(self) -> int:
        """Nodes a frame has room for: 16, or 32 on boards of more than 16 nodes."""
        return 16 if self.nodes <= 16 else 32

    @property
    def guarded(self) -> bool:
        """There is a glitch filter, and unless it is absent a rate limit."""
        return self.guard and Sink.EXTENDED in self.sinks

    @property
    def halvings(self) -> int:
        """How often a clock is halved to get the unit of the finest stamps: the binary logarithm of ``phases``."""
        return self.phases.bit_length() - 1

    @property
    def emulated(self) -> bool:
        """There is a node emulator."""
        return self.emulator or self.has(Option.EMULATOR)

    @property
    def marked(self) -> bool:
        """There are pins whose rises are marks."""
        return bool({Extra.PPS, Extra.TRIGGER_IN, Extra.DRIFT} & set(self.extras))

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


def period_bits(clocks: int) -> int:
    """Binary logarithm of the number of windows of ``clocks`` clocks in a period of the wave between boards."""
    return max(1, -(-PERIOD_CLOCKS // clocks) - 1).bit_length()


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
