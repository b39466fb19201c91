"""Writes a RUN of many events without a board, as `hypermon decode` would leave it: for measurements of what reads it.

The stream of the RUN is empty: its tables are written directly, with the host's own writers, and described in
``decode.json``.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypermon.hdl.layout import LATENCY
from hypermon.host.blocks.frames import Events
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import described
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter

__all__ = ["made_run"]

#: Events per piece, of one mean gap. The mean gaps of pieces spread over three decades, as programs' phases do.
_PIECE = 1 << 20


def _pieces(count, nodes, rng):
    time = 0
    for begin in range(0, count, _PIECE):
        size = min(_PIECE, count - begin)
        gap = 10_000 * rng.integers(0, max(round(2 * 10 ** rng.uniform(0, 3)), 2), size, dtype=np.int64)
        times = time + np.cumsum(gap)
        time = int(times[-1]) + int(10 ** rng.uniform(6, 12))
        weights = rng.uniform(0.1, 1, nodes)
        node = rng.choice(nodes, size, p=weights / weights.sum()).astype(np.int16)
        yield Events(times, node, rng.integers(0, 16, size, dtype=np.uint8))


def made_run(path: Path, count: int, nodes: int = 16, losses: int = 1000, seed: int = 1) -> Run:
    """A RUN of ``count`` nibbles; in memory are some millions of them at most."""
    rng = np.random.default_rng(seed)
    with RunWriter(path, RunInfo("made:", nodes, 100_000_000, "1", LATENCY, 1, sink="extended")) as writer:
        writer.close(how="made", duration_ps=0)
    run = Run(path)
    run.decode()
    shutil.rmtree(path / "events")
    per_node, last = np.zeros(nodes, np.int64), 0
    with EventWriter(path / "events") as writer:
        for events in _pieces(count, nodes, rng):
            writer.add(events)
            per_node += np.bincount(events.node, minlength=nodes)
            last = int(events.time_ps[-1])
    begins = np.sort(rng.integers(0, last, losses))
    lost = rng.integers(1, 1000, losses)
    pq.write_table(pa.table([pa.array(column, field.type) for column, field in zip(
        (rng.integers(0, nodes, losses), lost, begins, begins + rng.integers(10**6, 10**9, losses)), LOSS_SCHEMA,
        strict=True)], schema=LOSS_SCHEMA), path / "loss.parquet")
    tables = [*sorted((path / "events").iterdir()), path / "loss.parquet"]
    account = json.loads((path / "decode.json").read_text())
    account.pop("check", None)
    account |= {"events": count, "events_per_node": per_node.tolist(), "lost": int(lost.sum()),
                "parts": {table.relative_to(path).as_posix(): described(table) for table in tables}}
    (path / "decode.json.new").write_text(json.dumps(account))
    os.replace(path / "decode.json.new", path / "decode.json")
    return Run(path)
