"""Store: blocks wait in block RAM while the host does not read."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.fifo import StreamFifo
from .blocker import beat_layout

__all__ = ["Store", "segments"]

#: Beats per memory. An ECP5 block RAM of 2048 words is nine bits wide, parity included; a deeper
#: one has no parity, and costs a tenth more.
SEGMENT = 2048


def segments(depth: int) -> list[int]:
    """Depths of the FIFOs that make up a store of ``depth`` beats, in order."""
    rest = depth % SEGMENT
    return [SEGMENT] * (depth // SEGMENT) + [rest] * bool(rest)


class Store(wiring.Component):
    """A row of FIFOs between the blocker and the link, one beat per clock.

    It never drops and never reorders. When it is full, it is not ready, and every stage before it
    waits, up to the gate. Its contents already count as delivered in the board's counters, and a reset
    does not discard them: blocks are whole. A beat passes an empty store in three clocks per FIFO.

    Parameters
    ----------
    depth : number of beats, a sum of 2048s and one smaller power of two of at least 4.
    ram : kind of memory, see :class:`~.ram.Ram`.

    Members
    -------
    i, o : beats.
    clear : restarts the high-water mark.
    level : beats inside.
    high : the highest level since ``clear``, one clock ago.

    Raises
    ------
    ValueError
        if the depth is no such sum.
    """

    def __init__(self, depth: int, ram: str = "portable"):
        self.fifos = [StreamFifo(beat_layout(), d, ram) for d in segments(depth)]
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(stream.Signature(beat_layout())),
            "clear": In(1), "level": Out(range(depth + 1)), "high": Out(range(depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        before = wiring.flipped(self.i)
        for k, fifo in enumerate(self.fifos):
            m.submodules[f"fifo{k}"] = fifo
            wiring.connect(m, before, fifo.i)
            before = fifo.o
        wiring.connect(m, before, wiring.flipped(self.o))

        came = Signal()
        left = Signal()
        m.d.comb += [came.eq(self.i.valid & self.i.ready), left.eq(self.o.valid & self.o.ready)]
        with m.If(came ^ left):
            m.d.sync += self.level.eq(self.level + Mux(left, -1, 1))
        with m.If(self.clear | (self.level > self.high)):
            m.d.sync += self.high.eq(self.level)
        return m
