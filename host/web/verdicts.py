"""The verdicts on the rules of a timeline, from ``hypermon check``: a separate process, which ends with the server."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError
from hypermon.host.record.process import hypermon_command
from hypermon.host.text.printable import printable

__all__ = ["Verdicts"]


class Verdicts:
    """Judges a RUN by a file of rules, when it is first asked.

    Parameters
    ----------
    rules : the file; see docs/check.md.
    """

    def __init__(self, rules: Path):
        self.rules = rules
        self._task: asyncio.Task[dict[str, Any]] | None = None

    def answer(self, run: Path) -> dict[str, Any] | None:
        """What ``hypermon check RUN RULES --json --reasons`` prints; None while it is at work.

        Raises
        ------
        HypermonError
            with the command's own message, if it fails.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._judge(run))
        return self._task.result() if self._task.done() else None

    async def _judge(self, run: Path) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *hypermon_command("check", str(run), str(self.rules), "--json", "--reasons"),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        try:
            said, words = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            found: dict[str, Any] = json.loads(said)
        except ValueError:
            last = words.decode(errors="replace").strip().rpartition("\n")[2]
            raise HypermonError(printable(last.removeprefix("hypermon: ") or "hypermon check failed")) from None
        return found

    async def close(self) -> None:
        """Ends the process."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, HypermonError):
                await self._task
