"""The verilated board in a PCIe slot: the function that a vfio-user client, such as QEMU, drives."""

import ctypes
import os
import threading
from pathlib import Path

from hypermon.hdl.layout import PCIE_DEVICE, PCIE_VENDOR, Geometry
from hypermon.host.errors import HypermonError
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.build import Shell, library
from hypermon.sim.virtual.verilated import VerilatedBoard, declares

__all__ = ["LINK_HZ", "Counts", "PcieBoard"]

#: Clock of the PCIe block: 128 bits at this rate are four lanes of the first generation.
LINK_HZ = 62_500_000
#: Milliseconds between two checks for the end of :meth:`PcieBoard.serve`.
_SERVE_MS = 50
_HERE = Path(__file__).parent
_HEADERS = tuple(_HERE / f"{name}.h" for name in ("config_space", "us_block", "vfio_user"))


def _shell() -> Shell:
    def verilog(geometry: Geometry) -> str:
        from hypermon.hdl.verilog import pcie_verilog

        return pcie_verilog(geometry, link_hz=LINK_HZ)

    return Shell("pcie", _HERE / "pcie_board.cpp", verilog, (
        ("LINK_HZ", f"{LINK_HZ}ULL"), ("PCIE_VENDOR", f"{PCIE_VENDOR}u"), ("PCIE_DEVICE", f"{PCIE_DEVICE}u")), _HEADERS)


class Counts(ctypes.Structure):
    """What has happened at the function.

    Members
    -------
    clocks : of the link.
    reads, writes : requests to BAR0. ``unsupported``: reads that were completed without data; ``timeouts``: those
        without a completion, and function-level resets without an end.
    tlps, bytes : memory writes of the board. ``unmapped``: of these, the ones to addresses without memory.
    malformed : writes that no board may make: too long, across a page, while not permitted.
    interrupts : sent. ``resets`` of the link, ``flrs``: of the function.
    """

    _fields_ = [(name, ctypes.c_uint64) for name in (
        "clocks", "reads", "writes", "unsupported", "timeouts", "tlps", "bytes", "unmapped", "malformed", "interrupts",
        "resets", "flrs")]


_board, _u64, _integer = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int
_load = declares((
    ("pcie_new", _board, _u64, _u64, _board, _board, _board, _board),
    ("pcie_free", None, _board),
    ("pcie_listen", _integer, _board, ctypes.c_char_p),
    ("pcie_serve", None, _board, _integer),
    ("pcie_disconnect", None, _board),
    ("pcie_remove", None, _board),
    ("pcie_counts", None, _board, ctypes.POINTER(Counts)),
    ("pcie_edge", ctypes.c_int64, _board),
    ("pcie_played", _integer, _board),
))


class PcieBoard(VerilatedBoard):
    """A board, the PCIe block of its FPGA, and a server of the vfio-user protocol. Time advances only in :meth:`serve`.

    A client that disconnects leaves a board whose link was reset: what the board holds waits for the next client. Each
    start of the board plays the stimulus from its beginning.

    Parameters
    ----------
    stimulus : what the nodes write; None: nothing, for ever.
    geometry : of the board.
    path : of the socket; it must not exist yet.
    seed : of the phase between the clocks, and of the block's back-pressure.

    Raises
    ------
    HypermonError
        if the board cannot be built, or the socket cannot be made.
    """

    def __init__(self, stimulus: Stimulus | None, geometry: Geometry, path: Path, seed: int = 0):
        stimulus = Stimulus.idle(geometry.nodes) if stimulus is None else stimulus
        self._begin(_load(str(library(geometry, _shell()))), "pcie", geometry, stimulus, seed)
        if error := self._dll.pcie_listen(self._board, os.fsencode(path)):
            self.close()
            raise HypermonError(f"the socket {path} cannot be made: {os.strerror(error)}")

    def serve(self, stop: threading.Event) -> None:
        """Serves clients, one after the other, until ``stop``; then disconnects."""
        while not stop.is_set():
            self._dll.pcie_serve(self._board, _SERVE_MS)
        self._dll.pcie_disconnect(self._board)

    def remove(self) -> None:
        """Pulls the board out of its slot, for ever: everything reads as ones, and nothing is written any more."""
        self._dll.pcie_remove(self._board)

    @property
    def counts(self) -> Counts:
        """What has happened so far."""
        counts = Counts()
        self._dll.pcie_counts(self._board, ctypes.byref(counts))
        return counts

    @property
    def edge(self) -> int:
        """Clock edges of the board since time 0 of its last start; 0 before the first one."""
        return int(self._dll.pcie_edge(self._board))

    @property
    def played(self) -> bool:
        """The stimulus is over."""
        return bool(self._dll.pcie_played(self._board))
