"""The web server: aiohttp, on loopback by default. It serves its pages and their files, and no content from elsewhere.

Users who can reach the pages can record with the board. Beyond loopback the server therefore requires a token; see
:mod:`.guard`.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib import resources
from importlib.resources.abc import Traversable

from aiohttp import web
from hypermon.host.link.access import refuse_open_access
from hypermon.host.web import live_tab, timeline_tab
from hypermon.host.web.guard import Visits, guard
from hypermon.host.web.listen import listening_to, until_interrupted
from hypermon.host.web.shown import SHOWN, Shown

__all__ = ["application", "listening", "serve"]

#: Maximum number of bytes of a request's body.
_BODY = 1 << 16
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_VISITS: web.AppKey[Visits] = web.AppKey("visits", Visits)
#: The tab that is opened first.
_FIRST: web.AppKey[str] = web.AppKey("first", str)


def application(shown: Shown, first: str = "live", token: str | None = None) -> web.Application:
    """The application that serves ``shown``, and closes it when it ends.

    Parameters
    ----------
    first : the tab that the address opens: ``live`` or ``timeline``.
    token : what every request must present, once as ``/?token=...``, then as a cookie; None: no token.
    """
    visits = Visits()
    app = web.Application(middlewares=[guard(token, visits)], client_max_size=_BODY)
    app[SHOWN], app[_VISITS], app[_FIRST] = shown, visits, first
    app.add_routes([web.get("/", _tab), web.get("/web/{folder}/{name}", _file), web.get("/live/", _page),
                    web.get("/timeline/", _page)])
    app.add_subapp("/live/", live_tab.application(shown))
    app.add_subapp("/timeline/", timeline_tab.application(shown))
    app.on_cleanup.append(_close)
    return app


async def _tab(request: web.Request) -> web.Response:
    # A redirect: browsers keep the fragment of the address, which selects a stretch of the timeline.
    raise web.HTTPFound(f"{request.app[_FIRST]}/")


async def _page(request: web.Request) -> web.Response:
    tab = request.path.strip("/")
    return _resource(_static() / tab / f"{tab}.html")


async def _file(request: web.Request) -> web.Response:
    folder, name = request.match_info["folder"], request.match_info["name"]
    for place in _static().iterdir():
        if place.name == folder and name in {entry.name for entry in place.iterdir()}:
            return _resource(place / name)
    raise web.HTTPNotFound


def _static() -> Traversable:
    return resources.files("hypermon.host.web") / "static"


def _resource(file: Traversable) -> web.Response:
    kind = _KINDS.get(file.name.rpartition(".")[2])
    if kind is None:
        raise web.HTTPNotFound
    return web.Response(body=file.read_bytes(), content_type=kind, charset="utf-8")


async def _close(app: web.Application) -> None:
    await app[SHOWN].close()


def serve(shown: Callable[[], Shown], first: str, host: str, port: int, token: str | None,
          ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C; a recording in progress is then ended properly.

    Parameters
    ----------
    shown : makes the recording that is shown; it is called when the event loop runs.
    first, token : as for :func:`application`.
    port : 0 selects any free port.
    ready : called once with the address.

    Raises
    ------
    HypermonError
        if access would be open to others, see :func:`refuse_open_access`, or the address is not available.
    """
    refuse_open_access(host, token, port)
    until_interrupted(lambda: listening(shown(), host, port, token, first),
                      lambda address: ready(address + (f"?token={token}" if token else "")))


@contextlib.asynccontextmanager
async def listening(shown: Shown, host: str, port: int, token: str | None, first: str = "live") -> AsyncIterator[str]:
    """Serves while inside; yields the address. Raises HypermonError if it is not available."""
    app = application(shown, first, token)
    async with listening_to(app, app[_VISITS], host, port) as address:
        yield address
