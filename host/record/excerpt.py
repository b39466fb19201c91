"""A part of a RUN as a RUN of its own: a span of time, some nodes, and the losses that overlap them.

Times and node numbers stay those of the whole run. The excerpt holds tables, as a recording with ``--keep events``
does; blocks cannot be cut. ``configuration`` in its ``recording.json`` states under ``trimmed`` what it was cut from.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.account import write_account
from hypermon.host.decode.alignment import Alignment
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.decode.soundness import check_events
from hypermon.host.decode.unrecorded import is_all_written
from hypermon.host.dictionary.run_dictionary import FRAMED, KEPT
from hypermon.host.errors import HypermonError, naming
from hypermon.host.events import framed_file
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.drift_log import DRIFT
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.parts import NEXT, PARTS, described
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import RunWriter, new_directory
from hypermon.host.run import Run
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter, event_schema
from hypermon.host.tables.parquet_file import ParquetFile, write_table
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["trim"]


def trim(run: Run, out: Path, selection: Selection) -> dict[str, Any]:
    """Writes the selected part of a RUN to a new one. Returns its accounting, in the form of :func:`.account.summary`.

    Figures that only the whole recording has, such as late and rejected items, are copied. Numbers of bytes are in
    proportion to the items. A loss that overlaps the span is kept whole.

    Parameters
    ----------
    out : the new RUN; must not exist.
    selection : nodes and times, in those of the run.

    Raises
    ------
    HypermonError
        if ``out`` exists, the run was recorded without events, it has none of the times, or an earlier cut has removed
        all of the nodes.
    """
    run.refuse_without_events()
    _refuse_outside(run, selection)
    selection = _remaining(run, selection)
    if run.info.boards:
        return _trim_boards(run, out, selection)
    done = run.decode()
    info = replace(run.info, keep="events", drain="stream", ring_seconds=None, end=None, configuration={
        **run.info.configuration, "trimmed": _of(run, selection)})
    with naming(out), RunWriter(out, info, aside=True) as writer:
        account = _tables(run, done, writer.directory, info, selection)
        for name in (CLOCK, DRIFT, KEPT):
            if (run.path / name).is_file():
                (writer.directory / name).write_bytes((run.path / name).read_bytes())
        writer.close(how=_said(run, selection), proper=run.info.end is not None and run.info.end.get("proper", True),
                     duration_ps=_until(run, done, selection),
                     **({} if is_all_written(run) else {"all_written": False}))
    return account


def _refuse_outside(run: Run, selection: Selection) -> None:
    """Raises HypermonError if the selection ends before the run begins, or begins after its end."""
    figures = run.stats()
    begin = figures["begins_ps"]
    times = [begin, begin + figures["duration_ps"],
             *(time for row in run.sql("select min(time_ps), max(time_ps) from events").fetchall() for time in row
               if time is not None)]
    first, last = min(times), max(times)
    if (selection.to_ps is not None and selection.to_ps <= first) or (
            selection.from_ps is not None and selection.from_ps > last):
        raise HypermonError(f"{run.path}: it lasts from {first / 1e9:g} to {last / 1e9:g} ms; none of that was chosen")


def _remaining(run: Run, selection: Selection) -> Selection:
    """A selection without the nodes and times that an earlier cut has removed.

    Raises HypermonError if no node is left of those that were chosen.
    """
    earlier = run.info.configuration.get("trimmed") or {}
    kept, nodes = earlier.get("nodes"), selection.nodes
    if isinstance(kept, list):
        nodes = kept if nodes is None else [node for node in nodes if node in kept]
        if selection.nodes and not nodes:
            raise HypermonError(f"{run.path}: it was trimmed to nodes {', '.join(map(str, kept)) or 'none'}; none of "
                                "those was chosen")
    begins, ends = ([time for time in (earlier.get(name), chosen) if isinstance(time, int)]
                    for name, chosen in (("from_ps", selection.from_ps), ("to_ps", selection.to_ps)))
    return replace(selection, nodes=nodes, from_ps=max(begins, default=None), to_ps=min(ends, default=None))


def _of(run: Run, selection: Selection) -> dict[str, Any]:
    """The statement in an excerpt's configuration of what it was cut from."""
    return {"run": run.path.resolve().name, "from_ps": selection.from_ps, "to_ps": selection.to_ps,
            "nodes": None if selection.nodes is None else list(selection.nodes),
            "end": None if run.info.end is None else run.info.end.get("how")}


def _said(run: Run, selection: Selection) -> str:
    times = ["the beginning" if selection.from_ps is None else f"{selection.from_ps / 1e9:g} ms",
             "the end" if selection.to_ps is None else f"{selection.to_ps / 1e9:g} ms"]
    nodes = "" if selection.nodes is None else f", nodes {', '.join(map(str, selection.nodes))}"
    return f"trimmed from {run.path.resolve().name}: {times[0]} to {times[1]}{nodes}"


def _until(run: Run, done: dict[str, Any], selection: Selection) -> int | None:
    """When the excerpt ends, from time 0."""
    whole = (run.info.end or {}).get("duration_ps")
    if selection.to_ps is None:
        return None if whole is None else int(whole)
    last = run.info.scale.span_ps(done["last_time"], done["last_time"])[1] if whole is None else int(whole)
    return min(selection.to_ps, last)


def _tables(run: Run, done: dict[str, Any], directory: Path, info: RunInfo, selection: Selection) -> dict[str, Any]:
    """Writes the tables of an excerpt, and its accounting."""
    schema = event_schema(info.item_modes, info.nodes)
    counts = _Counts(info.nodes)
    with EventWriter(directory / "events", schema) as events:
        for batch in run.batches(nodes=selection.nodes, from_ps=selection.from_ps, to_ps=selection.to_ps):
            table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            counts.add(table)
            events.add(table)
    loss = run.loss()
    overlap = [selection.touches(first, last) for first, last in
               zip(loss["from_ps"].to_pylist(), loss["to_ps"].to_pylist(), strict=True)]
    loss = loss.filter(pa.array(overlap, pa.bool_())).cast(LOSS_SCHEMA)
    if selection.nodes is not None:
        loss = loss.filter(pc.is_in(loss["node"], pa.array(list(selection.nodes), pa.int16())))
    write_table(loss, directory / "loss.parquet", compression="zstd")
    names = [*(f"events/{path.name}" for path in sorted((directory / "events").glob("*.parquet"))), "loss.parquet"]
    framed = framed_file(run)
    if framed is not None:
        names.append(FRAMED)
        check_events(run, [framed], EVENT_SCHEMA)
        base = pq.read_schema(framed).remove_metadata()
        with ParquetFile(directory / FRAMED, pa.schema(list(base)[:5]), compression="zstd") as writer:
            for batch in selected_batches([framed], replace(selection, columns=base.names[:5])):
                writer.write_batch(batch)
    account = _account(run, done, counts, loss, selection)
    return write_account(directory, info, account, {name: described(directory / name) for name in names})


class _Counts:
    """The items of an excerpt, per node, and how many share their time."""

    def __init__(self, nodes: int):
        self.whole = np.zeros(nodes, np.int64)
        self.aborted = np.zeros(nodes, np.int64)
        self.frames = self.merged = 0
        self._last: tuple[int, int] = (-1 << 63, 0)     # a time, and its items so far

    def add(self, table: pa.Table) -> None:
        if not len(table):
            return
        cut = (table["aborted"].to_numpy() if "aborted" in table.column_names else np.zeros(len(table), np.bool_))
        node = table["node"].to_numpy()
        self.whole += np.bincount(node[~cut], minlength=len(self.whole))
        self.aborted += np.bincount(node[cut], minlength=len(self.whole))
        times, sizes = np.unique(table["time_ps"].to_numpy(), return_counts=True)
        self.frames += len(times) - (times[0] == self._last[0])
        self.merged += int(sizes[sizes > 1].sum())
        if times[0] == self._last[0]:
            self.merged += (self._last[1] == 1) + (sizes[0] == 1)
            sizes[0] += self._last[1]
        self._last = int(times[-1]), int(sizes[-1])


def _account(run: Run, done: dict[str, Any], counts: _Counts, loss: pa.Table, selection: Selection) -> dict[str, Any]:
    """The accounting of the whole run, with the figures of the excerpt."""
    scale, nodes = run.info.scale, run.info.nodes
    lost = [0] * nodes
    for node, count in zip(loss["node"].to_pylist(), loss["lost"].to_pylist(), strict=True):
        lost[node] += count
    events, total = int(counts.whole.sum()), sum(lost)
    share = events / done["events"] if done["events"] else 0.0
    causes = dict.fromkeys(done["causes"], 0)
    named = [name for name, count in done["causes"].items() if count]
    if total:
        causes[named[0] if len(named) == 1 else "unsaid"] = total

    def window(time_ps: int) -> int:
        return max(scale.stamp_at(time_ps) // scale.stamp_window, 0)

    whole = {name: value for name, value in done.items() if name not in ("made_of", PARTS, NEXT, "boards")}
    return whole | {
        "events": events, "events_per_node": counts.whole.tolist(), "aborted": int(counts.aborted.sum()),
        "aborted_per_node": counts.aborted.tolist(), "frames": int(counts.frames), "merged": int(counts.merged),
        "lost": total, "lost_per_node": lost, "causes": causes, "host_bytes": 0,
        "payload_bytes": round(share * done["payload_bytes"]),
        "stream_size": round(share * (done["stream_size"] - done["host_bytes"])),
        "begins": done["begins"] if selection.from_ps is None else max(done["begins"], window(selection.from_ps)),
        "last_time": done["last_time"] if selection.to_ps is None else
        min(done["last_time"], window(selection.to_ps - 1)),
        "complete": done["stopped"] and done["torn"] == 0 and total == 0}


def _trim_boards(run: Run, out: Path, selection: Selection) -> dict[str, Any]:
    """Trims a run of several boards: makes an excerpt of each, whose times are aligned as before."""
    info = replace(run.info, configuration={**run.info.configuration, "trimmed": _of(run, selection)})
    end = {**(run.info.end or {}), "how": _said(run, selection)}
    if end.get("duration_ps") is not None and selection.to_ps is not None:
        end["duration_ps"] = min(end["duration_ps"], selection.to_ps)
    info.end = end
    bounds = (selection.from_ps, selection.to_ps)
    with new_directory(out) as aside:
        for part, said in zip(run.parts(), run.stats()["boards"], strict=True):
            own = Alignment(**said)
            nodes = None if selection.nodes is None else [
                node - own.first_node for node in selection.nodes if 0 <= node - own.first_node < own.nodes]
            from_ps, to_ps = (None if time is None else _own_time(own, time) for time in bounds)
            trim(Run(part.path), aside / part.path.name, Selection(nodes, from_ps, to_ps))
        write_json(aside / "recording.json", info.as_dict())
        if (run.path / KEPT).is_file():
            (aside / KEPT).write_bytes((run.path / KEPT).read_bytes())
    return Run(out).decode()


def _own_time(own: Alignment, time_ps: int) -> int:
    """A board's first time that is not before a time of the run."""
    low, high = -(1 << 62), 1 << 62
    while low < high:
        middle = (low + high) // 2
        if int(own.times(np.array([middle]))[0]) < time_ps:
            low = middle + 1
        else:
            high = middle
    return low
