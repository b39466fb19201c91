"""GsD OrangeCrab r0.2: an ECP5 of 25 or 85 thousand LUTs in the shape of a Feather; USB D+ and D- are wired to the
FPGA.
"""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header
from .model.ecp5_buffers import SIZES
from .model.links import usb_pins

__all__ = ["BOARDS"]

#: All but SDA, SCL, which are pulled up, and two that are left over.
_PINS = tuple(Pin(f"io_0:{pin}", label) for pin, label in (
    *((n, n) for n in ("0", "1", "5", "6", "9", "10", "11", "12", "13")),
    ("sck", "SCK"), ("copi", "MOSI"), ("cipo", "MISO"), ("a0", "A0"), ("a1", "A1"), ("a2", "A2")))

_LONG = {1: "RST", 2: "3V3", 3: "AREF", 4: "GND", **{n + 5: f"A{n}" for n in range(6)}, 11: "SCK", 12: "MOSI",
         13: "MISO", 14: "0", 15: "1", 16: "GND"}
_SHORT = {1: "BAT", 2: "EN", 3: "USB", 4: "13", 5: "12", 6: "11", 7: "10", 8: "9", 9: "6", 10: "5", 11: "SCL",
          12: "SDA"}
_CALLED = {"MOSI": "copi", "MISO": "cipo"}
_NAMES = tuple({n: f"io_0:{_CALLED.get(label, label.lower())}" for n, label in side.items()}
               for side in (_LONG, _SHORT))
#: The shape of a Feather: J2 at the left, J1 at the right, its first hole beside J2's fifth.
_CONNECTORS = (
    header("J2", columns=(range(1, 17),), labels=_LONG, pins=_NAMES[0], ground=(4, 16), supplies={2: 3.3},
           others={1: "reset", 3: "", 10: ""}, note="USB at the top, left side"),
    header("J1", columns=((0, 0, 0, 0, *range(1, 13)),), labels=_SHORT, pins=_NAMES[1], supplies={1: 4.2, 3: 5},
           others={1: "battery", 2: "enable"}, note="USB at the top, right side"))


def _board(size: str) -> Board:
    return Board(
        name=f"orangecrab-{size.lower()}", title=f"OrangeCrab r0.2 {size}", fpga=f"LFE5U-{size}-8MG285C",
        platform=f"amaranth_boards.orangecrab_r0_2:OrangeCrabR0_2_{size}Platform", family="ecp5", dfu="1209:5af0",
        oscillator_hz=48_000_000, capture_hz=120_000_000, links=(usb_pins(),),
        pins=_PINS, connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
        reference=ClockInput(_PINS[2], "PCLKT0_0"), store_depth=SIZES[size].store_depth, regeneration_hz=80_000_000,
        lamps=("rgb_led:0.g", "rgb_led:0.b"),
        shared=("A0 to A2 are also inputs of the analog multiplexer, which does not drive them.",),
        documents=("amaranth-boards: orangecrab_r0_2.py; "
                   "github.com/orangecrab-fpga/orangecrab-hardware: orangecrab_r0.2 (the connectors)",),
    )


BOARDS = (_board("25F"), _board("85F"))
