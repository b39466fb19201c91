"""Line aligner: finds the frames in the samples of the line."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_FRAME_CLOCKS, LINK_SYNC

__all__ = ["LineAligner"]

#: Frames in a row that do not pass their check, after which the line is searched again.
_MISSES = 4
#: Bits from a place that was tried in vain to the first one at which the search continues, one frame later.
_RESUMES = 4
#: Frames in which the frames of a line are found, whatever they contain. Each place that is tried in vain takes one
#: frame and is at least so much later in its frame than the one before; none is in the eight bits before the next
#: frame's sync. The places of one frame take another one; then come two good frames, and the rest of one.
_FOUND = 2 * LINK_FRAME_CLOCKS // _RESUMES + 4
#: Frames without a lock after which the other samples are tried; four frames with a lock make up for one.
_PATIENCE = 72
assert _FOUND < _PATIENCE


class LineAligner(wiring.Component):
    """Turns four samples per clock, two per bit, into the pairs of bits of each frame.

    The transmitter has this clock, so the bits never drift: it is enough to choose which sample of each bit counts,
    and which bit begins a frame. A position that looks like a sync is tried for a frame. The line is locked when two
    frames in a row have passed their check; it is searched again when four in a row have not. A search continues four
    bits after the position that was no frame, so it finds the frames after at most 61 positions. The other samples are
    tried after 72 frames without a lock. A lock gives back a quarter of the time that it lasts, not more: samples at
    the edge of a bit are right for some frames now and then.

    Parameters
    ----------
    patience : number of frames without a lock after which the other samples are tried, if the line was locked for four
        times as long before, or never; benches set other values.

    Members
    -------
    samples : of one clock, the first one lowest; 0 and 2 are half a bit before 1 and 3.
    good, bad : verdict on a frame, in the first four clocks of the next one.
    collecting : ``bits`` belong to a frame.
    bits, count : two bits of a frame, and which: clock 0..127 of it.
    trusted : one good frame was seen at this position: the next good one counts.
    locked : from the verdict on the second good frame on, until the last bad one.
    """

    def __init__(self, patience: int = _PATIENCE):
        self.patience = patience
        super().__init__({
            "samples": In(4), "good": In(1), "bad": In(1),
            "collecting": Out(1), "bits": Out(2), "count": Out(range(LINK_FRAME_CLOCKS)),
            "trusted": Out(1), "locked": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        late, offset = Signal(), Signal()
        window = Signal(11)      # the first bit lowest
        matches = Signal(2)
        misses = Signal(range(_MISSES))
        patience = self.patience * LINK_FRAME_CLOCKS
        left = Signal(range(patience), init=patience - 1)
        fresh = Mux(late, Cat(self.samples[1], self.samples[3]), Cat(self.samples[0], self.samples[2]))
        m.d.sync += window.eq(Cat(window[2:], fresh))
        m.d.comb += [
            *(matches[o].eq(window[2 + o:10 + o] == LINK_SYNC) for o in range(2)),
            self.bits.eq(Mux(offset, window[1:3], window[:2])),
        ]
        m.d.sync += [self.count.eq(self.count + 1), left.eq(left - 1)]
        with m.If(~self.collecting):
            with m.If(matches.any()):
                m.d.sync += [
                    self.collecting.eq(1), self.count.eq(0), offset.eq(~matches[0]), self.trusted.eq(0),
                    misses.eq(0)]
        with m.Elif(self.good):
            m.d.sync += [self.trusted.eq(1), self.locked.eq(self.trusted), misses.eq(0)]
        with m.Elif(self.bad):
            m.d.sync += [self.trusted.eq(self.locked), misses.eq(misses + 1)]
            with m.If(~self.locked | (misses == _MISSES - 1)):
                m.d.sync += [self.collecting.eq(0), self.locked.eq(0), self.trusted.eq(0)]
        with m.If(self.locked):
            m.d.sync += left.eq(Mux(self.count[:2].any() | (left == left.init), left, left + 1))
        with m.Elif((left == 0) & ~self.good):
            m.d.sync += [left.eq(left.init), late.eq(~late), self.collecting.eq(0), self.trusted.eq(0)]
        return m
