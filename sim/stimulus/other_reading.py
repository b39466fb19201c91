"""Finds the settings with which the port writes of a stimulus make sense, if those in force let them make none.

This is the rule of ports and the framing of items in plain Python, without a board, for the first writes of each node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypermon.hdl.layout import event_writes, word_writes
from hypermon.host.analysis.junk import SHARE, Lengths
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.sim.stimulus.port_mapping import Edge, Sample
from hypermon.sim.stimulus.stimulus import Stimulus, default_sample

__all__ = ["Reading", "other_reading"]

#: Port writes of a node that are looked at.
_WRITES = 1000
#: Among changes, the one that is no option.
_SWAPPED = "reversed"


@dataclass(frozen=True)
class Reading:
    """How a node's port is read. ``reversed``: with its data bits in reverse order."""

    edge: Edge
    sample: Sample
    mode: ItemMode
    reversed: bool = False

    def changes(self, now: "Reading") -> tuple[str, ...]:
        """What to add to the command line so that a port is read like this, instead of like ``now``."""
        parts = []
        if self.edge is not now.edge:
            parts.append(f"--edge {self.edge.value}")
        # An option that is given stays in force when the edge changes.
        if self.sample is not (default_sample(self.edge) if now.sample is default_sample(now.edge) else now.sample):
            parts.append(f"--sample {self.sample.value}")
        if self.mode is not now.mode:
            parts.append(f"--mode {self.mode.name.lower()}")
        return (*parts, _SWAPPED) if self.reversed else tuple(parts)


def other_reading(stimulus: Stimulus, now: list[Reading], *, clock_hz: int, port_bits: int, timeout_ps: int,
                  lengths: Lengths | None) -> str | None:
    """Says with which settings most items make sense.

    Parameters
    ----------
    now : how each node's port has been read. Nodes in nibble mode are left out.
    clock_hz, port_bits, timeout_ps : of the board; data bits of its ports; how long an item waits for its next nibble.
    lengths : of payloads, by the id of the event; None: any are right.

    Returns
    -------
    a clause for people: what to do, and how many items then make sense. None if no other settings are better.
    """
    chosen: dict[int, tuple[str, ...]] = {}
    good = total = 0
    for node, reading in enumerate(now):
        rows = np.flatnonzero(stimulus.node == node)[:_WRITES]
        if reading.mode is ItemMode.NIBBLE or not len(rows):
            continue
        writes = list(zip(stimulus.time_ps[rows].tolist(), stimulus.port[rows].tolist(), strict=True))
        best = None
        for other in _others(reading):
            values = _values(writes, stimulus.initial[node], other, port_bits, 10**12 // clock_hz)
            right, wrong = _items(values, other.mode, port_bits, timeout_ps, lengths)
            rank = (wrong / (right + wrong) if right else 1.0, len(other.changes(reading)))
            if best is None or rank < best[0]:
                best = rank, other, right, right + wrong
        if best is None or best[0][0] >= SHARE:
            return None
        chosen[node] = best[1].changes(reading)
        good, total = good + best[2], total + best[3]
    if not any(chosen.values()):
        return None
    return f"{_advice(chosen)}; then {good:,} of the first {total:,} items of the stimulus make sense"


def _advice(chosen: dict[int, tuple[str, ...]]) -> str:
    """What to do, from the changes of each node."""
    alike = len(set(chosen.values())) == 1
    options, swapped = [], []
    for node, parts in chosen.items():
        options += [part if alike else part.replace(" ", f" {node}=", 1) for part in parts if part != _SWAPPED]
        swapped += [str(node)] * (_SWAPPED in parts)
    advice = [f"add {' '.join(dict.fromkeys(options))}"] if options else []
    if swapped:
        advice.append(f"reverse the order of the data wires of node{'s' * (len(swapped) > 1)} {', '.join(swapped)}")
    return " and ".join(advice)


def _others(now: Reading) -> Iterator[Reading]:
    """All settings, those in force first."""
    yield now
    modes = dict.fromkeys((now.mode, ItemMode.EVENT))
    for mode, swapped, edge, sample in product(modes, (False, True), Edge, Sample):
        yield Reading(edge, sample, mode, swapped)


def _values(writes: list[tuple[int, int]], before: int, reading: Reading, bits: int,
            clock_ps: int) -> Iterator[tuple[int, int]]:
    """Time and value of each active edge."""
    mask = (1 << bits) - 1
    for at, (time, port) in enumerate(writes):
        rises, falls = port & ~before, before & ~port
        if (reading.edge is not Edge.FALLING and rises >> bits) or (reading.edge is not Edge.RISING and falls >> bits):
            value = before
            if reading.sample is Sample.AFTER:
                # It is read between one and two clocks after the edge.
                value = next(one for when, one in reversed(writes[at:at + 8]) if when <= time + 3 * clock_ps // 2)
            value &= mask
            yield time, int(f"{value:0{bits}b}"[::-1], 2) if reading.reversed else value
        before = port


def _items(values: Iterator[tuple[int, int]], mode: ItemMode, bits: int, timeout_ps: int,
           lengths: Lengths | None) -> tuple[int, int]:
    """How many items make sense, and how many do not. One that the last value leaves open is neither."""
    right = wrong = last = 0
    item: list[int] = []
    for time, value in values:
        if item and time - last > timeout_ps:
            wrong, item = wrong + 1, []
        last = time
        if not item and mode is ItemMode.EVENT and not value & 15:
            continue
        item.append(value)
        if len(item) == (event_writes(bits, item[0] & 15) if mode is ItemMode.EVENT else word_writes(bits)):
            fits = mode is not ItemMode.EVENT or _fits(item, bits, lengths)
            right, wrong, item = right + fits, wrong + (not fits), []
    return right, wrong


def _fits(item: list[int], bits: int, lengths: Lengths | None) -> bool:
    if lengths is None:
        return True
    number = item[1] | item[2] << 4 if bits == 4 else item[1]
    least, most = lengths.get(number, (0, -1))
    return least <= (item[0] & 15) - 1 <= most
