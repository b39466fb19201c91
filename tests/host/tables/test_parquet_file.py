"""A Parquet file on a full disk: one error for who closes it, and none from its destructor."""

import subprocess
import sys

import pytest

_BEGIN = """
import gc, pyarrow as pa
from hypermon.host.tables.parquet_file import ParquetFile
table = pa.table({"a": list(range(5))})
file = ParquetFile("a.parquet", table.schema)
"""
#: From here on, a file has four bytes at most: what a Parquet file begins with.
_FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
"""
_CLOSED = """
try:
    file.close()
except OSError as error:
    print("refused", error.errno)
"""


def said(place, *lines):
    """What a program of its own prints, on both outputs."""
    done = subprocess.run([sys.executable, "-c", "\n".join((_BEGIN, *lines, "del file", "gc.collect()"))], cwd=place,
                          capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.parametrize("rows", [[], ["file.write_table(table)"]], ids=["empty", "rows"])
def test_a_file_that_is_given_up_is_silent(tmp_path, rows):
    assert said(tmp_path, *rows, _FULL) == ("", "")


def test_who_closes_a_file_is_told_once(tmp_path):
    assert said(tmp_path, _FULL, _CLOSED) == ("refused 27\n", "")


def test_a_file_that_is_given_up_has_no_footer(tmp_path):
    assert said(tmp_path, "file.write_table(table)") == ("", "")
    assert not (tmp_path / "a.parquet").read_bytes().endswith(b"PAR1")
