"""Specifications of the memories: all forms give the same words, to whoever uses them as they may be."""

from amaranth.hdl import Assert, Assume, Cat, Const, Signal
from hypermon.hdl.lib.ram import Ram

from ..prover import Spec

__all__ = ["RamSpec", "WatchedRam"]


class RamSpec(Spec):
    """A memory of block RAMs gives what the portable one gives, as soon as what is read has been written.

    Four words are used, of which the addresses differ in their lowest and in their highest bit: the
    primitive's model is cut down so. The depth decides which of the primitive's widths is taken.

    The environment promises that no word is read at the clock at which it is written: what the
    primitive then gives is not defined (:class:`WatchedRam`).

    Parameters
    ----------
    width, depth, kind : of it; the depth is the largest one of a width of the primitive.
    ram : its class.
    """

    def __init__(self, width, depth, ram=Ram, kind="ecp5"):
        super().__init__()
        self.width, self.depth, self.ram, self.kind = width, depth, ram, kind

    def specify(self, m):
        m.submodules.portable = portable = Ram(self.width, 4, "portable")
        m.submodules.blocks = blocks = self.ram(self.width, self.depth, self.kind)
        for name in ("w_en", "w_addr", "w_data", "r_en", "r_addr", "r_next"):
            value = self.free(len(getattr(portable, name)), name)
            apart = Cat(value[0], Const(0, len(blocks.r_addr) - 2), value[1]) if name.endswith("addr") else value
            m.d.comb += [getattr(portable, name).eq(value), getattr(blocks, name).eq(apart)]
        m.d.comb += Assume(~(portable.w_en & portable.r_en & (portable.w_addr == portable.r_addr)))
        written, latched, given = Signal(4), Signal(), Signal()
        with m.If(portable.w_en):
            m.d.sync += written.bit_select(portable.w_addr, 1).eq(1)
        with m.If(portable.r_en):
            m.d.sync += latched.eq(written.bit_select(portable.r_addr, 1))
        with m.If(portable.r_next):
            m.d.sync += given.eq(latched)
        m.d.comb += Assert(~given | (portable.r_data == blocks.r_data), "both give the same word")


class WatchedRam(Ram):
    """A memory that asserts of its user what :class:`RamSpec` takes for granted."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += Assert(~(self.w_en & self.r_en & (self.w_addr == self.r_addr)), "reads no word that is written")
        return m
