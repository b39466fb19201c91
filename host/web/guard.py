"""Access control for the live page: only the page itself, under its own name, with the token, and for limited time.

A browser sends requests to loopback for any page that its user has open. The origin of every request is therefore
checked: ``Host`` against names that were redirected to this computer afterwards, ``Origin`` and ``Sec-Fetch-Site``
against other pages. Programs that are not browsers send neither of the last two.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from hypermon.host.link.access import is_loopback
from hypermon.host.text.printable import printable

__all__ = ["Door", "Visits", "guard"]

#: Seconds that a connection may exist without a complete request; and maximum connections, beyond which the most idle
#: one is ended.
_WAIT_S, _CONNECTIONS = 15.0, 64
_SWEEP_S = 1.0
_COOKIE = "hypermon_token"
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
                               "form-action 'self'",
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Pages that a link from elsewhere may open.
_PAGES = ("/", "/live/", "/timeline/")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Visits:
    """The connections that have a request in progress, and since when each of the others has had none."""

    def __init__(self) -> None:
        self._busy: set[Any] = set()
        self._since: dict[Any, float] = {}

    def begin(self, connection: Any) -> None:
        """A request has arrived completely, except for its body."""
        self._busy.add(connection)

    def end(self, connection: Any) -> None:
        """The request has been answered."""
        self._busy.discard(connection)
        self._since[connection] = time.monotonic()

    def idle(self, connections: list[Any]) -> list[tuple[float, Any]]:
        """Existing connections without a request, the most idle first: for how long, and which."""
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in connections}
        return sorted(((now - since, each) for each, since in self._since.items() if each not in self._busy),
                      key=lambda found: -found[0])


class Door:
    """Makes the protocols of a server's connections, and ends those that only occupy resources.

    Parameters
    ----------
    server : of the application's runner.
    visits : updated by :func:`guard`.
    """

    def __init__(self, server: Any, visits: Visits):
        self._server, self._visits = server, visits

    def __call__(self) -> Any:
        """Called by the event loop for each connection."""
        connections = self._server.connections
        if len(connections) >= _CONNECTIONS:
            for _, connection in self._visits.idle(connections):
                if _end(connection):
                    break
        return self._server()

    async def sweep(self) -> None:
        """Runs as long as the server does."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            for idle_s, connection in self._visits.idle(self._server.connections):
                if idle_s > _WAIT_S:
                    _end(connection)


def _end(connection: Any) -> bool:
    """Ends a connection at once; returns whether it was still open."""
    transport = connection.transport
    if transport is None:
        return False
    connection.force_close()
    transport.abort()     # which does not wait until the remaining data is read
    return True


def guard(token: str | None, visits: Visits) -> Any:
    """A middleware that refuses requests that are not from the page, or lack the token, and adds headers to answers.

    A handler may set these headers otherwise.

    Parameters
    ----------
    token : what every request must present, once as ``/?token=...``, then as a cookie; None: no token, and then only
        loopback names are answered.
    """
    logging.getLogger("aiohttp.server").addFilter(_one_line)

    @web.middleware
    async def within(request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = request.protocol
        visits.begin(connection)
        try:
            _refuse_strangers(request, token)
            response = await handler(request)
        except (HttpProcessingError, web.RequestPayloadError) as error:
            request.content.feed_eof()      # the rest cannot be read, either: nothing waits for it
            answer = web.HTTPBadRequest(text=printable(f"the request cannot be read: {error}"))
            answer.force_close()
            raise answer from None
        finally:
            visits.end(connection)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    return within


def _one_line(record: logging.LogRecord) -> bool:
    """A request that could not be answered is one line on the terminal of the server, without a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        record.msg, record.args = printable(f"{record.getMessage()}: {type(error).__name__}: {error}"), ()
        record.exc_info = None
    return True


def _refuse_strangers(request: web.Request, token: str | None) -> None:
    """Raises aiohttp's error responses."""
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
        origin = request.headers.get("Origin")
        ours = origin is None or (urlsplit(origin).scheme in ("http", "https")
                                  and urlsplit(origin).netloc == request.host)
    except ValueError:
        raise web.HTTPBadRequest(text="Host or Origin is not an address") from None
    if token is None and not is_loopback(host):
        raise web.HTTPForbidden(text=f"not under the name {host}: use localhost")
    if not ours or not _same_site(request):
        raise web.HTTPForbidden(text="not from another page")
    if token is None:
        return
    asked = request.query.get("token")
    if asked is not None and _same(asked, token):
        answer = web.HTTPFound("/")
        answer.set_cookie(_COOKIE, token, httponly=True, samesite="Strict")
        raise answer
    if not _same(request.cookies.get(_COOKIE, ""), token):
        raise web.HTTPForbidden(text="the token is missing or wrong: open /?token=...")


def _same_site(request: web.Request) -> bool:
    """Whether a browser attributes the request to its user or to the page. A link from elsewhere may open a page."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    opened = (request.method == "GET" and request.path in _PAGES
              and request.headers.get("Sec-Fetch-Mode") == "navigate")
    return site in ("none", "same-origin") or opened


def _same(text: str, token: str) -> bool:
    return hmac.compare_digest(text.encode(errors="surrogateescape"), token.encode(errors="surrogateescape"))
