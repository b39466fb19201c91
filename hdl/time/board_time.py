"""Board time: the window's number, for every stage that stamps or waits."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import Extra, Geometry, Sink
from ..lib.signatures import board_clock, skipping
from ..lib.spine import in_spine
from .board_sync import BoardSync
from .echo import Echo
from .timebase import Timebase

__all__ = ["BoardTime", "mark_time", "time_settings"]


def time_settings(geometry: Geometry) -> wiring.Signature:
    """Signature of the host's time settings, as seen from the registers.

    enable : capture is enabled.
    window : the setting in force.
    mask : nodes that are captured.
    follow : time follows another board's, as in force; 0 on a board that cannot follow.
    waits, missing, longer_count, shorter_count : state of following, see :class:`~.board_sync.BoardSync`.
    echo : see :class:`~.echo.Echo`, on a board that has it.
    pin : TRIGGER_PIN, on a board with ``trigger_in``.
    own : see :class:`~.board_sync.BoardSync`, on a board with the extra ``drift``.
    """
    nodes = geometry.nodes
    return wiring.Signature({
        "enable": Out(1), "window": Out(2), "mask": Out(nodes, init=-1 % (1 << nodes)), "follow": Out(1),
        "waits": In(1), "missing": In(1), "longer_count": In(16), "shorter_count": In(16),
        **({"echo": In(32)} if Extra.ECHO in geometry.extras else {}),
        **({"pin": Out(2)} if Extra.TRIGGER_IN in geometry.extras else {}),
        **({"own": Out(1)} if Extra.DRIFT in geometry.extras else {}),
    })


def mark_time(geometry: Geometry) -> wiring.Signature:
    """Signature between marks and time, as seen from the time; only on a board with marks.

    off, early : see :class:`~.board_sync.BoardSync`; only with the extra ``drift``.
    triggered : ``trigger_in`` has risen, for one clock; only on a board that has it.
    """
    return wiring.Signature({
        **({"off": Out(1), "early": Out(1)} if Extra.DRIFT in geometry.extras else {}),
        **({"triggered": In(1)} if Extra.TRIGGER_IN in geometry.extras else {}),
    })


class BoardTime(wiring.Component):
    """Contains the time base and, on a board that can follow another one, the synchronization between them.

    Members
    -------
    settings : see :func:`time_settings`.
    clear : reset in progress.
    skip : see :func:`~.signatures.skipping`.
    sync_in, sync_out : only on a board that can follow, see :class:`~.board_sync.BoardSync`.
    marks : see :func:`mark_time`; only on a board with marks.
    o : see :func:`~.signatures.board_clock`.
    """

    def __init__(self, geometry: Geometry):
        self.geometry = geometry
        super().__init__({
            "settings": In(time_settings(geometry)), "clear": In(1), "skip": In(skipping()),
            "o": Out(board_clock(geometry)),
            **({"sync_in": In(1), "sync_out": Out(1)} if geometry.synced else {}),
            **({"marks": Out(mark_time(geometry))} if geometry.marked else {}),
        })

    def elaborate(self, platform):
        m = Module()
        geometry, settings, merge = self.geometry, self.settings, self.o.window
        nodes = geometry.nodes
        m.submodules.timebase = in_spine(timebase := Timebase(geometry, geometry.synced))
        live = Signal(nodes)
        open_ = self._between_triggers(m) if Extra.TRIGGER_IN in geometry.extras else 1
        m.d.sync += live.eq(
            settings.mask & (settings.enable & ~self.clear & ~settings.waits & open_).replicate(nodes))
        tied = m.d.sync if Sink.EXTENDED in geometry.sinks else m.d.comb
        tied += [
            merge.end.eq(timebase.end), merge.now.eq(timebase.now), merge.wrap.eq(timebase.wrap),
            merge.live.eq(live), merge.enable.eq(settings.enable),
        ]
        untied = m.d.comb if geometry.narrow else m.d.sync
        untied += self.o.now.eq(timebase.now)
        m.d.comb += [
            timebase.window.eq(settings.window), timebase.advance.eq(self.skip.advance),
            timebase.shift.eq(self.skip.shift), self.o.left.eq(timebase.left), self.o.running.eq(timebase.running),
        ]
        if not geometry.synced:
            m.d.comb += timebase.start.eq(settings.enable)
            return m

        m.submodules.board_sync = sync = in_spine(BoardSync(geometry))
        m.d.comb += [
            sync.sync_in.eq(self.sync_in), self.sync_out.eq(sync.sync_out),
            sync.follow.eq(settings.follow), sync.enable.eq(settings.enable), sync.window.eq(settings.window),
            sync.now.eq(timebase.now), sync.running.eq(timebase.running), sync.corrected.eq(timebase.corrected),
            timebase.longer.eq(sync.longer), timebase.shorter.eq(sync.shorter), timebase.start.eq(sync.start),
            settings.waits.eq(sync.waits), settings.missing.eq(sync.missing),
            settings.longer_count.eq(sync.longer_count), settings.shorter_count.eq(sync.shorter_count),
        ]
        if Extra.ECHO in geometry.extras:
            m.submodules.echo = echo = in_spine(Echo())
            m.d.comb += [echo.out.eq(sync.sync_out), echo.rise.eq(sync.risen), settings.echo.eq(echo.result)]
        if Extra.DRIFT in geometry.extras:
            m.d.comb += [
                sync.own.eq(settings.own), self.marks.off.eq(sync.off), self.marks.early.eq(sync.early)]
        return m

    def _between_triggers(self, m: Module) -> Signal:
        """Whether the rises of ``trigger_in`` let items be captured now."""
        start, stop = self.settings.pin
        rises = Signal(2)       # since the reset, at most 2
        open_ = Signal()
        with m.If(self.clear):
            m.d.sync += rises.eq(0)
        with m.Elif(self.marks.triggered & ~rises[1]):
            m.d.sync += rises.eq(rises + 1)
        m.d.comb += open_.eq((~start | (rises != 0)) & ~(stop & Mux(start, rises[1], rises != 0)))
        return open_
