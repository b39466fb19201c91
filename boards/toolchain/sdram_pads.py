"""Pads of an SDRAM: a flip-flop in every I/O cell, in both directions, and the clock from a DDR output."""

from amaranth.hdl import Module
from amaranth.lib import io
from hypermon.hdl.top import SdramWires

__all__ = ["sdram_pads"]

#: Bits of ``sdram_command``, by their names in the platform.
_COMMAND = ("ras", "cas", "we")


def sdram_pads(m: Module, port, wires: SdramWires) -> None:
    """Connects a platform's SDRAM, requested without direction, to a board's ports; its clock is domain ``capture``.

    The memory has the inverse clock, from a DDR output with the same delay as the flip-flops next to it. Its rising
    edge is therefore in the middle of their levels. Its data are sampled as described in
    :class:`~hypermon.hdl.stream.sdram_controller.Sdram`. The driver of the data is enabled some clocks before and after
    them, so its own delay does not matter.
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
