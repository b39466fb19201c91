"""Blocker: wraps what the sources say into blocks, the one container of every link."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .block_source import BEAT_BITS, block_source
from .crc import Crc32
from .fifo import StreamFifo
from .layout import BLOCK_MAGIC, FORMAT_VERSION, LATENCY, BlockType, Geometry

__all__ = ["Blocker", "beat_layout"]


def beat_layout() -> data.StructLayout:
    """A beat of the stream: 16 bytes, byte 0 lowest, and whether it ends a block."""
    return data.StructLayout({"data": BEAT_BITS, "last": 1})


class Blocker(wiring.Component):
    """Header, payload, trailer; a beat of 16 bytes a clock.

    Only whole blocks leave, whatever happens: when a reset (``clear``) comes while one is under
    way, the rest of its payload is zero and its trailer says CUT. The lowest source that asks goes
    first. Behind it stand only the few beats that keep the pace; when they cannot leave, the
    sources wait.

    Parameters
    ----------
    geometry : of the board.
    types : type of each source's blocks, most urgent first.

    Members
    -------
    source : the sources.
    epoch, window : for the header.
    clear : a reset is going on.
    o : beats.
    active : index of the source whose block is under way ...
    busy : ... if one is, or beats wait to leave.
    """

    def __init__(self, geometry: Geometry, types: tuple[BlockType, ...]):
        self.geometry, self.types = geometry, types
        super().__init__({
            **{f"source{k}": In(block_source()) for k in range(len(types))},
            "epoch": In(16), "window": In(2), "clear": In(1),
            "o": Out(stream.Signature(beat_layout())),
            "active": Out(range(len(types))), "busy": Out(1), "underway": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = Crc32()
        m.submodules.fifo = fifo = StreamFifo(beat_layout(), 16)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        sources = [getattr(self, f"source{k}") for k in range(len(self.types))]

        # A beat enters the FIFO one clock after its state: room is kept for those.
        room = Signal()
        m.d.sync += room.eq(fifo.level < 12)

        header = Signal(data.StructLayout({"type": 8, "length": 16, "time": 64, "epoch": 16, "window": 8}))
        sequence, left = Signal(32), Signal(13)
        cut, count = Signal(), Signal(2)
        beat, valid, last = Signal(BEAT_BITS), Signal(), Signal()
        feed, feed_first = Signal(), Signal()
        payload = Array(s.beats.p for s in sources)[self.active]
        available = Array(s.beats.valid for s in sources)[self.active]
        take = Signal()
        m.d.comb += [s.beats.ready.eq(take & (self.active == k) & ~cut & ~self.clear)
                     for k, s in enumerate(sources)]

        geometry = self.geometry
        m.d.sync += [valid.eq(0), last.eq(0), feed.eq(0), feed_first.eq(0)]
        m.d.comb += [
            fifo.i.valid.eq(valid), fifo.i.p.data.eq(beat), fifo.i.p.last.eq(last),
            crc.valid.eq(feed), crc.first.eq(feed_first), crc.data.eq(beat), crc.cut.eq(cut),
        ]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += cut.eq(0)
                with m.If(~self.clear):
                    for k, s in reversed(list(enumerate(sources))):
                        with m.If(s.request):
                            m.d.sync += self.active.eq(k)
                            m.next = "GRANT"
            with m.State("GRANT"):
                with m.If(self.clear | ~Array(s.request for s in sources)[self.active]):
                    m.next = "IDLE"
                with m.Else():
                    for k, s in enumerate(sources):
                        m.d.comb += s.grant.eq(self.active == k)
                    length = Array(s.length for s in sources)[self.active]
                    m.d.sync += [
                        header.type.eq(Array(Const(t, 8) for t in self.types)[self.active]),
                        header.length.eq(length),
                        header.time.eq(Array(s.time for s in sources)[self.active]),
                        header.epoch.eq(self.epoch), header.window.eq(self.window),
                        left.eq((length + 15) >> 4),
                    ]
                    m.next = "HEADER_0"
            with m.State("HEADER_0"):
                with m.If(room):
                    m.d.sync += [
                        beat.eq(Cat(Const(BLOCK_MAGIC, 32), Const(FORMAT_VERSION, 8), header.type, header.epoch,
                                    sequence, header.length, Const(0, 16))),
                        valid.eq(1), feed.eq(1), feed_first.eq(1), sequence.eq(sequence + 1),
                    ]
                    m.next = "HEADER_1"
            with m.State("HEADER_1"):
                with m.If(room):
                    m.d.sync += [
                        beat.eq(Cat(header.time, Const(geometry.nodes, 8), header.window, Const(LATENCY, 8),
                                    Const(0, 8), Const(geometry.clock_hz, 32))),
                        valid.eq(1), feed.eq(1),
                    ]
                    m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                m.d.comb += take.eq(room)
                m.d.sync += [beat.eq(Mux(cut | self.clear, 0, payload)), count.eq(0)]
                with m.If(room & (available | cut | self.clear)):
                    m.d.sync += [valid.eq(1), feed.eq(1), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.next = "SUM"
            with m.State("SUM"):
                # The last beat is in the register now, in the sum two clocks later.
                m.d.sync += count.eq(count + 1)
                with m.If(count == 3):
                    m.next = "TRAILER"
            with m.State("TRAILER"):
                with m.If(room):
                    m.d.sync += [
                        beat.eq(Cat(cut, Const(0, 95), crc.crc)), valid.eq(1), last.eq(1),
                    ]
                    m.next = "IDLE"
        with m.If(self.clear & ~fsm.ongoing("IDLE") & ~fsm.ongoing("GRANT")
                  & ~fsm.ongoing("SUM") & ~fsm.ongoing("TRAILER")):
            m.d.sync += cut.eq(1)
        m.d.comb += [
            self.underway.eq(~fsm.ongoing("IDLE")),
            self.busy.eq(~fsm.ongoing("IDLE") | valid | (fifo.level != 0)),
        ]
        return m
