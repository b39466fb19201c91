"""A Parquet file that is written table by table, and is given up when its disk fails."""

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

__all__ = ["ParquetFile", "write_table"]


class ParquetFile(pq.ParquetWriter):  # type: ignore[misc]
    """pyarrow's writer. After an error at the end it does not try again, in its destructor, to write."""

    def close(self) -> None:
        """Writes the footer, and closes the file. Raises OSError."""
        try:
            super().close()
        finally:
            self.is_open = False


def write_table(table: pa.Table, path: Path, **options: Any) -> None:
    """Writes a file of one table, with pyarrow's options. Raises OSError; the file may then exist, and not be whole."""
    with ParquetFile(path, table.schema, **options) as file:
        file.write_table(table)
