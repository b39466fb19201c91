"""Messages that are longer than an event, joined from their pieces, and log lines with their strings filled in.

``hypermon/log.h`` of the node library writes them. A message is never wrong: unless all of its pieces are there, in
order, of the stated length, and its node lost nothing between the first and the last, it is incomplete, and its text
says so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.dictionary.dictionary import Dictionary, Logging
from hypermon.host.dictionary.log_strings import filled

__all__ = ["LOG_SCHEMA", "Joiner", "LogLine"]

#: Bytes before the data of a first piece, and of another one.
_FIRST, _MORE = 4, 1

LOG_SCHEMA = pa.schema([
    pa.field("time_ps", pa.int64(), nullable=False), pa.field("begun_ps", pa.int64(), nullable=False),
    pa.field("node", pa.int16(), nullable=False), pa.field("event", pa.uint8()), pa.field("name", pa.string()),
    pa.field("text", pa.string()), pa.field("payload", pa.binary(), nullable=False),
    pa.field("complete", pa.bool_(), nullable=False)])


class LogLine(NamedTuple):
    """A message: when it was complete, when it began, its node, event id and name, its text if it has one, its bytes.

    Of an incomplete one, ``text`` says what is missing, and ``payload`` are the bytes that arrived in order. ``event``
    is None if its beginning was lost.
    """

    time_ps: int
    begun_ps: int
    node: int
    event: int | None
    name: str | None
    text: str | None
    payload: bytes
    complete: bool


@dataclass
class _Open:
    """A message of which the first piece has arrived."""

    begun_ps: int
    event: int
    length: int
    data: bytes
    pieces: int = 1


class Joiner:
    """Receives events in order, and returns the messages in them, when they are complete.

    Parameters
    ----------
    dictionary : has the ids of pieces, texts and log lines in its table ``logging``.
    losses : ``node``, ``from_ps``, ``to_ps`` of those that are known; see also :meth:`lose`.
    """

    def __init__(self, dictionary: Dictionary, losses: Iterable[tuple[int, int, int]] = ()):
        self._dictionary = dictionary
        self._own: Logging = dictionary.logging or Logging()
        self._open: dict[tuple[int, int], _Open] = {}
        # Messages that have been reported as broken, whose later pieces are not reported.
        self._headless: set[tuple[int, int]] = set()
        self._losses: dict[int, list[tuple[int, int]]] = {}
        for loss in losses:
            self.lose(*loss)

    @property
    def ids(self) -> tuple[int, int, int]:
        """The events that are messages, or pieces of some."""
        return self._own.piece, self._own.log, self._own.text

    def lose(self, node: int, from_ps: int, to_ps: int) -> None:
        """Adds a loss; it must be known before the node's next events are added."""
        self._losses.setdefault(node, []).append((from_ps, to_ps))

    def add(self, rows: Iterable[dict[str, Any]]) -> Iterator[LogLine]:
        """The messages that end with these events: ``time_ps``, ``node``, ``event``, ``payload``, ``aborted``."""
        for row in rows:
            event, payload = row["event"], row["payload"] or b""
            if row["aborted"] or event not in (self._own.piece, self._own.text, self._own.log):
                continue
            if event == self._own.piece:
                yield from self._piece(row["time_ps"], row["node"], payload)
            else:
                yield self._line(row["time_ps"], row["time_ps"], row["node"], event, payload)

    def finish(self) -> Iterator[LogLine]:
        """The messages that never ended."""
        for (node, _), one in sorted(self._open.items(), key=lambda item: item[1].begun_ps):
            yield self._broken(one.begun_ps, node, one, "its end is missing")
        self._open = {}

    def _piece(self, time_ps: int, node: int, payload: bytes) -> Iterator[LogLine]:
        first = bool(payload) and payload[0] >> 7
        if len(payload) < (_FIRST if first else _MORE):
            yield self._broken(time_ps, node, None, "a piece is too short")
            return
        key = node, payload[0] >> 4 & 7
        one = self._open.pop(key, None)
        if first:
            if one is not None:
                yield self._broken(time_ps, node, one, "its end is missing")
            one = _Open(time_ps, payload[1], int.from_bytes(payload[2:4], "little"), payload[_FIRST:])
        elif one is None:
            # Said once for each run of such pieces: the beginning of the message was lost.
            if key not in self._headless:
                self._headless.add(key)
                yield self._broken(time_ps, node, None, "its beginning is missing")
            return
        elif payload[0] & 15 != one.pieces & 15 or self._lost(node, one.begun_ps, time_ps):
            yield self._broken(time_ps, node, one, "a piece of it is missing")
            self._headless.add(key)
            return
        else:
            one.data += payload[_MORE:]
            one.pieces += 1
        self._headless.discard(key)
        if len(one.data) < one.length:
            self._open[key] = one
        elif len(one.data) > one.length:
            yield self._broken(time_ps, node, one, "it is longer than it says")
        else:
            yield self._line(time_ps, one.begun_ps, node, one.event, one.data)

    def _lost(self, node: int, begin: int, end: int) -> bool:
        return any(from_ps <= end and to_ps >= begin for from_ps, to_ps in self._losses.get(node, ()))

    def _line(self, time_ps: int, begun_ps: int, node: int, event: int, payload: bytes) -> LogLine:
        text: str | None = None
        if event == self._own.text:
            text = payload.decode(errors="replace")
        elif event == self._own.log:
            text = filled(self._own.strings, payload)
            if text is None:
                number = int.from_bytes(payload[:2], "little")
                text = f"(log line {number}: the dictionary's strings are not those of this program)"
        return LogLine(time_ps, begun_ps, node, event, self._name(event), text, payload, True)

    def _name(self, event: int) -> str | None:
        own = {self._own.text: "text", self._own.log: "log"}
        kind = self._dictionary.by_id.get(event)
        return own.get(event, kind.name if kind is not None else None)

    def _broken(self, time_ps: int, node: int, one: _Open | None, reason: str) -> LogLine:
        if one is None:
            return LogLine(time_ps, time_ps, node, None, None, f"(a message is incomplete: {reason})", b"", False)
        size = f"{len(one.data)} of {one.length} bytes arrived"
        return LogLine(time_ps, one.begun_ps, node, one.event, self._name(one.event),
                       f"(a message is incomplete: {reason}; {size})", one.data, False)
