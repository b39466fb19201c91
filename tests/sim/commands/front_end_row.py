"""One row of the table of front ends in docs/front-ends.md: bytes at one rate, through `hypermon sim`.

    python -m tests.sim.commands.front_end_row uart 100000
    python -m tests.sim.commands.front_end_row serial 8000000 --bytes 10000

UARTs: eight nodes whose bits are 2 % too short, and eight whose bits are 2 % too long. Serial clocks: sixteen nodes, of
which each has another mode, order of the bits, and two or three wires. Each node begins at a random time, and pauses
for random times. The virtual board delays each synchronizer at random (`--seed`).
"""

import argparse
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

from hypermon.sim.virtual.link import APERTURE_PS

from tests.hdl.harness.senders import Wires, spi, uart
from tests.sim.dump import dump

__all__ = ["CLOCK_PS", "NODES", "RATES", "Row", "compared", "main", "row"]

#: Of the board of `hypermon sim`.
CLOCK_PS = 10_000
NODES = 16
#: In baud, and in Hz of the serial clock.
RATES = {"uart": (100_000, 921_600, 3_000_000, 12_000_000), "serial": (100_000, 1_000_000, 8_000_000, 25_000_000)}
#: Mode of SPI, lowest bit first, with chip select.
_SERIAL = tuple(product(range(4), (False, True), (False, True)))
_MOST_BURST = 8


@dataclass(frozen=True)
class Row:
    """What came of a row's bytes.

    Members
    -------
    sent, wrong : bytes. A byte is wrong if it is missing, or has another value; so is one that was not sent.
    rejected, lost : as `hypermon stats` counts them.
    least_ps, most_ps : stamp minus first edge, of the bytes that are not wrong.
    seconds : that `hypermon sim` took.
    """

    sent: int
    wrong: int
    rejected: int
    lost: int
    least_ps: int
    most_ps: int
    seconds: float

    @property
    def right(self) -> bool:
        """Nothing is wrong, and each stamp is within a clock and the aperture after its first edge."""
        return not self.wrong + self.rejected + self.lost and self.least_ps >= 0 and (
            self.most_ps <= CLOCK_PS + APERTURE_PS)


class _Node:
    """The wires of a node, their names, and (first edge in ps, value) of its bytes."""

    def __init__(self, kind: str, number: int, rate: int, rng: random.Random):
        self.number, self.rng, self.rate = number, rng, rate
        self.bytes: list[tuple[Fraction, int]] = []
        self.at = Fraction(rng.randrange(10**6, 3 * 10**6) + rng.randrange(4 * 10**12 // rate))
        self.mode, self.lowest, self.select = _SERIAL[number]
        if kind == "uart":
            self.bit = Fraction(10**12, rate) * (Fraction(98, 100) if number % 2 else Fraction(102, 100))
            self.wires, self.names = Wires([1, 0, 0]), [f"T{number}"]
            self.option = f"{number}={self.names[0]},uart,{rate}"
            return
        self.bit = Fraction(10**12, rate)
        self.wires, self.names = Wires([self.mode >> 1, 0, 1]), [f"C{number}", f"D{number}", f"S{number}"]
        if not self.select:
            self.names.pop()
        edge, order = "falling" if self.mode in (1, 2) else "rising", "lsb" if self.lowest else "msb"
        self.option = f"{number}={','.join(self.names)},serial,{edge},{order}"

    def send(self, count: int, kind: str) -> None:
        """Sends that number of bytes, in bursts."""
        while count:
            data = self.rng.randbytes(min(count, self.rng.randrange(1, _MOST_BURST + 1)))
            if kind == "uart":
                begins, self.at = uart(self.wires, self.at, self.bit, data)
            else:
                begins, self.at = spi(self.wires, self.at, self.bit, data, self.mode, select=self.select,
                                      lowest=self.lowest)
            self.bytes += zip(begins, data, strict=True)
            count -= len(data)
            # Two bytes without a select, at least, end what came before; and the link has time for all nodes.
            self.at += 25 * self.bit + self.rng.randrange(5000 * CLOCK_PS)

    def channels(self) -> dict[str, tuple[int, list[tuple[int, int]]]]:
        changes: list[list[tuple[int, int]]] = [[] for _ in self.names]
        for at, wire, level in self.wires.changes:
            if wire < len(changes):
                changes[wire].append((round(at), level))
        return {name: (self.wires.initial[wire], changes[wire]) for wire, name in enumerate(self.names)}


def compared(sent: Sequence[tuple[Fraction, int]], came: Sequence[tuple[int, int]], longest_ps: int
             ) -> tuple[int, list[int]]:
    """How many of the bytes of a node are wrong, and how many ps the stamps of the others are late.

    Parameters
    ----------
    sent : (first edge in ps, value), in order.
    came : (stamp in ps, value), in order.
    longest_ps : a stamp that is off by more belongs to another byte.
    """
    wrong, late, at = 0, [], 0
    for edge, value in sent:
        while at < len(came) and came[at][0] < edge - longest_ps:
            at, wrong = at + 1, wrong + 1
        if at == len(came) or came[at][0] > edge + longest_ps:
            wrong += 1
            continue
        stamp, seen = came[at]
        at += 1
        if seen == value:
            late.append(stamp - round(edge))
        else:
            wrong += 1
    return wrong + len(came) - at, late


def row(kind: str, rate: int, count: int, folder: Path, seed: int = 1) -> Row:
    """Plays a row of ``count`` bytes, and compares; files go into the folder.

    Raises
    ------
    subprocess.CalledProcessError
        if a command of `hypermon` fails.
    """
    rng = random.Random(seed)
    nodes = [_Node(kind, number, rate, rng) for number in range(NODES)]
    for node in nodes:
        node.send(count // NODES + (node.number < count % NODES), kind)
    played = dump(folder / "row.vcd", {name: channel for node in nodes for name, channel in node.channels().items()})
    run, began = folder / "run", time.monotonic()
    ports = [word for node in nodes for word in ("--port", node.option)]
    _hypermon("sim", played, "-o", run, "--nodes", str(NODES), "--seed", str(seed), *ports)
    seconds = time.monotonic() - began
    figures = json.loads(_hypermon("stats", run, "--json"))
    came: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for record in csv.DictReader(io.StringIO(_hypermon("export", run, "--to", "csv", "-"))):
        came[int(record["node"])].append((int(record["time_ps"]), int(record["nibble"])))
    wrong, late = 0, []
    for node in nodes:
        own, stamps = compared(node.bytes, sorted(came[node.number]), round(4 * node.bit))
        wrong, late = wrong + own, late + stamps
    return Row(count, wrong, figures["rejected"], figures["lost"], min(late, default=0), max(late, default=0), seconds)


def _hypermon(*words: str | Path) -> str:
    program = Path(sys.executable).with_name("hypermon")
    return subprocess.run([program, *map(str, words)], check=True, text=True, stdout=subprocess.PIPE).stdout


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; exit status 1 if a byte is wrong, rejected or lost, or a stamp."""
    parser = argparse.ArgumentParser(prog="front_end_row", description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=RATES)
    parser.add_argument("rate", type=int, help="baud, or Hz of the serial clock")
    parser.add_argument("--bytes", type=int, default=100_000, help="of all nodes together (default 100000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        made = row(args.kind, args.rate, args.bytes, Path(folder), args.seed)
    print(f"{args.kind} {args.rate / 1e6:g} M: {made.sent:,} bytes, {made.wrong} wrong, {made.rejected} rejected, "
          f"{made.lost} lost, stamps {made.least_ps / 1e3:g} to {made.most_ps / 1e3:g} ns late, {made.seconds:.0f} s")
    return 0 if made.right else 1


if __name__ == "__main__":
    sys.exit(main())
