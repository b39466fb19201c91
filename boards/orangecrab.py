"""GsD OrangeCrab r0.2: an ECP5 of 25 or 85 thousand tables in the shape of a Feather; D+ and D- at the FPGA."""

from .board import Board, Pin
from .links import usb_pins
from .sizes import SIZES

__all__ = ["BOARDS"]

#: All but SDA, SCL, which are pulled up, and two that are left over.
_PINS = tuple(Pin(f"io_0:{pin}", label) for pin, label in (
    *((n, n) for n in ("0", "1", "5", "6", "9", "10", "11", "12", "13")),
    ("sck", "SCK"), ("copi", "MOSI"), ("cipo", "MISO"), ("a0", "A0"), ("a1", "A1"), ("a2", "A2")))


def _board(size: str) -> Board:
    return Board(
        name=f"orangecrab-{size.lower()}", title=f"OrangeCrab r0.2 {size}", fpga=f"LFE5U-{size}-8MG285C",
        platform=f"amaranth_boards.orangecrab_r0_2:OrangeCrabR0_2_{size}Platform", family="ecp5", dfu="1209:5af0",
        oscillator_hz=48_000_000, capture_hz=120_000_000, links=(usb_pins(),),
        pins=_PINS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"}, store_depth=SIZES[size].store_depth,
        lamps=("rgb_led:0.g", "rgb_led:0.b"),
        shared=("A0 to A2 are inputs of the analog multiplexer too, which does not drive them.",),
        documents=("amaranth-boards: orangecrab_r0_2.py",),
    )


BOARDS = (_board("25F"), _board("85F"))
