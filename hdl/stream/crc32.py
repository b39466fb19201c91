"""CRC-32 (IEEE 802.3, as zlib's) over one beat per clock."""

from functools import reduce
from operator import xor

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layout import BEAT_BYTES, NARROW_BYTES

__all__ = ["Crc32", "shifted"]

_POLYNOMIAL = 0xEDB88320  # reflected


def shifted(state: int, bits: int) -> int:
    """The register after ``bits`` zero bits."""
    for _ in range(bits):
        state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
    return state


def _linear(columns: list[int], inputs):
    """32 sums: output bit i is the sum of the inputs whose column has bit i set.

    Written as a table for each nibble of the inputs and the sum of the tables' outputs: that is one layer
    of four-input look-up tables in hardware, and a few dozen word operations in a simulator.
    """
    tables = []
    for low in range(0, len(columns), 4):
        table = [reduce(xor, (columns[low + b] for b in range(4) if v >> b & 1), 0) for v in range(16)]
        tables.append(Array(Const(entry, 32) for entry in table)[inputs[low:low + 4]])
    return reduce(xor, tables)


class Crc32(wiring.Component):
    """Computes the CRC-32 of a block whose last beat carries it.

    The sum does not cover the last four bytes of the block. Each word of 128 bits that is summed up therefore begins
    with the last four bytes of the beat before. The first word begins with zeros, which do not change the sum, and the
    last word is complete.

    Parameters
    ----------
    beat_bytes : bytes per beat, 16, 4 or 2. With fewer than 16 each goes straight into the register, including those of
        the last 12 bytes.

    Members
    -------
    valid, first, data : a beat, byte 0 in the lowest bits; ``first`` begins a block.
    finish : the last 16 bytes are to come; in a clock of its own, after the one before them.
    cut : with ``finish``, bit 0 of their word 0; its other bits up to the CRC are zero.
    crc : of all beats of the block and the first 12 bytes of the last 16. Valid four clocks after ``finish`` (six with
        beats of 2 bytes), until two clocks (with beats of 2 bytes, one) after the next block's first beat.
    """

    def __init__(self, beat_bytes: int = BEAT_BYTES):
        self.beat_bytes = beat_bytes
        super().__init__({
            "valid": In(1), "first": In(1), "data": In(8 * beat_bytes), "finish": In(1), "cut": In(1), "crc": Out(32)})

    def elaborate(self, platform):
        m = Module()
        if self.beat_bytes != BEAT_BYTES:
            self._serial(m)
            return m
        # The data's share of the sum does not depend on the register: it has stages of its
        # own, and the loop through the register is short. A stage advances only when it has to.
        columns = [shifted(1 << (j % 32), 128 - 32 * (j // 32)) for j in range(128)]
        parts = [Signal(32, name=f"part{k}") for k in range(8)]
        share = Signal(32)
        state = Signal(32)
        rest = Signal(32)      # of the beat before
        word = Signal(128, reset_less=True)
        valid = Signal(3)
        first = Signal(2)
        m.d.sync += [valid.eq(Cat(self.valid | self.finish, valid)), first.eq(Cat(self.first, first))]
        with m.If(self.valid):
            m.d.sync += [word.eq(Cat(rest, self.data)), rest.eq(self.data[96:])]
        with m.If(self.finish):
            m.d.sync += [word.eq(Cat(rest, self.cut)), rest.eq(0)]
        with m.If(valid[0]):
            m.d.sync += [part.eq(_linear(columns[16 * k:16 * k + 16], word[16 * k:16 * k + 16]))
                         for k, part in enumerate(parts)]
        # A block begins with 32 ones in the register, as if its first four bytes were inverted.
        with m.If(valid[1]):
            m.d.sync += share.eq(reduce(xor, parts) ^ Mux(first[1], shifted(0xFFFFFFFF, 96), 0))
        with m.If(valid[2]):
            m.d.sync += state.eq(share ^ _linear([shifted(1 << j, 128) for j in range(32)], state))
        with m.If(valid[1] & first[1]):
            m.d.sync += state.eq(0)
        m.d.comb += self.crc.eq(~state)
        return m

    def _serial(self, m):
        bits = len(self.data)
        state = Signal(32)
        before = Signal(32)     # the register, or 32 ones where a block begins
        data = Signal(bits)
        left = Signal(range(96 // bits))    # beats after the first of the last 12 bytes
        counts, first = self.valid | self.finish | (left != 0), self.first & self.valid
        fed = data.eq(Mux(self.valid, self.data, Mux(self.finish, self.cut, 0)))
        domain = m.d.comb
        if bits != 8 * NARROW_BYTES:
            # The sum is deeper, and its inputs are registers.
            domain = m.d.sync
            came, begins = Signal(), Signal()
            domain += [came.eq(counts), begins.eq(first)]
            counts, first = came, begins
        m.d.comb += before.eq(Mux(first, 0xFFFFFFFF, state))
        domain += fed
        m.d.comb += self.crc.eq(~state)
        mixed = before[:bits] ^ data
        columns = [shifted(1 << bit, bits) for bit in range(bits)]
        with m.If(counts):
            m.d.sync += state.eq(before[bits:] ^ Cat(
                reduce(xor, (mixed[bit] for bit in range(bits) if columns[bit] >> k & 1), 0) for k in range(32)))
        with m.If(self.finish):
            m.d.sync += left.eq(96 // bits - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
