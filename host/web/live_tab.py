"""The live tab: a WebSocket for changes, controls of the recording, and the recording as a file."""

import asyncio
import contextlib
import json
import struct
import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from hypermon.host.errors import HypermonError
from hypermon.host.live.options import options
from hypermon.host.text.printable import printable
from hypermon.host.web.files import send_made_file
from hypermon.host.web.shown import SHOWN, Shown
from hypermon.host.web.sockets import Page

if TYPE_CHECKING:
    from hypermon.host.live.history import Stretch
    from hypermon.host.live.machine import MachineSession
    from hypermon.host.live.session import Session

__all__ = ["application"]

_TICK_S = 0.2
#: Maximum pages connected at once.
_PAGES_MOST = 32
#: Seconds for a request's body to arrive.
_BODY_S = 10.0
#: Only one task at a time may use a session, or make a file.
_ALONE = web.AppKey("alone", asyncio.Lock)
_MAKING = web.AppKey("making", asyncio.Lock)
_PAGES = web.AppKey("pages", set[Page])


def application(shown: Shown) -> web.Application:
    """The application of this tab."""
    app = web.Application()
    app[SHOWN] = shown
    app[_PAGES], app[_ALONE], app[_MAKING] = set(), asyncio.Lock(), asyncio.Lock()
    app.add_routes([web.get("/changes", _changes), web.post("/start", _start), web.post("/stop", _stop),
                    web.post("/perfetto", _perfetto)])
    app.cleanup_ctx.append(_ticking)
    app.on_shutdown.append(_close_pages)
    return app


def _session(request: web.Request) -> "Session | MachineSession":
    """The session that the tab shows. Raises aiohttp's error response if that cannot be read."""
    try:
        return request.app[SHOWN].session()
    except HypermonError as error:
        raise web.HTTPConflict(text=printable(str(error))) from None


# --------------------------------------------------------------------------------------- controls

async def _start(request: web.Request) -> web.Response:
    try:
        form = json.loads(await asyncio.wait_for(request.read(), _BODY_S))
        if not isinstance(form, dict):
            raise HypermonError("settings must be pairs of a name and a value")
        async with request.app[_ALONE]:
            _session(request).start(options(form))
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the settings did not arrive") from None
    except (ValueError, RecursionError):
        raise web.HTTPBadRequest(text="settings must be pairs of a name and a value, as JSON") from None
    except HypermonError as error:
        raise web.HTTPConflict(text=str(error)) from None
    return web.json_response({"run": str(_session(request).run)})


async def _stop(request: web.Request) -> web.Response:
    try:
        async with request.app[_ALONE]:
            _session(request).stop()
    except HypermonError as error:
        raise web.HTTPConflict(text=str(error)) from None
    return web.json_response({})


async def _perfetto(request: web.Request) -> web.StreamResponse:
    """The recording as a file for ui.perfetto.dev."""
    session, making = _session(request), request.app[_MAKING]
    if session.run is None or session.state in ("recording", "stopping"):
        raise web.HTTPConflict(text="no finished recording is here: stop the recording first")
    if making.locked():
        raise web.HTTPConflict(text="a file is being made for another page; try again later")
    run = session.run.resolve()
    async with making:
        return await send_made_file(request, ["export", str(run), "--to", "perfetto"], f"{run.name}.pftrace")


# ------------------------------------------------------------------------------------------ changes

async def _changes(request: web.Request) -> web.WebSocketResponse:
    pages = request.app[_PAGES]
    if len(pages) >= _PAGES_MOST:
        raise web.HTTPServiceUnavailable(text=f"{_PAGES_MOST} pages are open already; close one of them")
    _session(request)
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
    session, pages = app[SHOWN].live, app[_PAGES]
    if session is None:
        return
    wishes = {(page.span_ps, page.board) for page in pages}
    async with app[_ALONE]:
        await asyncio.to_thread(session.step, {board for _, board in wishes})
        messages = await asyncio.to_thread(partial(_messages, session, wishes)) if wishes else {}
    for page in pages:
        if (page.span_ps, page.board) in messages:
            page.offer(messages[page.span_ps, page.board])


def _messages(session: "Session | MachineSession",
              wishes: set[tuple[int, int | None]]) -> dict[tuple[int, int | None], bytes]:
    boards = {board for _, board in wishes}
    states = {board: session.snapshot(board) | {"newest": session.newest(board)} for board in boards}
    return {(span, board): _message(states[board], session.stretch(span, board)) for span, board in wishes}


def _message(state: dict[str, Any], stretch: "Stretch | None") -> bytes:
    """Length of the JSON, the JSON, then the data of ``bins``: items and losses, one row per bin, and levels."""
    numbers = b""
    if stretch is not None:
        state = state | {"bins": len(stretch.items), "begin_ps": stretch.begin_ps, "bin_ps": stretch.bin_ps,
                         "end_ps": stretch.end_ps}
        numbers = b"".join(part.astype("<f4").tobytes() for part in (stretch.items, stretch.lost, stretch.level))
    text = json.dumps(state, default=lambda value: value.hex()).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + numbers
