"""Frame checker: converts bits to bytes, which are valid once the whole frame has passed its check."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_CRC_BITS, LINK_CRC_INIT, LINK_FRAME_CLOCKS, LINK_LAG_BITS, LINK_SCRAMBLER, LINK_SYNC
from .link_code import crc_after, scrambled

__all__ = ["FrameChecker"]


class FrameChecker(wiring.Component):
    """Collects a frame while the one before it can be read.

    Members
    -------
    collecting, bits, count : see :class:`~.line_aligner.LineAligner`.
    good, bad : one clock after the frame's last: sync and CRC are right, or one of them is not.
    lag, side : lag and side channel of that frame, valid with ``good`` and for four clocks more.
    slot, byte : the byte of slot 3..29 of that frame, combinational, until the next verdict.
    """

    def __init__(self):
        super().__init__({
            "collecting": In(1), "bits": In(2), "count": In(range(LINK_FRAME_CLOCKS)), "good": Out(1), "bad": Out(1),
            "lag": Out(LINK_LAG_BITS), "side": Out(4), "slot": In(5), "byte": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bytes = store = memory.Memory(
            shape=8, depth=64, init=[], attrs={"ram_style": "distributed"})
        write, read = store.write_port(), store.read_port(domain="comb")
        bank, synced = Signal(), Signal()
        crc, scrambler, shift = Signal(LINK_CRC_BITS), Signal(7), Signal(6)
        slot, phase = self.count[2:], self.count[:2]
        mask, after = scrambled(scrambler)
        plain = Signal(2)
        whole = Signal(8)
        ends = Signal()
        m.d.comb += [
            plain.eq(self.bits ^ mask), whole.eq(Cat(shift, plain)), ends.eq(self.collecting & self.count.all()),
            write.en.eq(self.collecting & (phase == 3)), write.addr.eq(Cat(slot, bank)), write.data.eq(whole),
            read.addr.eq(Cat(self.slot, ~bank)), self.byte.eq(read.data),
        ]
        m.d.sync += shift.eq(whole[2:])
        with m.If(slot == 0):
            expected = Const(LINK_SYNC, 8).word_select(phase, 2)
            m.d.sync += [
                crc.eq(LINK_CRC_INIT), scrambler.eq(LINK_SCRAMBLER),
                synced.eq((synced | (phase == 0)) & (self.bits == expected)),
            ]
        with m.Else():
            m.d.sync += [crc.eq(crc_after(crc, plain)), scrambler.eq(after)]
        with m.If((phase == 3) & (slot == 1)):
            m.d.sync += self.lag[:8].eq(whole)
        with m.If((phase == 3) & (slot == 2)):
            m.d.sync += [self.lag[8:].eq(whole[:4]), self.side.eq(whole[4:])]
        passes = synced & (crc_after(crc, plain) == 0)
        m.d.sync += [self.good.eq(ends & passes), self.bad.eq(ends & ~passes)]
        with m.If(ends):
            m.d.sync += bank.eq(~bank)
        return m
