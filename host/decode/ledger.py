"""Loss accounting of a run: the items that arrived, were refused, or were lost on the link, and when.

There are two kinds of loss, which are never mixed:

- The board's gate refused an item. Every refused item is in a LOSS record.
- A block did not arrive. A CENSUS states how many items of every node had left the board before it in the stream. The
difference to the received items is exactly what is missing.

Both become rows ``node, lost, from_ps, to_ps``: between those two times that node lost ``lost`` items.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import COMPACT_HEAD, PORT_BITS, BlockType, Cause, CensusFlag, Counter
from hypermon.host.blocks.blocks import Block, Head, Item, Torn
from hypermon.host.blocks.compact import (
    CompactRows,
    Decoded,
    DecodedItems,
    decode,
    decode_items,
    decode_items_joined,
    decode_joined,
)
from hypermon.host.blocks.counts import WindowCount
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.item_modes import ALL_NIBBLES, ItemModes, hold_windows
from hypermon.host.blocks.sequence import Sequence
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.census import REFUSED, BoardCensus, read_census, read_losses
from hypermon.host.decode.marks import PinMarks, read_marks
from hypermon.host.decode.overflows import Overflows
from hypermon.host.decode.payloads import BEYOND, payloads_of, reasons_of
from hypermon.host.recording.info import RunInfo
from hypermon.host.tables.item_order import ItemOrder, ItemTable

__all__ = ["BoardCensus", "Ledger", "LossRow", "Rows", "read_census", "read_losses"]

#: The blocks that contain events, and the bytes of them processed together: enough to hide the cost per batch.
_BATCH = {BlockType.FRAMES: 1 << 20, BlockType.COMPACT: 1 << 20}

#: By how much a late item's window can follow that of the item before it.
_AHEAD = 1 << 20

#: node, lost, from_ps, to_ps
LossRow = tuple[int, int, int, int]
#: Events in columns.
Rows = FrameRows | CompactRows | ItemTable


class Ledger:
    """Receives the items of a stream in order and keeps the run's loss accounting.

    Parameters
    ----------
    nodes, scale, port_bits : of the board. With several phases in the scale, the stamps of COMPACT blocks count parts
        of a clock; statements here about windows of events then refer to these.
    epoch : blocks of other epochs do not belong to this run; None uses the epoch of the first block.
    by_host : the host reads the frames itself, so their position among the censuses means nothing.
    modes : of the nodes; blocks with other modes are not read.
    timeout_clocks : how long an item of several nibbles waits for its next nibble.
    itm : nodes whose events are packets of an ITM, one bit each. An overflow packet is a loss of its node: of at least
        one packet, between the packet before and itself.
    late : of each node, the stamps by which its items of several nibbles are stamped after their first edge, as front
        ends do. Items, and what is missing of them, have the time of the edge.

    Members
    -------
    per_node : events received of each node. ``aborted``: items that the time-out ended, which are not events.
    too_late : items that arrived after the order of their predecessors was settled.
    events, frames, merged : events received, frames with events, events that share their frame. COMPACT blocks have no
        frames; there, each window with events counts as a frame.
    payload_bytes : event-carrying payload, without the heads that state the modes of nodes. ``host_bytes``: blocks the
        host wrapped itself.
    lost_per_node : items lost of each node, refused or missing.
    link_lost : how many of them the link lost.
    pins : marks of the board's pins.
    census : the last one, or None. ``started``, ``stopped``: those two were seen.
    last_time : latest window that any block mentions.
    missing_blocks : sequence numbers that did not arrive. ``repeated_blocks``: blocks skipped because they had already
        arrived.
    torn : stretches of bytes that are not a block; ``torn_bytes`` is their length.
    foreign : whole blocks of another run or board. ``faults``: reasons why whole blocks of this run were skipped, with
        the number of blocks.
    uncounted : a block is missing after the last census, so its contents are unknown.
    surplus : items that arrived, or that records call lost, although the board does not count them: blocks of other
        runs.
    """

    def __init__(self, nodes: int, scale: TimeScale, epoch: int | None = None, by_host: bool = False,
                 modes: ItemModes = ALL_NIBBLES, timeout_clocks: int = 0, port_bits: int = PORT_BITS,
                 late: Iterable[int] = (), itm: int = 0):
        self.nodes, self.scale, self.epoch = nodes, scale, epoch
        self._window_scale = replace(scale, phases=1)
        self.modes = modes.on(nodes)
        self.port_bits = port_bits
        self.per_node = np.zeros(nodes, np.int64)
        self.aborted = np.zeros(nodes, np.int64)
        self.too_late = 0
        self.events = self._frame_count = self._merged_count = 0
        self.payload_bytes = self.host_bytes = 0
        self.lost_per_node = [0] * nodes
        self.link_lost = [0] * nodes
        self.pins = PinMarks()
        self.census: BoardCensus | None = None
        self.started = self.stopped = False
        self.last_time = 0
        self.missing_blocks = self.repeated_blocks = self.torn = self.torn_bytes = self.foreign = 0
        self.faults: dict[str, int] = {}
        self.uncounted = False
        self.surplus = 0
        self._rows: list[LossRow] = []
        self._sequences = Sequence(), Sequence(0)  # of the board, of the host
        # The last window, and the last stamp of events, that are valid times.
        self._window_max, self._stamp_max = scale.window_max, scale.stamp_max
        # Stamp and node of the last event; for the last frame, its last node.
        self._last = (-1, nodes - 1)
        self._windows = WindowCount()       # stamps of COMPACT blocks
        self._by_host = by_host
        # With items of several nibbles: by how many windows an item can be late, and where items are sorted.
        self._hold = hold_windows(timeout_clocks, scale.clock_hz, scale.window_clocks) if self.modes.longer else 0
        self._overflows = Overflows(nodes, itm) if itm else None
        self._late = np.array([*late] or [0] * nodes, np.int64)
        self._hold += -(-int(self._late.max()) // scale.stamp_window)
        self._order = ItemOrder(self.nodes, self._hold * scale.stamp_window)
        # Blocks are missing since the last count of events. Their contents came after window `_gap_after` and before
        # `_gap_before` (None: no event has arrived since).
        self._gap = False
        self._gap_after = -1
        self._gap_before: int | None = None
        # Refusals: the total of the LOSS records; the last census that agreed with them; the first census after the
        # last gap, before which every missing record was due.
        self._recorded = [0] * nodes
        self._agreed = [0] * nodes
        # The totals of an earlier part of the run, which are not counted here; and its last census.
        self._before = [0] * nodes
        self._counted: list[list[int]] | None = None
        self._settled: int | None = None
        # For every node: items that arrived, and items in records, beyond what the board counts.
        self._surplus = [[0, 0] for _ in range(nodes)]

    @classmethod
    def of(cls, info: RunInfo) -> Self:
        """The accounting of a recording of one board."""
        return cls(info.nodes, info.scale, info.epoch, info.drain == "registers", info.item_modes,
                   info.item_timeout_clocks, info.port_bits, [info.phases * clocks for clocks in info.late_clocks],
                   info.itm_nodes)

    @property
    def linked(self) -> bool:
        """The board has regeneration boards."""
        return self.census is not None and CensusFlag.LINKS in self.census.flags

    @property
    def lost(self) -> int:
        return sum(self.lost_per_node)

    frames = property(lambda self: int(self._frame_count + self._windows.windows))
    merged = property(lambda self: int(self._merged_count + self._windows.shared))

    def take_losses(self) -> list[LossRow]:
        """The loss rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    @property
    def _came(self) -> npt.NDArray[np.int64]:
        """Per node, the items that have arrived, whatever they are."""
        came = self.per_node + self.aborted
        return came if self._overflows is None else came + self._overflows.counts

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
        """What the board's counter of every node has counted in the remaining part of the run."""
        now = self.census.counters if self.census is not None else []
        before = self._counted or [[]] * len(now)
        return [row[counter] - (old[counter] if counter < len(old) else 0)
                for row, old in zip(now, before, strict=False)]

    # ------------------------------------------------------------------------------ the stream

    def event_rows(self, items: Iterable[Item]) -> Iterator[Rows]:
        """Accounts for the items and returns the events among them, in order, without filler.

        Items of several nibbles are held back until their order is known; :meth:`finish` returns the last ones.
        """
        batch: list[Block] = []
        head: Head | None = None  # of the batch: events of this run, whole
        size = 0
        for item in items:
            if isinstance(item, Torn):
                yield from self._events(batch)
                batch, head = [], None
                self.torn += 1
                self.torn_bytes += item.size
                continue
            if item.head.by_host:
                self.host_bytes += item.size
            sequence = self._sequences[item.head.by_host]
            if item.head is head and item.sequence == sequence.next and not item.cut and size < _BATCH[head.type]:
                sequence.take(item.sequence, item.blocks)
                batch.append(item)
                size += item.size
                continue
            yield from self._events(batch)
            batch, head, size = [], None, 0
            for block in self._new(item, sequence) if self._ours(item.head, item.blocks) else []:
                if block.head.type not in _BATCH:
                    self._other(block)
                elif block.cut:
                    yield from self._events([block])
                else:
                    batch.append(block)
                    head, size = block.head, size + block.size
        yield from self._events(batch)

    def rows_to_end(self, items: Iterable[Item]) -> Iterator[Rows]:
        """The same of the last items of a stream, with the rows that :meth:`finish` returns once they are read."""
        yield from self.event_rows(items)
        yield from self.finish()

    def _new(self, block: Block, sequence: Sequence) -> list[Block]:
        """The block, unless its number has already passed; for a joined block, the parts for which that holds."""
        ahead = sequence.ahead(block.sequence)
        if ahead < 0 and block.joined is not None:
            return [new for part in block.parts() for new in self._new(part, sequence)]
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

    def finish(self) -> Iterator[ItemTable]:
        """Closes the accounting at the end of the stream, and returns the rows that were held back."""
        rest = list(self._order.finish())
        for rows in rest:
            self._windows.add(rows.windows, rows.state)
        self._close()
        return iter(rest)

    def late_rows(self) -> ItemTable | None:
        """The rows that arrived too late to be returned in order; sorted among themselves."""
        return self._order.late_rows()

    def _close(self) -> None:
        self.uncounted = self._gap and not self.stopped
        if self.census is None:
            return
        if self._by_host:
            # No number tells whether the last blocks of the run are missing.
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

    def _ours(self, head: Head, blocks: int) -> bool:
        if self.epoch is None:
            self.epoch = head.epoch
        if (head.epoch, head.nodes, head.scale) == (self.epoch, self.nodes, self._window_scale):
            return True
        self.foreign += blocks
        return False

    # ------------------------------------------------------------------------------ events

    def _events(self, batch: list[Block]) -> Iterator[Rows]:
        """The events of blocks that all have the same head."""
        if not batch:
            return
        if reason := self._unlike(batch[0].head):
            self._fault(reason, sum(block.blocks for block in batch))
        elif batch[0].head.type is BlockType.FRAMES:
            yield from self._frames(batch)
        elif not batch[0].cut:
            yield from self._long_items(batch) if self.modes.longer else self._compact(batch)

    def _unlike(self, head: Head) -> str | None:
        """Why events of blocks with this head cannot belong to this run; None if they can."""
        if head.phases != self.scale.phases:
            return "other stamps than the run's"
        if head.type is BlockType.FRAMES:
            return None
        if head.items != bool(self.modes.longer):
            return "other item modes than the run's"
        return "other ports than the run's" if head.port_bits != self.port_bits else None

    def _frames(self, batch: list[Block]) -> Iterator[FrameRows]:
        """Their frames, without the blocks that no board can have sent."""
        highs = {block.time >> 32 for block in batch}
        rows: FrameRows | None = None
        fault: str | None = BEYOND
        if len(highs) == 1 and (high := highs.pop()) < 1 << 31:
            payload = batch[0].payload if len(batch) == 1 else b"".join(b.payload for b in batch)
            rows = FrameRows(payload, self.nodes, high)
            if batch[0].cut:
                rows = rows.without_filler(batch[0].time)
            fault = rows.fault(self._last[0], self._stamp_max)
        if rows is not None and fault is None:
            yield from self._accept(batch, rows)
        elif len(batch) > 1 or batch[0].joined is not None:
            for block in batch:
                for part in block.parts() if len(batch) == 1 else [block]:
                    yield from self._frames([part])
        else:
            self._fault(fault or "")

    def _accept(self, batch: list[Block], rows: FrameRows) -> Iterator[FrameRows]:
        self.payload_bytes += sum(len(b.payload) for b in batch)
        if len(rows) == 0:
            return
        if self._gap and self._gap_before is None:
            self._gap_before = int(rows.stamps[0])
        sizes = rows.sizes()
        self._frame_count += int(np.count_nonzero(sizes))
        count = int(sizes.sum(dtype=np.int64))
        self.events += count
        self._merged_count += count - int(np.count_nonzero(sizes == 1))
        self.per_node += rows.per_node()
        self._last = (int(rows.stamps[-1]), self.nodes - 1)
        self.last_time = max(self.last_time, self._last[0] // self.scale.stamp_window)
        yield rows

    def _compact(self, batch: list[Block]) -> Iterator[CompactRows]:
        """The items of COMPACT blocks, without the blocks that no board can have sent."""
        payloads = payloads_of(batch, self._stamp_max)
        if payloads is not None:
            spans = (decoded := decode_joined(payloads, self.nodes, self.port_bits)).spans
            if not decoded.faults and spans.rise(self._last) and spans.present[2].max(initial=0) <= self._stamp_max:
                yield from self._accept_items(batch, decoded)
                return
        yield from self._compact_parts([part for block in batch for part in block.parts()])

    def _compact_parts(self, batch: list[Block]) -> Iterator[CompactRows]:
        """The same of single blocks, each of which is judged."""
        beyond = {k for k, block in enumerate(batch) if block.time > self._stamp_max}
        times = [0 if k in beyond else block.time for k, block in enumerate(batch)]
        decoded = decode([block.payload for block in batch], times, self.nodes, self.port_bits)
        reasons = reasons_of(decoded, beyond, self._last, self._stamp_max)
        if not reasons:
            yield from self._accept_items(batch, decoded)
            return
        begin = 0
        for k in sorted(reasons):
            if k > begin:
                yield from self._compact_parts(batch[begin:k])
            self._fault(reasons[k])
            begin = k + 1
        if begin < len(batch):
            yield from self._compact_parts(batch[begin:])

    def _accept_items(self, batch: list[Block], decoded: Decoded) -> Iterator[CompactRows]:
        self.payload_bytes += sum(len(b.payload) for b in batch)
        spans = decoded.spans.present
        if not spans.size:
            return
        stamp, node = spans[:2, 0].tolist()
        if self._gap and self._gap_before is None:
            window, part = divmod(stamp, self.scale.stamp_window)
            self._gap_before = window + (node > 0 or part > 0)
        for rows in decoded.parts:
            self.events += len(rows)
            self.per_node += rows.per_node(self.nodes)
            self._windows.add(rows.windows, None)
        self._last = (int(spans[2, -1]), int(spans[3, -1]))
        self.last_time = max(self.last_time, self._last[0] // self.scale.stamp_window)
        yield from decoded.parts

    def _long_items(self, batch: list[Block]) -> Iterator[ItemTable]:
        """The items of COMPACT blocks with a head; blocks that cannot be read are skipped."""
        payloads = payloads_of(batch, self._stamp_max)
        if payloads is not None:
            decoded = decode_items_joined(payloads, self.nodes, self.modes, self.port_bits)
            newest = decoded.spans.present[2].max(initial=0) + _AHEAD
            if not decoded.faults and newest <= self._stamp_max:
                self.payload_bytes += len(payloads.data) - len(payloads) * COMPACT_HEAD.bytes
                yield from self._take_items(decoded)
                return
        yield from self._long_parts([part for block in batch for part in block.parts()])

    def _long_parts(self, batch: list[Block]) -> Iterator[ItemTable]:
        """The same of single blocks, each of which is judged."""
        beyond = {k for k, block in enumerate(batch) if block.time > self._stamp_max}
        times = [0 if k in beyond else block.time for k, block in enumerate(batch)]
        decoded = decode_items([block.payload for block in batch], times, self.nodes, self.modes, self.port_bits)
        reasons = {fault.which: fault.reason for fault in decoded.faults}
        beyond |= {k for k, span in enumerate(decoded.spans)
                   if span is not None and span.last[0] + _AHEAD > self._stamp_max}
        reasons |= dict.fromkeys(beyond, BEYOND)
        for reason in reasons.values():
            self._fault(reason)
        if beyond:
            yield from self._long_parts([block for k, block in enumerate(batch) if k not in reasons])
            return
        self.payload_bytes += sum(len(block.payload) - COMPACT_HEAD.bytes
                                  for k, block in enumerate(batch) if k not in reasons)
        yield from self._take_items(decoded)

    def _take_items(self, decoded: DecodedItems) -> Iterator[ItemTable]:
        for rows in decoded.parts:
            if self._overflows is not None:
                rows, told = self._overflows.taken(rows)
                for node, first, last in told:
                    self._lose(node, 1, first // self.scale.stamp_window, last // self.scale.stamp_window)
            if self._late.any():
                rows = replace(rows, windows=rows.windows - self._late[rows.node])
            whole, aborted = rows.per_node(self.nodes)
            self.per_node += whole
            self.aborted += aborted
            self.events += int(whole.sum())
            self.too_late += self._order.add(rows)
        ends = decoded.spans.present[2:]
        if ends.size:
            # A late item may open a block, so the last one is not always the newest.
            newest = int(ends[0].max())
            self._last = max(self._last, (newest, int(ends[1][ends[0] == newest].max())))
            self.last_time = max(self.last_time, self._last[0] // self.scale.stamp_window)
        for ready in self._order.take(self._last[0]):
            self._windows.add(ready.windows, ready.state)
            yield ready

    @property
    def _complete(self) -> int:
        """The last window of which no event can arrive any more."""
        stamp, node = self._last
        return (stamp + (node == self.nodes - 1)) // self.scale.stamp_window - 1

    def _fault(self, reason: str, blocks: int = 1) -> None:
        """Handles whole blocks that no board can have sent: skipped, and missing from then on."""
        self._leave_out(reason, blocks)
        self._open_gap()

    def _leave_out(self, reason: str, blocks: int = 1) -> None:
        self.faults[reason] = self.faults.get(reason, 0) + blocks

    # ------------------------------------------------------------------------------ losses

    def _open_gap(self) -> None:
        if not self._gap:
            self._gap, self._gap_after = True, self._complete
        self._gap_before = self._settled = None

    def _other(self, block: Block) -> None:
        """A block of this run without events."""
        if block.time > self._window_max:
            self._fault(BEYOND)
        elif not block.cut:
            self.last_time = max(self.last_time, block.time)
            if block.head.type is BlockType.LOSS:
                self._take_losses(read_losses(block))
            elif block.head.type is BlockType.MARK:
                try:
                    self.pins.add(read_marks(block, self._window_scale))
                except ValueError as error:
                    self._fault(str(error))
            else:
                self._take_census(read_census(block))

    def _take_losses(self, records: list[tuple[int, int, int, int]]) -> None:
        for node, lost, first, last in records:
            if node >= self.nodes or not first <= last <= self._window_max:
                self._fault("a loss record that makes no sense")
                continue
            self._lose(node, lost, first, last)
            self._recorded[node] += lost

    def _take_census(self, census: BoardCensus) -> None:
        self.census = census
        self.started |= CensusFlag.START in census.flags
        self.stopped |= CensusFlag.STOP in census.flags
        # Frames that the host reads itself are not in stream order: they are counted at the end.
        if not self._by_host:
            self._count_missing(census)
        if self._settled is None:
            self._settled = census.time
        for node in range(self.nodes):
            if census.refused(node) == self._recorded[node]:
                self._agreed[node] = census.time

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
