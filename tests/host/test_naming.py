"""A RUN's dictionary, and files that are decoded with it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.host.dictionary import load_dictionary
from hypermon.host.framing import EVENT_SCHEMA
from hypermon.host.naming import fit_of, name_files


def parts(folder: Path) -> list[pa.Table]:
    """Two files of two row groups, and an empty one."""
    tables = []
    for number in range(2):
        table = pa.Table.from_arrays([
            pa.array(range(8), pa.int64()), pa.array([number] * 8, pa.int16()), pa.array([1, 2] * 4, pa.uint8()),
            pa.array([bytes([i, number]) for i in range(8)], pa.binary()), pa.array([False] * 8)], schema=EVENT_SCHEMA)
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=5)
        tables.append(table)
    pq.write_table(EVENT_SCHEMA.empty_table(), folder / "part-2.parquet")
    return tables


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    tables = parts(folder)
    (tmp_path / "a.toml").write_text(
        "[a]\nid = 1\nfields = { x = 'u8', y = { type = 'u8', values = { none = 0, one = 1 } } }\n")
    book = load_dictionary(tmp_path / "a.toml")
    assert vars(name_files(folder, book)) == {"named": 8, "unknown": 8, "short": 0, "long": 0}
    read = pq.read_table(folder)
    assert read.select(EVENT_SCHEMA.names).equals(pa.concat_tables(tables))
    assert read["name"].to_pylist() == ["a", None] * 8
    assert read["x"].to_pylist() == [x if x % 2 == 0 else None for x in range(8)] * 2
    assert read["y"].to_pylist() == ["none", None] * 4 + ["one", None] * 4
    assert pq.ParquetFile(folder / "part-0.parquet").num_row_groups == 2

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert vars(name_files(folder, book)) == {"named": 8, "unknown": 8, "short": 0, "long": 0}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    # Cut off between two files: what is missing is done, what is there is counted.
    (tmp_path / "b.toml").write_text("[b]\nid = 2\nfields = { x = 'u16', z = 'u8' }\n")
    other = load_dictionary(tmp_path / "b.toml")
    replace, calls = __import__("os").replace, []

    def once(old: object, new: object) -> None:
        calls.append(new)
        if len(calls) > 1:
            raise OSError("cut off")
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", once)
        with pytest.raises(OSError, match="cut off"):
            name_files(folder, other)
    assert [fit_of(pq.read_schema(p), other) is None for p in sorted(folder.iterdir())] == [False, True, True]
    assert sorted(p.name for p in folder.iterdir()) == sorted(before)
    assert vars(name_files(folder, other)) == {"named": 8, "unknown": 8, "short": 8, "long": 0}
    assert pq.read_table(folder).column_names == [*EVENT_SCHEMA.names, "name", "x", "z"]
