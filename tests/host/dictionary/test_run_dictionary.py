"""A RUN's dictionary, and files that are decoded with it."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import Sink, Window
from hypermon.host import cli
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.decode.event_framing import EVENT_SCHEMA
from hypermon.host.dictionary.dictionary import Dictionary, load_dictionary
from hypermon.host.dictionary.fields import Fit
from hypermon.host.dictionary.run_dictionary import fit_of, keep_dictionary, name_files
from hypermon.host.errors import InputError
from hypermon.host.recording.parts import ACCOUNT, NEXT, PARTS, described, faults
from hypermon.host.recording.segments import write_json
from hypermon.host.run import Run
from hypermon.host.tables import item_order, parquet

from tests.host.fake_board import FakeBoard


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


def name_all(folder: Path, dictionary: Dictionary) -> Fit:
    """With an account of just these files."""
    account = folder.parent / ACCOUNT
    if not account.exists():
        write_json(account, {PARTS: {f"events/{path.name}": described(path) for path in folder.iterdir()}, NEXT: {}})
    name_files(folder.parent, sorted(f"events/{path.name}" for path in folder.iterdir()), dictionary)
    total = Fit()
    for path in folder.iterdir():
        total += fit_of(path, dictionary)
    assert faults(folder.parent, json.loads(account.read_text())[PARTS]) == []
    return total


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    tables = parts(folder)
    (tmp_path / "a.toml").write_text(
        "[a]\nid = 1\nfields = { x = 'u8', y = { type = 'u8', values = { none = 0, one = 1 } } }\n")
    book = load_dictionary(tmp_path / "a.toml")
    assert vars(name_all(folder, book)) == {"named": 8, "unknown": 8, "short": 0, "long": 0}
    read = pq.read_table(folder)
    assert read.select(EVENT_SCHEMA.names).equals(pa.concat_tables(tables))
    assert read["name"].to_pylist() == ["a", None] * 8
    assert read["x"].to_pylist() == [x if x % 2 == 0 else None for x in range(8)] * 2
    assert read["y"].to_pylist() == ["none", None] * 4 + ["one", None] * 4
    assert pq.ParquetFile(folder / "part-0.parquet").num_row_groups == 2

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert vars(name_all(folder, book)) == {"named": 8, "unknown": 8, "short": 0, "long": 0}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    # Cut off between two files: what is missing is done, what is there is counted.
    (tmp_path / "b.toml").write_text("[b]\nid = 2\nfields = { x = 'u16', z = 'u8' }\n")
    other = load_dictionary(tmp_path / "b.toml")
    replace, calls = __import__("os").replace, []

    def once(old: object, new: object) -> None:
        calls.extend([new] * (str(new).endswith(".parquet")))
        if len(calls) > 1:
            raise OSError("cut off")
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", once)
        with pytest.raises(OSError, match="cut off"):
            name_all(folder, other)
    assert [fit_of(p, other) is None for p in sorted(folder.iterdir())] == [False, True, True]
    assert sorted(p.name for p in folder.iterdir()) == sorted(before)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.toml", "b.toml", ACCOUNT, "events"]
    assert vars(name_all(folder, other)) == {"named": 8, "unknown": 8, "short": 8, "long": 0}
    assert pq.read_table(folder).column_names == [*EVENT_SCHEMA.names, "name", "x", "z"]


def bytes_item(window: int, *data: int, filler: int = 0) -> LongItem:
    """An event of node 0."""
    nibbles = [len(data), *(half for byte in data for half in (byte & 15, byte >> 4))]
    return LongItem(window, 0, bytes(nibbles), filler)


@pytest.fixture
def event_run(make_run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Node 0 writes events, node 1 nibbles, node 2 words; stored in groups and files of few rows."""
    monkeypatch.setattr(item_order, "_BATCH", 1)
    monkeypatch.setattr(parquet, "_GROUP", 3)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 1)
    modes = ItemModes.of([ItemMode.EVENT, ItemMode.NIBBLE, ItemMode.WORD])
    board = FakeBoard(nodes=3, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    for start in range(0, 600_000, 200_000):
        board.items([LongItem(start + 10, 1, b"\x05"), bytes_item(start + 20, 1, start // 200_000, 1),
                     LongItem(start + 30, 2, bytes(range(8))), bytes_item(start + 40, 2),
                     bytes_item(start + 50, 1, 7), bytes_item(start + 60, 1, 8, 0, filler=2)], modes)
    return make_run(board.stop(700_000), modes=["event", "nibble", "word"], item_timeout_clocks=1000)


def test_events_of_a_board(event_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is decoded anew, and what has been before; tables are the same but for what is added."""
    bare = event_run.events()
    book = tmp_path / "a.toml"
    book.write_text("[a]\nid = 1\nbegin = 'x'\nfields = { x = 'u8', y = { type = 'u8', values = { one = 1 } } }\n"
                    "[b]\nid = 2\nend = 'x'\n")
    assert cli._run(["decode", str(event_run.path), "--dictionary", str(book)]) == 0
    assert capsys.readouterr().out.endswith(
        ": 12 events named, 3 payloads too short for their fields: 3 of 12 events of node 0\n")
    assert event_run.stats()["events_per_name"] == {"a": 6, "b": 3}
    assert len(list((event_run.path / "events").iterdir())) > 1
    for again in range(3):
        named = event_run.events()
        assert named.select(bare.column_names).equals(bare)
        assert named["name"].to_pylist() == [None, "a", None, "b", "a", "a"] * 3
        assert named["x"].to_pylist() == [v for i in range(3) for v in (None, i, None, None, 7, 8)]
        assert named["y"].to_pylist() == [None, "one", None, None, None, None] * 3
        assert sorted(path.name for path in event_run.path.iterdir() if path.name.startswith(".")) == []
        if again == 0:
            (event_run.path / "decode.json").unlink()  # everything is decoded anew
        assert cli._run(["export", str(event_run.path), "--to", "events", str(tmp_path / "e")]) == 0
    assert (tmp_path / "e").read_text().splitlines()[1:4] == [
        f"{bare['time_ps'][i].as_py()},0,{text}" for i, text in ((1, "1,0001"), (3, "2,"), (4, "1,07"))]
    book.write_text("[c]\nid = 2\nfields = { z = 'u8' }\n")
    keep_dictionary(event_run, book)
    assert event_run.events().column_names == [*bare.column_names, "name", "z"]
    (event_run.path / "dictionary.toml").write_text("[c]\nid = 'two'\n")
    with pytest.raises(InputError, match=r"dictionary.toml:2: c: id is 0..255, not 'two'"):
        event_run.events()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero"),
                                  lambda path: path.symlink_to(path.name)])
def test_a_dictionary_that_is_no_file(mixed_run: Run, make) -> None:
    make(mixed_run.path / "dictionary.toml")
    with pytest.raises(InputError, match=r"dictionary\.toml: it is not a file"):
        mixed_run.decode()
