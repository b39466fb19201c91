"""The one global clock: window ends and a 64-bit time stamp.

Section 3.2.1: one time stamp generator for all nodes; its resolution is the strobe synchronization
window. Every timer elsewhere on the board is a comparison with ``now``. A simulation can therefore safely
skip idle windows.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import Geometry, Window

__all__ = ["Timebase"]

#: Bits of a quarter of the stamp. Each quarter is counted separately.
QUARTER = 16


class Timebase(wiring.Component):
    """Counts windows since time 0.

    Time 0 is the clock edge at which ``running`` is first high, one clock after ``start``;
    the first window has stamp 0. Time then continues until a reset, whatever ``start`` does.

    Parameters
    ----------
    geometry : the board's geometry.
    disciplined : windows can be made longer and shorter, one clock at a time.

    Members
    -------
    start : starts time; further pulses have no effect.
    window : :class:`~.layout.Window` in force; to be changed only while time does not run.
    advance : windows to skip, at most 2**31 - 1, added at this edge (simulation only; 0 otherwise). Without ``shift``
        the position within the window is kept.
    shift : clocks to skip in addition to these windows, modulo 2**16 (simulation only; 0 otherwise); not in the last
        two clocks of a window.
    left : clocks to the end of the window.
    running : time runs.
    end : last clock of a window.
    now : number of the current window, 64 bits.
    wrap : one clock after ``now[31:0]`` has wrapped, together with the new ``now``.
    longer, shorter : only if ``disciplined``; requests one window that is one clock longer or shorter. A
        window of one clock cannot be shorter: its number is skipped instead, and the next window has the number
        after it. The skip waits for a number that is a multiple of 16.
    corrected : only if ``disciplined``; the request is carried out at this edge, and is to be withdrawn.
    """

    def __init__(self, geometry: Geometry, disciplined: bool = False):
        self.geometry, self.disciplined = geometry, disciplined
        super().__init__({
            "start": In(1), "window": In(2), "advance": In(32), "shift": In(16), "left": Out(16),
            "running": Out(1), "end": Out(1), "now": Out(64), "wrap": Out(1),
            **({"longer": In(1), "shorter": In(1), "corrected": Out(1)} if disciplined else {}),
        })

    def elaborate(self, platform):
        m = Module()
        lengths = [self.geometry.window_clocks(w) for w in Window]
        reload = Signal(range(max(lengths) + self.disciplined))
        left = Signal.like(reload)  # clocks to the end of the window
        single = Signal()           # the window is one clock
        m.d.sync += [
            reload.eq(Array(Const(n - 1, len(reload)) for n in lengths)[self.window]),
            single.eq(Array(Const(n == 1, 1) for n in lengths)[self.window]),
        ]
        longer, shorter = Signal.like(reload), Signal.like(reload)
        pair = Signal()             # the window is two clocks
        if self.disciplined:
            m.d.sync += [longer.eq(reload + 1), shorter.eq(reload - 1), pair.eq(reload == 1)]
        ends = Signal()
        with m.If(~self.running):
            with m.If(self.start):
                m.d.sync += [self.running.eq(1), left.eq(reload)]
                m.d.comb += ends.eq(single)
        with m.Elif(self.end):
            m.d.sync += left.eq(reload)
            m.d.comb += ends.eq(single)
            if self.disciplined:
                with m.If(self.longer):
                    m.d.sync += left.eq(longer)
                    m.d.comb += [self.corrected.eq(1), ends.eq(0)]
                with m.Elif(self.shorter & single):
                    m.d.comb += self.corrected.eq(self.now[:4] == 0)
                with m.Elif(self.shorter):
                    m.d.sync += left.eq(shorter)
                    m.d.comb += [self.corrected.eq(1), ends.eq(pair)]
        with m.Else():
            m.d.sync += left.eq(left - 1 - self.shift)
            m.d.comb += ends.eq(left == 1)
        m.d.sync += self.end.eq(ends)
        m.d.comb += self.left.eq(left)

        # Counted in quarters. The upper ones change seldom: whether they change, and to what, is computed
        # ahead.
        quarters = [self.now[k:k + QUARTER] for k in range(0, 4 * QUARTER, QUARTER)]
        last_but_one = (1 << QUARTER) - 2
        full = Signal(len(quarters))   # a quarter is all ones
        above = [Signal(QUARTER, name=f"above{k}") for k in range(len(quarters))]  # ... plus one
        between = Signal(len(quarters), init=3)   # all quarters between the lowest and this are all ones
        carry = Signal()                          # the window ends, and the lowest quarter is all ones
        fills = Mux(self.end, quarters[0] == last_but_one, full[0])
        m.d.sync += carry.eq(ends & fills)
        with m.If(self.running):
            m.d.sync += [full[0].eq(fills), self.wrap.eq(carry & between[2])]
            with m.If(self.end):
                m.d.sync += quarters[0].eq(quarters[0] + 1)
                if self.disciplined:
                    # From a multiple of 16: no carry beyond the lowest bits.
                    with m.If(single & self.corrected & ~self.longer):
                        m.d.sync += quarters[0][:2].eq(2)
            for k in range(1, len(quarters)):
                m.d.sync += [above[k].eq(quarters[k] + 1), between[k].eq(full[1:k].all())]
                with m.If(carry & between[k]):
                    m.d.sync += [quarters[k].eq(above[k]), full[k].eq(quarters[k] == last_but_one)]

        # A simulation skips.
        skipped = Signal(64)
        with m.If(self.advance.any()):
            m.d.comb += skipped.eq(self.now + self.advance + self.end)
            m.d.sync += [
                self.now.eq(skipped), self.wrap.eq(skipped[2 * QUARTER] ^ self.now[2 * QUARTER]),
                full.eq(Cat(skipped[k:k + QUARTER].all() for k in range(0, 4 * QUARTER, QUARTER))),
                carry.eq(ends & skipped[:QUARTER].all()),
                *(between[k].eq(skipped[QUARTER:QUARTER * k].all()) for k in range(1, len(quarters))),
                *(above[k].eq(skipped[QUARTER * k:QUARTER * (k + 1)] + 1) for k in range(1, len(quarters))),
            ]
        return m
