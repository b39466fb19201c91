"""Runs the examples: ``python examples/cocotb/run.py [core|uart|uart-amaranth ...] [--simulator icarus] [--waves]``.

They need ``pip install -e '.[cocotb]'``; for Icarus also Debian's package iverilog.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from hypermon.hdl.layout import Geometry
from hypermon.host.errors import HypermonError
from hypermon.sim.bench.runner import SIMULATORS, simulate

HERE = Path(__file__).parent


def run(example: str, simulator: str, waves: bool, folder: Path) -> None:
    """Builds and runs one; raises HypermonError if it fails."""
    folder = folder / f"{example}-{simulator}"
    common = {"simulator": simulator, "waves": waves, "folder": folder, "where": HERE}
    print(f"{example} on {simulator}, in {folder}; the first build takes up to a minute", flush=True)
    if example == "core":
        simulate("test_core", geometry=Geometry(nodes=4), **common)
    elif example == "uart":
        simulate("test_uart", geometry=Geometry(nodes=1), sources=[HERE / "uart_traced.v"], top="uart_traced", **common)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        design = folder / "uart_traced.v"
        made = subprocess.run([sys.executable, HERE / "uart_traced.py"], check=True, stdout=subprocess.PIPE)
        design.write_bytes(made.stdout)
        simulate("test_uart", sources=[design], top="uart_traced", **common)
    if waves:
        print(f"waves: {folder / 'waves.fst'}; gtkwave {folder / 'waves.gtkw'} or surfer show them grouped")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="core, uart, uart-amaranth; all without one")
    parser.add_argument("--simulator", choices=SIMULATORS, action="append", help="may be given twice; verilator")
    parser.add_argument("--waves", action="store_true", help="write waves.fst and waves.gtkw")
    parser.add_argument("--folder", type=Path, default=Path("sim_build"))
    given = parser.parse_args()
    try:
        for each in given.examples or ("core", "uart", "uart-amaranth"):
            for simulator in given.simulator or ("verilator",):
                run(each, simulator, given.waves, given.folder)
    except HypermonError as error:
        raise SystemExit(f"run.py: {error}") from None
