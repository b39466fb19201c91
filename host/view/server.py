"""The page of a run: aiohttp on loopback, no content from other servers. For access control see ``host/live/guard.py``.
"""

import asyncio
import contextlib
import mimetypes
import os
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import IO, Any

from aiohttp import web
from hypermon.host.errors import HypermonError, system_reason
from hypermon.host.link.access import refuse_open_access
from hypermon.host.live.files import GoneError, command_file
from hypermon.host.live.guard import Visits, guard
from hypermon.host.live.listen import listening_to, until_interrupted
from hypermon.host.text.printable import printable
from hypermon.host.view.bookmarks import add, bookmarks, remove
from hypermon.host.view.perfetto import POLICY, interface_file, refuse_trace, trace
from hypermon.host.view.picture import COLUMNS_MOST, LANES_MOST, Pictures
from hypermon.host.view.search import Found, hits, search
from hypermon.host.view.selected import statistics
from hypermon.host.view.wanted import number

__all__ = ["application", "listening", "serve"]

#: Pictures that are made at once.
_AT_ONCE = 2
_PICTURES = web.AppKey("pictures", Pictures)
_VISITS = web.AppKey("visits", Visits)
_MAKING = web.AppKey("making", asyncio.Semaphore)
_TRACING = web.AppKey("tracing", asyncio.Lock)
#: Seconds for a piece of a trace to be sent.
_PIECE_S = 30.0
_KINDS = {"wasm": "application/wasm", "html": "text/html", "js": "text/javascript", "css": "text/css"}
#: What a page can have of an interval: the command, and the ending of the file.
_FILES = {"report": (["report"], "html"), "csv": (["export", "--to", "csv"], "csv"),
          "events": (["export", "--to", "events"], "csv"), "vcd": (["export", "--to", "vcd"], "vcd"),
          "fst": (["export", "--to", "fst"], "fst"), "sr": (["export", "--to", "sr"], "sr"),
          "perfetto": (["export", "--to", "perfetto"], "pftrace")}
#: Where the page's files are, in order of precedence: some are those of the live page.
_FOLDERS = ("hypermon.host.view", "hypermon.host.live")


def application(pictures: Pictures, token: str | None = None) -> web.Application:
    """The page of a run.

    Parameters
    ----------
    token : what every request must present, once as ``/?token=...``, then as a cookie; None: no token.
    """
    visits = Visits()
    app = web.Application(middlewares=[guard(token, visits)])
    app[_PICTURES], app[_VISITS] = pictures, visits
    app[_MAKING], app[_TRACING] = asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
    app.add_routes([
        web.get("/", _page), web.get("/web/{name}", _file), web.get("/run", _run), web.get("/overview", _overview),
        web.get("/picture", _picture), web.get("/item", _item), web.get("/search", _search), web.get("/hits", _hits),
        web.get("/bookmarks", _bookmarks), web.post("/bookmarks", _bookmark), web.post("/bookmarks/remove", _unmark),
        web.get("/statistics", _statistics), web.post("/file", _made_file),
        web.get("/perfetto/trace", _trace), web.post("/perfetto", _may_perfetto),
        web.get("/perfetto/{name:.*}", _interface)])
    return app


# --------------------------------------------------------------------------------------- the page

async def _page(request: web.Request) -> web.Response:
    return _resource(_FOLDERS[0], "view.html", "text/html")


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    kind = _KINDS.get(name.rpartition(".")[2])
    for folder in _FOLDERS:
        if kind is not None and name in {entry.name for entry in (resources.files(folder) / "web").iterdir()}:
            return _resource(folder, name, kind)
    raise web.HTTPNotFound


def _resource(folder: str, name: str, kind: str) -> web.Response:
    return web.Response(body=(resources.files(folder) / "web" / name).read_bytes(), content_type=kind, charset="utf-8")


# ---------------------------------------------------------------------------------------- answers

async def _made(request: web.Request, make: Callable[[], Any]) -> Any:
    """Computes an answer in a thread; a table that cannot be read is a conflict with its reason."""
    async with request.app[_MAKING]:
        try:
            return await asyncio.to_thread(make)
        except HypermonError as error:
            raise web.HTTPConflict(text=printable(str(error))) from None
        except OSError as error:
            raise _unusable(request, error) from None


def _unusable(request: web.Request, error: OSError) -> web.HTTPConflict:
    """The RUN or the disk changed while the page was open."""
    place = error.filename or request.app[_PICTURES].run.path
    return web.HTTPConflict(text=printable(f"{place}: {system_reason(error)}"))


async def _run(request: web.Request) -> web.Response:
    return web.json_response(request.app[_PICTURES].about())


async def _overview(request: web.Request) -> web.Response:
    columns = number(request.query, "columns", 1, COLUMNS_MOST)
    return web.Response(body=await _made(request, lambda: request.app[_PICTURES].overview(columns)))


async def _picture(request: web.Request) -> web.Response:
    pictures, query = request.app[_PICTURES], request.query
    begin, end = _stretch(request)
    columns = number(query, "columns", 1, COLUMNS_MOST)
    first = number(query, "first", 0, pictures.run.info.nodes - 1)
    lanes = range(first, min(first + number(query, "lanes", 1, LANES_MOST), pictures.run.info.nodes))
    return web.Response(body=await _made(request, lambda: pictures.picture(begin, end, columns, lanes)))


async def _item(request: web.Request) -> web.Response:
    tables, query = request.app[_PICTURES].tables, request.query
    at, node = number(query, "at", -2**62, 2**62), number(query, "node", 0, 2**15 - 1)
    return web.json_response(await _made(request, lambda: tables.item(at, node)))


async def _search(request: web.Request) -> web.Response:
    pictures, query = request.app[_PICTURES], request.query
    at = number(query, "at", -2**62, 2**62)
    text, back = query.get("q", ""), query.get("back") == "1"

    def find() -> Found | None:
        return search(pictures, text, at, back)

    found = await _made(request, find)
    return web.json_response(None if found is None else found.values())


async def _hits(request: web.Request) -> web.Response:
    pictures, text = request.app[_PICTURES], request.query.get("q", "")
    at = number(request.query, "at", -2**62, 2**62)
    return web.json_response(await _made(request, lambda: hits(pictures, text, at)))


# --------------------------------------------------------------------------------------- bookmarks

async def _kept(request: web.Request, change: Callable[[Path], list[dict[str, Any]]],
                writes: bool = True) -> web.Response:
    """The bookmarks after a change. It may wait for who else writes into the RUN, and pictures do not."""
    pictures = request.app[_PICTURES]
    if writes and pictures.about()["growing"]:
        raise web.HTTPConflict(text="bookmarks: the recording has not ended yet")
    try:
        return web.json_response(await asyncio.to_thread(change, pictures.run.path))
    except HypermonError as error:
        raise web.HTTPConflict(text=printable(str(error))) from None
    except OSError as error:
        raise _unusable(request, error) from None


async def _bookmarks(request: web.Request) -> web.Response:
    return await _kept(request, bookmarks, writes=False)


async def _bookmark(request: web.Request) -> web.Response:
    note, address = request.query.get("note", ""), request.query.get("address", "")
    return await _kept(request, lambda run: add(run, note, address))


async def _unmark(request: web.Request) -> web.Response:
    which = number(request.query, "number", 1, 2**31)
    return await _kept(request, lambda run: remove(run, which))


# ------------------------------------------------------------------------------------- an interval

def _stretch(request: web.Request) -> tuple[int, int]:
    begin = number(request.query, "from", -2**62, 2**62)
    return begin, number(request.query, "to", begin + 1, 2**62)


async def _statistics(request: web.Request) -> web.Response:
    begin, end = _stretch(request)
    return web.json_response(await _made(request, lambda: statistics(request.app[_PICTURES], begin, end)))


async def _made_file(request: web.Request) -> web.StreamResponse:
    """An interval as a file, made by the command that a user would type."""
    pictures, kind = request.app[_PICTURES], request.query.get("kind", "")
    begin, end = _stretch(request)
    if kind not in _FILES:
        raise web.HTTPBadRequest(text=f"kind is {kind[:40]!r}, not one of {', '.join(_FILES)}")
    if pictures.about()["growing"]:
        raise web.HTTPConflict(text="the recording has not ended yet")
    command, ending = _FILES[kind]
    if not pictures.run.info.boards:
        begin, end = max(begin, 0), max(end, 1)
    if request.app[_TRACING].locked():
        raise web.HTTPConflict(text="another file is being made; try again later")
    words = [*command[:1], str(pictures.run.path.resolve()), *command[1:], *_interval(begin, end)]
    async with request.app[_TRACING]:
        try:
            file = await command_file([*words, *(["-o"] if kind == "report" else [])], f"part.{ending}",
                                      lambda: request.transport is None or request.transport.is_closing())
        except HypermonError as error:
            raise web.HTTPConflict(text=printable(str(error))) from None
        except GoneError:
            return web.Response()
    headers = {"Content-Disposition": f'attachment; filename="{kind}-{begin}.{ending}"'}
    with file:
        return await _sent(request, file, headers)


def _interval(begin: int, end: int) -> list[str]:
    """Options of ``export`` and ``report``."""
    return [f"--from-ms={begin / 10**9!r}", f"--to-ms={end / 10**9!r}"]


# --------------------------------------------------------------------------------------- Perfetto

async def _may_perfetto(request: web.Request) -> web.Response:
    """Whether Perfetto can show a stretch; otherwise a conflict with the reason."""
    begin, end = _stretch(request)
    await _made(request, lambda: refuse_trace(request.app[_PICTURES], begin, end))
    return web.json_response({})


async def _trace(request: web.Request) -> web.StreamResponse:
    begin, end = _stretch(request)
    async with request.app[_TRACING]:
        with await _made(request, lambda: trace(request.app[_PICTURES], begin, end)) as file:
            return await _sent(request, file, {})


async def _sent(request: web.Request, file: IO[bytes], headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream", **headers})
    response.content_length = os.fstat(file.fileno()).st_size
    await response.prepare(request)
    while piece := await asyncio.to_thread(file.read, 1 << 20):
        await asyncio.wait_for(response.write(piece), _PIECE_S)
    return response


async def _interface(request: web.Request) -> web.StreamResponse:
    try:
        path = interface_file(request.match_info["name"] or "index.html")
    except HypermonError as error:
        raise web.HTTPConflict(text=str(error)) from None
    if path is None:
        raise web.HTTPNotFound
    kind = _KINDS.get(path.suffix[1:]) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return web.Response(body=await asyncio.to_thread(path.read_bytes), content_type=kind,
                        headers={"Content-Security-Policy": POLICY})


# ---------------------------------------------------------------------------------------- serving

def serve(pictures: Pictures, host: str, port: int, token: str | None, ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C.

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
    try:
        until_interrupted(lambda: listening(pictures, host, port, token),
                          lambda address: ready(address + (f"?token={token}" if token else "")))
    finally:
        pictures.close()


@contextlib.asynccontextmanager
async def listening(pictures: Pictures, host: str, port: int, token: str | None) -> AsyncIterator[str]:
    """Serves the page while inside; yields its address. Raises HypermonError if it is not available."""
    app = application(pictures, token)
    pictures.prepare()
    async with listening_to(app, app[_VISITS], host, port) as address:
        yield address
