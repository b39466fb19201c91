"""Listens for a page's requests, until Ctrl-C."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from aiohttp import web
from hypermon.host.link.access import cannot_listen
from hypermon.host.record.interrupt import handled
from hypermon.host.web.guard import Door, Visits

__all__ = ["listening_to", "until_interrupted"]

#: Seconds for answers when the server ends.
_SHUTDOWN_S = 2.0


@contextlib.asynccontextmanager
async def listening_to(app: web.Application, visits: Visits, host: str, port: int) -> AsyncIterator[str]:
    """Serves an application while inside; yields its address. Raises HypermonError if that is not available.

    Parameters
    ----------
    visits : of the application's guard.
    port : 0 selects any free port.
    """
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=60, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    try:
        door = Door(runner.server, visits)
        try:
            server = await asyncio.get_running_loop().create_server(door, host, port)
        except (OSError, ValueError) as error:
            raise cannot_listen(host, port, error) from None
        sweeping = asyncio.create_task(door.sweep())
        bound = server.sockets[0].getsockname()[1]
        yield f"http://[{host}]:{bound}/" if ":" in host else f"http://{host}:{bound}/"
        sweeping.cancel()
        server.close()
    finally:
        await runner.cleanup()


def until_interrupted(listening: Callable[[], AbstractAsyncContextManager[str]], ready: Callable[[str], None]) -> None:
    """Serves until Ctrl-C. ``ready`` is called once with the address."""
    async def run() -> None:
        async with listening() as address:
            ready(address)
            over = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in handled():
                # Windows' event loops take no signal handlers.
                with contextlib.suppress(NotImplementedError):
                    loop.add_signal_handler(number, over.set)
            await over.wait()

    asyncio.run(run())
