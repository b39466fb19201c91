"""The contents that a recording keeps: raw blocks, the items in them, or only the figures (the paper's Figure 6)."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from hypermon.host.decode.ledger import Ledger, Rows
from hypermon.host.recording.parts import Part, all_or_none, described
from hypermon.host.recording.segments import storage, sync_directory, sync_file
from hypermon.host.recording.writer import RunWriter
from hypermon.host.tables.parquet import LOSS_SCHEMA, EventWriter, TableWriter, event_schema, insert_events

__all__ = ["KEEP", "EventKeep", "Keep", "RawKeep", "StatsKeep", "open_keep"]

KEEP = ("raw", "events", "stats")
#: Seconds after which events and figures are in files that can be read, whatever happens then.
_CHECKPOINT_S = 10.0


class Keep(Protocol):
    """Receives the data piece by piece.

    ``add`` receives the bytes of a piece, the number of bytes at its end that belong to an incomplete block, and the
    items of the complete blocks. ``sync`` is called now and then. ``close`` is called at the end in every case,
    possibly instead of the rest of a piece. All raise StorageError if nothing can be written any more.
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
        self._directory, self._info, self._scale = writer.directory, writer.info, writer.info.scale
        self._bytes = 0
        self._checked = time.monotonic()
        directory = self._directory
        with storage(directory):
            TableWriter(directory / "loss.parquet", LOSS_SCHEMA).close()
            self._losses = TableWriter(directory / ".loss.parquet.new", LOSS_SCHEMA)
            StatsKeep._check(self, ledger)

    def add(self, data: bytes, pending: int, rows: Iterable[Rows], ledger: Ledger) -> None:
        self._bytes += len(data)
        with storage(self._directory):
            self._take(rows)
            self._losses.add(list(ledger.take_losses()))

    def _take(self, rows: Iterable[Rows]) -> None:
        for _ in rows:
            pass

    def sync(self, ledger: Ledger) -> None:
        now = time.monotonic()
        if now - self._checked >= _CHECKPOINT_S:
            self._checked = now
            with storage(self._directory):
                self._check(ledger)

    def _check(self, ledger: Ledger) -> None:
        from hypermon.host.decode.account import summary, write_account

        write_account(self._directory, self._info, summary(ledger, self._bytes), self._parts())

    def _parts(self) -> dict[str, Part]:
        """The tables that are whole."""
        loss = "loss.parquet"
        return {loss: described(self._directory / loss)}

    def close(self, rows: Iterable[Rows], ledger: Ledger) -> None:
        """The accounting is written last: it describes tables that exist and are whole."""
        new = self._directory / ".loss.parquet.new"
        with storage(self._directory):
            self._take(rows)
            self._losses.add(list(ledger.take_losses()))
            with all_or_none([new]):
                self._losses.close()
                sync_file(new)
                os.replace(new, self._directory / "loss.parquet")
            self._close_events(ledger)
            self._check(ledger)

    def _close_events(self, ledger: Ledger) -> None:
        """Stores the last events."""


class EventKeep(StatsKeep):
    """Also ``events/*.parquet``, as decoding would make them."""

    def __init__(self, writer: RunWriter, ledger: Ledger):
        self._kept: dict[str, Part] = {}
        info = writer.info
        with storage(writer.directory):
            self._events = EventWriter(writer.directory / "events", event_schema(info.item_modes, info.nodes))
            self._events.first_file()
        self._synced: set[Path] = set()
        super().__init__(writer, ledger)

    def _take(self, rows: Iterable[Rows]) -> None:
        for some in rows:
            self._events.add(some.events(self._scale))

    def _check(self, ledger: Ledger) -> None:
        self._events.end_file()
        self._sync_events()
        super()._check(ledger)

    def _sync_events(self) -> None:
        """The existing files: safe accounting must not describe files that are not safe."""
        new = set((self._directory / "events").glob("*.parquet")) - self._synced
        for path in new:
            sync_file(path)
        if new:
            sync_directory(self._directory / "events")
        self._synced |= new

    def _parts(self) -> dict[str, Part]:
        for path in sorted((self._directory / "events").glob("*.parquet")):
            name = f"events/{path.name}"
            if name not in self._kept:
                self._kept[name] = described(path)
        return {**self._kept, **super()._parts()}

    def _close_events(self, ledger: Ledger) -> None:
        self._events.close()
        late = ledger.late_rows()
        if late is not None:
            insert_events(self._directory / "events", late.events(self._scale))
            self._synced.clear()
            self._kept.clear()


def open_keep(writer: RunWriter, ledger: Ledger) -> Keep:
    """Selects by the name in the RUN's ``recording.json``: one of :data:`KEEP`."""
    if writer.info.keep == "raw":
        return RawKeep(writer)
    return (EventKeep if writer.info.keep == "events" else StatsKeep)(writer, ledger)
