"""The tables of a decoded RUN: their files, and the events in them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import Part
from hypermon.host.tables.parquet import LOSS_SCHEMA, checked_table, event_schema
from hypermon.host.tables.selection import Selection
from hypermon.host.tables.windowed_merge import merged_batches

__all__ = ["LOSS_TABLE", "board_of", "by_board", "event_batches", "event_files", "loss_files", "refuse_columns",
           "refuse_selection"]

LOSS_TABLE = "loss.parquet"
#: The directory of a board's part, in a run of several.
_BOARD = re.compile(r"/board=(\d{3,4})/", re.ASCII)


def event_files(run: RunDirectory, parts: Mapping[str, Part]) -> list[Path]:
    """The files that contain the events: those of each board in order, one board after the other.

    Parameters
    ----------
    parts : the tables of its decode.

    Raises
    ------
    InputError
        if the run was recorded without events, or the columns of a file are wrong.
    """
    run.refuse_without_events()
    names = [name for name in sorted(parts, key=_place) if name.startswith("events/")]
    if not names:
        raise InputError(run.path, None, "it ended before any items were kept")
    schema = event_schema(run.info.item_modes, run.info.nodes)
    return [checked_table(run.path / name, schema) for name in names]


def loss_files(run: RunDirectory, parts: Mapping[str, Part]) -> list[Path]:
    """The files of the losses, one board after the other. Raises InputError if the columns of one are wrong."""
    names = [name for name in sorted(parts, key=_place) if name == LOSS_TABLE or name.startswith("loss/")]
    return [checked_table(run.path / name, LOSS_SCHEMA) for name in names]


def _place(name: str) -> tuple[int, str]:
    """Sorts tables by board, then by day and number."""
    found = _BOARD.search(name)
    return (int(found[1]), name) if found else (-1, name)


def board_of(path: Path) -> int:
    """The number of the board that wrote a table of a run of several; -1 for other tables."""
    return _place("/".join(path.parts[-4:]))[0]


def by_board(files: Sequence[Path]) -> list[list[Path]]:
    """Files of events, in order, by the board that wrote them; those of a run of one board in one list."""
    boards: dict[int, list[Path]] = {}
    for path in files:
        boards.setdefault(board_of(path), []).append(path)
    return list(boards.values())


def event_batches(files: Sequence[Path], selection: Selection) -> Iterator[pa.RecordBatch]:
    """Selected events of a run in order of time, ties by node, in constant memory. Batches may be empty.

    Parameters
    ----------
    files : as :func:`event_files` returns them.

    Raises
    ------
    HypermonError
        if there is no such column.
    """
    if selection.columns is not None:
        refuse_columns(selection, pq.read_schema(files[0]).names)
    yield from merged_batches(by_board(files), selection)


def refuse_columns(selection: Selection, there: Sequence[str]) -> None:
    """Raises HypermonError for columns that do not exist."""
    unknown = [name for name in selection.columns or () if name not in there]
    if unknown:
        raise HypermonError(f"there is no column {unknown[0]!r:.60}; there are {', '.join(there)}")


def refuse_selection(run: RunDirectory, selection: Selection) -> None:
    """Raises InputError for nodes that do not exist, and for times that decrease."""
    strange = [node for node in selection.nodes or () if not 0 <= node < run.info.nodes]
    if strange:
        raise InputError(run.path, None, f"there is no node {strange[0]}, but 0 to {run.info.nodes - 1}")
    if selection.from_ps is not None and selection.to_ps is not None and selection.from_ps > selection.to_ps:
        raise InputError(run.path, None, f"from {selection.from_ps} ps to {selection.to_ps} ps: the second must be the "
                                         "later one")
