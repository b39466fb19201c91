"""Function-level reset: returns the board and its link to their state after power-up, because the owner changes."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...stream.blocker import beat_layout

__all__ = ["FunctionReset"]

#: Clocks without a beat after which the crossing is empty: its pointers need four. Clocks without a request after which
#: none of the former owner is left in the block.
_SILENCE = 16


class FunctionReset(wiring.Component):
    """A stage between the crossing and the ring. After a function-level reset, nothing of the former owner is left.

    The sequence: the ring stops, as if the host had stopped it, and accesses to the board that have begun are carried
    out. The board is reset as by its power, so its stream begins anew with a whole block. Beats in the crossing and in
    the ring are discarded and counted, and the ring and its registers are cleared. When the board has left its reset
    and the block has delivered the requests that it held, which have no effect, the function-level reset is ``done``. A
    sequence that has begun is carried out to its end.

    The reset crosses clock domains, and the board confirms both its edges, so no ratio of the clocks is assumed.
    Source: PCI Express Base Specification, revision 3.0, section 6.6.2.

    Members
    -------
    i, o : the stream. It passes unless a reset is under way.
    asked : the host requests a function-level reset. done : it is complete; until ``asked`` falls.
    closed : no access may begin, and the ring is to stop.
    running : writes may follow. idle : no access to the board is under way. held : beats in the ring.
    requested : a request is offered, or its completion was not taken.
    reset : of the board, to be synchronized to its clock. resetting : the board is in reset, synchronized to this one.
    clear : for one clock: of the ring and its registers.
    discarded : beats that were discarded, modulo 2**32.
    """

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(stream.Signature(beat_layout())),
            "asked": In(1), "done": Out(1), "closed": Out(1), "running": In(1), "idle": In(1),
            "requested": In(1), "held": In(16), "reset": Out(1), "resetting": In(1), "clear": Out(1),
            "discarded": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        discards, silence, quiet = Signal(), Signal(range(_SILENCE + 1)), Signal(range(_SILENCE + 1))
        m.d.comb += [
            self.o.p.eq(self.i.p), self.o.valid.eq(self.i.valid & ~self.closed),
            self.i.ready.eq(Mux(self.closed, discards, self.o.ready))]
        m.d.sync += [
            silence.eq(Mux(self.i.valid, 0, silence + (silence != _SILENCE))),
            quiet.eq(Mux(self.requested, 0, quiet + (quiet != _SILENCE))),
            self.discarded.eq(self.discarded + (self.i.valid & discards) + Mux(self.clear, self.held, 0))]
        with m.FSM():
            with m.State("OPEN"):
                with m.If(self.asked):
                    m.d.sync += self.closed.eq(1)
                    m.next = "STOP"
            with m.State("STOP"):
                with m.If(~self.running & self.idle):
                    m.d.sync += self.reset.eq(1)
                    m.next = "RESET"
            with m.State("RESET"):
                m.d.comb += discards.eq(1)
                with m.If(~self.resetting):
                    m.d.sync += silence.eq(0)
                with m.Elif(silence == _SILENCE):
                    m.d.comb += self.clear.eq(1)
                    m.d.sync += self.reset.eq(0)
                    m.next = "RELEASE"
            with m.State("RELEASE"):
                with m.If(~self.resetting & (quiet == _SILENCE)):
                    m.d.sync += self.done.eq(1)
                    m.next = "DONE"
            with m.State("DONE"):
                with m.If(~self.asked):
                    m.d.sync += [self.done.eq(0), self.closed.eq(0)]
                    m.next = "OPEN"
        return m
