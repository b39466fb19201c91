"""Figures of an iPSC/860's RUN: the cost of messages by size and distance, and the effect of contention on it."""

from collections import defaultdict
from typing import Any

import numpy as np
from hypermon.host.run import Run
from hypermon.studies.machine.analysis.messages import Messages, matched, portless, torn
from hypermon.studies.machine.analysis.reading import THRESHOLDS as _OF_READING
from hypermon.studies.machine.analysis.reading import Floats, Ints, Program, Reading, losses, read, strange

__all__ = ["MACHINE", "THRESHOLDS", "analyse", "curves", "distance", "plateau"]

MACHINE, _PATH, _EXPERIMENTS = 1, 1, (1, 2, 3, 4, 5)
_SEND, _RECEIVED, _ARRIVE, _LEAVE, _GSYNC = 0x10, 0x13, 0x18, 0x19, 0
#: Longest message of the short form, and the longest whose times are linear.
_SHORT, _LINEAR = 100, 1000
#: Half the difference between the two directions of two nodes is less than this, or a node's stamps are wrong.
_ASYMMETRY_US = 0.3
#: A message that takes longer than this many times the mean of the path alone has waited.
_WAITED = 1.05
#: The two directions are compared by this many sizes, the smallest ones.
_COMPARED = 200
#: Sizes that are needed to look for a period of the times; the shortest period that is tried, and the step, bytes.
_SIZES, _PERIOD, _PERIOD_STEP = 20, 400, 5
#: The limits that figures depend on, by name.
THRESHOLDS = {"short": _SHORT, "linear": _LINEAR, "asymmetry_us": _ASYMMETRY_US, "waited": _WAITED,
              "compared": _COMPARED, "sizes": _SIZES, "period": _PERIOD, "period_step": _PERIOD_STEP, **_OF_READING}


def distance(source: Ints, target: Ints) -> Ints:
    """The number of bits in which two nodes differ."""
    bits: Ints = np.bitwise_count((source ^ target).astype(np.uint64)).astype(np.int64)
    return bits


def analyse(run: Run) -> dict[str, Any]:
    """The figures of a RUN; see ``docs/machines.md``.

    Returns
    -------
    ``event_us`` (null without marks); ``cost``, see :meth:`~.reading.EventCost.figures`; ``thresholds``,
    the limits that the figures depend on;
    ``short`` and ``long``: ``constant_us``, ``byte_us``, ``hop_us`` of messages of 1
    to 100 and of 101 to 1000 bytes, each null if the RUN has no such messages between nodes of several distances;
    ``ratios``, with the share of the messages that ``waited``; ``zero`` by distance; ``plateau_bytes``; ``messages``,
    ``early`` and ``least_us``; ``asymmetry_us`` by pair of nodes whose clocks seem to differ; ``warnings``; ``lost``
    and ``left_out``.
    """
    reading = read(run, MACHINE)
    messages = matched(reading)
    spans = [program for program in reading.programs if program.machine == MACHINE]
    alone = messages.where(_inside(messages, [one for one in spans if one.experiment == _PATH]))
    ratios, left_out = _ratios(reading, messages, spans)
    left_out += strange(reading, MACHINE, _EXPERIMENTS, (_SEND, _RECEIVED))
    none, absent = portless(reading, messages, spans)
    early = int((messages.one_way < 0).sum())
    asymmetry = _asymmetry(alone)
    done = {
        "event_us": reading.cost.event_us, "cost": reading.cost.figures(),
        "thresholds": THRESHOLDS,
        "short": _fit(alone, 1, _SHORT), "long": _fit(alone, _SHORT + 1, _LINEAR),
        "zero": _zero(alone), "plateau_bytes": plateau(alone), "ratios": ratios,
        "messages": len(messages.size), "early": early,
        "least_us": float(messages.one_way.min()) if len(messages.size) else None,
        "asymmetry_us": asymmetry, "lost": reading.lost, "left_out": [*torn(messages), *none, *left_out],
    }
    return {**done, "warnings": absent + _warnings(done)}


def curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """For the figures: ``path``, the mean one-way time by size and distance of messages that nothing disturbs, and half
    of the round trip as a clock of 1 ms shows it, over all repetitions.
    """
    reading = read(run, MACHINE)
    messages = matched(reading)
    alone = messages.where(_inside(messages, [one for one in reading.programs if one.experiment == _PATH]))
    forward = alone.where(alone.source < alone.target)
    back = alone.where(alone.source > alone.target)
    rows = []
    for hops in np.unique(distance(forward.source, forward.target)).tolist():
        own = forward.where(distance(forward.source, forward.target) == hops)
        echo = back.where(distance(back.source, back.target) == hops)
        for size in np.unique(own.size).tolist():
            mine, theirs = own.where(own.size == size), echo.where(echo.size == size)
            row = {"hops": hops, "bytes": size, "us": float(mine.one_way.mean()), "count": len(mine.size)}
            if len(theirs.size):
                spent = float(theirs.received.max() - mine.sent.min())
                row["half_us"] = spent / 2 / len(mine.size)
                row["clock_us"] = float(np.floor(spent / 1000)) * 1000 / 2 / len(mine.size)
            rows.append(row)
    return {"path": rows}


def _inside(messages: Messages, spans: list[Program]) -> Ints:
    """The messages sent in one of the programs by its node."""
    chosen = np.zeros(len(messages.size), bool)
    for one in spans:
        chosen |= (messages.source == one.node) & (messages.sent >= one.from_us) & (messages.sent <= one.to_us)
    return np.flatnonzero(chosen)


def _fit(messages: Messages, least: int, most: int) -> dict[str, float] | None:
    """Least squares over all messages of some sizes."""
    own = messages.where((messages.size >= least) & (messages.size <= most))
    hops = distance(own.source, own.target)
    matrix = np.column_stack([np.ones(len(hops)), own.size, hops])
    if len(hops) < 3 or np.linalg.matrix_rank(matrix) < 3:
        return None
    constant, byte, hop = np.linalg.lstsq(matrix, own.one_way, rcond=None)[0]
    return {"constant_us": float(constant), "byte_us": float(byte), "hop_us": float(hop)}


def _zero(messages: Messages) -> list[dict[str, Any]]:
    """Messages without bytes, by distance."""
    own = messages.where(messages.size == 0)
    hops = distance(own.source, own.target)
    return [{"hops": int(hop), "us": float(own.one_way[hops == hop].mean())} for hop in np.unique(hops)]


def plateau(messages: Messages) -> float | None:
    """The period, in bytes, of what is left of the times above 1000 bytes without their slope; None with few sizes."""
    own = messages.where(messages.size > _LINEAR)
    if len(np.unique(own.size)) < _SIZES:
        return None
    hops = distance(own.source, own.target)
    _, at = np.unique(hops, return_inverse=True)
    times = own.one_way - (np.bincount(at, own.one_way) / np.bincount(at))[at]
    sizes, which = np.unique(own.size, return_inverse=True)
    size, mean = sizes.astype(float), np.bincount(which, times) / np.bincount(which)
    base = np.column_stack([np.ones(len(size)), size])
    periods = np.arange(float(_PERIOD), (size.max() - size.min()) / 2, _PERIOD_STEP)
    left = []
    for period in periods:
        waves = [wave(2 * np.pi * order * size / period) for order in (1, 2, 3) for wave in (np.cos, np.sin)]
        matrix = np.column_stack([base, *waves])
        fitted = matrix @ np.linalg.lstsq(matrix, mean, rcond=None)[0]
        left.append(float(np.square(mean - fitted).sum()))
    return float(periods[int(np.argmin(left))])


def _ratios(reading: Reading, messages: Messages, spans: list[Program]) -> tuple[list[dict[str, Any]], list[str]]:
    """By experiment, number of pairs at once and bytes: the time of a pair over that of the same pair alone."""
    times: dict[tuple[int, int, int], dict[tuple[int, int], list[Floats]]] = defaultdict(lambda: defaultdict(list))
    left_out = []
    for one in spans:
        if one.experiment == _PATH:
            continue
        inside = messages.where((messages.sent >= one.from_us) & (messages.sent <= one.to_us))
        pairs = _pairs(reading, one)
        forward = _forward(inside, one.node)
        for size in np.unique(inside.size[forward]).tolist():
            chosen = inside.where(forward & (inside.size == size))
            if _doubtful(reading, one):
                left_out.append(f"ratio of {len(pairs)} paths, {size} bytes, node {one.node}")
            else:
                pair = one.node, int(chosen.target[0])
                times[one.experiment, len(pairs), size][pair].append(
                    np.column_stack([chosen.one_way, _round_trips(inside, chosen), _periods(reading, one, chosen)]))
    return list(_over_alone(times)), left_out


def _pairs(reading: Reading, one: Program) -> set[tuple[int, int]]:
    """Who exchanges messages in the time of a program: one port of a pair is enough."""
    found: set[tuple[int, int]] = set()
    for event in (_SEND, _RECEIVED):
        rows = reading.rows(event)
        inside = (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us) & (reading.node[rows] >= 0)
        ends = np.column_stack([reading.node[rows], reading.field(event, "peer")])[inside]
        found |= {(low, high) for low, high in np.unique(np.sort(ends, axis=1), axis=0).tolist()}
    return found


def _forward(inside: Messages, node: int) -> Ints:
    """Messages of a node that begins each exchange: it sends to a peer before it receives from it."""
    out, back = inside.source == node, inside.target == node
    if not out.any() or (back.any() and inside.sent[back].min() < inside.sent[out].min()):
        return np.zeros(len(inside.size), bool)
    return out


def _round_trips(inside: Messages, chosen: Messages) -> Floats:
    """From each message's send to the next answer of its target, without the costs of two events."""
    back = np.sort(inside.received[(inside.source == chosen.target[0]) & (inside.target == chosen.source[0])])
    if not len(back):
        return np.full(len(chosen.size), np.nan)
    at = np.searchsorted(back, chosen.sent)
    found = back[np.clip(at, 0, len(back) - 1)]
    return np.where(at < len(back), found - chosen.sent - 2 * inside.cost_us, np.nan)


def _periods(reading: Reading, one: Program, chosen: Messages) -> Floats:
    """From each send to the next one of the program, less the synchronization: from its last arrival to its end."""
    period = np.append(np.diff(chosen.sent), np.nan)
    sync = _gsync(reading, one)
    return period - sync


def _gsync(reading: Reading, one: Program) -> float:
    """Mean time from the last arrival at a `gsync` of a program's time to the program's own leave; 0 without one."""
    ends = []
    for event in (_ARRIVE, _LEAVE):
        rows = reading.rows(event)
        inside = (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
        inside &= reading.field(event, "kind") == _GSYNC
        ends.append((rows[inside], reading.field(event, "number")[inside]))
    (arrive, number), (leave, own) = ends
    mine = reading.port[leave] == one.port
    last = {}
    for at, which in zip(reading.us[arrive].tolist(), number.tolist(), strict=True):
        last[which] = max(last.get(which, 0.0), at)
    spans = [at - last[which] for at, which in zip(reading.us[leave[mine]].tolist(), own[mine].tolist(), strict=True)
             if which in last]
    return float(np.mean(spans)) if spans else 0.0


def _doubtful(reading: Reading, one: Program) -> bool:
    """Whose program it was is not known of all ports of the time, so the pairs cannot be counted."""
    inside = (reading.us >= one.from_us) & (reading.us <= one.to_us)
    return bool((reading.node[inside] < 0).any())


def _over_alone(times: dict[tuple[int, int, int], dict[tuple[int, int], list[Floats]]]) -> Any:
    for (experiment, paths, size), pairs in sorted(times.items()):
        for pair, runs in sorted(pairs.items()):
            alone = times.get((experiment, 1, size), {}).get(pair)
            if alone is None:
                continue
            # The first exchange of each run began when not all others had.
            ours, base = (np.concatenate([run[min(1, len(run) - 1):] for run in some]) for some in (runs, alone))
            ratio = np.array([run[min(1, len(run) - 1):, 0].mean() for run in runs]) / base[:, 0].mean()
            yield {"experiment": experiment, "paths": paths, "bytes": size, "source": pair[0], "target": pair[1],
                   "ratio": float(ours[:, 0].mean() / base[:, 0].mean()), "sd": float(ratio.std()),
                   "waited": float((ours[:, 0] > base[:, 0].mean() * _WAITED).mean()),
                   "with_echo": _over(_mean(ours[:, 1]), _mean(base[:, 1])),
                   "us": float(ours[:, 0].mean()), "round_trip_us": _mean(ours[:, 1]), "period_us": _mean(ours[:, 2]),
                   "count": len(ours), "runs": len(runs)}


def _mean(values: Floats) -> float | None:
    """Of those that are known; None without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _asymmetry(messages: Messages) -> list[dict[str, Any]]:
    """Half of what messages take longer one way than the other, where a pair sends the same sizes both ways."""
    found = []
    pairs = {tuple(sorted(pair)) for pair in zip(messages.source.tolist(), messages.target.tolist(), strict=True)}
    for low, high in sorted(pairs):
        there, back = ((messages.source == a) & (messages.target == b) for a, b in ((low, high), (high, low)))
        both = np.intersect1d(messages.size[there], messages.size[back])
        if not len(both):
            continue
        means = [np.mean([messages.one_way[way & (messages.size == size)].mean() for size in both[:_COMPARED]])
                 for way in (there, back)]
        half = float(means[0] - means[1]) / 2
        if abs(half) > _ASYMMETRY_US:
            found.append({"nodes": [low, high], "us": half})
    return found


def _warnings(done: dict[str, Any]) -> list[str]:
    said = []
    if done["early"]:
        said.append(f"{done['early']} messages were received before they were sent: a node's stamps are wrong")
    for pair in done["asymmetry_us"]:
        low, high = pair["nodes"]
        said.append(f"from {low} to {high} messages take {2 * pair['us']:+.2f} us longer than back: the stamps of one "
                    "are wrong by half of that")
    return said + losses(done["lost"], done["left_out"])
