"""Losses by node, as exports draw them."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.tables.selection import Selection

__all__ = ["LossSpan", "outages"]


class LossSpan(NamedTuple):
    """Between ``from_ps`` and ``to_ps`` a node lost ``lost`` items."""

    lost: int
    from_ps: int
    to_ps: int


def outages(loss: pa.Table, nodes: int, selection: Selection | None = None) -> list[list[LossSpan]]:
    """The losses of every node in order of time; overlapping ones are added up.

    Parameters
    ----------
    loss : ``node``, ``lost``, ``from_ps``, ``to_ps``; all of it is kept in memory.
    nodes : of the board.
    selection : excludes the losses of other nodes, and those that are entirely at other times.
    """
    selection = selection or Selection()
    rows: list[list[LossSpan]] = [[] for _ in range(nodes)]
    for node, lost, from_ps, to_ps in zip(*(loss[name].to_pylist() for name in ("node", "lost", "from_ps", "to_ps")),
                                          strict=True):
        if (selection.nodes is None or node in selection.nodes) and selection.touches(from_ps, to_ps):
            rows[node].append(LossSpan(lost, from_ps, to_ps))
    return [_joined(own) for own in rows]


def _joined(rows: Sequence[LossSpan]) -> list[LossSpan]:
    joined: list[LossSpan] = []
    for row in sorted(rows, key=lambda row: row.from_ps):
        if joined and row.from_ps <= joined[-1].to_ps:
            last = joined.pop()
            row = LossSpan(last.lost + row.lost, last.from_ps, max(last.to_ps, row.to_ps))
        joined.append(row)
    return joined
