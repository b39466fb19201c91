"""Colorlight i5 v7.0 and i9 v7.2 on Muse Lab's extension board: an ECP5 of 25 or 45 thousand LUTs."""

from .model.board import Board, ClockInput
from .model.ecp5_buffers import SIZES
from .model.ext_board import LINK, LINK_NOTE, connectors, pins

__all__ = ["BOARDS", "I5", "I9"]

#: The balls at the holes of each header, as in i5_extboard_v1.2_pinout.png and i9_v7.2_pinout.png.
I5 = {
    "P2": "K18 T18 R17 M17 U18 P18 N18 L20 K20 G20 J20 L18 M18 N17 U17 T17 P17 R18 C18 U16",
    "P3": "D20 B19 A19 A18 C4 C3 A3 B1 D2 E2 D1 C1 C2 E3 B4 D3 C17 B18 B20 F20",
    "P4": "E1 E4 F3 H3 H5 J5 A2 K4 B2 - - E19 B3 K5 K3 J4 H4 G3 F1 F2",
    "P5": "F4 E6 D16 D17 E17 F16 E18 F18 G18 H18 J17 H17 H16 G16 F17 E16 D18 G5 F5 E5",
    "P6": "J18 P16 L4 N4 T3 T2 N2 V1 Y2 T1 R1 U1 W1 M1 N3 M3 R3 M4 L5 J16"}
I9 = {name: balls.replace("U16", "L2") for name, balls in I5.items()}
#: With an LED, which loads the wire.
_LED = ("U16", "L2")
#: Of the bank in which the FPGA reads its configuration.
_CONFIGURATION = ("T3", "T2", "V1", "Y2", "T1", "R1", "U1", "W1", "R3")


def _board(name: str, version: str, fpga: str, module: dict[str, str], headers: tuple[str, ...], nodes: int) -> Board:
    every = tuple(pins(module, headers, (*_LED, *_CONFIGURATION)))
    clock = next(pin for pin in every if pin.label == "P2 J20")
    return Board(
        name=f"colorlight-{name}", title=f"Colorlight {name} {version}", fpga=fpga,
        platform=f"hypermon.boards.toolchain.ext_board_platforms:Colorlight{name.upper()}Platform", family="ecp5",
        openfpgaloader=f"colorlight-{name}", oscillator_hz=25_000_000, capture_hz=120_000_000,
        regeneration_hz=80_000_000, links=(LINK,), pins=every[:5 * nodes], spare=every[5 * nodes:],
        reference=ClockInput(clock, "PCLKT2_0"), connectors=connectors(module, headers),
        attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"}, store_depth=SIZES["25F"].store_depth, lamps=("led:0",),
        notes=("The pins are those of the extension board for the i5 and the i9 (Muse Lab).",
               LINK_NOTE.format(rx="M1", tx="N2")),
        shared=("P5 is not used: some of its pins are also those of the extension board's debugger.",),
        documents=("github.com/wuxx/Colorlight-FPGA-Projects: README.md, colorlight_i9_v7.2.md (contacts of the "
                   "module), doc/i5_extboard_v1.2_pinout.png, doc/i9_v7.2_pinout.png",),
    )


BOARDS = (_board("i5", "v7.0", "LFE5U-25F-6BG381C", I5, ("P2", "P3", "P4"), 11),
          _board("i9", "v7.2", "LFE5U-45F-6BG381C", I9, ("P2", "P3", "P4", "P6"), 13))
