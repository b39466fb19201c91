"""Pads of an SDRAM: a flip-flop in every I/O cell, both ways, and the clock by a DDR output."""

from amaranth.hdl import Module
from amaranth.lib import io
from hypermon.hdl.top import SdramWires

__all__ = ["sdram_pads"]

#: Bits of ``sdram_command``, by their names in the platform.
_COMMAND = ("ras", "cas", "we")


def sdram_pads(m: Module, port, wires: SdramWires) -> None:
    """Connects a platform's SDRAM, requested without direction, to a board's ports; its clock is domain ``capture``.

    The memory has the inverse clock, by a DDR output that is as late as the flip-flops beside it: so its rising edge
    is in the middle of what they give. What it gives is taken as :class:`~hypermon.hdl.stream.sdram_controller.Sdram`
    says. The driver of the data is on clocks before and behind them: its own delay does not matter.
    """
    m.submodules.sdram_clk = clock = io.DDRBuffer("o", port.clk, o_domain="capture")
    m.d.comb += clock.o.eq(0b10)
    outputs = {"clk_en": wires.cke, "cs": 1, "ba": wires.bank, "a": wires.address, "dqm": wires.mask.replicate(2),
               **{name: wires.command[bit] for bit, name in enumerate(_COMMAND)}}
    for name, value in outputs.items():
        m.submodules[f"sdram_{name}"] = pad = io.FFBuffer("o", getattr(port, name), o_domain="capture")
        m.d.comb += pad.o.eq(value)
    m.submodules.sdram_dq = dq = io.FFBuffer("io", port.dq, i_domain="capture", o_domain="capture")
    m.d.comb += [dq.o.eq(wires.dq_o), dq.oe.eq(wires.dq_oe), wires.dq_i.eq(dq.i)]
