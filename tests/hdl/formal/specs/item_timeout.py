"""Specification of the item time-out: any one node, gaps and limits of any length, with numbers of few bits."""

from types import SimpleNamespace

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.input.item_timeout import ItemTimeout

from ..prover import Spec, broken, exposing, opened, using

__all__ = ["ItemTimeoutSpec", "narrow"]

#: Bits of the clock, in place of 32: a gap of the longest limit, and what may come on top, fit.
_BITS = 7


def narrow(*changes: tuple[str, str]):
    """The time-out with a clock and a limit of few bits, and with ``changes``; see :func:`~.prover.broken`."""
    wide = ("In(32)", "shape=32", "clock = Signal(32)", "since = Signal(32)", "age = Signal(32)")
    return broken(ItemTimeout, *((text, text.replace("32", str(_BITS))) for text in wide), *changes)


class ItemTimeoutSpec(Spec):
    """The item of a node, any one, expires when its gap is longer than the limit, never earlier, and so much later at
    most; a strobe saves it.

    Of the memory one word stands for all: the others may be anything whenever they are read. Promised is that an
    item opens in the clock after a strobe, as the framer's do, and that the limit is less than half of what the clock
    counts to.

    Parameters
    ----------
    nodes : a power of two.
    """

    #: Clocks that a verdict may come later than two rounds.
    LATE = 8

    def __init__(self, timeout=None, nodes=2):
        super().__init__()
        self.node, self.memories = Signal(range(nodes), name="node"), []
        timeout, self.signals = exposing(timeout or narrow())
        self.dut = using(timeout, memory=SimpleNamespace(Memory=self._memory))(nodes)
        # A look at the node, and what is left of the one before, are within so many clocks.
        self.induction = self.dut.round + 6

    def _memory(self, *, shape, depth, init):
        self.memories.append(made := _OneWordMemory(self, shape, depth))
        return made

    def specify(self, m: Module) -> None:
        dut, node = self.dut, self.node
        m.submodules.dut = opened(dut)
        m.d.comb += node.eq(self.constant(m, len(node), "which"))
        (heard,), inside = self.memories, self.signals
        pulse, limit = self.free(dut.nodes, "pulse"), self.constant(m, len(dut.limit) - 1, "limit")
        strobe, is_open, may_be_open = pulse.bit_select(node, 1), Signal(), Signal()
        m.d.comb += [
            is_open.eq(self.free(1, "open") & may_be_open), dut.pulse.eq(pulse), dut.limit.eq(limit),
            dut.open.eq((self.free(dut.nodes, "opens") & ~(1 << node)) | is_open << node),
        ]
        gap = Signal(len(dut.limit), init=2)    # since the last strobe; nothing has been heard at first
        since = Signal()                        # ... the item has been open
        told = Signal()                         # ... it has expired
        expires = dut.expired.bit_select(node, 1)
        m.d.sync += [
            may_be_open.eq(strobe | is_open), gap.eq(Mux(strobe, 1, gap + 1)),
            since.eq(~strobe & (since | is_open)), told.eq(~strobe & (told | expires)),
        ]
        m.d.comb += [
            Assert(~expires | since, "what expires is open"),
            Assert(~expires | told | (gap > limit), "never earlier"),
            Assert(~is_open | told | expires | (gap <= limit + 2 * dut.round + self.LATE), "and soon"),
        ]
        # What the memory says is a round older than the last strobe at most, or the node is fresh.
        fresh, looked = inside["fresh"].bit_select(node, 1), inside["is_fresh"] & (inside["node0"] == node)
        lag = Signal.like(gap)
        m.d.comb += [
            lag.eq(gap - (inside["clock"] - heard.word)),
            Assert(~fresh | (gap <= dut.round)), Assert(~looked | fresh | (gap <= dut.round + 1)),
            Assert(fresh | looked | ((lag >= 2) & (lag <= dut.round + 1))),
        ]
        begun = Signal(4)       # the first looks are under way
        m.d.sync += begun.eq(begun << 1 | 1)
        for k in range(4):
            m.d.comb += Assert(~begun[k] | (inside[f"node{k}"] == (inside["turn"] - 1 - k)[:len(inside["turn"])]))


class _OneWordMemory(wiring.Component):
    """Stands for a memory of which the word of ``spec.node`` is of interest; the others are anything when read."""

    def __init__(self, spec: ItemTimeoutSpec, shape: int, depth: int):
        self.spec, self.word, self.any = spec, Signal(shape, name="heard_word"), spec.free(shape, "heard_any")
        bits = (depth - 1).bit_length()
        super().__init__({
            "w_en": In(1), "w_addr": In(bits), "w_data": In(shape), "r_addr": In(bits), "r_data": Out(shape)})

    def write_port(self):
        return SimpleNamespace(en=self.w_en, addr=self.w_addr, data=self.w_data)

    def read_port(self, *, domain: str):
        assert domain == "comb"
        return SimpleNamespace(addr=self.r_addr, data=self.r_data)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.w_en & (self.w_addr == self.spec.node)):
            m.d.sync += self.word.eq(self.w_data)
        m.d.comb += self.r_data.eq(Mux(self.r_addr == self.spec.node, self.word, self.any))
        return m
