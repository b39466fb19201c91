"""Figures of an SP2's RUN: exchanges, their interruptions, and all-to-all communication made of exchanges."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypermon.host.run import Run
from hypermon.studies.machine.analysis.reading import THRESHOLDS as _OF_READING
from hypermon.studies.machine.analysis.reading import Floats, Ints, Program, Reading, losses, read, strange
from hypermon.studies.machine.analysis.trains import THRESHOLDS as _OF_PERIODS
from hypermon.studies.machine.analysis.trains import periods

__all__ = ["MACHINE", "THRESHOLDS", "analyse", "curves", "resampled"]

MACHINE, _EXCHANGE, _ALL = 3, 1, 2
_READY, _STEP = 0x28, 0x29
#: An exchange is disturbed if it takes this much longer than the median, us, and by this many times the median distance
#: from the median. A node is idle if it waits longer.
_DISTURBED_US, _DISTURBED_TIMES, _IDLE_US = 2.0, 7.5, 1.0
#: Exchanges that are needed to look for periods. Interruptions are placed to this many times the median exchange.
_EXCHANGES, _PLACED = 100, 1.1
#: The limits that figures depend on, by name.
THRESHOLDS = {"disturbed_us": _DISTURBED_US, "disturbed_times": _DISTURBED_TIMES, "idle_us": _IDLE_US,
              "exchanges": _EXCHANGES, "placed": _PLACED, **_OF_READING, **_OF_PERIODS}
#: Exchanges of all-to-alls that are made of recorded ones, for each number of nodes: 100,000 all-to-alls of two.
_RESAMPLED = 200_000
#: Exchanges of the figure of interruptions over time; the width of a bin of the figure of durations, us.
_SERIES, _BIN_US = 3000, 5


def analyse(run: Run) -> dict[str, Any]:
    """The figures of a RUN; see ``docs/machines.md``.

    Returns
    -------
    ``event_us`` (null without marks); ``cost``, see :meth:`~.reading.EventCost.figures`; ``thresholds``,
    the limits that the figures depend on;
    ``exchange`` of two nodes (null if none is in the RUN): ``mean_us``, ``sd_us``,
    ``skew``, ``count``, ``floor_us`` (the median) and ``undisturbed``, a share; ``periods_us`` of the interruptions of
    these exchanges; ``all_to_all``, a row by nodes: ``mb_per_s`` (of 10^6 bytes), ``count`` of whole repetitions on the
    port with most, ``idle_us`` of node 0, a mean of all repetitions that show it (null if a partner has no port), its
    ``idle_max_us`` and ``idle_zero`` share; ``warnings``; ``lost`` and ``left_out``.
    """
    reading = read(run, MACHINE)
    cost = reading.cost_us(_READY)
    left_out = strange(reading, MACHINE, (_EXCHANGE, _ALL), (_READY, _STEP))
    at, times = _exchange_times(reading, cost, left_out)
    done = {"event_us": reading.cost.event_us, "cost": reading.cost.figures(),
            "thresholds": THRESHOLDS,
            "exchange": _moments(times) if len(times) > 1 else None,
            "periods_us": _periods(at, times), "all_to_all": list(_all_to_all(reading, cost, left_out)),
            "lost": reading.lost, "left_out": left_out}
    unseen = [row["nodes"] for row in done["all_to_all"] if row["idle_us"] is None]
    said = [f"idle times of node 0 among {nodes} nodes are not known: it or one of its partners has no port"
            for nodes in unseen]
    return {**done, "warnings": said + losses(reading.lost, left_out)}


def _own(reading: Reading, one: Program, left_out: list[str]) -> tuple[Ints, Ints, Floats, Floats]:
    """A program's exchanges: step, peer, ready and over. One of whose events is missing is left out."""
    rows = np.flatnonzero((reading.port == one.port) & (reading.us >= one.from_us) & (reading.us <= one.to_us)
                          & (reading.node == one.node) & ((reading.event == _READY) | (reading.event == _STEP)))
    fields = {event: np.searchsorted(reading.rows(event), rows) for event in (_READY, _STEP)}
    first = reading.event[rows] == _READY
    columns = []
    for name in ("step", "peer"):
        values = [reading.field(event, name) for event in (_READY, _STEP)]
        ends = [own[np.clip(fields[event], 0, max(len(own) - 1, 0))] if len(own) else np.zeros(len(rows), np.int64)
                for event, own in zip((_READY, _STEP), values, strict=True)]
        columns.append(np.where(first, *ends))
    step, peer = columns
    whole = first[:-1] & ~first[1:] & (step[:-1] == step[1:]) & (peer[:-1] == peer[1:]) if len(rows) else first
    at = np.flatnonzero(whole)
    missing = int(np.ceil((len(rows) - 2 * len(at)) / 1)) if len(rows) else 0
    if missing > 0:
        left_out.append(f"{missing} exchanges of node {one.node} at most, of {one.nodes} nodes")
    return step[at], peer[at], reading.us[rows[at]], reading.us[rows[at + 1]]


def _exchange_times(reading: Reading, cost: float, left_out: list[str]) -> tuple[Floats, Floats]:
    """When the exchanges of pairs began, us, and how long they took, on the port with most of them."""
    best: tuple[Floats, Floats] = np.empty(0), np.empty(0)
    for one in reading.programs:
        if one.machine == MACHINE and one.experiment == _EXCHANGE:
            _, _, ready, over = _own(reading, one, left_out)
            if len(ready) > len(best[0]):
                best = ready, over - ready - cost
    return best


def _moments(times: Floats) -> dict[str, Any]:
    floor = float(np.median(times))
    apart = times - times.mean()
    return {"mean_us": float(times.mean()), "sd_us": float(times.std()), "count": len(times), "floor_us": floor,
            "skew": float((apart**3).mean() / times.std() ** 3) if times.std() else 0.0,
            "undisturbed": float((times < floor + _limit(times)).mean())}


def _limit(times: Floats) -> float:
    """By how much more than the median an exchange takes that was disturbed."""
    return max(_DISTURBED_US, _DISTURBED_TIMES * float(np.median(np.abs(times - np.median(times)))))


def _periods(at: Floats, times: Floats) -> list[float]:
    """The regular intervals, us, at which long exchanges come."""
    if len(times) < _EXCHANGES:
        return []
    long = times > np.median(times) + _limit(times)
    placed = np.sort((at + times / 2)[long] / 1e6)
    late_s = _PLACED * float(np.median(times)) / 1e6
    return [period * 1e6 for period in periods(placed, late_s, float(at[-1]) / 1e6)]


def _all_to_all(reading: Reading, cost: float, left_out: list[str]) -> Any:
    """By number of nodes: throughput of the nodes that are seen, and node 0's idle times."""
    whole = [one for one in reading.programs if one.machine == MACHINE and one.experiment == _ALL]
    for nodes in sorted({one.nodes for one in whole}):
        spent, count, repeated = 0.0, 0, {}
        for one in (one for one in whole if one.nodes == nodes):
            step, peer, ready, over = _own(reading, one, left_out)
            if odd := int(((peer >= nodes) | (peer == one.node) | (step > nodes)).sum()):
                left_out.append(f"all-to-all of {nodes} nodes: {odd} exchanges of node {one.node} name a step or a "
                                "node that it does not have; studies/machine/events.toml lists the fields in order")
                continue
            for first, last in _repetitions(step):
                if last - first == nodes - 1:
                    spent += over[last - 1] - ready[first] - (last - first) * 2 * cost + cost
                    count += (last - first) * one.parameter
                    repeated[one.port] = repeated.get(one.port, 0) + 1
        if not count:
            left_out.append(f"all-to-all of {nodes} nodes: no whole one was seen")
            continue
        idle = _idle_times(reading, [one for one in whole if one.nodes == nodes])
        yield {"nodes": nodes, "mb_per_s": float(count / spent), "count": max(repeated.values()),
               "idle_us": float(idle.mean()) if len(idle) else None,
               "idle_max_us": float(idle.max()) if len(idle) else None,
               "idle_zero": float((idle < _IDLE_US).mean()) if len(idle) else None}


def _repetitions(step: Ints) -> list[tuple[int, int]]:
    """Where each all-to-all begins and ends: the steps are in order in one."""
    cuts = [0, *(np.flatnonzero(np.diff(step) <= 0) + 1).tolist(), len(step)]
    return list(pairwise(cuts)) if len(step) else []


def _idle_times(reading: Reading, programs: list[Program]) -> Floats:
    """For each repetition that node 0 saw whole: how long it waited for partners that were not ready."""
    by_node = {}
    for one in programs:
        step, peer, ready, _ = _own(reading, one, [])
        by_node.setdefault(one.node, []).append((step, peer, ready))
    if 0 not in by_node:
        return np.empty(0)
    step, peer, ready = (np.concatenate(column) for column in zip(*by_node[0], strict=True))
    wait = np.full(len(step), np.nan)
    for node, parts in by_node.items():
        theirs, with_whom, then = (np.concatenate(column) for column in zip(*parts, strict=True))
        mine = np.flatnonzero(peer == node)
        match = with_whom == 0
        for at in mine:
            same = then[match & (theirs == step[at])]
            if len(same):
                wait[at] = max(float(same[np.argmin(np.abs(same - ready[at]))]) - ready[at], 0.0)
    total = [wait[first:last].sum() for first, last in _repetitions(step)]
    return np.array([one for one in total if not np.isnan(one)])


def curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """For the figures: ``exchange_bins``, how many exchanges took how long, in bins of 5 us; ``idle``, node 0's idle
    time in each all-to-all; ``series``, the first exchanges, when each was ready and how long it took;
    ``resampling``, by nodes, the mean of all-to-alls made of the exchanges of two nodes (:func:`resampled`), beside the
    recorded mean.
    """
    reading = read(run, MACHINE)
    cost = reading.cost_us(_READY)
    at, times = _exchange_times(reading, cost, [])
    values, count = np.unique(np.floor(times / _BIN_US) * _BIN_US, return_counts=True)
    whole = [one for one in reading.programs if one.machine == MACHINE and one.experiment == _ALL]
    idle, again = [], []
    two = [_own(reading, one, []) for one in whole if one.nodes == 2 and one.node == 0]
    base = np.concatenate([over - ready - cost for _, _, ready, over in two]) if two else np.empty(0)
    for nodes in sorted({one.nodes for one in whole} - {2}):
        own = [one for one in whole if one.nodes == nodes]
        waits = _idle_times(reading, own)
        idle += [{"nodes": nodes, "us": float(us)} for us in waits]
        spent = [over[last - 1] - ready[first] - (2 * (last - first) - 1) * cost
                 for step, _, ready, over in (_own(reading, one, []) for one in own)
                 for first, last in _repetitions(step) if last - first == nodes - 1]
        if len(base) and spent:
            total, drawn = resampled(base, nodes, _RESAMPLED // nodes, 1)
            again.append({"nodes": nodes, "resampled_us": float(total.mean()), "recorded_us": float(np.mean(spent)),
                          "idle_us": float(drawn.mean()), "idle_max_us": float(drawn.max()),
                          "idle_zero": float((drawn < _IDLE_US).mean())})
    return {"exchange_bins": [{"us": float(us), "count": int(many)} for us, many in zip(values, count, strict=True)],
            "idle": idle, "resampling": again,
            "series": [{"ms": float(when - at[0]) / 1000, "us": float(us)}
                       for when, us in zip(at[:_SERIES], times[:_SERIES], strict=True)]}


def resampled(times: Floats, nodes: int, count: int, seed: int) -> tuple[Floats, Floats]:
    """All-to-alls made of exchange times drawn independently, as the paper's simulator does.

    Returns
    -------
    the total time, and node 0's idle time, of each.
    """
    random = np.random.default_rng(seed)
    ready, idle = np.zeros((nodes, count)), np.zeros(count)
    last = nodes - 1 if nodes % 2 == 0 else nodes
    for step in range(last):
        for node in range(nodes):
            other = step if node == last else last if node == step else (last + 2 * step - node) % last
            if other <= node or other >= nodes:
                continue
            begin = np.maximum(ready[node], ready[other])
            if node == 0:
                idle += begin - ready[0]
            ready[node] = ready[other] = begin + random.choice(times, count)
    return ready.max(axis=0), idle


