"""Synchronization of several boards to one time: sync in and sync out.

The paper has one board; a machine of more than 32 nodes needs several, and one time for all of them.
"""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import DRIFT_CLOCKS, Extra, Geometry, Window, period_bits

__all__ = ["QUIET_CLOCKS", "BoardSync"]

#: A board that follows starts at a rise that comes after the line has been low for this number of clocks.
QUIET_CLOCKS = 4096
#: Number of periods without a rise after which the line counts as lost.
PATIENCE = 4


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

    With the extra ``drift`` a board that follows can keep its *own clock*: it starts with the wave, and no window is
    ever made longer or shorter. Rises that come a clock more or less than a period after the one before show how far it
    has drifted. One of them is reported in every :data:`~.layout.DRIFT_CLOCKS` clocks at most. At such a rise the phase
    of the wave passes a clock edge, so the host knows it to a fraction of a clock, and needs no record in between.

    Parameters
    ----------
    geometry : the board's geometry.
    spacing : least clocks from one reported rise to the next; benches set other values.

    Members
    -------
    sync_in : the wave of another board, asynchronous.
    sync_out : the wave of this board, whether it follows or not.
    follow : this board follows; to be changed only in a reset.
    enable : capture is enabled.
    window, now, running, corrected : from the time base.
    start, longer, shorter : to the time base.
    risen : ``sync_in`` has risen, for one clock; only on a board that measures echoes.
    own : it keeps its own clock while it follows; to be changed only in a reset. Only with the extra ``drift``, as are
        the next two.
    off, early : the rise of the clock before was one to be reported, for one clock; it came a clock early, not late.
    waits : enabled, but time has not started because the first rise has not come.
    missing : the wave has been absent for :data:`PATIENCE` periods at some time since the reset.
    longer_count, shorter_count : windows made one clock longer and shorter, modulo 2**16; with its own clock, rises
        that came a clock late and early.
    """

    def __init__(self, geometry: Geometry, spacing: int = DRIFT_CLOCKS):
        self.geometry, self.spacing = geometry, spacing
        self.drifts = Extra.DRIFT in geometry.extras
        super().__init__({
            "sync_in": In(1), "sync_out": Out(1), "follow": In(1), "enable": In(1),
            "window": In(2), "now": In(64), "running": In(1), "corrected": In(1),
            "start": Out(1), "longer": Out(1), "shorter": Out(1),
            **({"risen": Out(1)} if Extra.ECHO in geometry.extras else {}),
            **({"own": In(1), "off": Out(1), "early": Out(1)} if self.drifts else {}),
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
        if Extra.ECHO in self.geometry.extras:
            m.d.comb += self.risen.eq(rise)
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
        with m.If(judged & ~begins & ~self.own if self.drifts else judged & ~begins):
            m.d.sync += [self.longer.eq(~half[0]), self.shorter.eq(half[0])]

        periods = Signal(range(PATIENCE + 1))       # begun since the last rise
        with m.If(judged):
            m.d.sync += periods.eq(0)
        with m.Elif(begins & self.follow):
            m.d.sync += periods.eq(periods + 1)
        with m.If(periods == Const(PATIENCE)):
            m.d.sync += [self.missing.eq(1), periods.eq(0)]
        if self.drifts:
            self._drift(m, rise)
        return m

    def _drift(self, m: Module, rise: Signal) -> None:
        """Measures from rise to rise. One that is missing, or that a disturbance makes, gives other distances."""
        clocks = [self.geometry.window_clocks(w) for w in Window]
        period = Array(Const(n << period_bits(n), 11) for n in clocks)[self.window]
        since = Signal(12)      # clocks since the rise; stays at its highest
        is_early = Signal()
        is_late = Signal()
        pause = Signal(range(self.spacing))
        counts = Signal()
        reports = Signal()
        m.d.comb += [
            counts.eq(rise & self.running & self.follow & self.own),
            reports.eq(counts & (is_early | is_late) & (pause == 0)),
        ]
        m.d.sync += [
            since.eq(Mux(rise, 1, since + ~since.all())),
            is_early.eq(since == period - 2), is_late.eq(since == period),
            self.off.eq(reports), self.early.eq(is_early),
        ]
        with m.If(counts):
            m.d.sync += [
                self.longer_count.eq(self.longer_count + is_late), self.shorter_count.eq(self.shorter_count + is_early)]
        with m.If(reports):
            m.d.sync += pause.eq(self.spacing - 1)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
