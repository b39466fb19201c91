"""Link life: tells by its age whether a regeneration board is the one that it was, a restarted one, or another."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_FRAME_CLOCKS, LINK_SILENT, LINK_SUPERFRAME
from .link_counts import COUNT_BITS

__all__ = ["LinkLife"]

#: Bits of times in frames: those after which an age wraps (16 days at 100 MHz).
_BITS = COUNT_BITS + (LINK_SUPERFRAME & -LINK_SUPERFRAME).bit_length() - 1
#: By how many frames the time of a birth may move: a cable of another length, and the fraction of a frame. It is less
#: than the time in which a transmitter sends nothing, so two lives never have the same birth.
_MOVES = 2
assert LINK_SUPERFRAME == 256 + 32


class LinkLife(wiring.Component):
    """Computes when a transmitter began, in frames since this component began, from each age that it reports.

    The transmitter has the receiver's clock. All ages of one life therefore lead to the same birth, and those of two
    lives never do, unless one life lasts for ``2**32`` superframes (18 days at 100 MHz).

    Parameters
    ----------
    frame_clocks : clocks of a frame, a power of two; benches set other values than the link's.

    Members
    -------
    marked : the first frame of an age was delivered. That of the first age is delivered ``LINK_SILENT`` frames, plus
        its own length, after the birth.
    told, age : the age of that frame, in superframes.
    sure : the frames that come are those of the last life that was reported.
    enable : capture is enabled.
    same, new, old : three clocks after ``told``, one of them is high for one clock. ``same``: the life is the last one.
        ``new``: it is another one that has begun since then, or since this component or capture began; its counts were
        0 in that time. ``old``: it is another one that may have begun before.
    known : a life was reported before; its value follows one clock after ``same``, ``new`` or ``old``.
    """

    def __init__(self, frame_clocks: int = LINK_FRAME_CLOCKS):
        self.frame_clocks = frame_clocks
        super().__init__({
            "marked": In(1), "told": In(1), "age": In(COUNT_BITS), "sure": In(1), "enable": In(1),
            "same": Out(1), "new": Out(1), "old": Out(1), "known": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        clock = Signal(_BITS + (self.frame_clocks - 1).bit_length())
        frame, began, at, off = clock[-_BITS:], Signal(_BITS), Signal(_BITS), Signal(_BITS)
        birth, enabled, doubt = Signal(_BITS), Signal(), Signal()
        steps = Signal(3)
        m.d.sync += [clock.eq(clock + 1), steps.eq(steps[:2] << 1 | self.told), enabled.eq(self.enable)]
        with m.If(self.marked):
            m.d.sync += at.eq(frame - (LINK_SILENT + 1))
        with m.If(self.told):
            m.d.sync += began.eq(at - (self.age << 8))
        with m.If(steps[0]):
            m.d.sync += began.eq(began - (self.age << 5))
        with m.If(steps[1]):
            m.d.sync += off.eq(began - birth)
        near = ((off + _MOVES)[:_BITS] <= 2 * _MOVES) & self.known
        with m.If(steps[2]):
            m.d.comb += [
                self.same.eq(near), self.new.eq(~near & ~off[-1] & ~doubt), self.old.eq(~near & (off[-1] | doubt))]
            m.d.sync += [birth.eq(began), self.known.eq(1), doubt.eq(0)]
        # Another life that is reported after this clock may have begun before it.
        with m.Elif(self.enable & ~enabled & ~self.sure):
            with m.If(self.known):
                m.d.sync += doubt.eq(1)
            with m.Else():
                m.d.sync += birth.eq(frame)
        return m
