"""Merges recordings of several boards into one: times aligned, nodes renumbered, items in one order.

RUN/board-0, RUN/board-1, ... are recordings of one board each. The time of the run is that of the first board. A board
that follows it by wire has the same time. Other boards are aligned by the host's clock, to which each recording ties
its board's clock (:mod:`.clock`). The alignment states its uncertainty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.table_files import event_files, loss_file
from hypermon.host.errors import InputError
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import PARTS
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter, event_schema
from hypermon.host.tables.selection import Selection, selected_batches
from hypermon.host.text.json_file import integer, maybe, number, one_of, table, text

__all__ = ["ALIGNMENT", "Alignment", "align", "merge_boards", "merged"]

_Times = npt.NDArray[np.int64]
#: Figures that are summed; the others are given per board.
_ADDED = ("events", "frames", "merged", "aborted", "too_late", "lost", "late_nibbles", "discarded", "payload_bytes",
          "host_bytes", "missing_blocks", "repeated_blocks", "surplus", "torn", "torn_bytes", "foreign_blocks",
          "stream_size")
_PER_NODE = ("events_per_node", "aborted_per_node", "lost_per_node", "rejected_per_node")
#: The shape of an :class:`Alignment`; ``decode.json`` has one per board.
ALIGNMENT = table({
    "board": text(1 << 16), "first_node": integer(0, 1 << 16), "nodes": integer(1, 1 << 16),
    "how": one_of("first", "wire", "host clock", "together"), "offset_ps": integer(-1 << 63, (1 << 63) - 1),
    "drift_ppm": number(-10**6, 10**6), "uncertainty_ns": maybe(integer(0, 1 << 63))}, more=True)
#: Boards that are recorded together begin within seconds of each other, and times have 64 bits.
_APART_PS = 30 * 86_400 * 10**12
#: Before all times.
_UNKNOWN = -(1 << 63)


@dataclass(frozen=True)
class Alignment:
    """How a board's time is converted to the run's.

    Parameters
    ----------
    board : its URI; ``first_node``, ``nodes``: which nodes of the run belong to it.
    how : ``first``, ``wire``, ``host clock``, or ``together``: virtual boards begin together.
    offset_ps, drift_ppm : the run's time when the board's is 0, and how much faster the run's time passes.
    uncertainty_ns : of the alignment, during the recording; None: not known.
    """

    board: str
    first_node: int
    nodes: int
    how: str
    offset_ps: int = 0
    drift_ppm: float = 0.0
    uncertainty_ns: int | None = 0

    def times(self, times_ps: _Times) -> _Times:
        """Converts times to the run's; their order is preserved."""
        moved: _Times = times_ps + self.offset_ps
        return moved + np.rint(times_ps * (self.drift_ppm * 1e-6)).astype(np.int64) if self.drift_ppm else moved

    def as_text(self) -> str:
        """One line, for people."""
        if self.how == "first":
            way = "its time is the run's time"
        elif self.how == "together":
            way = "virtual: not aligned; it begins with the first"
        elif self.how == "wire" and self.uncertainty_ns is None:
            way = "not aligned: the first board's wave never arrived, or it failed for a while"
        elif self.uncertainty_ns is None:
            way = "not aligned: the host's clock was not compared with the boards' (too short a recording)"
        else:
            way = f"by {'wire' if self.how == 'wire' else self._by_clock()}, to {self.uncertainty_ns / 1000:,.2f} us"
        return f"{self.board}: nodes {self.first_node} to {self.first_node + self.nodes - 1}, {way}"

    def _by_clock(self) -> str:
        # The alignment was measured, or it is exactly 0.
        drift = f"{self.drift_ppm:+.3f} ppm" if self.drift_ppm else "drift not measured"
        return f"the host's clock: {self.offset_ps / 1e12:+.6f} s, {drift}"


def align(parts: Sequence[RunDirectory], done: Sequence[dict[str, Any]]) -> list[Alignment]:
    """How the times of recordings that were made together are converted to that of the first.

    Parameters
    ----------
    done : the :func:`.decode.summary` of each.
    """
    found: list[Alignment] = []
    first = parts[0]
    for part, summary in zip(parts, done, strict=True):
        info = part.info
        base = sum(before.info.nodes for before in parts[:len(found)])
        if part is first:
            found.append(Alignment(info.board, base, info.nodes, "first"))
        elif info.configuration.get("follow"):
            # Within one clock (docs/integrate.md), if the board reports it; the delay of the line is not included.
            clock_ns = -(-10**9 // info.clock_hz) if summary["followed"] else None
            found.append(Alignment(info.board, base, info.nodes, "wire", uncertainty_ns=clock_ns))
        elif info.board.startswith("sim:") and first.info.board.startswith("sim:"):
            found.append(Alignment(info.board, base, info.nodes, "together", uncertainty_ns=None))
        else:
            found.append(_by_host(first, part, base))
    return found


def _by_host(first: RunDirectory, part: RunDirectory, base: int) -> Alignment:
    own, other = part.clock, first.clock
    sure = None
    if own.uncertainty_ns is not None and other.uncertainty_ns is not None:
        sure = own.uncertainty_ns + other.uncertainty_ns
    # UTC is offset + time * (1 + drift) by either clock; solved for the time of the first.
    rate = 1 + other.drift_ppm * 1e-6
    offset = round((own.utc_ns - other.utc_ns) * 1000 / rate)
    if abs(offset) > _APART_PS:
        raise InputError(part.path, None, f"its clock is {abs(offset) / 86_400e12:.0f} days from that of "
                                          f"{first.path.name}: they are not of one run")
    drift = ((1 + own.drift_ppm * 1e-6) / rate - 1) * 1e6
    return Alignment(part.info.board, base, part.info.nodes, "host clock", offset, drift, sure)


def merged(streams: Sequence[Iterator[pa.Table]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Merges tables, each sorted by time with ties by node. Only a piece of each is in memory."""
    held = [schema.empty_table() for _ in streams]
    going = set(range(len(streams)))
    while going:
        # No row before the earliest end of the rows in memory can arrive any more.
        ends = {which: int(held[which]["time_ps"][-1].as_py()) if len(held[which]) else _UNKNOWN for which in going}
        until = min(ends.values())
        for which in [which for which in going if ends[which] == until]:
            more = next(streams[which], None)
            if more is None:
                going.remove(which)
            else:
                held[which] = pa.concat_tables([held[which], more.select(schema.names).cast(schema)])
        if until != _UNKNOWN:
            counts = [int(np.searchsorted(table["time_ps"].to_numpy(), until)) for table in held]
            yield _sorted([table.slice(0, count) for table, count in zip(held, counts, strict=True)])
            held = [table.slice(count) for table, count in zip(held, counts, strict=True)]
    yield _sorted(held)


def _sorted(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).sort_by([("time_ps", "ascending"), ("node", "ascending")])


def _events(part: RunDirectory, done: dict[str, Any], own: Alignment) -> Iterator[pa.Table]:
    """The events of a part in the run's time, with the run's nodes."""
    for batch in selected_batches(event_files(part, done[PARTS]), Selection()):
        yield _moved(pa.Table.from_batches([batch]), own, ["time_ps"])


def _moved(table: pa.Table, own: Alignment, times: Sequence[str]) -> pa.Table:
    for name in times:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(own.times(table[name].to_numpy())))
    at = table.schema.get_field_index("node")
    nodes = table["node"].to_numpy() + np.int16(own.first_node)
    return table.set_column(at, table.schema.field(at), pa.array(nodes))


def merge_boards(run: RunDirectory, aside: Path, done: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Writes the tables of a RUN of several boards into a directory: ``events/`` and ``loss.parquet``.

    Parameters
    ----------
    done : the decode of each board's part.

    Returns
    -------
    the accounting, as for one board, and ``boards``: the :class:`Alignment` of each.
    """
    parts = run.parts()
    own = align(parts, done)
    schema = event_schema(run.info.item_modes, run.info.nodes)
    with EventWriter(aside / "events", schema) as writer:
        streams = [_events(*one) for one in zip(parts, done, own, strict=True)]
        for table in merged(streams, schema):
            writer.add(table)
    losses = [_moved(pq.ParquetFile(loss_file(part)).read(), aligned, ["from_ps", "to_ps"])
              for part, aligned in zip(parts, own, strict=True)]
    loss = pa.concat_tables(losses).cast(LOSS_SCHEMA).sort_by([("from_ps", "ascending"), ("node", "ascending")])
    pq.write_table(loss, aside / "loss.parquet", compression="zstd")
    return _summary(run, done, own)


def _without_clock(part: RunDirectory) -> str | None:
    """Reports that the clock is missing by which a board's times were aligned."""
    recorded = (part.info.end or {}).get("clock") is not None
    return f"{CLOCK} is missing" if recorded and not (part.path / CLOCK).exists() else None


def _summary(run: RunDirectory, done: Sequence[dict[str, Any]], own: Sequence[Alignment]) -> dict[str, Any]:
    parts = run.parts()
    scale = run.info.scale
    ends = [int(aligned.times(np.array([part.info.scale.span_ps(one["last_time"], one["last_time"])[1]]))[0])
            for part, one, aligned in zip(parts, done, own, strict=True)]
    faults: dict[str, int] = {}
    for one in done:
        for reason, count in one["faults"].items():
            faults[reason] = faults.get(reason, 0) + count
    triggers = [one["trigger"] for one in done if one["trigger"]]
    changed = next((f"{part.path.name}: {reason}" for part, one in zip(parts, done, strict=True)
                    if (reason := one["changed"] or _without_clock(part))), None)
    return {
        **{name: sum(one[name] for one in done) for name in _ADDED},
        **{name: [value for one in done for value in one[name]] for name in _PER_NODE},
        "format": done[0]["format"], "begins": 0, "faults": faults,
        "causes": {cause: sum(one["causes"][cause] for one in done) for cause in done[0]["causes"]},
        "lag_max": max(one["lag_max"] for one in done), "trigger": ", ".join(triggers) or None,
        "last_time": max(scale.stamp_at(max(ends)) // scale.stamp_window, 0),
        "complete": all(one["complete"] for one in done) and changed is None,
        "accounted": all(one["accounted"] for one in done), "stopped": all(one["stopped"] for one in done),
        "uncounted": any(one["uncounted"] for one in done), "followed": False,
        "changed": changed,
        "boards": [asdict(aligned) for aligned in own],
    }
