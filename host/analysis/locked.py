"""DuckDB connections for SQL that a user has written: they read given tables only, and write nothing."""

import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

import duckdb
from hypermon.host.dictionary.semantics import text

__all__ = ["SETTINGS", "lock"]

#: Settings of a connection: it loads no extensions, and uses no names from the program around it.
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False, "autoload_known_extensions": False, "allow_community_extensions": False,
    "python_enable_replacements": False}


def lock(connection: duckdb.DuckDBPyConnection, files: Iterable[Path]) -> None:
    """Restricts a connection to these files, and to a directory of its own for what does not fit into memory.

    Its settings cannot be changed afterwards.
    """
    spill = Path(tempfile.gettempdir(), f"hypermon-{secrets.token_hex(8)}")
    connection.execute("set temp_directory = ?", [str(spill)])
    connection.execute(f"set allowed_paths = [{', '.join(text(str(path)) for path in files)}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
