"""A RUN's event dictionary: ``RUN/dictionary.toml``, and the columns it adds to the RUN's tables of events.

A table that has been decoded with a dictionary records this in the metadata of its schema, so that no work is repeated:
the dictionary's digest, the columns that it added, and how well the two match.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.dictionary.dictionary import Dictionary, load_dictionary
from hypermon.host.dictionary.fields import Fit, decode_fields
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside, refuse_unwritable
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.parts import Part, fault, replace_part
from hypermon.host.recording.segments import replace_file
from hypermon.host.tables.parquet_file import ParquetFile, unreadable
from hypermon.host.text.json_file import Shape, integer, listed, maybe, parse_json, table, text

__all__ = ["FRAMED", "KEPT", "fit_of", "keep_dictionary", "kept_dictionary", "name_events", "name_files",
           "names_due", "write_named"]

KEPT = "dictionary.toml"
#: Events that were framed from nibbles; see :mod:`hypermon.host.events`.
FRAMED = "framed.parquet"
_DIGEST, _FIT, _ADDED = b"hypermon.dictionary", b"hypermon.fit", b"hypermon.columns"
#: The required contents of the last two.
_FIT_SHAPE = table(dict.fromkeys(("named", "unknown", "short", "long"), integer(0, 1 << 62)))
_ADDED_SHAPE = maybe(listed(text()))


def keep_dictionary(run: RunDirectory, path: str | os.PathLike[str]) -> Dictionary:
    """Copies a dictionary into the RUN, replacing the one it may have. Raises InputError if it is invalid, or if
    the RUN cannot be written.
    """
    dictionary = load_dictionary(path)
    kept = run.path / KEPT
    if not kept.is_file() or kept.read_bytes() != dictionary.source:
        try:
            replace_file(kept, dictionary.source)
        except OSError as error:
            refuse_unwritable(run.path, error, "the dictionary must be kept in it")
            raise
    return dictionary


def kept_dictionary(run: RunDirectory) -> Dictionary | None:
    """The RUN's dictionary, if it has one; raises InputError if it has been damaged."""
    kept = run.path / KEPT
    if kept.is_file():
        return load_dictionary(kept)
    if os.path.lexists(kept):
        raise InputError(kept, None, "it is not a file")
    return None


def names_due(run: RunDirectory, parts: Mapping[str, Part]) -> list[str]:
    """The tables whose events have not been named with the RUN's dictionary yet, and those that do not say.

    Parameters
    ----------
    parts : the tables of its decode.
    """
    return _due(run, kept_dictionary(run), parts, False)


def _due(run: RunDirectory, dictionary: Dictionary | None, parts: Mapping[str, Part], whole: bool) -> list[str]:
    if dictionary is None:
        return []
    own = [name for name in sorted(parts) if name.startswith("events/") and run.info.item_modes.events]
    framed = [FRAMED] if FRAMED in parts and fault(run.path / FRAMED, parts[FRAMED], whole) is None else []
    return [name for name in own + framed if not _named(run.path / name, dictionary)]


def _named(path: Path, dictionary: Dictionary) -> bool:
    try:
        return fit_of(path, dictionary) is not None
    except InputError:
        return False


def name_events(run: RunDirectory, parts: Mapping[str, Part]) -> bool:
    """Names the events of a RUN's tables, in place, if that is not done yet; returns whether it did.

    The caller must ensure that nothing else decodes the RUN meanwhile, and that the tables that are due are whole:
    they are written again.
    """
    dictionary = kept_dictionary(run)
    due = _due(run, dictionary, parts, True)
    return dictionary is not None and name_files(run.path, due, dictionary)


def fit_of(path: Path, dictionary: Dictionary) -> Fit | None:
    """How well a file's table matches the dictionary it was decoded with; None if it was decoded with another one.

    Raises InputError if the file is not a table.
    """
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as error:     # ValueError: a column's name is no text
        raise unreadable(path, error) from None
    if metadata.get(_DIGEST) != dictionary.digest.encode():
        return None
    return Fit(**_noted(path, metadata, _FIT, _FIT_SHAPE))


def _noted(path: Path, metadata: Mapping[bytes, bytes], key: bytes, shape: Shape) -> Any:
    """A value in the metadata of a file. Raises InputError if it does not have that shape."""
    try:
        value = parse_json(metadata.get(key, b"null"))
        shape(key.decode(), value)
        return value
    except ValueError as error:
        raise InputError(path, None, f"its metadata make no sense: {error}") from None


def name_files(run: Path, names: Iterable[str], dictionary: Dictionary) -> bool:
    """Decodes tables of a decoded RUN, one by one, each atomically; returns whether there were any to decode.

    Files that were already decoded with this dictionary are left unchanged; a second call does nothing.
    """
    due = [name for name in names if fit_of(run / name, dictionary) is None]
    for name in due:
        _name_file(run, name, dictionary)
    return bool(due)


def _name_file(run: Path, name: str, dictionary: Dictionary) -> None:
    with pq.ParquetFile(run / name) as file, aside(run) as new:
        # The metadata was written with the table: the schema does not contain it.
        metadata = dict(file.metadata.metadata or {})
        table = file.schema_arrow.empty_table().replace_schema_metadata(metadata)
        if unknown := set(_noted(run / name, metadata, _ADDED, _ADDED_SHAPE) or []) - set(table.schema.names):
            raise InputError(run / name, None,
                             f"its metadata name a column {min(unknown)[:60]!r}, which it does not have")
        groups = (_bare(file.read_row_group(group)) for group in range(file.num_row_groups))
        try:
            write_named(new / FRAMED, _bare(table).schema, groups, dictionary)
            replace_part(run, new / FRAMED, name)
        except pa.ArrowException as error:
            raise unreadable(run / name, error) from None


def write_named(path: Path, schema: pa.Schema, tables: Iterable[pa.Table], dictionary: Dictionary | None) -> Fit:
    """Writes events to a file, one row group per table; with the columns of a dictionary, and a note of them in its
    metadata.
    """
    fit = Fit()
    if dictionary is not None:
        schema = decode_fields(schema.empty_table(), dictionary)[0].schema
    with ParquetFile(path, schema, compression="zstd", compression_level=1,
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
    """Without the columns that a dictionary added, and without the note of it."""
    metadata = dict(table.schema.metadata or {})
    added = json.loads(metadata.pop(_ADDED, b"[]"))
    for key in (_DIGEST, _FIT, b"ARROW:schema"):
        metadata.pop(key, None)
    return table.drop_columns(added).replace_schema_metadata(metadata or None)
