"""What is played at the package pins: real captures, with their silences shortened, and random writes.

Both are written as CSV, which the board at the pins and `hypermon sim` are given alike. Nothing changes in the first
microsecond: the board at the pins is seen to run one clock after its time began.
"""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypermon.boards.model.reach import level_ns
from hypermon.hdl.layout import Front, Geometry
from hypermon.sim.stimulus.stimulus import Stimulus, load

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.sim.fronted import Node

__all__ = ["DISPLAYS", "Play", "displays", "mixture", "played", "random_writes"]

#: Capture and its channels of data and strobe; falling edges count.
DISPLAYS = (
    ("hd44780-reset-init-hello.sr", "d4,d5,d6,d7,e"), ("hd44780-customcharacter.sr", "D4,D5,D6,D7,E"),
    ("hd44780-test_204.sr", "D4,D5,D6,D7,E"), ("hd44780-scroll.sr", "D4,D5,D6,D7,E"),
    ("hd44780-shiftcursor.sr", "D4,D5,D6,D7,E"), ("hd44780-blink.sr", "D4,D5,D6,D7,E"))
_START_PS = 2_000_000
#: Bytes that cross the link for a frame of up to 16 nodes, with its share of headers and censuses; and for a change of
#: a display's port, of which the fewest are strobes.
_FRAME_BYTES, _CHANGE_BYTES = 28, 12


@dataclass(frozen=True)
class Play:
    """A recording to be made: its name, the stimulus, options of `hypermon sim` and `record`, the board time at which
    it has been played, and more options of `hypermon sim`."""

    name: str
    csv: Path
    options: tuple[str, ...]
    until_ps: int
    wired: tuple[str, ...] = ()


def displays(captures: Path, into: Path, geometry: Geometry, bytes_per_second: int) -> Play:
    """Six real displays, as many as there are nodes, one on each of the last; all but the initial edges.

    A silence of all of them lasts no longer than the link needs for what came before; shorter times are the captures'
    own. So seconds of them are played in a tenth of one.
    """
    used = DISPLAYS[:geometry.nodes]
    paths = [captures / name for name, _ in used]
    at = [geometry.nodes - 1 - n for n in range(len(used))]
    played = load(paths, nodes=geometry.nodes, clock_hz=geometry.clock_hz, ports=[
        f"{path}#{node}={channels},falling" for path, node, (_, channels) in zip(paths, at, used, strict=True)])
    longest = 10**12 * _CHANGE_BYTES // bytes_per_second
    gaps = np.diff(played.time_ps, prepend=played.time_ps[:1])
    times = _START_PS + np.cumsum(np.minimum(gaps, longest))
    rows = [(_START_PS // 2, node, level) for node, level in enumerate(played.initial) if level]
    rows += zip(times.tolist(), played.node.tolist(), played.port.tolist(), strict=True)
    return _written("displays", into, rows, ("--edge", "falling"))


def random_writes(into: Path, geometry: Geometry, bytes_per_second: int, *, bursts: int, seed: int, window: str,
                  edge: str) -> Play:
    """Random nibbles of random nodes, in bursts after which the link has time for all of them.

    A burst is some writes of some nodes, alone or at the same time, as fast as the board sees them or slower, so that
    windows are shared and nibbles are carried into the next ones; no more of them than its queues take.
    """
    choose = random.Random(seed)
    rows: list[tuple[int, int, int]] = []
    start, level = _START_PS, [0] * geometry.nodes
    for _ in range(bursts):
        most = min(geometry.node_depth, geometry.frame_depth) // 4
        nodes = choose.sample(range(geometry.nodes), choose.randint(1, geometry.nodes))
        frames, last = 0, start
        for node in nodes:
            now = start + choose.randrange(3) * choose.randrange(2_000_000)
            count = choose.randint(1, most)
            writes = list(_writes(choose, now, geometry, count, edge, level[node]))
            rows += ((time, node, port) for time, port in writes)
            frames += count
            last, level[node] = max(last, writes[-1][0]), writes[-1][1]
        start = last + 10**12 * _FRAME_BYTES * frames // bytes_per_second + choose.randrange(1_000_000)
    rows.sort(key=lambda row: row[:2])
    return _written(f"random-{seed}", into, rows, ("--edge", edge, "--window", window))


def _writes(choose: random.Random, now: int, geometry: Geometry, count: int, edge: str,
            level: int) -> Iterator[tuple[int, int]]:
    """Times and values of one node's writes, each level as short as the board sees it, or up to twice as long."""
    shortest = 1000 * level_ns(geometry.clock_hz)

    def hold() -> int:
        return shortest + choose.randrange(2) * choose.randrange(shortest)

    strobe = level & 16
    for _ in range(count):
        now += hold() + choose.randrange(3) * choose.randrange(40 * shortest)
        nibble = choose.randrange(16)
        if edge == "both":
            strobe ^= 16
            yield now, strobe | nibble
            continue
        yield now, nibble
        now += hold()
        yield now, 16 | nibble
        now += hold()
        yield now, nibble


def mixture(into: Path, geometry: Geometry, bytes_per_second: int, *, bursts: int, seed: int) -> Play:
    """Random nibbles, bytes and packets of nodes of several kinds, in bursts after which the link has time for all."""
    choose = random.Random(seed)
    rates = {Front.UART: 1_000_000, Front.SWO: 2_000_000}
    senders = {n: Node(front, Fraction(10**12, rates[front]), choose) for n, front in enumerate(geometry.fronts)
               if front in rates}
    rows = [(_START_PS // 2, n, 16) for n in senders]       # a line is high while nothing is sent
    start, level = 50 * _START_PS, [0] * geometry.nodes
    for _ in range(bursts):
        items, last = 0, start
        for n in choose.sample(range(geometry.nodes), choose.randint(1, geometry.nodes)):
            now, count = start + choose.randrange(3) * choose.randrange(2_000_000), choose.randint(1, 8)
            if n not in senders:
                writes = list(_writes(choose, now, geometry, count, "rising", level[n]))
                rows += ((time, n, port) for time, port in writes)
                now, level[n] = writes[-1]
            else:
                node = senders[n]
                node.at = Fraction(now)
                if node.front is Front.UART:
                    node.single(count)
                else:
                    for _ in range(count):
                        node.event()
                now = int(node.at)
            items, last = items + count, max(last, now)
        start = last + 10**12 * _FRAME_BYTES * items // bytes_per_second + choose.randrange(1_000_000)
    rows += ((int(time), n, port) for n, node in senders.items() for time, port in node.wires.ports())
    rows.sort(key=lambda row: row[:2])
    rate = [word for front, hz in rates.items() for word in ("--front-rate", f"{front.name.lower()}={hz}")]
    wired = [word for n, node in senders.items() for word in ("--front", f"{n}={node.front.name.lower()}")]
    made = _written(f"mixture-{seed}", into, rows, ("--config", "extended", "--window", "1", *rate))
    return replace(made, wired=tuple(wired))


def _written(name: str, into: Path, rows: list[tuple[int, int, int]], options: tuple[str, ...]) -> Play:
    path = into / f"{name}.csv"
    with path.open("w") as file:
        file.write("time_ns,node,port\n")
        file.writelines(f"{time // 1000}.{time % 1000:03d},{node},{port}\n" for time, node, port in rows)
    return Play(name, path, options, rows[-1][0])


def played(play: Play, geometry: Geometry) -> Stimulus:
    """The stimulus of a CSV, for that board."""
    return load([play.csv], nodes=geometry.nodes, clock_hz=geometry.clock_hz)
