"""Both ends of a link, and beside them what a board makes of the same ports if they are wired to it."""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.input.strobe_synchronizer import StrobeSynchronizer
from hypermon.hdl.regeneration.receiver import Receiver
from hypermon.hdl.regeneration.transmitter import Transmitter

__all__ = ["Line", "Pair"]


class Pair(wiring.Component):
    """A transmitter, a receiver, and the pulses and nibbles of three synchronizers: the twins', wired directly;
    those in front of which the receiver re-creates the ports. ``bits`` go to the line, and ``samples`` come from it.

    With ``lives`` of two, there is a second transmitter: it begins in the clock in which ``second`` rises, and from
    then on the bits are its bits."""

    def __init__(self, lives=1):
        self.lives = lives
        super().__init__({
            "second": In(1), "anew": Out(1),
            "strobe": In(8), "data": In(32), "both": In(1), "bits": Out(2), "samples": In(4),
            "twin": Out(8), "twin_nibble": Out(32), "again": Out(8), "again_nibble": Out(32), "refusing": Out(8),
            "locked": Out(1), "good": Out(32), "bad": Out(32), "refused": Out(256), "lost": Out(256),
            "loss": Out(1), "loss_node": Out(3), "loss_line": Out(1), "loss_count": Out(32), "loss_first": Out(32),
            "loss_last": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.transmitter = sender = Transmitter()
        bits, refused = sender.bits, sender.refused
        m.submodules.receiver = receiver = Receiver()
        m.submodules.twins = twins = StrobeSynchronizer(8, False)
        m.submodules.again = again = StrobeSynchronizer(8, False)
        time, falling = Signal(32), Signal(8)
        m.d.sync += time.eq(time + 1)
        m.d.comb += [
            falling.eq(self.both.replicate(8)),
            sender.strobe.eq(self.strobe), sender.data.eq(self.data), sender.rising.eq(-1), sender.falling.eq(falling),
            sender.live.eq(-1),
            twins.strobe.eq(self.strobe), twins.data.eq(self.data), twins.rising.eq(-1), twins.falling.eq(falling),
            self.twin.eq(twins.pulse), self.twin_nibble.eq(twins.nibble),
            receiver.samples.eq(self.samples), receiver.toggles.eq(falling), receiver.time.eq(time),
            again.strobe.eq(receiver.strobe), again.data.eq(receiver.data), again.rising.eq(-1),
            again.falling.eq(falling), self.again.eq(again.pulse), self.again_nibble.eq(again.nibble),
            self.locked.eq(receiver.locked), self.good.eq(receiver.good), self.bad.eq(receiver.bad),
            *(self.refused[32 * n:32 * n + 32].eq(receiver.refused[n]) for n in range(8)),
            *(self.lost[32 * n:32 * n + 32].eq(receiver.lost[n]) for n in range(8)),
            receiver.losses.ready.eq(1), self.loss.eq(receiver.losses.valid),
            self.loss_node.eq(receiver.losses.p.node), self.loss_line.eq(receiver.losses.p.line),
            self.loss_count.eq(receiver.losses.p.lost), self.loss_first.eq(receiver.losses.p.first),
            self.loss_last.eq(receiver.losses.p.last),
        ]
        if self.lives == 2:
            m.submodules.again_sender = later = ResetInserter(~self.second)(Transmitter())
            m.d.comb += [getattr(later, name).eq(getattr(sender, name))
                         for name in ("strobe", "data", "rising", "falling", "live")]
            bits, refused = Mux(self.second, later.bits, bits), Mux(self.second, later.refused, refused)
        m.d.comb += [self.bits.eq(bits), self.refusing.eq(refused), receiver.enable.eq(1), self.anew.eq(receiver.anew)]
        return m


class Line:
    """A cable: a bit lasts 5 ns, a sample is taken every 2.5 ns.

    ``delay`` ns, ``jitter`` ns to each side of an edge, ``errors``: share of bits that are wrong. While ``pulled``, the
    line is noise, or holds a level.
    """

    def __init__(self, rng, delay, jitter=0.0, errors=0.0):
        self.rng, self.delay, self.jitter, self.errors = rng, delay, jitter, errors
        self.bits, self.first, self.clock = [0] * 64, -64, 0
        self.pulled, self.wrong = None, 0
        self.until = self._next()

    def _next(self):
        return int(self.rng.expovariate(self.errors)) + 1 if self.errors else 1 << 60

    def __call__(self, pair):
        """Takes the two bits of a clock, and gives its four samples."""
        for bit in (pair & 1, pair >> 1):
            self.until -= 1
            if not self.until:
                bit ^= 1
                self.wrong += 1
                self.until = self._next()
            self.bits.append(bit)
        del self.bits[:-64]
        at, word = 10.0 * self.clock - self.delay, 0
        end = 2 * self.clock + 2                        # number of the bit after the last one
        self.clock += 1
        if self.pulled is not None:
            return self.rng.getrandbits(4) if self.pulled == "noise" else self.pulled * 15
        for k in range(4):
            edge = self.rng.uniform(-self.jitter, self.jitter) if self.jitter else 0
            bit = int((at + 2.5 * k + edge) // 5)
            word |= self.bits[64 - (end - bit)] << k
        return word
