"""The recording that both tabs show: a session for the live view, and the pictures of its run for the timeline."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from hypermon.host.errors import HypermonError
from hypermon.host.run import Run
from hypermon.host.text.printable import printable
from hypermon.host.view.opened import opened
from hypermon.host.view.picture import Pictures
from hypermon.host.web.verdicts import Verdicts

if TYPE_CHECKING:
    from hypermon.host.live.machine import MachineSession
    from hypermon.host.live.session import Session

__all__ = ["SHOWN", "Shown", "session_of"]


class _Open:
    """Pictures, and how many requests use them."""

    def __init__(self, pictures: Pictures):
        self.pictures, self.users, self.over = pictures, 0, False


class Shown:
    """The recording that the server shows; :meth:`close` ends it.

    Parameters
    ----------
    session : that of the live tab; None: one of the pictures' run, opened when the tab is.
    pictures : those of the timeline; None: those of the session's run, opened when the tab is.
    rules : a file of rules by which the pictures' run is judged; only with pictures.

    At least one of the two is given.
    """

    def __init__(self, session: "Session | MachineSession | None" = None, pictures: Pictures | None = None,
                 rules: Path | None = None):
        self._session, self._opened = session, None if pictures is None else _Open(pictures)
        self.verdicts = None if rules is None else Verdicts(rules)
        self._alone = asyncio.Lock()
        if pictures is not None:
            pictures.prepare()

    @property
    def live(self) -> "Session | MachineSession | None":
        """The session, if it is open."""
        return self._session

    def session(self) -> "Session | MachineSession":
        """The session. Raises HypermonError if its run cannot be read."""
        if self._session is None:
            assert self._opened is not None
            self._session = session_of(self._opened.pictures.run.path)
        return self._session

    @contextlib.asynccontextmanager
    async def pictures(self, name: str | None) -> AsyncIterator[Pictures]:
        """The pictures, which stay open inside.

        Parameters
        ----------
        name : of the run that a page shows. None: the page has just been opened, and shows the newest run.

        Raises
        ------
        HypermonError
            if there is no run yet, if it cannot be read, or if the pictures are those of another run by now.
        """
        async with self._alone:
            found = await self._newest() if name is None else self._opened
            if found is None or name not in (None, found.pictures.run.path.name):
                raise HypermonError("another recording is shown by now: reload the page")
            found.users += 1
        try:
            yield found.pictures
        finally:
            found.users -= 1
            await _closed(found)

    async def _newest(self) -> _Open:
        """The pictures of the newest run, in place of those of the last one."""
        last, run = self._opened, None if self._session is None else self._session.run
        if last is not None and (run is None or last.pictures.run.path.resolve() == run.resolve()):
            return last
        if run is None:
            raise HypermonError("no recording is here yet: start one on the live tab")
        self._opened = _Open(await asyncio.to_thread(_pictures, run))
        if last is not None:
            last.over = True
            await _closed(last)
        return self._opened

    async def close(self) -> None:
        """Ends the session properly, and closes the pictures and the verdicts."""
        if self.verdicts is not None:
            await self.verdicts.close()
        if self._session is not None:
            await asyncio.to_thread(self._session.close)
        if self._opened is not None:
            await asyncio.to_thread(self._opened.pictures.close)


SHOWN: web.AppKey[Shown] = web.AppKey("shown", Shown)


def session_of(run: Path) -> "Session | MachineSession":
    """A session that shows a RUN. Raises InputError if it cannot be read."""
    # Here, because they take a tenth of a second that the first picture of a timeline does not have.
    from hypermon.host.live.machine import MachineSession
    from hypermon.host.live.session import Session
    from hypermon.host.recording.info import RunInfo

    boards = RunInfo.load(run / "recording.json").boards
    return MachineSession(run) if boards else Session(None, run, run.parent)


def _pictures(run: Path) -> Pictures:
    try:
        pictures = opened(Run(run), lambda: Run(run))
    except OSError as error:
        raise HypermonError(printable(f"{run}: {error.strerror or error}")) from None
    pictures.prepare()
    return pictures


async def _closed(found: _Open) -> None:
    """Closes pictures that nobody uses any more."""
    if found.over and not found.users:
        found.over = False
        await asyncio.to_thread(found.pictures.close)
