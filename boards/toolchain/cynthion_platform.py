"""Amaranth platform of a Cynthion r1.4: only the parts of the board that this project uses.

Balls are those of github.com/greatscottgadgets/cynthion, cynthion/python/src/gateware/platform/cynthion_r1_4.py.
"""

from typing import ClassVar

from amaranth.build import Attrs, Clock, Connector, Pins, PinsN, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import LEDResources, ULPIResource

__all__ = ["CynthionR1D4Platform"]

_LEVEL = Attrs(IO_TYPE="LVCMOS33")


class CynthionR1D4Platform(LatticeECP5Platform):
    """Clock, lamps, the PHY of the port AUX, both PMODs and the mezzanine."""

    device, package, speed = "LFE5U-12F", "BG256", "8"
    default_clk = "clk_60MHz"
    #: The USB3343's register that swaps D+ and D-, as they are swapped on the board; LUNA writes it.
    ulpi_extra_registers: ClassVar = {0x39: 0b000110}
    resources: ClassVar = [
        Resource("clk_60MHz", 0, Pins("A8", dir="i"), Clock(60e6), _LEVEL),
        *LEDResources(pins="E13 C13 B14 A15 D12 C11", invert=True, attrs=_LEVEL),
        ULPIResource("aux_phy", 0, data="F16 G15 G16 H15 J15 J16 K15 K16", clk="D16", clk_dir="o", dir="E16",
                     nxt="F15", stp="E15", rst="J13", rst_invert=True,
                     attrs=Attrs(IO_TYPE="LVCMOS33", SLEWRATE="FAST")),
        Resource("self_program", 0, PinsN("T13", dir="o"), Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP")),
    ]
    connectors: ClassVar = [
        Connector("pmod", 0, "C9 B9 D11 C12 - - C8 D8 D9 C10 - -"),
        Connector("pmod", 1, "B4 B5 B6 B7 - - C5 A5 A6 A7 - -"),
        Connector("mezzanine", 0, "- - B8 A9 B10 A10 B11 D14 C14 F14 E14 G13 G12 - - "
                                  "- - C16 C15 B16 B15 A14 B13 A13 D13 A12 B12 A11 - -"),
    ]
