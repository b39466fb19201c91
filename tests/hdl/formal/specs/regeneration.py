"""Specifications of a regeneration board's gate and of its words."""

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal
from hypermon.hdl.layout import LINK_BYTES, LINK_SYNC
from hypermon.hdl.lib.fifo import SmallFifo, StreamFifo
from hypermon.hdl.regeneration.byte_coder import ByteCoder
from hypermon.hdl.regeneration.moment_gate import MomentGate
from hypermon.hdl.store_port import StorePort

from ..prover import Spec, exposing, opened, using
from .memory import WatchedRam
from .order import watch_fifo

__all__ = ["ByteCoderSpec", "MomentGateSpec", "StorePortSpec"]


class MomentGateSpec(Spec):
    """Each item is refused, or is in a moment that comes out in its order; an outage ends only at half. Whoever is told
    that the gate tears knows of each nibble that is not queued. A node is refused alone only if it takes its part of
    the FIFO, and always then."""

    def __init__(self, gate=MomentGate, depth=8):
        super().__init__()
        self.gate = using(gate, StreamFifo=using(StreamFifo, Ram=WatchedRam))
        self.depth = depth

    def specify(self, m: Module) -> None:
        m.submodules.gate = gate = self.gate(depth=self.depth)
        start, further = self.free(2, "start"), self.free(2, "further")
        framed = Signal()
        m.d.comb += [
            gate.start.eq(start), gate.further.eq(further & ~start), gate.now.eq(self.free(1, "now")),
            gate.o.ready.eq(self.free(1, "ready")), gate.framed.eq(framed),
        ]
        came = gate.admit | (gate.further & ~gate.tears.replicate(8))
        push, pop = came.any(), gate.o.valid & gate.o.ready
        count = watch_fifo(
            m, self, name="moments", depth=self.depth, push=push, pop=pop,
            first_in=Cat(came[:2], further & ~start, gate.now[0]),
            first_out=Cat(gate.o.p.mask[:2], gate.o.p.more[:2], gate.o.p.stamp[0]), valid=gate.o.valid, patience=2)
        outage, own, full = Signal(), Signal(range(self.depth + 1)), Signal()
        with m.If(gate.tears):
            m.d.sync += outage.eq(1)
        with m.Elif(push):
            m.d.sync += outage.eq(0)
        m.d.sync += [own.eq(own + came[0] - (pop & gate.o.p.mask[0])),
                     full.eq(own >= Mux(framed, self.depth // 8, self.depth // 2))]
        alone = gate.refused[0] & ~gate.tears
        m.d.comb += [
            Assert((gate.admit ^ gate.refused) == gate.start, "one of the two"),
            Assert(~gate.tears | ((start | further).any() & (gate.refused == gate.start)), "all of a clock"),
            Assert(gate.tears | (alone == (gate.start[0] & full)), "a node that takes its part, and no other"),
            Assert(~gate.o.valid | gate.o.p.mask.any(), "no empty moment"),
            Assert(~(push & outage) | (count <= self.depth // 2), "reopens at half"),
        ]


class ByteCoderSpec(Spec):
    """Who reads the bytes as the document says has each moment's time, nodes and nibbles, each once, and nothing else.

    It begins with the first slot in which an item may be coded, so that what is wrong is seen after a few clocks."""

    #: Two slots, of which one is complete.
    induction = 10

    def __init__(self, coder=ByteCoder):
        super().__init__()
        self.coder, self.inside = exposing(coder)

    def specify(self, m: Module) -> None:
        coder = self.coder()
        m.submodules.coder = opened(coder)
        now, moment = Signal(12, init=8), coder.i.p
        m.d.sync += now.eq(now + 1)
        phase, slot = now[:2], now[2:7]
        kept, held, framed = Signal(60), Signal(), Signal()
        m.d.sync += [held.eq(coder.i.valid & ~coder.i.ready), kept.eq(moment)]
        m.d.comb += [
            coder.now.eq(now), coder.side.eq(self.free(4, "side")), coder.i.valid.eq(self.free(1, "valid")),
            moment.eq(self.free(60, "moment")), Assume(~held | (coder.i.valid & (moment.as_value() == kept))),
            Assume(moment.mask.any()), coder.framed.eq(framed),
        ]
        # The reader: a byte in phase 3. What the coder has taken in phase 2 is still known.
        at, low, read = Signal(12), Signal(8), Signal(8)
        taken, last, more = Signal(), Signal(60), Signal()
        m.d.sync += [taken.eq(coder.i.ready & coder.i.valid), last.eq(moment)]
        was = Signal.like(coder.i.p)
        m.d.comb += was.eq(last)
        node, nibble = coder.byte[4:7], coder.byte[:4]
        bit = Signal(8)
        m.d.comb += bit.eq(1 << node)
        with m.If(phase == 3):
            with m.If(slot == 31):
                m.d.comb += Assert(coder.byte == LINK_SYNC, "sync")
            with m.If(slot == 0):
                m.d.sync += low.eq(coder.byte)
            with m.If(slot == 1):
                m.d.sync += [at.eq(Cat(Const(0, 7), now[7:]) - Cat(low, coder.byte[:4])), more.eq(0)]
            with m.If((slot >= 2) & (slot < 2 + LINK_BYTES)):
                m.d.comb += Assert(coder.sent == (coder.byte[7] & ~more), "counts the items that it sends")
                with m.If(coder.byte[7]):
                    m.d.comb += [
                        Assert(was.stamp == at, "at its time"), Assert((was.mask & bit).any(), "of its moment"),
                        Assert(~(read & bit).any(), "once"), Assert(coder.node == node, "of the node that is counted"),
                        Assert((was.more & bit).any() == more, "begins an item, or does not"),
                        Assert(nibble == was.nibbles.word_select(node, 4), "its nibble"),
                        Assert(taken == ((read | bit) == was.mask), "until all are sent"),
                    ]
                    m.d.sync += read.eq(Mux(taken, 0, read | bit))
                with m.Else():
                    m.d.comb += Assert(~taken, "takes nothing that is not sent")
                    m.d.sync += [at.eq(at + coder.byte[:6]), more.eq(coder.byte[6])]
            with m.Else():
                m.d.comb += Assert(~coder.sent & ~taken, "nothing elsewhere")
        m.d.comb += Assert((phase == 3) | ~taken, "nothing elsewhere")
        done = self.inside["done"]
        m.d.comb += Assert((done == 0) | (held & ((done & ~kept[:8]) == 0) & (done != kept[:8])),
                           "something is left of a moment that has begun")
        with m.If((phase != 3) & (slot >= 2) & (slot < 2 + LINK_BYTES)):
            m.d.comb += [
                Assert(self.inside["cursor"] == at, "the coder's time is the reader's"),
                Assert(self.inside["done"] == read, "it knows what it has sent"),
                Assert(self.inside["told"] == more, "it knows what it has said of those that follow"),
            ]
        with m.Elif(phase != 3):
            m.d.comb += Assert(self.inside["done"] == read, "and also between frames")


class StorePortSpec(Spec):
    """No word of an admitted event is dropped, whatever the node stores and whenever: room for all of them is reserved
    with the first one. Each event is queued or told as refused."""

    def __init__(self, port=StorePort):
        super().__init__()
        self.fifos = fifos = []

        class Kept(SmallFifo):
            def __init__(self, *args):
                super().__init__(*args)
                fifos.append(self)

        copy, self.inside = exposing(port)
        self.port = using(copy, SmallFifo=Kept)

    def specify(self, m: Module) -> None:
        port = self.port(depth=8)
        m.submodules.port = opened(port)
        (fifo,), inside, bus = self.fifos, self.inside, port.bus
        m.d.comb += [
            *(getattr(bus, name).eq(self.free(len(getattr(bus, name)), name))
              for name in ("cyc", "stb", "we", "sel", "dat_w")),
            port.refused.ready.eq(self.free(1, "ready")),
        ]
        first = bus.ack & bus.we & (inside["more"] == 0) & bus.dat_w[:4].any()
        untold = Signal(8)
        m.d.sync += untold.eq(untold + (first & ~fifo.i.valid) - (port.refused.valid & port.refused.ready))
        reserved = Mux(inside["keeps"], inside["more"], 0)
        m.d.comb += [
            Assert(inside["free"] + fifo.level + reserved == 8, "free, used and reserved words are all words"),
            Assert(~fifo.i.valid | fifo.i.ready, "no word is dropped"),
            Assert(untold == inside["untold"], "each refused event is told"),
            Assert(~(first & fifo.i.valid) | (inside["free"] > bus.dat_w[2:4]), "room for the whole event"),
        ]
