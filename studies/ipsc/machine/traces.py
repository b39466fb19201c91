"""Reads back software recordings in the nodes' memories; checks whether messages were received before they were sent.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.studies.ipsc.machine.machine import Course
from hypermon.studies.ipsc.machine.nx2 import KINDS
from hypermon.studies.ipsc.machine.recorders import Software

__all__ = ["SCHEMA", "Causality", "causality", "software_trace", "trace_bytes", "volume"]

#: One row per record: by the node's own clock, in microseconds. ``peer`` and ``sequence`` are those of messages, else
#: null.
SCHEMA = pa.schema([("time_us", pa.int64()), ("node", pa.int16()), ("event", pa.uint8()), ("bytes", pa.int16()),
                    ("peer", pa.int16()), ("sequence", pa.int32())])
_BY_ID = {kind.id: kind for kind in KINDS.values()}
_MESSAGES = {KINDS["send"].id, KINDS["receive"].id}


def trace_bytes(course: Course) -> int:
    """Bytes that software has recorded on all nodes."""
    return sum(len(node.recorder.trace) for node in course.nodes if isinstance(node.recorder, Software))


def software_trace(course: Course) -> pa.Table:
    """The records of all nodes, node after node; see :data:`SCHEMA`. Times are sums of deltas."""
    rows: list[tuple[int, int, int, int, int | None, int | None]] = []
    for node in course.nodes:
        recorder = node.recorder
        assert isinstance(recorder, Software)
        at, now, trace = 0, recorder.first or 0, bytes(recorder.trace)
        while at < len(trace):
            kind = _BY_ID[trace[at]]
            fields = kind.unpack(trace, at)
            now += fields[-1]
            peer, sequence = fields[1:3] if kind.id in _MESSAGES else (None, None)
            rows.append((now, node.number, kind.id, kind.size, peer, sequence))
            at += kind.size
    columns = list(zip(*rows, strict=True)) if rows else [[]] * len(SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


class Causality:
    """Messages of a trace. ``messages`` have both events; ``early`` were received before they were sent. ``least`` is
    the shortest latency, in units of the trace, negative if one was early; None without messages.
    """

    def __init__(self, flight: npt.NDArray[np.int64]):
        self.messages, self.early = len(flight), int((flight < 0).sum())
        self.least = int(flight.min()) if len(flight) else None


def causality(events: pa.Table, time: str) -> Causality:
    """Compares the times at which messages were sent and received.

    Parameters
    ----------
    events : columns ``time``, ``node``, ``event``, ``peer``, ``sequence``. A node's sequence numbers count the messages
        to a peer, modulo 65,536.
    """
    ends = []
    for name, there, back in (("send", "node", "peer"), ("receive", "peer", "node")):
        rows = events.filter(pc.equal(events["event"], KINDS[name].id))
        source, target, sequence, at = (rows[column].to_numpy().astype(np.int64)
                                        for column in (there, back, "sequence", time))
        # Numbers wrap at 65,536; the order shows how often they have wrapped.
        key = source << 8 | target
        order = np.lexsort((np.arange(len(key)), key))
        key, sequence, at = key[order], sequence[order], at[order]
        wraps = np.concatenate([[0], np.cumsum(np.diff(sequence) < 0)])[:len(key)]
        ends.append(dict(zip(zip(key.tolist(), (wraps - wraps[np.searchsorted(key, key)]).tolist(), sequence.tolist(),
                                 strict=True), at.tolist(), strict=True)))
    sent, received = ends
    return Causality(np.array([received[key] - sent[key] for key in sent.keys() & received.keys()], np.int64))


def volume(trace: pa.Table, interval_us: int = 1000, *, events: bool = False) -> npt.NDArray[np.int64]:
    """Bytes, or events, recorded in each interval, by the nodes' own clocks, as in Figure 14."""
    time = trace["time_us"].to_numpy() - pc.min(trace["time_us"]).as_py()
    return np.bincount(time // interval_us, None if events else trace["bytes"].to_numpy()).astype(np.int64)
