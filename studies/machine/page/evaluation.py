"""All runs of ``make machines``, in parallel processes; recordings are kept under a hash of the nodes' port writes."""

import time
from functools import partial

from hypermon.studies.machine.page.tasks import tasks
from hypermon.studies.page.runs import Said, in_parallel
from hypermon.studies.page.tables import Tables

__all__ = ["evaluate", "over"]


def evaluate(share: float, jobs: int, said: Said, *, only: tuple[str, ...] = (),
             begins: tuple[str, ...] = (), minutes: float | None = None) -> Tables:
    """Runs everything.

    Parameters
    ----------
    share : of the runs' full lengths. ``jobs``: processes.
    said : as of :func:`~.page.runs.in_parallel`.
    only : machines; none: all. ``begins``: of the names of runs; none: all. ``minutes``: no run begins later.
    """
    end = None if minutes is None else time.time() + 60 * minutes
    names = [task.name for task in tasks(share) if (not only or task.machine in only)
             and (not begins or task.name.startswith(begins))]
    done = dict(in_parallel({name: partial(_one, share, name, end) for name in names}, jobs, said))
    merged: Tables = {}
    for name in names:
        for table, rows in done.get(name, {}).items():
            merged.setdefault(table, []).extend(rows)
    return merged


def over(old: Tables, new: Tables) -> Tables:
    """Tables of which the runs in ``new`` replace those of the same names; the others stay."""
    names = {row["task"] for row in new.get("runs", [])}
    kept = {table: [row for row in rows if row.get("task") not in names] for table, rows in old.items()
            if table not in ("rows", "made")}
    return {table: kept.get(table, []) + new.get(table, []) for table in {**kept, **new}}


def _one(share: float, name: str, end: float | None) -> Tables | None:
    """A run; None if it is too late for it. Tasks have functions that cannot be sent to a process: it finds its own."""
    if end is not None and time.time() > end:
        return None
    return next(task for task in tasks(share) if task.name == name).run()
