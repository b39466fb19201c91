"""Loss accounting of a run: the items that were refused, or were lost on the link, and when.

There are two kinds of loss, which are never mixed:

- The board's gate refused an item. Every refused item is in a LOSS record.
- A block did not arrive. A CENSUS states how many items of every node had left the board before it in the stream. The
  difference to the number of received items is exactly the number of missing items.

Both become rows ``node, lost, from_ps, to_ps``: between those two times that node lost ``lost`` items.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import BlockType, Cause, CensusFlag, Counter
from hypermon.host.blocks.block_scanner import single_blocks
from hypermon.host.blocks.blocks import Block
from hypermon.host.blocks.sequence import Sequence
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.census import REFUSED, BoardCensus, read_census, read_losses
from hypermon.host.decode.event_blocks import BEYOND
from hypermon.host.decode.marks import PinMarks, read_marks
from hypermon.host.decode.overflows import Overflows

__all__ = ["LossAccounting", "LossRow"]

#: Clocks, at most, from an item to its place in a board's counters, which are copied for a census in five sweeps.
_COUNTED_CLOCKS = 4096
#: node, lost, from_ps, to_ps
LossRow = tuple[int, int, int, int]


class LossAccounting:
    """Compares what has arrived with the numbers of the blocks, LOSS records and censuses.

    The blocks with events are read by :class:`.Ledger`, which counts the items that have arrived.

    Parameters
    ----------
    nodes, scale : of the board.
    by_host : the host reads the frames itself, so their order relative to the CENSUS blocks means nothing.
    hold : the number of windows by which an item may arrive after newer ones.
    late, itm : as for :class:`.Ledger`.

    Members
    -------
    per_node : whole items received of each node. ``aborted``: items of each node that the time-out ended.
    lost_per_node : items lost of each node, refused or missing.
    link_lost : the number of them that the link lost.
    pins : marks of the board's pins.
    census : the last CENSUS, or None. ``started``, ``stopped``: one with the flag START, or STOP, was seen.
    last_time : latest window that any block mentions.
    missing_blocks : sequence numbers that did not arrive. ``repeated_blocks``: blocks skipped because they had already
        arrived.
    faults : reasons why whole blocks of this run were skipped, with the number of blocks.
    uncounted : a block is missing after the last census, so its contents are unknown.
    counted_until : for each node, the window from which on losses may be in no row; -1: all are in rows. For a stream
        that has been read to its end.
    rejected_spans : for each node, first and last window between which items were rejected, and how many, in order. The
        censuses tell, so a span is at least as long as the time between two of them.
    surplus : items that arrived, or that LOSS records call lost, but that the board's counts do not include: they are
        from blocks of other runs.
    """

    def __init__(self, nodes: int, scale: TimeScale, by_host: bool, hold: int, late: Iterable[int], itm: int):
        self.nodes, self.scale = nodes, scale
        self.per_node = np.zeros(nodes, np.int64)
        self.aborted = np.zeros(nodes, np.int64)
        self.lost_per_node = [0] * nodes
        self.link_lost = [0] * nodes
        self.pins = PinMarks()
        self.census: BoardCensus | None = None
        self.started = self.stopped = False
        self.last_time = 0
        self.missing_blocks = self.repeated_blocks = 0
        self.faults: dict[str, int] = {}
        self.uncounted = False
        self.surplus = 0
        self._by_host = by_host
        self._window_scale, self._window_max = replace(scale, phases=1), scale.window_max
        self._rows: list[LossRow] = []
        self._sequences = Sequence(), Sequence(0)  # of the board, of the host
        # Stamp and node of the last event; for the last frame, its last node.
        self._last = (-1, nodes - 1)
        self._overflows = Overflows(nodes, itm) if itm else None
        self._late = np.array([*late] or [0] * nodes, np.int64)
        self._hold = hold + -(-int(self._late.max()) // scale.stamp_window)
        # Blocks are missing since the last count of events. Their contents came after window `_gap_after` and before
        # `_gap_before` (None: no event has arrived since).
        self._gap = False
        self._gap_after = -1
        self._gap_before: int | None = None
        # Refusals: the total of the LOSS records, now and at the last census; the last census that agreed with them;
        # the first census after the last gap, before which every missing record was due.
        self._recorded = [0] * nodes
        self._recorded_then = [0] * nodes
        self._agreed = [0] * nodes
        self._settled: int | None = None
        # The totals of an earlier part of the run, which are not counted here; and its last census.
        self._before = [0] * nodes
        self._counted: list[list[int]] | None = None
        # For every node: items that arrived, and items in records, beyond what the board counts.
        self._surplus = [[0, 0] for _ in range(nodes)]
        self._rejects: list[list[list[int]]] = [[] for _ in range(nodes)]

    @property
    def linked(self) -> bool:
        """The board has regeneration boards."""
        return self.census is not None and CensusFlag.LINKS in self.census.flags

    @property
    def lost(self) -> int:
        return sum(self.lost_per_node)

    def take_losses(self) -> list[LossRow]:
        """The loss rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def account(self) -> dict[str, Any]:
        """The state that :meth:`resume` needs to continue after the blocks so far, as plain values."""
        came = self._came + np.array(self.link_lost, np.int64) + np.array(self._before, np.int64)
        return {"came": came.tolist(), "recorded": list(self._recorded), "agreed": list(self._agreed),
                "last": list(self._last), "window": self.last_time, "due": self._sequences[0].due,
                "counters": self.census.counters if self.census is not None else self._counted}

    def resume(self, account: dict[str, Any]) -> None:
        """Declares that the data before a certain block is no longer there. That is not a loss, and is not counted."""
        self._before, self._recorded, self._agreed = (list(account[name]) for name in ("came", "recorded", "agreed"))
        self._last, self.last_time = (account["last"][0], account["last"][1]), account["window"]
        self._counted, self.started = account["counters"], True
        self._sequences = Sequence(account.get("due")), Sequence(0)

    def counted(self, counter: int) -> list[int]:
        """For every node, how far the board's counter has advanced in the part of the run whose data are there."""
        now = self.census.counters if self.census is not None else []
        before = self._counted or [[]] * len(now)
        return [row[counter] - (old[counter] if counter < len(old) else 0)
                for row, old in zip(now, before, strict=False)]

    @property
    def counted_until(self) -> list[int]:
        census = self.census
        if census is None:
            return [0] * self.nodes
        if self.stopped:
            doubted = (census.unsure | census.absent) * self.linked
            return [0 if doubted >> node // 8 & 1 else -1 for node in range(self.nodes)]
        if self._by_host:
            return [0] * self.nodes
        # Accepted items until then have arrived, or are in the count of missing ones. Refused ones are in a row until a
        # census that agreed with the records; or until the last one, if the row of `_close` begins there and counts all
        # of them. It counts too few if a record came after that census, because the record may be of later refusals.
        arrived = (self._gap_after if self._gap else self._complete) + 1 - self._hold
        # A line tells of its losses later, after items that follow them.
        return [max(min(arrived - row[Counter.LAG_MAX],
                        census.time if census.refused(node) > self._recorded[node] == self._recorded_then[node]
                        else self._agreed[node]), 0) * (node >= census.lined)
                for node, row in enumerate(census.counters)]

    @property
    def rejected_spans(self) -> list[list[list[int]]]:
        lined = 0 if self.census is None else self.census.lined
        # A line tells of what was rejected later.
        return [[[0, self.last_time, sum(span[2] for span in spans)]] if spans and node < lined else spans
                for node, spans in enumerate(self._rejects)]

    def causes(self) -> dict[str, int]:
        """Lost items by cause: the three memories of the board, gates and lines of regeneration boards, the node itself
        (at least), the link to the host, and unspecified."""
        result = {name: sum(self.counted(counter)) for name, counter in REFUSED.items()
                  if counter < len(Counter) or self.linked}
        assert set(REFUSED) == {cause.name.lower() for cause in Cause if cause.name}
        if self._overflows is not None:
            result["node"] = int(self._overflows.counts.sum())
        result["link"] = sum(self.link_lost)
        result["unsaid"] = max(self.lost - sum(result.values()), 0)
        return result

    # ------------------------------------------------------------------------------ arrivals

    @property
    def _came(self) -> npt.NDArray[np.int64]:
        """Per node, the items that have arrived, whatever they are."""
        came = self.per_node + self.aborted
        return came if self._overflows is None else came + self._overflows.counts

    @property
    def _complete(self) -> int:
        """The last window of which no item can arrive any more."""
        stamp, node = self._last
        return (stamp + (node == self.nodes - 1)) // self.scale.stamp_window - 1

    def _new(self, block: Block, sequence: Sequence) -> list[Block]:
        """The block, unless its number has already passed; of a joined block, the parts whose number has not."""
        ahead = sequence.ahead(block.sequence)
        if ahead < 0 and block.joined is not None:
            return [new for part in single_blocks(block) for new in self._new(part, sequence)]
        if ahead >= 0:
            self.missing_blocks += ahead
            if ahead or (sequence.due is None and block.head.type is not BlockType.CENSUS):
                self._open_gap()    # a run begins with a census
            sequence.take(block.sequence, block.blocks)
            return [block]
        if sequence.missed(block.sequence):     # its contents are lost: newer blocks have been counted without it
            self._leave_out("they came after later ones")
        else:
            self.repeated_blocks += 1
        return []

    def _fault(self, reason: str, blocks: int = 1) -> None:
        """Handles whole blocks that no board can have sent: skipped, and missing from then on."""
        self._leave_out(reason, blocks)
        self._open_gap()

    def _leave_out(self, reason: str, blocks: int = 1) -> None:
        self.faults[reason] = self.faults.get(reason, 0) + blocks

    def _open_gap(self) -> None:
        if not self._gap:
            self._gap, self._gap_after = True, self._complete
        self._gap_before = self._settled = None

    # ------------------------------------------------------------------------------ reports of the board

    def _other(self, block: Block) -> None:
        """Processes a block of this run that contains no items."""
        if block.time > self._window_max:
            self._fault(BEYOND)
        elif not block.cut:
            self.last_time = max(self.last_time, block.time)
            if block.head.type is BlockType.LOSS:
                self._take_records(read_losses(block))
            elif block.head.type is BlockType.MARK:
                try:
                    self.pins.add(read_marks(block, self._window_scale))
                except ValueError as error:
                    self._fault(str(error))
            else:
                self._take_census(read_census(block))

    def _take_records(self, records: Iterable[tuple[int, int, int, int]]) -> None:
        for node, lost, first, last in records:
            if node >= self.nodes or not first <= last <= self._window_max:
                self._fault("a loss record that makes no sense")
                continue
            self._lose(node, lost, first, last)
            self._recorded[node] += lost

    def _take_census(self, census: BoardCensus) -> None:
        self._note_rejects(census)
        self.census = census
        self.started |= CensusFlag.START in census.flags
        self.stopped |= CensusFlag.STOP in census.flags
        # Frames that the host reads itself are not in stream order: they are counted at the end.
        if not self._by_host:
            self._count_missing(census)
        if self._settled is None:
            self._settled = census.time
        self._recorded_then = list(self._recorded)
        for node in range(self.nodes):
            if census.refused(node) == self._recorded[node]:
                self._agreed[node] = census.time

    @property
    def _counted_late(self) -> int:
        """The number of windows by which a census may count a rejected item late."""
        return self._hold + -(-_COUNTED_CLOCKS // self.scale.window_clocks)

    def _note_rejects(self, census: BoardCensus) -> None:
        """Notes between which times items were rejected: since the census before, which may count a little late."""
        before = 0 if self.census is None else self.census.time
        margin = self._counted_late
        old = self._counted if self.census is None else self.census.counters
        for node, row in enumerate(census.counters):
            more = row[Counter.REJECTED] - (old[node][Counter.REJECTED] if old else 0)
            if more <= 0:
                continue
            first, last = max(before - margin, 0), census.time + margin
            spans = self._rejects[node]
            if spans and spans[-1][1] >= first:
                spans[-1] = [spans[-1][0], last, spans[-1][2] + more]
            else:
                spans.append([first, last, more])

    def _count_missing(self, census: BoardCensus) -> None:
        """Counts what the link lost before this census, which closes the gap."""
        before = census.time + 1 if self._gap_before is None else self._gap_before
        for node, row in enumerate(census.counters):
            came = int(self._came[node]) + self._before[node]
            missing = row[Counter.DELIVERED] - came - self.link_lost[node]
            if missing > 0:
                # A carried item's strobe is older than its stamp; and a late item follows newer ones.
                first = max(self._gap_after + 1 - row[Counter.LAG_MAX] - self._hold, 0)
                self.link_lost[node] += missing
                self._lose(node, missing, first, max(before - 1, first))
            elif not self._by_host or self.stopped:
                self._surplus[node][0] = max(self._surplus[node][0], -missing)
        self._gap, self._gap_after, self._gap_before = False, self._complete, None

    def _lose(self, node: int, lost: int, first: int, last: int) -> None:
        self.lost_per_node[node] += lost
        late = int(self._late[node])
        self._rows.append((node, lost, *self.scale.span_ps(first - -(-late // self.scale.stamp_window),
                                                           last - late // self.scale.stamp_window)))

    def _close(self) -> None:
        """Counts what is missing at the end of the stream."""
        self.uncounted = self._gap and not self.stopped
        if self.census is None:
            return
        if self._by_host:
            # No sequence number shows whether the last blocks of the run are missing.
            self._open_gap()
            self._count_missing(self.census)
        # Refused, but without a record: the record was lost, or the stream ends before it.
        until = self._settled if self.stopped and self._settled is not None else self.census.time
        for node in range(self.nodes):
            unsaid = self.census.refused(node) - self._recorded[node]
            if unsaid > 0:
                self._lose(node, unsaid, self._agreed[node], until)
            elif self.stopped:
                self._surplus[node][1] = -unsaid
        self.surplus = sum(map(sum, self._surplus))
