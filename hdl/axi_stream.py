"""AXI-Stream: the block stream as a standard AXI4-Stream."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layout import BEAT_BYTES
from .stream.blocker import beat_layout

__all__ = ["AXI_BYTES", "AxiStream", "axi_stream_signature"]

#: Supported widths of a bus, in bytes.
AXI_BYTES = (1, 2, 4, 8, 16)


def axi_stream_signature(width: int) -> wiring.Signature:
    """AXI4-Stream (ARM IHI 0051) of ``width`` bytes, as seen from the transmitter."""
    return wiring.Signature({
        "tvalid": Out(1), "tready": In(1), "tdata": Out(8 * width), "tkeep": Out(width), "tlast": Out(1)})


class AxiStream(wiring.Component):
    """Splits beats of 16 bytes into transfers of ``width`` bytes, the lowest first, with no idle clock in between.

    A packet is a block. Blocks are whole beats, so every byte of every transfer counts: ``tkeep`` is all ones.
    ``tvalid`` does not wait for ``tready``, and an offered transfer is held until it is accepted (section 2.2 there).

    Parameters
    ----------
    width : bytes per transfer, one of :data:`AXI_BYTES`.

    Members
    -------
    i : beats.
    o : see :func:`axi_stream_signature`; from flip-flops.

    Raises
    ------
    ValueError
        for any other width.
    """

    def __init__(self, width: int = BEAT_BYTES):
        if width not in AXI_BYTES:
            raise ValueError(f"width must be one of {', '.join(map(str, AXI_BYTES))}, not {width!r}")
        self.width = width
        super().__init__({
            "i": In(stream.Signature(beat_layout())), "o": Out(axi_stream_signature(width))})

    def elaborate(self, platform):
        m = Module()
        transfers = BEAT_BYTES // self.width
        o = self.o
        beat = Signal(8 * BEAT_BYTES, reset_less=True)
        ends = Signal()                       # the beat is the last one of its block
        left = Signal(range(transfers))       # transfers after this one
        final = Signal(init=1)                # left == 0
        m.d.comb += [
            o.tdata.eq(beat[:8 * self.width]), o.tkeep.eq(-1), o.tlast.eq(ends & final),
            self.i.ready.eq(~o.tvalid | (o.tready & final)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                beat.eq(self.i.p.data), ends.eq(self.i.p.last), o.tvalid.eq(self.i.valid),
                left.eq(transfers - 1), final.eq(transfers == 1),
            ]
        with m.Elif(o.tready):
            m.d.sync += [beat.eq(Cat(beat[8 * self.width:])), left.eq(left - 1), final.eq(left == 1)]
        return m
