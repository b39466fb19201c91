"""How `hypermon sim` and `record` end: exit status, one line that says why, and a recording that says it, too."""

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypermon.host import cli
from hypermon.host.errors import LinkError
from hypermon.host.run import Run, open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import patience

NOBODY = 65534


@pytest.fixture
def run_cli(capfd):
    """As the one of all tests; of what is written to the descriptors, as `--json` does."""
    def run(*arguments):
        status = cli._run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return status, out, err.splitlines()

    return run


@pytest.fixture
def board(monkeypatch):
    """The commands open this link; tests change it."""
    link = FakeLink(random_run(FakeBoard(), random.Random(3), 12, losses=0.5), piece=400)
    for name in ("host.link.open_link", "sim.commands.sim.open_stimulus"):
        monkeypatch.setattr(f"hypermon.{name}", lambda *arguments, **options: link)
    monkeypatch.setattr("hypermon.sim.commands.sim.load_stimulus", lambda paths, geometry, **_: (
        SimpleNamespace(wiring={}), geometry))
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", 0.05)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    return link


def full_disk(link, monkeypatch):
    synced, real = [], os.fsync

    def fsync(descriptor):
        synced.append(descriptor)
        if len(synced) > 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    def again(polls):       # there is room for the last words
        if len(synced) > 20:
            monkeypatch.setattr(os, "fsync", real)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("hypermon.host.recording.writer.RunWriter._free_reserve", lambda self: again(0))


def almost_full_disk(link, monkeypatch):
    monkeypatch.setattr("hypermon.host.record.recorder._LEAST_FREE", 1 << 59)


def mute(link, monkeypatch):
    link.mute = True


def noise(link, monkeypatch):
    """From its stop on, and for ever."""
    def play(polls):
        link.pending += b"" if link.control[-1] & 2 else b"noise" * 20_000
    link.mute, link.piece, link.on_poll = True, 1 << 20, play
    monkeypatch.setattr("hypermon.host.record.recorder._NOISE_MOST", 1 << 20)


def unplugged(link, monkeypatch):
    def fail(polls):
        if polls == 5:
            raise LinkError("fake is gone; plug it in again")
    link.on_poll = fail


def interrupted_twice(link, monkeypatch):
    link.endless = True
    link.on_poll = lambda polls: os.kill(os.getpid(), 2) if polls in (4, 6) else None


CAUSES = {full_disk: "the disk is full", almost_full_disk: "the disk is almost full",
          mute: "the board did not report that it had stopped", noise: "bytes of noise", unplugged: "fake is gone",
          interrupted_twice: "interrupted twice"}


@pytest.mark.parametrize("command", [["record", "-b", "fake:"], ["sim", "x.csv"], ["record", "-b", "fake:", "--json"]])
@pytest.mark.parametrize("cause", CAUSES)
def test_what_ends_early_says_so(run_cli, board, tmp_path, monkeypatch, command, cause):
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        cause(board, patched)
        status, out, err = run_cli(*command, "-o", run)
    assert (status, len(err)) == (3, 1)
    assert err[0].startswith(f"hypermon: {run}: the recording ended early: ")
    assert CAUSES[cause] in err[0]
    end = open_run(run).info.end
    assert (end["proper"], end["how"] in err[0]) == (False, True)
    last = json.loads(out.splitlines()[-1]) if "--json" in command else None
    assert last is None or (last["proper"], last["how"]) == (False, end["how"])
    events = open_run(run).stats()["events"]
    assert f" {events:,} items are kept, " in err[0]
    _, text, said = run_cli("stats", run)
    assert f"the recording ended early: {end['how']}" in said[0]
    assert "ended early: " in " ".join(text.split())


@pytest.mark.parametrize("options", [[], ["--events", "5"], ["--seconds", "0.001"]])
def test_what_ends_as_asked(run_cli, board, tmp_path, options):
    board.on_poll = lambda polls: __import__("time").sleep(0.002)
    status, out, _ = run_cli("record", "-b", "fake:", "-o", tmp_path / "run", *options, "--json")
    last = json.loads(out.splitlines()[-1])
    assert (status, last["proper"]) == (0, True)
    assert open_run(tmp_path / "run").info.end["proper"]
    assert last["how"] == {"": "the stimulus ended", "--events": "stopped at the given number of items",
                           "--seconds": "stopped at the time limit"}["".join(options[:1])]


def test_one_interrupt_is_a_proper_end(run_cli, board, tmp_path):
    board.endless = True
    board.on_poll = lambda polls: os.kill(os.getpid(), 2) if polls == 4 else None
    status, out, _ = run_cli("record", "-b", "fake:", "-o", tmp_path / "run")
    assert (status, "Next: hypermon stats" in out) == (0, True)
    assert open_run(tmp_path / "run").info.end["proper"]


@pytest.mark.parametrize("command", [["record", "-b", "fake:"], ["sim", "x.csv"]])
@pytest.mark.parametrize("late", ["hypermon.host.cli.record.complain", "tests.host.fake_board.FakeLink.close"])
def test_an_interrupt_after_the_end_changes_nothing(run_cli, board, tmp_path, monkeypatch, command, late):
    sent = []
    monkeypatch.setattr(late, lambda *_: sent.append(os.kill(os.getpid(), 2)))
    status, out, err = run_cli(*command, "-o", tmp_path / "run")
    assert (status, "Next: hypermon stats" in out, "interrupted" in "".join(err), len(sent)) == (0, True, False, 1)
    assert open_run(tmp_path / "run").info.end["how"] == "the stimulus ended"


def test_a_run_that_is_removed_while_it_is_recorded(run_cli, board, tmp_path):
    board.on_poll = lambda polls: polls == 4 and os.rename(tmp_path / "run", tmp_path / "away")
    status, out, err = run_cli("record", "-b", "fake:", "-o", tmp_path / "run")
    assert (status, out, len(err)) == (3, "", 1)
    assert "the disk cannot be written" in err[0]
    assert err[0].endswith("nothing was recorded")


def test_two_recorders_into_one_directory(run_cli, board, tmp_path):
    """The second is refused, at once or in a race, and does the first no harm."""
    seen = []

    def second(polls):
        if polls == 3:
            link, board.on_poll = FakeLink(random_run(FakeBoard(), random.Random(4), 3)), lambda polls: None
            from hypermon.host.device.device import Device, Settings
            from hypermon.host.errors import HypermonError
            from hypermon.host.record.recorder import record
            for aside in (False, True):
                with pytest.raises(HypermonError, match="it exists already"):
                    record(Device(link), tmp_path / "run", Settings(), aside=aside)
                seen.append(aside)

    board.on_poll = second
    status, _, _ = run_cli("record", "-b", "fake:", "-o", tmp_path / "run")
    assert (status, seen) == (0, [False, True])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [tuple(row.values()) for row in open_run(tmp_path / "run").events().to_pylist()] == board.board.events()


@pytest.mark.parametrize("command", [["record", "-b", "fake:"], ["sim", "x.csv"]])
def test_another_recorder_that_was_faster(run_cli, board, tmp_path, monkeypatch, command):
    """Between the look whether the directory is there and the making of it, or before a finished one gets its name."""
    from hypermon.host.recording import writer

    run, looks, real = tmp_path / "run", [], writer.refuse_existing

    def look(path):
        looks.append(path)
        if len(looks) <= 2:     # of the command, and of the writer
            real(path)
            if len(looks) == 2:
                run.mkdir()
                (run / "theirs").touch()
            return
        real(path)

    monkeypatch.setattr(writer, "refuse_existing", look)
    for module in ("host.cli.record", "sim.commands.sim"):
        monkeypatch.setattr(f"hypermon.{module}.refuse_existing", look)
    status, _, err = run_cli(*command, "-o", run)
    assert (status, len(err)) == (2, 1)
    assert "it exists already" in err[0]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in run.iterdir()] == ["theirs"]


# ------------------------------------------------------------------------------------- permissions

@pytest.fixture
def tmp_path():
    """Another user may read it. pytest's own directories are for their owner, and each pytest that begins, in this
    session or another, makes them so again."""
    with TemporaryDirectory(prefix="hypermon-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.fixture
def as_nobody(tmp_path):
    """``as_nobody(arguments...)``: the command as a user who owns nothing; its output."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")

    def run(*arguments):
        # The program is read before the user changes, who need not be able to read it.
        code = ("import difflib, os, sys; import hypermon.host.cli as cli, hypermon.host.analysis.stats; "
                "[cli.cli.get_command(None, name) for name in cli.COMMANDS]; import hypermon.host.export.formats; "
                "import hypermon.host.decode.decode, hypermon.host.analysis.query, hypermon.sim.virtual.link; "
                "import hypermon.sim.virtual.open; "
                f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); sys.exit(cli._run(sys.argv[1:]))")
        done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                              timeout=patience(120), cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr.splitlines()

    return run


def test_where_nothing_may_be_written(as_nobody, make_run, tmp_path):
    """One line, before a board is opened; and a decoded run of somebody else can be read."""
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    for command in (["record", "-b", "sim:", "-o", tmp_path / "new"], ["sim", "x.csv", "-o", tmp_path / "new"]):
        status, out, err = as_nobody(*command)
        assert (status, out, len(err)) == (2, "", 1), '\n'.join(err)
        assert f"nothing can be written in {tmp_path}" in err[0]
    status, out, err = as_nobody("decode", run.path)
    assert (status, out, len(err)) == (2, "", 1), '\n'.join(err)
    assert "Permission denied" in err[0]
    # Figures need no tables, and are the same with them.
    without = as_nobody("stats", run.path, "--json")
    wanted = Run(run.path).stats()["events"]
    status, out, err = as_nobody("stats", run.path, "--json")
    assert (status, json.loads(out)["events"], err) == (0, wanted, [])
    assert without == (status, out, err)
    (run.path / "recording.json").chmod(0o600)
    status, out, err = as_nobody("stats", run.path)
    assert (status, out, len(err)) == (2, "", 1), '\n'.join(err)
    assert "recording.json" in err[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
