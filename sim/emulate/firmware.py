"""Firmware that plays a node on a Raspberry Pi Pico: `node/rp2040/` with a workload in it, as ELF and UF2."""

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypermon.host.errors import HypermonError
from hypermon.sim.emulate.workload import Item, Kind

__all__ = ["CPU_HZ", "RAM", "build_player", "encode", "image", "link", "uf2"]

NODE = Path(__file__).parents[2] / "node"
#: The clock to which `start.c` sets the processor.
CPU_HZ = 125_000_000
#: Where programs begin.
RAM = 0x2000_0000

_COMPILER = "arm-none-eabi-gcc"
_FLAGS = ("-mcpu=cortex-m0plus", "-mthumb", "-std=c99", "-O2", "-ffreestanding", "-nostdlib", "-Wall", "-Wextra",
          "-Wpedantic", "-Werror", f"-I{NODE}", f"-T{NODE / 'rp2040' / 'ram.ld'}", "-Wl,--no-warn-rwx-segments")
#: GP29 is the RP2040's last pin.
_GPIO_MAX = 29
#: Maximum clocks between the firmware's counter and the time of the item that it waits for.
_WAIT_MAX = 0x7FFF_FFFF
#: UF2 (github.com/microsoft/uf2): magic numbers, the flag for a family, and the RP2040's family.
_UF2 = struct.Struct("<8I476sI")
_UF2_BLOCK = 256
_UF2_RP2040 = 0xE48BFF56


def encode(items: Sequence[Item]) -> bytes:
    """A workload in the form that `player.c` reads, times in clocks from the first item's beginning on."""
    out, before = bytearray(), 0
    for item in items:
        at = item.time_ps * CPU_HZ // 10**12
        if at - before > _WAIT_MAX:
            raise HypermonError(f"an item comes {(at - before) // CPU_HZ} s after the one before; the firmware waits "
                                f"at most {_WAIT_MAX // CPU_HZ} s")
        out += struct.pack("<IB", at - before, item.kind << 4 | len(item.data)) + item.data
        before = at
    return bytes(out) + bytes(5)


def build_player(items: Sequence[Item], *, edges: int = 1, pio: bool = False, pin: int = 2,
                 bits: int = 4, clock_hz: int = 100_000_000) -> bytes:
    """The firmware that plays these items of one node, as an ELF file.

    Parameters
    ----------
    edges : 1 or 2, corresponding to the board's ``--edge rising`` or ``both``.
    pio : with the PIO, for events only.
    bits : 4, or 8 for a board with such ports; not with the PIO.
    pin : first of the pins, data 0.
    clock_hz : of the board that reads them: determines how long a level lasts.

    Raises
    ------
    HypermonError
        without a cross compiler, or if the workload does not fit, or cannot be played by the PIO.
    """
    if pio and (edges != 1 or bits != 4 or any(item.kind is not Kind.EVENT for item in items)):
        raise HypermonError("the PIO plays events only, with rising edges and 4 bits")
    if pin > _GPIO_MAX - bits:
        raise HypermonError(f"the Pico's {bits + 1} pins begin at GP{_GPIO_MAX - bits} at most, not at GP{pin}")
    target = "HM_TARGET_RP2040_PIO" if pio else "HM_TARGET_RP2040_SIO"
    return link([NODE / "rp2040" / "player.c"], encode(items), f"-DHM_TARGET={target}", f"-DHM_EDGES={edges}",
                f"-DHM_PIN={pin}", f"-DHM_BITS={bits}", f"-DHM_CLOCK_HZ={clock_hz}u", "-DHM_INTERRUPTS=0")


def link(sources: Sequence[Path], workload: bytes, *flags: str) -> bytes:
    """Compiles and links these sources with `start.c`, the bytes being their ``workload``; an ELF file.

    Raises
    ------
    HypermonError
        without a cross compiler, or if it reports an error.
    """
    if shutil.which(_COMPILER) is None:
        raise HypermonError(f"{_COMPILER} is missing; on Debian: apt-get install gcc-arm-none-eabi")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "workload").write_bytes(workload)
        data = folder / "workload.s"
        data.write_text(f'.section .workload, "a"\n.global workload\nworkload: .incbin "{folder / "workload"}"\n')
        elf = folder / "program.elf"
        done = subprocess.run([_COMPILER, *_FLAGS, *flags, NODE / "rp2040" / "start.c", *sources, data, "-lgcc", "-o",
                               elf], capture_output=True, text=True)
        if done.returncode:
            full = "overflowed by" in done.stderr
            raise HypermonError(f"the workload of {len(workload):,} bytes does not fit into the Pico's memory" if full
                                else f"{_COMPILER} found fault:\n{done.stderr}")
        return elf.read_bytes()


def image(elf: bytes) -> bytes:
    """The memory contents that an ELF file loads, from :data:`RAM` on."""
    headers, size, count = struct.unpack_from("<I10xHH", elf, 28)
    out = bytearray()
    for at in range(headers, headers + size * count, size):
        kind, offset, _, address, length = struct.unpack_from("<5I", elf, at)
        if kind == 1 and length:
            out += bytes(max(0, address - RAM + length - len(out)))
            out[address - RAM:address - RAM + length] = elf[offset:offset + length]
    return bytes(out)


def uf2(elf: bytes) -> bytes:
    """The file format that a Pico in BOOTSEL mode accepts."""
    data = image(elf)
    parts = [data[at:at + _UF2_BLOCK] for at in range(0, len(data), _UF2_BLOCK)]
    return b"".join(
        _UF2.pack(0x0A324655, 0x9E5D5157, 0x2000, RAM + _UF2_BLOCK * number, _UF2_BLOCK, number, len(parts),
                  _UF2_RP2040, part, 0x0AB16F30)
        for number, part in enumerate(parts))
