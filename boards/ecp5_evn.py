"""Lattice ECP5-5G Evaluation Board (LFE5UM5G-85F-EVN): 32 nodes on its headers, a serial port through an FT2232H."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header, listed, pmod
from .model.ecp5_buffers import SIZES
from .model.links import uart

__all__ = ["BOARDS"]

#: Connectors, with those of their pins that are connected to the FPGA: 28 nodes in banks 0, 2, 3, 6 and 7, which are
#: at 3.3 V as the board is delivered, and the last four in bank 1. The configuration's own pins (J38, bank 8) are
#: omitted.
_HEADERS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("JP_8", (3, 5, 7, 8, 10, 11, 12, 13, 15, 16, 18, 19, 21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 33, 35, 36, 37, 38,
              40)),
    ("J_40", (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21, 23, 25, 27, 28, 29, 31, 32, 35, 39)),
    ("J_32", (5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26, 29, 30, 33, 34, 37, 38)),
    ("J_33", (5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26, 29, 30)),
    ("J_6", (1, 2, 3, 4, 5, 6, 8, 9, 10)), ("J_3", (1, 2, 3, 4, 5, 6, 7, 8)), ("J_7", (1, 3)),
    ("J_4", (1, 2, 3, 4, 5, 6)), ("J_5", (3, 4, 7, 8, 11, 12, 15, 16, 19)), ("J_8", (3, 4, 5, 6, 7)),
    ("J_31", (1, 2, 3, 4, 7, 8, 9, 10)), ("J_39", (19, 20, 29, 31)), ("J_30", (2, 3, 4)),
    # Bank 1.
    ("J_39", (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 33)), ("J_40", (3, 33, 36, 37)),
)
_PINS = tuple(Pin(f"{connector}:{pin}", f"{connector.replace('_', '')} {pin}")
              for connector, pins in _HEADERS for pin in pins)

#: The Raspberry Pi's header and the PMOD have the usual layout. The positions of the others, and which of their
#: holes are ground, are only in the board's schematic.
_LISTED = {
    "J_5": (3, 4, 7, 8, 11, 12, 15, 16, 19),
    "J_40": (1, *range(3, 19), 21, 23, 25, 27, 28, 29, 31, 32, 33, 35, 36, 37, 39),
    "J_39": (*range(4, 21), 29, 31, 33), "J_32": (5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26, 29, 30, 33, 34, 37, 38),
    "J_33": (5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26, 29, 30),
    "J_6": (*range(1, 7), 8, 9, 10), "J_3": range(1, 9), "J_7": (1, 3), "J_4": range(1, 7), "J_8": range(3, 8),
    "J_30": range(2, 9)}
_CONNECTORS = (
    header("JP8", "JP_8", (range(1, 41, 2), range(2, 41, 2)), ground=(6, 9, 14, 20, 25, 30, 34, 39),
           supplies={1: 3.3, 2: 5, 4: 5, 17: 3.3}, note="the Raspberry Pi's"),
    pmod("J31", "J_31"),
    *(listed(name.replace("_", ""), ((f"{name}:{pin}", str(pin)) for pin in pins)) for name, pins in _LISTED.items()))

BOARDS = (Board(
    name="ecp5-evn", title="ECP5-5G Evaluation Board", fpga="LFE5UM5G-85F-8BG381C",
    platform="amaranth_boards.ecp5_5g_evn:ECP55GEVNPlatform", family="ecp5", openfpgaloader="ecp5_evn",
    options={"VCCIO1": "3V3"}, oscillator_hz=12_000_000, capture_hz=120_000_000, links=(uart(),),
    pins=_PINS, connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
    reference=ClockInput(_PINS[30], "PCLKT6_0"), store_depth=SIZES["85F"].store_depth,
    notes=("Nodes 28 to 31 are in bank 1, which is supplied with 2.5 V as delivered: for 3.3 V, remove R100 and fit "
           "R105.",
           "The serial port reaches the FPGA only if R34 and R35 are fitted, R22 and R23 are removed, and port B of "
           "the FT2232H is configured as a serial port (github.com/trabucayre/fixFT2232_ecp5evn).",),
    shared=("JP8 is the Raspberry Pi's header, J3, J4, J6 and J7 are an Arduino's, J30 a microphone board's, J31 a "
            "PMOD: nothing else may be plugged in.",),
    documents=("amaranth-boards: ecp5_5g_evn.py; litex-boards: lattice_ecp5_evn.py (the serial port's resistors, "
               "JP8, J31)",),
),)
