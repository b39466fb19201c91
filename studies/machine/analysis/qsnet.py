"""Figures of a RUN of QsNet: latency and rate for each operation and each pair of source and target memory, and the
same when many nodes access one block.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypermon.host.run import Run
from hypermon.studies.machine.analysis.messages import Messages, matched, portless, torn
from hypermon.studies.machine.analysis.reading import THRESHOLDS as _OF_READING
from hypermon.studies.machine.analysis.reading import Floats, Ints, Program, Reading, losses, read, strange

__all__ = ["MACHINE", "THRESHOLDS", "analyse", "curves"]

MACHINE, _PING, _BOTH, _HOTSPOT = 4, 1, 2, 3
_SEND, _SENT, _RECEIVE, _RECEIVED = 0x10, 0x11, 0x12, 0x13
#: Rates are the slope above this size; steps of the latency are looked for where sizes are at most so far apart.
_LARGE, _NEAR = 16_384, 16
#: A step is at least this share of the largest one; neighbouring sizes that are needed to look for one.
_STEP, _SIZES = 0.2, 10
#: The limits that figures depend on, by name.
THRESHOLDS = {"large": _LARGE, "near": _NEAR, "step": _STEP, "sizes": _SIZES, **_OF_READING}
_OPERATIONS = {0: "put", 4: "get", 8: "mpi"}
_MEMORIES = ("main", "elan")


class _Mode(NamedTuple):
    """What the highest byte of a `begin`'s parameter says."""

    operation: str
    source: str
    destination: str


def analyse(run: Run) -> dict[str, Any]:
    """The figures of a RUN; see ``docs/machines.md``.

    Returns
    -------
    ``event_us`` (null without marks); ``cost``, see :meth:`~.reading.EventCost.figures`; ``thresholds``,
    the limits that the figures depend on;
    ``latency`` and ``rates``, a row for each operation and pair of memories, alone
    and ``both`` ways at once: ``us`` by size, and ``mb_per_s`` (of 10^6 bytes), the slope from 16 KiB on;
    ``block_bytes``, the longest put of the latency of the shortest; ``inline_bytes``, the longest message before the
    largest step of ``mpi``; ``match_us``, by which it is above a put until there; ``main_us``, by which a source in
    main memory is slower; each null if the RUN does not have it; ``hotspot``; ``warnings``; ``lost`` and ``left_out``.
    """
    reading = read(run, MACHINE)
    left_out = strange(reading, MACHINE, (_PING, _BOTH, _HOTSPOT), (_SEND, _RECEIVED))
    spans = [one for one in reading.programs if one.machine == MACHINE]
    # A remote read has no `send`, and the node that all write to has no program.
    sending = [one for one in spans if one.experiment != _HOTSPOT and (mode := _mode(one)) is not None
               and mode.operation != "get"]
    messages = matched(reading, sending)
    none, absent = portless(reading, messages, sending)
    samples = _samples(reading, messages, spans, left_out)
    latency = list(_latency(samples))
    early = int(sum((times < 0).sum() for times in samples.values()))
    done = {"event_us": reading.cost.event_us, "cost": reading.cost.figures(),
            "thresholds": THRESHOLDS,
            "latency": latency, "rates": list(_rates(latency)), **_steps(latency),
            "hotspot": list(_hotspot(reading, spans, left_out)), "early": early, "lost": reading.lost,
            "left_out": [*torn(messages), *none, *left_out]}
    return {**done, "warnings": absent + _warnings(done)}


def curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Nothing more than :func:`analyse` gives."""
    return {}


def _mode(one: Program) -> _Mode | None:
    bits = one.parameter >> 24
    operation = _OPERATIONS.get(bits & ~3)
    return operation and _Mode(operation, _MEMORIES[bits & 1], _MEMORIES[bits >> 1 & 1])  # type: ignore[return-value]


def _samples(reading: Reading, messages: Messages, spans: list[Program], left_out: list[str]
             ) -> dict[tuple[_Mode, bool, int], Floats]:
    """Times by mode, both ways or not, and size."""
    found: dict[tuple[_Mode, bool, int], list[Floats]] = defaultdict(list)
    for one in spans:
        mode = _mode(one)
        if one.experiment not in (_PING, _BOTH) or mode is None:
            if mode is None:
                left_out.append(f"a program of node {one.node} with parameter {one.parameter & 0xff << 24} + "
                                f"{one.parameter & 0xffffff}: an unknown operation")
            continue
        if mode.operation == "get":
            size, times = _gets(reading, one)
        else:
            own = messages.where((messages.source == one.node) & (messages.sent >= one.from_us)
                                 & (messages.sent <= one.to_us))
            size, times = own.size, own.one_way
        for number in np.unique(size).tolist():
            found[mode, one.experiment == _BOTH, number].append(times[size == number])
    return {key: np.concatenate(times) for key, times in found.items()}


def _own(reading: Reading, one: Program, event: int) -> tuple[Ints, Floats, Ints]:
    """A program's events of an id: rows of the reading, times and numbers."""
    rows = reading.rows(event)
    inside = (reading.port[rows] == one.port) & (reading.us[rows] >= one.from_us) & (reading.us[rows] <= one.to_us)
    return rows[inside], reading.us[rows[inside]], reading.field(event, "sequence")[inside]


def _gets(reading: Reading, one: Program) -> tuple[Ints, Floats]:
    """Sizes and times of a program's remote reads: a `receive`, and a `received` of the same number next."""
    rows, began, number = _own(reading, one, _RECEIVE)
    ends, over, theirs = _own(reading, one, _RECEIVED)
    size = reading.field(_RECEIVED, "bytes")[np.searchsorted(reading.rows(_RECEIVED), ends)]
    if not len(rows) or not len(ends):
        return np.empty(0, np.int64), np.empty(0)
    at = np.searchsorted(rows, ends) - 1
    whole = (at >= 0) & (number[np.clip(at, 0, None)] == theirs)
    spent = over - began[np.clip(at, 0, None)] - reading.cost_us(_RECEIVE)
    return size[whole], spent[whole]


def _latency(samples: dict[tuple[_Mode, bool, int], Floats]) -> Iterator[dict[str, Any]]:
    for (mode, both, size), times in sorted(samples.items()):
        yield {**mode._asdict(), "both": both, "bytes": size, "us": float(times.mean()), "sd_us": float(times.std()),
               "count": len(times)}


def _by_size(latency: list[dict[str, Any]], **match: object) -> dict[int, float]:
    return {row["bytes"]: row["us"] for row in latency if all(row[name] == value for name, value in match.items())}


def _rates(latency: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The slope of the time by size."""
    for *mode, both in sorted({(row["operation"], row["source"], row["destination"], row["both"]) for row in latency}):
        match = dict(zip(("operation", "source", "destination"), mode, strict=True))
        own = {size: us for size, us in _by_size(latency, **match, both=both).items() if size >= _LARGE}
        if len(own) > 1:
            slope = np.polyfit(list(own), list(own.values()), 1)[0]
            yield {**match, "both": both, "mb_per_s": float(1 / slope) if slope > 0 else None}


def _steps(latency: list[dict[str, Any]]) -> dict[str, float | None]:
    """Where latencies step, and what the other operations have more."""
    alone = [row for row in latency if not row["both"]]
    puts = {(a, b): _by_size(alone, operation="put", source=a, destination=b) for a in _MEMORIES for b in _MEMORIES}
    tagged = _by_size(alone, operation="mpi")
    block = min((found for own in puts.values() if (found := _step(own, first=True)) is not None), default=None)
    inline = _step(tagged, first=False)
    plain = puts["main", "main"]
    more = [tagged[size] - plain[size] for size in tagged if size in plain and size <= (inline or 0)]
    later = [puts["main", b][size] - us for b in _MEMORIES for size, us in puts["elan", b].items()
             if size in puts["main", b] and size <= (block or 0)]
    return {"block_bytes": block, "inline_bytes": inline, "match_us": float(np.mean(more)) if more else None,
            "main_us": float(np.mean(later)) if later else None}


def _step(times: dict[int, float], *, first: bool) -> int | None:
    """The size before the first or the largest step; None without sizes that are near one another."""
    near = [(low, times[high] - times[low]) for low, high in pairwise(sorted(times)) if high - low <= _NEAR and low]
    most = max((step for _, step in near), default=0.0)
    if len(near) < _SIZES or most <= 0:
        return None
    large = next(low for low, step in near if step >= (_STEP if first else 1) * most)
    # It is the first one only if all that is shorter takes as long as the shortest.
    return None if first and times[large] > times[min(times)] + _STEP * most else large


def _hotspot(reading: Reading, spans: list[Program], left_out: list[str]) -> Iterator[dict[str, Any]]:
    """Programs of the hotspot that ran at the same time: what each moved in a second."""
    groups: dict[tuple[int, int], list[Program]] = defaultdict(list)
    own = sorted((one for one in spans if one.experiment == _HOTSPOT), key=lambda one: one.from_us)
    last, number = -np.inf, 0
    for one in own:
        number += one.from_us > last
        last = max(last, one.to_us) if one.from_us <= last else one.to_us
        groups[number, one.parameter].append(one)
    for group in groups.values():
        mode = _mode(group[0])
        if any(reading.covered(one.port, one.from_us, one.to_us) for one in group):
            left_out.append(f"hotspot of {len(group)} nodes: a loss covers it")
            continue
        shares = [rate for one in group if (rate := _moved(reading, one)) is not None]
        if mode is not None and len(shares) == len(group):
            yield {"operation": mode.operation, "nodes": len(group), "bytes": group[0].parameter & 0xffffff,
                   "mb_per_s": float(sum(shares)), "share": float(np.mean(shares) / sum(shares)),
                   "unfair": float(max(shares) / min(shares) - 1),
                   "count": min(len(_own(reading, one, _RECEIVED if mode.operation == "get" else _SENT)[0])
                                for one in group)}
        else:
            left_out.append(f"hotspot of {len(group)} nodes: the messages of {len(group) - len(shares)} are not there")


def _moved(reading: Reading, one: Program) -> float | None:
    """Bytes per microsecond of a program, from the begin of its first message to the end of its last."""
    mode = _mode(one)
    begin, end = (_RECEIVE, _RECEIVED) if mode is not None and mode.operation == "get" else (_SEND, _SENT)
    sized = _RECEIVED if begin == _RECEIVE else _SEND
    _, began, _ = _own(reading, one, begin)
    _, over, _ = _own(reading, one, end)
    rows, _, _ = _own(reading, one, sized)
    if not len(began) or len(began) != len(over):
        return None
    size = reading.field(sized, "bytes")[np.searchsorted(reading.rows(sized), rows)]
    return float(size.sum() / (over[-1] - began[0]))


def _warnings(done: dict[str, Any]) -> list[str]:
    said = []
    if done["early"]:
        said.append(f"{done['early']} messages were received before they were sent: a node's stamps are wrong")
    return said + losses(done["lost"], done["left_out"])
