"""The timeline tab: pictures of any stretch of a run, searches in it, its bookmarks, and files of an interval.

Each request states the run that its page shows, ``of=NAME``; except the first, ``run``, which opens the newest one.
"""

import asyncio
import contextlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from hypermon.host.errors import HypermonError, system_reason
from hypermon.host.text.printable import printable
from hypermon.host.view.bookmarks import add, bookmarks, remove
from hypermon.host.view.bynode import longest
from hypermon.host.view.perfetto import POLICY, interface_file, refuse_trace, trace
from hypermon.host.view.picture import COLUMNS_MOST, LANES_MOST, Pictures
from hypermon.host.view.questions import answer
from hypermon.host.view.search import hits, search
from hypermon.host.view.selected import statistics
from hypermon.host.web.files import send_file, send_made_file
from hypermon.host.web.shown import SHOWN, Shown
from hypermon.host.web.wanted import nodes, number

__all__ = ["application"]

#: Pictures that are made at once.
_AT_ONCE = 2
_MAKING = web.AppKey("making", asyncio.Semaphore)
_TRACING = web.AppKey("tracing", asyncio.Lock)
#: Seconds for a request's body to arrive.
_BODY_S = 10.0
#: Media types of the files of Perfetto's interface.
_KINDS = {"wasm": "application/wasm", "html": "text/html", "js": "text/javascript", "css": "text/css"}
#: Characters of a list of nodes in a file's name.
_NAMED = 40
#: Files of an interval that a page can request: the command, and the ending of the file.
_FILES = {"report": (["report"], "html"), "csv": (["export", "--to", "csv"], "csv"),
          "events": (["export", "--to", "events"], "csv"), "vcd": (["export", "--to", "vcd"], "vcd"),
          "fst": (["export", "--to", "fst"], "fst"), "sr": (["export", "--to", "sr"], "sr"),
          "perfetto": (["export", "--to", "perfetto"], "pftrace")}


_Handler = Callable[[web.Request, Pictures], Awaitable[web.StreamResponse]]


def application(shown: Shown) -> web.Application:
    """The application of this tab."""
    app = web.Application()
    app[SHOWN] = shown
    app[_MAKING], app[_TRACING] = asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
    of_run = {"/run": _run, "/overview": _overview, "/picture": _picture, "/item": _item, "/search": _search,
              "/hits": _hits, "/bookmarks": _bookmarks, "/statistics": _statistics, "/longest": _longest,
              "/verdicts": _verdicts, "/perfetto/trace": _trace}
    changes = {"/bookmarks": _bookmark, "/bookmarks/remove": _unmark, "/file": _made_file, "/perfetto": _may_perfetto,
               "/question": _question}
    app.add_routes([*(web.get(path, _with_pictures(handler)) for path, handler in of_run.items()),
                    *(web.post(path, _with_pictures(handler)) for path, handler in changes.items()),
                    web.get("/perfetto/{name:.*}", _interface)])
    return app


def _with_pictures(handler: _Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """A handler that is given the pictures of the run that the page shows."""
    async def within(request: web.Request) -> web.StreamResponse:
        async with contextlib.AsyncExitStack() as stack:
            try:
                pictures = await stack.enter_async_context(request.app[SHOWN].pictures(request.query.get("of")))
            except HypermonError as error:
                raise web.HTTPConflict(text=printable(str(error))) from None
            return await handler(request, pictures)

    return within


# ---------------------------------------------------------------------------------------- answers

async def _made(request: web.Request, pictures: Pictures, make: Callable[[], Any]) -> Any:
    """Computes an answer in a thread; a table that cannot be read is a conflict with its reason."""
    async with request.app[_MAKING]:
        try:
            return await asyncio.to_thread(make)
        except HypermonError as error:
            raise web.HTTPConflict(text=printable(str(error))) from None
        except OSError as error:
            raise _unusable(pictures.run.path, error) from None


async def _answered(request: web.Request, pictures: Pictures, make: Callable[[], Any]) -> web.Response:
    """The answer to a text of a user, or ``refused``: the reason why there is none. Its status is that of an answer, so
    that browsers report no fault.
    """
    def answered() -> Any:
        try:
            return make()
        except HypermonError as error:
            return {"refused": printable(str(error))}

    return web.json_response(await _made(request, pictures, answered))


def _unusable(run: Path, error: OSError) -> web.HTTPConflict:
    """The RUN or the disk changed while the page was open."""
    return web.HTTPConflict(text=printable(f"{error.filename or run}: {system_reason(error)}"))


async def _run(request: web.Request, pictures: Pictures) -> web.Response:
    return web.json_response(pictures.about() | {"rules": request.app[SHOWN].verdicts is not None})


async def _verdicts(request: web.Request, pictures: Pictures) -> web.Response:
    """The verdicts on the rules; null while they are being judged."""
    verdicts = request.app[SHOWN].verdicts
    if verdicts is None:
        raise web.HTTPConflict(text="there are no rules: hypermon view RUN --check RULES")
    if pictures.about()["growing"]:
        raise web.HTTPConflict(text="rules: the recording has not ended yet")
    try:
        return web.json_response(verdicts.answer(pictures.run.path))
    except HypermonError as error:
        raise web.HTTPConflict(text=printable(str(error))) from None


async def _overview(request: web.Request, pictures: Pictures) -> web.Response:
    columns = number(request.query, "columns", 1, COLUMNS_MOST)
    return web.Response(body=await _made(request, pictures, lambda: pictures.overview(columns)))


async def _picture(request: web.Request, pictures: Pictures) -> web.Response:
    query = request.query
    begin, end = _stretch(request)
    columns = number(query, "columns", 1, COLUMNS_MOST)
    first = number(query, "first", 0, pictures.run.info.nodes - 1)
    lanes = range(first, min(first + number(query, "lanes", 1, LANES_MOST), pictures.run.info.nodes))
    own = nodes(query, pictures.run.info.nodes)
    return web.Response(body=await _made(request, pictures, lambda: pictures.picture(begin, end, columns, lanes, own)))


async def _item(request: web.Request, pictures: Pictures) -> web.Response:
    tables, query = pictures.tables, request.query
    at, node = number(query, "at", -2**62, 2**62), number(query, "node", 0, 2**15 - 1)
    return web.json_response(await _made(request, pictures, lambda: tables.item(at, node)))


async def _search(request: web.Request, pictures: Pictures) -> web.Response:
    query = request.query
    at = number(query, "at", -2**62, 2**62)
    text, back, own = query.get("q", ""), query.get("back") == "1", nodes(query, pictures.run.info.nodes)

    def find() -> dict[str, Any] | None:
        found = search(pictures, text, at, back, own)
        return None if found is None else found.values()

    return await _answered(request, pictures, find)


async def _hits(request: web.Request, pictures: Pictures) -> web.Response:
    query = request.query
    text, longest_first = query.get("q", ""), query.get("longest") == "1"
    at, own = number(query, "at", -2**62, 2**62), nodes(query, pictures.run.info.nodes)
    return await _answered(request, pictures, lambda: hits(pictures, text, at, own, longest_first))


async def _question(request: web.Request, pictures: Pictures) -> web.Response:
    """A question in SQL, and its answer."""
    if pictures.about()["growing"]:
        raise web.HTTPConflict(text="SQL: the recording has not ended yet")
    try:
        text = (await asyncio.wait_for(request.read(), _BODY_S)).decode()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the query did not arrive") from None
    except UnicodeDecodeError:
        raise web.HTTPBadRequest(text="the query is not UTF-8") from None
    return await _answered(request, pictures, lambda: answer(pictures.run, text))


# --------------------------------------------------------------------------------------- bookmarks

async def _kept(pictures: Pictures, change: Callable[[Path], list[dict[str, Any]]]) -> web.Response:
    """The bookmarks after a change. It may wait for another process that writes into the RUN; pictures do not wait."""
    try:
        return web.json_response(await asyncio.to_thread(change, pictures.run.path))
    except HypermonError as error:
        raise web.HTTPConflict(text=printable(str(error))) from None
    except OSError as error:
        raise _unusable(pictures.run.path, error) from None


async def _bookmarks(request: web.Request, pictures: Pictures) -> web.Response:
    return await _kept(pictures, bookmarks)


async def _bookmark(request: web.Request, pictures: Pictures) -> web.Response:
    note, address = request.query.get("note", ""), request.query.get("address", "")
    return await _kept(pictures, lambda run: add(run, note, address))


async def _unmark(request: web.Request, pictures: Pictures) -> web.Response:
    which = number(request.query, "number", 1, 2**31)
    return await _kept(pictures, lambda run: remove(run, which))


# ------------------------------------------------------------------------------------- an interval

def _stretch(request: web.Request) -> tuple[int, int]:
    begin = number(request.query, "from", -2**62, 2**62)
    return begin, number(request.query, "to", begin + 1, 2**62)


async def _statistics(request: web.Request, pictures: Pictures) -> web.Response:
    begin, end = _stretch(request)
    own, text = nodes(request.query, pictures.run.info.nodes), request.query.get("q", "")
    return web.json_response(await _made(request, pictures, lambda: statistics(pictures, begin, end, own, text)))


async def _longest(request: web.Request, pictures: Pictures) -> web.Response:
    query = request.query
    begin, end = _stretch(request)
    node = number(query, "node", 0, pictures.run.info.nodes - 1)

    def find() -> dict[str, Any] | None:
        found = longest(pictures, begin, end, query.get("kind", ""), node, query.get("name", ""))
        return None if found is None else found.values()

    return await _answered(request, pictures, find)


async def _made_file(request: web.Request, pictures: Pictures) -> web.StreamResponse:
    """An interval of the nodes that the page shows as a file. It is made by the command that a user would type."""
    kind = request.query.get("kind", "")
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
    own, of = nodes(request.query, pictures.run.info.nodes), ""
    if own is not None:
        _refuse_none(own)
        of = f"-nodes-{request.query['nodes']}" if len(request.query["nodes"]) <= _NAMED else f"-{len(own)}-nodes"
    words = [*command[:1], str(pictures.run.path.resolve()), *command[1:], *_interval(begin, end),
             *([] if own is None else [f"--nodes={','.join(map(str, own))}"]), *(["-o"] if kind == "report" else [])]
    async with request.app[_TRACING]:
        return await send_made_file(request, words, f"{kind}-{begin}{of}.{ending}")


def _refuse_none(own: list[int] | None) -> None:
    if own is not None and not own:
        raise web.HTTPConflict(text="no node is shown: the file would be empty")


def _interval(begin: int, end: int) -> list[str]:
    """Options of ``export`` and ``report``."""
    return [f"--from-ms={begin / 10**9!r}", f"--to-ms={end / 10**9!r}"]


# --------------------------------------------------------------------------------------- Perfetto

async def _may_perfetto(request: web.Request, pictures: Pictures) -> web.Response:
    """Whether Perfetto can show a stretch; otherwise a conflict with the reason."""
    begin, end = _stretch(request)
    _refuse_none(nodes(request.query, pictures.run.info.nodes))
    await _made(request, pictures, lambda: refuse_trace(pictures, begin, end))
    return web.json_response({})


async def _trace(request: web.Request, pictures: Pictures) -> web.StreamResponse:
    begin, end = _stretch(request)
    own = nodes(request.query, pictures.run.info.nodes)
    async with request.app[_TRACING]:
        with await _made(request, pictures, lambda: trace(pictures, begin, end, own)) as file:
            return await send_file(request, file, {})


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
