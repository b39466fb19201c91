"""The bits of a board whose D+ and D- are pins of the FPGA, at the end of a verilated host's cable.

The host's driver, device and recorder are those of `hypermon`; :mod:`hypermon.sim.serve.usb1` takes libusb's place.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ecp5
import trellis
from hypermon.boards.model.board import PIN_ROLES, Board
from hypermon.boards.pinout.pinout import wires
from hypermon.boards.toolchain.top import platform_of
from hypermon.hdl.layout import Geometry
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.usb_board import HARNESS, HEADERS
from netlist import LAMP_CLOCKS, BitstreamError, Clocks, ball, ports

__all__ = ["PadBits"]

_NODE_PINS = len(PIN_ROLES)


@dataclass(frozen=True)
class PadBits:
    """A bitstream with a link of kind ``usb-pins``.

    Parameters
    ----------
    board : whose it is.
    built : what the build says of it.
    form : ``ecpunpack``'s text.
    """

    board: Board
    built: dict[str, Any]
    form: str

    @classmethod
    def of(cls, board: Board, built: dict[str, Any], file: Path) -> "PadBits":
        return cls(board, built, trellis.text_of(file))

    @property
    def geometry(self) -> Geometry:
        return self.board.geometry(self.built["config"], self.built["nodes"], self.built["link"])

    def shell(self) -> Shell:
        """The virtual board of the bits, for :class:`hypermon.sim.virtual.usb_board.UsbBoard`.

        Raises
        ------
        BitstreamError
            if their pins or clocks are not the board's, or there is no model of a cell.
        """
        board, geometry = self.board, self.geometry
        package = ecp5.package_of(platform_of(board, geometry.nodes).package)
        chip, _ = ecp5.chip(self.form, package, Clocks.of(board, board.link(self.built["link"]), geometry))
        verilog = _wrapped(chip, self._pins(), geometry.nodes)
        digest = hashlib.sha256(verilog.encode()).hexdigest()[:16]
        return Shell(f"bits-{board.name}-usb", HARNESS, lambda geometry: verilog, (
            ("PINS", 1), ("RUNNING_LATE", LAMP_CLOCKS), ("BITS", f"0x{digest}")), HEADERS)

    def _pins(self) -> dict[str, str]:
        """Ports of the chip, and what is at them."""
        board, nodes = self.board, self.geometry.nodes
        platform = platform_of(board, nodes)
        usb = {sub.name: ball(platform, sub.ios[0].names[0])
               for sub in platform.lookup(board.link(self.built["link"]).resource, 0).ios}
        lamp, _, sub = board.lamps[0].partition(".")
        name, _, number = lamp.partition(":")
        led = platform.lookup(name, int(number))
        led = next(one for one in led.ios if one.name == sub) if sub else led
        made = {"clk": "clk", "link_clk": "usb_io_clk", "usb_clk": "usb_clk",
                f"pin_{ball(platform, platform.lookup(platform.default_clk, 0))}": "1'b1",
                f"pin_{usb['pullup']}": "usb_pullup_o", f"pin_{ball(platform, led.ios[0].names[0])}": "lamp"}
        for wire in ("d_p", "d_n"):
            made |= {f"pin_{usb[wire]}": f"usb_{wire}_i", f"out_{usb[wire]}": f"usb_{wire}_o",
                     f"oe_{usb[wire]}": f"usb_{wire}_oe"}
        balls = [wire.ball for wire in wires(board)]
        for n in range(nodes):
            strobe, *data = balls[n * _NODE_PINS:(n + 1) * _NODE_PINS]
            made[f"pin_{strobe}"] = f"strobe[{n}]"
            made |= {f"pin_{at}": f"data[{len(data) * n + bit}]" for bit, at in enumerate(data)}
        return made | {"lamp_low": "~" if led.ios[0].invert else ""}


def _wrapped(chip: str, pins: dict[str, str], nodes: int) -> str:
    there, low = ports(chip), pins.pop("lamp_low")
    if missing := sorted(set(pins) - set(there) | {name for name, way in there.items()
                                                   if way == "input" and name not in pins}):
        raise BitstreamError(f"pins that are not alike in the board and its bits: {', '.join(missing)}")
    connected = ", ".join(f".{name}({pins[name]})" for name in there if name in pins)
    return (f"{chip}\nmodule hypermon(input clk, usb_clk, usb_io_clk, rst, usb_rst, usb_d_p_i, usb_d_n_i, "
            f"output usb_d_p_o, usb_d_p_oe, usb_d_n_o, usb_d_n_oe, usb_pullup_o, running, "
            f"input [{4 * nodes - 1}:0] data, input [{nodes - 1}:0] strobe);\n"
            f"wire lamp;\nassign running = {low}lamp;\nchip chip({connected});\nendmodule\n")
