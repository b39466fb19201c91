"""Receiver: re-creates the ports of a regeneration board's nodes from its line."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_FRAME_CLOCKS, LINK_NODES, LINK_REPLAY_CLOCKS, PORT_BITS
from ..lib.fifo import StreamFifo
from .frame_checker import FrameChecker
from .line_aligner import LineAligner
from .link_code import TIME_BITS, TIMED_MOMENT
from .link_counts import COUNT_BITS
from .link_losses import LinkLosses, loss_layout
from .moment_parser import MomentParser
from .replay import Replay

__all__ = ["Receiver"]

#: Moments that wait for their replay: those of all frames in that time, each of at most 13 new ones and a rest.
_WAITING = 512
assert _WAITING >= 14 * (LINK_REPLAY_CLOCKS // LINK_FRAME_CLOCKS + 1)


class Receiver(wiring.Component):
    """Re-creates the ports of eight nodes, a constant number of clocks after those of the nodes themselves.

    Parameters
    ----------
    ram : kind of memory, see :class:`~..lib.ram.Ram`.
    time_bits : bits of the times.

    Members
    -------
    samples : see :class:`~.line_aligner.LineAligner`.
    toggles, strobe, data, further, torn : see :class:`~.replay.Replay`.
    time : the board's time, which states when losses occurred.
    locked : frames come.
    good, bad : frames that were delivered, and frames' times without one; from the first lock on.
    clear, enable, refused, lost, losses, judged, which, anew, based : see :class:`~.link_losses.LinkLosses`.
    """

    def __init__(self, ram: str = "portable", time_bits: int = 32):
        self.ram, self.time_bits = ram, time_bits
        super().__init__({
            "samples": In(4), "toggles": In(LINK_NODES), "time": In(time_bits), "clear": In(1),
            "enable": In(1),
            "strobe": Out(LINK_NODES), "data": Out(PORT_BITS * LINK_NODES),
            "further": Out(LINK_NODES), "torn": Out(LINK_NODES),
            "locked": Out(1), "good": Out(COUNT_BITS), "bad": Out(COUNT_BITS),
            "refused": Out(COUNT_BITS).array(LINK_NODES), "lost": Out(COUNT_BITS).array(LINK_NODES),
            "losses": Out(stream.Signature(loss_layout(time_bits))),
            "judged": Out(1), "which": Out(range(2 * LINK_NODES)), "anew": Out(1),
            "based": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.aligner = aligner = LineAligner()
        m.submodules.checker = checker = FrameChecker()
        m.submodules.parser = parser = MomentParser()
        m.submodules.waiting = waiting = StreamFifo(TIMED_MOMENT, _WAITING, self.ram)
        m.submodules.replay = replay = Replay()
        m.submodules.losses = losses = LinkLosses(self.time_bits)
        wiring.connect(m, parser.o, waiting.i)
        wiring.connect(m, waiting.o, replay.i)
        wiring.connect(m, losses.o, wiring.flipped(self.losses))

        # Every 128 clocks a frame is delivered or missed, also while the line is searched.
        now, since = Signal(TIME_BITS), Signal(range(LINK_FRAME_CLOCKS))
        delivers, passed, missed, ever = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [now.eq(now + 1), since.eq(since + 1), ever.eq(ever | aligner.locked)]
        m.d.comb += [
            delivers.eq(checker.good & aligner.trusted), passed.eq(~delivers & since.all()), missed.eq(passed & ever),
        ]
        with m.If(checker.good):
            m.d.sync += since.eq(0)
        with m.If(delivers):
            m.d.sync += self.good.eq(self.good + 1)
        with m.If(missed):
            m.d.sync += self.bad.eq(self.bad + 1)
        m.d.comb += [
            aligner.samples.eq(self.samples), aligner.good.eq(checker.good), aligner.bad.eq(checker.bad),
            checker.collecting.eq(aligner.collecting), checker.bits.eq(aligner.bits), checker.count.eq(aligner.count),
            checker.slot.eq(parser.slot), parser.byte.eq(checker.byte),
            parser.begin.eq(delivers), parser.missed.eq(missed), parser.lag.eq(checker.lag),
            parser.start.eq(now - LINK_FRAME_CLOCKS),
            replay.now.eq(now), replay.toggles.eq(self.toggles), replay.framed.eq(parser.framed),
            self.further.eq(replay.further), self.torn.eq(replay.torn),
            losses.good.eq(delivers), losses.missed.eq(passed), losses.locked.eq(aligner.locked),
            losses.side.eq(checker.side), losses.time.eq(self.time), losses.clear.eq(self.clear),
            losses.enable.eq(self.enable),
            self.judged.eq(losses.judged), self.which.eq(losses.which), self.anew.eq(losses.anew),
            self.based.eq(losses.based),
            losses.delivered.eq(parser.delivered), losses.node.eq(parser.node),
            self.strobe.eq(replay.strobe), self.data.eq(replay.data), self.locked.eq(aligner.locked),
            *(a.eq(b) for a, b in zip(self.refused, losses.refused, strict=True)),
            *(a.eq(b) for a, b in zip(self.lost, losses.lost, strict=True)),
        ]
        return m
