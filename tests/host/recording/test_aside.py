"""Files made aside in a RUN: they are new, follow no link, and nobody else's file is written through them."""

import errno
import os
import tempfile

import pytest
from hypermon.host.recording.aside import aside
from hypermon.host.recording.segments import replace_file

from tests.host.fake_board import FakeBoard
from tests.host.telling import BOOK

#: Names that files and directories made aside have had.
NAMES = (".decode.json.new", ".decode.new", ".part-00000.parquet.new", ".framed.parquet.new", ".dictionary.toml.new",
         ".logs.parquet.new", ".logs.json.new", ".semantics.new", ".semantics.json.new", ".boards.parquet.new",
         "report.html")


def link(place, victim):
    place.symlink_to(victim)


def hard_link(place, victim):
    os.link(victim, place)


def pipe(place, victim):
    os.mkfifo(place)


@pytest.mark.parametrize("plant", [link, hard_link, pipe])
def test_nothing_is_written_through_what_is_there(tmp_path, mixed_run, run_cli, plant):
    (tmp_path / "victim").write_text("precious")
    for name in NAMES:
        plant(mixed_run.path / name, tmp_path / "victim")
    (tmp_path / "d.toml").write_text(f'{BOOK}[logging.strings]\n0 = "said"\n')
    for command in (["decode", "--framing", "event", "--dictionary", str(tmp_path / "d.toml")], ["stats"],
                    ["query", "from states"], ["report"]):
        status, _, said = run_cli(command[0], mixed_run.path, *command[1:])
        assert status in (0, 2), said
        assert (tmp_path / "victim").read_text() == "precious", command
    assert {path.name for path in mixed_run.path.glob(".*")} <= set(NAMES)
    (mixed_run.path / "report.html").unlink()
    assert not any(path.is_symlink() for path in mixed_run.path.iterdir() if path.name not in NAMES)


def test_a_link_in_place_of_the_tables(tmp_path, mixed_run, run_cli):
    """It is moved away, and the directory that it points to stays as it is."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "part-00000.parquet").write_text("precious")
    (mixed_run.path / "events").symlink_to(outside)
    (mixed_run.path / "loss.parquet").symlink_to(outside / "part-00000.parquet")
    assert run_cli("decode", mixed_run.path)[0] == 0
    assert (outside / "part-00000.parquet").read_text() == "precious"
    assert not [path for path in mixed_run.path.iterdir() if path.is_symlink()]


@pytest.mark.parametrize("command", ["decode", "stats", "report", "query", "export", "tail"])
def test_a_link_in_place_of_a_board(tmp_path, make_run, run_cli, command):
    """Of a run that somebody sent: nothing is written where it leads, which may be another recording."""
    elsewhere = make_run(FakeBoard().start().frames([(10, {0: 5})]).stop(99), name="elsewhere").path
    whole = make_run(FakeBoard().start().stop(9), name="run", boards=["board-0"]).path
    (whole / "board-0").symlink_to(elsewhere)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in elsewhere.iterdir()}
    more = {"query": ["from events"], "export": ["--to", "csv", tmp_path / "out.csv"]}
    status, _, said = run_cli(command, whole, *more.get(command, []))
    assert status == 2
    assert "board-0: a link, not a recording in this run" in "".join(said)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in elsewhere.iterdir()} == before


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_what_a_killed_process_has_left_is_removed(tmp_path):
    with aside(tmp_path) as outer, aside(tmp_path) as inner:
        assert outer.is_dir()
        assert inner.is_dir()
        assert inner != outer
    left = tmp_path / ".hypermon-left"
    left.mkdir()
    (left / "half").touch()
    (tmp_path / ".hypermon-link").symlink_to(tmp_path / "elsewhere")
    with aside(tmp_path):
        assert not left.exists()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_run_that_cannot_be_written(mixed_run, run_cli, monkeypatch, number):
    """It is said once, with the remedy, by every command that needs tables; the figures of one board need none."""
    def refused(**_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    for command in (["query"], ["export", "--to", "csv", "-"], ["decode"]):
        status, _, said = run_cli(command[0], mixed_run.path, *command[1:])
        assert status == 2
        assert said == [f"hypermon: {mixed_run.path}: tables must be made in it, and it cannot be written "
                        f"({os.strerror(number)}): make it writable once, for hypermon decode {mixed_run.path}, or "
                        "copy it"]
    assert run_cli("stats", mixed_run.path)[0] == 0
