"""Sections of a report for a RUN with a dictionary: events by name, and the figures of its states for each node."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.analysis.named_events import events_per_name
from hypermon.host.analysis.stats import duration_text, quantity
from hypermon.host.dictionary.semantics import known_until
from hypermon.host.run import Run
from hypermon.host.text.numbers import significant

__all__ = ["EVENTS_HEAD", "STATES_HEAD", "event_rows", "state_rows", "state_shares"]

EVENTS_HEAD = ("event", "number", "per second", "share")
STATES_HEAD = ("state", "times", "in all", "share", "least", "50 %", "90 %", "99 %", "most", "open")
#: Maximum states that are listed, and drawn.
_LISTED, _DRAWN = 40, 8


def event_rows(run: Run, seconds: float) -> list[tuple[str, ...]]:
    """Whole events of each name that occurred, the most frequent first; none without a dictionary."""
    found = {name: count for name, count in events_per_name(run).items() if count}
    every = sum(found.values())
    return [(name, f"{count:,}", quantity(count / seconds, "/s") if seconds else "",
             f"{significant(100 * count / every, 3)} %")
            for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def state_rows(run: Run, begins_ps: int, duration_ps: int) -> list[tuple[str, ...]]:
    """States by name, the one that took most time first: how often, how long, and the distribution of a state's length.

    Lengths are of states whose begin and end were seen, without a loss between them; the last column counts the others.
    The time in all includes the others', as long as they are known to last. ``share`` is that of the time of all nodes
    that have states.
    """
    quantiles = ", ".join(f"quantile_disc(end_ps - begin_ps, {share})" for share in (0.5, 0.9, 0.99))
    rows = run.sql(
        f"select name, count(end_ps), {_took(begins_ps + duration_ps)}::hugeint, min(end_ps - begin_ps), {quantiles}, "
        "max(end_ps - begin_ps), count(*) - count(end_ps), (select count(distinct node) from states) from states "
        f"group by name order by 3 desc, 1 limit {_LISTED}").fetchall()
    return [_state(name, counted, whole, lengths, still, duration_ps * nodes)
            for name, counted, whole, *lengths, still, nodes in rows]


def _took(end_ps: int) -> str:
    """The time for which states are known to last, in a run that ends then: as in the timeline's selection."""
    return f"sum(greatest({known_until(str(end_ps))} - begin_ps, 0))"


def _state(name: str, counted: int, whole: int, lengths: Sequence[Any], still: int,
           every_ps: int) -> tuple[str, ...]:
    share = f"{significant(100 * whole / every_ps, 3)} %" if every_ps else ""
    return (name, f"{counted:,}", duration_text(whole), share,
            *("" if ps is None else duration_text(int(ps)) for ps in lengths), f"{still:,}")


def state_shares(run: Run, begins_ps: int, duration_ps: int, nodes: int) -> dict[str, npt.NDArray[np.float64]]:
    """The share of each node's time that it is known to have spent in each state, in percent; of the states that took
    most time.

    States of one name that overlap count more than once.
    """
    shares: dict[str, npt.NDArray[np.float64]] = {}
    rows = run.sql(f"select name, node, {_took(begins_ps + duration_ps)}::double from states "
                   "group by name, node").fetchall()
    for name, node, took in rows:
        if 0 <= node < nodes and duration_ps:
            shares.setdefault(name, np.zeros(nodes))[node] = 100 * took / duration_ps
    largest = sorted(shares, key=lambda name: (-shares[name].sum(), name))[:_DRAWN]
    return {name: shares[name] for name in largest}
