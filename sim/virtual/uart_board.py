"""The board with its UART, pin by pin: bytes in, bytes out, as at the far end of the line."""

import ctypes
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import Geometry
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.build import Shell, library
from hypermon.sim.virtual.link import APERTURE_PS
from hypermon.sim.virtual.verilated import VerilatedBoard, declares

__all__ = ["BAUD", "HARNESS", "LINK_HZ", "UartBoard"]

#: Clock of the UART, and rate of its line.
LINK_HZ = 60_000_000
BAUD = 3_000_000
#: The harness that drives the pins.
HARNESS = Path(__file__).with_name("uart_board.cpp")


class _Config(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("aperture_ps", ctypes.c_uint64), ("baud", ctypes.c_double)]


def _shell(baud: int) -> Shell:
    def verilog(geometry: Geometry) -> str:
        from hypermon.hdl.verilog import uart_verilog

        return uart_verilog(geometry, LINK_HZ, baud)

    return Shell("uart", HARNESS, verilog, (("LINK_HZ", LINK_HZ), ("BAUD", baud)))


_board, _u64, _i64 = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64
_load = declares((
    ("board_new", _board, ctypes.POINTER(_Config), _u64, _board, _board, _board, _board),
    ("board_free", None, _board),
    ("board_run", _u64, _board, _u64, ctypes.c_char_p, _u64, _board, _u64),
    ("board_edge", _i64, _board),
))


class UartBoard(VerilatedBoard):
    """A verilated board whose only pins are the nodes' ports and a serial line.

    Board time advances only in :meth:`run`. Time 0 is the first enable, as for :class:`~.link.VirtualLink`.

    Parameters
    ----------
    stimulus : what the nodes write.
    geometry : of the board.
    baud : rate of the board's UART.
    error : relative error of the far end's rate.
    seed : of a random delay in every synchronizer; None: no delay.
    shell : the gateware in another form, with the same ports, harness and baud; see :class:`~.build.Shell`.

    Raises
    ------
    HypermonError
        if it cannot be built.
    """

    def __init__(self, stimulus: Stimulus, geometry: Geometry, *, baud: int = BAUD, error: float = 0.0,
                 seed: int | None = None, shell: Shell | None = None):
        config = _Config((seed or 0) % (1 << 64), 0 if seed is None else APERTURE_PS, baud * (1 + error))
        self._begin(_load(str(library(geometry, shell or _shell(baud)))), "board", geometry, stimulus,
                    ctypes.byref(config))
        self._room = np.empty(1 << 16, np.uint8)

    def run(self, clocks: int, data: bytes = b"") -> bytes:
        """Sends the bytes after those that are still queued. Returns the data received in the given number of clocks,
        or in fewer if that is a lot of data.
        """
        count = self._dll.board_run(self._board, clocks, data, len(data), self._room.ctypes.data, len(self._room))
        return self._room[:count].tobytes()

    @property
    def board_ps(self) -> int:
        """Board time: that of the next clock edge, 0 before the first enable."""
        return self.geometry.ps(self._dll.board_edge(self._board))
