"""Nodes in a cocotb bench: each writes its port at the ticks of its own clock."""

import random
from dataclasses import dataclass
from math import ceil
from typing import Any

from cocotb.triggers import Lock, Timer
from hypermon.sim.pins import data_of_event

from .cocotb_models import now_ps

__all__ = ["APERTURE_PS", "Node", "PortPins", "Sent"]

#: Set-up and hold time of an input flip-flop that the port's limits allow for, in ps.
APERTURE_PS = 1000


@dataclass(frozen=True)
class Sent:
    """One item that a node has written.

    Members
    -------
    ps : simulation time of the active strobe edge of its first write.
    kind : ``nibble``, ``word`` or ``event``.
    value : the nibble or word; of an event its id.
    payload : of an event, else empty.
    """

    ps: int
    kind: str
    value: int
    payload: bytes = b""


class PortPins:
    """The pins of all ports: a vector of strobes, one bit a node, and a vector of data, 4 or 8 bits a node.

    Both vectors are 0 from the beginning. ``writes`` lists all changes: simulation time in ps, node, new port value.
    """

    def __init__(self, strobe: Any, data: Any, bits: int = 4):
        self._strobe, self._data, self.bits = strobe, data, bits
        self._strobes = self._values = 0
        self.writes: list[tuple[int, int, int]] = []
        strobe.value, data.value = 0, 0

    def value(self, node: int) -> int:
        """Port of the node: data, and the strobe above them."""
        data = self._values >> self.bits * node & (1 << self.bits) - 1
        return data | (self._strobes >> node & 1) << self.bits

    def put(self, node: int, bit: int, level: int) -> None:
        """Sets one wire of a port now; bit ``bits`` is the strobe."""
        if bit == self.bits:
            self._strobes = self._strobes & ~(1 << node) | level << node
            self._strobe.value = self._strobes
        else:
            at = self.bits * node + bit
            self._values = self._values & ~(1 << at) | level << at
            self._data.value = self._values
        self.writes.append((now_ps(), node, self.value(node)))


class Node:
    """A node, as :meth:`.board.Board.node` makes it.

    Each write of the port happens at a tick of the node's own clock. Each wire then changes after a random delay of up
    to ``skew_ps``. The methods return after the last write, so ``await`` keeps the items in order. Tasks may share a
    node; no item is interrupted by another.

    Parameters
    ----------
    pins, number : the ports' pins, and which of them.
    clock_ps : period of the board's clock, for the limits.
    cycle_ps : period of the node's clock: time between two writes of the port. None: the shortest that is allowed.
    ppm : error of the node's clock, in millionths.
    skew_ps : largest difference in delay between the wires of the port.
    toggling : each nibble is one write, which toggles the strobe (``--edge both``), instead of two (strobe 0, then 1).
    seed : of the phase of its clock, and of the delays.

    Members
    -------
    sent : the items so far.

    Raises
    ------
    ValueError
        if the board could not read such a port; see `docs/nodes.md`, timing rules.
    """

    def __init__(self, pins: PortPins, number: int, *, clock_ps: int, cycle_ps: int | None = None, ppm: float = 0.0,
                 skew_ps: int = 0, toggling: bool = False, seed: int = 0):
        hold = (2 * clock_ps if toggling else clock_ps) + APERTURE_PS + 2 * skew_ps
        shortest = round(hold * (1 + abs(ppm) * 1e-6)) + 1
        if cycle_ps is None:
            cycle_ps = shortest
        if cycle_ps < shortest:
            raise ValueError(f"node {number}: {cycle_ps} ps between two writes; a board with a clock of {clock_ps} ps "
                             f"needs {shortest} ps at a skew of {skew_ps} ps and {ppm:g} ppm")
        if toggling and skew_ps >= clock_ps:
            raise ValueError(f"node {number}: a skew of {skew_ps} ps is not less than a clock, {clock_ps} ps")
        self._pins, self.number, self.toggling, self._skew = pins, number, toggling, skew_ps
        self._rng = random.Random(f"{seed}/{number}")
        self._period = cycle_ps * (1 + ppm * 1e-6)
        self._phase = self._rng.uniform(0, self._period)
        self._tick = -1
        self._lock = Lock()
        self.sent: list[Sent] = []

    async def nibble(self, value: int) -> None:
        """Writes one nibble, 0..15; on a port of 8 bits a byte. Raises ValueError for other values."""
        if not 0 <= value < 1 << self._pins.bits:
            raise ValueError(f"node {self.number}: a port of {self._pins.bits} bits cannot carry {value}")
        await self._item("nibble", [value], value)

    async def word(self, value: int) -> None:
        """Writes 32 bits, for a node in word mode. Raises ValueError for other values."""
        if not 0 <= value < 1 << 32:
            raise ValueError(f"node {self.number}: a word has 32 bits: {value}")
        bits = self._pins.bits
        await self._item("word", [value >> shift & (1 << bits) - 1 for shift in range(0, 32, bits)], value)

    async def event(self, identity: int, payload: bytes = b"") -> None:
        """Writes an event: its id, 0..255, and up to 14 bytes. Raises ValueError for others."""
        await self._item("event", data_of_event(identity, payload, self._pins.bits), identity, payload)

    async def _item(self, kind: str, data: list[int], value: int, payload: bytes = b"") -> None:
        async with self._lock:
            first = await self._send(data[0])
            self.sent.append(Sent(first, kind, value, payload))
            for each in data[1:]:
                await self._send(each)

    async def _send(self, data: int) -> int:
        """One nibble or byte; returns the simulation time of its active strobe edge."""
        strobe = 1 << self._pins.bits
        if self.toggling:
            return await self._write(data | ~self._pins.value(self.number) & strobe)
        await self._write(data)
        return await self._write(data | strobe)

    async def _write(self, value: int) -> int:
        """Sets the port at the next tick; returns when the strobe changed, or the time of the tick."""
        now = now_ps()
        # The tick after the last one, whatever the rounding.
        self._tick = max(self._tick + 1, ceil((now - self._phase) / self._period))
        due = max(round(self._phase + self._tick * self._period), now + 1)
        changed = self._pins.value(self.number) ^ value
        delays = sorted((due + self._rng.randint(0, self._skew), bit) for bit in range(self._pins.bits + 1)
                        if changed >> bit & 1)
        strobed = due
        await Timer(due - now, "step")
        for at, bit in delays:
            if at > now_ps():
                await Timer(at - now_ps(), "step")
            self._pins.put(self.number, bit, value >> bit & 1)
            if bit == self._pins.bits:
                strobed = at
        return strobed
