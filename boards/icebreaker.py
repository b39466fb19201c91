"""1BitSquared iCEBreaker: an iCE40 UltraPlus of 5,280 cells, a serial port through its USB bridge, three PMODs."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import pmod
from .model.links import uart

__all__ = ["BOARDS"]

#: Four nodes on 20 of the 24 pins.
_PMODS = ("PMOD1A", "PMOD1B", "PMOD2")
_PINS = tuple(Pin(f"pmod_{pmod}:{pin}", f"{name} {pin}")
              for pmod, name in enumerate(_PMODS) for pin in (1, 2, 3, 4, 7, 8, 9, 10))

BOARDS = (Board(
    name="icebreaker", title="iCEBreaker", fpga="iCE40UP5K-SG48",
    platform="amaranth_boards.icebreaker:ICEBreakerPlatform", family="ice40",
    openfpgaloader="ice40_generic", configs=("classic",), oscillator_hz=12_000_000, capture_hz=15_000_000,
    links=(uart(1_500_000, 15_000_000),),
    small={"node_depth": 16, "vector_depth": 256, "frame_depth": 64, "beat_bytes": 2},
    pins=_PINS[:20], spare=_PINS[20:], reference=ClockInput(_PINS[7], "GBIN"),
    references_hz=(10_000_000, 100_000_000),
    connectors=tuple(pmod(name, f"pmod_{n}") for n, name in enumerate(_PMODS)),
    attributes={"IO_STANDARD": "SB_LVCMOS", "PULLUP": 1},
    shared=("PMOD2 is wired to the detachable part of the board with buttons and LEDs.",),
    limits=("Four nodes with the classic sink alone, without a node emulator, occupy 93 % of the cells, so "
            "nothing else fits.",
            "15 MHz, although nextpnr reaches 22.5 MHz: a capture clock is a multiple of 5 MHz, and 15 MHz is the only "
            "one below 30 MHz that the PLL can generate. The serial port therefore runs at 1.5 Mbaud.",
            "An iCE40 has pull-ups only, no pull-downs."),
    documents=("amaranth-boards: icebreaker.py; "
               "github.com/icebreaker-fpga/icebreaker: hardware/v1.0e (the connectors); "
               "github.com/YosysHQ/icestorm: icefuzz/tests/colbuf_io_u4k.sh (global inputs)",),
),)
