"""Lattice iCE40-HX8K-B-EVN: an iCE40 of 7,680 cells, a serial port through the USB bridge, pins in four rows."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import listed
from .model.links import uart

__all__ = ["BOARDS"]

#: Eight nodes in rows J2 and J3, as amaranth-boards numbers their pins; the other two rows have the LEDs, the
#: oscillator and the serial port.
_J2 = (4, 5, 6, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 22, 25, 26, 27, 28, 29)
_J3 = (3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 22, 25, 26, 27, 28)

#: All pins of both rows. amaranth-boards does not list the ground holes between them, nor the rows' positions.
_ROWS = {2: (4, 5, 6, *range(9, 15), *range(17, 23), *range(25, 31), *range(33, 39)),
         3: (1, *range(3, 7), *range(9, 15), *range(17, 23), *range(25, 31), *range(33, 39))}
_CONNECTORS = tuple(listed(f"J{row}", ((f"j_{row}:{pin}", str(pin)) for pin in pins)) for row, pins in _ROWS.items())

BOARDS = (Board(
    name="ice40-hx8k", title="iCE40-HX8K Breakout Board", fpga="iCE40HX8K-CT256",
    platform="amaranth_boards.ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform", family="ice40",
    openfpgaloader="ice40_generic", configs=("classic",), oscillator_hz=12_000_000, capture_hz=45_000_000,
    links=(uart(clock_hz=45_000_000),), small={"vector_depth": 256, "frame_depth": 64, "beat_bytes": 2},
    pins=tuple(Pin(f"j_{row}:{pin}", f"J{row} pin {pin}") for row, pins in ((2, _J2), (3, _J3)) for pin in pins),
    reference=ClockInput(Pin("j_3:22", "J3 pin 22"), "GBIN"), references_hz=(10_000_000, 100_000_000),
    connectors=_CONNECTORS, attributes={"IO_STANDARD": "SB_LVCMOS", "PULLUP": 1},
    limits=("8 nodes: 16 would need 43 of the part's 32 block RAMs (each node FIFO is one) and 8,600 of its "
            "7,680 cells.",
            "The classic sink alone, without a node emulator, because there is no room for more.",
            "An iCE40 has pull-ups only, no pull-downs."),
    documents=("amaranth-boards: ice40_hx8k_b_evn.py; "
               "github.com/YosysHQ/icestorm: icefuzz/tests/colbuf_ram_8k.sh (global inputs)",),
),)
