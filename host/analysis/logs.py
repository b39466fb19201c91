"""Long messages and log lines of a RUN: ``RUN/logs.parquet``, joined when it is first needed.

``logs.json`` states what the table was made of, and describes the file: it is made again if either is different.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.analysis.named_events import named_files
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Logging
from hypermon.host.dictionary.long_messages import LOG_SCHEMA, Joiner, LogLine
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import PART, PARTS, checksum, described, faults
from hypermon.host.recording.segments import sync_file, write_json
from hypermon.host.tables.parquet_file import write_table
from hypermon.host.tables.selection import Selection, selected_batches
from hypermon.host.text.json_file import anything, mapping, read_json, table

__all__ = ["LOGS", "log_file"]

LOGS = "logs.parquet"
_MADE_OF = "logs.json"
_FORMAT = 2
_SHAPE = table({"made_of": mapping(anything()), PARTS: table({LOGS: PART})})
_COLUMNS = ["time_ps", "node", "event", "payload", "aborted"]


def log_file(run: DecodedRun) -> Path | None:
    """The file of a RUN's messages, in the columns of :data:`.LOG_SCHEMA`, by time; None without a dictionary that has
    a table ``logging``, or without events.

    Memory grows with the number of messages.
    """
    dictionary, files = kept_dictionary(run), named_files(run)
    if dictionary is None or dictionary.logging is None or not files:
        return None
    path = run.path / LOGS
    sums = {file.relative_to(run.path).as_posix(): checksum(file) for file in files}
    made_of = {"format": _FORMAT, "dictionary": dictionary.digest, "files": sums}
    if _current(run.path, made_of):
        return path
    loss = run.loss()
    losses = list(zip(*(loss[name].to_pylist() for name in ("node", "from_ps", "to_ps")), strict=True))
    tables = []
    # Nodes in event mode, and those whose nibbles were framed, have separate files.
    for framed in (False, True):
        own = [file for file in files if (file.parent == run.path) == framed]
        joiner = Joiner(dictionary, losses)
        for batch in selected_batches(own, Selection(columns=_COLUMNS)):
            tables.append(_table(joiner.add(_rows(batch, dictionary.logging))))
        tables.append(_table(joiner.finish()))
    joined = pa.concat_tables(tables).sort_by([("time_ps", "ascending"), ("node", "ascending")])
    with locked(run.path, run.tell), aside(run.path) as new:
        write_table(joined, new / LOGS, compression="zstd")
        sync_file(new / LOGS)
        part = described(new / LOGS)
        os.replace(new / LOGS, path)
        write_json(run.path / _MADE_OF, {"made_of": made_of, PARTS: {LOGS: part}})
    return path


def _current(run: Path, made_of: dict[str, Any]) -> bool:
    """The existing table was made of this, and is whole."""
    try:
        values = read_json(run / _MADE_OF, _SHAPE)
    except (FileNotFoundError, InputError):
        return False
    return bool(values["made_of"] == made_of) and not faults(run, values[PARTS], whole=True)


def _rows(batch: pa.RecordBatch, own: Logging) -> Iterator[dict[str, object]]:
    ids = pa.array([own.piece, own.log, own.text], pa.uint8())
    yield from batch.filter(pc.is_in(batch["event"], ids)).to_pylist()


def _table(lines: Iterator[LogLine]) -> pa.Table:
    return pa.Table.from_pylist([line._asdict() for line in lines], schema=LOG_SCHEMA)
