"""One board or one recording under view: shared by the page and the terminal.

Runs of several boards have a :class:`.MachineSession`. Its methods are asked for one of the boards; here there is one.
"""

import datetime
import os
import shlex
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.run_dictionary import KEPT
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.live.history import Stretch
from hypermon.host.live.tail import Tail
from hypermon.host.live.view import View
from hypermon.host.record.process import RecorderProcess, command_of, identify
from hypermon.host.recording.info import RunInfo
from hypermon.host.text.printable import printable

__all__ = ["Session", "new_run"]

#: Maximum bytes that one step reads, and maximum steps to catch up with a recording.
_PIECE = 1 << 22
_PIECES = 8
#: Seconds over which the rate of bytes is averaged.
_FLOW_S = 1.0


class Session:
    """Records a board on request, and keeps a view of the newest recording. Not for use by several threads at once.

    Parameters
    ----------
    board : its URI; None to view a recording.
    run : the recording; with a board, None.
    folder : where recordings of the board are stored, named by their time.

    Members
    -------
    identity : of the board, as ``hypermon info --json``.
    state : ``idle``, ``recording``, ``stopping``, ``ended`` or ``failed``; for a recording made by another program,
        ``following``.
    """

    def __init__(self, board: str | None, run: Path | None, folder: Path):
        self.board, self.run, self.folder = board, run, folder
        self.identity: dict[str, Any] = {}
        self.state, self.failure, self.command = "idle", "", ""
        self._view: View | None = None
        self._tail: Tail | None = None
        self._recorder: RecorderProcess | None = None
        self._said: dict[str, Any] = {}
        self._flow = (0.0, 0, 0.0)     # when, bytes then, bytes per second
        self._names: dict[int, str] = {}
        self._blind = ""               # why the recording is no longer shown
        if board is not None:
            self.identity = identify(board)
        elif run is not None:
            self.identity = dict(RunInfo.load(run / "recording.json").identity)
            self._look(run)
            self.state = "following"

    @property
    def name(self) -> str:
        return self.board if self.board is not None else str(self.run)

    def start(self, options: Sequence[str]) -> None:
        """Begins a recording; raises HypermonError if one is in progress, or there is no board."""
        if self.board is None:
            raise HypermonError("this is a recording; to record, serve a board: hypermon serve -b BOARD")
        if self._recorder is not None and self._recorder.running:
            raise HypermonError("a recording is running; stop it first")
        self._end()
        run = new_run(self.folder)
        try:
            recorder = RecorderProcess(self.board, run, options)
        except OSError as error:
            raise HypermonError(f"the recorder cannot be started: {error.strerror or error}") from None
        self._forget()
        self.run, self._recorder = run, recorder
        self.command = shlex.join(command_of(self.board, run, options))
        self.state, self.failure = "recording", ""

    def stop(self) -> None:
        """Ends the recording; raises HypermonError if there is none."""
        if self._recorder is None:
            raise HypermonError("no recording is running")
        self._recorder.stop()
        self.state = "stopping"

    def step(self, boards: Collection[int | None] = ()) -> None:
        """Processes what has happened since the last call.

        A recording that cannot be shown any more is a failure of the view alone, and the state reports it. Its recorder
        continues, and the next recording is shown.
        """
        ended = self._recorder is not None and not self._recorder.running
        if self._recorder is not None:
            self._said = self._recorder.figures
        try:
            self._follow(whole=ended)
        except Exception as error:
            self._forget()
            self._blind = printable(f"the recording cannot be shown: {type(error).__name__}: {error}")
        if ended:
            self._end()
        elif self.state == "following" and self._blind:
            self.state = "failed"
        elif self.state == "following" and self._view is not None and self._view.stopped:
            self.state = "ended"

    def _follow(self, whole: bool) -> None:
        if self._blind:
            return
        if self._view is None and self.run is not None and (self.run / "recording.json").exists():
            self._look(self.run)
        self._read(whole)

    def _end(self) -> None:
        """Handles a recorder that has ended; without one, does nothing."""
        if self._recorder is not None:
            self.failure = printable(self._recorder.failure or "")
            self.state = "failed" if self.failure else "ended"
            self._recorder.close()
            self._recorder = None

    def _read(self, whole: bool) -> None:
        if self._tail is None or self._view is None:
            return
        for _ in range(_PIECES if not whole else 1 << 30):
            data = self._tail.read(_PIECE)
            if not data:
                break
            self._view.feed(data)

    def _look(self, run: Path) -> None:
        """Opens a view of a recording from its beginning."""
        try:
            info = RunInfo.load(run / "recording.json")
        except InputError:
            if self.board is None:
                raise
            return      # the recorder has not got that far
        self._tail, self._view, self._names = Tail(run), View(info), _names(run)

    def _forget(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._tail = self._view = None
        self._said, self._flow, self._blind = {}, (0.0, 0, 0.0), ""

    def snapshot(self, board: int | None = None) -> dict[str, Any]:
        """The current state, as plain values."""
        view = self._view
        identity = view.info.identity if view is not None else self.identity
        nodes = view.info.nodes if view is not None else int(identity.get("nodes", 0))
        figures = view.figures() if view is not None else {}
        if view is not None and view.info.keep != "raw" and "events_per_node" in self._said:
            figures |= _of_recorder(self._said)     # there are no blocks to read
        return {
            "name": self.name, "run": None if self.run is None else str(self.run), "state": self.state,
            "failure": self.failure or self._blind, "command": self.command, "controls": self.board is not None,
            "nodes": nodes, "identity": identity, "modes": view.info.modes if view is not None else [],
            "sink": view.info.sink if view is not None else None,
            "window": view.info.window if view is not None else None,
            "behind": self._tail.behind if self._tail is not None else 0,
            "bytes_per_s": self._bytes_per_s(figures.get("bytes", 0)),
            "lost_on_link": self._said.get("lost_on_link"), "losses": list(view.losses) if view is not None else [],
            "names": self._names, **figures,
        }

    def _bytes_per_s(self, size: int) -> float:
        now, (then, before, flow) = time.monotonic(), self._flow
        if now - then >= _FLOW_S:
            flow = max(size - before, 0) / (now - then) if then else 0.0
            self._flow = (now, size, flow)
        return flow

    def stretch(self, span_ps: int, board: int | None = None) -> Stretch | None:
        """Counts over the last ``span_ps``."""
        return None if self._view is None else self._view.history.stretch(span_ps)

    def newest(self, board: int | None = None) -> list[dict[str, Any]]:
        """The newest events."""
        return [] if self._view is None else self._view.newest()

    def close(self) -> None:
        """Ends what runs, properly."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        self._forget()


def new_run(folder: Path) -> Path:
    """A name for a new recording that is not taken: by the time and this process, as another one may begin a recording
    in the same second.
    """
    name = f"run-{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(path for path in (folder / name for name in names) if not path.exists())


def _names(run: Path) -> dict[int, str]:
    """Names of a RUN's event ids; none without a dictionary that can be read."""
    kept = run / KEPT
    try:
        return {kind.id: kind.name for kind in load_dictionary(kept).events} if kept.is_file() else {}
    except InputError:
        return {}


def _of_recorder(said: dict[str, Any]) -> dict[str, Any]:
    """The recorder's own report, in the form of a view."""
    # Items that the link lost are among the losses of the nodes.
    return {"items": said["events_per_node"], "lost": said["lost_per_node"], "lost_on_link": 0,
            "frame_level": said["frame_level"], "vector_level": said["vector_level"], "bytes": said.get("bytes", 0),
            "time_ps": round(said.get("board_s", 0) * 10**12)}
