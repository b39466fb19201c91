"""The activity of each node, as a strip of characters: one row per node, one column per stretch of time."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.text import Text

__all__ = ["Activity", "Spans", "rate_strip", "spans", "strip"]

_Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Activity:
    """An activity of a node: how it is drawn, with and without Unicode, and its colour."""

    name: str
    glyph: str
    plain: str
    style: str


@dataclass(frozen=True)
class Spans:
    """What one node did: ``kind[i]`` from ``begin[i]`` to ``end[i]``, without gaps or overlap, in picoseconds.

    A kind of -1 is nothing.
    """

    begin: _Times
    end: _Times
    kind: npt.NDArray[np.int64]

    def shares(self, kinds: int, edges: _Times) -> npt.NDArray[np.float64]:
        """Time in each kind, one row per kind, in each of the stretches between consecutive ``edges``.

        Exact: an integral over the spans, not a sample of them.
        """
        result = np.zeros((kinds, len(edges) - 1))
        for kind in range(kinds):
            own = self.kind == kind
            begin, end = self.begin[own], self.end[own]
            # Time spent before t = whole spans before it, and a part of the one that contains it.
            spent = np.concatenate([[0], np.cumsum(end - begin)])
            index = np.searchsorted(begin, edges, side="right")
            inside = np.minimum(edges, end[index - 1]) - begin[index - 1] if len(begin) else np.zeros(len(edges))
            until = np.where(index > 0, spent[index - 1] + inside, 0)
            result[kind] = np.diff(until)
        return result


def spans(time_ps: _Times, event: npt.NDArray[np.int64], begins: Mapping[int, int], until_ps: int) -> Spans:
    """What one node did, from its events: each begins the activity in ``begins`` (-1: nothing) and ends the previous
    one.

    Parameters
    ----------
    time_ps, event : the node's, in order. Events that are not in ``begins`` change nothing.
    until_ps : end of the last span.
    """
    known = np.isin(event, list(begins))
    begin = time_ps[known]
    kind = np.array([begins[int(e)] for e in event[known]], np.int64)
    return Spans(begin, np.append(begin[1:], until_ps), kind)


def strip(node_spans: Mapping[int, Spans], activities: list[Activity], from_ps: int, to_ps: int, width: int,
          ascii_only: bool) -> Text:
    """Rows of ``width`` columns: in each the activity that used most of its time, blank if none used half of it."""
    edges = np.linspace(from_ps, to_ps, width + 1).astype(np.int64)
    text = Text()
    for node, own in node_spans.items():
        shares = own.shares(len(activities), edges)
        most = np.where(2 * shares.sum(axis=0) >= np.diff(edges), shares.argmax(axis=0), -1)
        text.append(f"{node:>4} ")
        for kind in most.tolist():
            if kind < 0:
                text.append(" ")
            else:
                activity = activities[kind]
                text.append(activity.plain if ascii_only else activity.glyph, activity.style)
        text.append("\n")
    text.append_text(_axis(from_ps, to_ps, width, ascii_only))
    return text


def _axis(from_ps: int, to_ps: int, width: int, ascii_only: bool) -> Text:
    """A tick at regular, round times in milliseconds, each with its number if there is room."""
    span = to_ps - from_ps
    step = next(s for power in range(13) for s in (10**power, 2 * 10**power, 5 * 10**power)
                if span / s <= max(width / 14, 1))
    digits = max(0, 9 - len(str(step)) + 1)
    line, numbers = ["-" if ascii_only else "─"] * width, [" "] * (width + 16)
    for tick in range(-(-from_ps // step) * step, to_ps, step):
        column = (tick - from_ps) * width // span
        line[column] = "+" if ascii_only else "┬"
        label = f"{tick / 1e9:.{digits}f}"
        if column + len(label) <= width:
            numbers[column:column + len(label)] = label
    return Text("     " + "".join(line) + "\n  ms " + "".join(numbers).rstrip(), "dim")


def rate_strip(time_ps: _Times, from_ps: int, to_ps: int, width: int, ascii_only: bool) -> tuple[str, float]:
    """Events in each of ``width`` equal stretches as bars of one row, and the highest rate, in events per second."""
    counts, _ = np.histogram(time_ps, bins=width, range=(from_ps, to_ps))
    levels = " .:-=+*#%@" if ascii_only else " ▁▂▃▄▅▆▇█"
    most = max(int(counts.max()), 1)
    # Any event at all is more than none.
    bars = "".join(levels[-(-int(c) * (len(levels) - 1) // most)] for c in counts)
    return bars, most / ((to_ps - from_ps) / width * 1e-12)
