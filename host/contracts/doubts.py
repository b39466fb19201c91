"""What is known of a RUN, and what is not: makes a trace from its tables, its losses and its accounting."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from hypermon.hdl.layout import Geometry
from hypermon.host.analysis.locked import SETTINGS, lock
from hypermon.host.analysis.query import create_view
from hypermon.host.contracts.events import Vocabulary
from hypermon.host.contracts.trace import GAPS, MANY, Extent, Trace
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.unrecorded import begun, cut_nodes, is_all_written, rejected, unrecorded
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import InputError
from hypermon.host.events import framed_file
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo

__all__ = ["apart_of", "kept_back", "masked_of", "opened_trace", "slack_of"]

#: DuckDB's memory; more is on the disk.
_MEMORY = "1GB"
#: A real board may have stopped a while before the host learned its time; a virtual one has not.
_STOP_PS = 10**12
#: The time that the input flip-flops of a board with half or quarter clocks add.
_APERTURE_PS = 1000
#: Clocks by which items of a regeneration board are later than those of a port, at most.
_REGENERATED = 4096 + 64


@contextmanager
def opened_trace(run: DecodedRun) -> Iterator[tuple[Trace, Dictionary | None]]:
    """The trace of a RUN, and the RUN's dictionary. Decodes the RUN first if needed.

    Raises
    ------
    InputError
        if the RUN has no items, or its tables cannot be read.
    """
    done, dictionary = run.decode(), kept_dictionary(run)
    files: dict[str, list[Path]] = {"events": run.event_files(), "loss": run.loss_files()}
    framed = framed_file(run)
    if framed is not None:
        files["framed"] = [framed]
    db = duckdb.connect(config={**SETTINGS, "memory_limit": _MEMORY, "preserve_insertion_order": False})
    try:
        for name, paths in files.items():
            create_view(db, name, paths)
        lock(db, chain.from_iterable(files.values()))
        columns = {name: tuple(row[0] for row in db.execute(f"describe {name}").fetchall())
                   for name in files if name != "loss"}
        vocabulary = Vocabulary(dictionary, columns, bool(run.info.item_modes.events), run.info.port_bits)
        extents = _extents(run, done, db, columns)
        _gaps(run, done, db, extents, columns)
        slack = slack_of(run.info, _late_of(run, done, db))
        yield Trace(db, extents, vocabulary.source, slack, apart_of(run, "links_unsure" in done),
                    {board: None if own["uncertainty_ns"] is None else 1000 * own["uncertainty_ns"]
                     for board, own in enumerate(done.get("boards", []))},
                    masked_of(run), not done["surplus"]), dictionary
    except duckdb.IOException as error:
        raise InputError(run.path, None, f"its tables cannot be read: {str(error).splitlines()[0]}") from None
    finally:
        db.close()


def _extents(run: DecodedRun, done: dict[str, Any], db: duckdb.DuckDBPyConnection,
             tables: Iterable[str]) -> list[Extent]:
    """From when to when each node was recorded, according to its items and its board's stop."""
    times = " union all ".join(f"select node, time_ps from {table}" for table in tables)
    newest = dict(db.execute(f"select node, max(time_ps) from ({times}) group by node").fetchall())
    found: list[Extent] = []
    for board, (part, how) in enumerate(run.aligned_parts()):
        scale = part.info.scale
        begins = done["begins"] if part is run else begun(part)
        stop = (part.info.end or {}).get("duration_ps")
        if part is run:
            stop = min([scale.start_ps(done["last_time"] * scale.stamp_window), *([] if stop is None else [stop])])
        first = int(how.times(np.array([scale.start_ps(begins * scale.stamp_window)]))[0])
        seen = [newest[node] for node in range(how.first_node, how.first_node + how.nodes) if node in newest]
        last = max([first, *seen])
        if stop is not None:
            margin = 0 if part.info.board.startswith("sim:") else _STOP_PS
            last = max(last, int(how.times(np.array([stop]))[0]) - margin)
        trimmed = part.info.configuration.get("trimmed") or {}
        if isinstance(trimmed.get("from_ps"), int):
            first = max(first, int(how.times(np.array([trimmed["from_ps"]]))[0]))
        if isinstance(trimmed.get("to_ps"), int):
            last = min(last, int(how.times(np.array([trimmed["to_ps"]]))[0]) - 1)
        found += [Extent(first, max(last, first), board)] * how.nodes
    return found


def _gaps(run: DecodedRun, done: dict[str, Any], db: duckdb.DuckDBPyConnection, extents: list[Extent],
          columns: dict[str, tuple[str, ...]]) -> None:
    """Creates the table ``gaps``: losses, incomplete items, and what filters and accounting leave open."""
    db.execute(f"create temp table gaps ({GAPS})")
    # The overflow packet of an ITM does not say how many items were lost.
    vague = [how.first_node + node for part, how in run.aligned_parts() for node in range(how.nodes)
             if part.info.itm_nodes >> node & 1]
    unknown = f"if(node in ({', '.join(map(str, vague))}), {MANY}, 0)" if vague else "0"
    db.execute(f"insert into gaps select node, from_ps, to_ps, lost + {unknown}, 'loss', false from loss")
    if "aborted" in columns["events"]:
        db.execute("insert into gaps select node, time_ps, time_ps, 1, 'aborted', false from events where aborted")
    if "framed" in columns:
        _framed_gaps(db, extents)
    rows: list[tuple[int, int, int, int, str, None]] = []

    def all_of(node: int, n: int, cause: str) -> None:
        if n:
            rows.append((node, extents[node].start, extents[node].end, n, cause, None))

    for part, how in run.aligned_parts():
        rows += [(node, max(lo, extents[node].start), min(hi, extents[node].end), count, "filter", None)
                 for node, lo, hi, count in rejected(part, how, done)]
    for node, from_ps in unrecorded(run, done).items():
        rows.append((node, max(from_ps, extents[node].start), max(from_ps, extents[node].end), MANY, "unsure", None))
    for node in cut_nodes(run):
        all_of(node, MANY, "unsure")
    for part, how in run.aligned_parts():
        for node, n, cause in kept_back(part.info, how.nodes, done["discarded"]):
            all_of(how.first_node + node, n, cause)
    if rows:
        db.executemany("insert into gaps values (?, ?, ?, ?, ?, ?)", rows)


def _framed_gaps(db: duckdb.DuckDBPyConnection, extents: list[Extent]) -> None:
    """After a loss, no events of a node can be framed until its next silence: nothing is known between the last whole
    event before and the first one after, whatever the number of lost nibbles."""
    db.execute(f"""insert into gaps
        with whole as (select node, time_ps as t from framed where not aborted),
        open as (select node, from_ps as lo, to_ps as hi, lost from loss
                 union all select node, time_ps, time_ps, 0 from framed where aborted)
        select open.node, coalesce(before.t + 1, {min(own.start for own in extents)}) as lo,
               coalesce(after.t - 1, {max(own.end for own in extents)}) as hi, {MANY} + sum(lost), 'framing', true
        from open asof left join whole as before on before.node = open.node and before.t < open.lo
        asof left join whole as after on after.node = open.node and after.t > open.hi
        group by open.node, 2, 3""")


def slack_of(info: RunInfo, late: int) -> int:
    """By how much the difference of two stamps of a node may be off. ``late``: windows by which items were carried."""
    scale = info.scale
    clock = -(-10**12 // scale.clock_hz)
    own = scale.stamp_ps + 1 + _APERTURE_PS if scale.phases > 1 else scale.window_ps + 1 + clock
    return own + late * (scale.window_ps + 1)


def _late_of(run: DecodedRun, done: dict[str, Any], db: duckdb.DuckDBPyConnection) -> int:
    """The largest number of windows by which an item may have been carried.

    The last census states it. Of a stream that was cut short, items follow that census. A node has an item in each
    window through which one of its items was carried, so none of them was carried further than its items fill windows
    one after the other. Where items may be missing among them, the memory of the node is the limit.
    """
    late: int = done["lag_max"] if done["late_nibbles"] else 0
    if (done["stopped"] and is_all_written(run)) or run.info.scale.window_clocks == 1:
        return late
    known, told = unrecorded(run, done), done.get("counted_until") if is_all_written(run) else None
    for part, how in run.aligned_parts():
        nodes = [node for node in range(how.first_node, how.first_node + how.nodes) if node in known]
        if not nodes:
            continue
        deep = part.info.identity.get("node_depth", Geometry.node_depth)
        hidden = (told is None or done["missing_blocks"] or done["uncounted"] or done["faults"] or done["discarded"]
                  or any(part.info.configuration.get(name) for name in ("start", "stop", "trigger_in", "events_out")))
        step = part.info.scale.window_ps * 3 // 2      # stamps of aligned boards are rounded, and drift
        late = max(late, deep if hidden else min(deep, _most_in_turn(db, nodes, step, min(
            known[node] for node in nodes) - deep * step) - 1))
    return late


def _most_in_turn(db: duckdb.DuckDBPyConnection, nodes: Sequence[int], step_ps: int, from_ps: int) -> int:
    """The largest number of items of one of the nodes, from a time on, each at most a step after the one before."""
    [(most,)] = db.execute(f"""
        select max(n) from (select count(*) as n from (
            select node, sum(apart::int) over (partition by node order by time_ps rows unbounded preceding) as part
            from (
                select node, time_ps, coalesce(time_ps - lag(time_ps) over (partition by node order by time_ps)
                                               > {step_ps}, true) as apart
                from events where time_ps >= {from_ps} and node in ({', '.join(map(str, nodes))}))) group by node, part)
        """).fetchall()
    return most or 1


def apart_of(run: RunDirectory, linked: bool) -> int:
    """By how much stamps of different nodes may be off: regeneration boards delay their nodes."""
    return (_REGENERATED if linked else 0) * -(-10**12 // run.info.scale.clock_hz)


def masked_of(run: RunDirectory) -> frozenset[int]:
    """The ids of events that the boards were configured to discard."""
    out = [part.info.configuration.get("events_out") for part in (run.parts() or [run])]
    return frozenset(one for own in out if isinstance(own, list) for one in own if isinstance(one, int))


def kept_back(info: RunInfo, nodes: int, discarded: int) -> list[tuple[int, int, str]]:
    """Node, number and cause of the items that a board's triggers and masks discarded, from its configuration."""
    kept = info.configuration.get("nodes_kept")
    triggered = any(info.configuration.get(name) for name in ("start", "stop", "trigger_in"))
    cause = "masked" if info.configuration.get("events_out") and not triggered else "filter"
    return [*((node, discarded, cause) for node in range(nodes)),
            *((node, MANY, "unsure") for node in range(nodes) if isinstance(kept, list) and node not in kept)]
