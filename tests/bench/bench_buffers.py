"""What the buffers of the extended board are good for, measured on the virtual board at 100 MHz.

    stalls   how long the host may be away before the first item is refused, by size and load
    deep     the same with an SDRAM's controller and a small part of a ULX3S's memory, and what all of it comes to
    rates    bursts and sustained rates with a link of 50 MB/s: what is lost, what the link carries

Each size of board is compiled once, a minute or two each.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypermon.boards.model.ecp5_buffers import BLOCK_RAMS, SIZES
from hypermon.hdl.layout import BEAT_BYTES, REGISTERS, BlockType, Geometry, Window
from hypermon.hdl.layout import Sink as Sinks
from hypermon.hdl.stream.store import segments
from hypermon.hdl.verilog import verilog
from hypermon.sim.virtual import link as virtual
from hypermon.sim.virtual.build import Shell
from hypermon.sim.virtual.deep_board import deep_shell
from hypermon.sim.virtual.link import VirtualLink

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.sim.plain_host import once, start
from tests.sim.traffic import Traffic, evenly, random_gaps, section_6, traffic

LINK = 50_000_000
AWAY_MS = 1.0
#: Items a second of all nodes: mean gaps of 1000, 100 and 5 ticks.
LOADS = (100_000, 1_000_000, 20_000_000)
#: Milliseconds that are asked for at a million a second.
GOALS = {"25F": 25, "85F": 100}


def block_rams(geometry: Geometry) -> int:
    """Block RAMs of the whole core on an ECP5."""
    text = verilog(geometry, "ecp5")
    return text.count("DP16KD ") + text.count("PDPW16KD ")


def survived_ms(geometry: Geometry, load: int, seed: int, longest_ms: float,
                shell: Shell | None = None) -> tuple[float, bool]:
    """Milliseconds for which the host may be away; and whether that was the end of it."""
    rng = np.random.default_rng(seed)
    written = traffic(geometry, *random_gaps(geometry, load, 0.1, AWAY_MS + longest_ms, rng), rng)
    at = 0.0
    virtual.PATIENCE = 1 << 10
    with VirtualLink(written.stimulus, geometry, drain_rate=LINK, stalls=[(AWAY_MS, longest_ms + 1000)],
                     shell=shell) as link:
        start(link, written.stimulus, Window.CLOCK, Sinks.EXTENDED)
        while not link.ended:
            link.stream(1 << 16)
            if link.read(REGISTERS["STATUS"].offset) & 7:
                return at, True
            at = max(0.0, link.board_ps / 1e9 - AWAY_MS)
    return at, False


def stalls(sizes: dict[str, Geometry], seed: int) -> None:
    print("Stalls of the host that lose nothing, in milliseconds, nibbles at random from 16 nodes:\n")
    print("| store, beats | store | block RAMs of the store | of the core | "
          + " | ".join(f"{load / 1e6:g} M/s" for load in LOADS) + " | |")
    print("| ---: | ---: | ---: | ---: | " + " | ".join("---:" for _ in LOADS) + " | --- |")
    for name, geometry in sizes.items():
        without = block_rams(replace(geometry, store_depth=0))
        whole = block_rams(geometry)
        capacity = BEAT_BYTES * (geometry.store_depth + geometry.compact_depth)
        cells = []
        for load in LOADS:
            # At 2 bytes an item at least, or a block of 48 bytes and more each millisecond.
            longest = 1.3 * capacity / (load * (1.5 if load > 1e7 else 2.1)) * 1000 + 3
            begun = time.perf_counter()
            ms, refused = survived_ms(geometry, load, seed, longest)
            cells.append(f"{ms:.1f}" if refused else f"> {ms:.1f}")
            print(f"{name}, {load:,}/s: {ms:.2f} ms, {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        goal = f"asked for at 1 M/s: {GOALS[name]} ms" if name in GOALS else ""
        print(f"| {geometry.store_depth} | {BEAT_BYTES * geometry.store_depth // 1024} KiB | {whole - without} "
              f"({'+'.join(map(str, segments(geometry.store_depth))) or '-'}) | {whole}"
              f"{' of ' + str(BLOCK_RAMS[name]) if name in BLOCK_RAMS else ''} | " + " | ".join(cells) + f" | {goal} |",
              flush=True)
    print()


def deep(seed: int) -> None:
    """A 512th of the memory, for all of it takes an hour; what stands before it is as large on both."""
    part, whole = 1 << 12, 1 << 21
    geometry = Geometry.extended(store_depth=0, external_depth=part)
    before = BEAT_BYTES * (geometry.compact_depth + 2 * 64)     # with head and tail of the FIFO
    print(f"With {BEAT_BYTES * part // 1024} KiB of SDRAM, and so with {BEAT_BYTES * whole >> 20} MiB:\n")
    for load in LOADS[1:]:
        ms, refused = survived_ms(geometry, load, seed, 45 if load < 1e7 else 3.5, deep_shell())
        assert refused
        seconds = ms * (BEAT_BYTES * whole + before) / (BEAT_BYTES * part + before) / 1000
        print(f"{load:,}/s: {ms:.1f} ms; {seconds:.1f} s", flush=True)
    print()


def rate(name: str, geometry: Geometry, written: Traffic) -> None:
    begun = time.perf_counter()
    run = once(written.stimulus, geometry, Window.CLOCK, Sinks.EXTENDED, drain_rate=LINK)
    seconds = (written.edge.max() - written.edge.min()) / geometry.clock_hz
    compact = sum(len(payload) for kind, _, payload in run.blocks if kind is BlockType.COMPACT)
    print(f"{name:34} {len(written):9,} nibbles in {1000 * seconds:6.1f} ms ({len(written) / seconds / 1e6:5.2f} M/s)  "
          f"lost {run.lost}  {compact / len(run.events):5.3f} bytes a nibble, {len(run.stream) / len(run.events):5.3f} "
          f"with all else  ({time.perf_counter() - begun:.0f} s)", flush=True)


def rates(length_ms: float, seed: int) -> None:
    geometry = SIZES["25F"]
    rng = np.random.default_rng(seed)
    print(f"With a link of {LINK / 1e6:g} MB/s, the board of an ECP5-25F:\n")
    rate("burst of section 6", geometry, section_6(geometry, rng))
    rate("one node, every fourth clock", geometry,
         traffic(geometry, *evenly(geometry, 25_000_000, 0.1, 0.1 + length_ms, [7]), rng))
    rate("all nodes, at random", geometry,
         traffic(geometry, *random_gaps(geometry, 20_400_000, 0.1, 0.1 + length_ms, rng), rng))
    rounds = 10_000 + 80 * np.arange(int(length_ms * 1250))
    rate("all nodes in one clock", geometry,
         traffic(geometry, np.repeat(rounds, 16), np.tile(np.arange(16), len(rounds)), rng))
    print()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="*", default=[], help="more depths of the store, in beats")
    parser.add_argument("--milliseconds", type=float, default=20, help="of the sustained rates (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="of what is written (default 1)")
    args, _ = parser.parse_known_args()
    print(f"seed {args.seed}")
    rates(args.milliseconds, args.seed)
    deep(args.seed)
    sizes = {"none": replace(SIZES["25F"], store_depth=0)} | SIZES
    sizes |= {str(depth): replace(SIZES["25F"], store_depth=depth) for depth in args.depths}
    stalls(dict(sorted(sizes.items(), key=lambda item: item[1].store_depth)), args.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
