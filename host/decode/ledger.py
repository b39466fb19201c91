"""Converts the blocks of a run to rows of items, and keeps the :mod:`.loss_accounting` of the run."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Self

import numpy as np
from hypermon.hdl.layout import COMPACT_HEAD, PORT_BITS, BlockType
from hypermon.host.blocks.block_scanner import single_blocks
from hypermon.host.blocks.blocks import Block, Head, Scanned, Torn
from hypermon.host.blocks.compact import CompactRows, Decoded, DecodedItems
from hypermon.host.blocks.counts import WindowCount
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.item_modes import ALL_NIBBLES, ItemModes, hold_windows
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.census import BoardCensus, read_census, read_losses
from hypermon.host.decode.event_blocks import frame_rows, item_rows, nibble_rows, unlike
from hypermon.host.decode.loss_accounting import LossAccounting, LossRow
from hypermon.host.recording.info import RunInfo
from hypermon.host.tables.item_order import ItemOrder, ItemTable

__all__ = ["BoardCensus", "Ledger", "LossRow", "Rows", "read_census", "read_losses"]

#: Types of the blocks that contain items, and the number of bytes of them that are processed together: enough to hide
#: the cost per batch.
_BATCH = {BlockType.FRAMES: 1 << 20, BlockType.COMPACT: 1 << 20}

#: Items in columns.
Rows = FrameRows | CompactRows | ItemTable


class Ledger(LossAccounting):
    """Receives the blocks and torn stretches of a stream in order, returns the rows of the items in them, and keeps the
    run's loss accounting.

    (The type :data:`.Item` means a block or a torn stretch. In all texts, an item is the board's unit: a nibble, a word
    or an event. Members named ``events`` count items.)

    Parameters
    ----------
    nodes, scale, port_bits : of the board. With several phases in the scale, the stamps of COMPACT blocks count parts
        of a clock; in the descriptions of items below, *window* then means such a part.
    epoch : blocks of other epochs do not belong to this run; None uses the epoch of the first block.
    by_host : the host reads the frames itself, so their order relative to the CENSUS blocks means nothing.
    modes : of the nodes; blocks with other modes are not read.
    timeout_clocks : how long an item of several nibbles waits for its next nibble.
    itm : nodes whose events are packets of an ITM, one bit each. An overflow packet is a loss of its node: of at least
        one packet, between the packet before and itself.
    late : for each node, the number of stamps from the first edge of an item of several nibbles to its stamp; front
        ends stamp late. It is subtracted from the times of these items and of the node's losses.

    Members
    -------
    those of :class:`.LossAccounting`, and:

    too_late : items that arrived after later ones had been returned.
    events, frames, merged : items received, frames with items, items that share their frame. COMPACT blocks have no
        frames; there, each window with items counts as a frame.
    payload_bytes : bytes of payload with items, without the heads that state the modes of nodes.
    host_bytes : bytes of blocks that the host made.
    torn : stretches of bytes that are not a block; ``torn_bytes`` is their length.
    foreign : whole blocks of another run or board.
    """

    def __init__(self, nodes: int, scale: TimeScale, epoch: int | None = None, by_host: bool = False,
                 modes: ItemModes = ALL_NIBBLES, timeout_clocks: int = 0, port_bits: int = PORT_BITS,
                 late: Iterable[int] = (), itm: int = 0):
        self.modes = modes.on(nodes)
        # With items of several nibbles: the number of windows by which an item can be late, and the sorter of items.
        hold = hold_windows(timeout_clocks, scale.clock_hz, scale.window_clocks) if self.modes.longer else 0
        super().__init__(nodes, scale, by_host, hold, late, itm)
        self._order = ItemOrder(nodes, self._hold * scale.stamp_window)
        self.epoch, self.port_bits = epoch, port_bits
        self.too_late = 0
        self.events = self._frame_count = self._merged_count = 0
        self.payload_bytes = self.host_bytes = 0
        self.torn = self.torn_bytes = self.foreign = 0
        self._stamp_max = scale.stamp_max
        self._windows = WindowCount()       # stamps of COMPACT blocks

    @classmethod
    def of(cls, info: RunInfo) -> Self:
        """The accounting of a recording of one board."""
        return cls(info.nodes, info.scale, info.epoch, info.drain == "registers", info.item_modes,
                   info.item_timeout_clocks, info.port_bits, [info.phases * clocks for clocks in info.late_clocks],
                   info.itm_nodes)

    frames = property(lambda self: int(self._frame_count + self._windows.windows))
    merged = property(lambda self: int(self._merged_count + self._windows.shared))

    def event_rows(self, scanned: Iterable[Scanned]) -> Iterator[Rows]:
        """Accounts for blocks and torn stretches, and returns the rows of the items in them, in order, without filler.

        Items of several nibbles are held back until their order is known; :meth:`finish` returns the last ones.
        """
        batch: list[Block] = []
        head: Head | None = None  # of the batch, which has whole blocks of this run that contain items
        size = 0
        for found in scanned:
            if isinstance(found, Torn):
                yield from self._events(batch)
                batch, head = [], None
                self.torn += 1
                self.torn_bytes += found.size
                continue
            if found.head.by_host:
                self.host_bytes += found.size
            sequence = self._sequences[found.head.by_host]
            if found.head is head and found.sequence == sequence.next and not found.cut and size < _BATCH[head.type]:
                sequence.take(found.sequence, found.blocks)
                batch.append(found)
                size += found.size
                continue
            yield from self._events(batch)
            batch, head, size = [], None, 0
            for block in self._new(found, sequence) if self._ours(found.head, found.blocks) else []:
                if block.head.type not in _BATCH:
                    self._other(block)
                elif block.cut:
                    yield from self._events([block])
                else:
                    batch.append(block)
                    head, size = block.head, size + block.size
        yield from self._events(batch)

    def rows_to_end(self, scanned: Iterable[Scanned]) -> Iterator[Rows]:
        """Like :meth:`event_rows`, for the rest of a stream; the rows that :meth:`finish` returns are the last ones."""
        yield from self.event_rows(scanned)
        yield from self.finish()

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

    def _ours(self, head: Head, blocks: int) -> bool:
        if self.epoch is None:
            self.epoch = head.epoch
        if (head.epoch, head.nodes, head.scale) == (self.epoch, self.nodes, self._window_scale):
            return True
        self.foreign += blocks
        return False

    def _events(self, batch: list[Block]) -> Iterator[Rows]:
        """The items of blocks that all have the same head, without the blocks that no board can have sent."""
        if not batch:
            return
        if reason := unlike(batch[0].head, self.scale, self.modes, self.port_bits):
            self._fault(reason, sum(block.blocks for block in batch))
            return
        if batch[0].cut and batch[0].head.type is BlockType.COMPACT:
            return
        found = self._read(batch)
        if not isinstance(found, str):
            self.payload_bytes += sum(len(b.payload) - b.head.items * b.blocks * COMPACT_HEAD.bytes for b in batch)
            yield from self._accept(found)
        elif len(parts := [part for block in batch for part in single_blocks(block)]) > 1:
            if batch[0].head.items:     # late items: the gap of a bad block begins before all of the batch
                parts.sort(key=lambda part: not isinstance(self._read([part]), str))
            for part in parts:
                yield from self._events([part])
        else:
            self._fault(found)

    def _read(self, batch: list[Block]) -> FrameRows | Decoded | DecodedItems | str:
        """The contents of blocks with items; or the reason why no board can have sent them."""
        if batch[0].head.type is BlockType.FRAMES:
            return frame_rows(batch, self.nodes, self._last[0], self._stamp_max)
        if self.modes.longer:
            return item_rows(batch, self.nodes, self.modes, self.port_bits, self._stamp_max)
        return nibble_rows(batch, self.nodes, self.port_bits, self._last, self._stamp_max)

    def _accept(self, found: FrameRows | Decoded | DecodedItems) -> Iterator[Rows]:
        """Counts the items, and returns those whose order is known."""
        if isinstance(found, FrameRows):
            yield from self._accept_frames(found)
        elif isinstance(found, Decoded):
            yield from self._accept_nibbles(found)
        else:
            yield from self._accept_items(found)

    def _accept_frames(self, rows: FrameRows) -> Iterator[FrameRows]:
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
        self._seen(int(rows.stamps[-1]), self.nodes - 1)
        yield rows

    def _accept_nibbles(self, decoded: Decoded) -> Iterator[CompactRows]:
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
        self._seen(int(spans[2, -1]), int(spans[3, -1]))
        yield from decoded.parts

    def _accept_items(self, decoded: DecodedItems) -> Iterator[ItemTable]:
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
            self._seen(*max(self._last, (newest, int(ends[1][ends[0] == newest].max()))))
        for ready in self._order.take(self._last[0]):
            self._windows.add(ready.windows, ready.state)
            yield ready

    def _seen(self, stamp: int, node: int) -> None:
        """Notes the last item that has arrived."""
        self._last = stamp, node
        self.last_time = max(self.last_time, stamp // self.scale.stamp_window)
