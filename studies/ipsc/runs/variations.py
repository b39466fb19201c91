"""Variations tried where the paper's figures are not explained: runs with one thing changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.noise import Clocks, Noise
from hypermon.studies.ipsc.programs.place import Place
from hypermon.studies.ipsc.runs.benchmark import EVENT_BYTES, NIBBLES, Bandwidth, bandwidth
from hypermon.studies.ipsc.runs.monitor import CLASSIC
from hypermon.studies.ipsc.runs.printed_values import NODES, TWO_NODES
from hypermon.studies.ipsc.runs.tables import Row

__all__ = ["TRIES"]

#: Seeds of two nodes' phases and drifts.
_SEEDS = 5
#: Microseconds between two nodes' nibbles, which neither drift nor jitter.
_APART_US = (0.0, 0.4, 0.63, 4.0)
#: Share of the test by which the second node begins later.
_LATER = (0.05, 0.07, 0.1)
#: Place anneals until the wires cost that share of their first cost.
_WIRES = 0.65


def _two(frames: int | None, **options: Any) -> Bandwidth:
    """A test of two nodes without a delay, a quarter as long as others."""
    size = (frames or 100_000) * EVENT_BYTES // NIBBLES // 8
    with TemporaryDirectory(prefix="hypermon-") as folder:
        return bandwidth(2, 0, max(size, 400), Path(folder) / "run", **options)


def _row(what: str, value: float, more: str = "") -> Row:
    return {"question": "two nodes", "what": what, "value": value, "more": more}


def _phases(frames: int | None) -> dict[str, list[Row]]:
    rates = [_two(frames, seed=seed).frame_rate for seed in range(_SEEDS)]
    rows = [_row(f"random phases, drifts and jitter, the {which} of {_SEEDS} runs", rate)
            for which, rate in (("lowest", min(rates)), ("highest", max(rates)))]
    still = Noise(load_us=0, nibble_us=0, clocks=Clocks(0, 0))
    rows += [_row(f"neither drift nor jitter, nibbles {apart:g} us apart",
                  _two(frames, noise=still, apart_us=apart).frame_rate) for apart in _APART_US]
    return {"tried": rows}


def _begins(frames: int | None) -> dict[str, list[Row]]:
    nibbles = max((frames or 100_000) * EVENT_BYTES // NIBBLES // 8, 400) // EVENT_BYTES * NIBBLES
    long_us = nibbles * Cpu().period_us(0)
    return {"tried": [_row(f"the second node begins later, by {100 * later:g} % of the test's duration; "
                           "all frames divided by the whole duration",
                           _two(frames, noise=Noise(load_us=0), apart_us=later * long_us).whole_rate)
                      for later in _LATER]}


def _host(frames: int | None) -> dict[str, list[Row]]:
    slow = replace(CLASSIC, rate=TWO_NODES * 16, stop_ms=0)
    done = _two(max(frames or 0, 80_000), monitor=slow)
    return {"tried": [_row("a host that reads only the paper's rate", done.whole_rate,
                           f"overrun, {done.lost:,} refused" if done.lost else "no overrun in so short a run")]}


def _place(_: int | None) -> dict[str, list[Row]]:
    rows = []
    for nodes in NODES:
        rounds = Place(nodes, 1.0, 0).rounds_until(_WIRES)
        rows.append({"question": "place", "what": nodes, "value": rounds or "never"})
    return {"tried": rows}


#: Each returns rows of the table ``tried``; the argument is the length of runs in frames.
TRIES: dict[str, Callable[[int | None], dict[str, list[Row]]]] = {
    "phases of two nodes": _phases, "two nodes, one later": _begins, "two nodes and a slower host": _host,
    "place, until it is good": _place,
}
