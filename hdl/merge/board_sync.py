"""Synchronization of several boards to one time: sync in and sync out.

The paper has one board; a machine of more than 32 nodes needs several, and one time for all of them.
"""

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import Geometry, Window

__all__ = ["PERIOD_CLOCKS", "QUIET_CLOCKS", "BoardSync", "period_bits"]

#: Minimum period of the wave, in clocks; the period is less than twice as long.
PERIOD_CLOCKS = 1024
#: A board that follows starts at a rise that comes after the line has been low for this number of clocks.
QUIET_CLOCKS = 4096
#: Number of periods without a rise after which the line counts as lost.
PATIENCE = 4


def period_bits(clocks: int) -> int:
    """Binary logarithm of the number of windows of ``clocks`` clocks in a period of the wave."""
    return max(1, -(-PERIOD_CLOCKS // clocks) - 1).bit_length()


class BoardSync(wiring.Component):
    """Keeps the time of a board that follows another one in step with it.

    Every board whose time runs drives a square wave on ``sync_out``: it rises at time 0 and then with
    each window whose number is a multiple of the period, which is 1024 to 2047 clocks. A board that *follows*
    receives the wave of another board on ``sync_in``. It starts its time at the first rise that comes
    after the line has been low for longer than in any wave, so it cannot be off by whole periods. A follower that is
    enabled too late therefore waits for the next run. From then on each rise shows whether its own time is ahead
    or late; if so, one of its windows is made one clock longer or shorter. Its time therefore never
    steps back, its stamps stay in order, and its mean clock rate is that of the other board. One
    clock per period compensates for a difference of the two oscillators of at least 488 ppm.

    When time starts, and whenever a rise finds own time right, window 0 of the follower
    begins more than three and at most four clocks, plus the delay of the line, after that of
    the other board: two flip-flops, the start, and the position of the rise within the clock. Time stamps are
    :data:`~.layout.SYNC_LAG` clocks late; the host subtracts that together with the latency.

    Parameters
    ----------
    geometry : the board's geometry.

    Members
    -------
    sync_in : the wave of another board, asynchronous.
    sync_out : the wave of this board, whether it follows or not.
    follow : this board follows; to be changed only in a reset.
    enable : capture is enabled.
    window, now, running, corrected : from the time base.
    start, longer, shorter : to the time base.
    waits : enabled, but time has not started because the first rise has not come.
    missing : the wave has been absent for :data:`PATIENCE` periods at some time since the reset.
    longer_count, shorter_count : windows made one clock longer and shorter, modulo 2**16.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        super().__init__({
            "sync_in": In(1), "sync_out": Out(1), "follow": In(1), "enable": In(1),
            "window": In(2), "now": In(64), "running": In(1), "corrected": In(1),
            "start": Out(1), "longer": Out(1), "shorter": Out(1),
            "waits": Out(1), "missing": Out(1), "longer_count": Out(16), "shorter_count": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        bits = [period_bits(self.geometry.window_clocks(w)) for w in Window]
        second_half = Signal()
        m.d.comb += second_half.eq(Array(self.now[b - 1] for b in bits)[self.window])
        m.d.sync += self.sync_out.eq(self.running & ~second_half)

        seen = Signal()
        before = Signal(init=1)
        rise = Signal()
        low_for = Signal(range(QUIET_CLOCKS + 1))   # clocks
        m.submodules.sync_in = FFSynchronizer(self.sync_in, seen, init=1)
        m.d.comb += rise.eq(seen & ~before)
        m.d.sync += before.eq(seen)
        with m.If(seen):
            m.d.sync += low_for.eq(0)
        with m.Elif(~low_for[-1]):
            m.d.sync += low_for.eq(low_for + 1)
        m.d.comb += [
            self.start.eq(self.enable & (~self.follow | (rise & low_for[-1]))),
            self.waits.eq(self.enable & self.follow & ~self.running),
        ]

        # Own time is right if a rise comes in the clock before a period begins, as the
        # first one does. Both are examined two clocks later.
        rose = Signal(2)
        half = Signal(2)
        judged = Signal()
        begins = Signal()
        m.d.sync += [rose.eq(rose << 1 | (rise & self.running & self.follow)), half.eq(half << 1 | second_half)]
        m.d.comb += [judged.eq(rose[1]), begins.eq(half[1] & ~half[0])]
        with m.If(self.corrected):
            m.d.sync += [
                self.longer.eq(0), self.shorter.eq(0),
                self.longer_count.eq(self.longer_count + self.longer),
                self.shorter_count.eq(self.shorter_count + self.shorter),
            ]
        with m.If(judged & ~begins):
            m.d.sync += [self.longer.eq(~half[0]), self.shorter.eq(half[0])]

        periods = Signal(range(PATIENCE + 1))       # begun since the last rise
        with m.If(judged):
            m.d.sync += periods.eq(0)
        with m.Elif(begins & self.follow):
            m.d.sync += periods.eq(periods + 1)
        with m.If(periods == Const(PATIENCE)):
            m.d.sync += [self.missing.eq(1), periods.eq(0)]
        return m
