"""Two virtual boards in one recording."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypermon.hdl.layout import Extra
from hypermon.host import cli
from hypermon.host.decode import drift
from hypermon.host.run import open_run
from hypermon.sim.virtual.build import library

from tests.patience import in_time, patience


def test_two_virtual_boards(classic, tmp_path, capsys):
    times = (range(1000, 40_000, 1000), range(1500, 40_000, 3000))
    boards = []
    for number, own in enumerate(times):
        path = tmp_path / f"{number}.csv"
        path.write_text("time_ns,node,port\n" + "".join(
            f"{t},{2 + number},{t // 500 % 16}\n{t + 100},{2 + number},{16 + t // 500 % 16}\n" for t in own))
        boards += ["-b", f"sim:{path}"]
    run = tmp_path / "run"
    assert cli._run(["record", *boards, "-o", str(run), "--window", "200"]) == 0
    assert f"{run}: {sum(map(len, times))} items, 0 lost" in capsys.readouterr().out
    opened = open_run(run)
    # An edge is stamped with the begin of its window.
    wanted = sorted((t + 100, 2 + 17 * number, t // 500 % 16) for number, own in enumerate(times) for t in own)
    got = opened.events().to_pylist()
    assert [(row["node"], row["nibble"]) for row in got] == [(node, nibble) for _, node, nibble in wanted]
    late = [row["time_ps"] - 1000 * time for row, (time, *_) in zip(got, wanted, strict=True)]
    assert -200_000 <= min(late) <= max(late) <= 600_000
    assert opened.info.boards == ["board-0", "board-1"]
    assert opened.stats()["complete"]


def probes(path, node: int, count: int = 60) -> None:
    """The same strobes for every board, at one node."""
    path.write_text("time_ns,node,port\n" + "".join(
        f"{t},{node},{k % 16}\n{t + 200},{node},{16 + k % 16}\n{t + 600},{node},{k % 16}\n"
        for k, t in enumerate(range(3007, 3007 + 1013 * count, 1013))))


@pytest.mark.parametrize(("wires", "follows", "hops"), [("star", [None, 0, 0], 1), ("chain", [None, 0, 1], 2)])
def test_virtual_boards_are_wired(extended, tmp_path, capsys, wires, follows, hops):
    """Boards with clocks of their own, each in a process, share one time; a strobe that all see has one time."""
    boards = []
    for number, asked in enumerate(("ppm=40", "ppm=-45&wire_ns=10", "ppm=30&wire_ns=5&seed=3")):
        probes(tmp_path / f"{number}.csv", number)
        boards += ["-b", f"sim:{tmp_path / f'{number}.csv'}?{asked}"]
    run = tmp_path / "run"
    words = ["record", *boards, "-o", str(run), "--config", "extended", "--window", "1", "--follow", "--wires", wires]
    assert cli._run(words) == 0, capsys.readouterr().err
    opened = open_run(run)
    assert opened.info.wires == [None if own is None else {"follows": own} for own in follows]
    assert [own["how"] for own in opened.stats()["boards"]] == ["first", "wire", "wire"]
    assert None not in [own["uncertainty_ns"] for own in opened.stats()["boards"]]
    assert "sync_in" not in opened.info.board
    times = [[row["time_ps"] for row in opened.events(nodes=[17 * number]).to_pylist()] for number in range(3)]
    assert list(map(len, times)) == [60] * 3
    # A clock is 10 ns, and an input may be seen a clock late; the wires take 10 and 5 ns.
    assert all(max(row) - min(row) <= (2 + hops) * 10_000 + 15_000 for row in zip(*times, strict=True))


def test_a_virtual_board_keeps_its_own_clock(stored, tmp_path, capsys):
    """By the command line from end to end: `with=drift`, marks in the recording, a line with bends in the tables, and
    times within what is printed. Without the extra, the same board is stepped."""
    clock_ps = 10_000
    library(replace(stored, extras=(Extra.DRIFT,)))     # while it is built, no other board waits for it
    boards = []
    for number, asked in enumerate(("ppm=40", "ppm=-45&wire_ns=10&with=drift&seed=5", "ppm=60&seed=6")):
        probes(tmp_path / f"{number}.csv", number, 9000)
        boards += ["-b", f"sim:{tmp_path / f'{number}.csv'}?{asked}"]
    run = tmp_path / "run"
    words = ["record", *boards, "-o", str(run), "--config", "extended", "--window", "1", "--follow"]
    assert cli._run(words) == 0, capsys.readouterr().err
    assert cli._run(["decode", str(run)]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert cli._run(["stats", str(run), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    said = figures["boards"]
    assert figures["thresholds"].items() >= drift.THRESHOLDS.items()
    assert [own["how"] for own in said] == ["first", "wire", "wire"]
    assert [len(own["bends"]) > 1 for own in said] == [False, True, False]
    assert [bool(json.loads((run / f"board-{k}" / "recording.json").read_text())["configuration"].get("own_clock"))
            for k in range(3)] == [False, True, False]
    assert (run / "board-1" / "drift.bin").stat().st_size >= 16 * 5
    assert abs(said[1]["drift_ppm"] - 85) < 1
    opened = open_run(run)
    times = [opened.events(nodes=[17 * k]).column("time_ps").to_numpy() for k in range(3)]
    assert list(map(len, times)) == [9000] * 3
    late = times[1] - times[0] + 10_000     # the wire's delay, which no echo has measured
    assert abs(late).max() <= 1000 * said[1]["uncertainty_ns"] <= 1.6 * clock_ps
    assert clock_ps < abs(times[2] - times[0]).max() <= 3 * clock_ps


def events(path, identity: int, count: int = 80) -> None:
    """Events of an id and a sequence number at node 0, the same moments for every board."""
    rows = []
    for k in range(count):
        at = 4003 + 2017 * k
        for nibble in (2, identity, 0, k % 16, k // 16):
            rows += [f"{at},0,{nibble}", f"{at + 40},0,{16 + nibble}", f"{at + 90},0,{nibble}"]
            at += 130
    path.write_text("\n".join(["time_ns,node,port", *rows]) + "\n")


def test_a_misalignment_of_three_clocks_is_found(extended, tmp_path, capsys):
    """Wires that were measured by echo: messages that need no time stay within what is printed; if the times of one
    board are three clocks wrong, they do not."""
    boards = []
    for number, asked in enumerate(("?ppm=-20", "?ppm=35&wire_ns=180")):
        events(tmp_path / f"{number}.csv", 1 + number)
        boards += ["-b", f"sim:{tmp_path / f'{number}.csv'}{asked}"]
    echoes, run = tmp_path / "echo.json", tmp_path / "run"
    assert cli._run(["echo", *boards, "-o", str(echoes), "--sets", "1"]) == 0, capsys.readouterr().err
    [_, wire] = json.loads(echoes.read_text())["wires"]
    assert abs(wire["delay_ps"] - 180_000) <= 2500 <= wire["uncertainty_ps"] + 1
    dictionary = tmp_path / "events.toml"
    dictionary.write_text('[sent]\nid = 1\nfields = { n = "u8" }\nsend = "m"\nkey = "n"\n'
                          '[got]\nid = 2\nfields = { n = "u8" }\nreceive = "m"\nkey = "n"\n')
    words = ["record", *boards, "-o", str(run), "--config", "extended", "--mode", "event", "--follow"]
    assert cli._run([*words, "--echo", str(echoes)]) == 0, capsys.readouterr().err
    [_, aligned] = open_run(run).stats()["boards"]
    assert aligned["uncertainty_ns"] <= 23
    assert cli._run(["decode", str(run), "--dictionary", str(dictionary)]) == 0
    capsys.readouterr()
    assert cli._run(["check", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["matched"], found["beyond"]) == (80, 0)
    assert found["backwards"] > 5
    info = json.loads((run / "recording.json").read_text())
    del info["check"]
    info["wires"][1]["delay_ps"] -= 30_000
    (run / "recording.json").write_text(json.dumps(info))
    assert cli._run(["check", str(run), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["beyond"] > 20
    # Echoes of other boards, or of other wires, are not used.
    refused = ["record", *boards[:2], "-b", "sim:", "-o", str(tmp_path / "x"), "--config", "extended", "--follow"]
    assert cli._run([*refused, "--echo", str(echoes)]) == 2
    assert "it was measured of" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_virtual_and_real_boards_cannot_be_wired(tmp_path, capsys):
    run = tmp_path / "run"
    words = ["record", "-b", "sim:", "-b", "uart:/dev/none", "-o", str(run), "--config", "extended", "--follow"]
    assert cli._run(words) == 2
    assert "sim: is virtual and uart:/dev/none is not: they cannot be wired" in capsys.readouterr().err
    assert not run.exists()


@pytest.mark.parametrize("asked", ["ppm=x", "ppm=501", "wire_ns=-1", "ppm=1&colour=red", "ppm=1,2", "with=nothing",
                                   "ppm=1&with="])
def test_a_virtual_board_that_is_asked_for_nonsense(tmp_path, capsys, asked):
    assert cli._run(["record", "-b", f"sim:?{asked}", "-o", str(tmp_path / "run"), "--config", "extended"]) == 2
    assert "is not understood" in capsys.readouterr().err


def test_extras_of_a_virtual_board(extended, tmp_path, capsys):
    """A classic board has none; a pin that a board does not have cannot start its capture."""
    out = ["-o", str(tmp_path / "run")]
    assert cli._run(["record", "-b", "sim:?with=drift", *out]) == 2
    assert "add --config extended" in capsys.readouterr().err
    assert cli._run(["record", "-b", "sim:", *out, "--config", "extended", "--trigger-in", "start"]) == 2
    assert "has no pin trigger_in" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def left(directory) -> list[str]:
    """Processes that work in a directory."""
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if str(directory) in line]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("after_s", [0.7, *(pytest.param(0.6 * k, marks=pytest.mark.slow) for k in range(12))])
def test_ctrl_c_at_every_moment(extended, tmp_path, after_s, twice):
    """While boards are opened, while a wave is waited for, while they record, while they end: all is over soon, no
    process is left, and the run is either not there or can be opened."""
    run = tmp_path / "run"
    command = [sys.executable, "-c", "from hypermon.host.cli import main; main()", "record", "-b", "sim:", "-b", "sim:",
               "-o", str(run), "--config", "extended", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ) as process:
        while not run.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(after_s)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        if twice:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=patience(60))
    in_time(began, 40)
    assert process.returncode in (0, 2, 3, 130, *([-signal.SIGINT] if twice else [])), said
    assert "Traceback" not in said
    assert left(run) == []
    if (run / "recording.json").exists():
        assert open_run(run).stats()["nodes"] == 32
    else:
        assert not run.exists() or (run / "board-0" / "recording.json").exists()
