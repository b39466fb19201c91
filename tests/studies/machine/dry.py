"""Readings without a board, for tests of the emulator and of the analyses alone."""

import numpy as np
import pyarrow as pa
from hypermon.studies.machine.analysis import asciq, ipsc860, qsnet, sp2
from hypermon.studies.machine.analysis.reading import Reading

SYSTEMS = {"ipsc860": ipsc860, "asciq": asciq, "sp2": sp2, "qsnet": qsnet}
#: Stamps of the board, us.
TICK = 0.01


def reading(session, *, late=(), keep=None, losses=()):
    """What a board would record of a session's ports.

    ``late``: pairs of port and us. ``keep``: a mask by event. ``losses``: rows of port, from and to, us.
    """
    late = dict(late)
    times = [np.floor(np.array(one.times) / TICK) * TICK + late.get(port, 0) for port, one in enumerate(
        session.recorders)]
    port = np.concatenate([np.full(len(own), number, np.int64) for number, own in enumerate(times)])
    us = np.concatenate(times)
    records = np.array([record for one in session.recorders for record in one.records], object)
    chosen = np.ones(len(us), bool) if keep is None else keep(port, us)
    for number, begin, end in losses:
        chosen &= ~((port == number) & (us >= begin) & (us <= end))
    port, us, records = port[chosen], us[chosen], records[chosen]
    return Reading(port, us, np.array([record[0] for record in records], np.int64),
                   pa.array([record[1:] for record in records], pa.binary()), int((~chosen).sum() if losses else 0),
                   np.array(losses, float).reshape(-1, 3))


def analysed(monkeypatch, machine, session, **how):
    """The figures of a session."""
    monkeypatch.setattr(SYSTEMS[machine], "read", lambda run, number: reading(session, **how))
    return SYSTEMS[machine].analyse(None)
