"""Two virtual boards in one recording."""

import os
import signal
import subprocess
import sys
import time

import pytest
from hypermon.host import cli
from hypermon.host.record import several_boards
from hypermon.host.run import open_run


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


def test_virtual_boards_cannot_follow(extended, tmp_path, capsys, monkeypatch):
    """It ends, with one line and status 3; what the first board recorded is kept, and nothing is said of a wire."""
    monkeypatch.setattr(several_boards, "_WAVE_S", 1.0)
    path, run = tmp_path / "x.csv", tmp_path / "run"
    path.write_text("time_ns,node,port\n1000,3,5\n1100,3,21\n")
    began = time.monotonic()
    words = ["record", "-b", f"sim:{path}", "-b", "sim:", "-o", str(run), "--config", "extended", "--follow"]
    assert cli._run(words) == 3
    assert time.monotonic() - began < 300   # it hung; a busy machine may take a minute
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == (f"hypermon: sim:: it received no wave from sim:{path}, because virtual boards cannot be wired; "
                        f"what was recorded is in {run}")
    opened = open_run(run)
    assert [row["node"] for row in opened.events().to_pylist()] == [3]
    assert opened.stats()["boards"][1]["uncertainty_ns"] is None
    assert not opened.stats()["complete"]


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
        _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < 40, said
    assert process.returncode in (2, 3, 130, *([-signal.SIGINT] if twice else [])), said
    assert "Traceback" not in said
    assert left(run) == []
    if (run / "recording.json").exists():
        assert open_run(run).stats()["nodes"] == 32
    else:
        assert not run.exists() or (run / "board-0" / "recording.json").exists()
