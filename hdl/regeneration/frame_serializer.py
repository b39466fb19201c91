"""Frame serializer: converts bytes to two scrambled bits per clock, with sync and check."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import LINK_BYTES, LINK_CRC_BITS, LINK_CRC_INIT, LINK_SCRAMBLER
from .link_code import crc_after, scrambled

__all__ = ["FrameSerializer"]


class FrameSerializer(wiring.Component):
    """Sends a frame in 32 slots of four clocks: the sync, 29 bytes, the CRC of those bytes.

    Members
    -------
    now : bits 1..0 of the clock's number are the phase, bits 6..2 the slot.
    byte : taken in phase 3: that of the next slot, the sync for slot 0; without effect in slots 29 and 30.
    bits : two bits of the line, the lower one first; those of slot 0, phase 0 come one clock after it.
    """

    def __init__(self):
        super().__init__({"now": In(7), "byte": In(8), "bits": Out(2)})

    def elaborate(self, platform):
        m = Module()
        phase, slot = self.now[:2], self.now[2:7]
        shift, crc = Signal(8), Signal(LINK_CRC_BITS)
        scrambler = Signal(7)
        syncs, checks = Signal(), Signal()
        raw = Signal(2)
        m.d.comb += raw.eq(Mux(checks, crc, shift))
        mask, after = scrambled(scrambler)
        with m.If(phase == 3):
            # Which slot begins.
            m.d.sync += [
                shift.eq(self.byte), syncs.eq(slot == 31), checks.eq((slot >= LINK_BYTES + 2) & (slot != 31))]
        with m.Else():
            m.d.sync += shift.eq(shift[2:])
        with m.If(syncs):
            m.d.sync += [self.bits.eq(raw), crc.eq(LINK_CRC_INIT), scrambler.eq(LINK_SCRAMBLER)]
        with m.Else():
            m.d.sync += [self.bits.eq(raw ^ mask), crc.eq(crc_after(crc, raw)), scrambler.eq(after)]
        return m
