"""Tables of a run of several boards in DuckDB, with the columns ``board`` and ``date`` of their paths."""

from collections.abc import Sequence
from pathlib import Path

from hypermon.host.dictionary.semantics import text

__all__ = ["board_tables"]


def board_tables(paths: Sequence[Path]) -> str:
    """SQL for all rows of files that boards have written; ``board`` smallint and ``date`` date are added.

    DuckDB omits files of boards and days that a query does not ask for, unless a directory above the RUN has a name
    that DuckDB would take for such a column.
    """
    files = ", ".join(text(str(path)) for path in paths)
    strange = [name for path in paths for name in path.parts[:-3] if "=" in name]
    if not strange:
        return (f"select * from read_parquet([{files}], hive_partitioning = true, "
                "hive_types = {'board': smallint, 'date': date})")
    return (r"select * exclude (filename), regexp_extract(filename, 'board=(\d+)/[^/]*/[^/]*$', 1)::smallint as board, "
            rf"regexp_extract(filename, 'date=([^/]*)/[^/]*$', 1)::date as date from read_parquet([{files}], "
            "hive_partitioning = false, filename = true)")
