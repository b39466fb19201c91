"""Pictures of a run: what happened between two times, in columns as wide as a page's pixels."""

import json
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypermon.host.analysis.stats import extent
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.export.items import item_files, known_files
from hypermon.host.recording.parts import PARTS
from hypermon.host.run import Run
from hypermon.host.text.printable import printable
from hypermon.host.view.counts import Counts
from hypermon.host.view.tables import Tables

__all__ = ["COLUMNS_MOST", "LANES_MOST", "Pictures"]

#: Of a picture.
COLUMNS_MOST, LANES_MOST = 4096, 64
#: Up to this number of items, a picture has them one by one.
_SINGLE = 3000
#: Seconds that the preparation waits for the first picture, which has both cores then.
_FIRST_S = 1.0


class Pictures:
    """Makes pictures of a RUN. Several threads may use it.

    Parameters
    ----------
    run : it is decoded if that is needed.

    If the RUN has an overview of its tables, the picture of the whole run is made from that. The tables are then read
    once to find damage (:mod:`.parts`) while the page is already usable; whatever needs their rows waits for that.

    Members
    -------
    begin_ps, end_ps : begin and end of the run. The times of its items, its losses and its recording are between them.
    trouble : why something could not be prepared, in one line.
    """

    def __init__(self, run: Run):
        self.run = run
        self.dictionary = kept_dictionary(run)
        self.trouble, self.ready = "", False
        self._over, self._busy, self._first = threading.Event(), 0, threading.Event()
        self._thread: threading.Thread | None = None
        self._check: Check | None = Check(self._first.set)
        if not self._open(self._check):
            self._check = None
            self._open(None)

    def _open(self, check: "Check | None") -> bool:
        """Opens the tables. Returns whether the overview of the items is there, which a check needs.

        Parameters
        ----------
        check : of the tables, which is still to be made; None: they are checked here.
        """
        run = self.run
        found = (item_files(run), run.loss_files()) if check is None else known_files(run)
        if found is None:
            return False
        sound = check.passed if check is not None else lambda: None
        self.account, self.files = run.decode(), found[0]
        self.counts = Counts(self.files, run.info.nodes, sound)
        if not self.counts.load_whole(run.path, self.account[PARTS]) and check is not None:
            return False
        self.tables = Tables(run, *found, sound)
        self.begin_ps, self.end_ps = self._bounds()
        if check is not None:
            self.tables.begin(self.begin_ps, self.end_ps)
        return True

    def _bounds(self) -> tuple[int, int]:
        first, last = self.tables.known("select coalesce(min(from_ps), 0), coalesce(max(to_ps), 0) from loss")[0]
        groups = self.counts.groups
        begin = min([0, first, *(group.first_ps for group in groups)])
        duration = (self.run.info.end or {}).get("duration_ps") or 0
        return begin, max([begin + 1000, last + 1, duration, *(group.last_ps + 1 for group in groups)])

    @property
    def extent(self) -> tuple[int, int]:
        """When the recording begins and ends, as :func:`.stats.extent` has it; of one in progress, the bounds."""
        growing = "last_time" not in self.account
        return (self.begin_ps, self.end_ps) if growing else extent(self.run, self.account)

    # ---------------------------------------------------------------------------------- preparation

    def prepare(self) -> None:
        """Begins, in a thread, to count the items and to make the states and messages, as far as they are missing."""
        self._thread = threading.Thread(target=self._prepare, name="prepare", daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        self._first.wait(_FIRST_S)
        try:
            self._checked()
            parts = self.account[PARTS]
            if not self.counts.load(self.run.path, parts) or self.counts.whole is None:
                self.counts.make(self._gives_way)
                if self.counts.whole is not None:
                    self.counts.save(self.run.path, parts)
            if not self._over.is_set():
                self.tables.tell(self.begin_ps, self.end_ps)
        except (HypermonError, OSError) as error:
            self.trouble = printable(str(error))
        self.ready = True

    def _checked(self) -> None:
        """Makes the check that is still to be made. Tables that are damaged are made anew, and opened then."""
        check, self._check = self._check, None
        if check is None:
            return
        try:
            item_files(self.run)
            if self.run.decode()[PARTS] != self.account[PARTS]:
                self._open(None)
                check.ends(f"{self.run.path}: its tables were damaged, and have been made anew: try again")
            else:
                check.ends()
        except (HypermonError, OSError) as error:
            check.ends(str(error))
            raise

    def _gives_way(self) -> bool:
        """Waits until no picture is being made; returns whether the preparation must end."""
        while self._busy and not self._over.wait(0.002):
            pass
        return self._over.is_set()

    def close(self) -> None:
        """Ends the preparation."""
        self._over.set()
        if self._thread is None and self._check is not None:
            self._check.ends(f"{self.run.path}: it is closed")
        self._first.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    # ------------------------------------------------------------------------------------- answers

    @property
    def framed(self) -> bool:
        """The rows are events of several items each; losses count items."""
        return any(path.name == FRAMED for path in self.files)

    def about(self) -> dict[str, Any]:
        """The run, as plain values; times as text, because they may have more than 53 bits."""
        info, account, names = self.run.info, self.account, self.dictionary
        return {
            "name": self.run.path.name, "nodes": info.nodes, "begin_ps": str(self.begin_ps),
            "end_ps": str(self.end_ps), "clock_ps": 1e12 / info.clock_hz / info.phases,
            "items": self.counts.rows, "framed": self.framed, "kept": account.get("events", self.counts.rows),
            "lost": account["lost"], "started": info.started, "growing": False,
            "node_names": {str(node): name for node, name in names.nodes.items()} if names is not None else {},
            "events": [kind.name for kind in names.events] if names is not None else [], "boards": self._boards(),
            "groups": self._groups(),
            **self.state()}

    def _groups(self) -> list[dict[str, int]]:
        """The boards of a run of several: the first node of each, and how many it has."""
        boards = self.account.get("boards", [])
        return [{"first": board["first_node"], "nodes": board["nodes"]} for board in boards] if len(boards) > 1 else []

    def _boards(self) -> list[dict[str, Any]]:
        """The boards of a large machine: the first node, how many, and the items and losses of each; else none."""
        boards = self.account.get("boards", [])
        if len(boards) < 2 or self.run.info.nodes <= LANES_MOST:
            return []
        own = [(board["first_node"], board["first_node"] + board["nodes"]) for board in boards]
        return [{"first": first, "nodes": end - first, "items": self.account["events_per_node"][first:end],
                 "lost": self.account["lost_per_node"][first:end]} for first, end in own]

    def state(self, tables: Tables | None = None) -> dict[str, Any]:
        """The state of the preparation, for a page; of other tables, if they are given."""
        tables = self.tables if tables is None else tables
        return {"ready": self.ready, "counted": self.counts.counted, "trouble": self.trouble,
                "states": tables.states, "messages": tables.messages, "names": tables.names}

    def picture(self, from_ps: int, to_ps: int, columns: int, lanes: range,
                only: Sequence[int] | None = None) -> bytes:
        """A picture, as the page unpacks it: the length of the JSON, the JSON, then counts, a row per column,
        and shares of states in bytes, a row per kind of state.

        Parameters
        ----------
        from_ps, to_ps : the stretch, ``from_ps < to_ps``.
        columns, lanes : at most :data:`COLUMNS_MOST` and :data:`LANES_MOST`; lanes are nodes.
        only : messages between two of these nodes; None: between any.
        """
        self._busy += 1
        try:
            return self._picture(from_ps, to_ps, columns, lanes, only)
        finally:
            self._busy -= 1
            self._first.set()

    def _picture(self, from_ps: int, to_ps: int, columns: int, lanes: range, only: Sequence[int] | None) -> bytes:
        # The tables may be replaced, and get the names of states, meanwhile.
        tables, counts = self.tables, self.counts
        column_ps = max((to_ps - from_ps) // columns, 1)
        answer: dict[str, Any] = {"from_ps": str(from_ps), "to_ps": str(to_ps), "first": lanes.start,
                                  "lanes": len(lanes), "columns": columns}
        numbers = b""
        count = counts.rows_between(from_ps, to_ps, _SINGLE + 1)
        if count <= _SINGLE:
            answer["items"] = tables.items(from_ps, to_ps, lanes)
        else:
            stretch = counts.stretch(from_ps, to_ps, columns)
            answer["estimated"] = stretch.estimated
            numbers = np.ascontiguousarray(stretch.items[:, lanes.start:lanes.stop], "<f4").tobytes()
        answer["losses"] = tables.losses(from_ps, to_ps, lanes, column_ps)
        answer["spans"] = tables.spans(from_ps, to_ps, lanes, columns, self.end_ps)
        shares = b""
        if answer["spans"]["many"]:
            answer["spans"]["kinds"], found = tables.shares(from_ps, to_ps, lanes, columns, self.end_ps)
            shares = found.tobytes()
        answer["arrows"] = tables.arrows(from_ps, to_ps, lanes, columns, only)
        answer["counters"] = tables.counters(from_ps, to_ps, lanes, columns)
        answer |= self.state(tables)
        answer["numbers"] = len(numbers) // 4
        return packed(answer, numbers + shares + bytes(-len(shares) % 4))

    def overview(self, columns: int) -> bytes:
        """All items of the run over time, all nodes together, and what was lost."""
        stretch = self.counts.stretch(self.begin_ps, self.end_ps, columns)
        width = max((self.end_ps - self.begin_ps) // columns, 1)
        lost = np.zeros(columns, "<f4")
        for column, count in self.tables.known(
                "select least((from_ps - $1) // $2, $3) as bin, sum(lost)::double from loss group by bin",
                [self.begin_ps, width, columns - 1]):
            lost[column] = count
        return packed({"columns": columns, "estimated": stretch.estimated, **self.state()},
                      stretch.items.sum(axis=1).astype("<f4").tobytes() + lost.tobytes())


class Check:
    """A check of tables, which other threads wait for. ``waits`` is called when one does."""

    def __init__(self, waits: Callable[[], object]):
        self._waits, self._done, self._fault = waits, threading.Event(), ""

    def passed(self) -> None:
        """Waits for the end of the check. Raises HypermonError with the fault that it found."""
        if not self._done.is_set():
            self._waits()
            self._done.wait()
        if self._fault:
            raise HypermonError(self._fault)

    def ends(self, fault: str = "") -> None:
        self._fault = fault
        self._done.set()


def packed(answer: dict[str, Any], numbers: bytes) -> bytes:
    """Length of the JSON, the JSON, the numbers."""
    text = json.dumps(answer, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + numbers
