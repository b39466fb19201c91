"""Figures of a RUN of ASCI Q: the noise of its nodes, and its effect on collective operations."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypermon.host.run import Run
from hypermon.studies.machine.analysis.freezes import THRESHOLDS as _OF_SOURCES
from hypermon.studies.machine.analysis.freezes import sources
from hypermon.studies.machine.analysis.reading import THRESHOLDS as _OF_READING
from hypermon.studies.machine.analysis.reading import Floats, Program, Reading, losses, read, strange

__all__ = ["MACHINE", "THRESHOLDS", "analyse", "curves"]

MACHINE = 2
_QUANTUM, _ARRIVE, _LEAVE = 0x20, 0x18, 0x19
#: Operations of the figure of arrivals.
_SHOWN = 12
#: A freeze is longer than this share of a quantum; a slow node's is longer than all nodes' median by this share.
_FREEZE, _SLOW = 0.1, 0.02
#: The parts of a sum of freezes are together as long as it, to this.
_REST_MS = 0.01
#: Periods, and lengths, of two nodes' freezes that differ by a smaller share are the same.
_SAME_PERIOD, _SAME_LENGTH = 0.01, 0.001
#: The limits that figures depend on, by name.
THRESHOLDS = {"freeze": _FREEZE, "slow": _SLOW, "rest_ms": _REST_MS, "same_period": _SAME_PERIOD,
              "same_length": _SAME_LENGTH, **_OF_READING, **_OF_SOURCES}
_KINDS = {0: "gsync", 1: "barrier", 2: "allreduce"}


def analyse(run: Run) -> dict[str, Any]:
    """The figures of a RUN; see ``docs/machines.md``.

    Returns
    -------
    ``event_us`` (null without marks); ``cost``, see :meth:`~.reading.EventCost.figures`; ``thresholds``,
    the limits that the figures depend on;
    ``quantum_us``, the median of all nodes' (null without `quantum` events);
    ``sources``, a row for each node and source, whose ``period_s`` is null if it came once; ``slow_nodes``; ``nodes``,
    with each one's normalized run time; ``bsp``, a row for each program of computations and collective operations;
    ``missing`` events by their numbers; ``warnings``; ``lost`` and ``left_out``.
    """
    reading = read(run, MACHINE)
    cost, left_out = reading.cost_us(_QUANTUM), strange(reading, MACHINE, (1, 2), (_QUANTUM, _LEAVE))
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
    _parted(found)
    typical = float(np.median([node["quantum_us"] for node in nodes])) if nodes else None
    slow = [{"node": node["node"], "quantum_us": node["quantum_us"]} for node in nodes
            if typical is not None and node["quantum_us"] > typical * (1 + _SLOW)]
    bsp = list(_bsp(reading, cost, left_out))
    missing += sum(row["missing"] for row in bsp)
    done = {"event_us": reading.cost.event_us, "cost": reading.cost.figures(),
            "thresholds": THRESHOLDS,
            "quantum_us": typical, "sources": found, "slow_nodes": slow, "nodes": nodes,
            "bsp": bsp, "missing": missing, "lost": reading.lost, "left_out": left_out}
    return {**done, "warnings": _warnings(done)}


def _parted(found: list[dict[str, Any]]) -> None:
    """Parts a source that always comes with a shorter one of its node, if other nodes have it alone.

    A freeze every 24 s and one every second may always meet. Then the sum is seen, at the longer period.
    """
    for row in found:
        mine = [other for other in found if other["node"] == row["node"]]
        theirs = [other for other in found
                  if other["node"] != row["node"] and _same(other, row, "period_s", _SAME_PERIOD)]
        for alone in theirs:
            shared = [other for other in theirs if _same(other, alone, "duration_ms", _SAME_LENGTH)]
            there = any(_same(other, alone, "duration_ms", _SAME_LENGTH) for other in mine)
            rest = row["duration_ms"] - alone["duration_ms"]
            if len(shared) > 1 and not there and any(abs(other["duration_ms"] - rest) < _REST_MS for other in mine):
                row["duration_ms"] = alone["duration_ms"]
                break


def _same(one: dict[str, Any], other: dict[str, Any], name: str, within: float) -> bool:
    return bool(one[name] and other[name] and abs(one[name] / other[name] - 1) < within)


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


def curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """For the figures: ``freezes``, how many of each length (to 0.1 ms) a node has; ``arrivals``, of the first
    operations: when each node arrived, and when the first port left, us from the first of them.
    """
    reading = read(run, MACHINE)
    cost, rows = reading.cost_us(_QUANTUM), []
    for one in (program for program in reading.programs if program.machine == MACHINE):
        seen = _Quanta(reading, one, cost)
        if len(seen.gap):
            values, count = np.unique(np.round(seen.long_ms, 1), return_counts=True)
            rows += [{"node": one.node, "ms": float(ms), "count": int(many)}
                     for ms, many in zip(values, count, strict=True)]
    arrive, number = reading.rows(_ARRIVE), reading.field(_ARRIVE, "number")
    early = number < _SHOWN
    leave, last = reading.rows(_LEAVE), reading.field(_LEAVE, "number")
    times = [{"node": int(node), "number": int(which), "us": float(us), "what": what}
             for rows_of, which_of, what in ((arrive[early], number[early], "arrive"),
                                             (leave[last < _SHOWN], last[last < _SHOWN], "leave"))
             for node, which, us in zip(reading.node[rows_of], which_of, reading.us[rows_of], strict=True)]
    first = min((row["us"] for row in times), default=0.0)
    return {"freezes": rows, "arrivals": [{**row, "us": row["us"] - first} for row in times]}


def _bsp(reading: Reading, cost: float, left_out: list[str]) -> Any:
    """A program's collective operations: the time from one `leave` to the next, over the port that shows them."""
    rows, kind, number = reading.rows(_LEAVE), reading.field(_LEAVE, "kind"), reading.field(_LEAVE, "number")
    for one in (program for program in reading.programs if program.machine == MACHINE):
        own = (reading.port[rows] == one.port) & (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
        if own.sum() < 2:
            continue
        if unknown := sorted(set(kind[own].tolist()) - set(_KINDS)):
            left_out.append(f"operations of node {one.node}, {one.parameter} us of computation: kind {unknown[0]} is "
                            f"none of {', '.join(map(str, _KINDS))}; studies/machine/events.toml lists the fields in "
                            "order")
            continue
        us, count = reading.us[rows[own]], np.diff(number[own])
        gap = np.diff(us)
        dark = np.array([reading.covered(one.port, begin, end) for begin, end in pairwise(us)]
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
    return said + losses(done["lost"], done["left_out"])
