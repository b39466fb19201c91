"""The current state of a growing recording, for display.

A board counts everything itself and reports the counts in a CENSUS every 10 ms. A view therefore reads the censuses,
the records of losses, and only the newest events. Its cost does not depend on the number of events.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.hdl.layout import BlockType, CensusFlag, Counter
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block, Scanned, Torn
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.sequence import Sequence
from hypermon.host.decode.census import REFUSED
from hypermon.host.decode.ledger import BoardCensus, Ledger, read_census, read_losses
from hypermon.host.live.history import History
from hypermon.host.recording.info import RunInfo

__all__ = ["View", "table_of"]

#: Losses and events that are kept for display.
_LOSSES = 200
_NEWEST = 400
#: Blocks of events that are kept for display.
_BLOCKS = 4
#: Counts up to here are whole numbers in a page, too. A board that counts 2^30 items a second reaches this after 97
#: days.
_COUNTABLE = 2**53


class View:
    """Receives a stream in pieces.

    Parameters
    ----------
    info : of the recording.
    history : of its nodes; None: one of all of it.

    Members
    -------
    time_ps : board time that the stream has reached.
    items, lost : per node, as the board counts them: admitted, refused.
    losses : the last ones: node, lost, from_ps, to_ps.
    missing_blocks, torn_bytes : damage done by the link or the disk.
    faulty_blocks : whole blocks with contents that no board can have counted. They are skipped.
    stopped : the board has reported its end.
    """

    def __init__(self, info: RunInfo, history: History | None = None):
        self.info = info
        self.history = history or History(info.nodes)
        self.time_ps = self.bytes = self.missing_blocks = self.torn_bytes = self.faulty_blocks = 0
        self.items = np.zeros(info.nodes, np.int64)
        self.lost = np.zeros(info.nodes, np.int64)
        self.losses: deque[tuple[int, int, int, int]] = deque(maxlen=_LOSSES)
        self.stopped = False
        self._census: BoardCensus | None = None
        self._scanner, self._sequences = BlockScanner(), (Sequence(), Sequence())
        self._blocks: deque[Block] = deque(maxlen=_BLOCKS)

    def feed(self, data: bytes) -> None:
        """Feeds new data."""
        self._take(self._scanner.feed(data))
        self.bytes = self._scanner.offset

    def _take(self, found: Iterable[Scanned]) -> None:
        censuses: list[BoardCensus] = []
        for item in found:
            if isinstance(item, Torn):
                self.torn_bytes += item.size
            elif not self._new(item) or item.cut:
                continue
            elif item.head.type is BlockType.CENSUS:
                census = read_census(item)
                if self._follows(census, censuses[-1] if censuses else self._census):
                    censuses.append(census)
                else:
                    self.faulty_blocks += 1
            elif item.head.type is BlockType.LOSS:
                self._lose(read_losses(item))
            else:
                self._blocks.append(item)
        if censuses:
            self._count(censuses)

    def _new(self, block: Block) -> bool:
        """Whether it is a block of this run that has not arrived before."""
        if block.head.epoch != self.info.epoch or block.head.nodes != self.info.nodes:
            return False
        sequence = self._sequences[block.head.by_host]
        ahead = sequence.ahead(block.sequence)
        if ahead >= 0:
            sequence.take(block.sequence)
        self.missing_blocks += max(ahead, 0)
        return ahead >= 0

    def _follows(self, census: BoardCensus, last: BoardCensus | None) -> bool:
        """Whether a board can have sent this after the last: no counter of a board can decrease."""
        if census.time > self.info.scale.window_max or max(map(max, census.counters)) > _COUNTABLE:
            return False
        return last is None or all(
            now[counter] >= before[counter] for now, before in zip(census.counters, last.counters, strict=True)
            for counter in (Counter.ACCEPTED, *REFUSED.values()))

    def _lose(self, records: list[tuple[int, int, int, int]]) -> None:
        for node, lost, first, last in records:
            if node < self.info.nodes and first <= last <= self.info.scale.window_max:
                self.losses.append((node, lost, *self.info.scale.span_ps(first, last)))
            else:
                self.faulty_blocks += 1

    def _count(self, censuses: list[BoardCensus]) -> None:
        """Counts since the census before these."""
        counters = np.array([census.counters for census in censuses], np.int64)
        items = counters[:, :, Counter.ACCEPTED]
        lost = counters[:, :, [*REFUSED.values()]].sum(axis=2)
        times = np.array([census.time for census in censuses], np.int64)
        ends = np.maximum(self.info.scale.starts_ps(times * self.info.scale.stamp_window), self.time_ps)
        ends = np.maximum.accumulate(ends)
        if self._census is None and CensusFlag.START not in censuses[0].flags:
            self.items, self.lost = items[0], lost[0]     # the beginning is not there: of a ring
        self.history.add(ends, np.diff(items, axis=0, prepend=self.items[None]).astype(float),
                         np.diff(lost, axis=0, prepend=self.lost[None]).astype(float),
                         np.array([census.frame_level for census in censuses], float))
        self.items, self.lost, self.time_ps = items[-1], lost[-1], int(ends[-1])
        self._census = censuses[-1]
        self.stopped |= CensusFlag.STOP in self._census.flags

    def newest(self) -> list[dict[str, Any]]:
        """The newest events, by time: ``time_ps``, ``node``, and the columns of its mode."""
        info, found = self.info, []
        for block in self._blocks:
            # The order between blocks does not matter here, so each has its own ledger.
            ledger = Ledger.of(info)
            for rows in (*ledger.event_rows([block]), *ledger.finish()):
                found.append(table_of(rows.events(info.scale)).slice(max(len(rows) - _NEWEST, 0)))
        if not found:
            return []
        table = pa.concat_tables(found).sort_by([("time_ps", "ascending"), ("node", "ascending")])
        rows_: list[dict[str, Any]] = table.slice(max(len(table) - _NEWEST, 0)).to_pylist()
        return rows_

    def figures(self) -> dict[str, Any]:
        """The current figures, as plain values."""
        census = self._census
        counters = census.counters if census is not None else []
        return {
            "time_ps": self.time_ps, "bytes": self.bytes, "items": self.items.tolist(), "lost": self.lost.tolist(),
            "causes": {name: sum(row[counter] for row in counters) for name, counter in REFUSED.items()},
            "carried": sum(row[Counter.CARRIED] for row in counters),
            "rejected": sum(row[Counter.REJECTED] for row in counters),
            "discarded": census.discarded if census is not None else 0,
            "frame_level": census.frame_level if census is not None else 0,
            "vector_level": census.vector_level if census is not None else 0,
            "trigger": _trigger(census.flags) if census is not None else None,
            "missing_blocks": self.missing_blocks, "torn_bytes": self.torn_bytes,
            "faulty_blocks": self.faulty_blocks, "stopped": self.stopped,
        }


def _trigger(flags: CensusFlag) -> str | None:
    said = {CensusFlag.ENDED: "stop found", CensusFlag.TRIGGERED: "start found", CensusFlag.AWAITS: "waiting for start"}
    return next((text for flag, text in said.items() if flag in flags), None)


def table_of(events: Events | pa.Table) -> pa.Table:
    """Events as a table, whatever form they have."""
    if isinstance(events, Events):
        return pa.table({"time_ps": events.time_ps, "node": events.node, "nibble": events.nibble})
    return events
