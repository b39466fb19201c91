"""Wire check: nodes walk their data wires, and the captured nibbles show which wires are swapped, stuck or missing.

A node writes 0, 1, 2, 4, 8, 15 over and over (``hm_wire_check()`` of the node library). Every way in which the five
wires of a port can be swapped or dead gives a distinct pattern. The patterns are computed, not listed.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import Path

import numpy as np
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.hdl.layout import PORT_BITS, Window
from hypermon.host.decode.decode import decode_run
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import Limits, record
from hypermon.host.run import Run

__all__ = ["THRESHOLDS", "WALK", "PortVerdict", "check_wires", "judge"]

#: What a node writes, over and over.
WALK = (0, 1, 2, 4, 8, 15)
#: Minimum nibbles for a verdict: some rounds.
_LEAST = 8 * len(WALK)
#: Consecutive nibbles that are compared: a round of correct wiring.
_PIECE = len(WALK)
#: Share of the pieces that must follow a pattern for it to be accepted, and for no further remark. Even with losses
#: excluded, a few do not follow it, where a node began anew. A wrong nibble spoils six pieces, a missing one five. For
#: a pattern of one nibble, which anything may resemble, all pieces must follow it.
_LIKELY, _REGULAR = 0.6, 0.95
#: The limits that a verdict depends on, by their names in output.
THRESHOLDS = {"least_nibbles": _LEAST, "likely": _LIKELY, "regular": _REGULAR}
_WIRES = (*(f"data{bit}" for bit in range(PORT_BITS)), "strobe")
_STROBE = PORT_BITS
#: A wire of the board shows one of the node's, or is stuck at a level.
_LOW, _HIGH = len(_WIRES), len(_WIRES) + 1


@dataclass(frozen=True)
class PortVerdict:
    """What a node's port showed. ``ok``: every wire is connected correctly."""

    node: int
    ok: bool
    nibbles: int
    seen: str


def _levels(both_edges: bool, phase: int) -> list[int]:
    """Levels of a node's five wires over two rounds, one per write; a strobe that toggles is ``phase`` at first."""
    strobe = 1 << _STROBE
    if both_edges:
        return [value | strobe * ((n ^ phase) & 1) for n, value in enumerate(WALK * 2)]
    return [level for value in WALK * 2 for level in (value, value | strobe)]


def _captured(sources: Sequence[int], both_edges: bool, phase: int = 0) -> tuple[int, ...]:
    """Nibbles that the board captures in two rounds, if its wires show ``sources``."""
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
            open_end = "not connected?" if source == _LOW else "not connected, on a board with pull-ups?"
            texts.append(f"{_WIRES[wire]} is always {source - _LOW} ({open_end})")
        elif sources[source] != wire:
            texts.append(f"{_WIRES[wire]} shows the node's {_WIRES[source]}")
        elif source > wire:
            texts.append(f"{_WIRES[wire]} and {_WIRES[source]} are swapped")
    return texts


@cache
def _explanations(both_edges: bool) -> dict[tuple[int, ...], list[list[str]]]:
    """Pattern to the wire faults that cause it, the likeliest only: the fewest faults."""
    found: dict[tuple[int, ...], list[list[str]]] = {}
    for sources in product(range(_HIGH + 1), repeat=len(_WIRES)):
        for phase in range(1 + both_edges):
            pattern = found.setdefault(_round(_captured(sources, both_edges, phase)), [])
            if (faults := _faults(sources)) not in pattern:
                pattern.append(faults)

    def likely(faults: list[str]) -> tuple[int, int]:
        # A dead wire is likelier than one that shows another's signal.
        return len(faults), sum(" shows " in fault for fault in faults)

    def likeliest(every: list[list[str]]) -> list[list[str]]:
        least = min(map(likely, every))
        return [faults for faults in every if likely(faults) == least]

    return {pattern: likeliest(every) for pattern, every in found.items()}


def _pieces(nibbles: np.ndarray) -> np.ndarray:
    """Each :data:`_PIECE` consecutive nibbles, as one number."""
    many = len(nibbles) - _PIECE + 1
    pieces = np.zeros(many, np.uint32)
    for k in range(_PIECE):
        pieces = pieces << PORT_BITS | nibbles[k:k + many]
    return pieces


@cache
def _patterns(both_edges: bool) -> dict[frozenset[int], tuple[int, ...]]:
    """Maps pieces of a repeated pattern to the pattern."""
    return {frozenset(_pieces(np.array(pattern * (_PIECE + 1), np.uint8))[:len(pattern)].tolist()): pattern
            for pattern in _explanations(both_edges) if pattern}


def judge(nibbles: Iterable[int], both_edges: bool, cuts: Iterable[int] = ()) -> tuple[bool, str]:
    """Whether a port is wired correctly, and what was observed, from its nibbles while its node walked the wires.

    ``cuts`` : positions of nibbles before which others were lost. A link that is slower than the nodes delivers little
        but pieces. Pieces without a cut are compared with those of every pattern.
    """
    came = np.fromiter(nibbles, np.uint8)
    if not len(came):
        return False, "nothing: strobe not connected, or the node does not write"
    if len(came) < _LEAST:
        return False, f"only {len(came)} nibbles; a verdict needs {_LEAST}"
    part = np.zeros(len(came), np.int64)
    part[np.fromiter(cuts, np.int64)] = 1
    part = np.cumsum(part)
    whole = part[_PIECE - 1:] == part[:1 - _PIECE]
    kinds, counts = np.unique(_pieces(came)[whole], return_counts=True)
    found = Counter(dict(zip(kinds.tolist(), counts.tolist(), strict=True)))
    if (pieces := found.total()) < _LEAST:
        return False, (f"{len(came)} nibbles, with {pieces} runs of {_PIECE} in a row; a verdict needs {_LEAST}: "
                       "let fewer nodes write at a time, or write less often")

    def likeness(pattern: frozenset[int]) -> tuple[int, int]:
        return sum(found[piece] for piece in pattern), -len(pattern)

    patterns = _patterns(both_edges)
    best = max(patterns, key=likeness)
    share = likeness(best)[0] / pieces
    if share < (_LIKELY if len(best) > 1 else _REGULAR):
        return False, "not the wire check's pattern: does the node call hm_wire_check(), and are the edges right?"
    faults = _explanations(both_edges)[patterns[best]]
    seen = " or ".join(", ".join(each) for each in faults[:3]) or "every wire is correct"
    if share < _REGULAR:
        return False, f"{seen}, but {1 - share:.0%} of the nibbles do not fit: a loose or ringing wire?"
    return not faults[0], seen


def _cuts(times: np.ndarray, first: np.ndarray, last: np.ndarray) -> Iterable[int]:
    """Before which nibbles others may have been lost: those inside an outage, and the first one after it."""
    begins, ends = np.searchsorted(times, first, "left"), np.searchsorted(times, last, "right")
    inside = chain.from_iterable(range(begin, end + 1) for begin, end in zip(begins, ends, strict=True))
    return (k for k in inside if k < len(times))


def check_wires(device: Device, *, seconds: float, both_edges: bool) -> list[PortVerdict]:
    """Records for a while and judges every port.

    Uses windows of one clock, because in longer ones a node FIFO overruns with every few nibbles of a fast node.
    """
    every = (1 << device.identity.nodes) - 1
    settings = Settings(rising=every, falling=every if both_edges else 0, after=every if both_edges else 0,
                        window=Window.CLOCK, sink=max(device.geometry.sinks))
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        path = Path(folder) / "run"
        record(device, path, settings, limits=Limits(seconds))
        run = Run(path)
        decode_run(run)
        losses = run.loss()
        verdicts = []
        for node in range(device.identity.nodes):
            events = run.events(nodes=[node], columns=["time_ps", "nibble"])
            nibbles, times = events["nibble"].to_numpy(), events["time_ps"].to_numpy()
            lost = losses.filter(pc.equal(losses["node"], node))
            ok, seen = judge(nibbles, both_edges, _cuts(times, lost["from_ps"].to_numpy(), lost["to_ps"].to_numpy()))
            verdicts.append(PortVerdict(node, ok, len(nibbles), seen))
    return verdicts
