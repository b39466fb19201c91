"""Resets at random moments: what a reset leaves is noticed, and so is a state in which there was none."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .resets import same_as_fresh


class Summing(wiring.Component):
    """Every fourth item that comes leaves as the sum of four.

    Parameters
    ----------
    kept : what a reset leaves: "sum", "state", "memory", or nothing.
    """

    def __init__(self, kept=""):
        self.kept = kept
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8)), "count": Out(2)})

    def elaborate(self, platform):
        m = Module()
        total = Signal(8, reset_less=self.kept == "sum")
        two = Signal(reset_less=self.kept == "state")
        m.d.comb += self.o.p.eq(total)      # payload: whatever it is without an item
        with m.FSM():
            with m.State("FIRST"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [total.eq(total + self.i.p), two.eq(~two)]
                    with m.If(two):
                        m.next = "SECOND"
            with m.State("SECOND"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [total.eq(total + self.i.p), self.count.eq(self.count + 1)]
                    m.next = "LAST"
            with m.State("LAST"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += total.eq(0)
                    m.next = "FIRST"
        if self.kept == "memory":
            m.submodules.memory = kept = memory.Memory(shape=8, depth=4, init=[])
            read, write = kept.read_port(domain="comb"), kept.write_port()
            m.d.comb += [read.addr.eq(self.count), write.addr.eq(self.count), write.data.eq(total), write.en.eq(two),
                         self.o.p.eq(total + read.data)]
        return m


def test_a_sound_stage():
    same_as_fresh(Summing)


@pytest.mark.parametrize("kept", ["sum", "state", "memory"])
def test_what_a_reset_leaves_is_noticed(kept):
    told = r"seed 1, \d+ clocks after a reset in fsm_state [A-Z]+: (o\.payload|i\.ready)"
    with pytest.raises(AssertionError, match=told):
        same_as_fresh(lambda: Summing(kept))


def test_a_state_without_a_reset_is_named():
    with pytest.raises(AssertionError, match=r"no reset in \[\('fsm_state', 'LAST'\), \('fsm_state', 'SECOND'\)\]"):
        same_as_fresh(Summing, {"i.valid": lambda rng: 0}, episodes=2)
    with pytest.raises(AssertionError, match="nothing happens"):
        same_as_fresh(Summing, {"i.valid": lambda rng: 0}, episodes=2, never=("SECOND", "LAST"))
