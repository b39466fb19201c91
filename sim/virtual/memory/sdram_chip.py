"""A model of an SDRAM, written from its data sheet, pin by pin (``sdram_chip.h``), for Python benches.

The virtual board of a geometry with a controller has the same one built in.
"""

import ctypes
import functools
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from hypermon.hdl.stream.sdram_part import SdramPart
from hypermon.sim.virtual.memory.sdram import compiled

__all__ = ["SOURCE", "Delays", "Pins", "SdramChip", "part_values"]

#: The model.
SOURCE = Path(__file__).with_name("sdram_chip.h")


@dataclass(frozen=True)
class Delays:
    """Delays of the wires between FPGA and memory, in picoseconds; see ``SdramDelays`` in ``sdram_chip.h``.

    The defaults are those of an ECP5 of speed 6 in Project Trellis's database (LVCMOS33: from the clock through a
    flip-flop or a DDR output to the pad, from the pad to the flip-flop, its set-up), and a quarter of a nanosecond on
    the board.
    """

    out: int = 3_800
    clock: int = 3_600
    into: int = 1_300
    window: int = 440


@dataclass(frozen=True)
class Pins:
    """Outputs of the FPGA, 1 for asserted; see :func:`hypermon.hdl.stream.sdram_controller.sdram_signature`."""

    cke: int = 0
    command: int = 0
    bank: int = 0
    address: int = 0
    mask: int = 0
    dq_o: int = 0
    dq_oe: int = 0


def part_values(part: SdramPart) -> tuple[int, ...]:
    """The part in the form that ``sdram_chip.h`` expects."""
    return tuple(getattr(part, f.name) for f in fields(part) if f.name != "name")


class _Part(ctypes.Structure):
    _fields_ = [(f.name, ctypes.c_int64) for f in fields(SdramPart) if f.name != "name"]


class _Delays(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in Delays.__dataclass_fields__]


class _Pins(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in Pins.__dataclass_fields__]


@functools.cache
def _library() -> ctypes.CDLL:
    dll = compiled(SOURCE)
    dll.chip_new.restype = ctypes.c_void_p
    dll.chip_new.argtypes = [ctypes.POINTER(_Part), ctypes.c_int64, ctypes.POINTER(_Delays)]
    dll.chip_free.argtypes = [ctypes.c_void_p]
    dll.chip_clock.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Pins)]
    dll.chip_clock.restype = ctypes.c_uint32
    dll.chip_complaints.argtypes = [ctypes.c_void_p]
    dll.chip_complaints.restype = ctypes.c_uint64
    dll.chip_first.argtypes = [ctypes.c_void_p]
    dll.chip_first.restype = ctypes.c_char_p
    dll.chip_count.argtypes = [ctypes.c_void_p, ctypes.c_int]
    dll.chip_count.restype = ctypes.c_uint64
    return dll


class SdramChip:
    """A memory at an FPGA's pins, with the I/O cells' flip-flops between.

    Parameters
    ----------
    part : its data sheet.
    clock_hz : of the FPGA; the memory has the inverse.
    delays : of the wires.
    """

    def __init__(self, part: SdramPart, clock_hz: int, delays: Delays | None = None):
        self._dll = _library()
        self._chip = self._dll.chip_new(_Part(*part_values(part)), clock_hz, _Delays(*astuple(delays or Delays())))

    def clock(self, pins: Pins) -> int:
        """A clock edge of the FPGA, at which its outputs change to ``pins``; returns what its inputs sample."""
        return int(self._dll.chip_clock(self._chip, _Pins(*astuple(pins))))

    @property
    def complaint(self) -> str:
        """The first rule that was violated, and when; empty if none was."""
        return self._dll.chip_first(self._chip).decode() if self._dll.chip_complaints(self._chip) else ""

    @property
    def counts(self) -> dict[str, int]:
        """Rows opened, refreshes, and bursts of eight words so far."""
        names = ("rows_opened", "refreshes", "bursts")
        return {name: int(self._dll.chip_count(self._chip, k)) for k, name in enumerate(names)}

    def __del__(self) -> None:
        if chip := getattr(self, "_chip", None):
            self._dll.chip_free(chip)
