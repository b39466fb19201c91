"""Radiona ULX3S: an ECP5 of 12 to 85 thousand LUTs, a serial port of 3 Mbaud, 56 pins on two headers."""

from dataclasses import replace

from hypermon.hdl.layout import Option

from .model.board import Board, ClockInput, Memory, Pin
from .model.connectors import header
from .model.ecp5_buffers import SIZES
from .model.links import uart, usb_pins

__all__ = ["BOARDS"]

#: J1 carries GP0 to GN13, J2 GP14 to GN27; one pin of the 56 is left over.
_ALL = tuple(Pin(f"gpio_0:{n}{sign}", f"{'J1' if n < 14 else 'J2'} G{letter}{n}")
             for n in range(28) for sign, letter in (("+", "P"), ("-", "N")))
_PINS, _SPARE = _ALL[:55], _ALL[55:]
#: Nodes of a board whose strobes are sampled four times per clock.
_FINE_NODES = 11
#: Its clock: a PLL makes twice that, and 50 MHz for the link.
_FINE_HZ = 125_000_000

#: Both headers have three pairs each of ground and supply, with GP on the outside; J2's pin 1 is at its lower
# end.
_SIDES = tuple(
    {number: f"G{letter}{pin}" for pin, at in zip(range(first, first + 14), (*range(5, 18, 2), *range(23, 36, 2)),
                                                  strict=True) for number, letter in ((at, "N"), (at + 1, "P"))}
    for first in (0, 14))
_GROUND = (3, 4, 21, 22, 37, 38)
_SUPPLY = (1, 2, 19, 20, 39, 40)
_CONNECTORS = tuple(
    header(name, columns=columns, labels=side, ground=_GROUND, supplies=supplies, others=others,
           pins={number: f"gpio_0:{label[2:]}{'+' if label[1] == 'P' else '-'}" for number, label in side.items()},
           note="USB at the top")
    for name, side, columns, supplies, others in (
        ("J1", _SIDES[0], (range(2, 41, 2), range(1, 40, 2)), dict.fromkeys(_SUPPLY, 3.3),
         dict.fromkeys(_SUPPLY, "2.5/3.3")),
        ("J2", _SIDES[1], (range(39, 0, -2), range(40, 1, -2)),
         dict.fromkeys(_SUPPLY[:4], 3.3) | dict.fromkeys(_SUPPLY[4:], 5), {39: "5 V in", 40: "5 V out"})))


def _board(size: str, buffers: str) -> Board:
    return Board(
        name=f"ulx3s-{size.lower()}", title=f"ULX3S {size}", fpga=f"LFE5U-{size}-6BG381C",
        platform=f"amaranth_boards.ulx3s:ULX3S_{size}_Platform", family="ecp5", openfpgaloader="ulx3s",
        oscillator_hz=25_000_000, capture_hz=120_000_000, regeneration_hz=80_000_000,
        links=(uart(), usb_pins(store_less=1024 if size in ("12F", "25F") else 0)),
        pins=_PINS, spare=_SPARE, reference=ClockInput(_PINS[2], "PCLKT0_1"),
        connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
        store_depth=SIZES[buffers].store_depth,
        configs=("classic", *(["half-clock"] if size == "85F" else []), "extended"),
        low=("F1",),     # enable of the ESP32, whose GPIO 25, 26 and 32 to 35 are at J1
        limits=("With full-speed USB and both sinks, 120 MHz has not been reached yet: 117.3 MHz with seed 2 on a 25F. "
                "With the serial port, or with the classic sink alone, 120 MHz is reached.",),
        shared=("J1 GP11 to GN13 are also wired to the ESP32; the bitstream holds it in reset.",
                "J2 GP14 to GN17 are also inputs of the analog-to-digital converter, which does not drive them."),
        documents=("github.com/emard/ulx3s: doc/MANUAL.md, doc/constraints/ulx3s_v20.lpf, gpio.sch, ulx3s.kicad_pcb",),
    )


#: The board's manual lists the manufacturer by version: Micron's MT48LC16M16A2, ESMT's M12L2561616A-6, ISSI's
#: IS42S16160G-7, or Alliance's AS4C32M16SB-7, of which this is the half.
_SDRAM = Memory("sdram", "SLOWEST_16M16", 32 << 20, "32 MiB of SDRAM, 16M x 16, at 100 MHz")


def _deep(board: Board) -> Board:
    """With blocks waiting in the SDRAM, which has the capture clock, and none in block RAM."""
    roomy = board.name in ("ulx3s-45f", "ulx3s-85f")
    return replace(
        board, capture_hz=100_000_000, name=f"{board.name}-deep", title=f"{board.title}, deep buffer",
        configs=("classic", "extended") if roomy else ("classic",), store_depth=0, memory=_SDRAM,
        limits=() if roomy else ("The classic sink alone: with both sinks and the SDRAM controller the part is too "
                                 "full to be placed.",))


#: Pins at the right side of the part: GP14 to GP21 and GN14 to GN21 of J2. Strobes that are sampled four times per
#: clock have to be at one side, left or right. Data wires may be anywhere.
_RIGHT = tuple(pin for pin in _ALL if int(pin.name.rpartition(":")[2].rstrip("+-")) in range(14, 22))


def _fine(board: Board) -> Board:
    """With strobes sampled four times per clock, all at the right side."""
    strobes = _RIGHT[:_FINE_NODES]
    data = iter(pin for pin in _ALL if pin not in strobes)
    pins = tuple(pin for strobe in strobes for pin in (strobe, *(next(data) for _ in range(4))))
    return replace(
        board, name=f"{board.name}-quarter", title=f"{board.title}, quarter clocks", configs=("quarter-clock",),
        pins=pins, spare=(), phase_out=next(data), links=board.links[:1], limits=(),
        # With wide beats and the reduction, 77 % of the part is used, and no legal placement is found.
        capture_hz=_FINE_HZ, beat_bytes=4, absent=(Option.REDUCTION,),
        notes=("Pin phase_out, J2 GN27, has edges for the self-check of the phases: wire it to strobes for `hypermon "
               "selftest`. Before that has passed, stamps count whole clocks.",))


#: The 12F is the 25F's die, and the open tools use all of it.
_PLAIN = (_board("12F", "25F"), _board("25F", "25F"), _board("45F", "25F"), _board("85F", "85F"))
BOARDS = (*_PLAIN, *map(_deep, _PLAIN), _fine(_PLAIN[1]))
