"""Muse Lab's extension board for modules in the shape of a DDR2 SODIMM: Colorlight i5 and i9, iCESugar-Pro.

Its headers P2 to P6 have 15 rows of two holes each, with grounds and supplies at the same places. P1 has no pins of the
FPGA. A module is described by the balls at the other holes, as the published maps print them.
"""

from collections.abc import Collection, Iterator, Mapping

from .board import Pin
from .connectors import Connector, header
from .links import BoardLink, uart

__all__ = ["LINK", "LINK_NOTE", "UART_HOLES", "at_holes", "connectors", "pins"]

_ROWS = 15
_GROUND = (2, 8, 11, 20, 29)
_SUPPLIES = {1: 3.3, 10: 3.3, 21: 3.3, 23: 5, 30: 3.3}
#: A hole without a ball, in a map.
_NOTHING = "-"

#: The holes of P6 at which the FPGA receives and transmits, beside each other and beside a ground.
UART_HOLES = {"rx": 19, "tx": 12}
LINK: BoardLink = uart()
LINK_NOTE = (
    "The link is a USB serial adapter of your own, for 3.3 V and 3 Mbaud (with an FT232R or FT2232H, for instance): "
    "connect its TXD to P6 {rx}, its RXD to P6 {tx}, and ground. The debugger's own serial port is not used: no source "
    "says which rate it reaches.")


def at_holes(balls: str) -> dict[int, str]:
    """The balls of a header by hole.

    Parameters
    ----------
    balls : in the order of the holes, counted from the square pad down its column and back up the other one, without
        grounds and supplies; ``-`` for a hole that is not wired.
    """
    holes = (hole for hole in range(1, 2 * _ROWS + 1) if hole not in (*_GROUND, *_SUPPLIES))
    return {hole: ball for hole, ball in zip(holes, balls.split(), strict=True) if ball != _NOTHING}


def _header(name: str, balls: str) -> Connector:
    wired = at_holes(balls)
    empty = {*range(1, 2 * _ROWS + 1)}.difference(wired, _GROUND, _SUPPLIES)
    return header(name, f"p_{name[1:]}", (range(1, _ROWS + 1), range(2 * _ROWS, _ROWS, -1)), labels=wired,
                  ground=_GROUND, supplies=_SUPPLIES, others=dict.fromkeys(empty, ""),
                  note="turned so that the square pad is at the top left")


def connectors(module: Mapping[str, str], headers: Collection[str]) -> tuple[Connector, ...]:
    """Some headers and that of the link, from a module's balls by header, see :func:`at_holes`."""
    return tuple(_header(name, balls) for name, balls in module.items() if name in headers or name == "P6")


def pins(module: Mapping[str, str], headers: Collection[str], without: Collection[str] = ()) -> Iterator[Pin]:
    """The pins of some headers, without some balls and without those of the link."""
    for name in headers:
        for hole, ball in at_holes(module[name]).items():
            if ball not in without and not (name == "P6" and hole in UART_HOLES.values()):
                yield Pin(f"p_{name[1:]}:{hole}", f"{name} {ball}")
