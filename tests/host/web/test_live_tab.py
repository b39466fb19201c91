"""Who gets the live tab, and what a page may ask for."""

import asyncio
import json
import random
import struct

import numpy as np
import pytest
from click.testing import CliRunner
from hypermon.host.cli import _run
from hypermon.host.cli.live import serve
from hypermon.host.errors import HypermonError
from hypermon.host.live.options import options
from hypermon.host.live.session import Session

from tests.host.fake_board import FakeBoard, random_run
from tests.patience import patience

aiohttp = pytest.importorskip("aiohttp")
TOKEN = "correct horse battery"


@pytest.fixture
def ask(make_run):
    """``ask(work, token=None)``: runs ``work(client)`` against the page of a recording."""
    from aiohttp.test_utils import TestClient, TestServer
    from hypermon.host.web.program import application
    from hypermon.host.web.shown import Shown

    made = random_run(FakeBoard(), random.Random(3), 20, losses=0.5)
    run = make_run(made)

    def go(work, token=None):
        async def within():
            session = Session(None, run.path, run.path.parent)
            jar = aiohttp.CookieJar(unsafe=True)    # which keeps those of addresses in numbers
            async with TestClient(TestServer(application(Shown(session), token=token)), cookie_jar=jar) as client:
                return await work(client)

        return asyncio.run(within())

    go.made = made
    return go


def test_the_page_and_its_parts(ask):
    async def work(client):
        for path, kind in (("/", "text/html"), ("/web/live/live.js", "text/javascript"),
                           ("/web/live/live.css", "text/css"),
                           ("/web/kit/uPlot.iife.min.js", "text/javascript")):
            async with client.get(path) as answer:
                assert (answer.status, answer.content_type) == (200, kind)
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
        for path in ("/web/__init__.py", "/web/kit/uPlot.LICENSE", "/web/..%2fprogram.py", "/web/live/nothing.js",
                     "/web/nothing/live.js", "/web/live.js", "/other"):
            async with client.get(path) as answer:
                assert answer.status == 404

    ask(work)


def test_what_a_view_gets(ask):
    async def work(client):
        async with client.ws_connect("/live/changes") as socket:
            await socket.send_str(json.dumps({"span_s": 1e9}))
            while True:
                data = await socket.receive_bytes(timeout=patience(10))
                size = struct.unpack_from("<I", data)[0]
                state = json.loads(data[4:4 + size])
                if state["state"] == "ended" and state["begin_ps"] == 0:
                    return state, np.frombuffer(data, "<f4", offset=4 + size)

    state, numbers = ask(work)
    assert state["items"] == [ask.made.delivered[node] for node in range(16)]
    items, lost = numbers[:state["bins"] * 16], numbers[state["bins"] * 16:state["bins"] * 32]
    assert (items.reshape(-1, 16).sum(axis=0).tolist(), lost.sum()) == (state["items"], sum(state["lost"]))
    assert len(numbers) == state["bins"] * 33
    assert state["newest"][-1]["time_ps"] == ask.made.events()[-1][0]


@pytest.mark.parametrize("headers", [{"Host": "evil.example:80"}, {"Origin": "http://evil.example"}])
def test_other_pages_are_refused(ask, headers):
    async def work(client):
        for path, method in (("/", "get"), ("/live/start", "post"), ("/live/changes", "get")):
            async with client.request(method, path, headers=headers) as answer:
                assert answer.status == 403

    ask(work)


def test_a_token(ask):
    async def work(client):
        for path in ("/", "/live/", "/live/changes", "/web/live/live.js", "/?token=wrong"):
            async with client.get(path, headers={"Host": "lab.example"}) as answer:
                assert answer.status == 403
        async with client.get("/", params={"token": TOKEN}) as answer:
            assert (answer.status, str(answer.url.relative())) == (200, "/live/")
        async with client.get("/web/live/live.js") as answer:
            assert answer.status == 200

    ask(work, TOKEN)


def test_a_recording_cannot_be_started(ask):
    async def work(client):
        for path, body, said in (("/live/start", {}, "serve a board"), ("/live/stop", {}, "no recording is running"),
                                 ("/live/start", {"output": "x"}, "output: there is no such setting"),
                                 ("/live/start", [], "pairs of a name and a value")):
            async with client.post(path, json=body) as answer:
                assert (answer.status, said in await answer.text()) == (409, True)

    ask(work)


def test_settings_become_options():
    assert options({"config": "extended", "mode": "event 3=nibble", "start": " node=1,nibble=7 ", "stop": "",
                    "mask_nodes": "0xff", "seconds": "-o x"}) == [
        "--config=extended", "--mode=event", "--mode=3=nibble", "--start=node=1,nibble=7", "--mask=nodes=0xff",
        "--seconds=-o x"]
    for form in ({"board": "sim:"}, {"start": 7}, {"start": "a\nb"}, {"start": "x" * 300}):
        with pytest.raises(HypermonError):
            options(form)


@pytest.mark.parametrize("arguments", [["--host", "0.0.0.0"], ["--host", "::"], ["--host", "lab.example"],
                                       ["--host", "0.0.0.0", "--token", "short"], ["--token", "short"]])
def test_beyond_loopback_a_token_is_needed(arguments, capsys):
    assert _run(["serve", "-b", "sim:", *arguments]) == 2
    assert "openssl rand" in capsys.readouterr().err


def test_no_such_board(capsys):
    assert _run(["serve", "-b", "nothing"]) == 2
    assert "a board is" in capsys.readouterr().err


def test_help_has_examples():
    assert "hypermon serve -b" in CliRunner().invoke(serve, ["--help"]).output


def test_events_have_the_names_of_the_runs_dictionary(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(3), 20))
    for text, names in (("[send]\nid = 4\n", {4: "send"}), ("no dictionary", {})):
        (run.path / "dictionary.toml").write_text(text)
        session = Session(None, run.path, run.path.parent)
        assert session.snapshot()["names"] == names
        session.close()
