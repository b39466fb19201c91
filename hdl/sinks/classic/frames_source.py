"""FRAMES blocks: raw event frames, nothing else."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...layout import BEAT_BYTES, Geometry, frame_bytes
from ...lib.deadline import Deadline
from ...stream.block_source import block_source
from .frame_builder import frame_layout

__all__ = ["BLOCK_FRAMES_MAX", "FULL_BLOCK", "FrameSource"]

#: Number of queued frames that start a block at once: large enough for headers to cost under five per cent,
#: small enough to leave the frame FIFO to bursts.
FULL_BLOCK = 64
#: Maximum number of frames per block, which keeps it under 64 KiB.
BLOCK_FRAMES_MAX = 2048


class FrameSource(wiring.Component):
    """Requests a FRAMES block when enough frames wait, or the oldest has waited long enough.

    There is no store after the frame FIFO: a block is as long as the run of frames at its head
    when it starts, so a slow link automatically gets long blocks. All its frames share bits 63..32 of
    their time, which the header carries.

    Members
    -------
    i : frames from the frame port.
    level, run, split : of the frame FIFO.
    streaming : the stream drains the frame FIFO, and will at the next clock; for a block that
        is requested then, it continues in any case.
    now, flush : window number; maximum number of windows a frame waits.
    ending : no more frames come: waiting frames leave at once.
    source : FRAMES blocks.
    hold : a block is requested or under way.
    horizon : windows until a waiting frame is flushed, all ones if none waits.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        count = range(geometry.frame_depth + 1)
        super().__init__({
            "i": In(stream.Signature(frame_layout(geometry))),
            "level": In(count), "run": In(count), "split": In(1), "streaming": In(1),
            "now": In(32), "flush": In(32), "ending": In(1),
            "source": Out(block_source(geometry.beat_bytes)), "hold": Out(1), "horizon": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        geometry, source = self.geometry, self.source
        enough = min(FULL_BLOCK, geometry.frame_depth // 4)
        most = min(BLOCK_FRAMES_MAX, geometry.frame_depth)
        size = frame_bytes(geometry.nodes)

        # The contents of the block. Between request and grant frames can only be added, so a length that
        # is one clock old is never too long.
        run = Signal(range(most + 1))
        owed = Signal(range(most + 1))
        some_owed = Signal()
        done = Signal()
        m.d.comb += done.eq(self.i.valid & self.i.ready)
        m.d.sync += run.eq(Mux(self.run > most, most, self.run))
        m.d.comb += [
            source.length.eq(run * size),
            source.time.eq(Cat(self.i.p.frame[-32:], self.i.p.high)),
            self.hold.eq(source.request | some_owed),
        ]
        with m.If(source.grant):
            m.d.sync += [owed.eq(run), some_owed.eq(1)]
        with m.Elif(done):
            m.d.sync += [owed.eq(owed - 1), some_owed.eq(owed != 1)]

        # How long the oldest frame has waited.
        m.submodules.deadline = deadline = Deadline()
        due = Signal()
        m.d.comb += [
            deadline.now.eq(self.now), deadline.limit.eq(self.flush), due.eq(deadline.due),
            deadline.idle.eq((self.level == 0) | ~self.streaming | self.hold), self.horizon.eq(deadline.horizon),
        ]

        wanted = Signal()
        m.d.sync += wanted.eq((self.level >= enough) | due | self.ending | self.split)
        with m.If(source.grant):
            m.d.sync += source.request.eq(0)
        with m.Elif(wanted & self.streaming & self.i.valid & ~self.hold):
            m.d.sync += source.request.eq(1)

        frame, beats = self.i.p.frame, source.beats
        if geometry.narrow:
            # A frame is eight beats, the lowest first.
            at = Signal(range(size // geometry.beat_bytes))
            m.d.comb += [
                beats.valid.eq(self.i.valid), beats.p.eq(frame.word_select(at, len(beats.p))),
                self.i.ready.eq(beats.ready & at.all()),
            ]
            with m.If(beats.valid & beats.ready):
                m.d.sync += at.eq(at + 1)
            return m
        if geometry.slim:
            self._words(m, some_owed)
            return m
        if size == geometry.beat_bytes:
            m.d.comb += [beats.valid.eq(self.i.valid), beats.p.eq(frame), self.i.ready.eq(beats.ready)]
            return m

        # Frames of one beat and a half: two of them make three beats.
        rest = Signal(64)
        with m.FSM():
            with m.State("FIRST"):
                m.d.comb += [
                    beats.valid.eq(self.i.valid), beats.p.eq(frame[:128]), self.i.ready.eq(beats.ready)]
                m.d.sync += rest.eq(frame[128:])
                with m.If(done):
                    m.next = "MIDDLE"
            with m.State("MIDDLE"):
                # After an odd last frame no frame remains: padding.
                m.d.comb += [
                    beats.valid.eq(self.i.valid | ~some_owed),
                    beats.p.eq(Cat(rest, Mux(some_owed, frame[:64], Const(0, 64)))),
                    self.hold.eq(1),
                ]
                with m.If(beats.valid & beats.ready):
                    m.next = "LAST"
                    with m.If(~some_owed):
                        m.next = "FIRST"
            with m.State("LAST"):
                m.d.comb += [
                    beats.valid.eq(self.i.valid), beats.p.eq(frame[64:]), self.i.ready.eq(beats.ready)]
                with m.If(done):
                    m.next = "FIRST"
        return m

    def _words(self, m, some_owed):
        """Beats of 4 bytes, the lowest word of a frame first. Two words of zeros follow an odd frame of six words."""
        frame, beats = self.i.p.frame, self.source.beats
        words = len(frame) // len(beats.p)
        at = Signal(range(words))
        odd = Signal()          # an odd number of frames of the block has left
        pads = Signal()         # no frame follows: padding
        final = at == words - 1
        if words > BEAT_BYTES // self.geometry.beat_bytes:
            m.d.comb += pads.eq(odd & ~some_owed)
            # One more request would meet the padding of this block.
            m.d.comb += self.hold.eq(self.source.request | some_owed | odd)
        m.d.comb += [
            beats.valid.eq(self.i.valid | pads), beats.p.eq(Mux(pads, 0, frame.word_select(at, len(beats.p)))),
            self.i.ready.eq(beats.ready & final & ~pads),
        ]
        with m.If(beats.valid & beats.ready):
            m.d.sync += at.eq(at + 1)
            with m.If(final | (pads & at[0])):
                m.d.sync += [at.eq(0), odd.eq(~odd)]
