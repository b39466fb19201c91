"""Specification of the frame's way out: it leaves whole, once, in its words' order."""

from amaranth.hdl import Array, Assert, Assume, Cat, Const, Module, Mux, Signal
from hypermon.hdl.layout import Geometry, frame_words
from hypermon.hdl.sinks.classic.frame_port import FramePort
from hypermon.hdl.sinks.classic.frames_source import FrameSource

from ..prover import Spec

__all__ = ["FramePortSpec", "FrameSourceSpec"]


def _frame(m: Module, spec: Spec, words: int, taken):
    """Frames of which one word, any one, carries a bit that is the frame's own; it stands as long as
    the frame does. Returns whether there is one, the frame, the bit, the word's index."""
    there, bit = Signal(), Signal()
    which = spec.constant(m, range(words), "which")
    m.d.comb += Assume(which < words)
    with m.If(~there | taken):
        m.d.sync += [there.eq(spec.free(1, "comes")), bit.eq(spec.free(1, "bit"))]
    frame = Cat(Cat(bit & (which == k), Const(0, 31)) for k in range(words))
    return there, frame, bit, which


class FramePortSpec(Spec):
    """The words that the bus has taken since it began a frame are the first ones of the frame that
    stands there; with the last one the frame leaves. The stream gets it whole or not at all.

    The bus reads at most every fourth clock and looks at the word in the clock before, as
    :class:`~hypermon.hdl.control.registers.Registers` does.
    """

    def __init__(self, port=FramePort, nodes=1):
        super().__init__()
        self.port, self.nodes = port, nodes

    def specify(self, m: Module) -> None:
        words = frame_words(self.nodes)
        m.submodules.port = port = self.port(Geometry(nodes=self.nodes))
        taken = Signal()
        there, frame, bit, which = _frame(m, self, words, taken)
        # The bus: at most one access in four clocks, be it a read or the choice of the stream.
        idle = Signal(2)
        read, choose, enable = Signal(), Signal(), Signal()
        m.d.comb += [
            read.eq(self.free(1, "read") & (idle == 3)), choose.eq(self.free(1, "choose") & ~read & (idle == 3)),
            port.i.valid.eq(there), port.i.p.frame.eq(frame), taken.eq(there & port.i.ready),
            port.read.eq(read), port.stream_enable.eq(enable), port.hold.eq(self.free(1, "hold") & port.streaming),
            port.o.ready.eq(self.free(1, "ready")),
        ]
        m.d.sync += [idle.eq(Mux(read | choose, 0, idle + (idle != 3))), enable.eq(enable ^ choose)]

        looked = Signal(32)
        m.d.sync += looked.eq(port.word)
        # Words of the frame that the bus has; its own account, which the stream's taking ends.
        got = Signal(range(words + 1))
        empty, leaving = Signal(), Signal()
        seen = Signal(3)        # a frame stood there for the bus, one to three clocks ago
        m.d.sync += seen.eq(Cat(there & ~port.streaming & ~leaving, seen))
        m.d.comb += empty.eq(~seen[2])
        counts = read & ~port.streaming & ~empty
        m.d.sync += leaving.eq(counts & (got == words - 1))
        with m.If(port.streaming):
            m.d.sync += got.eq(0)
        with m.Elif(counts):
            m.d.sync += got.eq(Mux(got == words - 1, 0, got + 1))
        freed, vector, delivered = Signal(), Signal(), Signal()
        m.d.sync += [freed.eq(taken), vector.eq((which == words - 2) & bit), delivered.eq(freed & vector)]
        m.d.comb += [
            Assert(port.position == got, "the position is the number of words taken"),
            Assert(port.begun == (got != 0)),
            Assert(~counts | (looked == Mux(which == got, bit, 0)), "each word as it is, in its place"),
            Assert(~(read & ~port.streaming & empty) | (looked == 0), "an empty read gives 0"),
            Assert(taken == (leaving | (port.streaming & port.o.ready & there)),
                   "a frame leaves with its last word, or by the stream"),
            Assert(~(taken & leaving) | ~(port.o.valid & port.o.ready), "never by both"),
            Assert(~port.o.valid | (port.o.p.frame == frame), "the stream sees it whole"),
            Assert(port.freed == freed, "each frame that leaves frees a slot"),
            Assert(port.delivered == delivered, "and counts for the nodes of its vector"),
        ]


class FrameSourceSpec(Spec):
    """Frames leave in beats of four words: all their words, in order, zeros after the last of an odd
    number of six-word frames; and a block holds as many frames as its length says.

    Parameters
    ----------
    source : class.
    nodes : up to 16 make frames of four words, more make six.
    """

    def __init__(self, source=FrameSource, nodes=1):
        super().__init__()
        self.source, self.nodes = source, nodes

    def specify(self, m: Module) -> None:
        depth, words = 4, frame_words(self.nodes)
        m.submodules.source = dut = self.source(
            Geometry(nodes=self.nodes, node_depth=4, vector_depth=16, frame_depth=depth))
        taken = Signal()
        there, frame, bit, which = _frame(m, self, words, taken)
        asks, beats = dut.source, dut.source.beats
        m.d.comb += [
            dut.i.valid.eq(there), dut.i.p.frame.eq(frame), taken.eq(there & dut.i.ready), dut.streaming.eq(1),
            dut.level.eq(self.free(3, "level")), dut.split.eq(self.free(1, "split")),
            dut.run.eq(self.free(3, "run")), Assume((dut.run <= depth) & (dut.run != 0)),
        ]
        # The blocker: grants what was asked for, then takes as many beats as the length says.
        granted = Signal(3)
        serving, waits = Signal(), Signal()
        left, run_before = Signal(4), Signal(3)
        moves = beats.valid & beats.ready
        m.d.comb += [asks.grant.eq(granted[0]), beats.ready.eq(serving & self.free(1, "room"))]
        m.d.sync += [
            run_before.eq(dut.run), waits.eq(waits | asks.request),
            granted.eq(Cat(waits & (granted == 0) & ~serving & self.free(1, "grants"), granted)),
        ]
        frames = Signal(3)   # of the block, not yet taken
        with m.If(granted[0]):
            m.d.sync += [left.eq((asks.length + 15) >> 4), frames.eq(run_before), waits.eq(0)]
        with m.If(granted[2]):
            m.d.sync += serving.eq(1)
        with m.If(moves):
            m.d.sync += left.eq(left - 1)
            with m.If(left == 1):
                m.d.sync += serving.eq(0)

        # Two frames of six words are three beats: four words, two and two, four.
        phase = Signal(2)
        kept = Signal()      # the bit of the frame that was taken last
        with m.If(taken):
            m.d.sync += [kept.eq(bit), frames.eq(frames - 1)]
        begins, more = [(which == k) & bit for k in range(4)], frames != 0
        middle = [(which == 4) & kept, (which == 5) & kept, begins[0] & more, begins[1] & more]
        ends = [(which == k + 2) & bit for k in range(4)]
        if words == 6:
            with m.If(moves):
                m.d.sync += phase.eq(Array([1, Mux(more, 2, 0), 0, 0])[phase])
        expected = [Array([begins[k], middle[k], ends[k], 0])[phase] for k in range(4)]
        whole = Array([words == 4, 1, 1, 1])[phase]   # no frame is left half sent by this beat
        m.d.comb += [
            *(Assert(~moves | (beats.p[32 * k:32 * k + 32] == expected[k]), f"word {k} of a beat") for k in range(4)),
            Assert(taken == (moves & (phase != 1)), "each frame once"),
            Assert(~(moves & (left == 1)) | (whole & (frames == (phase != 1))), "the block ends with its last frame"),
            Assert(~serving | (beats.valid == Mux((phase == 1) & ~more, 1, there)), "keeps nothing back"),
            Assert(dut.hold == (asks.request | more | (phase == 1)), "holds the port for its block and no longer"),
            Assert(~asks.grant | there, "asks for no empty block"),
            Assert(~asks.grant | (asks.time == ((which == words - 1) & bit)), "whose time is its first frame's"),
        ]
