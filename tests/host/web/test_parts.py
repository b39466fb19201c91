"""Parts of the live view by themselves: a page that goes, a recorder that does not end, files and figures."""

import asyncio
import sys
import time

import numpy as np
import pytest
from hypermon.host.live.history import Stretch
from hypermon.host.live.session import Session
from hypermon.host.record import process

from tests.host.fake_board import FakeBoard, random_run
from tests.patience import patience

aiohttp = pytest.importorskip("aiohttp")
from hypermon.host.web import files, live_tab, program, shown  # noqa: E402


@pytest.fixture
def serving(make_run):
    """``serving(work, name="run")``: runs ``work(client, session)`` against the server of a recording's page."""

    def go(work, name="run"):
        import random

        run = make_run(random_run(FakeBoard(), random.Random(3), 20), name=name)

        async def within():
            session = Session(None, run.path, run.path.parent)
            async with (program.listening(shown.Shown(session), "127.0.0.1", 0, None) as address,
                        aiohttp.ClientSession(address) as client):
                return await asyncio.wait_for(work(client, session), patience(30))

        return asyncio.run(within())

    return go


def test_a_page_that_goes_leaves_its_place_at_once(serving, monkeypatch):
    """Although nothing is shown for an hour."""
    monkeypatch.setattr(live_tab, "_TICK_S", 3600)
    monkeypatch.setattr(live_tab, "_PAGES_MOST", 1)

    async def work(client, session):
        for _ in range(3):
            async with client.ws_connect("/live/changes") as socket:
                with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                    await client.ws_connect("/live/changes")
                await socket.close()
            await asyncio.sleep(0.3)

    serving(work)


@pytest.mark.parametrize(("headers", "status"), [
    ({"Host": "[::1"}, 400), ({"Host": "localhost", "Origin": "http://[::1"}, 400), ({"Host": "localhost"}, 200),
    ({"Host": "elsewhere.example"}, 403), ({"Host": ""}, 403)])
def test_names_that_are_no_address(serving, headers, status):
    async def work(client, session):
        host, port = str(client._base_url.host), client._base_url.port
        reader, writer = await asyncio.open_connection(host, port)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"GET /live/ HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == str(status).encode()
        writer.close()

    serving(work)


@pytest.mark.parametrize(("name", "shown"), [("plain name", "plain name"), ('a "b" \\c', "a _b_ _c"), ("µs\t", "_s_")])
def test_the_name_of_a_file_is_safe_in_a_header(serving, monkeypatch, name, shown):
    script = "import sys; open(sys.argv[1], 'wb').write(b'made')"
    monkeypatch.setattr(files, "hypermon_command", lambda *words: [sys.executable, "-c", script, words[-1]])

    async def work(client, session):
        async with client.post("/live/perfetto") as answer:
            assert answer.status == 200
            assert answer.headers["Content-Disposition"] == f'attachment; filename="{shown}.pftrace"'
            assert await answer.read() == b"made"

    serving(work, name)


# ------------------------------------------------------------------------------------ the recorder

_DEAF = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print('{"events": 1}', flush=True)
time.sleep(60)
"""
_FAILING = "import sys; print('first\\nthe \\x1b[31mboard is gone', file=sys.stderr); sys.exit(2)"


@pytest.fixture
def recorder(monkeypatch, tmp_path):
    """``recorder(code)``: a RecorderProcess that runs this."""
    def start(code):
        monkeypatch.setattr(process, "hypermon_command", lambda *words: [sys.executable, "-c", code])
        return process.RecorderProcess("sim:", tmp_path / "run", [])

    return start


def test_a_recorder_that_does_not_end_is_killed(recorder):
    deaf = recorder(_DEAF)
    while not deaf.figures:
        time.sleep(0.01)
    deaf.close(0.2)
    assert deaf._process.returncode == -9
    assert deaf._process.stdout.closed
    assert not any(thread.is_alive() for thread in deaf._threads)


def test_a_session_says_why_its_recorder_failed(recorder, monkeypatch, tmp_path):
    monkeypatch.setattr("hypermon.host.live.session.identify", lambda board: {"nodes": 16})
    session = Session("sim:", None, tmp_path)
    recorder(_FAILING).close()
    session.start([])
    while session.state == "recording":
        session.step()
    assert session.state == "failed"
    assert session.failure == session.snapshot()["failure"] != ""
    assert "board is gone" in session.failure
    assert "\x1b" not in session.failure
    recorder("pass").close()
    session.start([])
    assert session.failure == ""
    while session.state == "recording":
        session.step()
    assert (session.state, session.failure) == ("ended", "")
    session.close()


# ------------------------------------------------------------------------------------ in the terminal

terminal = pytest.importorskip("hypermon.host.live.terminal")


def test_columns_add_up():
    counts = np.arange(20).reshape(10, 2)
    assert terminal._columns(counts, 10).tolist() == counts.tolist()
    assert terminal._columns(counts, 50).tolist() == counts.tolist()
    assert terminal._columns(counts, 5).tolist() == [[2, 4], [10, 12], [18, 20], [26, 28], [34, 36]]
    assert terminal._columns(counts, 1).tolist() == [[90, 100]]
    assert terminal._columns(counts, 3).sum(axis=0).tolist() == [90, 100]


def test_strips():
    text = terminal._strip(np.array([0, 1, 1000]), np.array([0, 0, 3]), 1000.0)
    assert text.plain == terminal._SHADES[0] + terminal._SHADES[1] + "█"
    assert [(span.start, span.end) for span in text.spans] == [(2, 3)]
    full = terminal._strip(np.array([1000]), np.array([0]), 1000.0)
    assert full.plain == terminal._SHADES[-1]


@pytest.mark.parametrize(("bin_ps", "end_ps", "rate"), [
    (10**11, 20 * 10**11, 10.0), (10**11, 19 * 10**11 + 5 * 10**10, 10 / 0.95), (10**12, 20 * 10**12, 1.0),
    (4 * 10**12, 80 * 10**12, 0.25), (10**13, 19 * 10**13 + 1, 1e12)])
def test_rates_of_the_last_second(bin_ps, end_ps, rate):
    ones = np.ones((20, 2))
    assert terminal._rates(Stretch(0, bin_ps, end_ps, ones, ones, ones[:, 0])) == pytest.approx([rate, rate])


def test_levels():
    assert terminal._level(3, None).plain == terminal._level(3, 0).plain == "\u2013"
    assert terminal._level(64, 128).plain == " 50% ████    "
    assert (terminal._level(85, 100).style, terminal._level(86, 100).style) == ("", "red")
