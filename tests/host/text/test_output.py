"""Output of the command: all of it is written or the command fails, and a terminal gets nothing but text."""

import io
import os
import pty
import random
import resource
import subprocess
import sys

import pytest
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.text.output import _Descriptor, _Terminal

from tests.host.fake_board import FakeBoard, random_run
from tests.host.telling import BOOK
from tests.patience import patience

HYPERMON = [sys.executable, "-c", "from hypermon.host.cli import main; main()"]
#: Commands whose result is on standard output.
LONG = [["export", "RUN", "--to", "csv", "-"], ["export", "RUN", "--to", "vcd", "-"],
        ["export", "RUN", "--to", "frames", "-"], ["query", "RUN", "from events", "--csv"],
        ["query", "RUN", "from events", "--json"], ["tail", "RUN", "--no-wait"], ["report", "RUN", "-o", "-"]]
SHORT = [["stats", "RUN"], ["stats", "RUN", "--json"], ["query", "RUN"], ["decode", "RUN"], ["--help"]]
#: What a terminal must not get, and how it is shown.
NASTY, SHOWN = "\x1b[31mred\x07\u202e\x9b", r"\x1b[31mred\x07\u202e\x9b"


def started(command, run, unbuffered=False, **options):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1" if unbuffered else "", **options.pop("env", {})}
    return subprocess.Popen([*HYPERMON, *(str(run) if word == "RUN" else word for word in command)], env=environment,
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


@pytest.fixture
def run(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(3), 60))
    run.decode()
    return run.path


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("command", LONG, ids=lambda command: " ".join(command[:4]))
def test_output_that_is_cut(run, tmp_path, command, unbuffered):
    """By a disk that takes a part of a write, and then nothing more."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8191, 8191))

    with open(tmp_path / "out", "wb") as out:
        process = started(command, run, unbuffered, stdout=out, preexec_fn=limit)
        said = process.communicate()[1].decode()
    assert (tmp_path / "out").stat().st_size == 8191
    assert (process.returncode, said.splitlines()[-1:]) == (2, ["hypermon: standard output: File too large"])
    assert "Traceback" not in said
    assert "ignored" not in said


@pytest.mark.parametrize("command", [*SHORT, LONG[0]], ids=lambda command: " ".join(command[:4]))
def test_output_that_cannot_be_written(run, command):
    with open("/dev/full", "wb") as out:
        process = started(command, run, stdout=out)
        said = process.communicate()[1].decode()
    assert (process.returncode, said.splitlines()[-1:]) == (2, ["hypermon: standard output: No space left on device"])


@pytest.mark.parametrize("command", [LONG[0], LONG[3], LONG[5], SHORT[0]], ids=lambda command: " ".join(command[:4]))
def test_a_reader_that_has_enough(run, command):
    """It ends the command, with exit status 0 and without a word."""
    reading, writing = os.pipe()
    os.close(reading)
    process = started(command, run, stdout=writing)
    os.close(writing)
    said = process.communicate()[1].decode()
    assert (process.returncode, [line for line in said.splitlines() if " lost" not in line]) == (0, [])


def test_errors_need_no_standard_error(run):
    with open("/dev/full", "wb") as full:
        process = subprocess.run([*HYPERMON, "stats", run / "none"], stderr=full, stdout=subprocess.DEVNULL)
    assert process.returncode == 2


@pytest.mark.parametrize("command", [["stats", "RUN"], LONG[0], LONG[3]], ids=lambda command: " ".join(command[:4]))
def test_streams_that_are_closed(run, command):
    """As by ``>&-`` in a shell: nothing is written in another file's place, and standard output is missed."""
    command = [*HYPERMON, *(str(run) if word == "RUN" else word for word in command)]
    for closed, status, said in (("<&-", 0, ""), ("2>&-", 0, ""), (">&-", 2, "Bad file descriptor"),
                                 ("<&- >&-", 2, "Bad file descriptor"), ("<&- >&- 2>&-", 2, "")):
        done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, f"hypermon: standard output: {said}\n" if said else "")
        assert bool(done.stdout) == (status == 0)


def test_a_full_pipe_that_does_not_block(tmp_path):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with open(tmp_path / "out", "wb") as out:
        child = subprocess.Popen(["cat"], stdin=reading, stdout=out)
    os.close(reading)
    data = bytes(range(256)) * 4000
    with io.BufferedWriter(_Descriptor(writing, True)) as file:
        file.write(data)
    os.close(writing)
    assert child.wait(timeout=patience(60)) == 0
    assert (tmp_path / "out").read_bytes() == data


def on_terminal(command, run):
    """What a terminal gets."""
    here, there = pty.openpty()
    process = started(command, run, stdout=there, env={"TERM": "dumb", "COLUMNS": "200"})
    os.close(there)
    data = b""
    while True:
        try:
            piece = os.read(here, 1 << 16)
        except OSError:     # the other side is closed
            break
        data += piece
    os.close(here)
    process.communicate()
    return data.decode()


@pytest.fixture
def nasty_run(mixed_run, tmp_path):
    """Its name would control a terminal."""
    mixed_run.path.rename(tmp_path / f"run{NASTY}")
    return tmp_path / f"run{NASTY}"


@pytest.mark.parametrize("command", [
    ["decode", "RUN"], ["query", "RUN", f"select '{NASTY}' as x", "--csv"], ["stats", "RUN"],
    ["export", "RUN", "--to", "perfetto", "-"], ["export", "RUN", "--to", "vcd", "-"]],
    ids=lambda command: " ".join(command[:1] + command[2:4]))
def test_a_terminal_gets_text(nasty_run, command):
    said = on_terminal(command, nasty_run)
    assert [letter for letter in said if not letter.isprintable() and letter not in "\r\n\t\xa0"] == []
    assert said


def test_a_pipe_gets_the_bytes(nasty_run):
    process = started(["query", "RUN", f"select '{NASTY}' as x", "--csv"], nasty_run, stdout=subprocess.PIPE)
    assert process.communicate()[0].decode() == f"x\n{NASTY}\n"


def test_bytes_for_a_terminal():
    """Also those that are no text, and characters whose bytes come one by one."""
    drawn = io.StringIO()
    terminal = _Terminal(io.BufferedWriter(io.BytesIO()), drawn)
    for byte in f"ü{NASTY}\n\t".encode() + b"\xff":
        terminal.buffer.write(bytes([byte]))
    assert drawn.getvalue() == f"ü{SHOWN}\n\t\\xff"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("command", [
    ["query", "RUN", "select 'größe 火'"], ["query", "RUN", "select 'größe 火'", "--csv"], ["tail", "RUN", "--no-wait"],
    ["dict", "BOOK"]], ids=lambda command: " ".join(command[:1] + command[3:]))
def test_an_encoding_that_has_not_every_character(mixed_run, tmp_path, command, encoding):
    (tmp_path / "d.toml").write_text(f'[nodes]\n0 = "größe 火"\n1 = "火"\n{BOOK}[hot]\nid = 100\ndoc = "火"\n')
    keep_dictionary(mixed_run, tmp_path / "d.toml")
    process = started([str(tmp_path / "d.toml") if word == "BOOK" else word for word in command], mixed_run.path,
                      env={"PYTHONIOENCODING": encoding}, stdout=subprocess.PIPE)
    out, said = process.communicate()
    assert (process.returncode, b"Traceback" in said) == (0, False)
    assert b"\\u706b" in out
