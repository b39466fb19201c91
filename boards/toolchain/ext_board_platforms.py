"""Amaranth platforms of the modules that plug into Muse Lab's extension board: what this project uses of them.

The headers are connectors ``p_2`` to ``p_6``, by hole, and the serial port is at two holes of P6.
"""

from collections.abc import Mapping
from typing import ClassVar

from amaranth.build import Attrs, Clock, Connector, Pins, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from amaranth_boards.resources import LEDResources, UARTResource

from ..colorlight import I5, I9
from ..icesugar_pro import BALLS
from ..model.ext_board import UART_HOLES, at_holes

__all__ = ["ColorlightI5Platform", "ColorlightI9Platform", "ICESugarProExtPlatform"]

_LEVEL = Attrs(IO_TYPE="LVCMOS33")


def _headers(module: Mapping[str, str]) -> list[Connector]:
    return [Connector("p", int(name[1:]), {str(hole): ball for hole, ball in at_holes(balls).items()})
            for name, balls in module.items()]


def _uart() -> Resource:
    return UARTResource(0, rx=str(UART_HOLES["rx"]), tx=str(UART_HOLES["tx"]), conn=("p", 6),
                        attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP"))


class _ColorlightPlatform(LatticeECP5Platform):
    package, speed = "BG381", "6"
    default_clk = "clk25"


class ColorlightI5Platform(_ColorlightPlatform):
    """i5 v7.0."""

    device = "LFE5U-25F"
    resources: ClassVar = [Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), _LEVEL),
                           *LEDResources(pins="U16", invert=True, attrs=_LEVEL), _uart()]
    connectors: ClassVar = _headers(I5)


class ColorlightI9Platform(_ColorlightPlatform):
    """i9 v7.2."""

    device = "LFE5U-45F"
    resources: ClassVar = [Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), _LEVEL),
                           *LEDResources(pins="L2", invert=True, attrs=_LEVEL), _uart()]
    connectors: ClassVar = _headers(I9)


class ICESugarProExtPlatform(ICESugarProPlatform):
    """iCESugar-Pro, whose serial port is at the extension board and not at its debugger."""

    resources: ClassVar = [*(one for one in ICESugarProPlatform.resources if one.name != "uart"), _uart()]
    connectors: ClassVar = [*ICESugarProPlatform.connectors, *_headers(BALLS)]
