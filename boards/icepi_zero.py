"""Icepi Zero v1.3: an ECP5 of 25 thousand LUTs in the shape of a Raspberry Pi Zero, with an FT231X."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header
from .model.ecp5_buffers import SIZES
from .model.links import uart

__all__ = ["BOARDS"]

#: The Raspberry Pi's numbers of the GPIOs, by hole.
_GPIO = {3: 2, 5: 3, 7: 4, 8: 14, 10: 15, 11: 17, 12: 18, 13: 27, 15: 22, 16: 23, 18: 24, 19: 10, 21: 9, 22: 25, 23: 11,
         24: 8, 26: 7, 27: 0, 28: 1, 29: 5, 31: 6, 32: 12, 33: 13, 35: 19, 36: 16, 37: 26, 38: 20, 40: 21}
#: In the order of the holes; three of the 28 are left over.
_PINS = tuple(Pin(f"gpio_0:{gpio}", f"GPIO{gpio}") for gpio in _GPIO.values())

BOARDS = (Board(
    name="icepi-zero", title="Icepi Zero v1.3", fpga="LFE5U-25F-6BG256C",
    platform="amaranth_boards.icepi_zero:IcepiZero1_3Platform", family="ecp5", openfpgaloader="icepi-zero",
    oscillator_hz=50_000_000, capture_hz=120_000_000, regeneration_hz=80_000_000, links=(uart(),),
    pins=_PINS[:25], spare=_PINS[25:], reference=ClockInput(_PINS[12], "PCLKT7_1"),
    connectors=(header(
        "header", columns=(range(1, 41, 2), range(2, 41, 2)), labels={hole: f"GPIO{n}" for hole, n in _GPIO.items()},
        pins={hole: f"gpio_0:{n}" for hole, n in _GPIO.items()}, ground=(6, 9, 14, 20, 25, 30, 34, 39),
        supplies={1: 3.3, 2: 5, 4: 5, 17: 3.3}, note="as on a Raspberry Pi"),),
    attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"}, store_depth=SIZES["25F"].store_depth,
    notes=("The serial port is the FT231X's, at the USB connector that also loads the bitstream.",),
    documents=("amaranth-boards: icepi_zero.py; github.com/cheyao/icepi-zero: hardware/icepi-zero.kicad_pcb, an "
               "earlier version (the header, with other balls for the clock and for GPIO23)",),
),)
