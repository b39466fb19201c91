"""Long messages and log lines of a RUN: ``RUN/logs.parquet``, joined when it is first needed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.named_events import named_files
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.dictionary import Logging
from hypermon.host.dictionary.long_messages import LOG_SCHEMA, Joiner, LogLine
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.recording.parts import checksum
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["LOGS", "log_file"]

LOGS = "logs.parquet"
#: Of the file, in the metadata of its schema: what it was made of.
_MADE_OF = b"hypermon.made_of"
_FORMAT = 1
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
    sums = [[file.relative_to(run.path).as_posix(), checksum(file)] for file in files]
    made_of = json.dumps([_FORMAT, dictionary.digest, sums]).encode()
    if path.is_file() and _made_of(path) == made_of:
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
    table = pa.concat_tables(tables).sort_by([("time_ps", "ascending"), ("node", "ascending")])
    aside = run.path / f".{LOGS}.new"
    pq.write_table(table.replace_schema_metadata({_MADE_OF: made_of}), aside, compression="zstd")
    os.replace(aside, path)
    return path


def _made_of(path: Path) -> bytes | None:
    try:
        return (pq.read_schema(path).metadata or {}).get(_MADE_OF)
    except pa.ArrowException:
        return None


def _rows(batch: pa.RecordBatch, own: Logging) -> Iterator[dict[str, object]]:
    ids = pa.array([own.piece, own.log, own.text], pa.uint8())
    yield from batch.filter(pc.is_in(batch["event"], ids)).to_pylist()


def _table(lines: Iterator[LogLine]) -> pa.Table:
    return pa.Table.from_pylist([line._asdict() for line in lines], schema=LOG_SCHEMA)
