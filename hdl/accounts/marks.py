"""Marks: the moments at which pins have risen, as records in the stream."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ..layout import EXTRA_PINS, MARK_LATENCY, MARK_RECORD, SYNC_LAG, Extra, Geometry, MarkSource
from ..lib.fifo import SmallFifo
from ..stream.block_source import block_source

__all__ = ["QUEUE_DEPTH", "Marks"]

#: Marks that wait for a block.
QUEUE_DEPTH = 16
#: Clocks from one block to the next.
PAUSE = 1 << 16

#: The source that the records of each extra name.
_SOURCES = {Extra.PPS: MarkSource.PPS, Extra.TRIGGER_IN: MarkSource.TRIGGER}
_MARK = data.StructLayout({"source": 8, "left": 16, "number": 32, "stamp": 64})


class Marks(wiring.Component):
    """Writes a MARK record for every rise of a pin.

    Each rise of a pin has a number, counted from the reset. On a board with the extra ``drift``, rises of ``sync_in``
    that show how far its clock has drifted are marks, too, as if of another pin. While the queue is full, or another
    pin has risen in the same clock or the one before, a mark waits; a second rise of the same pin meanwhile replaces
    it. A mark that was replaced is missing in the numbers, so the host sees it. Blocks have a pause between them, so a
    pin that toggles all the time takes no more than a hundredth of a fast link. A pin must be low for a clock before
    each rise.

    Parameters
    ----------
    geometry : the board's geometry; the pins that exist depend on it.
    pause : clocks from one block to the next, while capture is enabled; benches set other values.

    Members
    -------
    pps_in, trigger_in : levels of the pins that exist, asynchronous.
    triggered : only with ``trigger_in``: it has risen, two flip-flops after the pad, for one clock.
    off, early : see :class:`~.board_sync.BoardSync`; only with the extra ``drift``.
    now : the window's number.
    left : the clocks to the window's end, one clock before ``now``.
    follows : time follows another board's.
    enable, running : capture is enabled; time runs. A rise counts only then.
    source : MARK blocks; time is that of the request.
    busy : a mark is on its way, or waits.
    """

    def __init__(self, geometry: Geometry, pause: int = PAUSE):
        self.pause = pause
        #: The pins that exist, by name.
        self.pins = {name: _SOURCES[extra] for extra, name in EXTRA_PINS.items() if extra in geometry.extras}
        self.drifts = Extra.DRIFT in geometry.extras
        super().__init__({
            **dict.fromkeys(self.pins, In(1)), "now": In(64), "left": In(16), "follows": In(1),
            "enable": In(1), "running": In(1), "source": Out(block_source()), "busy": Out(1),
            **({"triggered": Out(1)} if Extra.TRIGGER_IN in geometry.extras else {}),
            **({"off": In(1), "early": In(1)} if self.drifts else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = SmallFifo(_MARK, QUEUE_DEPTH)
        waits = Signal(len(self.pins) + self.drifts)
        first = Signal.like(waits)              # the one that enters the queue
        rise = Signal.like(waits)               # for one clock, two flip-flops after the pad
        remains = Signal(16, reset_less=True)   # clocks to the end of the window `now`
        m.d.comb += first.eq(waits & -waits)
        m.d.sync += remains.eq(self.left)
        causes, marks, busy = [], [], [waits.any(), queue.level != 0]
        for k, (pin, source) in enumerate(self.pins.items()):
            seen, before = Signal(init=1), Signal(init=1)
            m.submodules[f"pin{k}"] = FFSynchronizer(getattr(self, pin), seen, init=1)
            m.d.sync += before.eq(seen)
            m.d.comb += rise[k].eq(seen & ~before & self.running & self.enable)
            if source == MarkSource.TRIGGER:
                m.d.comb += self.triggered.eq(rise[k])
            causes.append(Const(source, 8))
        if self.drifts:
            early = Signal()
            m.d.comb += rise[-1].eq(self.off & self.running & self.enable)
            with m.If(self.off):
                m.d.sync += early.eq(self.early)
            causes.append(Mux(early, MarkSource.SYNC_EARLY, MarkSource.SYNC_LATE))
        for k, source in enumerate(causes):
            mark, number = Signal(_MARK, name=f"mark{k}", reset_less=True), Signal(32, name=f"number{k}")
            stamp, left, mine = (Signal(n, name=f"{name}{k}", reset_less=True) for name, n in (
                ("stamp", 64), ("left", 16), ("mine", 32)))
            m.d.comb += [
                mark.source.eq(source), mark.stamp.eq(stamp), mark.left.eq(left), mark.number.eq(mine)]
            # `off` comes a clock after the rise.
            late = Signal(MARK_LATENCY - 1 - (k == len(self.pins)), name=f"late{k}")
            m.d.sync += late.eq(Cat(rise[k], late))
            with m.If(late[-1]):
                m.d.sync += [
                    stamp.eq(self.now), left.eq(remains), mine.eq(number), number.eq(number + 1), waits[k].eq(1)]
            with m.Elif(queue.i.ready & first[k]):
                m.d.sync += waits[k].eq(0)
            marks.append(mark)
            busy.append(late.any())
        for k, mark in enumerate(marks):
            with m.If(first[k]):
                m.d.comb += queue.i.p.eq(mark)
        m.d.comb += [queue.i.valid.eq(waits.any()), self.busy.eq(Cat(*busy, rise, self._send(m, queue)).any())]
        return m

    def _send(self, m: Module, queue: SmallFifo) -> Signal:
        """A beat per record; a block has those that wait when it is granted. Returns whether one is pending."""
        source, beats, head = self.source, self.source.beats, queue.o.p
        owed = Signal.like(queue.level)
        latency = Signal(8)
        asking = Signal()
        pause = Signal(range(self.pause + 1))
        m.d.sync += asking.eq(queue.o.valid & (owed == 0) & ~source.grant & ((pause == 0) | ~self.enable))
        with m.If(source.grant):
            m.d.sync += pause.eq(self.pause)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        m.d.comb += [
            latency.eq(Mux(self.follows, MARK_LATENCY - SYNC_LAG, MARK_LATENCY)),
            source.request.eq(asking), source.length.eq(queue.level * MARK_RECORD.bytes), source.time.eq(self.now),
            beats.valid.eq(owed != 0), queue.o.ready.eq(beats.ready & (owed != 0)),
            beats.p.eq(Cat(head.source, latency, head.left, head.number, head.stamp)),
        ]
        with m.If(source.grant):
            m.d.sync += owed.eq(queue.level)
        with m.Elif(beats.ready & (owed != 0)):
            m.d.sync += owed.eq(owed - 1)
        return Cat(asking, owed != 0, pause != 0).any()
