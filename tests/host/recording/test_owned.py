"""No command replaces a file of a recording by its output."""

import os
import random

import pytest
from hypermon.host.analysis.logs import LOGS
from hypermon.host.decode.board_store import BOARDS_TABLE
from hypermon.host.decode.partitions import PARTITION
from hypermon.host.decode.table_files import LOSS_TABLE
from hypermon.host.dictionary.run_dictionary import FRAMED, KEPT
from hypermon.host.dictionary.semantics import TABLES
from hypermon.host.errors import HypermonError
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.drift_log import DRIFT
from hypermon.host.recording.locking import LOCK
from hypermon.host.recording.owned import refuse_owned
from hypermon.host.recording.parts import ACCOUNT
from hypermon.host.recording.writer import RESERVE
from hypermon.host.view.bookmarks import BOOKMARKS
from hypermon.host.view.counts import COUNTS, OVERVIEW
from hypermon.host.view.tables import STATES_OVERVIEW

from tests.host.fake_board import FakeBoard, random_run

RULES = '[[rule]]\nname = "none"\nkind = "absence"\nevent = "nibble:1"\n'


def contents(path):
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def run(make_run):
    made = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    made.decode()
    return made


def test_every_file_of_a_run(run, run_cli, tmp_path):
    """The files of a run with tables, whole directories of tables, and links to them."""
    (tmp_path / "link").symlink_to(run.path / "stream.bin")
    (run.path / "events" / "more").mkdir()
    before = contents(run.path)
    assert {"recording.json", "stream.bin", "decode.json", "loss.parquet"} <= set(before)
    for out in [*(run.path / name for name in before), run.path / "events" / "more" / "x", tmp_path / "link",
                run.path / "framed.parquet", run.path / "stream-00001.bin", run.path / "dictionary.toml"]:
        status, _, err = run_cli("export", run.path, "--to", "csv", out)
        assert (status, len(err)) == (2, 1), out
        assert f"hypermon: {out}: this is a file of the recording run, which is never overwritten" in err[0]
    assert contents(run.path) == before


def test_files_that_a_run_may_have(run, tmp_path):
    """Also those that are not there, and through a link; and no others."""
    (tmp_path / "other").symlink_to(run.path)
    names = [f"{name}.json" for name in ("ring", "semantics", "logs")]
    for name in (*names, *(f"{name}.parquet" for name in (*TABLES, "groups")), CLOCK, ACCOUNT, PARTITION, KEPT, FRAMED,
                 LOGS, LOSS_TABLE, BOARDS_TABLE, COUNTS, OVERVIEW, STATES_OVERVIEW, BOOKMARKS, DRIFT, LOCK, RESERVE,
                 "board-12"):
        for folder in (run.path, tmp_path / "other", run.path / "events" / ".."):
            with pytest.raises(HypermonError, match="never overwritten"):
                refuse_owned(folder / name)
    for name in ("report.html", "more.json", "x/clock.json", "board-1.txt"):
        refuse_owned(run.path / name)


@pytest.mark.parametrize("arguments", [
    ["export", "RUN", "--to", "vcd", "OUT"],
    ["analyse", "RUN", "rate", "-o", "OUT"],
    ["compare", "RUN", "RUN", "--html", "OUT"],
    ["check", "RUN", "RULES", "--junit", "OUT"],
    ["dict", "DICTIONARY", "--c-header", "OUT"],
    ["echo", "-b", "usb:A", "-b", "usb:B", "-o", "OUT"],
])
def test_every_command(run, run_cli, tmp_path, arguments):
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "app.toml").write_text('[begin]\nid = 1\n')
    names = {"RUN": run.path, "OUT": run.path / "stream.bin", "RULES": tmp_path / "rules.toml",
             "DICTIONARY": tmp_path / "app.toml"}
    before = contents(run.path)["stream.bin"]
    status, _, err = run_cli(*(names.get(word, word) for word in arguments))
    assert status == 2
    assert "which is never overwritten; choose another name" in err[-1]
    assert contents(run.path)["stream.bin"] == before


def test_other_names_in_a_run_are_free(run, run_cli):
    """A report is there, for instance; it may be written again."""
    for _ in range(2):
        assert run_cli("export", run.path, "--to", "csv", run.path / "items.csv")[0] == 0
        assert run_cli("export", run.path, "--to", "ctf", run.path / f"trace{_}")[0] == 0


def test_a_directory_of_tables(run, run_cli):
    status, _, err = run_cli("export", run.path, "--to", "ctf", run.path / "loss")
    assert status == 2
    assert "loss: this is a file of the recording" in err[0]
    assert not (run.path / "loss").exists()


@pytest.mark.parametrize("place", ["directory", "missing", "recording"])
@pytest.mark.parametrize("arguments", [
    ["export", "RUN", "--to", "csv", "OUT"], ["export", "RUN", "--to", "vcd", "OUT"],
    ["export", "RUN", "--to", "perfetto", "OUT"], ["export", "RUN", "--to", "ctf", "OUT"],
    ["export", "RUN", "--to", "ctf2", "OUT"], ["analyse", "RUN", "rate", "-o", "OUT"],
    ["report", "RUN", "-o", "OUT"], ["compare", "RUN", "RUN", "--html", "OUT"],
    ["check", "RUN", "RULES", "--junit", "OUT"], ["echo", "-b", "usb:A", "-b", "usb:B", "-o", "OUT"]])
def test_a_bad_output_is_refused_before_anything_is_computed(make_run, run_cli, tmp_path, arguments, place):
    """The tables, which each of these commands needs and keeps, are not there afterwards."""
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    (tmp_path / "rules.toml").write_text(RULES)
    out = {"directory": tmp_path / "directory", "missing": tmp_path / "none" / "x",
           "recording": run.path / "loss.parquet"}[place]
    (tmp_path / "directory").mkdir()
    before = contents(run.path)
    names = {"RUN": run.path, "OUT": out, "RULES": tmp_path / "rules.toml"}
    status, printed, err = run_cli(*(names.get(word, word) for word in arguments))
    said = {"missing": "there is no", "recording": "never overwritten",
            "directory": "it exists already" if "ctf" in arguments[3] else "it is a directory"}[place]
    assert (status, printed, len(err)) == (2, "", 1)
    assert err[0].startswith(f"hypermon: {out}: ")
    assert said in err[0]
    assert contents(run.path) == before


def test_an_output_in_a_folder_that_cannot_be_written(make_run, run_cli, tmp_path, monkeypatch):
    """The system answers for the user; the administrator may write everywhere."""
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    before = contents(run.path)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and access(path, mode))
    status, _, err = run_cli("analyse", run.path, "rate", "-o", tmp_path / "x")
    assert (status, err) == (2, [f"hypermon: {tmp_path / 'x'}: nothing can be written in {tmp_path}; name a folder of "
                                 "your own"])
    assert contents(run.path) == before


@pytest.mark.parametrize("place", ["directory", "missing", "recording"])
@pytest.mark.parametrize("arguments", [
    ["dict", "NONE", "--c-header", "OUT"], ["dict", "NONE", "--elf", "NONE", "-o", "OUT"],
    ["pinout", "NONE", "--svg", "OUT"], ["emulate", "NONE", "--uf2", "OUT"], ["emulate", "RUN", "--uf2", "OUT"]])
def test_a_bad_output_is_refused_before_the_input_is_read(make_run, run_cli, tmp_path, arguments, place):
    """There is no input of that name, which is not even noticed; and a RUN is not decoded."""
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    out = {"directory": tmp_path / "directory", "missing": tmp_path / "none" / "x",
           "recording": run.path / "loss.parquet"}[place]
    (tmp_path / "directory").mkdir()
    before = contents(run.path)
    names = {"RUN": run.path, "NONE": tmp_path / "nothing", "OUT": out}
    status, printed, err = run_cli(*(names.get(word, word) for word in arguments))
    said = {"missing": "there is no", "recording": "never overwritten", "directory": "is a directory"}[place]
    assert (status, printed, len(err)) == (2, "", 1)
    assert str(out) in err[0]
    assert said in err[0]
    assert contents(run.path) == before


def test_emulate_refuses_a_run_that_exists(run_cli, tmp_path):
    """Also before the workload is read, of which there is none."""
    (tmp_path / "run").mkdir()
    status, _, err = run_cli("emulate", tmp_path / "nothing", "-o", tmp_path / "run")
    assert (status, len(err)) == (2, 1)
    assert err[0].startswith(f"hypermon: {tmp_path / 'run'}: it exists already")
