"""Sipeed Tang Nano 9K: a GW1NR-9 of 6,480 flip-flops, a serial port through its debugger, two rows of pins."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header
from .model.links import uart

__all__ = ["BOARDS"]

#: Four nodes on the 20 pins that are meant for a display, all in banks at 3.3 V.
_PINS = tuple(Pin(str(pin), f"pin {pin}") for pin in (
    33, 34, 35, 40, 41, 42, 51, 53, 54, 55, 56, 57, 68, 69, 70, 71, 72, 73, 74, 75))

#: Both rows as numbered in litex-boards, which does not describe three of the holes.
_J6 = (38, 37, 36, 39, 25, 26, 27, 28, 29, 30, 33, 34, 40, 35, 41, 42, 51, 53, 54, 55, 56, 57, 68, 69)
_J7 = (63, 86, 85, 84, 83, 82, 81, 80, 79, 77, 76, 75, 74, 73, 72, 71, 70, 0, 48, 49, 31, 32, 0, 0)
_CONNECTORS = tuple(
    header(name, columns=(range(1, len(at) + 1),), labels=dict(enumerate(map(str, at), 1)),
           pins=dict(enumerate(map(str, at), 1)), unknown=[n for n, ball in enumerate(at, 1) if not ball],
           note=f"the row that begins with {at[0]}")
    for name, at in (("J6", _J6), ("J7", _J7)))

#: The link uses the capture clock: with narrow beats, registers read the bus's held bundle directly, without a
#: register that a different clock would need.
BOARDS = (Board(
    name="tang-nano-9k", title="Tang Nano 9K", fpga="GW1NR-LV9QN88PC6/I5",
    platform="amaranth_boards.tang_nano_9k:TangNano9kPlatform", family="gowin",
    openfpgaloader="tangnano9k", configs=("classic",), oscillator_hz=27_000_000, capture_hz=60_000_000,
    links=(uart(1_500_000, 60_000_000),), small={"vector_depth": 512, "frame_depth": 512, "beat_bytes": 2},
    pins=_PINS, reference=ClockInput(_PINS[2], "GCLKT_4"),
    connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULL_MODE": "DOWN"},
    shared=("The pins are also wired to the connectors of a display and, from 68 on, of HDMI: leave these empty.",),
    limits=("The classic sink alone, without a node emulator: four nodes use more than half of 6,480 flip-flops, and "
            "the distributed memories block many of the others.",),
    documents=("amaranth-boards: tang_nano_9k.py; litex-boards: sipeed_tang_nano_9k.py (the rows)",),
),)
