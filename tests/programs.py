"""Programs of the machine that tests use if they are here, each with a probe of whether it works.

A program that is installed does not always work: a compiler may lack its C library. :func:`working` therefore tries a
program once in each process before a test depends on it. Tests install nothing. ``python3 -m tests.programs`` lists the
programs that work; ``--install`` first installs what is missing, as root on Debian. The module needs no package.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PROGRAMS", "MissingError", "Program", "install", "working"]

#: Seconds that a probe, and the installation of packages, may take.
_PROBE_S, _INSTALL_S = 120, 900


class MissingError(Exception):
    """A program or package that is not here or does not work; the text says which, and how to get it."""


@dataclass(frozen=True)
class Program:
    """A program that tests can do without.

    Attributes
    ----------
    name : the command.
    packages : Debian's packages that bring it, with everything that the tests need of it.
    part : the tests that need it.
    probe : is called with the program's path and an empty folder; returns why the program does not work, or "".
    """

    name: str
    packages: str
    part: str
    probe: Callable[[str, Path], str]


def _run(*command: str | Path, cwd: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, input=given, capture_output=True, text=True,
                          errors="replace", timeout=_PROBE_S, check=False)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
    return next((line.strip() for line in lines if "error" in line.lower()), lines[-1].strip())


def _starts(*options: str) -> Callable[[str, Path], str]:
    """The program runs with these options and exits with 0."""
    def probe(path: str, folder: Path) -> str:
        done = _run(path, *options, cwd=folder)
        return "" if done.returncode == 0 else _last(done)

    return probe


def _compiles(*headers: str, flags: Sequence[str] = ()) -> Callable[[str, Path], str]:
    """The compiler makes an object of a source that includes these headers."""
    def probe(path: str, folder: Path) -> str:
        text = "".join(f"#include <{header}>\n" for header in headers) + "int probe(int n) { return n / 3; }\n"
        done = _run(path, *flags, "-c", "-x", "c", "-", "-o", folder / "probe.o", given=text)
        return "" if done.returncode == 0 else _last(done)

    return probe


def _prints(text: str, *options: str) -> Callable[[str, Path], str]:
    """The program prints this with these options. Its exit status is not judged: some abort at their end."""
    def probe(path: str, folder: Path) -> str:
        done = _run(path, *options, cwd=folder)
        return "" if text in done.stdout + done.stderr else _last(done)

    return probe


def _verilog(path: str, folder: Path) -> str:
    (folder / "probe.v").write_text('module probe; initial $display("works"); endmodule\n')
    done = _run(path, "-o", "probe", "probe.v", cwd=folder)
    if done.returncode:
        return _last(done)
    ran = _run("vvp", "probe", cwd=folder) if shutil.which("vvp") else done
    return "" if "works" in ran.stdout else _last(ran)


def _page(path: str, folder: Path) -> str:
    done = _run(path, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom",
                "data:text/html,<p>works</p>")
    return "" if "works" in done.stdout else _last(done)


def _cmake(path: str, folder: Path) -> str:
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.13)\nproject(probe C)\n")
    done = _run(path, "-S", folder, "-B", folder / "build")
    return "" if done.returncode == 0 else _last(done)


_NODES = "the node library for"
#: Every optional program by its command.
PROGRAMS = {program.name: program for program in (
    Program("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi", f"{_NODES} Cortex-M",
            _compiles("stdlib.h", flags=("-mcpu=cortex-m0plus", "-mthumb"))),
    Program("arm-none-eabi-g++", "gcc-arm-none-eabi libnewlib-arm-none-eabi", f"{_NODES} Arduino on Cortex-M",
            _compiles("stdlib.h", flags=("-mcpu=cortex-m0plus", "-mthumb"))),
    Program("riscv64-unknown-elf-gcc", "gcc-riscv64-unknown-elf", f"{_NODES} RISC-V",
            _compiles(flags=("-march=rv32imac_zicsr", "-mabi=ilp32"))),
    Program("riscv64-unknown-elf-g++", "gcc-riscv64-unknown-elf", f"{_NODES} RISC-V, in C++",
            _compiles(flags=("-march=rv32imac_zicsr", "-mabi=ilp32"))),
    Program("xtensa-lx106-elf-gcc", "gcc-xtensa-lx106", f"{_NODES} Xtensa", _compiles()),
    Program("xtensa-lx106-elf-g++", "gcc-xtensa-lx106", f"{_NODES} Xtensa, in C++", _compiles()),
    Program("avr-gcc", "gcc-avr avr-libc", f"{_NODES} AVR", _compiles("avr/io.h", flags=("-mmcu=atmega328p",))),
    Program("avr-g++", "gcc-avr avr-libc", f"{_NODES} Arduino", _compiles("avr/io.h", flags=("-mmcu=atmega328p",))),
    Program("cargo", "cargo", f"{_NODES} Rust; FreeRTOS's sources", _starts("--version")),
    Program("npm", "npm", "the emulated RP2040; MicroPython", _starts("--version")),
    Program("node", "nodejs", "Perfetto's trace processor; the emulated RP2040", _prints("works", "-p", "'works'")),
    Program("qemu-system-arm", "qemu-system-arm", "FreeRTOS on a Cortex-M3", _prints("mps2-an385", "-machine", "help")),
    Program("cmake", "cmake", "the node library's CMake targets", _cmake),
    Program("chromium", "chromium", "pages in a browser", _page),
    Program("sigrok-cli", "sigrok-cli", "exports read by sigrok", _prints("uart", "-L")),
    Program("babeltrace2", "babeltrace2", "CTF read by babeltrace", _prints("ctf", "list-plugins")),
    Program("otf2-print", "otf2-tools", "OTF2 read by its own tools", _starts("--version")),
    Program("vcd2fst", "gtkwave", "FST written by GTKWave", _prints("VCDFILE", "--help")),
    Program("fst2vcd", "gtkwave", "FST read by GTKWave", _prints("FST", "--help")),
    Program("iverilog", "iverilog", "the examples for cocotb on Icarus", _verilog),
    Program("iceunpack", "fpga-icestorm", "a bitstream from its bits", _prints("iceunpack", "--help")),
    Program("icebox_vlog", "fpga-icestorm python3", "a bitstream from its bits", _prints("icebox_vlog", "--help")),
)}


@cache
def working(name: str) -> str:
    """The path of an optional program that works.

    Parameters
    ----------
    name : a key of :data:`PROGRAMS`.

    Raises
    ------
    MissingError
        if it is not here, or fails in its probe.
    """
    program = PROGRAMS[name]
    advice = f"on Debian: apt-get install {program.packages}"
    path = shutil.which(name)
    if path is None:
        raise MissingError(f"no {name} here; {advice}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            reason = program.probe(path, Path(folder))
        except (OSError, subprocess.SubprocessError) as error:
            reason = str(error)
    if reason:
        raise MissingError(f"{path} does not work ({reason[:300]}); {advice}")
    return path


def _version(path: str) -> str:
    """The first number with a point that the program prints of itself."""
    for option in ("--version", "-V"):
        try:
            done = _run(path, option)
        except (OSError, subprocess.SubprocessError):
            continue
        if found := re.search(r"\d+\.\d+[\w.+-]*", done.stdout + done.stderr):
            return found[0].rstrip(".")
    return "version unknown"


def install(packages: Sequence[str]) -> dict[str, str]:
    """Installs Debian's packages, as root. Downloads are tried again; packages that conflict go one by one.

    Returns
    -------
    package to the reason why it could not be installed.
    """
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return dict.fromkeys(packages, "only root on Debian installs packages")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    def apt(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["apt-get", "-qq", "-oAcquire::Retries=3", "-oDPkg::Lock::Timeout=300", *arguments],
                              capture_output=True, text=True, timeout=_INSTALL_S, check=False, env=environment)

    apt("update")
    if apt("install", "-y", "--no-install-recommends", *packages).returncode == 0:
        return {}
    failed = {package: apt("install", "-y", "--no-install-recommends", package) for package in packages}
    return {package: _last(done) for package, done in failed.items() if done.returncode}


def main() -> None:
    """Lists all programs: whether each works, its version, and the tests that it switches on."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.programs", description=main.__doc__)
    parser.add_argument("--install", action="store_true", help="install what is missing, as root on Debian")
    if parser.parse_args().install:
        missing = []
        for name, program in PROGRAMS.items():
            try:
                working(name)
            except MissingError:
                missing += [package for package in program.packages.split() if package not in missing]
        if missing:
            for package, reason in install(missing).items():
                print(f"{package} is not installed: {reason}", flush=True)
            working.cache_clear()
    for name, program in PROGRAMS.items():
        try:
            print(f"{name:24} {_version(working(name)):20} {program.part}")
        except MissingError as missing:
            print(f"{name:24} {'-':20} left out: {program.part} ({missing})")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
