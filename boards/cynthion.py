"""Great Scott Gadgets Cynthion r1.4: an ECP5-12F, three ULPI PHYs, 38 pins on two PMODs and the mezzanine."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header, pmod
from .model.ecp5_buffers import SIZES
from .model.links import ulpi

__all__ = ["BOARDS"]

#: Three of the 38 are left over for ports.
_PINS = (*(Pin(f"pmod_{number}:{pin}", f"PMOD {letter} {pin}")
           for number, letter in enumerate("AB") for pin in (1, 2, 3, 4, 7, 8, 9, 10)),
         *(Pin(f"mezzanine_0:{pin}", f"MEZZANINE {pin}") for pin in (*range(3, 14), *range(18, 29))))
_CONNECTORS = (
    pmod("PMOD A", "pmod_0"), pmod("PMOD B", "pmod_1"),
    header("MEZZANINE", "mezzanine_0", (range(30, 15, -1), range(1, 16)), ground=(2, 14, 17, 29),
           supplies={15: 3.3, 16: 3.3}, others={1: "", 30: ""}, note="0.5 mm, Amphenol 10132798: needs its mate"))

BOARDS = (Board(
    name="cynthion", title="Cynthion r1.4", fpga="LFE5U-12F-8BG256C",
    platform="hypermon.boards.toolchain.cynthion_platform:CynthionR1D4Platform", family="ecp5", apollo=True,
    oscillator_hz=60_000_000, capture_hz=150_000_000, links=(ulpi("aux_phy"),),
    pins=_PINS[:35], spare=_PINS[35:], reference=ClockInput(_PINS[4], "PCLKT1_0"),
    connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
    store_depth=SIZES["25F"].store_depth,
    notes=("The link is the port AUX; the port CONTROL remains that of the debugger.",),
    documents=("github.com/greatscottgadgets/cynthion: cynthion/python/src/gateware/platform/cynthion_r1_4.py; "
               "github.com/greatscottgadgets/cynthion-hardware: expansion.kicad_sch, Amphenol_10132798-03.kicad_mod",),
),)
