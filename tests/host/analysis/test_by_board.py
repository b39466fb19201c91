"""Analyses of many boards: on this machine, by a Dask cluster, by Spark; all give the same."""

import json
import random
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, replace

import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.host import cli
from hypermon.host.analysis import by_board
from hypermon.host.analysis.by_board import ANALYSES, Messages, analyse, analyse_with_dask
from hypermon.host.errors import HypermonError
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, random_run
from tests.patience import patience, until

MESSAGES = Messages("nibble < 4", "nibble >= 12", "node % 2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Four boards of four nodes, of which the last records nothing."""
    path = tmp_path_factory.mktemp("boards") / "run"
    path.mkdir()
    for number in range(4):
        board = random_run(FakeBoard(4), random.Random(number), 40, losses=0.5) if number < 3 else FakeBoard(4)
        info = RunInfo(f"uart:{number}", 4, board.clock_hz, "800", LATENCY, board.epoch, sink=board.sink.name.lower())
        with RunWriter(path / f"board-{number}", info) as writer:
            writer.append(board.data)
            writer.close(how="test", duration_ps=12345)
        save_clock(path / f"board-{number}", WallClock(10**18 + 1000 * number, 10.0 * number, 400, 9))
    info = RunInfo.load(path / "board-0" / "recording.json")
    (path / "recording.json").write_text(json.dumps(asdict(
        replace(info, boards=[f"board-{number}" for number in range(4)], nodes=16))))
    return open_run(path)


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_figures_of_nodes(run):
    """They are what the events say, one by one."""
    events = run.events().to_pylist()
    assert len(events) > 500
    rate = Counter((e["node"] // 4, e["node"], e["time_ps"] // 10**9 * 10**9) for e in events)
    assert rows(analyse(run, "rate")) == sorted((*key, count) for key, count in rate.items())
    lost = Counter()
    for row in run.loss().to_pylist():
        lost[row["node"]] += row["lost"]
    assert [row[:3] for row in rows(analyse(run, "loss"))] == sorted((n // 4, n, count) for n, count in lost.items())
    frames = Counter((e["node"] // 4, e["time_ps"]) for e in events)
    merged = Counter()
    for (board, _), count in frames.items():
        merged[board] += count if count > 1 else 0
    assert [(board, count) for board, _, count in rows(analyse(run, "merging"))] == sorted(merged.items())
    gaps, last = Counter(), {}
    for e in events:
        if (before := last.get(e["node"])) is not None and e["time_ps"] > before:
            gaps[e["node"] // 4, e["node"], (e["time_ps"] - before).bit_length() - 1] += 1
        last[e["node"]] = e["time_ps"]
    assert rows(analyse(run, "noise")) == sorted((*key, count) for key, count in gaps.items())


def test_latencies(run):
    """From the last send to each receive of the same key, whichever board it is on; one at the same time counts."""
    events = run.events().to_pylist()
    wanted = {}
    for receive in (e for e in events if e["nibble"] >= 12):
        sends = [e["time_ps"] for e in events if e["nibble"] < 4 and e["time_ps"] <= receive["time_ps"]
                 and e["node"] % 2 == receive["node"] % 2]
        if sends:
            wanted.setdefault((receive["node"] // 4, receive["node"]), []).append(receive["time_ps"] - max(sends))
    assert rows(analyse(run, "latency", MESSAGES)) == sorted(
        (*node, len(took), min(took), sum(took), max(took)) for node, took in wanted.items())


def test_latencies_without_as_of_joins(run):
    """The text for other engines gives the same, also if an event is both a send and a receive."""
    for messages in (MESSAGES, Messages("nibble < 9", "nibble > 5", "nibble % 3")):
        with by_board._connect(by_board._files(run), ["events"]) as connection:
            found = connection.sql(by_board.LATENCY.format(**asdict(messages)) + " order by all").to_arrow_table()
        assert found.equals(analyse(run, "latency", messages))


def test_a_run_of_one_board(losing_run):
    """It is board 0."""
    assert sum(row[-1] for row in rows(analyse(losing_run, "rate"))) == losing_run.stats()["events"]
    assert {row[0] for row in rows(analyse(losing_run, "loss"))} == {0}


@pytest.mark.parametrize("messages", [Messages("nibble =", "true", "node"), Messages("true", "nothing = 1", "node"),
                                      Messages("true", "true", "node from events; select 1")])
def test_messages_that_are_no_sql(run, messages):
    with pytest.raises(HypermonError):
        analyse(run, "latency", messages)


@pytest.mark.parametrize("key", ["(select content from read_text('{}'))", "(select a from '{}')"])
def test_messages_read_nothing_else(run, tmp_path, key):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(HypermonError, match="the messages: "):
        analyse(run, "latency", Messages("true", "true", key.format(tmp_path / "secret.csv")))


def test_losses_are_said(losing_run, run_cli):
    """As by all commands that give figures of a run."""
    status, out, err = run_cli("analyse", losing_run.path, "rate")
    assert (status, bool(out), err) == (0, True, run_cli("stats", losing_run.path)[2])
    assert "items lost" in err[0]


@contextmanager
def clustered(folder):
    """A scheduler and two workers, each a process."""
    pytest.importorskip("distributed")
    started = [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                                 "--port", "0", "--no-dashboard", "--scheduler-file", folder / "scheduler.json"],
                                cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    try:
        until((folder / "scheduler.json").exists, "the scheduler")
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        started += [subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
                                      "--no-dashboard", "--no-nanny", "--local-directory", folder / f"{k}"], cwd=folder,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for k in range(2)]
        from distributed import Client

        with Client(address) as client:
            client.wait_for_workers(2, timeout=patience(60))
            yield client
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait(20)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clustered(tmp_path_factory.mktemp("cluster")) as client:
        yield client


#: A worker that runs this ends, as if killed, in the middle of the next part of an analysis.
KILLED = """
import os

from hypermon.host.analysis import by_board

def killed(*values, **more):
    os._exit(9)

by_board._asked = by_board._edges = by_board._share = killed
"""


@pytest.mark.parametrize("question", ["rate", "latency"])
def test_a_killed_worker(run, tmp_path, question):
    """The other does its work; if both die, that is said. Neither leaves a file."""
    run.decode()
    messages = MESSAGES if question == "latency" else None
    wanted, before = analyse(run, question, messages), sorted(run.path.rglob("*"))
    with clustered(tmp_path) as client:
        one, other = client.scheduler_info()["workers"]
        client.run(exec, KILLED, {}, workers=[one])
        assert rows(analyse_with_dask(run, question, client, messages, 4)) == rows(wanted)
        assert len(client.nthreads()) == 1, "it was not killed"
        assert sorted(run.path.rglob("*")) == before
        client.run(exec, KILLED, {}, workers=[other])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(by_board, "_ALONE_S", 4.0)
            with pytest.raises(HypermonError, match="no workers any more"):
                analyse_with_dask(run, question, client, messages, 4)
    assert sorted(run.path.rglob("*")) == before


def test_a_cluster_gives_the_same(run, cluster):
    for question in ANALYSES:
        assert analyse_with_dask(run, question, cluster).equals(analyse(run, question)), question
    wanted = analyse(run, "latency", MESSAGES)
    for shares in (1, 2, 5, None):
        assert rows(analyse_with_dask(run, "latency", cluster, MESSAGES, shares)) == rows(wanted)


def test_command(run, run_cli, cluster, tmp_path):
    address = cluster.scheduler.address
    options = ["--send", MESSAGES.send, "--receive", MESSAGES.receive, "--key", MESSAGES.key]
    for more in ([], ["--dask", address]):
        status, out, _ = run_cli("analyse", run.path, "latency", *options, *more)
        assert (status, [tuple(json.loads(line).values()) for line in out.splitlines()]) == (
            0, rows(analyse(run, "latency", MESSAGES)))
    assert run_cli("analyse", run.path, "rate", "-o", tmp_path / "rate.parquet")[0] == 0
    assert pq.read_table(tmp_path / "rate.parquet").equals(analyse(run, "rate"))


@pytest.mark.parametrize(("words", "said"), [
    (["latency"], "needs all three"), (["rate", "--key", "node"], "needs all three"),
    (["rate", "-o", "nowhere/x.parquet"], "there is no directory"),
    (["rate", "--dask", "tcp://127.0.0.1:9"], "start one with: dask scheduler")])
def test_command_that_cannot(run, capsys, words, said):
    if "--dask" in words:
        pytest.importorskip("distributed")
    assert cli._run(["analyse", str(run.path), *words]) == 2
    assert said in capsys.readouterr().err
