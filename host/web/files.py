"""Files that a page requests, each made by a separate process, which ends if the request is cancelled."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from aiohttp import web
from hypermon.host.errors import HypermonError
from hypermon.host.record.process import hypermon_command
from hypermon.host.text.printable import printable

__all__ = ["GoneError", "command_file", "send_file", "send_made_file"]

#: Seconds between two checks whether the request still exists; for a piece of a file to be sent.
_LOOK_S, _PIECE_S = 0.2, 30.0


class GoneError(Exception):
    """The request for the file no longer exists."""


async def command_file(command: Sequence[str], name: str, gone: Callable[[], bool]) -> IO[bytes]:
    """The file that a command writes, as an open file that no longer has a name.

    Parameters
    ----------
    command : words of ``hypermon``; the file is the last one.
    name : of the file, for its ending.
    gone : whether the request is cancelled, which ends the process.

    Raises
    ------
    HypermonError
        with the command's own message, if it fails.
    GoneError
        if the request is cancelled.
    """
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        path = Path(folder) / name
        process = await asyncio.create_subprocess_exec(
            *hypermon_command(*command, str(path)),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        said = asyncio.create_task(process.communicate())
        try:
            while not (await asyncio.wait({said}, timeout=_LOOK_S))[0]:
                if gone():
                    raise GoneError
        finally:
            if process.returncode is None:
                process.kill()
            _, words = await said
        if process.returncode != 0:
            raise HypermonError(words.decode(errors="replace").strip() or "the file cannot be made")
        return open(path, "rb")


async def send_made_file(request: web.Request, command: Sequence[str], name: str) -> web.StreamResponse:
    """Answers with the file that a command writes.

    Parameters
    ----------
    command : as for :func:`command_file`.
    name : of the file, for the browser. Characters that a header cannot have become ``_``.

    Raises
    ------
    aiohttp.web.HTTPConflict
        with the command's own message, if it fails.
    """
    name = "".join(letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_"
                   for letter in name)
    try:
        file = await command_file(command, f"part.{name.rpartition('.')[2]}",
                                  lambda: request.transport is None or request.transport.is_closing())
    except HypermonError as error:
        raise web.HTTPConflict(text=printable(str(error))) from None
    except GoneError:
        return web.Response()
    with file:
        return await send_file(request, file, {"Content-Disposition": f'attachment; filename="{name}"'})


async def send_file(request: web.Request, file: IO[bytes], headers: dict[str, str]) -> web.StreamResponse:
    """Answers with a file, in pieces. The connection to a browser that takes none for 30 s is ended."""
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream", **headers})
    response.content_length = left = os.fstat(file.fileno()).st_size
    await response.prepare(request)
    transport = request.transport
    try:
        # The browser has everything with the last piece, and may request the next file at once.
        while left and (piece := await asyncio.to_thread(file.read, 1 << 20)):
            async with asyncio.timeout(_PIECE_S):
                await response.write(piece)
            left -= len(piece)
        async with asyncio.timeout(_PIECE_S):
            await response.write_eof()
    except TimeoutError:
        if transport is not None:
            transport.abort()
    return response
