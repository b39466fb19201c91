"""Wire check: nodes walk their data wires, and what arrives says which wires are swapped, stuck or missing.

A node writes 0, 1, 2, 4, 8, 15 over and over (``hm_wire_check()`` of the node library). Every way in which the five
wires of a port can be mixed up or dead makes a pattern of its own of that; the patterns are computed, not listed.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from hypermon.hdl.layout import PORT_BITS
from hypermon.host.decode import decode_run
from hypermon.host.device import Device, Settings
from hypermon.host.recorder import Limits, record
from hypermon.host.recording import Run

__all__ = ["WALK", "PortVerdict", "check_wires", "judge"]

#: What a node writes, over and over.
WALK = (0, 1, 2, 4, 8, 15)
#: Nibbles below which there is no verdict: some rounds.
_LEAST = 8 * len(WALK)
#: Share of nibbles that must follow the pattern: a few are lost at the ends.
_REGULAR = 0.95
_WIRES = (*(f"data{bit}" for bit in range(PORT_BITS)), "strobe")
_STROBE = PORT_BITS
#: A wire of the board shows one of the node's, or is dead at a level.
_LOW, _HIGH = len(_WIRES), len(_WIRES) + 1


@dataclass(frozen=True)
class PortVerdict:
    """What a node's port showed. ``ok``: every wire is where it belongs."""

    node: int
    ok: bool
    nibbles: int
    seen: str


def _levels(both_edges: bool, phase: int) -> list[int]:
    """Levels of a node's five wires over two rounds, a write each; a strobe that toggles is ``phase`` at the first."""
    strobe = 1 << _STROBE
    if both_edges:
        return [value | strobe * ((n ^ phase) & 1) for n, value in enumerate(WALK * 2)]
    return [level for value in WALK * 2 for level in (value, value | strobe)]


def _captured(sources: Sequence[int], both_edges: bool, phase: int = 0) -> tuple[int, ...]:
    """Nibbles that the board takes in two rounds, if its wires show ``sources``."""
    def mixed(level: int) -> int:
        shown = [level >> wire & 1 for wire in range(len(_WIRES))] + [0, 1]
        return sum(shown[source] << wire for wire, source in enumerate(sources))

    wires = [mixed(level) for level in _levels(both_edges, phase)]
    taken = []
    for before, now in zip([wires[-1], *wires[:-1]], wires, strict=True):
        rises = now >> _STROBE > before >> _STROBE
        if rises or (both_edges and (now ^ before) >> _STROBE):
            taken.append((now if both_edges else before) & (1 << PORT_BITS) - 1)
    return tuple(taken)


def _round(nibbles: Sequence[int]) -> tuple[int, ...]:
    """The shortest piece that repeats, begun where it is smallest."""
    length = next((n for n in range(1, len(nibbles) + 1)
                   if len(nibbles) % n == 0 and tuple(nibbles) == tuple(nibbles[:n]) * (len(nibbles) // n)), 0)
    return min((tuple(nibbles[k:length]) + tuple(nibbles[:k]) for k in range(length)), default=())


def _faults(sources: Sequence[int]) -> list[str]:
    texts = []
    for wire, source in enumerate(sources):
        if source == wire:
            continue
        if source in (_LOW, _HIGH):
            open_end = "not connected?" if source == _LOW else "not connected, where pins are pulled up?"
            texts.append(f"{_WIRES[wire]} is always {source - _LOW} ({open_end})")
        elif sources[source] != wire:
            texts.append(f"{_WIRES[wire]} shows the node's {_WIRES[source]}")
        elif source > wire:
            texts.append(f"{_WIRES[wire]} and {_WIRES[source]} are swapped")
    return texts


@cache
def _explanations(both_edges: bool) -> dict[tuple[int, ...], list[list[str]]]:
    """Pattern to the mix-ups that make it, the likeliest only: the fewest faults."""
    found: dict[tuple[int, ...], list[list[str]]] = {}
    for sources in product(range(_HIGH + 1), repeat=len(_WIRES)):
        for phase in range(1 + both_edges):
            pattern = found.setdefault(_round(_captured(sources, both_edges, phase)), [])
            if (faults := _faults(sources)) not in pattern:
                pattern.append(faults)

    def likely(faults: list[str]) -> tuple[int, int]:
        # A wire that is dead is likelier than one that shows another's signal.
        return len(faults), sum(" shows " in fault for fault in faults)

    def likeliest(every: list[list[str]]) -> list[list[str]]:
        least = min(map(likely, every))
        return [faults for faults in every if likely(faults) == least]

    return {pattern: likeliest(every) for pattern, every in found.items()}


def judge(nibbles: Iterable[int], both_edges: bool) -> tuple[bool, str]:
    """Whether a port is wired right, and what was seen, from what it delivered while its node walked the wires."""
    came = np.fromiter(nibbles, np.uint8)
    if not len(came):
        return False, "nothing: strobe not connected, or nobody writes"
    if len(came) < _LEAST:
        return False, f"{len(came)} nibbles only; a verdict takes {_LEAST}"
    longest = len(_levels(both_edges, 0))
    for length in range(1, longest + 1):
        if np.mean(came[length:] == came[:-length]) >= _REGULAR:
            # From the middle, and only where it is as regular as it should be.
            starts = [k for k in range(len(came) - 2 * length)
                      if np.array_equal(came[k:k + length], came[k + length:k + 2 * length])]
            if not starts:
                continue
            start = min(starts, key=lambda k: abs(k - len(came) // 2))
            pattern = _round(came[start:start + length].tolist())
            best = _explanations(both_edges).get(pattern)
            if best is None:
                break
            if not best[0]:
                return True, "every wire is where it belongs"
            return False, " or ".join(", ".join(faults) for faults in best[:3])
    return False, "not the wire check's pattern: does the node call hm_wire_check(), and are the edges right?"


def check_wires(device: Device, *, seconds: float, both_edges: bool) -> list[PortVerdict]:
    """Records for a while and judges every port."""
    every = (1 << device.identity.nodes) - 1
    settings = Settings(rising=every, falling=every if both_edges else 0, after=every if both_edges else 0)
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        path = Path(folder) / "run"
        record(device, path, settings, limits=Limits(seconds))
        run = Run(path)
        decode_run(run)
        verdicts = []
        for node in range(device.identity.nodes):
            nibbles = run.events(nodes=[node], columns=["nibble"])["nibble"].to_numpy()
            ok, seen = judge(nibbles, both_edges)
            verdicts.append(PortVerdict(node, ok, len(nibbles), seen))
    return verdicts
