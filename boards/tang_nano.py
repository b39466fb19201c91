"""Sipeed Tang Nano 9K, a GW1NR-9 of 6,480 flip-flops, and 20K, a GW2AR-18 of 15,552: a serial port through the
debugger, two rows of pins.
"""

from collections.abc import Mapping

from .model.board import Board, ClockInput, Pin
from .model.connectors import Connector, header
from .model.links import uart

__all__ = ["BOARDS"]

#: Four nodes on the 20 pins that are meant for a display, all in banks at 3.3 V.
_PINS = tuple(Pin(str(pin), f"pin {pin}") for pin in (
    33, 34, 35, 40, 41, 42, 51, 53, 54, 55, 56, 57, 68, 69, 70, 71, 72, 73, 74, 75))

#: Both rows of each as numbered in litex-boards, which does not describe some of the holes.
_ROWS_9K = {
    "J6": (38, 37, 36, 39, 25, 26, 27, 28, 29, 30, 33, 34, 40, 35, 41, 42, 51, 53, 54, 55, 56, 57, 68, 69),
    "J7": (63, 86, 85, 84, 83, 82, 81, 80, 79, 77, 76, 75, 74, 73, 72, 71, 70, 0, 48, 49, 31, 32, 0, 0)}
_ROWS_20K = {
    "J5": (0, 0, 76, 80, 42, 41, 56, 54, 51, 48, 55, 49, 86, 79, 0, 0, 72, 71, 53, 52),
    "J6": (73, 74, 75, 85, 77, 15, 16, 27, 28, 25, 26, 29, 30, 31, 17, 20, 19, 18, 0, 0)}


def _connectors(rows: Mapping[str, tuple[int, ...]]) -> tuple[Connector, ...]:
    return tuple(
        header(name, columns=(range(1, len(at) + 1),), labels=dict(enumerate(map(str, at), 1)),
               pins=dict(enumerate(map(str, at), 1)), unknown=[n for n, pin in enumerate(at, 1) if not pin],
               note=f"the row that begins with {at[0]}" if at[0] else f"the row that ends with {at[-1]}")
        for name, at in rows.items())


#: Three nodes of a 20K, and three pins that are left over: not those of LEDs, of HDMI, of the debugger's fast port or
#: of the SD card.
_PINS_20K = tuple(Pin(str(pin), f"pin {pin}") for pin in (
    73, 74, 77, 27, 28, 29, 30, 31, 41, 42, 48, 49, 55, 71, 72, 51, 54, 56))

#: The 9K's link uses the capture clock: with narrow beats, registers read the bus's held bundle directly, without a
#: register that a different clock would need.
BOARDS = (Board(
    name="tang-nano-9k", title="Tang Nano 9K", fpga="GW1NR-LV9QN88PC6/I5",
    platform="amaranth_boards.tang_nano_9k:TangNano9kPlatform", family="gowin",
    openfpgaloader="tangnano9k", configs=("classic",), oscillator_hz=27_000_000, capture_hz=60_000_000,
    links=(uart(1_500_000, 60_000_000),), small={"vector_depth": 512, "frame_depth": 512, "beat_bytes": 2},
    pins=_PINS, reference=ClockInput(_PINS[2], "GCLKT_4"),
    connectors=_connectors(_ROWS_9K), attributes={"IO_TYPE": "LVCMOS33", "PULL_MODE": "DOWN"},
    shared=("The pins are also wired to the connectors of a display and, from 68 on, of HDMI: leave these empty.",),
    limits=("The classic sink alone, without a node emulator: four nodes use more than half of 6,480 flip-flops, and "
            "the distributed memories block many of the others.",),
    documents=("amaranth-boards: tang_nano_9k.py; litex-boards: sipeed_tang_nano_9k.py (the rows)",),
), Board(
    name="tang-nano-20k", title="Tang Nano 20K", fpga="GW2AR-LV18QN88C8/I7",
    platform="hypermon.boards.toolchain.tang_nano_20k_platform:TangNano20kPlatform", family="gowin",
    openfpgaloader="tangnano20k", configs=("classic",), oscillator_hz=27_000_000, capture_hz=180_000_000,
    links=(uart(1_500_000, 45_000_000),),
    pins=_PINS_20K[:15], spare=_PINS_20K[15:], reference=ClockInput(_PINS_20K[2], "GCLKT_1"),
    connectors=_connectors(_ROWS_20K), attributes={"IO_TYPE": "LVCMOS33", "PULL_MODE": "DOWN"},
    shared=("The pins are also wired to the connector of a display, and 48, 51 and 54 to 56 to the audio amplifier: "
            "leave these connectors empty.",),
    limits=("The classic sink alone: the extended one has not been tried on a GW2A.",
            "The pins have not been compared with the schematic."),
    documents=("litex-boards: sipeed_tang_nano_20k.py",),
))
