"""GsD ButterStick r1.0: an ECP5UM5G-85F, a ULPI PHY, 78 pins and an I2C bus on three SYZYGY connectors."""

from .board import Board, Pin
from .links import ulpi
from .sizes import SIZES

__all__ = ["BOARDS"]

_CLOCKS = ("P2CP", "P2CN", "C2PP", "C2PN")
#: All pins of the two standard connectors, those of the third that are not transceivers, and the bus of all three.
_PINS = (*(Pin(f"{connector}:{pin}", f"SYZYGY {port} {pin}")
           for port, (connector, singles) in enumerate((("syzygy_0", 28), ("syzygy_1", 28), ("syzygy-txr_0", 10)))
           for pin in (*(f"S{n}" for n in range(singles)), *_CLOCKS)),
         Pin("C14", "SYZYGY SDA"), Pin("E14", "SYZYGY SCL"))

BOARDS = (Board(
    name="butterstick", title="ButterStick", fpga="LFE5UM5G-85F-8BG381C",
    platform="amaranth_boards.butterstick:ButterStickPlatform", family="ecp5", dfu="1209:5af1",
    options={"VCCIOA": "3V3", "VCCIOB": "3V3", "VCCIOC": "3V3"}, supplies=(3.3, 3.3, 3.3), lamps=(),
    oscillator_hz=30_000_000, capture_hz=150_000_000, links=(ulpi(),),
    configs=("classic", "half-clock", "extended"),
    pins=_PINS, attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "DOWN"}, store_depth=SIZES["85F"].store_depth,
    shared=("SDA and SCL are one I2C bus at all three connectors, pulled up by 4.7 kOhm: no pod that answers on it may "
            "be plugged in, and node 15's data 2 and 3 need a driver that pulls low.",
            "The supplies of the connectors (VIO) are set to 3.3 V by the bitstream 0.4 s after it starts: no pod for "
            "a lower level may be plugged in."),
    level="3.3 V LVCMOS once the supplies stand; 5 V on any of them destroys the FPGA",
    documents=("amaranth-boards: butterstick.py; github.com/butterstick-fpga/butterstick-hardware: ButterStick_r1.0",),
),)
