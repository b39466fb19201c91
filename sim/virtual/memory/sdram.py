"""The simulated SDRAM (``sdram.h``) for Python benches; the virtual board has the same one built in."""

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from dataclasses import astuple, dataclass
from pathlib import Path

from hypermon.host.errors import HypermonError
from hypermon.sim.cache import cache_directory

__all__ = ["Sdram", "Timing", "compiled"]

_SOURCE = Path(__file__).with_name("sdram.h")


@dataclass(frozen=True)
class Timing:
    """In clocks: see ``SdramTiming`` in ``sdram.h``.

    The defaults are a common chip of 16 pins (tRCD, tRP 20 ns, CL 2, tRFC 70 ns, 8192 refreshes in 64 ms, rows of 1
    KiB) at 100 MHz.
    """

    beat: int = 8
    activate: int = 2
    precharge: int = 2
    latency: int = 2
    turn: int = 1
    refresh: int = 7
    interval: int = 780
    row: int = 4

    @classmethod
    def at(cls, clock_hz: int) -> "Timing":
        """The same chip at another clock."""
        def clocks(ns: int) -> int:
            return -(-ns * clock_hz // 10**9)

        return cls(activate=clocks(20), precharge=clocks(20), refresh=clocks(70), interval=7800 * clock_hz // 10**9)


class _Timing(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in Timing.__dataclass_fields__]


@functools.cache
def compiled(source: Path) -> ctypes.CDLL:
    """The library of a header that has C functions with ``SDRAM_LIBRARY``, built if it does not exist yet.

    Raises
    ------
    HypermonError
        without a compiler.
    """
    directory = cache_directory()
    target = directory / f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not target.exists():
        compiler = os.environ.get("CXX") or shutil.which("g++")
        if not compiler:
            raise HypermonError("the simulated SDRAM needs a C++ compiler: install g++ (Debian: apt install g++)")
        directory.mkdir(parents=True, exist_ok=True)
        scratch = target.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-DSDRAM_LIBRARY",
                        "-x", "c++", str(source), "-o", str(scratch)], check=True)
        scratch.replace(target)
    return ctypes.CDLL(str(target))


@functools.cache
def _library() -> ctypes.CDLL:
    dll = compiled(_SOURCE)
    dll.sdram_new.restype = ctypes.c_void_p
    dll.sdram_new.argtypes = [ctypes.POINTER(_Timing), ctypes.c_int32]
    for name in ("free", "command_ready", "write_ready", "read_valid"):
        getattr(dll, f"sdram_{name}").argtypes = [ctypes.c_void_p]
    dll.sdram_read_data.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    dll.sdram_clock.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int,
                                ctypes.c_void_p]
    dll.sdram_count.argtypes = [ctypes.c_void_p, ctypes.c_int]
    dll.sdram_count.restype = ctypes.c_uint64
    return dll


class Sdram:
    """An SDRAM and its controller, clock by clock: read its outputs, then call :meth:`clock`.

    Parameters
    ----------
    timing : of the chip.
    burst : beats per burst.
    """

    def __init__(self, timing: Timing, burst: int):
        self._dll = _library()
        self._sdram = self._dll.sdram_new(_Timing(*astuple(timing)), burst)

    @property
    def command_ready(self) -> bool:
        return bool(self._dll.sdram_command_ready(self._sdram))

    @property
    def write_ready(self) -> bool:
        return bool(self._dll.sdram_write_ready(self._sdram))

    @property
    def read(self) -> int | None:
        """The beat that it outputs, or None."""
        if not self._dll.sdram_read_valid(self._sdram):
            return None
        beat = ctypes.create_string_buffer(16)
        self._dll.sdram_read_data(self._sdram, beat)
        return int.from_bytes(beat.raw, "little")

    def clock(self, command: tuple[int, int] | None, beat: int | None) -> None:
        """A clock edge at which it is offered a command (write, burst) and a beat to be written."""
        write, burst = command or (0, 0)
        self._dll.sdram_clock(self._sdram, command is not None, write, burst, beat is not None,
                              (beat or 0).to_bytes(16, "little"))

    @property
    def counts(self) -> dict[str, int]:
        """Rows opened, refreshes, bursts written and read so far."""
        names = ("rows_opened", "refreshes", "written", "read")
        return {name: int(self._dll.sdram_count(self._sdram, k)) for k, name in enumerate(names)}

    def __del__(self) -> None:
        if sdram := getattr(self, "_sdram", None):
            self._dll.sdram_free(sdram)
