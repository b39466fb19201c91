"""Specification of the front ends: the framing of events."""

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, Signal
from hypermon.hdl.input.byte_items import ByteItems

from ..prover import Spec, exposing, opened, state_of, using

__all__ = ["FramingSpec"]


class FramingSpec(Spec):
    """The framer is in step: an item begins only when the one before it was whole or aborted; it gets the bytes that it
    has announced, and the last of them only if the check is right; where each byte is an item, it gets the byte whole.
    An abort comes when all of its nibbles have passed.
    """

    induction = 3
    #: Clocks until an abort, for the proof.
    settle = 4

    def __init__(self, items=ByteItems, itm=False):
        super().__init__()
        copy, self.inside = exposing(items)
        self.items, self.itm = using(copy, ABORT_CLOCKS=self.settle), itm

    def specify(self, m: Module) -> None:
        dut = self.items()
        m.submodules.dut = module = opened(dut)
        state, inside = state_of(module), self.inside
        valid, byte, fault = self.free(1, "valid"), self.free(8, "byte"), self.free(1, "fault")
        m.d.comb += [
            dut.valid.eq(valid), dut.byte.eq(byte), dut.fault.eq(fault), dut.pause.eq(self.free(1, "pause")),
            dut.expired.eq(self.free(1, "expired")), dut.events.eq(self.constant(m, 1, "events")),
            dut.single.eq(self.constant(m, 1, "single")),
            Assume(~(valid & fault)),
        ]
        left, quiet, check = Signal(4), Signal(range(self.settle + 2)), Signal(8)
        failed = Signal()       # an error that has not been followed by an abort
        # x^8 + x^2 + x + 1, the highest bit first; one bit after the other.
        steps = [Signal(8, name=f"step{bit}") for bit in range(9)]
        m.d.comb += steps[0].eq(Mux(left == 0, 0xff, check))
        for before, after, bit in zip(steps, steps[1:], range(7, -1, -1), strict=False):
            out = before[7] ^ byte[bit]
            m.d.comb += after.eq(Cat(out, before[0] ^ out, before[1] ^ out, before[2:7]))
        m.d.sync += quiet.eq(Mux(dut.load, 0, quiet + (quiet != self.settle + 1)))
        error = fault | dut.expired
        single = dut.events & dut.single
        with m.If(dut.abort):
            m.d.sync += [left.eq(0), failed.eq(0)]
        with m.Elif(dut.events & (left != 0) & error):
            m.d.sync += failed.eq(1)
        with m.If(valid):
            m.d.sync += check.eq(steps[-1])
        with m.If(dut.load & dut.events & ~single):
            with m.If(left == 0):
                m.d.sync += left.eq(dut.nibbles[:4] - self.itm)
            with m.Else():
                m.d.sync += left.eq(left - 1)
        m.d.comb += [
            Assert(~dut.load | valid, "nibbles of a byte"),
            Assert(~(dut.load & single) | ((dut.count == 3) & (dut.nibbles == Cat(Const(1, 4), byte))),
                   "an item of one byte"),
            Assert(~(dut.load & dut.events & ~single & (left == 0))
                   | ((dut.count == (3 if self.itm else 1)) & (dut.nibbles[:4] != 0)),
                   "an item begins with its length"),
            Assert(~(dut.load & (~dut.events | (left != 0))) | (dut.count == 2), "then two nibbles a byte"),
            Assert(~(dut.load & failed), "nothing more of an item with an error"),
            Assert(~(dut.load & error & dut.events & (left != 0)), "... nor with the error"),
            Assert(~dut.abort | (quiet >= self.settle), "an abort waits for the nibbles"),
            Assert(~(dut.abort & dut.load), "and none comes with it"),
        ]
        # What holds beside, so that induction needs few clocks.
        none = (left == 0) & ~failed
        m.d.comb += [
            Assert(~state("HUNT") | none | dut.abort, "nothing is open"),
            Assert(~dut.abort | state("HUNT"), "after it"),
            Assert(~state("ABORT") | (quiet + inside["settle"] >= self.settle - 1), "the abort is as late"),
            Assert(inside["settle"] < self.settle, "and no later"),
        ]
        if self.itm:
            m.d.comb += [
                Assert(~(state("HEADER") | state("MORE")) | none, "nothing is open"),
                Assert(~state("PAYLOAD") | (~single & (left == inside["left"] + 1) & ~failed & dut.events),
                       "bytes to come"),
            ]
        else:
            m.d.comb += [
                Assert(~state("FIRST") | none, "nothing is open"),
                Assert(~state("NEXT") | (~single & (left == inside["left"] + inside["keeps"]) & ~failed & dut.events
                                         & (check == inside["crc"])), "bytes to come, and the check so far"),
            ]
            last = dut.load & dut.events & (left == 1)
            m.d.comb += Assert(~last | (check == byte), "the last byte needs its check")
