"""Both ends of a link between nodes in event and word mode and a board's intake, and the intake of wired twins."""

from amaranth.hdl import Cat, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.input.intake import Intake
from hypermon.hdl.layout import Geometry, Sink
from hypermon.hdl.regeneration.receiver import Receiver
from hypermon.hdl.regeneration.transmitter import Transmitter

__all__ = ["FramedPair"]


class FramedPair(wiring.Component):
    """``bits`` go to the line, and ``samples`` come from it. Of both intakes, in ``mine`` that of the link, in ``its``
    that of the twins: starts, nibbles that enter, those that end an item that was cut short (8 bits each), nibbles.
    Everything is admitted. ``stirs``: there is something in them, or in ``refusing``."""

    def __init__(self):
        super().__init__({
            "strobe": In(8), "data": In(32), "words": In(8), "events": In(8), "bits": Out(2), "samples": In(4),
            "mine": Out(56), "its": Out(56), "stirs": Out(1), "refusing": Out(8), "lost": Out(256),
            "refused": Out(256), "bad": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.transmitter = sender = Transmitter()
        m.submodules.receiver = receiver = Receiver()
        linked = Intake(Geometry(8, sinks=(Sink.EXTENDED,), links=1), pad_stage=False)
        twin = Intake(Geometry(8, sinks=(Sink.EXTENDED,)), pad_stage=False)
        for side, out, source in ((linked, self.mine, receiver), (twin, self.its, self)):
            m.submodules += DomainRenamer({"spine": "sync"})(side)
            m.d.comb += [
                *(getattr(side.levels, name).eq(getattr(source, name)) for name in side.levels.signature.members),
                side.settings.rising.eq(-1), side.settings.falling.eq(-1), side.settings.timeout.eq(-1),
                side.settings.mask.eq(-1), side.settings.words.eq(self.words), side.settings.events.eq(self.events),
                side.time.window.live.eq(-1), side.items.admit.eq(side.items.start),
                out.eq(Cat(side.items.start, side.items.push, side.items.cut, side.items.nibble)),
            ]
        m.d.comb += [
            *(getattr(sender, name).eq(-1) for name in ("rising", "falling", "live")),
            *(getattr(sender, name).eq(getattr(self, name)) for name in ("strobe", "data", "words", "events")),
            self.bits.eq(sender.bits), receiver.samples.eq(self.samples), receiver.toggles.eq(-1),
            receiver.losses.ready.eq(1), self.bad.eq(receiver.bad), self.refusing.eq(sender.refused),
            *(self.lost[32 * n:32 * n + 32].eq(receiver.lost[n]) for n in range(8)),
            *(self.refused[32 * n:32 * n + 32].eq(receiver.refused[n]) for n in range(8)),
            self.stirs.eq(self.mine[:24].any() | self.its[:24].any() | self.refusing.any()),
        ]
        return m
