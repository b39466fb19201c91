"""What a recorder says of itself, to readers that read, and to readers that do not."""

import fcntl
import json
import os
import random
import time

import pytest
from hypermon.host.cli.progress_json import ProgressJson
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import Interrupt, record

from tests.host.fake_board import FakeBoard, FakeLink, random_run


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for end in ends:
        if end is not None:
            os.close(end)


@pytest.fixture
def recorded(tmp_path, monkeypatch, pipe):
    monkeypatch.setattr("hypermon.host.cli.progress_json._EVERY_S", 0)
    made = random_run(FakeBoard(nodes=32), random.Random(3), 30, losses=0.5)
    interrupt = Interrupt()
    feed = ProgressJson(pipe[1], interrupt)

    def go():
        ledger = record(Device(FakeLink(made, piece=100)), tmp_path / "run", Settings(), interrupt=interrupt,
                        progress=feed.recording)
        return ledger, feed, made

    return go


def test_lines(recorded, pipe):
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 1 << 20)
    ledger, feed, made = recorded()
    feed.end(ledger, "over")
    lines = [json.loads(line) for line in os.read(pipe[0], 1 << 20).splitlines()]
    assert len(lines) > 10
    assert lines[-1]["how"] == "over"
    assert lines[-1]["events_per_node"] == [made.delivered[node] for node in range(32)]
    assert lines[-1]["lost"] == sum(made.refused.values())
    assert lines[-1]["bytes"] == lines[-2]["bytes"] == len(made.data)
    assert [line["events"] for line in lines] == sorted(line["events"] for line in lines)


def test_lines_keep_their_distance(recorded, pipe, monkeypatch):
    """One at once; the next one not before its time, but for the last one."""
    monkeypatch.setattr("hypermon.host.cli.progress_json._EVERY_S", time.monotonic() / 2)
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 1 << 20)
    ledger, feed, _ = recorded()
    feed.end(ledger, "over")
    assert len(os.read(pipe[0], 1 << 16).splitlines()) == 2


def test_nobody_reads(recorded, pipe, tmp_path):
    """Lines are left out, none is torn, and all is recorded."""
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 4096)
    ledger, _, made = recorded()
    assert ledger.events == len(made.events())
    assert (tmp_path / "run" / "stream.bin").read_bytes() == made.data
    for line in os.read(pipe[0], 1 << 20).splitlines():
        json.loads(line)


def test_the_reader_has_gone(recorded, pipe, tmp_path):
    os.close(pipe[0])
    pipe[0] = None
    ledger, feed, _ = recorded()
    feed.end(ledger, "over")
    assert json.loads((tmp_path / "run" / "recording.json").read_text())["end"]["how"] == "interrupted"
    assert ledger.stopped
