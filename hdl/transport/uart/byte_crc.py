"""CRC-32 (IEEE 802.3, as zlib's) over one byte per clock."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...stream.crc32 import shifted

__all__ = ["ByteCrc"]

_ONES = 0xFFFFFFFF


class ByteCrc(wiring.Component):
    """CRC-32 of the bytes since the last ``clear``.

    Members
    -------
    clear : a message begins.
    valid, data : a byte of it.
    crc : of all bytes up to the last clock.
    good : the last four of them are the CRC of those before, lowest byte first.
    """

    #: Residue of the CRC over a message and its own CRC.
    RESIDUE = 0x2144DF1C

    def __init__(self):
        super().__init__({
            "clear": In(1), "valid": In(1), "data": In(8), "crc": Out(32), "good": Out(1)})

    def elaborate(self, platform):
        m = Module()
        state = Signal(32, init=_ONES)
        mixed = Signal(8)
        columns = [shifted(1 << bit, 8) for bit in range(8)]
        m.d.comb += [mixed.eq(state[:8] ^ self.data), self.crc.eq(~state), self.good.eq(self.crc == self.RESIDUE)]
        with m.If(self.clear):
            m.d.sync += state.eq(_ONES)
        with m.Elif(self.valid):
            m.d.sync += state.eq(state[8:] ^ Cat(
                reduce(xor, (mixed[bit] for bit in range(8) if columns[bit] >> k & 1), 0) for k in range(32)))
        return m
