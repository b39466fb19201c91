"""A node's port on this machine's own pins, under Linux: lines of a GPIO chip, or a mapped register.

This module is the Python counterpart of `node/hypermon.h`. A nibble is two writes, the strobe 0 and then 1; the
board samples at the rising edge. On a board with ports of 8 bits, each write carries a byte instead of a nibble. The
module uses the standard library only.
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

__all__ = ["PAYLOAD_MAX", "GpioPort", "MappedPort", "Port", "Style", "data_of_event"]

#: Maximum bytes of an event after its id.
PAYLOAD_MAX = 14


def data_of_event(event: int, payload: bytes = b"", bits: int = 4) -> list[int]:
    """The data written to a port of the given width for an event: its number of bytes, then the bytes. With 4 bits each
    byte is two nibbles, the lower first.

    Raises
    ------
    ValueError
        for an id beyond 255 or a payload longer than :data:`PAYLOAD_MAX`.
    """
    if not 0 <= event <= 255 or len(payload) > PAYLOAD_MAX:
        raise ValueError(f"an event has an id 0..255 and up to {PAYLOAD_MAX} bytes, not {event} and {len(payload)}")
    if bits == 8:
        return [len(payload) + 1, event, *payload]
    return [len(payload) + 1, *(half for byte in (event, *payload) for half in (byte & 15, byte >> 4))]


class Port(ABC):
    """Data pins and a strobe. Use it from one thread at a time, in a ``with`` or until :meth:`close`.

    Attributes
    ----------
    bits : number of data pins, 4 or 8.
    strobe, pins : the strobe's bit, and all bits of the port.
    """

    def __init__(self, bits: int = 4):
        if bits not in (4, 8):
            raise ValueError(f"a port has 4 or 8 data bits, not {bits}")
        self.bits, self.strobe, self.pins = bits, 1 << bits, (2 << bits) - 1

    def nibble(self, nibble: int) -> None:
        """One nibble, 0..15; with 8 bits a byte."""
        data = nibble & (self.strobe - 1)
        self.write(data)
        self.write(data | self.strobe)

    def word(self, word: int) -> None:
        """32 bits, for a node in word mode: eight nibbles or four bytes, the lowest first."""
        for shift in range(0, 32, self.bits):
            self.nibble(word >> shift)

    def event(self, event: int, payload: bytes = b"") -> None:
        """An event; see :func:`data_of_event`."""
        for data in data_of_event(event, payload, self.bits):
            self.nibble(data)

    @abstractmethod
    def write(self, value: int) -> None:
        """Sets data and strobe on the pins. The caller controls the strobe."""

    @abstractmethod
    def close(self) -> None:
        """Releases the pins. They may be opened again."""

    def __enter__(self) -> "Port":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class GpioPort(Port):
    """Lines of a GPIO chip, through the kernel's interface version 2 (Linux 5.10 and later).

    Parameters
    ----------
    chip : ``/dev/gpiochip0`` and the like.
    lines : offsets of data bits 0 to 3, or 0 to 7, and of the strobe. They become outputs, 0.

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
        count = len(lines)
        if count not in (5, 9) or len(set(lines)) != count:
            raise HypermonError(f"{chip}: expected five different lines (data 0 to 3, strobe), or nine (data 0 to 7, "
                                f"strobe), not {list(lines)}")
        super().__init__(count - 1)
        request = bytearray(self._REQUEST.pack(*lines, *[0] * (64 - count), b"hypermon", self._OUTPUT, 0, count, 0, 0))
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
        # With the strobe only the strobe changes: the data is already there.
        mask = self.strobe if value & self.strobe else self.pins
        fcntl.ioctl(self._lines, self._SET_VALUES, self._VALUES.pack(value, mask))

    def close(self) -> None:
        file, self._lines = self._lines, -1
        if file >= 0:
            os.close(file)


class Style(Enum):
    """How a store to a register affects the pins: see ``node/hypermon/register.h``."""

    WHOLE = "whole"
    XOR = "xor"
    BSRR = "bsrr"
    SETCLEAR = "setclear"


class MappedPort(Port):
    """A 32-bit register in a file that can be mapped: ``/dev/mem``, ``/dev/gpiomem``, a PCI resource.

    Every store is followed by a load, which returns only when the store has arrived.

    Parameters
    ----------
    path, base : the file, and the offset in it at which the mapped page begins.
    at, clear : offsets of the register and, for :attr:`Style.SETCLEAR`, of the one that clears.
    shift, bits : position of data bit 0 in it, and the number of data bits. The pins must be outputs, 0, already.

    Raises
    ------
    HypermonError
        if the file cannot be mapped, or the port does not fit the register.
    """

    def __init__(self, path: str | os.PathLike[str], style: Style, *, at: int, clear: int = 0, base: int = 0,
                 shift: int = 0, bits: int = 4):
        super().__init__(bits)
        room = 16 if style is Style.BSRR else 32
        if not 0 <= shift < room - bits:
            raise HypermonError(f"{path}: {bits + 1} pins from bit {shift} on are not within {room} bits")
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
                store = value | (value ^ self.pins) << 16
            case Style.SETCLEAR:
                store = value
                if not value & self.strobe:
                    self._clear.value = (value ^ self.pins) << self._shift
        self._at.value = store << self._shift
        _ = self._at.value

    def close(self) -> None:
        # A view of a mapping keeps the mapping alive.
        self._at = self._clear = None
        self._map.close()
