"""C for the machines that nodes are: cross compilers, and their instructions run one by one."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from unicorn import UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE, Uc, arm_const, riscv_const, unicorn_const

from tests.programs import working

NODE = Path(__file__).parents[2] / "node"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")

CODE, STACK, PAGE = 0x1000_0000, 0x2000_0000, 1 << 16


@dataclass(frozen=True)
class Machine:
    """A processor: its compiler with the flags for it, and the emulator's name of it."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    arch: int = 0
    mode: int = 0
    model: int | None = None


_ARM = "arm-none-eabi-gcc"
_RISCV = ("riscv64-unknown-elf-gcc", ("-march=rv32imac_zicsr", "-mabi=ilp32"))
_THUMB = (unicorn_const.UC_ARCH_ARM, unicorn_const.UC_MODE_THUMB | unicorn_const.UC_MODE_MCLASS)

MACHINES = {machine.name: machine for machine in (
    Machine("Cortex-M0+", _ARM, ("-mcpu=cortex-m0plus", "-mthumb"), *_THUMB, arm_const.UC_CPU_ARM_CORTEX_M0),
    Machine("Cortex-M4", _ARM, ("-mcpu=cortex-m4", "-mthumb"), *_THUMB, arm_const.UC_CPU_ARM_CORTEX_M4),
    Machine("Cortex-M33", _ARM, ("-mcpu=cortex-m33", "-mthumb"), *_THUMB, arm_const.UC_CPU_ARM_CORTEX_M33),
    Machine("RISC-V", *_RISCV, unicorn_const.UC_ARCH_RISCV, unicorn_const.UC_MODE_RISCV32),
    Machine("Xtensa", "xtensa-lx106-elf-gcc", ()),
    Machine("AVR", "avr-gcc", ("-mmcu=atmega328p",)),
)}


def compile_for(machine: Machine, source: Path, out: Path, *flags: str) -> None:
    """Compiles to an object, or with ``-nostdlib`` and a linker's flags to a program. Warnings are errors."""
    compiler = working(machine.compiler)
    link = () if "-nostdlib" in flags else ("-c",)
    done = subprocess.run([compiler, *machine.flags, "-std=c99", "-O2", "-ffreestanding", *WARNINGS, *link, f"-I{NODE}",
                           str(source), "-o", str(out), *flags], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)


@dataclass
class Call:
    """What a call did: instructions executed, and its stores to and loads from the watched page, as (instruction
    number, address, value)."""

    instructions: int = 0
    stores: list[tuple[int, int, int]] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    result: int = 0


class Program:
    """Functions of a C source, called on an emulated processor: it counts instructions, it has no notion of cycles.

    Parameters
    ----------
    source : C text. What it calls must be in it.
    watched : address of a register; the page around it is memory, and stores to it are noted.

    Attributes
    ----------
    uc : the emulator.
    on_store : is called before each of those stores.
    """

    def __init__(self, machine: Machine, source: str, folder: Path, watched: int, *flags: str):
        folder.mkdir(parents=True, exist_ok=True)
        text, elf, image = folder / "program.c", folder / "program.elf", folder / "program.bin"
        text.write_text(source)
        compile_for(machine, text, elf, "-nostdlib", "-Wl,-e0", f"-Wl,-Ttext={CODE:#x}", f"-Wl,-Tdata={CODE + PAGE:#x}",
                    "-Wl,--no-warn-rwx-segments", "-lgcc", *flags)
        prefix = machine.compiler.removesuffix("gcc")
        subprocess.run([prefix + "objcopy", "-O", "binary", elf, image], check=True)
        symbols = subprocess.run([prefix + "nm", elf], check=True, capture_output=True, text=True).stdout
        self._symbols = {name: int(at, 16) for at, _, name in map(str.split, symbols.splitlines())}
        self._thumb = machine.arch == unicorn_const.UC_ARCH_ARM
        self.uc = Uc(machine.arch, machine.mode, cpu=machine.model)
        for base in {CODE, CODE + PAGE, STACK, watched & ~(PAGE - 1)}:
            self.uc.mem_map(base, PAGE)
        self.uc.mem_write(CODE, image.read_bytes())
        self._page = watched & ~(PAGE - 1)
        self._call = Call()
        self.on_store: Callable[[Uc], None] | None = None
        self.uc.hook_add(UC_HOOK_CODE, self._count)
        self.uc.hook_add(UC_HOOK_MEM_WRITE, self._store, begin=self._page, end=self._page + PAGE - 1)
        self.uc.hook_add(UC_HOOK_MEM_READ, self._load, begin=self._page, end=self._page + PAGE - 1)

    def call(self, name: str, *arguments: int, data: bytes = b"") -> Call:
        """Calls a function of up to four integers; `data`, if any, lies at the address ``STACK``."""
        self._call = call = Call()
        self.uc.mem_write(STACK, data)
        end = CODE + PAGE - 4
        if self._thumb:
            named = (arm_const.UC_ARM_REG_R0, arm_const.UC_ARM_REG_R1, arm_const.UC_ARM_REG_R2, arm_const.UC_ARM_REG_R3)
            stack, link, offset = arm_const.UC_ARM_REG_SP, arm_const.UC_ARM_REG_LR, 1
        else:
            named = (riscv_const.UC_RISCV_REG_A0, riscv_const.UC_RISCV_REG_A1, riscv_const.UC_RISCV_REG_A2,
                     riscv_const.UC_RISCV_REG_A3)
            stack, link, offset = riscv_const.UC_RISCV_REG_SP, riscv_const.UC_RISCV_REG_RA, 0
        for register, value in zip(named, arguments, strict=False):
            self.uc.reg_write(register, value)
        self.uc.reg_write(stack, STACK + PAGE)
        self.uc.reg_write(link, end | offset)
        self.uc.emu_start((self._symbols[name] & ~1) | offset, end, count=100_000)
        call.result = self.uc.reg_read(named[0])
        return call

    def _count(self, *_: object) -> None:
        self._call.instructions += 1

    def _store(self, uc: Uc, access: int, address: int, size: int, value: int, user: object) -> None:
        if self.on_store:
            self.on_store(uc)
        self._call.stores.append((self._call.instructions, address, value & (1 << 8 * size) - 1))

    def _load(self, uc: Uc, access: int, address: int, size: int, value: int, user: object) -> None:
        self._call.loads.append((self._call.instructions, address))
