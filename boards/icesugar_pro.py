"""Muse Lab iCESugar-Pro on the extension board: an ECP5 of 25 thousand LUTs in the shape of a SODIMM."""

from .model.board import Board, ClockInput
from .model.ecp5_buffers import SIZES
from .model.ext_board import LINK, LINK_NOTE, connectors, pins

__all__ = ["BALLS", "BOARDS"]

#: The balls at the holes of each header, as in iCESugar-pro-pinmap.png.
BALLS = {
    "P2": "B8 B7 B6 B5 B4 B3 B1 C1 D1 F2 E1 C2 B2 A2 A3 A4 A5 A6 A7 A8",
    "P3": "K1 M1 N1 P1 R1 T2 T3 T4 R6 P7 T6 R5 R4 R3 R2 P2 N3 M2 L2 G2",
    "P4": "R7 D5 D4 E4 F4 G4 K4 H3 K3 - - J2 J3 J4 G3 F3 E3 C3 C4 R8",
    "P5": "C5 C6 C7 C8 C9 C10 C11 C12 C13 E13 E14 E12 D13 D12 D11 D10 D9 D8 D7 D6",
    "P6": "F13 G13 H13 J13 K13 L13 M13 P14 P13 P12 P11 N12 N13 M12 L14 K14 J14 H14 G14 F14"}
#: Of the bank in which the FPGA reads its configuration.
_CONFIGURATION = ("R6", "P7", "T6", "R7", "R8")
_HEADERS = ("P2", "P3", "P6")
_PINS = tuple(pins(BALLS, _HEADERS, _CONFIGURATION))

BOARDS = (Board(
    name="icesugar-pro", title="iCESugar-Pro", fpga="LFE5U-25F-6BG256C",
    platform="hypermon.boards.toolchain.ext_board_platforms:ICESugarProExtPlatform", family="ecp5",
    # For openFPGALoader this name means a CMSIS-DAP debugger. This board has one as well.
    openfpgaloader="colorlight-i5", oscillator_hz=25_000_000, capture_hz=120_000_000, regeneration_hz=80_000_000,
    links=(LINK,), pins=_PINS, reference=ClockInput(next(pin for pin in _PINS if pin.label == "P3 K1"), "PCLKT7_0"),
    connectors=connectors(BALLS, _HEADERS), attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
    store_depth=SIZES["25F"].store_depth, lamps=("rgb_led:0.g", "rgb_led:0.b"),
    notes=("The pins are those of the extension board for the Colorlight i5, into which the module is plugged.",
           LINK_NOTE.format(rx="M12", tx="M13"),
           "`hypermon flash` uses the module's debugger, iCELink; a bitstream that is copied to its drive is stored.",),
    shared=("P5 is not used: some of its pins are also those of the extension board's debugger.",),
    documents=("amaranth-boards: icesugar_pro.py; github.com/wuxx/icesugar-pro: schematic/README.md (contacts of the "
               "module), doc/iCESugar-pro-pinmap.png",),
),)
