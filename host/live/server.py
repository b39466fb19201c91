"""The live page: aiohttp on loopback, a WebSocket for changes, no content from other servers.

Users who can reach the page can record with the board. Beyond loopback it therefore requires a token; see
:mod:`.guard`.
"""

import asyncio
import contextlib
import json
import struct
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib import resources
from typing import Any

from aiohttp import web
from hypermon.host.errors import HypermonError
from hypermon.host.link.access import refuse_open_access
from hypermon.host.live.files import GoneError, perfetto_file
from hypermon.host.live.guard import Visits, guard
from hypermon.host.live.history import Stretch
from hypermon.host.live.listen import listening_to, until_interrupted
from hypermon.host.live.machine import MachineSession
from hypermon.host.live.options import options
from hypermon.host.live.pages import Page
from hypermon.host.live.session import Session
from hypermon.host.live.timeline import Timeline
from hypermon.host.text.printable import printable

__all__ = ["application", "listening", "serve"]

_TICK_S = 0.2
#: Maximum pages connected at once.
_PAGES_MOST = 32
#: Bytes of a request's body, and seconds for it to arrive.
_BODY, _BODY_S = 1 << 16, 10.0
#: Seconds for a piece of a file to be sent.
_PIECE_S = 30.0
#: What a page shows.
Shown = Session | MachineSession
_SESSION: web.AppKey[Shown] = web.AppKey("session")
#: Only one task at a time may use a session, or make a file.
_ALONE = web.AppKey("alone", asyncio.Lock)
_MAKING = web.AppKey("making", asyncio.Lock)
_PAGES = web.AppKey("pages", set[Page])
_VISITS = web.AppKey("visits", Visits)
_TIMELINE = web.AppKey("timeline", Timeline)


def application(session: Shown, token: str | None = None, host: str = "127.0.0.1") -> web.Application:
    """The page of a session.

    Parameters
    ----------
    token : what every request must present, once as ``/?token=...``, then as a cookie; None: no token.
    host : the address on which it listens.
    """
    visits = Visits()
    app = web.Application(middlewares=[guard(token, visits)], client_max_size=_BODY)
    app[_TIMELINE] = Timeline(host, token)
    app[_SESSION], app[_VISITS], app[_PAGES] = session, visits, set()
    app[_ALONE], app[_MAKING] = asyncio.Lock(), asyncio.Lock()
    app.add_routes([
        web.get("/", _page), web.get("/live", _live), web.post("/start", _start), web.post("/stop", _stop),
        web.post("/perfetto", _perfetto), web.post("/timeline", _timeline), web.get("/web/{name}", _file)])
    app.cleanup_ctx.append(_ticking)
    app.on_shutdown.append(_close_pages)
    app.on_cleanup.append(_close_timeline)
    return app


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
        form = json.loads(await asyncio.wait_for(request.read(), _BODY_S))
        if not isinstance(form, dict):
            raise HypermonError("settings must be pairs of a name and a value")
        async with request.app[_ALONE]:
            request.app[_SESSION].start(options(form))
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the settings did not arrive") from None
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(text="settings must be pairs of a name and a value, as JSON") from None
    except HypermonError as error:
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
    """The recording as a file for ui.perfetto.dev."""
    session, making = request.app[_SESSION], request.app[_MAKING]
    if session.run is None or session.state in ("recording", "stopping"):
        raise web.HTTPConflict(text="no finished recording is here: stop the recording first")
    if making.locked():
        raise web.HTTPConflict(text="a file is being made for another page; try again later")
    run = session.run.resolve()
    async with making:
        try:
            file = await perfetto_file(run, lambda: request.transport is None or request.transport.is_closing())
        except HypermonError as error:
            raise web.HTTPConflict(text=str(error)) from None
        except GoneError:
            return web.Response()
    name = "".join(letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_"
                   for letter in run.name)
    with file:
        response = web.StreamResponse(headers={"Content-Disposition": f'attachment; filename="{name}.pftrace"',
                                               "Content-Type": "application/octet-stream"})
        await response.prepare(request)
        transport = request.transport
        try:
            while piece := await asyncio.to_thread(file.read, 1 << 20):
                await asyncio.wait_for(response.write(piece), _PIECE_S)
            await asyncio.wait_for(response.write_eof(), _PIECE_S)
        except TimeoutError:
            if transport is not None:
                transport.abort()
        return response


async def _timeline(request: web.Request) -> web.Response:
    """The address of the timeline of what is shown."""
    run = request.app[_SESSION].run
    if run is None:
        raise web.HTTPConflict(text="no recording is here: start one first")
    try:
        return web.json_response({"address": await request.app[_TIMELINE].address(run.resolve())})
    except (HypermonError, OSError) as error:
        raise web.HTTPConflict(text=printable(str(error))) from None


async def _close_timeline(app: web.Application) -> None:
    await app[_TIMELINE].close()


# ------------------------------------------------------------------------------------------ changes

async def _live(request: web.Request) -> web.WebSocketResponse:
    pages = request.app[_PAGES]
    if len(pages) >= _PAGES_MOST:
        raise web.HTTPServiceUnavailable(text=f"{_PAGES_MOST} pages are open already; close one of them")
    page = Page()
    pages.add(page)
    try:
        return await page.serve(request)
    finally:
        pages.discard(page)


async def _close_pages(app: web.Application) -> None:
    await asyncio.gather(*(page.close() for page in app[_PAGES]))


async def _ticking(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(_tick(app))
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await asyncio.to_thread(app[_SESSION].close)


async def _tick(app: web.Application) -> None:
    """Sends changes, again and again; a failure is reported once, and the next tick tries again."""
    said = ""
    while True:
        try:
            await _show(app)
            trouble = ""
        except Exception as error:
            trouble = printable(f"the view failed and continues: {type(error).__name__}: {error}")
        if trouble != said:
            said = trouble
            if trouble:
                print(f"hypermon: {trouble}", file=sys.stderr, flush=True)
            for page in app[_PAGES]:
                page.offer(json.dumps({"trouble": trouble}))
        await asyncio.sleep(_TICK_S)


async def _show(app: web.Application) -> None:
    session, pages = app[_SESSION], app[_PAGES]
    wishes = {(page.span_ps, page.board) for page in pages}
    async with app[_ALONE]:
        await asyncio.to_thread(session.step, {board for _, board in wishes})
        messages = await asyncio.to_thread(partial(_messages, session, wishes)) if wishes else {}
    for page in pages:
        if (page.span_ps, page.board) in messages:
            page.offer(messages[page.span_ps, page.board])


def _messages(session: Shown, wishes: set[tuple[int, int | None]]) -> dict[tuple[int, int | None], bytes]:
    boards = {board for _, board in wishes}
    states = {board: session.snapshot(board) | {"newest": session.newest(board)} for board in boards}
    return {(span, board): _message(states[board], session.stretch(span, board)) for span, board in wishes}


def _message(state: dict[str, Any], stretch: Stretch | None) -> bytes:
    """Length of the JSON, the JSON, then the data of ``bins``: items and losses, one row per bin, and levels."""
    numbers = b""
    if stretch is not None:
        state = state | {"bins": len(stretch.items), "begin_ps": stretch.begin_ps, "bin_ps": stretch.bin_ps,
                         "end_ps": stretch.end_ps}
        numbers = b"".join(part.astype("<f4").tobytes() for part in (stretch.items, stretch.lost, stretch.level))
    text = json.dumps(state, default=lambda value: value.hex()).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + numbers


def serve(session: Shown, host: str, port: int, token: str | None, ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C; a recording in progress is then ended properly.

    Parameters
    ----------
    port : 0 selects any free port.
    ready : called once with the address.

    Raises
    ------
    HypermonError
        if access would be open to others, see :func:`refuse_open_access`, or the address is not available.
    """
    refuse_open_access(host, token, port)
    until_interrupted(lambda: listening(session, host, port, token),
                      lambda address: ready(address + (f"?token={token}" if token else "")))


@contextlib.asynccontextmanager
async def listening(session: Shown, host: str, port: int, token: str | None) -> AsyncIterator[str]:
    """Serves the page while inside; yields its address. Raises HypermonError if it is not available."""
    app = application(session, token, host)
    async with listening_to(app, app[_VISITS], host, port) as address:
        yield address
