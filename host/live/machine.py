"""A run of several boards under view: the counts of every node, and all of the one board that somebody looks at.

Of each board only the censuses are kept, and the counts of the last seconds. The board that a page has chosen has a
:class:`.live.session.Session` of its own, which reads its recording from the beginning.
"""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hypermon.host.errors import InputError
from hypermon.host.live.history import History, Stretch
from hypermon.host.live.session import Session
from hypermon.host.live.tail import Tail
from hypermon.host.live.view import View
from hypermon.host.recording.info import RunInfo
from hypermon.host.text.printable import printable

__all__ = ["MachineSession"]

#: Bytes of a board that are read at a time, and seconds for which a step reads.
_PIECE, _STEP_S = 1 << 20, 0.4
#: The time over which a rate is averaged.
_RATE_PS = 10**12
#: Figures that are sums over the boards.
_SUMS = ("bytes", "missing_blocks", "torn_bytes", "faulty_blocks", "carried", "rejected", "discarded")


class _Board:
    """What the map shows of a board: ``state`` is ``waiting``, ``following``, ``ended`` or ``failed``."""

    def __init__(self, run: Path):
        self.run, self.state, self.failure = run, "waiting", ""
        self._tail: Tail | None = None
        self._view: View | None = None

    def read(self) -> int:
        """Reads on; returns the number of bytes."""
        if self.state in ("failed", "ended"):
            return 0
        try:
            return self._read()
        except Exception as error:
            self._fail(f"{self.run.name} cannot be shown: {type(error).__name__}: {error}")
            return 0

    def _read(self) -> int:
        if self._view is None:
            if not (self.run / "recording.json").exists():
                return 0
            try:
                info = RunInfo.load(self.run / "recording.json")
            except InputError as error:
                self._fail(str(error))
                return 0
            # One level of bins: the last ten seconds.
            self._tail, self._view, self.state = Tail(self.run), View(info, History(info.nodes, levels=1)), "following"
        assert self._tail is not None
        data = self._tail.read(_PIECE)
        if data:
            self._view.feed(data)
        elif self._view.stopped:
            self.state = "ended"
            self._tail.close()
        return len(data)

    def _fail(self, why: str) -> None:
        self.state, self.failure = "failed", printable(why)
        self.close()

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def counts(self, nodes: int) -> dict[str, Any]:
        """Of each node: items, losses, and items a second at the end of what was read."""
        view = self._view
        if view is None:
            return {"items": [0] * nodes, "lost": [0] * nodes, "rate": [0] * nodes, "state": self.state}
        last = view.history.stretch(_RATE_PS)
        span_s = max((last.end_ps - last.begin_ps) * 1e-12, 1e-12)
        return {"items": view.items.tolist(), "lost": view.lost.tolist(), "state": self.state,
                "rate": [round(float(count) / span_s) for count in last.items.sum(axis=0)]}

    def figures(self) -> dict[str, Any]:
        return self._view.figures() if self._view is not None else {}


class MachineSession:
    """Follows a run of several boards. It has the members of a :class:`.live.session.Session`, and records nothing.

    Parameters
    ----------
    run : the recording. Its boards need not have begun yet.

    Raises
    ------
    InputError
        if it is no recording.
    """

    def __init__(self, run: Path):
        info = RunInfo.load(run / "recording.json")
        self.run: Path | None = run
        self.board, self.identity, self.state = None, dict(info.identity), "following"
        self._nodes = [_nodes(run / name, info.nodes // len(info.boards)) for name in info.boards]
        self._boards = [_Board(run / name) for name in info.boards]
        self._chosen: dict[int, Session] = {}
        self._turn = 0
        self._flow = (0.0, 0, 0.0)

    @property
    def name(self) -> str:
        return str(self.run)

    def start(self, options: Collection[str]) -> None:
        """Raises HypermonError: there is no board to record."""
        raise InputError(self.name, None, "this is a recording; to record, serve a board: hypermon serve -b BOARD")

    def stop(self) -> None:
        """Raises HypermonError, likewise."""
        raise InputError(self.name, None, "no recording is running")

    def step(self, boards: Collection[int | None] = ()) -> None:
        """Reads on, board by board, for less than half a second; and all of the boards that are looked at.

        Parameters
        ----------
        boards : their numbers.
        """
        until, idle = time.monotonic() + _STEP_S, 0
        while idle < len(self._boards) and time.monotonic() < until:
            idle = 0 if self._boards[self._turn].read() else idle + 1
            self._turn = (self._turn + 1) % len(self._boards)
        wanted = {number for number in boards if number is not None and 0 <= number < len(self._boards)}
        for number in self._chosen.keys() - wanted:
            self._chosen.pop(number).close()
        for number in wanted:
            path = self._boards[number].run
            if number not in self._chosen and (path / "recording.json").exists():
                self._chosen[number] = Session(None, path, path.parent)
        for session in self._chosen.values():
            session.step()
        states = {board.state for board in self._boards}
        self.state = ("following" if states & {"waiting", "following"} else
                      "ended" if "ended" in states else "failed")

    def snapshot(self, board: int | None = None) -> dict[str, Any]:
        """The current state, as plain values: of a board, or of the whole run; ``boards`` has those of all nodes."""
        first, boards = 0, []
        for own, nodes in zip(self._boards, self._nodes, strict=True):
            boards.append({"first": first, "nodes": nodes, **own.counts(nodes)})
            first += nodes
        chosen = self._chosen.get(board) if board is not None else None
        own_state = self._whole(boards) if chosen is None else chosen.snapshot()
        failures = [one.failure for one in self._boards if one.failure]
        return own_state | {"name": self.name, "state": self.state, "run": str(self.run), "boards": boards,
                            "board": board if chosen is not None else None,
                            "failure": "; ".join([*([own_state["failure"]] if own_state["failure"] else []),
                                                  *failures[:3]])}

    def _whole(self, boards: list[dict[str, Any]]) -> dict[str, Any]:
        figures = [found for board in self._boards if (found := board.figures())]
        causes: dict[str, int] = {}
        for one in figures:
            for cause, count in one["causes"].items():
                causes[cause] = causes.get(cause, 0) + count
        sums = {name: sum(one[name] for one in figures) for name in _SUMS}
        most = {name: max((one[name] for one in figures), default=0)
                for name in ("time_ps", "frame_level", "vector_level")}
        return {"failure": "", "command": "", "controls": False, "nodes": 0, "identity": self.identity, "modes": [],
                "sink": None, "window": None, "behind": 0, "bytes_per_s": self._bytes_per_s(sums["bytes"]),
                "lost_on_link": None, "losses": [], "names": {}, "causes": causes, "trigger": None,
                "items": [sum(board["items"]) for board in boards], "lost": [sum(board["lost"]) for board in boards],
                **sums, **most}

    def _bytes_per_s(self, size: int) -> float:
        now, (then, before, flow) = time.monotonic(), self._flow
        if now - then >= 1:
            flow = max(size - before, 0) / (now - then) if then else 0.0
            self._flow = (now, size, flow)
        return flow

    def stretch(self, span_ps: int, board: int | None = None) -> Stretch | None:
        """Counts of a board over the last ``span_ps``; None without a board."""
        chosen = self._chosen.get(board) if board is not None else None
        return None if chosen is None else chosen.stretch(span_ps)

    def newest(self, board: int | None = None) -> list[dict[str, Any]]:
        """The newest events of a board."""
        chosen = self._chosen.get(board) if board is not None else None
        return [] if chosen is None else chosen.newest()

    def close(self) -> None:
        """Releases all files."""
        for board in self._boards:
            board.close()
        for session in self._chosen.values():
            session.close()


def _nodes(part: Path, otherwise: int) -> int:
    """The nodes of a board; if it has not begun, those that it would have if all had equally many."""
    try:
        return RunInfo.load(part / "recording.json").nodes
    except InputError:
        return max(otherwise, 1)
