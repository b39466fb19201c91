"""Self-check of the samples of boards that sample each strobe four times per clock: are their phases right?

Place and route does not see these phases. So edges that have nothing to do with the board's clock come to the strobes,
from the pin ``phase_out`` or from elsewhere. They fall into each part of a clock in proportion to its length (code
density, as in IEEE 1241, histogram test). Edges of strobes that are wired together are stamped alike.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import Counter, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Scanned
from hypermon.host.blocks.compact_rows import CompactRows
from hypermon.host.decode.ledger import Ledger
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError

__all__ = ["EDGES", "TOLERANCE_PS", "check_phases", "judge"]

#: Edges of a strobe that are counted. From a million of them the length of a quarter clock of 1.67 ns is known to 3 ps.
EDGES = 1_000_000
#: By how much the length of a part of a clock may differ from the others' mean: half a tap of the delay in an input
#: cell, which is 25 ps (Lattice FPGA-DS-02012, DELAYG), so that a phase that is wrong by a tap is found.
TOLERANCE_PS = 12.5
#: Seconds of the board without any edge after which it is said that there are none; seconds for all edges.
_SILENT_S, _LONGEST_S = 0.5, 300.0
#: Least edges that can be judged: with fewer, chance is more than the tolerance.
_LEAST = EDGES // 4
#: Bytes requested from the stream at a time. How often nothing may arrive, times the slowness of the link.
_PIECE, _PATIENCE = 1 << 16, 200
#: Stamps of strobes that are wired together: at most this far apart, at most one of which is the skew of the wires.
_TOGETHER, _SKEW = 8, 1

_Int = npt.NDArray[np.int64]


def check_phases(device: Device, edges: int = EDGES, tolerance_ps: float = TOLERANCE_PS) -> tuple[bool | None, str]:
    """Counts edges of the strobes by their part of a clock. If they are right, the board stamps in quarter clocks from
    the next reset on, until it is switched off; if they are wrong, it no longer does.

    Returns
    -------
    whether they are right (None: not checked), and what was seen.

    Raises
    ------
    HypermonError
        if the board stops responding.
    """
    phases = device.identity.phases
    if phases < 4:
        return None, f"the board samples its strobes {('once', 'twice')[phases - 1]} per clock"
    known = device.read("PHASES")
    device.write("PHASES", 1)
    passed, seen = None, ""
    try:
        stamps, rejected = _stamps(device, edges)
        passed, seen = judge(stamps, phases, 1e12 / device.identity.clock_hz, tolerance_ps)
        if passed and rejected:
            passed, seen = False, f"{rejected} edges came between others in one clock: samples are out of order"
    finally:
        device.write("PHASES", known if passed is None else int(passed))
    return passed, seen


def judge(stamps: dict[int, _Int], phases: int, clock_ps: float, tolerance_ps: float) -> tuple[bool | None, str]:
    """Judges the stamps of each node's edges. Returns whether all are right (None: too few), and what was seen."""
    busy = {node: of for node, of in stamps.items() if len(of) >= _LEAST}
    if not busy:
        return None, ("too few edges at the strobes: wire the pin phase_out to them, or edges that have nothing to do "
                      "with the board's clock")
    texts = []
    for node, of in sorted(busy.items()):
        lengths = np.bincount(of % phases, minlength=phases) * clock_ps / len(of)
        worst = float(np.abs(lengths - clock_ps / phases).max())
        text = f"node {node}: {len(of):,} edges, parts of {', '.join(f'{one:.1f}' for one in lengths)} ps"
        if worst > tolerance_ps:
            return False, f"{text}, wrong by {worst:.1f} ps; {tolerance_ps:g} are tolerated"
        texts.append(text)
    if apart := _apart(busy):
        return False, apart
    return True, "; ".join(texts)


def _apart(stamps: dict[int, _Int]) -> str:
    """What is wrong between strobes that are wired together; "" if nothing is."""
    first, *others = sorted(stamps)
    for node in others:
        if len(stamps[node]) != len(stamps[first]):
            continue
        differ = stamps[node] - stamps[first]
        if np.abs(differ).max() > _TOGETHER:
            continue    # they are not
        if abs(middle := int(np.median(differ))) > _SKEW:
            return f"node {node} is stamped {middle} parts of a clock from node {first}, to which it is wired"
    return ""


def _stamps(device: Device, edges: int) -> tuple[dict[int, _Int], int]:
    """Stamps of each node's edges, of both kinds, until a node has the given number of them; rejected edges."""
    nodes = device.identity.nodes
    every = (1 << nodes) - 1
    device.prepare(Settings(Window.CLOCK, rising=every, falling=every, after=0, sink=Sink.EXTENDED))
    ledger = Ledger(nodes, device.scale, device.epoch, port_bits=device.identity.data_bits)
    scanner = BlockScanner()
    found: list[list[_Int]] = [[] for _ in range(nodes)]
    counts = np.zeros(nodes, np.int64)
    device.start()

    def pieces() -> Iterator[Scanned]:
        stopped, silent = False, 0
        while not ledger.stopped:
            piece = device.link.stream(_PIECE)
            seconds = device.windows() / device.identity.clock_hz if not stopped else 0.0
            silent = 0 if piece else silent + 1
            if stopped and silent > _PATIENCE * device.link.slowness:
                raise HypermonError(f"{device.link.uri} stopped sending in the middle of its self-test")
            if not stopped and (counts.max() >= edges or device.link.ended or seconds > _LONGEST_S
                                or (seconds > _SILENT_S and not counts.any())):
                device.stop()
                stopped = True
            yield from scanner.feed(piece)

    for rows in ledger.event_rows(pieces()):
        assert isinstance(rows, CompactRows), "all nodes write nibbles"
        for node in np.unique(rows.node).tolist():
            mine = rows.windows[rows.node == node].astype(np.int64)
            found[node].append(mine)
            counts[node] += len(mine)
    ledger.finish()
    rejected = sum(ledger.counted(Counter.REJECTED))
    return {node: np.concatenate(parts) for node, parts in enumerate(found) if parts}, rejected
