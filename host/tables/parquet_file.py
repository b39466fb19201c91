"""A Parquet file that is written table by table, and is given up when its disk fails."""

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.errors import InputError

__all__ = ["ParquetFile", "unreadable", "write_table"]


class ParquetFile(pq.ParquetWriter):  # type: ignore[misc]
    """pyarrow's writer. A file that nobody closes, or whose end cannot be written, is given up: its destructor neither
    writes nor complains."""

    def close(self) -> None:
        """Writes the footer, and closes the file. Raises OSError."""
        try:
            super().close()
        finally:
            self.is_open = False

    def __del__(self) -> None:
        self.is_open = False
        # Not there if the file could not be opened. Arrow would say a second time why it cannot be closed.
        if getattr(self, "file_handle", None) is not None:
            with contextlib.suppress(OSError):
                self.file_handle.close()


def write_table(table: pa.Table, path: Path, **options: Any) -> None:
    """Writes a file of one table, with pyarrow's options. Raises OSError; the file may then exist, and not be whole."""
    with ParquetFile(path, table.schema, **options) as file:
        file.write_table(table)


def unreadable(path: Path, error: Exception) -> InputError:
    """What to raise if pyarrow cannot read a file."""
    return InputError(path, None, f"it cannot be read: {(str(error).splitlines() or [type(error).__name__])[0][:300]}")
