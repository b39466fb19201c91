"""The live web page: aiohttp on loopback, a WebSocket for what changes, nothing from anywhere else.

Who can reach the page can record with the board, so beyond loopback it takes a token; and a request must come from the
page itself (its Host and Origin are looked at), because any web page that the user has open can send requests to
loopback.
"""

import asyncio
import contextlib
import hmac
import json
import signal
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web
from hypermon.host.doors import is_loopback, refuse_open_door
from hypermon.host.errors import HypermonError
from hypermon.host.live.history import Stretch
from hypermon.host.live.options import options
from hypermon.host.live.session import Session

__all__ = ["application", "serve"]

_TICK_S = 0.2
_COOKIE = "hypermon_token"
_SPAN_PS = 10**13
_SESSION = web.AppKey("session", Session)
#: A session is for one at a time.
_ALONE = web.AppKey("alone", asyncio.Lock)
#: Sockets, and the time that each shows.
_CLIENTS = web.AppKey("clients", dict[web.WebSocketResponse, int])
_POLICY = ("default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
           "base-uri 'none'; form-action 'self'")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(session: Session, token: str | None = None) -> web.Application:
    """The page of a session.

    Parameters
    ----------
    token : what every request must bring, once as ``/?token=...``, then by a cookie; None: nothing.
    """
    app = web.Application(middlewares=[_guard(token)])
    app[_SESSION] = session
    app[_CLIENTS] = {}
    app[_ALONE] = asyncio.Lock()
    app.add_routes([
        web.get("/", _page), web.get("/live", _live), web.post("/start", _start), web.post("/stop", _stop),
        web.get("/perfetto", _perfetto), web.get("/web/{name}", _file)])
    app.cleanup_ctx.append(_ticking)
    return app


def _guard(token: str | None) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        host = urlsplit(f"//{request.host}").hostname or ""
        if token is None and not is_loopback(host):
            raise web.HTTPForbidden(text=f"not under the name {host}: use localhost")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="not from another page")
        if token is not None:
            asked = request.query.get("token")
            if asked is not None and hmac.compare_digest(asked.encode(), token.encode()):
                answer = web.HTTPFound("/")
                answer.set_cookie(_COOKIE, token, httponly=True, samesite="Strict")
                raise answer
            if not hmac.compare_digest(request.cookies.get(_COOKIE, "").encode(), token.encode()):
                raise web.HTTPForbidden(text="the token is missing or wrong: open /?token=...")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["Cache-Control"] = "no-store"
        return response

    return guard


# --------------------------------------------------------------------------------------- the page

async def _page(request: web.Request) -> web.Response:
    return _resource("live.html", "text/html")


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    kind = {"js": "text/javascript", "css": "text/css"}.get(name.rpartition(".")[2])
    if kind is None or name not in {entry.name for entry in _web().iterdir()}:
        raise web.HTTPNotFound
    return _resource(name, kind)


def _web() -> Any:
    return resources.files("hypermon.host.live") / "web"


def _resource(name: str, kind: str) -> web.Response:
    return web.Response(body=(_web() / name).read_bytes(), content_type=kind, charset="utf-8")


# --------------------------------------------------------------------------------------- controls

async def _start(request: web.Request) -> web.Response:
    try:
        form = await request.json()
        if not isinstance(form, dict):
            raise HypermonError("settings are names and values")
        async with request.app[_ALONE]:
            request.app[_SESSION].start(options(form))
    except (HypermonError, json.JSONDecodeError) as error:
        raise web.HTTPConflict(text=str(error)) from None
    return web.json_response({"run": str(request.app[_SESSION].run)})


async def _stop(request: web.Request) -> web.Response:
    try:
        async with request.app[_ALONE]:
            request.app[_SESSION].stop()
    except HypermonError as error:
        raise web.HTTPConflict(text=str(error)) from None
    return web.json_response({})


async def _perfetto(request: web.Request) -> web.StreamResponse:
    """The recording as a file that ui.perfetto.dev opens; written by a process of its own."""
    session = request.app[_SESSION]
    if session.run is None or session.state in ("recording", "stopping"):
        raise web.HTTPConflict(text="nothing that has ended is here: stop the recording first")
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        path = Path(folder) / f"{session.run.resolve().name}.pftrace"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "from hypermon.host.cli import main; main()", "export", str(session.run),
            "--to", "perfetto", str(path), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        _, said = await process.communicate()
        if process.returncode != 0:
            raise web.HTTPConflict(text=said.decode(errors="replace").strip())
        response = web.StreamResponse(headers={"Content-Disposition": f'attachment; filename="{path.name}"',
                                               "Content-Type": "application/octet-stream"})
        await response.prepare(request)
        with open(path, "rb") as file:
            while piece := await asyncio.to_thread(file.read, 1 << 20):
                await response.write(piece)
        await response.write_eof()
        return response


# ------------------------------------------------------------------------------------- what changes

async def _live(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(heartbeat=20)
    await socket.prepare(request)
    clients = request.app[_CLIENTS]
    clients[socket] = _SPAN_PS
    try:
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                    clients[socket] = max(int(float(json.loads(message.data)["span_s"]) * 10**12), 1)
    finally:
        del clients[socket]
    return socket


async def _ticking(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(_tick(app))
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    clients = app[_CLIENTS]
    for socket in list(clients):
        await socket.close()
    await asyncio.to_thread(app[_SESSION].close)


async def _tick(app: web.Application) -> None:
    session, clients = app[_SESSION], app[_CLIENTS]
    while True:
        spans = set(clients.values())
        async with app[_ALONE]:
            await asyncio.to_thread(session.step)
            messages = await asyncio.to_thread(partial(_messages, session, spans)) if spans else {}
        if spans:
            for socket, span in list(clients.items()):
                # One that takes nothing is closed by its heartbeat; meanwhile others wait a tick at most.
                with contextlib.suppress(ConnectionError, asyncio.TimeoutError):
                    if not socket.closed and span in messages:
                        await asyncio.wait_for(socket.send_bytes(messages[span]), _TICK_S)
        await asyncio.sleep(_TICK_S)


def _messages(session: Session, spans: set[int]) -> dict[int, bytes]:
    state = session.snapshot() | {"newest": session.newest()}
    return {span: _message(state, session.stretch(span)) for span in spans}


def _message(state: dict[str, Any], stretch: Stretch | None) -> bytes:
    """Length of the JSON, the JSON, then what it says in ``bins``: items and losses, a row a bin, and levels."""
    numbers = b""
    if stretch is not None:
        state = state | {"bins": len(stretch.items), "begin_ps": stretch.begin_ps, "bin_ps": stretch.bin_ps}
        numbers = b"".join(part.astype("<f4").tobytes() for part in stretch[2:])
    text = json.dumps(state, default=lambda value: value.hex()).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + numbers


def serve(session: Session, host: str, port: int, token: str | None, ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C; what is being recorded then is ended properly.

    Parameters
    ----------
    port : 0 takes any that is free.
    ready : is called with the address, once.

    Raises
    ------
    HypermonError
        if the door would be open to others; see :func:`refuse_open_door`.
    OSError
        if the port is taken.
    """
    refuse_open_door(host, token, port)

    async def run() -> None:
        runner = web.AppRunner(application(session, token), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            bound = runner.addresses[0][1]
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{bound}/" + (f"?token={token}" if token else ""))
            over = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, over.set)
            await over.wait()
        finally:
            await runner.cleanup()

    asyncio.run(run())
