"""From when on losses of a node may be in no row of the loss table."""

from typing import Any

import numpy as np
from hypermon.host.analysis.stats import is_accounted, is_all_written
from hypermon.host.decode.decoded_run import DecodedRun

__all__ = ["unrecorded"]


def unrecorded(run: DecodedRun, done: dict[str, Any]) -> dict[int, int]:
    """The nodes of which more may be lost than the loss table states, and the time of the run from which on, in
    picoseconds; ``done``: the accounting of the run.

    Of a stream that was cut short, this is about the time of the last census. It is the beginning for nodes of a
    regeneration board that was connected late, was restarted, or was silent at the end; if frames were read from
    registers; and if the recorder could not write its tables to their end. What an accounting of an older version does
    not state is doubtful from the beginning.
    """
    if is_accounted(run, done):
        return {}
    told = done.get("counted_until") if is_all_written(run) else None
    windows = told or [0] * run.info.nodes
    found = {}
    for part, how in run.aligned_parts():
        scale, late = part.info.scale, part.info.late_clocks or [0] * how.nodes
        for own in range(how.nodes):
            if (until := windows[how.first_node + own]) < 0:
                continue
            stamps = -(-part.info.phases * late[own] // scale.stamp_window)
            found[how.first_node + own] = int(how.times(np.array([scale.span_ps(until - stamps, until)[0]]))[0])
    return found
