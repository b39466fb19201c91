"""A recording as one sequence of items, losses and notes, in order of time, even while it grows.

A board reports refused items as soon as an outage ends, and at every census it states what the link must have carried.
Items are therefore held back until the next census, at most a second later: by then the losses among them are known.
"""

import bisect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.hdl.layout import Counter
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Scanned, Torn
from hypermon.host.decode.event_framing import EventFramer
from hypermon.host.decode.ledger import LossRow, Rows
from hypermon.host.decode.live_ledger import LiveLedger
from hypermon.host.decode.unrecorded import END_PS, rejects_items, waits_for
from hypermon.host.errors import InputError
from hypermon.host.live.tail import Tail
from hypermon.host.live.view import table_of
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import segment_number, segments

__all__ = ["Follow", "Known", "Loss", "Note", "Part", "follow"]

#: Bytes that are read at a time; a census is in every piece of a busy stream.
_PIECE = 1 << 16
#: Seconds between two looks at a recording that has not grown.
_LOOK_S = 0.05


class Loss(NamedTuple):
    """Between these two times that node lost ``lost`` items."""

    node: int
    lost: int
    from_ps: int
    to_ps: int


class Note(NamedTuple):
    """Something about the recording itself: ``kind`` is ``reset``, ``torn``, ``faulty``, ``skipped``, ``late``,
    ``cut`` or ``gone``."""

    kind: str
    time_ps: int
    text: str


class Known(NamedTuple):
    """What is known of a recording that grows.

    Members
    -------
    begin_ps : when its data begin.
    until_ps : for each node, the time up to which all losses are known, and all items have been returned.
    late : windows by which items were carried, at most. ``rejected``: items of each node that its filters rejected.
    discarded : items that triggers and masks discarded.
    sure : False with regeneration boards, which report their losses later.
    """

    begin_ps: int
    until_ps: list[int]
    late: int = 0
    rejected: Sequence[int] = ()
    discarded: int = 0
    sure: bool = True


#: Items in a table, which has the columns of :func:`.parquet.event_schema`, in order; a loss; a note.
Part: TypeAlias = pa.Table | Loss | Note


class Follow:
    """Receives a stream in pieces and returns its contents in order.

    Losses are in order of ``from_ps`` among the items if the board has reported them by the next census. A longer
    outage follows when the board reports it, always before the next item of its node.

    Parameters
    ----------
    info : of the recording.
    begins : the accounting at the beginning of a ring; see :meth:`.Ledger.resume`.
    framing : nibbles are read as events that the nodes' software framed.
    """

    def __init__(self, info: RunInfo, begins: dict[str, Any] | None = None, framing: bool = False):
        self._scale = info.scale
        self._ledger = LiveLedger.of(info)
        if begins is not None:
            self._ledger.resume(begins)
        self._scanner = BlockScanner()
        self._framer = EventFramer() if framing else None
        self._held: list[pa.Table] = []
        self._losses: list[LossRow] = []
        self._epochs: set[int] = {info.epoch}
        self._said: dict[str, int] = {}
        window = 0 if begins is None else begins["window"]
        self._until_ps = self._begin_ps = self._scale.start_ps(window * self._scale.stamp_window)
        # Whether a node may reject items, and until when they were told to the framer, in windows.
        self._rejects, self._told = rejects_items(info), [-1] * info.nodes
        self._waits = waits_for("start", info)
        if self._framer is not None and begins is not None:
            for node in range(info.nodes):      # a ring begins anywhere in an event
                self._framer.lose(node, self._scale.start_ps(0), self._begin_ps)

    def feed(self, data: bytes) -> Iterator[Part]:
        """The parts that become final with this piece."""
        yield from self._take(self._scanner.feed(data))
        census = self._ledger.census
        if census is None:
            return
        at = census.time * self._scale.stamp_window
        if any(row[Counter.ACCEPTED] != row[Counter.DELIVERED] for row in census.counters):
            at = min(at, self._ledger.newest)     # something older is still in the board
        self._hold(self._ledger.settle(at))
        late = self._ledger.counted_late if self._framer is not None and any(self._rejects) else self._ledger.hold
        until_ps = self._scale.start_ps(max(at - late, 0))
        yield from self._release(until_ps)
        self._until_ps = max(self._until_ps, until_ps)

    def finish(self) -> Iterator[Part]:
        """The rest, at the end of the data."""
        yield from self._take(self._scanner.finish())
        self._hold(self._ledger.finish())
        self._lose()
        if self._framer is not None and self._ledger.uncounted:
            for node, until in enumerate(self._ledger.counted_until):   # no row states what was in a missing block
                self._framer.lose(node, self._scale.start_ps(until * self._scale.stamp_window), END_PS)
        yield from self._release(None)
        late = self._ledger.late_rows()
        if late is not None:
            yield Note("late", self._now, f"the items below arrived too late to be in order: {len(late):,}")
            yield table_of(late.events(self._scale))

    def cut(self) -> Iterator[Note]:
        """After :meth:`finish`, for a recording that has ended: that its stream is not whole, unless it is."""
        if not self._ledger.stopped:
            yield Note("cut", self._now, "the stream was cut short: everything after the last block here is missing, "
                                         "and whether more was lost before is not known")

    def gone(self) -> Note:
        """After :meth:`finish`, for a recording without an end that nobody continues."""
        return Note("gone", self._now, "the recorder has ended without completing the recording (killed, for "
                                       "instance): what the board sent after this is missing")

    @property
    def known(self) -> Known:
        """What is known of the parts that were returned."""
        ledger, census = self._ledger, self._ledger.census
        if census is None:
            return Known(self._begin_ps, [self._begin_ps - 1] * ledger.nodes)
        starts = [self._scale.start_ps(window * self._scale.stamp_window) for window in ledger.agreed]
        carried = sum(ledger.counted(Counter.CARRIED))
        return Known(self._begin_ps, [max(min(start, self._until_ps), self._begin_ps) - 1 for start in starts],
                     max(row[Counter.LAG_MAX] for row in census.counters) if carried else 0,
                     ledger.counted(Counter.REJECTED), census.discarded, not ledger.linked)

    @property
    def _now(self) -> int:
        """The time that the stream has reached."""
        return self._scale.start_ps(self._ledger.last_time * self._scale.stamp_window)

    def _take(self, items: Iterable[Scanned]) -> Iterator[Note]:
        notes: list[Note] = []

        def watched() -> Iterator[Scanned]:
            for item in items:
                if isinstance(item, Torn):
                    notes.append(Note("torn", self._now, f"{item.size:,} bytes are not a block: {item.reason}"))
                elif item.head.epoch not in self._epochs:
                    self._epochs.add(item.head.epoch)
                    notes.append(Note("reset", self._now, "the board was reset: what follows belongs to epoch "
                                                          f"{item.head.epoch}, not to this recording"))
                yield item

        self._hold(self._ledger.event_rows(watched()))
        for reason, count in self._ledger.faults.items():
            if count > self._said.get(reason, 0):
                notes.append(Note("faulty", self._now, f"{count - self._said.get(reason, 0)} blocks were skipped: "
                                                       f"{reason}"))
                self._said[reason] = count
        self._lose()
        return iter(notes)

    def _hold(self, rows: Iterator[Rows]) -> None:
        self._held += [table_of(part.events(self._scale)) for part in rows if len(part)]

    def _lose(self) -> None:
        rows = self._ledger.take_losses()
        if self._framer is not None:
            for node, _, from_ps, to_ps in rows:
                self._framer.lose(node, from_ps, to_ps)
            for node, spans in enumerate(self._ledger.rejected_spans):
                if self._rejects[node] and spans and spans[-1][1] > self._told[node]:
                    first, last, _ = spans[-1]
                    self._framer.lose(node, *self._scale.span_ps(max(first, self._told[node]), last))
                    self._told[node] = last
        for row in rows:
            bisect.insort(self._losses, row, key=lambda loss: loss[2])

    def _release(self, until_ps: int | None) -> Iterator[Part]:
        """The items and losses before a time, merged; None: all."""
        table, rest = _split(self._held, until_ps)
        self._held = [rest] if rest is not None and len(rest) else []
        if self._framer is not None:
            table, until_ps = self._framed(table, until_ps)
        while self._losses and (until_ps is None or self._losses[0][2] < until_ps):
            loss = self._losses.pop(0)
            table, rest = _split([table] if table is not None else [], loss[2])
            if table is not None and len(table):
                yield table
            table = rest
            yield Loss(*loss)
        if table is not None and len(table):
            yield table

    def _framed(self, nibbles: pa.Table | None, until_ps: int | None) -> tuple[pa.Table | None, int | None]:
        """The events that become final, and the time before which no more begin."""
        assert self._framer is not None
        tables = []
        if self._waits and nibbles is not None and len(nibbles):
            census = self._ledger.census
            if census is None or census.discarded:      # the trigger may have come inside an event
                for node in range(self._ledger.nodes):
                    self._framer.lose(node, self._scale.start_ps(0), nibbles["time_ps"][0].as_py())
            self._waits = False
        if nibbles is not None:
            own = nibbles.filter(pc.is_valid(nibbles["nibble"]))
            tables.append(self._framer.add(*(own[name].to_numpy() for name in ("time_ps", "node", "nibble"))))
        if until_ps is None:
            tables.append(self._framer.finish())
        elif (begins := self._framer.begins_ps) is not None:
            until_ps = min(until_ps, begins)
        return (pa.concat_tables(tables) if tables else None), until_ps


def _split(tables: list[pa.Table], until_ps: int | None) -> tuple[pa.Table | None, pa.Table | None]:
    """Tables in order, joined: the rows before a time, and the others. None without tables."""
    if not tables:
        return None, None
    table = pa.concat_tables(tables)
    if until_ps is None:
        return table, None
    count = bisect.bisect_left(_Column(table["time_ps"]), until_ps)
    return table.slice(0, count), table.slice(count)


class _Column:
    """A column as a sequence, without a copy."""

    def __init__(self, column: pa.ChunkedArray):
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: int) -> int:
        value: int = self._column[index].as_py()
        return value


def follow(path: Path, alive: Callable[[], bool] = lambda: True, *, stop: Callable[[], bool] = lambda: False,
           wait: bool = True, framing: bool = False, new: bool = False,
           after: Callable[[Known, bool], None] | None = None, look_s: float = _LOOK_S) -> Iterator[Part]:
    """The contents of a RUN, and those that are appended, until the recording ends.

    An empty table is returned while there is nothing new, so that a caller can look at other things.

    Parameters
    ----------
    alive : whether the program that records is still there; without it, no more is waited for.
    stop : whether to end now, with what is held back.
    wait : for more, while the recording has no end.
    framing : as :class:`Follow`.
    new : leaves out what is already there.
    after : called when the parts of a piece have been returned: what is known of them, and whether nothing was new.
    look_s : seconds between two looks at a recording that has not grown.

    Raises
    ------
    InputError
        if it is not a recording of one board with its stream.
    """
    run = RunDirectory(path)
    if run.info.boards:
        raise InputError(path, None, f"a run of several boards; follow one of them: {path / run.info.boards[0]}")
    if run.info.keep != "raw":
        raise InputError(path, None, f"it was recorded with --keep {run.info.keep}: its stream was not kept; "
                                     f"hypermon query {path} shows its tables")
    tail, following = _begin(run, framing)
    due = tail.behind if new else 0
    try:
        while not stop():
            # In this order: what was written before the end is read before the end is believed.
            over = not wait or not alive() or RunInfo.load(path / "recording.json").end is not None
            data = tail.read(_PIECE)
            if tail.skipped:
                yield from following.finish()
                tail.close()
                tail, following = _begin(run, framing)
                yield Note("skipped", 0, "the recording is a ring, and was faster than this reader: what it has "
                                         "overwritten is not shown")
                continue
            parts = following.feed(data)
            due -= len(data)
            if due >= 0 and data and new:
                for _ in parts:
                    pass
            else:
                yield from parts
            if after is not None:
                after(following.known, not data)
            if not data and over:
                break
            if not data:
                time.sleep(look_s)
                yield pa.table({})
    finally:
        tail.close()
    yield from following.finish()
    if after is not None:
        after(following.known, True)
    if stop():
        return
    if RunInfo.load(path / "recording.json").end is not None:
        yield from following.cut()
    elif wait:
        yield following.gone()


def _begin(run: RunDirectory, framing: bool) -> tuple[Tail, Follow]:
    """At the beginning of what exists, which a ring may move meanwhile."""
    while True:
        begins, tail = run.begins, Tail(run.path)
        tail.open()
        first = segments(run.path)[0]
        if first and segment_number(first[0]) == tail.number and run.begins == begins:
            return tail, Follow(run.info, begins, framing)
        tail.close()
