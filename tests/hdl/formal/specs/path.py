"""Specifications of the way from gate to frame: no nibble is lost, doubled or swapped, a vector bit is
set if and only if its FIFO gives a nibble, and every vector finds room."""

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.gate.gate_room import GateRoom
from hypermon.hdl.gate.node_fifo import NodeFifos
from hypermon.hdl.layout import PORT_BITS, Geometry, frame_words
from hypermon.hdl.merge.window import Window
from hypermon.hdl.sinks.classic.frame_builder import FrameBuilder

from ..prover import Spec

__all__ = ["BuilderSpec", "PathSpec", "RoomSpec", "WindowSpec"]

#: Clocks from a vector's start in the frame builder to its pops, and from its pops to its frame.
TO_POP, TO_FRAME = 1, 2
#: Clocks from the end of a window to its vector.
TO_VECTOR = 2


def _past(m, value, clocks, name):
    """``value`` as it was 0, 1, ... ``clocks`` clocks ago."""
    past = [value]
    for k in range(clocks):
        past.append(signal := Signal.like(past[0], name=f"{name}{k + 1}"))
        m.d.sync += signal.eq(past[k])
    return past


def _held(m, builder, offered):
    """Whether the builder holds a vector that has not started, and what was offered with it."""
    waits, held = Signal(), Signal.like(offered, name="held")
    accept = builder.i.valid & builder.i.ready
    m.d.sync += waits.eq(accept | (waits & ~builder.starts))
    with m.If(accept):
        m.d.sync += held.eq(offered)
    m.d.comb += [
        Assert(builder.holds == waits, "holds a vector until it starts"),
        Assert(~builder.starts | waits, "starts what it holds"),
        Assert(builder.i.ready == (~waits | builder.starts), "takes a vector as soon as it holds none"),
        Assert(~waits | (Value.cast(builder.held)[:len(held)] == held), "holds what it was given"),
    ]
    return waits, held


class PathSpec(Spec):
    """Gate, node FIFOs, window and frame builder, connected as on the board.

    Strobes come at any time, windows have any length, the gate may think of the strobe-vector FIFO what
    it likes, the frame FIFO gives its slots back when it likes. A nibble of node 0, any one, is followed
    from the gate to its frame.

    The strobe-vector FIFO is for each node the number of vectors with its bit. What comes out is any
    vector that these numbers allow: none is empty, each bit has gone in and comes out once. The real one
    (:class:`~.fifos.StreamFifoSpec`), which always has room (:class:`RoomSpec`), allows less.

    Parameters
    ----------
    nodes, depth : of the node FIFOs.
    gate, fifos, window, builder : classes.
    """

    def __init__(self, nodes=2, depth=4, *, gate=DropGate, fifos=NodeFifos, window=Window, builder=FrameBuilder):
        super().__init__()
        self.nodes, self.depth = nodes, depth
        self.gate, self.fifos, self.window, self.builder = gate, fifos, window, builder

    def specify(self, m: Module) -> None:
        nodes, depth, frame_depth = self.nodes, self.depth, 4
        geometry = Geometry(nodes=nodes, node_depth=depth, vector_depth=4 * depth, frame_depth=frame_depth)
        m.submodules.gate = gate = self.gate(nodes)
        m.submodules.fifos = fifos = self.fifos(nodes, depth)
        m.submodules.window = window = self.window(nodes, depth)
        m.submodules.builder = builder = self.builder(geometry)
        end = self.free(1, "end")
        bit = self.free(1, "bit")  # one bit of a nibble stands for all four
        vector = self.free(nodes, "vector")
        admitted = Signal(nodes)
        m.d.sync += admitted.eq(gate.admit)
        m.d.comb += [
            gate.pulse.eq(self.free(nodes, "pulse")), gate.live.eq(self.free(nodes, "live")),
            gate.node_full.eq(fifos.full), gate.node_half.eq(fifos.half),
            gate.vector_room.eq(self.free(1, "room")), gate.vector_half.eq(self.free(1, "half")),
            fifos.admit.eq(gate.admit), fifos.data.eq(Cat(bit, Const(0, PORT_BITS * nodes - 1))),
            fifos.pop.eq(builder.pop), builder.nibble.eq(fifos.nibble),
            window.admitted.eq(admitted), window.end.eq(end), window.o.ready.eq(1),
            builder.i.valid.eq(self.free(1, "shows") & (vector != 0)), builder.i.p.vector.eq(vector),
            builder.i.p.wrap.eq(self.free(1, "wrap")), builder.hold_wrap.eq(self.free(1, "hold_wrap")),
        ]

        # Where the nibbles are, counted from outside.
        accept, start = builder.i.valid & builder.i.ready, builder.starts
        waits, held = _held(m, builder, Cat(vector))
        told = _past(m, Signal(nodes), TO_VECTOR, "told")
        asked = _past(m, Signal(nodes), TO_POP, "asked")
        popped = _past(m, builder.pop, TO_FRAME, "popped")
        said = window.o.p.vector & window.o.valid.replicate(nodes)
        m.d.comb += [
            asked[0].eq(held & start.replicate(nodes)),
            Assert(said == told[-1], "a vector for each window that has something to say, and at once"),
            Assert(builder.pop == asked[-1], "pops what the vector says"),
        ]
        for i in range(nodes):
            unsaid, announced, standing = (
                Signal(range(2 * depth), name=f"{n}{i}") for n in ("unsaid", "announced", "standing"))
            m.d.comb += [told[0][i].eq(end & (unsaid != 0)), Assume((announced != 0) | ~vector[i])]
            m.d.sync += [
                unsaid.eq(unsaid + admitted[i] - told[0][i]), announced.eq(announced + said[i] - (accept & vector[i])),
                standing.eq(standing + admitted[i] - builder.pop[i]),
            ]
            waiting = unsaid + sum(t[i] for t in told[1:])
            # Not yet announced, on the way to the vector FIFO, in it, held by the builder, on the way to be popped.
            known = waiting + announced + (waits & held[i]) + sum(a[i] for a in asked[1:])
            m.d.comb += [
                Assert(standing == known, "no nibble is forgotten"),
                Assert(~builder.pop[i] | (standing != 0), "pops nothing that is not there"),
                Assert(standing + admitted[i] <= depth, "no node FIFO overflows"),
                Assert(fifos.full[i] == (standing + admitted[i] == depth), "full is exact"),
                Assert((waiting + admitted[i] != depth) | fifos.full[i], "full of nibbles without a vector"),
                Assert(fifos.half[i] == (standing <= depth // 2), "half is exact"),
            ]
            if i == 0:
                here = standing + admitted[0] + sum(p[0] for p in popped[1:])

        # The frame FIFO.
        frames = Signal(range(2 * frame_depth))
        started = _past(m, start, TO_POP + TO_FRAME, "started")
        m.d.comb += [
            builder.freed.eq(self.free(1, "freed") & (frames != 0)),
            Assert(~builder.o.valid | (frames < frame_depth), "a slot has been kept for every frame"),
            Assert(builder.stuck == (waits & (frames + sum(started[1:]) == frame_depth)),
                   "stuck if and only if there is none"),
            Assert(builder.o.valid == started[-1], "a frame for each vector"),
            Assert(builder.busy == Cat(waits, started[1:]).any(), "busy while a vector waits or a frame is under way"),
        ]
        m.d.sync += frames.eq(frames + builder.o.valid - builder.freed)

        # The frame.
        words = frame_words(nodes)
        frame = builder.o.p.frame
        bits = frame[32 * (words - 2):32 * (words - 2) + nodes]
        field = [frame[32 * (words - 3 - i // 8) + 4 * (i % 8):][:PORT_BITS] for i in range(nodes)]
        m.d.comb += [
            Assert(~builder.o.valid | (bits == popped[-1]), "a vector bit if and only if its FIFO gave a nibble"),
            Assert(builder.o.valid == popped[-1].any(), "no empty frame"),
            *(Assert(~builder.o.valid | bits[i] | (field[i] == 0), "no nibble without its vector bit")
              for i in range(nodes)),
        ]
        inside = Signal(range(2 * depth))
        leaves = builder.o.valid & bits[0]
        m.d.sync += inside.eq(inside + gate.admit[0] - leaves)
        followed, before, value = Signal(), Signal.like(inside), Signal()
        with m.If(self.free(1, "choose") & gate.admit[0] & ~followed):
            m.d.sync += [followed.eq(1), before.eq(inside - leaves), value.eq(bit)]
        with m.If(followed & leaves):
            m.d.sync += [before.eq(before - 1), followed.eq(before != 0)]
        m.d.comb += [
            Assert(inside == here, "between gate and frame are those that stand and those under way"),
            Assert(~leaves | (inside != 0), "gives no nibble that it has not got"),
            Assert(~followed | (before < inside)),
            Assert(~(leaves & followed & (before == 0)) | (field[0] == value), "none lost, doubled or swapped"),
        ]


class BuilderSpec(Spec):
    """All of a frame is of one vector: its nibbles, each in its place, its bits, both halves of its time."""

    def __init__(self, builder=FrameBuilder, nodes=3):
        super().__init__()
        self.builder, self.nodes = builder, nodes

    def specify(self, m: Module) -> None:
        nodes, words = self.nodes, frame_words(self.nodes)
        m.submodules.builder = builder = self.builder(
            Geometry(nodes=nodes, node_depth=4, vector_depth=16, frame_depth=4))
        nibbles = self.free(PORT_BITS * nodes, "nibbles")
        m.d.comb += [
            builder.i.valid.eq(self.free(1, "shows")), builder.i.p.eq(self.free(len(builder.i.p.as_value()), "vector")),
            builder.hold_wrap.eq(self.free(1, "hold_wrap")), builder.freed.eq(self.free(1, "freed")),
            builder.nibble.eq(nibbles),
        ]
        _, held = _held(m, builder, builder.i.p.as_value())
        started = _past(m, builder.starts, TO_POP + TO_FRAME, "started")[-1]
        shape = builder.i.p.shape()
        vector, time, wrap = (_past(m, shape(held)[name], TO_POP + TO_FRAME, name)[-1]
                              for name in ("vector", "time", "wrap"))
        # They stand there in the clock after their pop.
        popped = _past(m, nibbles, TO_FRAME - 1, "nibbles")[-1]
        rows = [Const(0, 32)] * (words - 2)
        for i in range(nodes):
            here = Mux(vector[i], popped.word_select(i, PORT_BITS), 0) << 4 * (i % 8)
            rows[words - 3 - i // 8] |= here[:32]
        expected = Cat(*(row[:32] for row in rows), vector, Const(0, 32 - nodes), time[:32])
        m.d.comb += [
            Assert(builder.o.valid == started, "a frame for each vector"),
            Assert(~started | (builder.o.p.frame == expected), "the frame of this vector"),
            Assert(~started | (builder.o.p.high == time[32:]), "the upper half of its time"),
            Assert(~started | (builder.o.p.wrap == wrap), "and its mark"),
        ]


class RoomSpec(Spec):
    """Every vector finds a slot in its FIFO, whatever the nodes do and however long nobody reads it; so
    the gate's word is enough, and no stamp is late by back-pressure.

    The environment promises what :class:`PathSpec` proves of the node FIFOs: one that holds its depth of
    nibbles that no vector has announced yet says that it is full. The strobe-vector FIFO is its level,
    with one that leaves counted for one clock more, as :class:`~.fifos.StreamFifoSpec` proves.
    """

    def __init__(self, room=GateRoom, gate=DropGate, window=Window, nodes=2, depth=4):
        super().__init__()
        self.room, self.gate, self.window, self.nodes, self.depth = room, gate, window, nodes, depth

    def specify(self, m: Module) -> None:
        nodes, depth, vector_depth = self.nodes, self.depth, 4 * self.depth
        geometry = Geometry(nodes=nodes, node_depth=depth, vector_depth=vector_depth, frame_depth=4)
        m.submodules.room = room = self.room(geometry)
        m.submodules.gate = gate = self.gate(nodes)
        m.submodules.window = window = self.window(nodes, depth)
        admitted, left = Signal(nodes), Signal()
        inside = Signal(range(2 * vector_depth))
        read = self.free(1, "read") & (inside != 0)
        m.d.sync += [admitted.eq(gate.admit), left.eq(read), inside.eq(inside + window.o.valid - read)]
        m.d.comb += [
            room.vector_level.eq(inside + left), room.builder_busy.eq(self.free(1, "busy")),
            room.stuck.eq(self.free(1, "stuck")),
            gate.vector_room.eq(room.room), gate.vector_half.eq(room.half), gate.backed_up.eq(room.backed_up),
            gate.pulse.eq(self.free(nodes, "pulse")), gate.live.eq(self.free(nodes, "live")),
            gate.node_full.eq(self.free(nodes, "full")), gate.node_half.eq(self.free(nodes, "half")),
            window.admitted.eq(admitted), window.end.eq(self.free(1, "end")), window.o.ready.eq(1),
            Assert(~window.o.valid | (room.vector_level < vector_depth), "every vector finds a slot"),
        ]
        for i in range(nodes):
            unsaid = Signal(range(2 * depth), name=f"unsaid{i}")
            m.d.sync += unsaid.eq(unsaid + gate.admit[i] - (window.o.valid & window.o.p.vector[i]))
            m.d.comb += Assume((unsaid != depth) | gate.node_full[i])


class WindowSpec(Spec):
    """What the window says beside the bits of its vectors: their time, whether the stamp's lower half has
    wrapped since the one before, which nibbles are late, by how much at most, and whether anything is on
    its way; with ``halvings`` and windows of one clock, also in which part of its clock each strobe came.

    The environment promises what the node FIFO does: no more nibbles than it holds.
    """

    def __init__(self, window=Window, depth=4, halvings=0):
        super().__init__()
        self.window, self.depth, self.halvings = window, depth, halvings

    def specify(self, m: Module) -> None:
        m.submodules.window = window = self.window(1, self.depth, self.halvings)
        end, admitted = self.free(1, "end"), self.free(1, "admitted")
        unsaid = Signal(range(self.depth + 2))   # the last one's window is the current one
        told = end & (unsaid != 0)
        said, now, wrap = Signal(TO_VECTOR), self.free(64, "now"), self.free(1, "wrap")
        wraps = Signal()                         # since the last vector
        marked = _past(m, wrap | wraps, TO_VECTOR, "marked")[-1]
        on_its_way, came = Signal(), Signal()
        ahead, late = Signal(range(self.depth + 2)), Signal()
        most = [Signal(range(self.depth), name=f"most{k}") for k in range(2)]
        lag = Mux(came, unsaid - 1, 0)           # of the nibble that has just come
        m.d.comb += [window.admitted.eq(admitted), window.end.eq(end),
            window.now.eq(now), window.wrap.eq(wrap), Assume((unsaid != self.depth) | ~admitted)]
        m.d.sync += [
            unsaid.eq(unsaid + admitted - told), said.eq(Cat(told, said)), came.eq(admitted),
            on_its_way.eq(admitted | (unsaid != 0) | said.any()), ahead.eq(lag), late.eq(ahead != 0),
            wraps.eq((wrap | wraps) & ~told), most[0].eq(Mux(lag > most[0], lag, most[0])), most[1].eq(most[0]),
        ]
        m.d.comb += [
            Assert(window.o.valid == said[-1], "a vector for each window that has something to say"),
            Assert(~said[-1] | (window.o.p.time == _past(m, now, TO_VECTOR, "now")[-1]), "the time of its window"),
            Assert(~said[-1] | (window.o.p.wrap == marked), "marked if it is the first after a wrap"),
            Assert(window.pending == on_its_way, "pending if and only if something is on its way"),
            Assert(window.carried == late, "carried if and only if another of its node waits before it"),
            Assert(Cat(window.beyond) == most[1] + 2, "the largest lag"),
        ]
        if self.halvings:
            half, short = self.free(self.halvings, "half"), Signal(init=1)      # windows of one clock, so far
            m.d.sync += short.eq(short & end)
            m.d.comb += [
                window.half.eq(half),
                Assert(~said[-1] | ~short | (window.o.p.halves == _past(m, half, TO_VECTOR + 1, "half")[-1]),
                       "the part of the clock in which its strobe came"),
            ]
