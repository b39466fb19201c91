"""Decoding: blocks to events in Parquet, with the accounts of the run.

Idempotent and atomic: what decoding adds is built aside and put in place at the end, with
``decode.json`` as the last file. It says which bytes were decoded, so a second decode has nothing
to do, one after more has been recorded does all again, and one that was killed has not happened.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypermon.hdl.layout import CensusFlag, Counter, Sink
from hypermon.host.blocks import BlockScanner, Item
from hypermon.host.errors import InputError
from hypermon.host.ledger import BoardCensus, Ledger
from hypermon.host.naming import name_events
from hypermon.host.recording import Run
from hypermon.host.segments import write_json
from hypermon.host.store import LOSS_SCHEMA, EventWriter, TableWriter, event_schema, insert_events

__all__ = ["DECODE_FORMAT", "decode_run", "summary"]

#: Of ``decode.json`` and what stands beside it; another number is decoded again.
DECODE_FORMAT = 5

#: Called with bytes decoded, bytes in all, and the accounts so far.
Progress = Callable[[int, int, Ledger], None]


def summary(ledger: Ledger, stream_size: int, begins: int = 0) -> dict[str, Any]:
    """The accounts as plain values; ``begins``: window before which nothing is there."""
    census = ledger.census
    return {
        "format": DECODE_FORMAT, "stream_size": stream_size, "begins": begins,
        "events": ledger.events, "frames": ledger.frames, "merged": ledger.merged,
        "events_per_node": ledger.per_node.tolist(),
        "aborted": int(ledger.aborted.sum()), "aborted_per_node": ledger.aborted.tolist(), "too_late": ledger.too_late,
        "lost": ledger.lost, "lost_per_node": ledger.lost_per_node, "causes": ledger.causes(),
        "late_nibbles": sum(ledger.counted(Counter.CARRIED)),
        "rejected_per_node": ledger.counted(Counter.REJECTED) or [0] * ledger.nodes,
        "discarded": census.discarded if census is not None else 0, "trigger": _trigger(census),
        "lag_max": max((row[Counter.LAG_MAX] for row in (census.counters if census is not None else [])), default=0),
        "payload_bytes": ledger.payload_bytes, "host_bytes": ledger.host_bytes,
        "last_time": ledger.last_time, "complete": ledger.stopped and ledger.torn == 0,
        "stopped": ledger.stopped, "uncounted": ledger.uncounted,
        "missing_blocks": ledger.missing_blocks, "torn": ledger.torn, "torn_bytes": ledger.torn_bytes,
        "foreign_blocks": ledger.foreign, "faults": ledger.faults,
    }


def _trigger(census: BoardCensus | None) -> str | None:
    """What a run with triggers was at in the end."""
    if census is None:
        return None
    for flag, state in ((CensusFlag.ENDED, "stop found"), (CensusFlag.TRIGGERED, "start found"),
                        (CensusFlag.AWAITS, "start never found")):
        if flag in census.flags:
            return state
    return None


def decode_run(run: Run, progress: Progress | None = None) -> dict[str, Any]:
    """Makes ``events/``, ``loss.parquet`` and ``decode.json`` of a RUN, unless they are there.

    What the RUN's dictionary says of events is in their tables then.

    Returns
    -------
    :func:`summary`, which is what ``decode.json`` holds.

    Raises
    ------
    InputError
        if the run was recorded in a configuration that this version does not know, if its dictionary is not right, or
        if its accounts cannot be read and no blocks were kept to make them of.
    """
    if run.info.sink not in {sink.name.lower() for sink in Sink}:
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration, which this version "
                                         "cannot decode; a newer one can: pip install --upgrade hypermon")
    # One decoder at a time. The lock is the directory's own and goes with the process.
    lock = os.open(run.path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = _done(run)
        if done is None and run.info.keep != "raw":
            raise InputError(run.path / "decode.json", None, "missing, damaged or of another version, and the run was "
                             f"recorded with --keep {run.info.keep}: there are no blocks to make it of")
        if done is None:
            done = _decode_boards(run) if run.info.boards else _decode(run, progress)
        name_events(run)
        return done
    finally:
        os.close(lock)


def _done(run: Run) -> dict[str, Any] | None:
    try:
        values = json.loads((run.path / "decode.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(values, dict) or values.get("format") != DECODE_FORMAT:
        return None
    if summary(Ledger(run.info.nodes, run.info.scale), 0).keys() - values.keys():
        return None         # damaged
    if run.info.keep != "raw":
        return values
    there = (run.path / "events").is_dir() and (run.path / "loss.parquet").is_file()
    same = values.get("stream_size") == run.stream_size and values.get("begins") == _window(run.begins)
    return values if there and same else None


def _window(account: dict[str, Any] | None) -> int:
    """The window before which nothing is there."""
    return 0 if account is None else int(account["window"])


def _decode_boards(run: Run) -> dict[str, Any]:
    """The same, of the recordings of several boards."""
    from hypermon.host.merging import merge_boards

    aside = _aside(run)
    try:
        result = merge_boards(run, aside)
        _put_in_place(run.path, aside)
        write_json(run.path / "decode.json", result)
        return result
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _aside(run: Run) -> Path:
    aside = run.path / ".decode.new"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    return aside


def _decode(run: Run, progress: Progress | None) -> dict[str, Any]:
    info = run.info
    ledger = Ledger(info.nodes, info.scale, info.epoch, info.drain == "registers", info.item_modes,
                    info.item_timeout_clocks, info.port_bits)
    schema = event_schema(info.item_modes, info.nodes)
    begins = run.begins
    if begins is not None:
        ledger.resume(begins)
    scanner = BlockScanner(join=True)
    total = run.stream_size
    aside = _aside(run)
    try:
        losses = TableWriter(aside / "loss.parquet", LOSS_SCHEMA)
        size = 0
        with EventWriter(aside / "events", schema) as events:
            def items() -> Iterator[Item]:
                nonlocal size
                for piece in run.pieces():
                    size += len(piece)
                    yield from scanner.feed(piece)
                    losses.add(list(ledger.take_losses()))
                    if progress is not None:
                        progress(size, total, ledger)
                yield from scanner.finish()

            for rows in ledger.event_rows(items()):
                events.add(rows.events(info.scale))
            for rows in ledger.finish():
                events.add(rows.events(info.scale))
        late = ledger.late_rows()
        if late is not None:
            insert_events(aside / "events", late.events(info.scale))
        losses.add(list(ledger.take_losses()))
        losses.close()
        result = summary(ledger, size, _window(begins))
        _put_in_place(run.path, aside)
        write_json(run.path / "decode.json", result)
        return result
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(run: Path, aside: Path) -> None:
    """The old decode is invalid from the first step on, the new one valid after the last."""
    (run / "decode.json").unlink(missing_ok=True)
    if (run / "events").exists():
        os.rename(run / "events", aside / "old")
    os.rename(aside / "events", run / "events")
    os.replace(aside / "loss.parquet", run / "loss.parquet")
