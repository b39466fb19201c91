"""A RUN's event dictionary: ``RUN/dictionary.toml``, and what it adds to the RUN's tables of events.

A table that has been decoded with a dictionary says so in the metadata of its schema, so that nothing is
done twice: the dictionary's digest, the columns that it added, and how well the two fit.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.dictionary import Dictionary, load_dictionary
from hypermon.host.fields import Fit, decode_fields
from hypermon.host.recording import Run

__all__ = ["FRAMED", "KEPT", "events_per_name", "fit_of", "keep_dictionary", "kept_dictionary", "name_events",
           "name_files", "named_files", "write_named"]

KEPT = "dictionary.toml"
#: Events that were framed from nibbles; see :mod:`hypermon.host.events`.
FRAMED = "framed.parquet"
_DIGEST, _FIT, _ADDED = b"hypermon.dictionary", b"hypermon.fit", b"hypermon.columns"


def keep_dictionary(run: Run, path: str | os.PathLike[str]) -> Dictionary:
    """Copies a dictionary into the RUN, instead of the one it may have; raises InputError if it is wrong."""
    dictionary = load_dictionary(path)
    kept = run.path / KEPT
    if not kept.is_file() or kept.read_bytes() != dictionary.source:
        aside = run.path / f".{KEPT}.new"
        aside.write_bytes(dictionary.source)
        os.replace(aside, kept)
    return dictionary


def kept_dictionary(run: Run) -> Dictionary | None:
    """The RUN's dictionary, if it has one; raises InputError if it has been spoilt."""
    kept = run.path / KEPT
    return load_dictionary(kept) if kept.is_file() else None


def named_files(run: Run) -> list[Path]:
    """The tables that have events: of nodes in event mode, and those that were framed from nibbles."""
    own = sorted((run.path / "events").glob("*.parquet")) if run.info.item_modes.events else []
    return own + [path for path in [run.path / FRAMED] if path.is_file()]


def name_events(run: Run) -> Fit | None:
    """Names the events of a RUN's tables, in place, if that is still to be done.

    Returns
    -------
    how well they fit; None without such tables, or without a dictionary. The caller sees to it that nobody else
    decodes the RUN meanwhile.
    """
    dictionary, files = kept_dictionary(run), named_files(run)
    return name_files(files, dictionary, run.path) if dictionary is not None and files else None


def events_per_name(run: Run) -> dict[str, int]:
    """Whole events of every name, as many as there are in the tables; those of other ids are not among them."""
    dictionary = kept_dictionary(run)
    counts = {kind.name: 0 for kind in dictionary.events} if dictionary is not None else {}
    for path in named_files(run) if counts else []:
        table = pq.read_table(path, columns=["name"], filters=~pc.field("aborted"))
        for row in table["name"].value_counts().to_pylist():
            if row["values"] is not None:
                counts[row["values"]] += row["counts"]
    return counts


def fit_of(path: Path, dictionary: Dictionary) -> Fit | None:
    """How well a file's table fits the dictionary it was decoded with; None if that was not this one."""
    metadata = pq.read_metadata(path).metadata or {}
    if metadata.get(_DIGEST) != dictionary.digest.encode():
        return None
    return Fit(**json.loads(metadata[_FIT]))


def name_files(paths: Iterable[Path], dictionary: Dictionary, folder: Path) -> Fit:
    """Decodes Parquet files, one by one, each at once there or not at all.

    Files that this dictionary has been through already stay as they are; a second call does nothing.

    Parameters
    ----------
    folder : for the file that is being made: on the same file system, and nowhere a reader looks for tables.
    """
    total = Fit()
    for path in paths:
        fit = fit_of(path, dictionary)
        total += _name_file(path, dictionary, folder / f".{path.name}.new") if fit is None else fit
    return total


def _name_file(path: Path, dictionary: Dictionary, aside: Path) -> Fit:
    with pq.ParquetFile(path) as file:
        # What stands in the metadata was written when the table was: the schema does not know it.
        table = file.schema_arrow.empty_table().replace_schema_metadata(file.metadata.metadata)
        groups = (_bare(file.read_row_group(group)) for group in range(file.num_row_groups))
        try:
            fit = write_named(aside, _bare(table).schema, groups, dictionary)
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    return fit


def write_named(path: Path, schema: pa.Schema, tables: Iterable[pa.Table], dictionary: Dictionary | None) -> Fit:
    """Writes events to a file, a row group a table; with what a dictionary adds, and a note of that in its metadata."""
    fit = Fit()
    if dictionary is not None:
        schema = decode_fields(schema.empty_table(), dictionary)[0].schema
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1,
                          use_dictionary=[name for name in schema.names if name != "time_ps"],
                          column_encoding={"time_ps": "DELTA_BINARY_PACKED"}) as writer:
        for table in tables:
            if dictionary is not None:
                table, found = decode_fields(table, dictionary)
                fit += found
            writer.write_table(table.replace_schema_metadata(schema.metadata))
        if dictionary is not None:
            writer.add_key_value_metadata(_note(dictionary, fit))
    return fit


def _note(dictionary: Dictionary, fit: Fit) -> dict[bytes, str]:
    return {_DIGEST: dictionary.digest, _FIT: json.dumps(asdict(fit)),
            _ADDED: json.dumps(["name", *dict.fromkeys(dictionary.columns.values())])}


def _bare(table: pa.Table) -> pa.Table:
    """Without what a dictionary added, and without the note of it."""
    metadata = dict(table.schema.metadata or {})
    added = json.loads(metadata.pop(_ADDED, b"[]"))
    for key in (_DIGEST, _FIT, b"ARROW:schema"):
        metadata.pop(key, None)
    return table.drop_columns(added).replace_schema_metadata(metadata or None)
