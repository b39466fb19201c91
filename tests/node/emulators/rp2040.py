"""Programs for the RP2040, run in an emulator: what their pins did at which clock, and how long functions took."""

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hypermon.sim.emulate.firmware import image

from tests.patience import patience
from tests.programs import MissingError, working

HERE = Path(__file__).parent
#: Where npm puts the emulators.
EMULATOR = HERE.parents[2] / ".build" / "npm"


@dataclass(frozen=True)
class Played:
    """``pins``: (clock, levels of all pins) wherever they change. ``calls``: name to clocks of each call;
    ``instructions``: likewise."""

    hz: int
    clocks: int
    pins: list[tuple[int, int]]
    calls: dict[str, list[int]]
    instructions: dict[str, list[int]]


def npm_package(name: str) -> Path:
    """Folder of a package that `package.json` names, installed by npm if need be.

    Raises
    ------
    MissingError
        without Node.js, npm or a registry.
    """
    working("node")
    working("npm")
    package = json.loads((HERE / "package.json").read_text())
    found = EMULATOR / "node_modules" / name
    version = found / "package.json"
    EMULATOR.mkdir(parents=True, exist_ok=True)
    with open(EMULATOR / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other tests may want it at the same time
        if version.exists() and json.loads(version.read_text())["version"] == package["dependencies"][name]:
            return found
        shutil.copy(HERE / "package.json", EMULATOR)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=EMULATOR,
                              capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip() or "npm failed").splitlines()[-1]
            raise MissingError(f"{name} cannot be installed: {reason}")
    return found


def emulator() -> Path:
    """Folder of the emulated RP2040; see :func:`npm_package`."""
    return npm_package("rp2040js")


def play(elf: bytes, folder: Path, *, limit: int, functions: tuple[str, ...] = ()) -> Played:
    """Runs a program until it waits for ever, at most so many clocks, and times calls of these functions."""
    found = emulator()
    program, memory = folder / "program.elf", folder / "program.bin"
    program.write_bytes(elf)
    memory.write_bytes(image(elf))
    addresses = {}
    if functions:
        symbols = subprocess.run(["arm-none-eabi-nm", program], check=True, capture_output=True, text=True).stdout
        addresses = {name: int(at, 16) & ~1 for at, _, name in map(str.split, symbols.splitlines())
                     if name in functions}
    assert set(addresses) == set(functions)
    done = subprocess.run(["node", HERE / "rp2040.mjs", found, memory, str(limit), *map(str, addresses.values())],
                          capture_output=True, text=True, timeout=patience(300), env={**os.environ, "NO_COLOR": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    calls, instructions = ({name: [of(call) for call in said["calls"] if call[0] == address]
                            for name, address in addresses.items()}
                           for of in (lambda call: call[2] - call[1], lambda call: call[3]))
    return Played(said["hz"], said["clocks"], [tuple(row) for row in said["pins"]], calls,
                  instructions)
