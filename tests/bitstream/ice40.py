"""Bitstreams of Lattice's iCE40, back to Verilog: by IceStorm's ``iceunpack`` and ``icebox_vlog``, which Debian has as
fpga-icestorm.

``icebox_vlog`` writes lookup tables, flip-flops and input registers as plain Verilog, and block RAMs and the PLL as
cells. Yosys has a model of the RAMs; of the PLL this file has one.
"""

import re
import shutil
import subprocess
from pathlib import Path

from netlist import BitstreamError, Clocks, Family, with_models

__all__ = ["PACKAGES", "chip", "text_of", "verilog_of"]

#: Packages by the device that a bitstream is for: icebox takes the largest of each if nobody says another.
PACKAGES = {"8k": "ct256", "5k": "sg48"}
_MODELS = Family("ice40", (), "ice40/cells_sim.v", defines="".join(("`define SB_DFF_INIT initial Q = 0;\n", *(
    f"`define ICE40_DEFAULT_ASSIGNMENT_{value}\n" for value in ("V(v)", "0", "1")))))
#: The package pin of a PLL that has one, by its place.
_PADS = {"PLL_12_31": "35"}
_PLL = re.compile(r"^SB_PLL40_\w+ #\((.*?)\) (\w+) \((.*?)\);\n", re.MULTILINE | re.DOTALL)
_RAM = re.compile(r"^SB_RAM40_4K\w* (?P<given>#\(.*?\)) ram40_(?P<x>\d+)_(?P<y>\d+) \((?P<pins>.*?)\);\n",
                  re.MULTILINE | re.DOTALL)
_PIN = re.compile(r"\.(\w+)\((.*?)\)[,\n]")
_DECLARED = re.compile(r"^(wire|reg) ([^;]*\bpin_[^;]*);$", re.MULTILINE)


def text_of(bits: Path) -> str:
    """IceStorm's text of a bitstream: a character a bit, tile by tile.

    Raises
    ------
    BitstreamError
        if the tool is missing or fails.
    """
    return _ran(["iceunpack", str(bits)])


def verilog_of(text: str) -> str:
    """What ``icebox_vlog`` makes of that text, pins named by the package."""
    device = re.search(r"^\.device (\w+)$", text, re.MULTILINE)
    if not device or device[1] not in PACKAGES:
        raise BitstreamError(f"a bitstream for {device[1] if device else 'no'} device; known are {', '.join(PACKAGES)}")
    return _clock_edges(text, _ran(["icebox_vlog", "-s", "-l", "-d", PACKAGES[device[1]], "/dev/stdin"], text))


def _clock_edges(text: str, verilog: str) -> str:
    """The same with the clock edges of block RAMs as their tiles have them.

    A tile's first bit inverts its clock: the lower tile's that of reading, the upper one's that of writing
    (YosysHQ/icestorm, pull request 313, from tests with Lattice's tool; YosysHQ/nextpnr, issue 910, from a UP5K).
    Debian's ``icebox_vlog`` is older than that, and exchanges them on an UltraPlus.
    """
    inverted = {(int(x), int(y)) for x, y in re.findall(r"^\.ram[bt]_tile (\d+) (\d+)\n1", text, re.MULTILINE)}

    def edges(found: re.Match[str]) -> str:
        x, y = int(found["x"]), int(found["y"])
        read, write = (x, y) in inverted, (x, y + 1) in inverted
        pins = re.sub(r"\.WCLKN?\(", f".WCLK{'N' * write}(", found["pins"])
        pins = re.sub(r"\.RCLKN?\(", f".RCLK{'N' * read}(", pins)
        return f"SB_RAM40_4K{'NR' * read}{'NW' * write} {found['given']} ram40_{x}_{y} ({pins});\n"

    return _RAM.sub(edges, verilog)


def _ran(command: list[str], given: str = "") -> str:
    if shutil.which(command[0]) is None:
        raise BitstreamError(f"{command[0]} is missing; on Debian: apt-get install fpga-icestorm")
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BitstreamError(f"{command[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout


def chip(verilog: str, clocks: Clocks) -> tuple[str, int]:
    """Module ``chip`` of what ``icebox_vlog`` wrote, with its cells, and the rate of ``link_clk`` in Hz.

    Raises
    ------
    BitstreamError
        for no PLL or several, or one that makes another clock than the board's.
    """
    plls = list(_PLL.finditer(verilog))
    if len(plls) != 1:
        raise BitstreamError(f"{len(plls)} PLLs in these bits instead of one")
    given = dict(_PIN.findall(plls[0][1] + "\n"))
    if (paths := (given["FEEDBACK_PATH"], given["PLLOUT_SELECT"])) != ('"SIMPLE"', '"GENCLK"'):
        raise BitstreamError(f"a PLL with other paths than a board's: {', '.join(paths)}")
    divr, divf, divq = (int(given[name].partition("'b")[2], 2) for name in ("DIVR", "DIVF", "DIVQ"))
    source, hz = clocks.input_of("ice40", divf + 1, (divr + 1) << divq)
    pins = dict(_PIN.findall(plls[0][3] + "\n"))
    added = "input clk, input link_clk, "
    if "PACKAGEPIN" in pins:
        # The pin is the PLL's own, and icebox_vlog does not connect it.
        pins["PACKAGEPIN"] = f"pin_{_PADS[plls[0][2]]}"
        added += f"input {pins['PACKAGEPIN']}, "
    text = verilog.replace(plls[0][0], _pll(pins, source))
    text = _DECLARED.sub(_undoubled, text.replace("module chip (", f"module chip ({added}", 1))
    cells = set(re.findall(r"^(SB_\w+) ", text, re.MULTILINE))
    return with_models(_MODELS, text, cells), max(hz, clocks.link_hz)


def _pll(pins: dict[str, str], source: str) -> str:
    """The PLL's model: its clock is there while its reference, held high, is at it, and nothing stops it."""
    reference = pins.get("REFERENCECLK") or pins.get("PACKAGEPIN")
    runs = f"{reference} & {pins['RESETB']} & ~{pins['BYPASS']}"
    outputs = [pins[name] for name in ("PLLOUTCORE", "PLLOUTGLOBAL") if name in pins]
    return "".join((*(f"assign {net} = {source} & {runs};\n" for net in outputs),
                    f"assign {pins['LOCK']} = {runs};\n" if "LOCK" in pins else ""))


def _undoubled(declared: re.Match[str]) -> str:
    """Pins are ports; icebox_vlog declares them once more."""
    names = [name for name in declared[2].split(", ") if not name.startswith("pin_")]
    return f"{declared[1]} {', '.join(names)};" if names else ""
