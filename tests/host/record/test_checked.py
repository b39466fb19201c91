"""`record --check`: rules that are judged while a board is recorded."""

import json
import subprocess
import sys
import time

import pytest
from hypermon.hdl.layout import Window
from hypermon.host.record import checked, recorder
from hypermon.host.record.process import hypermon_command
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard, FakeLink

TICK = """
[[rule]]
name = "the tick is steady"
kind = "period"
event = "nibble:7"
every = "1 ms"
tolerance = "%s"
"""
SHARE = """
[[rule]]
name = "mostly on"
kind = "share"
begin = "nibble:1"
end = "nibble:2"
min = 0.5
"""


def ticking(late=(), lost=(), ticks=60, **more) -> FakeLink:
    """Node 1 writes 7 every millisecond; the windows are 10 ns. A few ticks are late by 20 us, or lost."""
    board = FakeBoard(nodes=2, window=Window.CLOCK).start()
    for k in range(1, ticks):
        stamp = 100_000 * k + 2000 * (k in late)
        if k in lost:
            board.loss([(1, 1, stamp, stamp)])
        else:
            board.frames([(stamp, {1: 7})])
        board.census(time=stamp + 50_000)
    link = FakeLink(board.stop(100_000 * ticks), piece=400, **more)
    link.on_poll = lambda polls: time.sleep(0.002)
    return link


@pytest.fixture
def record(run_cli, relayed, tmp_path):
    """``record(link, rules, arguments...)``: exit status, output, lines of error output, the directory."""
    def recorded(link, rules, *arguments):
        (tmp_path / "rules.toml").write_text(rules)
        run = tmp_path / "run"
        status, out, err = run_cli("record", "-b", relayed(link), "-o", run, "--window", "1", "--check",
                                   tmp_path / "rules.toml", *arguments)
        return status, out, [line.replace(f"{run}", "RUN") for line in err], run
    return recorded


def test_a_violation_and_the_verdicts(record):
    status, out, err, _ = record(ticking(late=[10, 30]), TICK % "5 us")
    assert status == 1
    assert f"RUN: {at_of(err)} s, node 1: violates 'the tick is steady' (period)" in err
    assert "the tick is steady  period  fail" in out


def at_of(err):
    """The time in the line: the board's latency is subtracted."""
    [line] = [line for line in err if "violates" in line]
    at = line.split()[1]
    assert 0.01001 < float(at) < 0.01003
    return at


def test_until_fail(record):
    """The board would never end; what was recorded up to the violation is whole."""
    status, out, err, path = record(ticking(late=[10], endless=True), TICK % "5 us", "--until-fail")
    assert (status, "  fail  " in out) == (1, True)
    assert at_of(err)
    end = Run(path).info.end
    assert (end["how"], end["proper"]) == ("stopped at a violation of 'the tick is steady'", True)
    assert Run(path).decode()["complete"]


@pytest.mark.parametrize(("late", "lost", "status"), [([], [], 0), ([], [20], 4)])
def test_no_violation(record, late, lost, status):
    """A tick that was lost may have come: it is no violation while recording, and undecided after it."""
    found, _, err, _ = record(ticking(late, lost), TICK % "5 us", "--until-fail")
    assert found == status
    assert not any("violates" in line for line in err)


def test_what_is_judged_after_the_end(record):
    status, out, err, _ = record(ticking(), TICK % "5 us" + SHARE)
    assert err.count("judged after the end only: mostly on") == 1
    assert (status, "mostly on" in out) == (4, True)


@pytest.mark.parametrize(("rules", "said"), [
    (TICK % "soon", "rules.toml:7: the tick is steady: tolerance: a time is a text with a unit"),
    (TICK.replace("nibble:7", "event:7") % "1 us", "rules.toml:5: the tick is steady: the run has no events yet"),
    (TICK.replace("\"nibble:7\"", '{ event = "nibble:7", nodes = [2] }') % "1 us", "there is no node 2, but 0 to 1")])
def test_rules_that_are_refused(record, rules, said):
    """Before the capture starts; and those that are not valid, before the board is opened."""
    link = ticking()
    status, out, err, run = record(link, rules)
    assert (status, out) == (2, "")
    assert said in err[-1]
    assert not run.exists()
    assert not any(value & 2 for value in link.control)


@pytest.mark.parametrize(("arguments", "said"), [
    (["--until-fail"], "--until-fail needs --check RULES"),
    (["--check", "rules.toml", "--keep", "events"], "--check judges the stream of one board"),
    (["--check", "rules.toml", "-b", "sim:a.csv", "-b", "sim:b.csv"], "--check judges the stream of one board"),
    (["--check", "rules.toml", "--drain", "registers"], "--check judges the stream of one board"),
    (["--check", "missing.toml"], "missing.toml: ")])
def test_options_that_are_refused(run_cli, tmp_path, arguments, said):
    status, _, [error] = run_cli("record", "-b", "uart:/dev/none", "-o", tmp_path / "run", *arguments)
    assert status == 2
    assert said in error


def test_a_checker_that_is_killed(record, monkeypatch):
    """The recording goes on, and is judged after its end."""
    monkeypatch.setattr(checked, "hypermon_command", lambda *arguments: [sys.executable, "-c", (
        "import os; print('{\"ready\": true}', flush=True); os.kill(os.getpid(), 9)")])
    status, out, err, path = record(ticking(late=[10]), TICK % "5 us", "--until-fail")
    assert status == 1
    [line] = [line for line in err if "judged before" in line]
    assert line == "RUN: no rule is judged before the end any more: the process that judges ended with status -9"
    assert Run(path).decode()["complete"]
    assert "fail" in out


def test_a_recording_that_ends_early(record, monkeypatch):
    """It keeps its exit status 3, and the items until then are judged."""
    monkeypatch.setattr(recorder, "_SILENCE_S", 0.3)
    status, out, err, _ = record(ticking(late=[10], mute=True), TICK % "5 us", "--seconds", "0.001")
    assert status == 3
    assert "the tick is steady" in out
    assert "the recording ended early" in err[-1]


def test_on_the_virtual_board(tmp_path):
    rows = [row for k in range(1, 20) for row in (
        (k * 10**6, 7), (k * 10**6 + 1000 + 20_000 * (k == 7), 23))]
    (tmp_path / "s.csv").write_text("time_ns,node,port\n" + "".join(f"{t},2,{value}\n" for t, value in rows))
    (tmp_path / "rules.toml").write_text(TICK % "5 us")
    done = subprocess.run(hypermon_command("record", "-b", "sim:s.csv", "-o", "run", "--window", "1", "--json",
                                           "--check", "rules.toml"), cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if "building the virtual board" not in line]
    assert said == ["run: 0.007021 s, node 2: violates 'the tick is steady' (period)"]
    [rule] = json.loads(done.stdout.splitlines()[-1])["rules"]
    assert rule["where"][0] == {"time_ps": 7_021_000_000, "node": 2}
