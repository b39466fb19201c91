"""The timeline of what a live page shows: ``hypermon view``, a process of its own, which a page starts with a click."""

import asyncio
import contextlib
import os
import re
import tempfile
from pathlib import Path

from hypermon.host.errors import HypermonError
from hypermon.host.record.process import hypermon_command
from hypermon.host.text.printable import printable

__all__ = ["Timeline"]

#: The port of ``hypermon view``, which is tried first, so that a tunnel can be prepared for it.
_PORT = 8019
#: Seconds in which it must say its address, and in which it must end.
_START_S, _END_S = 60.0, 10.0


class Timeline:
    """At most one ``hypermon view`` at a time.

    Parameters
    ----------
    host, token : as of the live page.
    """

    def __init__(self, host: str, token: str | None):
        self._host, self._token = host, token
        self._process: asyncio.subprocess.Process | None = None
        self._run: Path | None = None
        self._address = ""
        self._alone = asyncio.Lock()

    async def address(self, run: Path) -> str:
        """The address of the RUN's timeline; the process is started unless it is at work. Raises HypermonError."""
        async with self._alone:
            if self._process is None or self._process.returncode is not None or self._run != run:
                await self._end()
                self._address = await self._start(run, _PORT) or await self._start(run, 0)
                self._run = run
            return self._address

    async def _start(self, run: Path, port: int) -> str:
        """The address; nothing if the port is not free. Raises HypermonError."""
        environment = {name: value for name, value in os.environ.items() if name != "HYPERMON_TOKEN"}
        if self._token is not None:
            environment["HYPERMON_TOKEN"] = self._token      # other users see the options of a command
        with tempfile.TemporaryFile() as words:
            process = self._process = await asyncio.create_subprocess_exec(
                *hypermon_command("view", str(run), "--host", self._host, "--port", str(port)), env=environment,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=words)
            assert process.stdout is not None
            line = b""
            with contextlib.suppress(TimeoutError):
                line = await asyncio.wait_for(process.stdout.readline(), _START_S)
            if found := re.search(r"https?://\S+", line.decode(errors="replace")):
                return found[0]
            await self._end()
            words.seek(0)
            said = words.read().decode(errors="replace").strip()
        if port and "in use by another program" in said:
            return ""
        raise HypermonError(printable(said.splitlines()[-1] if said else "hypermon view did not start"))

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def close(self) -> None:
        """Ends the process."""
        async with self._alone:
            await self._end()
