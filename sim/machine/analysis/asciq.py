"""Figures of an ASCI Q's RUN: the noise of its nodes, and what it makes of collective operations."""

from typing import Any

import numpy as np
from hypermon.host.recording.info import Run
from hypermon.sim.machine.analysis.freezes import sources
from hypermon.sim.machine.analysis.reading import Floats, Program, Reading, read

__all__ = ["MACHINE", "analyse", "freezes"]

MACHINE = 2
_QUANTUM, _ARRIVE, _LEAVE = 0x20, 0x18, 0x19
#: A freeze is longer than this share of a quantum; a slow node's quantum is longer than all nodes' median by this share.
_FREEZE, _SLOW = 0.1, 0.02
_KINDS = {0: "gsync", 1: "barrier", 2: "allreduce"}


def analyse(run: Run) -> dict[str, Any]:
    """The figures of a RUN; see ``docs/machines.md``.

    Returns
    -------
    ``event_us`` (null without marks); ``quantum_us``, the median of all nodes' (null without `quantum` events);
    ``sources``, a row for each node and source, whose ``period_s`` is null if it came once; ``slow_nodes``; ``nodes``,
    with each one's normalized run time; ``bsp``, a row for each program of computations and collective operations;
    ``missing`` events by their numbers; ``warnings``; ``lost`` and ``left_out``.
    """
    reading = read(run, MACHINE)
    cost, left_out = reading.event_us() or 0.0, []
    nodes, found, missing = [], [], 0
    for one in (program for program in reading.programs if program.machine == MACHINE):
        seen = _Quanta(reading, one, cost)
        missing += seen.missing
        if seen.covered:
            left_out.append(f"{seen.covered} gaps of node {one.node}")
        if not len(seen.gap):
            continue
        nodes.append({"node": one.node, "quantum_us": seen.quantum_us, "normalized": seen.normalized,
                      "over_twice_us": seen.over_twice_us})
        found += [{"node": one.node, "period_s": source.period_s, "duration_ms": source.duration_ms,
                   "count": source.count} for source in sources(seen.at_s, seen.long_ms, one.to_us / 1e6, seen.blind)]
    typical = float(np.median([node["quantum_us"] for node in nodes])) if nodes else None
    slow = [{"node": node["node"], "quantum_us": node["quantum_us"]} for node in nodes
            if typical is not None and node["quantum_us"] > typical * (1 + _SLOW)]
    bsp = list(_bsp(reading, cost, left_out))
    missing += sum(row["missing"] for row in bsp)
    done = {"event_us": reading.event_us(), "quantum_us": typical, "sources": found, "slow_nodes": slow, "nodes": nodes,
            "bsp": bsp, "missing": missing, "lost": reading.lost, "left_out": left_out}
    return {**done, "warnings": _warnings(done)}


class _Quanta:
    """The gaps between a program's `quantum` events.

    Members
    -------
    gap, count : of each gap that no loss covers, us, and the quanta in it. ``quantum_us``: their median.
    at_s, long_ms : of each freeze. ``blind``: rows of begin and end, s, that a loss covers; ``covered``: gaps in them.
    normalized : run time over what it would be without freezes. ``missing``: events that the numbers show.
    over_twice_us : of gaps longer than twice what they should be, what they are longer than that, as in section 2.2.
    """

    def __init__(self, reading: Reading, one: Program, cost: float):
        rows, number = reading.rows(_QUANTUM), reading.field(_QUANTUM, "number")
        own = (reading.port[rows] == one.port) & (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
        own &= reading.node[rows] == one.node
        us, number = reading.us[rows[own]], number[own]
        gap, count = np.diff(us) - cost, np.diff(number)
        spans = reading.loss[(reading.loss[:, 0] == one.port)]
        dark = np.zeros(len(gap), bool)
        for _, begin, end in spans:
            dark |= (us[:-1] <= end) & (us[1:] >= begin) if len(us) else dark
        good = ~dark & (count > 0)
        self.covered, self.blind = int(dark.sum()), spans[:, 1:] / 1e6
        step = int(np.median(count[count > 0])) if (count > 0).any() else 1
        self.missing = int(np.sum(count[good] // step - 1)) if good.any() else 0
        self.gap, self.count = gap[good], count[good]
        if not good.any():
            return
        self.quantum_us = float(np.median(self.gap / self.count))
        excess = self.gap - self.count * self.quantum_us
        frozen = excess > _FREEZE * self.quantum_us
        begin = us[:-1][good]
        self.at_s: Floats = (begin + (self.gap - excess) / 2)[frozen] / 1e6
        self.long_ms: Floats = excess[frozen] / 1000
        self.normalized = float(self.gap.sum() / (self.count.sum() * self.quantum_us))
        over = excess - self.quantum_us
        self.over_twice_us = float(over[over > 0].sum())


def freezes(run: Run) -> dict[int, list[float]]:
    """By node, the length of each freeze in ms: for the figures."""
    reading = read(run, MACHINE)
    cost = reading.event_us() or 0.0
    seen = {one.node: _Quanta(reading, one, cost) for one in reading.programs if one.machine == MACHINE}
    return {node: own.long_ms.tolist() for node, own in seen.items() if len(own.gap)}


def _bsp(reading: Reading, cost: float, left_out: list[str]) -> Any:
    """A program's collective operations: the time from one `leave` to the next, over the port that shows them."""
    rows, kind, number = reading.rows(_LEAVE), reading.field(_LEAVE, "kind"), reading.field(_LEAVE, "number")
    for one in (program for program in reading.programs if program.machine == MACHINE):
        own = (reading.port[rows] == one.port) & (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
        if own.sum() < 2:
            continue
        us, count = reading.us[rows[own]], np.diff(number[own])
        gap = np.diff(us)
        dark = np.array([reading.covered(one.port, begin, end) for begin, end in zip(us[:-1], us[1:], strict=True)]
                        if len(reading.loss) else np.zeros(len(gap)), bool)
        good = ~dark & (count > 0)
        if dark.any():
            left_out.append(f"{int(dark.sum())} operations of node {one.node}, {one.parameter} us of computation")
        if not good.any():
            continue
        each = gap[good] / count[good]
        yield {"kind": _KINDS.get(int(kind[own][0]), str(int(kind[own][0]))), "node": one.node, "nodes": one.nodes,
               "compute_us": one.parameter, "latency_ms": float(gap[good].sum() / count[good].sum() / 1000),
               "sd_ms": float(each.std() / 1000), "count": int(count[good].sum()),
               "overhead_ms": float((gap[good].sum() / count[good].sum() - one.parameter) / 1000),
               "missing": int((count[good] - 1).sum())}


def _warnings(done: dict[str, Any]) -> list[str]:
    said = []
    if done["missing"]:
        said.append(f"{done['missing']} events are missing by their numbers: what they would have shown is in the gap "
                    "around them")
    if done["lost"] or done["left_out"]:
        said.append(f"{done['lost']} items were lost; {len(done['left_out'])} figures are left out")
    return said
