"""Event framing in nibbles: splits a node's nibbles into the events that the node's library wrote.

An event on a port is one nibble with the number n of its payload bytes, then two nibbles per byte, the low one first.
Byte 0 is the event's id, the rest is its payload. n = 0 is a filler and means nothing. No marker shows where an event
begins, so a reader that has lost synchronization cannot recover from the data. It waits for a pause. No writer pauses
for more than :data:`TIMEOUT_PS` inside an event, so the first nibble after such a silence begins an event.

The classic board has no concept of events ("the HYPERMON hardware embodies no notion of event types or lengths",
section 3.2.1 of the paper). With that board only the host handles framing, in this module.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["EVENT_SCHEMA", "THRESHOLDS", "TIMEOUT_PS", "EventFramer", "frame_events"]

#: A silence longer than this inside an event ends the event.
TIMEOUT_PS = 10_000_000_000
#: The limits that framed events depend on, by their names in output.
THRESHOLDS = {"framing_timeout_ms": TIMEOUT_PS / 10**9}
#: Nibbles of the longest event: its length, then 15 bytes of two nibbles.
LONGEST = 1 + 2 * 15

#: One row per event, by time, ties by node.
EVENT_SCHEMA = pa.schema([
    pa.field("time_ps", pa.int64(), nullable=False),
    pa.field("node", pa.int16(), nullable=False),
    pa.field("event", pa.uint8()),
    pa.field("payload", pa.binary(), nullable=False),
    pa.field("aborted", pa.bool_(), nullable=False),
])

_Index = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_Mask = npt.NDArray[np.bool_]


def frame_events(time_ps: npt.ArrayLike, node: npt.ArrayLike, nibble: npt.ArrayLike, *,
                 timeout_ps: int = TIMEOUT_PS, loss: pa.Table | None = None) -> pa.Table:
    """Frames all these nibbles at once, with an :class:`EventFramer`.

    Returns
    -------
    pyarrow.Table
        of :data:`EVENT_SCHEMA`, sorted by time, ties by node, then by arrival. ``time_ps`` is the time of the first
        nibble, ``payload`` the bytes after the id. An event cut short by a silence, by loss or by the end of the run is
        also a row, with ``aborted`` set: the whole bytes that arrived are in ``payload``, and ``event`` is null if not
        even the id arrived. The nibbles of a node that cannot be framed after a loss are one such row, with ``event``
        null and no payload.

    Raises
    ------
    ValueError
        if the arrays differ in length, a nibble is more than 15, or a node's times decrease.
    """
    framer = EventFramer(timeout_ps, loss)
    settled = framer.add(time_ps, node, nibble)
    return pa.concat_tables([settled, framer.finish()]).combine_chunks()


class EventFramer:
    """Receives nibbles piece by piece and returns the events, in order, as soon as they are final.

    It holds the open event of every node, and the events that began since the oldest of them. A silence ends each, so
    memory does not grow with the run.

    Parameters
    ----------
    timeout_ps : a longer silence inside an event aborts it.
    loss : the run's loss, columns ``node``, ``from_ps``, ``to_ps``. After a loss a node's framing is unknown until the
        next silence. Without this table the nibbles after a loss would be read as events, and these would be wrong.
    """

    def __init__(self, timeout_ps: int = TIMEOUT_PS, loss: pa.Table | None = None):
        self._timeout_ps = timeout_ps
        self._losses: dict[int, list[tuple[int, int]]] = {}
        if loss is not None:
            for row in loss.select(["node", "from_ps", "to_ps"]).to_pylist():
                self.lose(**row)
        # Nibbles of open events; the last write of each node whose framing is unknown; events that wait.
        self._open = (np.zeros(0, np.int64), np.zeros(0, np.int16), np.zeros(0, np.uint8))
        self._deaf: dict[int, int] = {}
        self._waiting = EVENT_SCHEMA.empty_table()

    def add(self, time_ps: npt.ArrayLike, node: npt.ArrayLike, nibble: npt.ArrayLike) -> pa.Table:
        """Adds nibbles, in the order the board sent them. Returns the events that become final.

        Parameters
        ----------
        time_ps, node, nibble : one nibble each: every node's times never decrease, and none is before the newest one of
            the previous piece. Any integer types; nibbles are 0..15.
        """
        time, port = np.asarray(time_ps, np.int64), np.asarray(node, np.int16)
        value = np.asarray(nibble, np.uint8)
        if not len(time) == len(port) == len(value):
            raise ValueError(f"{len(time)} times, {len(port)} nodes and {len(value)} nibbles: not one of each")
        if len(value) == 0:
            return EVENT_SCHEMA.empty_table()
        if value.max() > 15:
            raise ValueError(f"{value.max()} is no nibble")
        return self._frame(time, port, value, int(time.max()))

    def lose(self, node: int, from_ps: int, to_ps: int) -> None:
        """Adds a loss. It must be known before the node's next nibbles are added."""
        self._losses.setdefault(node, []).append((from_ps, to_ps))

    @property
    def begins_ps(self) -> int | None:
        """When the oldest event begins that is not final; None without one."""
        times = [column for column in (self._waiting["time_ps"].to_numpy(), self._open[0]) if len(column)]
        return min(int(column.min()) for column in times) if times else None

    def finish(self) -> pa.Table:
        """The remaining events, at the end of the data."""
        time, port, value = self._open
        return self._frame(time[:0], port[:0], value[:0], None)

    def _frame(self, time: _Index, port: npt.NDArray[np.int16], value: _Bytes, newest: int | None) -> pa.Table:
        """The final events; ``newest``: time until which everything has arrived, None at the end."""
        time = np.concatenate([self._open[0], time])
        port = np.concatenate([self._open[1], port])
        value = np.concatenate([self._open[2], value])
        hold = newest
        if len(value):
            events, open_, kept = self._pieces(*_by_node(time, port, value), newest)
            self._open = kept
            self._waiting = pa.concat_tables([self._waiting, events])
            if newest is not None:
                hold = min([newest, *open_])
        rows = self._waiting
        begins = rows["time_ps"].to_numpy()
        order = np.lexsort((rows["node"].to_numpy(), begins))
        count = len(order) if hold is None else int(np.searchsorted(begins[order], hold))
        self._waiting = rows.take(pa.array(order[count:]))
        return rows.take(pa.array(order[:count]))

    def _pieces(self, time: _Index, port: npt.NDArray[np.int16], value: _Bytes, newest: int | None) -> tuple[
            pa.Table, list[int], tuple[_Index, npt.NDArray[np.int16], _Bytes]]:
        """For each node: the events that are whole or cut, the beginnings of open ones, and the nibbles of those."""
        other = port[1:] != port[:-1]
        pause = np.diff(time)
        restart = np.ones(len(value), np.bool_)
        np.logical_or(pause > self._timeout_ps, other, out=restart[1:])
        bounds = np.concatenate([[0], np.flatnonzero(other) + 1, [len(value)]]).tolist()
        deaf, going_on = self._mark_deaf(time, port, restart, bounds)

        wanted = 2 * value + np.uint8(1)
        got = _until(restart, wanted)
        first = _chain(got)
        keep = np.where(deaf[first], restart[first] & ~np.isin(first, going_on), value[first] != 0)
        first = first[keep]
        length = np.where(deaf[first], 1, got[first].astype(np.int64))
        aborted = (got[first] < wanted[first]) | deaf[first]

        # Events cut off by the end of the piece stay open, unless their node has been silent for too long.
        ends = np.zeros(len(value) + 1, np.bool_)
        for low, high in pairwise(bounds):
            silent = newest is None or newest - int(time[high - 1]) > self._timeout_ps
            ends[high] = not silent
            if deaf[high - 1]:
                self._deaf[int(port[low])] = int(time[high - 1])
            else:
                self._deaf.pop(int(port[low]), None)
        open_ = aborted & ~deaf[first] & ends[first + length]
        begins = first[open_]
        at = np.concatenate([np.arange(at, at + count) for at, count in zip(begins, length[open_], strict=True)]
                            or [np.zeros(0, np.int64)])
        table = _table(time, port, value, first[~open_], length[~open_], aborted[~open_])
        return table, time[begins].tolist(), (time[at], port[at], value[at])

    def _mark_deaf(self, time: _Index, port: npt.NDArray[np.int16], restart: _Mask,
                   bounds: list[int]) -> tuple[_Mask, _Index]:
        """Which nibbles come after a loss and before the silence that restores the framing.

        Marks in ``restart`` where each such stretch begins, because the loss cut the event that was open. For stretches
        that continue from the previous piece, the first nibbles are also returned.
        """
        deaf = np.zeros(len(time), np.bool_)
        going_on = []
        for low, high in pairwise(bounds):
            node, own = int(port[low]), time[low:high]
            since = self._deaf.get(node)
            if since is not None and own[0] - since <= self._timeout_ps:
                later = np.flatnonzero(restart[low + 1:high])
                deaf[low:low + 1 + later[0] if len(later) else high] = True
            if node in self._losses:    # those that are over for good are forgotten
                self._losses[node] = [one for one in self._losses[node] if one[1] + self._timeout_ps >= own[0]]
            for from_ps, to_ps in self._losses.get(node, ()):
                if from_ps > own[-1]:
                    continue
                begin, seen = low + np.searchsorted(own, [from_ps, to_ps], side="right")
                # A lost item is activity too: the silence counts from the last lost item.
                if seen < high and time[seen] - to_ps <= self._timeout_ps:
                    later = np.flatnonzero(restart[seen + 1:high])
                    seen = seen + 1 + later[0] if len(later) else high
                deaf[begin:seen] = True
            if since is not None and deaf[low]:
                going_on.append(low)
        start = deaf.copy()
        start[1:] &= ~deaf[:-1] | (port[1:] != port[:-1])
        # A stretch has only one beginning, its first nibble.
        restart[deaf] = False
        restart |= start
        return deaf, np.array(going_on, np.int64)


def _by_node(time: _Index, port: npt.NDArray[np.int16],
             value: _Bytes) -> tuple[_Index, npt.NDArray[np.int16], _Bytes]:
    """Sorted by node, each node in its own order: a radix sort, because a node is 16 bits."""
    order = np.argsort(port, kind="stable")
    time, port, value = time[order], port[order], value[order]
    back = (np.diff(time) < 0) & (port[1:] == port[:-1])
    if back.any():
        at = int(np.flatnonzero(back)[0])
        raise ValueError(f"node {port[at]}: {time[at + 1]} ps comes after {time[at]} ps")
    return time, port, value


def _table(time: _Index, port: npt.NDArray[np.int16], value: _Bytes, first: _Index, length: _Index,
           aborted: _Mask) -> pa.Table:
    """Events of the given numbers of nibbles, each from its first nibble on."""
    # For an id that did not arrive, a neighbour's nibbles are read; the mask makes it null.
    last = len(value) - 1
    event = value[np.minimum(first + 1, last)] | value[np.minimum(first + 2, last)] << 4
    size = np.maximum((length - 1) // 2 - 1, 0)
    return pa.Table.from_arrays([
        pa.array(time[first]), pa.array(port[first]),
        pa.array(event, mask=length < 3),
        _payload(value, first + 3, size),
        pa.array(aborted),
    ], schema=EVENT_SCHEMA)


def _until(restart: _Mask, wanted: _Bytes) -> _Bytes:
    """The same lengths, cut where the next restart comes first, so that no event spans a restart."""
    got = wanted.copy()
    stop = np.append(np.flatnonzero(restart)[1:], len(wanted))
    for distance in range(1, LONGEST):
        at = stop - distance
        if at[0] < 0:
            at = at[at >= 0]
        got[at] = np.minimum(got[at], np.uint8(distance))
    return got


def _chain(jump: _Bytes, block: int = 512) -> _Index:
    """The indices 0, 0 + jump[0], ... : a walk from beginning to beginning, computed many steps at a time.

    The walk only appears to be sequential. A jump is at most :data:`LONGEST`, so the walk enters a block of nibbles at
    one of 31 positions. First, the exit for each entry position is computed backwards, for all blocks together. Then
    one look-up per block finds where the walk enters it. Finally, all blocks are walked together.

    Parameters
    ----------
    jump : 1..31 each. ``block`` must be at least 31.
    """
    count = len(jump)
    blocks = -(-count // block)
    padded = np.ones(blocks * block, np.uint8)
    padded[:count] = jump
    columns = np.ascontiguousarray(padded.reshape(blocks, block).T)
    leave = np.empty((block + LONGEST, blocks), np.uint8)
    leave[block:] = np.arange(LONGEST, dtype=np.uint8)[:, None]
    every = np.arange(blocks, dtype=np.int64)
    target = np.empty(blocks, np.int64)
    for row in range(block - 1, -1, -1):
        np.multiply(columns[row], blocks, out=target, dtype=np.int64)
        target += every
        target += row * blocks
        leave.reshape(-1).take(target, out=leave[row], mode="clip")

    look = leave[:LONGEST].tobytes()
    enter, place = [], 0
    for column in range(blocks):
        enter.append(place)
        place = look[place * blocks + column]

    begins = np.zeros(count + LONGEST, np.bool_)
    at = every * block + np.array(enter, np.int64)
    end = np.minimum((every + 1) * block, count)
    while True:
        inside = at < end
        if not inside.all():
            at, end = at[inside], end[inside]
        if len(at) == 0:
            return np.flatnonzero(begins)
        begins[at] = True
        at = at + padded[at]


def _payload(value: _Bytes, low: _Index, size: _Index) -> Any:
    """A binary array: row i has ``size[i]`` bytes, the low nibble of the first at ``low[i]``."""
    offset = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size, out=offset[1:])
    if offset[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offset[-1]} bytes of payload are too many for one table")
    at = np.repeat(low - 2 * offset[:-1], size)
    at += 2 * np.arange(len(at), dtype=np.int64)
    data = value[at]
    at += 1
    data |= value[at] << 4
    return pa.Array.from_buffers(pa.binary(), len(size), [
        None, pa.py_buffer(offset.astype(np.int32)), pa.py_buffer(data)])
