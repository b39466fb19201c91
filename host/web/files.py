"""Files that a page requests, each made by a separate process, which ends if the request is cancelled."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from hypermon.host.errors import HypermonError
from hypermon.host.record.process import hypermon_command

__all__ = ["GoneError", "command_file", "perfetto_file"]

#: Seconds between two checks whether the request still exists.
_LOOK_S = 0.2


class GoneError(Exception):
    """The request for the file no longer exists."""


async def perfetto_file(run: Path, gone: Callable[[], bool]) -> IO[bytes]:
    """``hypermon export --to perfetto`` of a RUN, as an open file that no longer has a name.

    Parameters
    ----------
    gone : whether the request is cancelled, which ends the process.

    Raises
    ------
    HypermonError
        with the command's own message, if it fails.
    GoneError
        if the request is cancelled.
    """
    return await command_file(["export", str(run), "--to", "perfetto"], "run.pftrace", gone)


async def command_file(command: Sequence[str], name: str, gone: Callable[[], bool]) -> IO[bytes]:
    """The file that a command writes, as an open file that no longer has a name.

    Parameters
    ----------
    command : words of ``hypermon``; the file is the last one.
    name : of the file, for its ending.
    gone, Raises : as in :func:`perfetto_file`.
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
