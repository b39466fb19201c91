"""Writes a RUN of many items without a board, as `hypermon decode` would leave it: for measurements of what reads it.

The stream of the RUN is empty: its tables are written directly, with the host's own writers, and described in
``decode.json``.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypermon.hdl.layout import LATENCY
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import described
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter, event_schema

__all__ = ["IDS", "made_events", "made_run"]

#: Events per piece, of one mean gap. The mean gaps of pieces spread over three decades, as programs' phases do.
_PIECE = 1 << 20
#: Ids of :func:`made_events`: each node writes 0 to 11 in turn.
IDS = 12
_GAP_PS = 1_000_000


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
    info = RunInfo("made:", nodes, 100_000_000, "1", LATENCY, 1, sink="extended")
    pieces = list[int]()

    def lost():
        begins = np.sort(rng.integers(0, pieces[-1], losses))
        counts = rng.integers(1, 1000, losses)
        return rng.integers(0, nodes, losses), counts, begins, begins + rng.integers(10**6, 10**9, losses)

    def noted():
        for events in _pieces(count, nodes, rng):
            pieces.append(int(events.time_ps[-1]))
            yield events

    return _written(path, info, noted(), lost)


def _event_pieces(count, nodes, schema, lost, rng):
    node_lost, _, from_ps, to_ps = lost
    payload = pa.DictionaryArray.from_arrays(pa.array(np.zeros(_PIECE, np.int32)), pa.array([b""])).cast(pa.binary())
    whole = pa.array(np.zeros(_PIECE, np.bool_))
    for begin in range(0, count, _PIECE):
        number = np.arange(begin, min(begin + _PIECE, count))
        time = number * _GAP_PS + 10_000 * rng.integers(0, 90, len(number))
        node = (number % nodes).astype(np.int16)
        kept = np.ones(len(number), np.bool_)
        for k in np.flatnonzero((from_ps <= time[-1]) & (to_ps >= time[0])):
            kept &= (node != node_lost[k]) | (time < from_ps[k]) | (time > to_ps[k])
        columns = [time[kept], node[kept], (number // nodes % IDS)[kept].astype(np.uint8)]
        size = len(columns[0])
        yield pa.Table.from_arrays([*(pa.array(column) for column in columns), payload.slice(0, size),
                                    whole.slice(0, size)], schema=schema)


def made_events(path: Path, count: int, nodes: int = 8, losses: int = 100, seed: int = 1) -> Run:
    """A RUN of about ``count`` events without payload, 1 us apart, of nodes that take turns; none within its losses."""
    rng = np.random.default_rng(seed)
    info = RunInfo("made:", nodes, 100_000_000, "1", LATENCY, 1, sink="extended", modes=["event"] * nodes)
    begins = np.sort(rng.integers(0, count * _GAP_PS, losses))
    sizes = rng.integers(1, 50, losses)
    lost = rng.integers(0, nodes, losses), sizes, begins, begins + sizes * nodes * _GAP_PS
    schema = event_schema(ItemModes.of([ItemMode.EVENT] * nodes), nodes)
    return _written(path, info, _event_pieces(count, nodes, schema, lost, rng), lambda: lost, schema)


def _written(path, info, pieces: Iterable, lost, schema=None) -> Run:
    """Writes the tables: pieces of items, and losses (node, count, from, to), which are asked for afterwards.

    A run of events is one that was stopped, and in which every loss was counted.
    """
    with RunWriter(path, info) as writer:
        writer.close(how="made", duration_ps=0)
    run = Run(path)
    run.decode()
    shutil.rmtree(path / "events")
    per_node = np.zeros(info.nodes, np.int64)
    with EventWriter(path / "events", **({} if schema is None else {"schema": schema}), cores=2) as writer:
        for events in pieces:
            writer.add(events)
            per_node += np.bincount(np.asarray(events.node if schema is None else events["node"]),
                                    minlength=info.nodes)
    losses = lost()
    pq.write_table(pa.table([pa.array(column, field.type) for column, field in zip(losses, LOSS_SCHEMA, strict=True)],
                            schema=LOSS_SCHEMA), path / "loss.parquet")
    tables = [*sorted((path / "events").iterdir()), path / "loss.parquet"]
    account = json.loads((path / "decode.json").read_text())
    account.pop("check", None)
    if schema is not None:
        account |= {"stopped": True, "accounted": True}
    account |= {"events": int(per_node.sum()), "events_per_node": per_node.tolist(), "lost": int(losses[1].sum()),
                "parts": {table.relative_to(path).as_posix(): described(table) for table in tables}}
    (path / "decode.json.new").write_text(json.dumps(account))
    os.replace(path / "decode.json.new", path / "decode.json")
    return Run(path)
