"""Amaranth platform of a Tang Nano 20K: only the parts of the board that this project uses.

Pins are those of litex-boards: sipeed_tang_nano_20k.py.
"""

from typing import ClassVar

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.resources import LEDResources, UARTResource

__all__ = ["TangNano20kPlatform"]

_LEVEL = Attrs(IO_TYPE="LVCMOS33")


class TangNano20kPlatform(GowinPlatform):
    """Clock, lamps, and the serial port of the debugger. Pins have their numbers as names."""

    part, family = "GW2AR-LV18QN88C8/I7", "GW2AR-18C"
    #: nextpnr's name of the same array without the SDRAM.
    _chipdb_device = "GW2A-18C"
    default_clk = "clk27"
    resources: ClassVar = [
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), _LEVEL),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=_LEVEL),
        UARTResource(0, rx="70", tx="69", attrs=Attrs(PULL_MODE="UP", IO_TYPE="LVCMOS33")),
    ]
    connectors: ClassVar = []
