"""Node ports in continuous time: node clocks, the writes of a node, the board's first flip-flop.

Nodes share no clock with the board or with each other (section 3.2.1). Times are integer picoseconds from board time 0;
the board's clock edge k is at k * period. All random numbers come from a generator that the caller seeds, so a seed
identifies a whole case.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Board", "Change", "NodeClock", "Port", "Program", "Write", "program", "settle"]

STROBE = 0x10
DATA = 0x0F
#: Time in ps, mask of the port bits that change, their new value.
Change = tuple[int, int, int]
#: Time in ps, node, new 5-bit value.
Write = tuple[int, int, int]


@dataclass(frozen=True)
class Board:
    """Properties of the board that a port depends on, in ps.

    aperture : a bit that changes less than this before a clock edge may be seen one edge later.
    """

    period: int
    aperture: int


@dataclass(frozen=True)
class Port:
    """Active edges, sample point, and the skew (ps) between the bits of one write."""

    rising: bool = True
    falling: bool = False
    after: bool = False
    skew: int = 0


class NodeClock:
    """A node's own oscillator: period in ps, off by ``ppm`` and wandering."""

    def __init__(self, rng: random.Random, period: float, ppm: float = 100.0):
        self.rng = rng
        self.period = period * (1 + rng.uniform(-ppm, ppm) * 1e-6)
        self.at = rng.uniform(0, period)

    def tick(self, time: int) -> int:
        """The first tick not before ``time``; the clock wanders meanwhile."""
        if time > self.at:
            ticks = -(-(time - self.at) // self.period)
            self.at += ticks * self.period * (1 + self.rng.gauss(0, 2e-6))
            while self.at < time:
                self.at += self.period
        return -(-int(self.at * 16) // 16)


@dataclass
class Program:
    """What one node writes: level before, changes in order of time, and the nibbles they represent."""

    initial: int
    changes: list[Change]
    nibbles: list[int]


def program(rng: random.Random, board: Board, port: Port, clock: NodeClock | None, gaps: Iterable[int],
            *, start: int = 0, initial: int = 0) -> Program:
    """One nibble for every gap, as early as the port's timing allows, plus the gap.

    Without ``clock`` every change is at the documented limit to the picosecond; with it, at the next tick of the clock.
    Data that need no longer be stable changes to another value half of the time, so that a sample taken too late is a
    wrong one.

    The limits follow from the board's period T and aperture a alone. A strobe that changes at s is first seen at an
    edge in [s, s + T + a). Sampled *before*, the data must be stable from s - T - a to s + a; *after*, from s + T - a
    to s + 2T + a; and each strobe level for T + a.
    """
    period, aperture = board.period, board.aperture
    hold_level = period + aperture
    tick = clock.tick if clock else lambda time: time
    level, now = initial >> 4, initial & DATA
    changes: list[Change] = []
    nibbles = []
    toggled = start - hold_level  # when the strobe last changed
    free = start                  # from when on the data may change

    def skewed(time: int, value: int, low: int) -> None:
        for bit in range(4):
            changes.append((max(low, time - rng.randint(0, port.skew)), 1 << bit, value & 1 << bit))

    for gap in gaps:
        nibble = rng.getrandbits(4)
        if not (port.rising and port.falling) and level == port.rising:
            toggled = tick(toggled + hold_level + (gap // 2 if clock else 0))
            level ^= 1
            changes.append((toggled, STROBE, STROBE * level))
            gap -= gap // 2 if clock else 0
        earliest = toggled + hold_level + gap
        if port.after:
            settled = period - aperture
            toggled = tick(max(earliest, free - settled + port.skew))
            skewed(toggled + settled, nibble, free) if clock is None else skewed(
                min(toggled + port.skew, toggled + settled), nibble, free)
            free = toggled + 2 * period + aperture
        else:
            toggled = tick(max(earliest, free + port.skew + period + aperture))
            skewed(toggled - period - aperture, nibble, free)
            free = toggled + aperture
        level ^= 1
        changes.append((toggled, STROBE, STROBE * level))
        nibbles.append(nibble)
        now = nibble
        if rng.random() < 0.5:
            now = rng.getrandbits(4)
            changes.append((free, DATA, now))
    return Program(initial, sorted(changes, key=lambda change: change[0]), nibbles)


def settle(rng: random.Random, board: Board, ports: Sequence[Program]
           ) -> tuple[list[Write], list[list[tuple[int, int]]]]:
    """What the board's first flip-flops sample at the ports.

    A bit that changes inside the aperture before a clock edge is seen at that edge or at the next one, at random, each
    bit independently. A change at the edge itself is seen at the next one.

    Returns the writes of all ports in order of time, none of them at a clock edge, and for each port the pairs of clock
    edge and value that the flip-flops see.
    """
    writes: list[Write] = []
    seen = []
    for node, port in enumerate(ports):
        applied: list[list[tuple[int, int]]] = [[] for _ in range(5)]
        for time, mask, value in port.changes:
            for bit in range(5):
                if not mask >> bit & 1:
                    continue
                edge = -(-time // board.period)
                late = edge * board.period - time
                at = time
                if late == 0 or (late < board.aperture and rng.random() < 0.5):
                    at = edge * board.period + 1
                while applied[bit] and applied[bit][-1][0] >= at:
                    applied[bit].pop()  # overtaken before it was seen
                applied[bit].append((at, value >> bit & 1))
        now = port.initial
        levels: dict[int, int] = {}
        merged = sorted((time, bit, value) for bit, steps in enumerate(applied) for time, value in steps)
        for k, (time, bit, value) in enumerate(merged):
            now = now & ~(1 << bit) | value << bit
            levels[time // board.period + 1] = now
            if k + 1 == len(merged) or merged[k + 1][0] != time:
                writes.append((time, node, now))
        seen.append(list(levels.items()))
    writes.sort()
    return writes, seen
