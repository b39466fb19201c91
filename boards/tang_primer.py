"""Sipeed Tang Primer 20K on its Dock: four PMODs, a serial port through the Dock's debugger."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import pmod
from .model.links import uart

__all__ = ["BOARDS"]

#: Six nodes on 30 of the 32 pins. Ones and twos of a PMOD are in a row, as numbered in amaranth-boards.
_PINS = tuple(Pin(f"pmod_{pmod}:{pin}", f"PMOD{pmod} {pin}") for pmod in range(4) for pin in (1, 2, 3, 4, 7, 8, 9, 10))

BOARDS = (Board(
    name="tang-primer-20k", title="Tang Primer 20K Dock", fpga="GW2A-LV18PG256C8/I7",
    platform="amaranth_boards.tang_primer_20k:TangPrimer20kDockPlatform", family="gowin",
    openfpgaloader="tangprimer20k", configs=("classic",), oscillator_hz=27_000_000, capture_hz=180_000_000,
    links=(uart(clock_hz=45_000_000),),
    pins=_PINS[:30], spare=_PINS[30:], reference=ClockInput(_PINS[25], "GCLKT_3"),
    connectors=tuple(pmod(f"PMOD{n}", f"pmod_{n}") for n in range(4)),
    attributes={"IO_TYPE": "LVCMOS33", "PULL_MODE": "DOWN"},
    notes=("PMOD0 to PMOD3 are numbered from top left to top right.",),
    shared=("The PMODs' pins are also wired to the Dock's display, camera and microphone connectors: leave these "
            "empty.",
            "PMOD3 4 (ball T9) is also the input of the Dock's WS2812 LED, which may light up when that wire changes."),
    limits=("The classic sink alone: the extended one has not been tried on a GW2A.",),
    documents=("amaranth-boards: tang_primer_20k.py; Digilent: Pmod Interface Specification (ground and supply); "
               "github.com/sipeed/TangPrimer-20K-example: WS2812/src/top.cst",),
),)
