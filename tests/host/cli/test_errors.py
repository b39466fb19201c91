"""What is wrong is said in one line, with status 2, and nothing is left behind."""

import random
import sys

import duckdb
import pytest
from hypermon.host import cli
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard, random_run


@pytest.mark.parametrize(("arguments", "text"), [
    (["--nonsense"], "No such option"),
    (["nonsense"], "No such command"),
    (["sim"], "Missing argument"),
    (["sim", "x.csv"], "Missing option '-o'"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--drain", "registers"], "--drain registers: the extended"),
    (["record", "-o", "NEW", "--config", "extended", "--drain", "registers"], "--drain registers: the extended"),
    (["sim", "x.csv", "-o", "NEW", "--config", "other"], "--config"),
    (["sim", "x.csv", "-o", "NEW", "--half-clock"], "--half-clock: the classic board does not have it; add --config e"),
    (["sim", "x.csv", "-o", "NEW", "--quarter-clock"], "--quarter-clock: the classic board does not have it; add --co"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--half-clock", "--quarter-clock"],
     "--half-clock and --quarter-clock: a board samples either twice or four times per clock"),
    (["sim", "x.csv", "-o", "NEW", "--port-bits", "8"], "--port-bits 8: the classic board does not have it; add --co"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--port-bits", "5"], "'5' is not one of '4', '8'"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--port-bits"], "--port-bits"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--half-clock=2"], "--half-clock"),
    (["sim", "x.csv", "-o", "NEW", "--start", "byte=3"], "--start"),
    (["sim", "x.csv", "-o", "NEW", "--config", "extended", "--start", "byte=256"], "--start byte=256"),
    (["sim", "x.csv", "-o", "NEW", "--nodes", "33"], "--nodes"),
    (["sim", "x.csv", "-o", "NEW", "--clock", "7"], "--clock 7: the capture clock must be a multiple of 5 MHz"),
    (["sim", "x.csv", "-o", "NEW", "--window", "300"], "--window"),
    (["sim", "x.csv", "-o", "NEW", "--stall", "1"], "--stall 1: expected AT_MS,FOR_MS"),
    (["sim", "x.csv", "-o", "NEW", "--stall", "1,-2"], "--stall 1,-2"),
    (["sim", "x.csv", "-o", "NEW", "--stall", "nan,2"], "--stall nan,2"),
    (["sim", "x.csv", "-o", "NEW", "--drain-rate", "0"], "--drain-rate"),
    (["sim", "x.csv", "-o", "NEW", "--flush-ms", "-1"], "--flush-ms"),
    (["sim", "x.csv", "-o", "NEW", "--flush-ms", "nan"], "--flush-ms"),
    (["sim", "x.csv", "-o", "NEW", "--mode", "word"], "--mode word"),
    (["sim", "x.csv", "-o", "NEW", "--mode", "3=event"], "--mode event"),
    (["sim", "x.csv", "-o", "NEW", "--mode", "16=nibble"], "there are nodes 0 to 15"),
    (["sim", "x.csv", "-o", "NEW", "--mode", "blah"], "--mode blah"),
    (["sim", "x.csv", "-o", "OLD"], "exists already"),
    (["sim", "x.csv", "-o", "NEW/NEW"], "there is no directory"),
    (["record", "-o", "OLD"], "exists already"),
    (["record", "-b", "pcie:", "-o", "NEW"], "pcie:: no such board is in a PCIe slot"),
    (["record", "-o", "NEW", "-b", "sim", ], "there is no board 'sim'"),
    (["info", "-b", "pcie:x"], "it is pcie:BDF, such as pcie:0000:01:00.0"),
    (["info", "-b", "uart:/dev/no-port"], "there is no /dev/no-port"),
    (["sim", "x.csv", "-o", "NEW", "--memory-mib", "3"], "--memory-mib 3: it must be 0 or a power of two, such as 2"),
    (["sim", "x.csv", "-o", "NEW", "--store-kib", "17"], "--store-kib 17: it must be 0, 1, 2, 4, 8 or a multiple"),
    (["decode", "NEW"], "there is no such directory"),
    (["decode", "OLD"], "no recording.json here"),
    (["stats", "NEW"], "there is no such directory"),
    (["stats", "OLD"], "no recording.json here"),
    (["export", "RUN", "--to", "pdf", "NEW"], "--to pdf: there are csv, frames"),
    (["export", "RUN", "--to", "csv", "NEW/NEW"], "there is no"),
    (["export", "RUN", "--to", "frames", "OLD"], "it is a directory"),
    (["export", "RUN", "NEW"], "Missing option '--to'"),
    (["export", "RUN", "--to", "csv", "NEW", "--from-ms", "nan"], "--from-ms nan"),
    (["export", "RUN", "--to", "csv", "NEW", "--to-ms", "1e300"], "--to-ms 1e+300: it must be 1e+12 at most"),
    (["export", "RUN", "--to", "csv", "NEW", "--from-ms", "30", "--to-ms", "20"], "no time is between these"),
    (["export", "RUN", "--to", "vcd", "NEW", "--from-ms", "20", "--to-ms", "20"], "no time is between these"),
    (["export", "RUN", "--to", "csv", "NEW", "--to-ms", "0"], "--from-ms 0 --to-ms 0: no time is between"),
    (["export", "RUN", "--to", "csv", "NEW", "--from-ms", "-1"], "--from-ms -1: times begin at 0"),
    (["trim", "RUN", "NEW", "--from-ms", "1e6"], "RUN: it lasts from 0 to "),
    (["machine"], "machine: Missing command (see"),
    (["pcie"], "pcie: Missing command (see"),
    (["ipsc"], "ipsc: Missing command (see"),
    (["export", "RUN", "--to", "csv", "NEW", "--to-ms", "-0.5"], "--to-ms -0.5: times begin at 0"),
    (["export", "RUN", "--to", "csv", "NEW", "--nodes", "2"], "there are nodes 0 to 1"),
    (["export", "RUN", "--to", "csv", "NEW", "--nodes", "1-0"], "the range 1-0 begins with its larger number"),
    (["export", "RUN", "--to", "csv", "NEW", "--nodes", "2-1"], "there are nodes 0 to 1"),
    (["export", "RUN", "--to", "ctf", "OLD"], "OLD: it exists already; name a new directory"),
    (["export", "RUN", "--to", "csv", "/dev/full"], "/dev/full: No space left on device"),
    (["tail", "NEW"], "NEW: there is no such directory, and there is no board"),
    (["tail", __file__], "it is a file; a recording is a directory"),
    (["serve", "-b", "NEW"], "NEW: there is no such directory"),
    (["watch", "-b", "NEW"], "NEW: there is no such directory"),
    (["watch", "-b", "sim:"], "this is none; for a file or another program: hypermon tail sim:"),
    (["build", "ulx3s-85f", "-o", f"{__file__}/bits"], "bits: the folder cannot be made: /"),
    (["export", "RUN", "--to", "csv", "NEW", "--nodes", ""], "expected numbers and ranges"),
    (["check", "RUN"], "nothing to check: the run has no dictionary"),
    (["check", "RUN", "--json"], "nothing to check: the run has no dictionary"),
    (["record", "-o", "NEW", "--seconds", "0"], "--seconds"),
    (["record", "-o", "NEW", "--config", "extended", "--mask", "nodes=0"], "nothing would be kept"),
    (["record", "-o", "NEW", "--config", "extended", "--mask", "nibbles=0"], "nothing would be kept"),
    (["export", "RUN", "--to", "csv", "NEW", "--nodes", "0-60000000000"], "there are nodes 0 to 1"),
    (["record", "-b", "sim:", "-o", "NEW", "--last-minutes", "1e300"], "--last-minutes 1e+300"),
    (["info", "-b", "tcp:localhost:99999"], "a port is a number from 1 to 65535"),
    (["pinout", "ulx3s-85f", "--svg", "NEW", "--json"], "--svg and --json: choose one"),
    (["dict", "x.toml", "--c-header", "NEW", "--json"], "--c-header and --json: choose one"),
    (["export", "EXTENDED", "--to", "frames", "NEW"], "extended"),
    (["decode", "RUN", "--framing", "nonsense"], "--framing"),
])
def test_errors(run_cli, make_run, tmp_path, arguments, text):
    (tmp_path / "OLD").mkdir()
    make_run(random_run(FakeBoard(2), random.Random(1), 4), name="RUN")
    make_run(FakeBoard().start(), name="EXTENDED", sink="extended")
    before = sorted(tmp_path.rglob("*"))
    names = {"OLD", "NEW", "NEW/NEW", "RUN", "EXTENDED"}
    status, out, err = run_cli(*(tmp_path / a if a in names else a for a in arguments))
    assert status == 2
    assert out == ""
    assert len(err) == 1, err
    assert text in err[0]
    after = [p for p in sorted(tmp_path.rglob("*")) if "RUN" not in p.parts]
    assert after == [p for p in before if "RUN" not in p.parts]


def test_damaged_accounts_are_made_anew(run_cli, make_run):
    """With one line that says so, once."""
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4), name="RUN")
    before = run_cli("stats", run.path)
    run.decode()
    told = run.path / "decode.json"
    for damage, reason in ((lambda: told.write_text(told.read_text().replace('"lost"', '"last"')), "it "),
                           (lambda: (run.path / "loss.parquet").write_bytes(b"no table"), "loss.parquet has 8 bytes")):
        damage()
        status, out, err = run_cli("stats", run.path)
        assert (status, out, len(err)) == (0, before[1], 1)
        assert f"RUN: decoded anew, because {reason}" in err[0]
        assert run_cli("stats", run.path) == before


@pytest.mark.parametrize("text", ['{"bit', "{}", "[]"])
def test_a_damaged_account_of_a_bitstream(run_cli, tmp_path, text):
    (tmp_path / "ulx3s-85f-extended.json").write_text(text)
    status, _, err = run_cli("flash", "ulx3s-85f", "-o", tmp_path)
    assert (status, len(err)) == (2, 1)
    assert "is damaged" in err[0]


@pytest.mark.parametrize("command", [
    "record -b sim: -o run --seconds nan", "counters -b sim: --seconds inf", "wirecheck -b sim: --seconds nan",
    "ipsc run life --share nan"])
def test_what_is_in_every_range_and_no_number_is_refused(run_cli, tmp_path, monkeypatch, command):
    """Before anything is opened or written."""
    monkeypatch.chdir(tmp_path)
    status, out, err = run_cli(*command.split())
    name, value = command.split()[-2:]
    assert (status, out, err) == (2, "", [f"hypermon: {name} {value}: it must be a number"])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_output_is_said(run_cli, make_run, monkeypatch):
    run = make_run(FakeBoard().start().stop(9))
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        status = cli._run(["export", str(run.path), "--to", "csv", "-"])
    assert status == 2


@pytest.mark.parametrize("command", [
    "sim x.csv -o RUN", "record -b sim: -o RUN", "stats RUN", "query RUN", "decode RUN", "report RUN", "check RUN",
    "export RUN --to csv -", "export GOOD --to otf2 RUN", "export GOOD --to ctf RUN"])
def test_a_name_that_is_not_utf_8(run_cli, make_run, tmp_path, command):
    """Tables in it could not be opened, so none are written."""
    good = make_run(FakeBoard().start().frames([(1, {0: 1})]).stop(9))
    bad = tmp_path / "bad\udcff"
    if "-o RUN" not in command and "GOOD" not in command:
        good.path.rename(bad)
    (tmp_path / "x.csv").write_text("time_ns,node,port\n")
    before = sorted(tmp_path.iterdir())
    names = {"RUN": bad, "GOOD": good.path, "x.csv": tmp_path / "x.csv"}
    status, _, err = run_cli(*(names.get(word, word) for word in command.split()))
    assert status == 2
    assert err[-1] == f"hypermon: {tmp_path}/bad\\udcff: its name is not UTF-8, and tables in it could not be read: " \
                      "choose another name"
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_is_no_run(tmp_path, run_cli):
    (tmp_path / "ports.csv").write_text("time_ns,node,port\n")
    assert run_cli("stats", tmp_path / "ports.csv") == (
        2, "", [f"hypermon: {tmp_path / 'ports.csv'}: it is a file; a recorded run is a directory"])


def test_a_table_that_duckdb_cannot_read(make_run, run_cli, monkeypatch):
    """An error of DuckDB that no command expects, as an old version's about a broken page."""
    run = make_run(random_run(FakeBoard(), random.Random(1), 40))

    def sql(*_):
        return duckdb.sql("select error('do not know what type')")

    monkeypatch.setattr(Run, "sql", sql)
    status, out, err = run_cli("trim", run.path, run.path.with_name("part"), "--nodes", "0")
    assert (status, out) == (2, "")
    assert [line for line in err if line.startswith("hypermon: a table cannot be read: ")]
    assert not run.path.with_name("part").exists()
