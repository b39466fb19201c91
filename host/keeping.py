"""What a recording keeps: blocks as they came, the events in them, or only the figures (the paper's Figure 6)."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from hypermon.host.ledger import Ledger, Rows
from hypermon.host.recording import RunWriter
from hypermon.host.segments import DiskFullError, no_room, write_json
from hypermon.host.store import LOSS_SCHEMA, EventWriter, TableWriter, event_schema, insert_events

__all__ = ["KEEP", "EventKeep", "Keep", "RawKeep", "StatsKeep", "open_keep"]

KEEP = ("raw", "events", "stats")
#: Seconds after which events and figures are in files that can be read, whatever happens then.
_CHECKPOINT_S = 10.0


class Keep(Protocol):
    """Takes what has come, piece by piece.

    ``add``: the bytes of a piece, how many of its last ones belong to a block that is not whole yet, and the events
    of those that are. ``sync`` is called now and then, ``close`` at the end, whatever has happened, also instead of
    the rest of a piece. They raise DiskFullError when there is no room.
    """

    def add(self, data: bytes, pending: int, rows: Iterable[Rows], ledger: Ledger) -> None: ...

    def sync(self, ledger: Ledger) -> None: ...

    def close(self, rows: Iterable[Rows], ledger: Ledger) -> None: ...


class RawKeep:
    """``stream.bin``, in segments, or a ring of them."""

    def __init__(self, writer: RunWriter):
        self._writer, self._scale = writer, writer.info.scale

    def add(self, data: bytes, pending: int, rows: Iterable[Rows], ledger: Ledger) -> None:
        self.close(rows, ledger)
        now = self._scale.clocks_ps(ledger.last_time * self._scale.window_clocks)
        if pending > len(data) or ledger.stopped or not self._writer.due(now):
            self._writer.append(data)
            return
        whole = len(data) - pending
        self._writer.append(memoryview(data)[:whole])
        self._writer.begin_segment(now, ledger.account())
        self._writer.append(memoryview(data)[whole:])

    def sync(self, ledger: Ledger) -> None:
        self._writer.sync()

    def close(self, rows: Iterable[Rows], ledger: Ledger) -> None:
        for _ in rows:
            pass
        ledger.take_losses()


class StatsKeep:
    """``decode.json`` alone, which ``hypermon stats`` shows."""

    def __init__(self, writer: RunWriter, ledger: Ledger):
        self._directory, self._scale = writer.directory, writer.info.scale
        self._bytes = 0
        self._checked = time.monotonic()
        directory = self._directory
        TableWriter(directory / "loss.parquet", LOSS_SCHEMA).close()
        self._losses = TableWriter(directory / ".loss.parquet.new", LOSS_SCHEMA)
        StatsKeep._check(self, ledger)

    def add(self, data: bytes, pending: int, rows: Iterable[Rows], ledger: Ledger) -> None:
        self._bytes += len(data)
        with self._told():
            self._take(rows)
            self._losses.add(list(ledger.take_losses()))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A full disk by its own name."""
        try:
            yield
        except OSError as error:
            if no_room(error):
                raise DiskFullError(f"{self._directory}: {error.strerror}") from None
            raise

    def _take(self, rows: Iterable[Rows]) -> None:
        for _ in rows:
            pass

    def sync(self, ledger: Ledger) -> None:
        now = time.monotonic()
        if now - self._checked >= _CHECKPOINT_S:
            self._checked = now
            with self._told():
                self._check(ledger)

    def _check(self, ledger: Ledger) -> None:
        from hypermon.host.decode import summary

        write_json(self._directory / "decode.json", summary(ledger, self._bytes))

    def close(self, rows: Iterable[Rows], ledger: Ledger) -> None:
        with self._told():
            self._take(rows)
            self._losses.add(list(ledger.take_losses()))
            self._losses.close()
            os.replace(self._directory / ".loss.parquet.new", self._directory / "loss.parquet")
            self._check(ledger)


class EventKeep(StatsKeep):
    """``events/*.parquet``, too, as decoding would make them."""

    def __init__(self, writer: RunWriter, ledger: Ledger):
        super().__init__(writer, ledger)
        info = writer.info
        self._events = EventWriter(self._directory / "events", event_schema(info.item_modes, info.nodes))

    def _take(self, rows: Iterable[Rows]) -> None:
        for some in rows:
            self._events.add(some.events(self._scale))

    def _check(self, ledger: Ledger) -> None:
        self._events.end_file()
        super()._check(ledger)

    def close(self, rows: Iterable[Rows], ledger: Ledger) -> None:
        super().close(rows, ledger)
        self._events.close()
        late = ledger.late_rows()
        if late is not None:
            insert_events(self._directory / "events", late.events(self._scale))


def open_keep(writer: RunWriter, ledger: Ledger) -> Keep:
    """By the name in the RUN's ``recording.json``: one of :data:`KEEP`."""
    if writer.info.keep == "raw":
        return RawKeep(writer)
    return (EventKeep if writer.info.keep == "events" else StatsKeep)(writer, ledger)
