"""The tables of a RUN of several boards: one partition per board, in the run's time and with the run's nodes.

RUN/board-0, RUN/board-1, ... are recordings of one board each. The time of the run is that of the first board. A board
that follows it by wire has the same time. Other boards are aligned by the host's clock, to which each recording ties
its board's clock (:mod:`.clock`). The alignment states its uncertainty. It is known before a board is decoded, so each
board's tables are written once, as they stay (:mod:`.partitions`); nothing is merged. A program that needs all boards
in one order merges them as it reads (:mod:`.windowed_merge`).
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.decode.alignment import Alignment, align, offsets
from hypermon.host.decode.partitions import Place, Reading, kept_partition, partition_name, write_partition
from hypermon.host.recording.aside import aside
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import ACCOUNT, PARTS, Part, described
from hypermon.host.recording.segments import sync_directory, sync_file
from hypermon.host.tables.parquet_file import write_table

__all__ = ["BOARDS_SCHEMA", "BOARDS_TABLE", "store_boards"]

BOARDS_TABLE = "boards.parquet"
#: How each board is aligned: the members of an :class:`.Alignment`.
BOARDS_SCHEMA = pa.schema([
    pa.field("board", pa.int16(), nullable=False), pa.field("uri", pa.string(), nullable=False),
    pa.field("first_node", pa.int16(), nullable=False), pa.field("nodes", pa.int16(), nullable=False),
    pa.field("how", pa.string(), nullable=False), pa.field("offset_ps", pa.int64(), nullable=False),
    pa.field("drift_ppm", pa.float64(), nullable=False), pa.field("uncertainty_ns", pa.int64())])
#: Figures that are summed; the others are given per board.
_ADDED = ("events", "frames", "merged", "aborted", "too_late", "lost", "late_nibbles", "discarded", "payload_bytes",
          "host_bytes", "missing_blocks", "repeated_blocks", "surplus", "torn", "torn_bytes", "foreign_blocks",
          "stream_size")
_PER_NODE = ("events_per_node", "aborted_per_node", "lost_per_node", "rejected_per_node")


def store_boards(run: RunDirectory, made_of: Callable[[RunDirectory], dict[str, Any]], read: Reading,
                 cores: int = 1) -> tuple[dict[str, Any], dict[str, Part]]:
    """Writes the tables of a RUN of several boards, except those that are up to date.

    ``decode.json`` is removed first, because it does not describe the new tables.

    Parameters
    ----------
    made_of : returns what the tables of a board's recording are made of.
    read : reads a board's recording.
    cores : row groups that are encoded side by side.

    Returns
    -------
    the accounting, as for one board, and ``boards``: the :class:`.Alignment` of each; and the tables, by name.
    """
    parts, clock = run.parts(), run.clock
    places = [Place(run, number, own, clock) for number, own in enumerate(offsets(parts, run.info.wires))]
    (run.path / ACCOUNT).unlink(missing_ok=True)
    _clean(run)
    accounts = []
    for place, part in zip(places, parts, strict=True):
        own = {**made_of(part), "run_clock": asdict(clock), "boards": len(parts), "first_node": place.own.first_node,
               "offset_ps": place.own.offset_ps, "drift_ppm": place.own.drift_ppm, "ticks_hz": place.own.ticks_hz,
               "modes": [run.info.item_modes.words, run.info.item_modes.events]}
        accounts.append(kept_partition(place, own) or write_partition(place, own, read, cores))
    done = [account["summary"] for account in accounts]
    aligned = align(parts, done, run.info.wires)
    tables = {name: part for account in accounts for name, part in account[PARTS].items()}
    return _summary(run, done, aligned), {**tables, BOARDS_TABLE: _write_boards(run.path, aligned)}


def _clean(run: RunDirectory) -> None:
    """Removes tables that are of no board of the run: of the layout with one merged copy, or of another run."""
    boards = {partition_name(number) for number in range(len(run.info.boards))}
    for kind in ("events", "loss"):
        if (run.path / kind).is_symlink():      # its files are not the RUN's
            (run.path / kind).unlink()
        for path in [*(run.path / kind).glob("*")]:
            if path.name not in boards:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (run.path / "loss.parquet").unlink(missing_ok=True)


def _write_boards(run: Path, aligned: Sequence[Alignment]) -> Part:
    rows = [{**asdict(own), "uri": own.board, "board": number} for number, own in enumerate(aligned)]
    with aside(run) as new:
        write_table(pa.Table.from_pylist(rows, BOARDS_SCHEMA), new / BOARDS_TABLE)
        sync_file(new / BOARDS_TABLE)
        os.replace(new / BOARDS_TABLE, run / BOARDS_TABLE)
    sync_directory(run)
    return described(run / BOARDS_TABLE)


def _marks(done: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Marks of all boards, by pin; boards decoded by an older version have none."""
    marks: dict[str, int] = {}
    for one in done:
        for name, count in one.get("marks", {}).items():
            marks[name] = marks.get(name, 0) + count
    return marks


def _rejected_spans(done: dict[str, Any]) -> list[list[list[int]]]:
    spans: list[list[list[int]]] = done.get("rejected_spans", [[]] * len(done["events_per_node"]))
    return spans


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
        "causes": {cause: sum(one["causes"].get(cause, 0) for one in done)
                   for cause in dict.fromkeys(cause for one in done for cause in one["causes"])},
        "lag_max": max(one["lag_max"] for one in done), "trigger": ", ".join(triggers) or None,
        "last_time": max(scale.stamp_at(max(ends)) // scale.stamp_window, 0),
        "complete": all(one["complete"] for one in done) and changed is None,
        "accounted": all(one["accounted"] for one in done), "stopped": all(one["stopped"] for one in done),
        "uncounted": any(one["uncounted"] for one in done), "followed": False,
        "marks": _marks(done), "changed": changed,
        "boards": [asdict(aligned) for aligned in own],
        **({"rejected_spans": [spans for one in done for spans in _rejected_spans(one)]}
           if all("rejected_spans" in one or not any(one["rejected_per_node"]) for one in done) else {}),
        **({} if all(one["accounted"] for one in done) else {"counted_until": [
            until for one in done for until in (
                [-1] * len(one["events_per_node"]) if one["accounted"] else
                one.get("counted_until", [0] * len(one["events_per_node"])))]}),
    }
