"""The tables of a decoded RUN: their files, and the events in them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import Part
from hypermon.host.tables.parquet import LOSS_SCHEMA, checked_table, event_schema
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["LOSS_TABLE", "event_batches", "event_files", "loss_file", "refuse_selection"]

LOSS_TABLE = "loss.parquet"


def event_files(run: RunDirectory, parts: Mapping[str, Part]) -> list[Path]:
    """The files that contain the events, in order.

    Parameters
    ----------
    parts : the tables of its decode.

    Raises
    ------
    InputError
        if the run was recorded without events, or the columns of a file are wrong.
    """
    run.refuse_without_events()
    names = [name for name in sorted(parts) if name.startswith("events/")]
    if not names:
        raise InputError(run.path, None, "it ended before any items were kept")
    schema = event_schema(run.info.item_modes, run.info.nodes)
    return [checked_table(run.path / name, schema) for name in names]


def loss_file(run: RunDirectory) -> Path:
    """The file of the losses. Raises InputError if its columns are wrong."""
    return checked_table(run.path / LOSS_TABLE, LOSS_SCHEMA)


def event_batches(files: Sequence[Path], selection: Selection) -> Iterator[pa.RecordBatch]:
    """Selected events of a run in order, in constant memory. Batches may be empty.

    Parameters
    ----------
    files : of :func:`event_files`.

    Raises
    ------
    HypermonError
        if there is no such column.
    """
    if selection.columns is not None:
        there = pq.read_schema(files[0]).names
        unknown = [name for name in selection.columns if name not in there]
        if unknown:
            raise HypermonError(f"there is no column {unknown[0]!r:.60}; there are {', '.join(there)}")
    yield from selected_batches(files, selection)


def refuse_selection(run: RunDirectory, selection: Selection) -> None:
    """Raises InputError for nodes that do not exist, and for times that decrease."""
    strange = [node for node in selection.nodes or () if not 0 <= node < run.info.nodes]
    if strange:
        raise InputError(run.path, None, f"there is no node {strange[0]}, but 0 to {run.info.nodes - 1}")
    if selection.from_ps is not None and selection.to_ps is not None and selection.from_ps > selection.to_ps:
        raise InputError(run.path, None, f"from {selection.from_ps} ps to {selection.to_ps} ps: the second must be the "
                                         "later one")
