"""Decoding: converts blocks to items in Parquet, and keeps the loss accounting of the run.

Decoding is idempotent and atomic. Its output is built in a separate directory and moved to its final path at the end,
with ``decode.json`` as the last file (:mod:`.account`). A second decode finds that file and does nothing. If more has
been recorded, or a table was damaged, removed or exchanged, everything is decoded again. If a decode is killed before
its end, the files that it leaves do not count: the next decode removes or replaces them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.hdl.layout import Sink
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Scanned
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.native import cores
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.account import (
    USUAL,
    changed_stream,
    made_of,
    made_of_board,
    read_account,
    summary,
    tables_of,
    usable_account,
    write_account,
)
from hypermon.host.decode.board_store import store_boards
from hypermon.host.decode.ledger import Ledger, Rows
from hypermon.host.decode.table_files import LOSS_TABLE, event_batches, event_files, loss_files
from hypermon.host.dictionary.run_dictionary import kept_dictionary, name_events, names_due
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import ACCOUNT, PARTS, Part, all_or_none, put
from hypermon.host.recording.segments import sync_directory, sync_file
from hypermon.host.tables.item_order import ItemTable
from hypermon.host.tables.parquet import (
    LOSS_SCHEMA,
    EventWriter,
    TableWriter,
    event_schema,
    event_table,
    insert_events,
)
from hypermon.host.tables.selection import Selection

__all__ = ["count_run", "decode_run", "stream_tables", "tables_needed"]

#: Called with bytes decoded, bytes in all, and the accounting so far.
Progress = Callable[[int, int, Ledger], None]


def decode_run(run: RunDirectory, progress: Progress | None = None,
               tell: Callable[[str], None] | None = None, whole: bool = False) -> dict[str, Any]:
    """Creates ``events/``, ``loss.parquet`` and ``decode.json`` of a RUN, unless they exist and are whole.

    The tables include the columns of the RUN's dictionary.

    Parameters
    ----------
    tell : called with one line if there is an older decode that cannot be used, or if another process is at work on
        this RUN.
    whole : rows of the tables will be used. Each table is then read completely once, to find damage that left the
        file's modification time unchanged.

    Returns
    -------
    :func:`summary`, and ``parts``: the tables, by name. These are the contents of ``decode.json``.

    Raises
    ------
    InputError
        if the run was recorded in a configuration that this version does not know, if its dictionary is invalid, or if
        its accounting or tables cannot be read and no blocks were kept to rebuild them.
    """
    if run.info.sink not in {sink.name.lower() for sink in Sink}:
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration, which this version "
                                         "cannot decode; a newer one can: pip install --upgrade hypermon")
    done, reason = usable_account(run, _recorded, whole)
    if done is not None and not names_due(run, done[PARTS]):
        return done
    with locked(run.path, tell):
        # Another process may have decoded it meanwhile. Naming writes tables again, so damage must be found before.
        done, reason = usable_account(run, _recorded, whole=True)
        if done is None and run.info.keep != "raw":
            raise InputError(run.path / ACCOUNT, None, f"{reason}; and the run was recorded with --keep "
                                                        f"{run.info.keep}: there are no blocks to decode again")
        if done is None:
            if reason not in USUAL and tell is not None:
                tell(f"{run.path}: decoded anew, because {reason}")
            done = _decode_boards(run) if run.info.boards else _decode(run, progress)
        return read_account(run, _recorded)[0] if name_events(run, done[PARTS]) else done


def count_run(run: RunDirectory, progress: Progress | None = None,
              tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Returns the :func:`summary` of a RUN. If it has no tables yet, none are written, which saves most of the time.

    Parameters and exceptions are those of :func:`decode_run`. It is called if the answer needs tables: for a run of
    several boards, one that was not recorded raw, and one with a dictionary.
    """
    if tables_needed(run):
        return decode_run(run, progress, tell)
    return _pass(run, progress, lambda _: None, lambda _: None)[0]


def tables_needed(run: RunDirectory) -> bool:
    """Whether queries on a RUN use tables, because these exist or because the stream alone is not enough.

    The stream is not enough for a run of several boards, one that was not recorded raw, and one with a dictionary.
    """
    if run.info.boards or run.info.keep != "raw" or kept_dictionary(run) is not None:
        return True
    done, reason = usable_account(run, _recorded)
    return done is not None or reason not in USUAL or run.info.sink not in {sink.name.lower() for sink in Sink}


def stream_tables(run: RunDirectory) -> Iterator[pa.Table]:
    """Reads the items of a RUN from its stream, in the order and form of the tables. No tables are written.

    Raises
    ------
    InputError
        if items arrived too late to be in order. Tables have them in order.
    """
    ledger, scanner = Ledger.of(run.info), BlockScanner(join=True)
    with run.stream() as (begins, pieces):
        if begins is not None:
            ledger.resume(begins)

        def scanned() -> Iterator[Scanned]:
            for piece in pieces:
                yield from scanner.feed(piece)
                ledger.take_losses()
            yield from scanner.finish()

        for rows in ledger.rows_to_end(scanned()):
            if ledger.too_late:
                raise InputError(run.path, None, "items in it arrived after later ones had been returned; tables have "
                                                 "them in order: hypermon decode RUN, then read it again")
            yield _table(rows, run.info.scale)


def _recorded(part: RunDirectory) -> Mapping[str, Part]:
    """The tables of a board that was recorded without its stream."""
    tables: Mapping[str, Part] = decode_run(part)[PARTS]
    return tables


def _decode_boards(run: RunDirectory) -> dict[str, Any]:
    """Decodes a recording of several boards."""
    made = made_of(run, _recorded)
    result, parts = store_boards(run, lambda part: made_of_board(part, _recorded), _read_board, cores())
    return write_account(run.path, run.info, result, parts, made)


def _read_board(part: RunDirectory, events: Callable[[pa.Table], object],
                losses: Callable[[list[Any]], object]) -> tuple[dict[str, Any], pa.Table | None]:
    """Reads the recording of one of several boards: its stream, or the tables that were recorded instead."""
    scale = part.info.scale
    if part.info.keep == "raw":
        result, late = _pass(part, None, lambda rows: events(_table(rows, scale)), losses)
        return result, None if late is None else late.events(scale)
    done = decode_run(part, whole=True)
    for batch in event_batches(event_files(part, done[PARTS]), Selection()):
        events(pa.Table.from_batches([batch]))
    for path in loss_files(part, done[PARTS]):
        losses([tuple(row.values()) for row in pq.ParquetFile(path).read().to_pylist()])
    return done, None


def _table(rows: Rows, scale: TimeScale) -> pa.Table:
    found = rows.events(scale)
    return event_table(found) if isinstance(found, Events) else found


def _decode(run: RunDirectory, progress: Progress | None) -> dict[str, Any]:
    info = run.info
    with aside(run.path) as new:
        losses = TableWriter(new / LOSS_TABLE, LOSS_SCHEMA)
        with EventWriter(new / "events", event_schema(info.item_modes, info.nodes), cores()) as events:
            result, late = _pass(run, progress, lambda rows: events.add(rows.events(info.scale)), losses.add)
        if late is not None:
            insert_events(new / "events", late.events(info.scale))
        losses.close()
        return _put_in_place(run, new, result, {**made_of(run, _recorded), "stream_size": result["stream_size"]})


def _pass(run: RunDirectory, progress: Progress | None, events: Callable[[Rows], object],
          losses: Callable[[list[Any]], object]) -> tuple[dict[str, Any], ItemTable | None]:
    """Reads a run's stream. Returns its :func:`summary`, and the rows that arrived too late to be in order.

    Parameters
    ----------
    events, losses : called with all rows that arrived in order, and with all losses.
    """
    info = run.info
    ledger = Ledger.of(info)
    scanner = BlockScanner(join=True)
    total, size = run.stream_size, 0
    with run.stream() as (begins, pieces):
        if begins is not None:
            ledger.resume(begins)

        def scanned() -> Iterator[Scanned]:
            nonlocal size
            for piece in pieces:
                size += len(piece)
                yield from scanner.feed(piece)
                losses(list(ledger.take_losses()))
                if progress is not None:
                    progress(size, total, ledger)
            yield from scanner.finish()

        for rows in ledger.rows_to_end(scanned()):
            events(rows)
    losses(list(ledger.take_losses()))
    begun = 0 if begins is None else int(begins["window"])
    return summary(ledger, size, begun, changed_stream(run)), ledger.late_rows()


def _put_in_place(run: RunDirectory, new: Path, result: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Replaces the old tables. The old decode is invalid from the first step on, and the new one is valid after the
    last step, even after a power cut."""
    for path in new.rglob("*.parquet"):
        sync_file(path)
    sync_directory(new / "events")
    parts = tables_of(new)
    if os.path.lexists(run.path / ACCOUNT):
        os.rename(run.path / ACCOUNT, new / "old.json")
    names = ("events", LOSS_TABLE)
    with all_or_none(run.path / name for name in names):
        for name in names:
            put(new / name, run.path / name, new)
        sync_directory(run.path)
        return write_account(run.path, run.info, result, parts, made)
