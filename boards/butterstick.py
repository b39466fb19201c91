"""GsD ButterStick r1.0: an ECP5UM5G-85F, a ULPI PHY, 78 pins and an I2C bus on three SYZYGY connectors."""

from .model.board import Board, ClockInput, Pin
from .model.connectors import header
from .model.ecp5_buffers import SIZES
from .model.links import ulpi

__all__ = ["BOARDS"]

_CLOCKS = ("P2CP", "P2CN", "C2PP", "C2PN")
#: All pins of the two standard connectors, those of the third that are not transceivers, and the bus of all three.
_PINS = (*(Pin(f"{connector}:{pin}", f"SYZYGY {port} {pin}")
           for port, (connector, singles) in enumerate((("syzygy_0", 28), ("syzygy_1", 28), ("syzygy-txr_0", 10)))
           for pin in (*(f"S{n}" for n in range(singles)), *_CLOCKS)),
         Pin("C14", "SYZYGY SDA"), Pin("E14", "SYZYGY SCL"))

#: Odd pins on the left, even ones on the right; the bus is drawn at connector 0. Pins 5 to 32 of a standard
#: connector are S0 to S27, of a connector with transceivers 14 and 16 to 24 are S0 to S9.
_BUS = {1: "SCL", 3: "SDA"}
_ENDS = {33: "P2CP", 34: "C2PP", 35: "P2CN", 36: "C2PN"}
_STANDARD = _ENDS | {n + 5: f"S{n}" for n in range(28)}
_TRANSCEIVERS = _ENDS | {n: f"S{s}" for s, n in enumerate((14, *range(16, 25)))}
_LANES = {n + 2 * half: way for way, pins in (("RX", (5, 9, 25, 29)), ("TX", (6, 10, 26, 30)), ("clock", (13,)))
          for n in pins for half in (0, 1)}
_CONNECTORS = tuple(
    header(f"SYZYGY {n}", columns=(range(1, 41, 2), range(2, 41, 2)), labels=_BUS | of,
           pins={pin: f"{platform}:{label}" for pin, label in of.items()} | ({} if n else {1: "E14", 3: "C14"}),
           supplies={2: 5, 39: 3.3, 40: 3.3},
           others={4: "R_GA", 37: "", 38: "", 39: "VIO"} | others | (dict.fromkeys(_BUS, "as at 0") if n else {}),
           where="the blades between the rows", note="0.8 mm, needs a pod")
    for n, (platform, of, others) in enumerate((
        ("syzygy_0", _STANDARD, {}), ("syzygy_1", _STANDARD, {}), ("syzygy-txr_0", _TRANSCEIVERS, _LANES))))

BOARDS = (Board(
    name="butterstick", title="ButterStick", fpga="LFE5UM5G-85F-8BG381C",
    platform="amaranth_boards.butterstick:ButterStickPlatform", family="ecp5", dfu="1209:5af1",
    options={"VCCIOA": "3V3", "VCCIOB": "3V3", "VCCIOC": "3V3"}, supplies=(3.3, 3.3, 3.3), lamps=(),
    oscillator_hz=30_000_000, capture_hz=150_000_000, links=(ulpi(),),
    configs=("classic", "half-clock", "extended"),
    pins=_PINS, connectors=_CONNECTORS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"},
    reference=ClockInput(_PINS[28], "PCLKT6_0"), store_depth=SIZES["85F"].store_depth,
    shared=("SDA and SCL are one I2C bus on all three connectors, with pull-ups of 4.7 kilohm: do not plug in a pod "
            "that answers on it. Node 15's data 2 and 3 need a driver that pulls low.",
            "The supplies of the connectors (VIO) are set to 3.3 V by the bitstream 0.4 s after it starts: do not "
            "plug in a pod for a lower level."),
    level="3.3 V LVCMOS once the supplies are up; 5 V on any pin destroys the FPGA",
    documents=("amaranth-boards: butterstick.py; github.com/butterstick-fpga/butterstick-hardware: ButterStick_r1.0",),
),)
