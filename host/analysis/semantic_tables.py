"""The files of states, messages and counters in a RUN.

:mod:`.semantics` has the queries. DuckDB makes the three tables from the RUN's named events. It uses the disk if they
do not fit into memory. ``semantics.json`` states what they were made from, so that they are rebuilt when that changes.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.analysis.named_events import named_files
from hypermon.host.analysis.state_table import write_states
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.table_files import by_board, event_batches
from hypermon.host.decode.unrecorded import END_PS, absent, masked_events, unrecorded
from hypermon.host.dictionary.dictionary import Dictionary
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary
from hypermon.host.dictionary.semantics import TABLES, create_views, text
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import PART, PARTS, Part, all_or_none, described, faults, put
from hypermon.host.recording.segments import write_json
from hypermon.host.tables.parquet_file import ParquetFile
from hypermon.host.tables.selection import Selection
from hypermon.host.text.json_file import anything, mapping, read_json, table

__all__ = ["known_semantics", "semantic_files", "view_events"]

#: Of ``semantics.json``.
_FORMAT = 9
_MADE_OF = "semantics.json"
_SHAPE = table({"made_of": mapping(anything()),
                "parts": table({f"{name}.parquet": PART for name in TABLES})})
#: DuckDB's errors of files end with JSON.
_ERRNO = re.compile(r'"errno":"(\d+)"')
_ORDERS = {"messages": "coalesce(sent_ps, received_ps), coalesce(send_row, receive_row)",
           "counters": "row, counter"}


def semantic_files(run: DecodedRun) -> dict[str, Path]:
    """The files of the three tables, made unless they are whole; none without a dictionary or named events."""
    dictionary, files = kept_dictionary(run), named_files(run)
    if dictionary is None or not files:
        return {}
    done = run.decode()
    parts, unseen = done[PARTS], _unseen(run, done)
    paths, losses = {name: run.path / f"{name}.parquet" for name in TABLES}, run.loss_files()
    names = [path.relative_to(run.path).as_posix() for path in (*files, *losses)]
    made_of = _noted(dictionary, parts, names, unseen)
    if _current(run, made_of):
        return paths
    with locked(run.path, run.tell):
        if not _current(run, made_of):      # another process may have made them meanwhile
            with aside(run.path) as new:
                if os.path.lexists(run.path / _MADE_OF):
                    os.rename(run.path / _MADE_OF, new / "old.json")
                with all_or_none(paths.values()):
                    made = _make(run, dictionary, files, unseen, paths, new)
                    write_json(run.path / _MADE_OF, {"made_of": made_of, "parts": made})
    return paths


def known_semantics(run: DecodedRun) -> dict[str, Part] | None:
    """The descriptions of the three files, if these are marked as whole, and were made from the RUN's tables. None of
    these is read, and nothing is made.
    """
    dictionary, done = kept_dictionary(run), run.decode()
    if dictionary is None:
        return None
    parts = done[PARTS]
    names = [name for name in parts if name == FRAMED or not name.startswith(("events/", "boards."))
             or (name.startswith("events/") and run.info.item_modes.events)]
    try:
        values: dict[str, Any] = read_json(run.path / _MADE_OF, _SHAPE)
    except (FileNotFoundError, InputError):
        return None
    made_of = _noted(dictionary, parts, names, _unseen(run, done))
    if values["made_of"] != made_of or faults(run.path, values["parts"]):
        return None
    found: dict[str, Part] = values["parts"]
    return found


def _unseen(run: DecodedRun, done: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Node, from_ps, to_ps: where events may be missing that the loss table does not have."""
    return [*absent(run, done), *((node, from_ps, END_PS) for node, from_ps in unrecorded(run, done).items())]


def _noted(dictionary: Dictionary, parts: Mapping[str, Part], names: Sequence[str],
           unseen: Iterable[tuple[int, int, int]]) -> dict[str, Any]:
    """What the tables are made of."""
    return {"format": _FORMAT, "dictionary": dictionary.digest,
            "unseen": [list(row) for row in unseen],
            "files": {name: [parts[name]["bytes"], parts[name]["crc32"]] for name in names}}


def view_events(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], folder: Path | None = None) -> None:
    """Creates a view ``events`` of files, whose rows are in order of time, ties by node, whichever board wrote them.

    Parameters
    ----------
    folder : a directory where the events of several boards are put in order, in a file that the view reads.
    """
    if folder is not None and len(by_board(files)) > 1:
        files = [_in_order(files, folder / "events.parquet")]
    connection.read_parquet([str(path) for path in files], union_by_name=True).create_view("events")


def _in_order(files: Sequence[Path], path: Path) -> Path:
    """Writes the events of several boards to a file, in order."""
    schema = pa.unify_schemas([pq.read_schema(own[0]).remove_metadata() for own in by_board(files)],
                              promote_options="permissive")
    with ParquetFile(path, schema) as writer:
        for batch in event_batches(files, Selection()):
            table = pa.concat_tables([schema.empty_table(), pa.Table.from_batches([batch])],
                                     promote_options="permissive")
            writer.write_table(table.cast(schema))
    return path


def _current(run: DecodedRun, made_of: dict[str, Any]) -> bool:
    """The existing tables were made from this input, and are whole."""
    try:
        values = read_json(run.path / _MADE_OF, _SHAPE)
    except (FileNotFoundError, InputError):
        return False
    return bool(values["made_of"] == made_of) and not faults(run.path, values["parts"], whole=True)


def _make(run: DecodedRun, dictionary: Dictionary, files: list[Path], unseen: Iterable[tuple[int, int, int]],
          paths: dict[str, Path], new: Path) -> dict[str, Part]:
    """Makes the tables in a directory, and moves them to their final paths. Raises InputError and OSError."""
    try:
        with duckdb.connect() as connection:
            connection.execute("set temp_directory = ?", [str(new / "spill")])
            view_events(connection, files, new)
            losses = [str(path) for path in run.loss_files()]
            connection.read_parquet(losses, hive_partitioning=False).create_view("loss")
            create_views(connection, dictionary, unseen, masked_events(run, run.decode()))
            for name in ("messages", "counters"):
                connection.execute(f"copy (from {name} order by {_ORDERS[name]}) "
                                   f"to {text(str(new / name))} (format parquet)")
            rows = sum(pq.read_metadata(path).num_rows for path in files)
            write_states(connection, rows, run.info.nodes, new / "states", new)
    except duckdb.Error as error:
        if number := _ERRNO.search(str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from None
        raise InputError(new.parent, None, f"its states, messages and counters cannot be made: "
                                           f"{str(error).splitlines()[0][:300]}") from None
    made = {path.name: described(new / name) for name, path in paths.items()}
    for name, path in paths.items():
        put(new / name, path, new)
    return made
