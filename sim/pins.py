"""A node's port on this machine's own pins, under Linux: lines of a GPIO chip, or a mapped register.

What `sim/node/hypermon.h` does in C, in Python: a nibble is two writes, the strobe 0 and then 1, and
the board takes the rising edge. Everything here is the standard library's.
"""

import ctypes
import fcntl
import mmap
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType

from hypermon.host.errors import HypermonError

__all__ = ["PAYLOAD_MAX", "GpioPort", "MappedPort", "Port", "Style", "nibbles_of_event"]

#: Bytes that fit an event behind its id.
PAYLOAD_MAX = 14
_STROBE = 16


def nibbles_of_event(event: int, payload: bytes = b"") -> list[int]:
    """The nibbles of an event: its number of bytes, then two nibbles a byte, the lower first.

    Raises
    ------
    ValueError
        for an id beyond 255 or a payload longer than :data:`PAYLOAD_MAX`.
    """
    if not 0 <= event <= 255 or len(payload) > PAYLOAD_MAX:
        raise ValueError(f"an event has an id 0..255 and up to {PAYLOAD_MAX} bytes, not {event} and {len(payload)}")
    return [len(payload) + 1, *(half for byte in (event, *payload) for half in (byte & 15, byte >> 4))]


class Port(ABC):
    """Five pins. To be used by one thread at a time, in a ``with`` or until :meth:`close`."""

    def nibble(self, nibble: int) -> None:
        """One nibble, 0..15."""
        self.write(nibble & 15)
        self.write(nibble & 15 | _STROBE)

    def word(self, word: int) -> None:
        """32 bits, for a node in word mode: eight nibbles, the lowest first."""
        for shift in range(0, 32, 4):
            self.nibble(word >> shift)

    def event(self, event: int, payload: bytes = b"") -> None:
        """An event; see :func:`nibbles_of_event`."""
        for nibble in nibbles_of_event(event, payload):
            self.nibble(nibble)

    @abstractmethod
    def write(self, value: int) -> None:
        """Puts 0..31 on the pins. Whoever calls it takes care of the strobe."""

    @abstractmethod
    def close(self) -> None:
        """Gives the pins back. They may be opened again."""

    def __enter__(self) -> "Port":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class GpioPort(Port):
    """Lines of a GPIO chip, by the kernel's interface version 2 (Linux 5.10 and later).

    Parameters
    ----------
    chip : ``/dev/gpiochip0`` and the like.
    lines : offsets of data bits 0 to 3 and of the strobe. They become outputs, 0.

    Raises
    ------
    HypermonError
        if the chip cannot be opened, or the lines are in use.
    """

    # linux/gpio.h: struct gpio_v2_line_request, struct gpio_v2_line_values.
    _REQUEST = struct.Struct("=64I32sQI20x240xII20xi")
    _VALUES = struct.Struct("=QQ")
    _GET_LINE = 3 << 30 | _REQUEST.size << 16 | 0xB4 << 8 | 0x07
    _SET_VALUES = 3 << 30 | _VALUES.size << 16 | 0xB4 << 8 | 0x0F
    _OUTPUT = 1 << 3

    def __init__(self, chip: str | os.PathLike[str], lines: Sequence[int]):
        if len(lines) != 5 or len(set(lines)) != 5:
            raise HypermonError(f"{chip}: five different lines wanted (data 0 to 3, strobe), not {list(lines)}")
        request = bytearray(self._REQUEST.pack(*lines, *[0] * 59, b"hypermon", self._OUTPUT, 0, 5, 0, 0))
        try:
            file = os.open(chip, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(file, self._GET_LINE, request)
            finally:
                os.close(file)
        except OSError as error:
            raise HypermonError(f"{chip}: {error.strerror}") from None
        self._lines = self._REQUEST.unpack(request)[-1]

    def write(self, value: int) -> None:
        # With the strobe only the strobe: the data stand already.
        mask = _STROBE if value & _STROBE else 31
        fcntl.ioctl(self._lines, self._SET_VALUES, self._VALUES.pack(value, mask))

    def close(self) -> None:
        file, self._lines = self._lines, -1
        if file >= 0:
            os.close(file)


class Style(Enum):
    """What a store to a register does to the pins: see ``sim/node/hypermon/register.h``."""

    WHOLE = "whole"
    XOR = "xor"
    BSRR = "bsrr"
    SETCLEAR = "setclear"


class MappedPort(Port):
    """A 32-bit register in a file that can be mapped: ``/dev/mem``, ``/dev/gpiomem``, a PCI resource.

    Every store is followed by a load, which returns only when the store has arrived.

    Parameters
    ----------
    path, base : the file, and where in it the mapped page begins.
    at, clear : offsets of the register and, for :attr:`Style.SETCLEAR`, of the one that clears.
    shift : place of data bit 0 in it. The pins must be outputs, 0, already.

    Raises
    ------
    HypermonError
        if the file cannot be mapped.
    """

    def __init__(self, path: str | os.PathLike[str], style: Style, *, at: int, clear: int = 0, base: int = 0,
                 shift: int = 0):
        try:
            file = os.open(path, os.O_RDWR | os.O_SYNC)
            try:
                self._map = mmap.mmap(file, mmap.PAGESIZE, offset=base)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise HypermonError(f"{Path(path)}: {error}") from None
        self._at: ctypes.c_uint32 | None = ctypes.c_uint32.from_buffer(self._map, at)
        self._clear: ctypes.c_uint32 | None = ctypes.c_uint32.from_buffer(self._map, clear)
        self._style, self._shift, self._shown = style, shift, 0

    def write(self, value: int) -> None:
        if self._at is None or self._clear is None:
            raise HypermonError("the port is closed")
        before, self._shown = self._shown, value
        match self._style:
            case Style.WHOLE:
                store = value
            case Style.XOR:
                store = before ^ value
            case Style.BSRR:
                store = value | (value ^ 31) << 16
            case Style.SETCLEAR:
                store = value
                if not value & _STROBE:
                    self._clear.value = (value ^ 31) << self._shift
        self._at.value = store << self._shift
        _ = self._at.value

    def close(self) -> None:
        # Who holds a view of a mapping holds the mapping.
        self._at = self._clear = None
        self._map.close()
