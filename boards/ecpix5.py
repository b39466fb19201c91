"""LambdaConcept ECPIX-5: an ECP5UM5G-45F or -85F, a ULPI PHY that supplies the clock, 64 pins on eight PMODs."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import pmod
from .model.ecp5_buffers import SIZES
from .model.links import uart, ulpi

__all__ = ["BOARDS"]

#: Eight pins per PMOD; four of the 64 are left over.
_PINS = tuple(Pin(f"pmod_{pmod}:{pin}", f"PMOD{pmod} {pin}")
              for pmod in range(8) for pin in (1, 2, 3, 4, 7, 8, 9, 10))

_CONNECTORS = tuple(pmod(f"PMOD{n}", f"pmod_{n}") for n in range(8))


def _board(size: str, buffers: str, capture_hz: int) -> Board:
    return Board(
        name=f"ecpix5-{size.lower()}", title=f"ECPIX-5 {size}", fpga=f"LFE5UM5G-{size}-8BG554C",
        platform=f"amaranth_boards.ecpix5:ECPIX5{size[:2]}Platform", family="ecp5", openfpgaloader="ecpix5",
        oscillator_hz=100_000_000, capture_hz=capture_hz, links=(ulpi("ulpi", clock_from_phy=True), uart()),
        pins=_PINS[:60], spare=_PINS[60:],
        reference=ClockInput(_PINS[12], "LRC_GPLL0T_IN"),
        connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
        store_depth=SIZES[buffers].store_depth,
        lamps=("rgb_led:0.g", "rgb_led:1.g"),
        limits=("`hypermon flash` is for a board R02, whose debugger is an FT2232H. An R03 has an FT4232H and needs "
                "another name: `openFPGALoader -b ecpix5_r03` with the bitstream's file.",),
        documents=("amaranth-boards: ecpix5.py; Digilent: Pmod Interface Specification (ground and supply); "
                   "openFPGALoader: doc/boards.yml, src/cable.hpp",),
    )


#: The larger one's buffers are spread all over it, which makes longer wires.
BOARDS = (_board("45F", "25F", 140_000_000), _board("85F", "85F", 130_000_000))
