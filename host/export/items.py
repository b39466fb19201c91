"""The items of a RUN as exports write them: as captured, or as events framed from nibbles."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
from hypermon.host.decode.table_files import event_batches, event_files, loss_files
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary
from hypermon.host.events import framed_events, framed_file
from hypermon.host.recording.parts import PARTS, fault
from hypermon.host.run import Run
from hypermon.host.tables.parquet import event_schema
from hypermon.host.tables.selection import Selection

__all__ = ["duration_ps", "ended_ps", "framed", "item_batches", "item_columns", "item_files", "known_files",
           "stored_batches", "write_rows"]


def framed(run: Run) -> bool:
    """Whether a run's nibbles are exported as events: if a user has framed them, or given a dictionary."""
    return not run.info.item_modes.longer and (kept_dictionary(run) is not None or framed_file(run) is not None)


def item_batches(run: Run, selection: Selection | None = None) -> Iterator[pa.RecordBatch]:
    """Batches in order of time: ``time_ps``, ``node``; ``nibble``, ``word``, or ``event``, ``payload``, ``aborted``.

    Columns that do not apply are null. The columns of the RUN's dictionary follow. Framed events are read from their
    file, which is created if needed.
    """
    yield from event_batches(item_files(run), selection or Selection())


def item_files(run: Run) -> list[Path]:
    """The files that contain them."""
    own = run.event_files()
    if not framed(run):
        return own
    path = framed_file(run)
    if path is None:
        framed_events(run)
    return [run.path / FRAMED]


def known_files(run: Run) -> tuple[list[Path], list[Path]] | None:
    """The files of the items and those of the losses, of which only the latter are read completely to find damage.

    A program that reads rows of the items must call :func:`item_files` before. None: that function must be called
    anyway, because it has something to make.
    """
    parts = run.decode()[PARTS]
    run.refuse_without_events()
    losses = loss_files(run, parts)
    if any(fault(path, parts[path.relative_to(run.path).as_posix()], whole=True) for path in losses):
        return None
    there = FRAMED in parts or os.path.lexists(run.path / FRAMED)
    if run.info.item_modes.longer or not (there or kept_dictionary(run) is not None):
        return event_files(run, parts), losses
    if FRAMED not in parts or fault(run.path / FRAMED, parts[FRAMED]) is not None:
        return None
    return [run.path / FRAMED], losses


def item_columns(run: Run) -> list[str]:
    """The columns of :func:`item_batches` that every run of this kind has."""
    from hypermon.host.decode import event_framing

    schema = event_framing.EVENT_SCHEMA if framed(run) else event_schema(run.info.item_modes, run.info.nodes)
    return list(schema.names)


def stored_batches(run: Run, selection: Selection) -> Iterator[pa.RecordBatch]:
    """The items as they were captured."""
    return run.batches(nodes=selection.nodes, from_ps=selection.from_ps, to_ps=selection.to_ps)


def write_rows(file: BinaryIO, batches: Iterator[pa.RecordBatch], quotes: str = "none") -> None:
    """Writes batches as CSV, without a head. ``quotes``: "none", or "needed"."""
    options = pa_csv.WriteOptions(include_header=False, quoting_style=quotes)
    for batch in batches:
        pa_csv.write_csv(batch, file, options)


def ended_ps(run: Run) -> int:
    """Time at which the run was stopped."""
    figures = run.stats()
    return int(figures["begins_ps"] + figures["duration_ps"])


def duration_ps(run: Run, selection: Selection) -> int:
    """Time at which an export ends."""
    last = run.decode()["last_time"]
    whole: int = max(ended_ps(run), run.info.scale.span_ps(last, last)[1])
    return whole if selection.to_ps is None else min(selection.to_ps, whole)
