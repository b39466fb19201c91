"""The live page among clients that stop reading, never end a request, or are no page: others see nothing of it."""

import asyncio
import base64
import contextlib
import json
import os
import random
import socket
import struct
import time
from pathlib import Path

import pytest
from hypermon.host.live.session import Session

from tests.host.fake_board import FakeBoard, random_run
from tests.patience import in_time, patience

aiohttp = pytest.importorskip("aiohttp")
from hypermon.host.web import files, guard, live_tab, program, shown, sockets  # noqa: E402

TOKEN = "correct horse battery"


@pytest.fixture
def ask(make_run):
    """``ask(work, token=None)``: runs ``work(address, session)`` against the server of a recording's page."""
    run = make_run(random_run(FakeBoard(), random.Random(3), 20, losses=0.5))

    def go(work, token=None):
        async def within():
            session = Session(None, run.path, run.path.parent)
            async with program.listening(shown.Shown(session), "127.0.0.1", 0, token) as address:
                return await asyncio.wait_for(work(address, session), patience(60))

        return asyncio.run(within())

    return go


@contextlib.asynccontextmanager
async def client(address):
    async with aiohttp.ClientSession(address, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


@contextlib.asynccontextmanager
async def connected(address):
    """A connection, byte by byte; with a small window, so that what is not read soon holds up the sender."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    connection.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def upgrade(address, **headers):
    """The request that makes a connection a page's."""
    lines = {"Host": address.removeprefix("http://").rstrip("/"), "Upgrade": "websocket", "Connection": "Upgrade",
             "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": "13", **headers}
    head = (f"{name}: {value}" for name, value in lines.items())
    return "\r\n".join(["GET /live/changes HTTP/1.1", *head, "", ""]).encode()


def post(address, path, length=0):
    host = address.removeprefix("http://").rstrip("/")
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n".encode()


async def frames(socket, count):
    """The next frames of a page, and the notices between."""
    found, notices = [], []
    while len(found) < count:
        message = await socket.receive(timeout=patience(10))
        if message.type is aiohttp.WSMsgType.TEXT:
            notices.append(json.loads(message.data))
        else:
            assert message.type is aiohttp.WSMsgType.BINARY, message
            size = struct.unpack_from("<I", message.data)[0]
            found.append(json.loads(message.data[4:4 + size]))
    return found, notices


async def closed(reader, within_s):
    """Whether the server closes a connection, after at most so long, whatever it sends meanwhile."""
    try:
        async with asyncio.timeout(patience(within_s)):
            while await reader.read(1 << 16):
                pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


# ----------------------------------------------------------------------------------- pages that stop

def big(monkeypatch, size=1 << 20):
    """Frames that fill what the system keeps for a socket."""
    made = live_tab._message
    monkeypatch.setattr(live_tab, "_message", lambda *of: made(*of) + bytes(size))


def test_a_page_that_stops_reading(ask, monkeypatch):
    """Others go on at their pace; it is told what it missed when it reads again, or is cut off."""
    monkeypatch.setattr(live_tab, "_TICK_S", 0.02)
    big(monkeypatch)

    async def work(address, session):
        async with client(address) as there, there.ws_connect("/live/changes", max_msg_size=0) as other:
            await frames(other, 3)
            late = await there.ws_connect("/live/changes", max_msg_size=0)
            await frames(late, 1)
            late._reader._protocol.pause_reading()
            begun = time.monotonic()
            await frames(other, 100)
            in_time(begun, 10)
            late._reader._protocol.resume_reading()
            _, notices = await frames(late, 20)
            assert notices[-1]["dropped"] > 0
            _, notices = await frames(other, 1)
            assert notices == []
            await late.close()

    ask(work)


def test_a_page_that_never_reads_again_is_cut_off(ask, monkeypatch):
    monkeypatch.setattr(live_tab, "_TICK_S", 0.02)
    monkeypatch.setattr(sockets, "_STUCK_S", stuck_s := patience(0.5))
    big(monkeypatch)

    async def work(address, session):
        async with connected(address) as (reader, writer):
            writer.write(upgrade(address))
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(1)     # of the first frame, which takes a while to make
            await asyncio.sleep(3 * stuck_s)
            assert await closed(reader, 1)
        async with client(address) as there, there.ws_connect("/live/changes", max_msg_size=0) as other:
            await frames(other, 10)

    ask(work)


def test_many_stuck_pages(ask, monkeypatch):
    """No more than there is room for; one page that reads is served among them."""
    monkeypatch.setattr(live_tab, "_TICK_S", 0.05)
    monkeypatch.setattr(live_tab, "_PAGES_MOST", 10)
    big(monkeypatch, 1 << 18)

    async def work(address, session):
        async with (contextlib.AsyncExitStack() as stack, client(address) as there,
                    there.ws_connect("/live/changes", max_msg_size=0) as other):
            for _ in range(9):
                _, writer = await stack.enter_async_context(connected(address))
                writer.write(upgrade(address))
            await frames(other, 60)
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await there.ws_connect("/live/changes")
            assert refused.value.status == 503

    ask(work)


_MESSAGES = {
    "not JSON": "nonsense", "huge": "9" * 5000, "deep": "[" * 1000, "no span": "{}", "a list": "[1]",
    "text": '{"span_s": "9"}', "nan": '{"span_s": NaN}', "infinite": '{"span_s": Infinity}',
    "too much": '{"span_s": 1e300}', "negative": '{"span_s": -1}', "zero": '{"span_s": 0}', "true": '{"span_s": true}',
    "null": '{"span_s": null}', "many digits": f'{{"span_s": {"9" * 900}}}',
    "binary": b'{"span_s": 1}', "binary noise": bytes(range(256)),
}


@pytest.mark.parametrize("message", _MESSAGES.values(), ids=_MESSAGES)
def test_messages_that_no_page_sends(ask, monkeypatch, message):
    """They end the page that sends them, and say why; the others go on."""
    monkeypatch.setattr(live_tab, "_TICK_S", 0.02)

    async def work(address, session):
        async with (client(address) as there, there.ws_connect("/live/changes") as other,
                    there.ws_connect("/live/changes") as hostile):
            await (hostile.send_bytes if isinstance(message, bytes) else hostile.send_str)(message)
            while (said := await hostile.receive(timeout=patience(10))).type is aiohttp.WSMsgType.BINARY:
                pass
            assert said.type is aiohttp.WSMsgType.CLOSE
            assert (said.data, "SECONDS" in (said.extra or "")) in ((1008, True), (1009, False))
            await other.send_str('{"span_s": 1e9}')
            found, notices = await frames(other, 5)
            assert (found[-1]["state"], notices) == ("ended", [])

    ask(work)


def test_what_fails_once_is_said_and_goes_on(ask, monkeypatch, capfd):
    """The loop that shows what has changed outlives its body."""
    monkeypatch.setattr(live_tab, "_TICK_S", 0.02)

    async def work(address, session):
        async with client(address) as there, there.ws_connect("/live/changes") as page:
            await frames(page, 2)
            newest = session.newest
            session.newest = lambda board: 1 // 0
            while (message := await page.receive(timeout=patience(10))).type is aiohttp.WSMsgType.BINARY:
                pass
            assert "ZeroDivisionError" in json.loads(message.data)["trouble"]
            session.newest = newest
            _, notices = await frames(page, 2)
            assert notices == [{"trouble": ""}]

    ask(work)
    assert capfd.readouterr().err.count("hypermon: the view failed") == 1


# --------------------------------------------------------------------------- requests that never end

@pytest.mark.parametrize("begun", [b"", b"GET", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"\x16\x03\x01"])
@pytest.mark.parametrize("drips", [False, True])
def test_half_a_request_is_closed(ask, monkeypatch, begun, drips):
    """Also if a byte comes now and then."""
    monkeypatch.setattr(guard, "_WAIT_S", patience(0.6))
    monkeypatch.setattr(guard, "_SWEEP_S", 0.1)

    async def work(address, session):
        async with connected(address) as (reader, writer):
            writer.write(begun)
            sending = asyncio.create_task(drip(writer))
            if not drips:
                sending.cancel()
            assert await closed(reader, 3)
            sending.cancel()

    ask(work)


async def drip(writer):
    while True:
        await asyncio.sleep(0.1)
        writer.write(b"x")


def test_a_page_is_no_half_request(ask, monkeypatch):
    """Nor is a connection that is kept for the next request, while there are some."""
    monkeypatch.setattr(guard, "_WAIT_S", patience(0.5))
    monkeypatch.setattr(guard, "_SWEEP_S", 0.1)

    async def work(address, session):
        async with client(address) as there, there.ws_connect("/live/changes") as page:
            for _ in range(10):
                async with there.get("/web/live/live.js") as answer:
                    assert answer.status == 200
                await frames(page, 1)
            await page.send_str('{"span_s": 1}')
            await frames(page, 3)

    ask(work)


def test_a_connection_is_kept_while_it_asks(ask, monkeypatch):
    monkeypatch.setattr(guard, "_WAIT_S", patience(0.5))
    monkeypatch.setattr(guard, "_SWEEP_S", 0.05)

    async def work(address, session):
        host = address.removeprefix("http://").rstrip("/")
        async with connected(address) as (reader, writer):
            for _ in range(10):
                writer.write(f"GET /nothing HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience(5))
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
                await asyncio.sleep(0.12)

    ask(work)


def test_a_body_that_never_comes(ask, monkeypatch):
    monkeypatch.setattr(live_tab, "_BODY_S", patience(0.3))

    async def work(address, session):
        async with connected(address) as (reader, writer):
            writer.write(post(address, "/live/start", 100) + b"{")
            assert b" 408 " in await asyncio.wait_for(reader.readline(), patience(5))

    ask(work)


def test_connections_beyond_all_count(ask, monkeypatch):
    """The idlest make room; a page that looks on, and who comes with a request, do not notice."""
    monkeypatch.setattr(guard, "_CONNECTIONS", 8)

    async def work(address, session):
        async with (contextlib.AsyncExitStack() as stack, client(address) as there,
                    there.ws_connect("/live/changes") as page):
            idle = [await stack.enter_async_context(connected(address)) for _ in range(50)]
            async with there.get("/web/live/live.js") as answer:
                assert answer.status == 200
            gone = sum([await closed(reader, 0.05) for reader, _ in idle])
            assert gone >= 40
            await frames(page, 3)

    ask(work)


_SETTINGS = {"deep": "[" * 5000, "half": "{", "a list": "[]", "digits": f'{{"seconds": {"9" * 5000}}}',
             "bytes": b"\xff\xfe", "escapes": '{"\\u001b[2J": ""}', "a long name": f'{{"{"x" * 5000}": ""}}',
             "nan": '{"seconds": NaN}', "huge": "x" * 100_000}


@pytest.mark.parametrize("body", _SETTINGS.values(), ids=_SETTINGS)
def test_settings_that_no_page_sends(ask, body):
    async def work(address, session):
        async with client(address) as there:
            async with there.post("/live/start", data=body) as answer:
                text = await answer.text()
                assert answer.status in (400, 409, 413)
                assert text.isprintable()
                assert len(text) < 200
            assert session.state == "ended" or session.state == "following"

    ask(work)


# ------------------------------------------------------------------------------------- other pages

_STRANGERS = {
    "a name that was pointed here": {"Host": "evil.example"}, "no address": {"Host": "[::"},
    "another page": {"Origin": "http://evil.example"}, "a page of no origin": {"Origin": "null"},
    "another port": {"Origin": "http://127.0.0.1:1"}, "no web page": {"Origin": "file://"},
    "an image elsewhere": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "another port's page": {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
}


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("headers", _STRANGERS.values(), ids=_STRANGERS)
def test_nothing_for_other_pages(ask, monkeypatch, headers, token):
    """Not one route, also with the right cookie: and no process is started."""
    monkeypatch.setattr(files, "command_file", lambda *of: pytest.fail("a process"))

    async def work(address, session):
        async with client(address) as there:
            if token:
                await there.get("/", params={"token": token})
            for method, path in (("GET", "/"), ("GET", "/live/"), ("GET", "/live/changes"),
                                 ("POST", "/live/start"), ("POST", "/live/stop"),
                                 ("POST", "/live/perfetto"), ("GET", "/timeline/run"), ("GET", "/web/live/live.js"),
                                 ("GET", "/nothing")):
                own = headers if "Host" not in headers or token is None else {"Origin": f"http://{headers['Host']}"}
                async with there.request(method, path, headers=own) as answer:
                    assert answer.status in (400, 403), (method, path)
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await there.ws_connect("/live/changes", headers=own)

    ask(work, token)


def test_a_link_elsewhere_opens_the_page_alone(ask):
    async def work(address, session):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        async with client(address) as there:
            for path, status in (("/", 200), ("/live/", 200), ("/timeline/", 200), ("/live/changes", 403),
                                 ("/timeline/run", 403), ("/web/live/live.js", 403)):
                async with there.get(path, headers=headers) as answer:
                    assert answer.status == status
            async with there.get("/live/perfetto") as answer:
                assert answer.status == 405

    ask(work)


def test_tokens_of_any_bytes(ask):
    async def work(address, session):
        host = address.removeprefix("http://").rstrip("/").encode()
        for line in (b"GET /?token=%ff%fe HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nCookie: hypermon_token=\xff\xe9\r\n"):
            async with connected(address) as (reader, writer):
                writer.write(line + b"Host: " + host + b"\r\n\r\n")
                assert b" 403 " in await asyncio.wait_for(reader.readline(), patience(5))

    ask(work, TOKEN)


# ------------------------------------------------------------------------------- files that are asked for

#: In place of the command: it notes that it runs, and makes a file when it is let.
_EXPORT = """
import os, pathlib, sys, time
note, out = pathlib.Path(sys.argv[1]), sys.argv[2]
(note / f"began-{os.getpid()}").touch()
while not (note / "go").exists():
    time.sleep(0.02)
open(out, "wb").write(b"x" * 20_000_000)
"""


@pytest.fixture
def export(monkeypatch, tmp_path):
    """The folder in which the exports are noted."""
    note = tmp_path / "exports"
    note.mkdir()
    monkeypatch.setattr(files, "hypermon_command", lambda *of: [os.sys.executable, "-c", _EXPORT, str(note), of[-1]])
    return note


async def until(ready):
    began = time.monotonic()
    while not ready():
        in_time(began, 40)
        await asyncio.sleep(0.02)


def alive(note: Path) -> int:
    return sum(Path(f"/proc/{path.name.partition('-')[2]}").exists() for path in note.glob("began-*"))


def test_one_file_at_a_time(ask, export):
    async def work(address, session):
        session.step()
        async with client(address) as there:
            first = asyncio.create_task(there.post("/live/perfetto"))
            await until(lambda: alive(export) == 1)
            for _ in range(20):
                async with there.post("/live/perfetto") as answer:
                    assert answer.status == 409
            (export / "go").touch()
            async with await first as answer:
                assert len(await answer.read()) == 20_000_000
            async with there.post("/live/perfetto") as answer:
                assert (answer.status, len(await answer.read())) == (200, 20_000_000)
        assert len(list(export.glob("began-*"))) == 2

    ask(work)


def test_a_file_that_nobody_waits_for(ask, export):
    """Its process ends, and the next one may begin: soon after, as the server may learn of the end later."""
    async def begun(address, count, stack):
        """Requests the file until a process makes it: 409 says that the last one is not yet put away."""
        for _ in range(100):
            reader, writer = await stack.enter_async_context(connected(address))
            writer.write(post(address, "/live/perfetto"))
            refused = asyncio.create_task(reader.readline())
            try:
                await until(lambda refused=refused: len(list(export.glob("began-*"))) == count or refused.done())
                if not refused.done():
                    return
                assert b" 409 " in refused.result()
            finally:
                refused.cancel()
            await asyncio.sleep(0.05)
        pytest.fail("always refused")

    async def work(address, session):
        session.step()
        for count in (1, 2, 3):
            async with contextlib.AsyncExitStack() as stack:
                await begun(address, count, stack)
                assert alive(export) == 1
            await until(lambda: alive(export) == 0)

    ask(work)


def test_a_file_that_nobody_takes(ask, export, monkeypatch):
    monkeypatch.setattr(files, "_PIECE_S", piece_s := patience(0.3))
    (export / "go").touch()

    async def work(address, session):
        session.step()
        async with connected(address) as (reader, writer):
            reader._transport.pause_reading()
            writer.write(post(address, "/live/perfetto"))
            await asyncio.sleep(5 * piece_s)
            reader._transport.resume_reading()
            assert await closed(reader, 2)

    ask(work)
