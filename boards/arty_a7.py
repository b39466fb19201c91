"""Digilent Arty A7: an Artix-7, a serial port through an FT2232H, four PMODs and the headers of a chipKIT shield."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import listed, pmod
from .model.links import uart

__all__ = ["BOARDS"]

_PMODS = tuple(Pin(f"pmod_{number}:{pin}", f"J{letter} {pin}")
               for number, letter in enumerate("ABCD") for pin in (1, 2, 3, 4, 7, 8, 9, 10))
#: The shield's headers, as divided in Digilent's constraints, which give neither their positions nor their
# grounds.
_HEADERS = {"IO0-IO13": tuple(f"io{n}" for n in range(14)), "IO26-IO41": tuple(f"io{n}" for n in range(26, 42)),
            "IO20-IO25": tuple(f"io{n}" for n in range(20, 26)), "A0-A5": tuple(f"a{n}" for n in range(6))}
_SHIELD = tuple(Pin(f"ck_io_0:{name}", name.upper()) for names in _HEADERS.values() for name in names)
_PINS = (_PMODS + _SHIELD)[:70]
_CONNECTORS = (*(pmod(f"J{letter}", f"pmod_{number}") for number, letter in enumerate("ABCD")),
               *(listed(part, ((f"ck_io_0:{name}", name.upper()) for name in names))
                 for part, names in _HEADERS.items()))


def _board(size: int, device: str) -> Board:
    return Board(
        name=f"arty-a7-{size}t", title=f"Arty A7-{size}T", fpga=f"{device}csg324-1L",
        platform=f"amaranth_boards.arty_a7:ArtyA7_{size}Platform", family="xilinx7", openfpgaloader=f"arty_a7_{size}t",
        oscillator_hz=100_000_000, capture_hz=100_000_000, links=(uart(),),
        pins=_PINS, connectors=_CONNECTORS, attributes={"IOSTANDARD": "LVCMOS33", "PULLDOWN": "TRUE"},
        configs=("classic",), references_hz=(25_000_000, 100_000_000),
        reference=ClockInput(_PMODS[10], "IO_L12P_T1_MRCC_15"),
        notes=("JB and JC are PMODs for fast signals; JA and JD have resistors in series, which protect the FPGA.",),
        shared=("IO20 to IO25, A0 and A1 are also inputs of the analog-to-digital converter.",),
        limits=("The classic sink alone. Whether the extended sink is fast enough is not known, because Vivado has not "
                "been run for this project.",
                "Vivado places and routes this board, so `hypermon build` cannot check the delays of a port's wires or "
                "the paths between clocks."),
        documents=("amaranth-boards: arty_a7.py", "Digilent: Arty A7 Reference Manual, "
                   "Arty-A7-35-Master.xdc (also the clock-capable pins), Pmod Interface Specification"),
    )


BOARDS = (_board(35, "xc7a35ti"), _board(100, "xc7a100ti"))
