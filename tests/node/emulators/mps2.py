"""Programs for a Cortex-M3, run by QEMU on its board mps2-an385: what they wrote to a register, and when.

The register is that of the board's LEDs, whose writes QEMU traces. Time is counted in instructions: with ``-icount``
each one takes 8 ns of QEMU's clock, whatever it does, and a plugin says how many were executed before a write.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.patience import patience
from tests.programs import MissingError, working

__all__ = ["INSTRUCTION_NS", "LEDS", "build", "play"]

HERE = Path(__file__).parents[1] / "freertos"
NODE = HERE.parents[2] / "node"
#: Debian's QEMU, unpacked, where it is not installed.
_UNPACKED = HERE.parents[2] / ".build" / "qemu-arm"
#: SCC_CFG1: a store writes all eight LEDs.
LEDS = 0x4002_F004
#: ``-icount shift=3``.
INSTRUCTION_NS = 8
_PACKAGE = "qemu-system-arm"
_FLAGS = ("-mcpu=cortex-m3", "-mthumb", "-std=c99", "-O2", "-ffreestanding", "-nostdlib", f"-I{NODE}",
          f"-T{HERE / 'mps2.ld'}", "-Wl,--no-warn-rwx-segments")


def build(sources: Sequence[Path], elf: Path, *flags: str) -> None:
    """Compiles and links a program that QEMU can start."""
    compiler = working("arm-none-eabi-gcc")
    done = subprocess.run([compiler, *_FLAGS, *flags, HERE / "mps2.c", *sources, "-lgcc", "-o", elf],
                          capture_output=True, text=True)
    assert not done.returncode, done.stderr


def play(elf: Path, folder: Path) -> list[tuple[int, int]]:
    """Runs a program until it leaves; (time in ns, value) of each store to the LEDs."""
    command, environment = _qemu()
    plugin, log = folder / "plugin.so", folder / "qemu.log"
    source = HERE / "mps2_plugin.c"
    subprocess.run(["gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", source, "-o", plugin],
                   check=True)
    done = subprocess.run(
        [command, "-M", "mps2-an385", "-kernel", elf, "-nodefaults", "-display", "none", "-semihosting",
         "-icount", "shift=3,sleep=off", "-plugin", f"file={plugin},at={LEDS:#x}", "-d", "plugin",
         "-trace", "mps2_scc_write", "-D", log], env=environment, capture_output=True, text=True, timeout=patience(300))
    assert done.returncode == 0, done.stderr    # it also warns that the board's network has no peer
    text = log.read_text()
    rows = re.findall(r"mps2_scc_write .*offset 0x4 data 0x(\w+) .*\nafter (\d+)", text)
    assert len(rows) == text.count("after "), "each store is traced once and timed once"
    return [(int(executed) * INSTRUCTION_NS, int(value, 16)) for value, executed in rows]


@cache
def _qemu() -> tuple[str, dict[str, str]]:
    """QEMU's program and the environment that it needs; from Debian's packages, unpacked, if it is not installed.

    Raises
    ------
    MissingError
        and says how to get it.
    """
    if installed := shutil.which(_PACKAGE):
        return installed, dict(os.environ)
    program = _UNPACKED / "usr" / "bin" / _PACKAGE
    if not program.exists():
        _download()
    folders = [str(_UNPACKED / folder / "x86_64-linux-gnu") for folder in ("usr/lib", "lib")]
    return str(program), {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}


def _download() -> None:
    debs = _UNPACKED / "debs"
    shutil.rmtree(_UNPACKED, ignore_errors=True)
    debs.mkdir(parents=True)
    try:
        simulated = subprocess.run(["apt-get", "install", "--simulate", "--no-install-recommends", _PACKAGE],
                                   check=True, capture_output=True, text=True).stdout
        packages = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)
        subprocess.run(["apt-get", "-oAcquire::Retries=3", "download", *packages], cwd=debs, check=True,
                       capture_output=True)
        # The program is unpacked last: it is there only if all of it is.
        for deb in sorted(debs.iterdir(), key=lambda path: path.name.startswith(_PACKAGE)):
            subprocess.run(["dpkg", "-x", deb, _UNPACKED], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise MissingError(f"no {_PACKAGE} here; on Debian: apt-get install {_PACKAGE}") from None
    shutil.rmtree(debs)
