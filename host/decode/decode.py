"""Decoding: blocks to items in Parquet, with the loss accounting of the run.

Decoding is idempotent and atomic. Its output is built in a separate directory and moved to its final path at the end,
with ``decode.json`` as the last file. That file states what the tables were made of, and lists them with rows, bytes
and a checksum of each. A second decode therefore has nothing to do. If more has been recorded, or a table was damaged,
removed or exchanged, everything is decoded again. A decode that was killed leaves no trace.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.hdl.layout import CensusFlag, Counter, Sink
from hypermon.host.blocks.blocks import BlockScanner, Item
from hypermon.host.blocks.cores import cores
from hypermon.host.blocks.frames import Events
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.alignment import ALIGNMENT
from hypermon.host.decode.board_store import store_boards
from hypermon.host.decode.ledger import BoardCensus, Ledger, Rows
from hypermon.host.decode.table_files import LOSS_TABLE, event_batches, event_files, loss_files
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary, name_events, names_due
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import ACCOUNT, NEXT, PART, PARTS, Part, all_or_none, described, faults, put
from hypermon.host.recording.segments import segments, stream_sum, sync_directory, sync_file, write_json
from hypermon.host.tables.item_order import ItemTable
from hypermon.host.tables.parquet import (
    LOSS_SCHEMA,
    EventWriter,
    TableWriter,
    event_schema,
    event_table,
    insert_events,
)
from hypermon.host.tables.selection import Selection
from hypermon.host.text.json_file import (
    Shape,
    anything,
    flag,
    integer,
    listed,
    mapping,
    maybe,
    read_json,
    table,
    text,
)

__all__ = ["DECODE_FORMAT", "count_run", "decode_run", "stream_tables", "summary", "tables_needed", "tables_of",
           "write_account"]

#: Version of ``decode.json`` and the files beside it; a RUN with another number is decoded again.
DECODE_FORMAT = 7

_MADE_OF = "made_of"
#: Tables that a decode makes, and one that can be derived from them.
_PART_NAME = re.compile(r"events/part-\d{5,9}\.parquet|loss\.parquet|framed\.parquet|boards\.parquet|"
                        r"(events|loss)/board=\d{3,4}/date=\d{4}-\d\d-\d\d/part-\d{5,9}\.parquet", re.ASCII)
#: What a decoder must know of a recording, and what distinguishes it from others.
_SETTINGS = ("nodes", "clock_hz", "window", "latency", "epoch", "sink", "drain", "modes", "item_timeout_clocks",
             "port_bits", "half_clock", "keep", "boards", "started")

#: Called with bytes decoded, bytes in all, and the accounting so far.
Progress = Callable[[int, int, Ledger], None]


def summary(ledger: Ledger, stream_size: int, begins: int = 0) -> dict[str, Any]:
    """The accounting as plain values; ``begins``: window before which there is no data.

    ``complete``: nothing is lost, damaged or missing. ``accounted``: every loss has been counted. Neither covers data
    that a recorder could not write; ``recording.json`` states that.
    ``links_unsure``, ``links_absent``, ``links_restarted``: only of a board with regeneration boards: those on which
    more may be lost than is counted, those of which nothing arrived, and those that were restarted or exchanged.
    """
    census = ledger.census
    unsure, absent, restarted = ([k for k in range(4) if bits >> k & 1] for bits in (
        (census.unsure, census.absent, census.restarted) if census is not None else (0, 0, 0)))
    doubtful = bool(unsure or absent)
    return {
        "format": DECODE_FORMAT, "stream_size": stream_size, "begins": begins,
        "events": ledger.events, "frames": ledger.frames, "merged": ledger.merged,
        "events_per_node": ledger.per_node.tolist(),
        "aborted": int(ledger.aborted.sum()), "aborted_per_node": ledger.aborted.tolist(), "too_late": ledger.too_late,
        "lost": ledger.lost, "lost_per_node": ledger.lost_per_node, "causes": ledger.causes(),
        "late_nibbles": sum(ledger.counted(Counter.CARRIED)),
        "rejected_per_node": ledger.counted(Counter.REJECTED) or [0] * ledger.nodes,
        "discarded": census.discarded if census is not None else 0, "trigger": _trigger(census),
        "followed": _followed(census), "marks": ledger.pins.as_dict(),
        "lag_max": max((row[Counter.LAG_MAX] for row in (census.counters if census is not None else [])), default=0),
        "payload_bytes": ledger.payload_bytes, "host_bytes": ledger.host_bytes,
        "last_time": ledger.last_time,
        "complete": ledger.stopped and ledger.torn == 0 and ledger.lost == 0 and not doubtful,
        "accounted": ledger.stopped and not doubtful,
        **({"links_unsure": unsure, "links_absent": absent, "links_restarted": restarted} if ledger.linked else {}),
        "stopped": ledger.stopped, "uncounted": ledger.uncounted, "surplus": ledger.surplus,
        "missing_blocks": ledger.missing_blocks, "repeated_blocks": ledger.repeated_blocks,
        "torn": ledger.torn, "torn_bytes": ledger.torn_bytes,
        "foreign_blocks": ledger.foreign, "faults": ledger.faults, "changed": None,
    }


def _trigger(census: BoardCensus | None) -> str | None:
    """The final state of the triggers of a run."""
    if census is None:
        return None
    for bit, state in ((CensusFlag.ENDED, "stop found"), (CensusFlag.TRIGGERED, "start found"),
                        (CensusFlag.AWAITS, "start never found")):
        if bit in census.flags:
            return state
    return None


def _followed(census: BoardCensus | None) -> bool:
    """Time was that of another board, over the sync wire, from the start to the last census."""
    return census is not None and CensusFlag.FOLLOWS in census.flags and CensusFlag.STRAYED not in census.flags


def decode_run(run: RunDirectory, progress: Progress | None = None,
               tell: Callable[[str], None] | None = None, whole: bool = False) -> dict[str, Any]:
    """Creates ``events/``, ``loss.parquet`` and ``decode.json`` of a RUN, unless they exist and are whole.

    The tables include the columns of the RUN's dictionary.

    Parameters
    ----------
    tell : called with one line if there was a decode that cannot be used, or if another process is at work on it.
    whole : rows of the tables will be used: each table is read once as a whole, to find damage that changed no time.

    Returns
    -------
    :func:`summary`, and ``parts``: the tables, by name. These are the contents of ``decode.json``.

    Raises
    ------
    InputError
        if the run was recorded in a configuration that this version does not know, if its dictionary is invalid, or if
        its accounting or tables cannot be read and no blocks were kept to rebuild them.
    """
    if run.info.sink not in {sink.name.lower() for sink in Sink}:
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration, which this version "
                                         "cannot decode; a newer one can: pip install --upgrade hypermon")
    done, reason = _done(run, whole)
    if done is not None and not names_due(run, done[PARTS]):
        return done
    with locked(run.path, tell):
        done, reason = _done(run, whole)        # another process may have decoded it meanwhile
        if done is None and run.info.keep != "raw":
            raise InputError(run.path / ACCOUNT, None, f"{reason}; and the run was recorded with --keep "
                                                        f"{run.info.keep}: there are no blocks to decode again")
        if done is None:
            if reason not in _USUAL and tell is not None:
                tell(f"{run.path}: decoded anew, because {reason}")
            done = _decode_boards(run) if run.info.boards else _decode(run, progress)
        return _read(run)[0] if name_events(run, done[PARTS]) else done


def count_run(run: RunDirectory, progress: Progress | None = None,
              tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The :func:`summary` of a RUN, without tables if they do not exist yet: in a fraction of the time.

    Parameters, and what is raised
    ------------------------------
    As for :func:`decode_run`, which is called if the answer needs tables: for a run of several boards, one that was not
    recorded raw, and one with a dictionary.
    """
    if tables_needed(run):
        return decode_run(run, progress, tell)
    return _pass(run, progress, lambda _: None, lambda _: None)[0]


def tables_needed(run: RunDirectory) -> bool:
    """Whether questions about a RUN are answered from tables: they exist, or the stream alone is not enough.

    The stream is not enough for a run of several boards, one that was not recorded raw, and one with a dictionary.
    """
    if run.info.boards or run.info.keep != "raw" or kept_dictionary(run) is not None:
        return True
    done, reason = _done(run)
    return done is not None or reason not in _USUAL or run.info.sink not in {sink.name.lower() for sink in Sink}


def stream_tables(run: RunDirectory) -> Iterator[pa.Table]:
    """The items of a RUN in order, as they are stored, read from its stream: no tables are written.

    Raises
    ------
    InputError
        if items arrived too late to be in order. Tables have them in order.
    """
    ledger, scanner = Ledger.of(run.info), BlockScanner(join=True)
    with run.stream() as (begins, pieces):
        if begins is not None:
            ledger.resume(begins)

        def items() -> Iterator[Item]:
            for piece in pieces:
                yield from scanner.feed(piece)
                ledger.take_losses()
            yield from scanner.finish()

        for rows in chain(ledger.event_rows(items()), _late_bound(ledger)):
            if ledger.too_late:
                raise InputError(run.path, None, "items in it arrived after later ones had been returned; tables have "
                                                 "them in order: hypermon decode RUN, then read it again")
            yield _table(rows, run.info.scale)


#: Why a decode cannot be used, although nothing is wrong.
_ABSENT, _GROWN, _OTHER = _USUAL = (
    "it is missing", "more has been recorded since", "it was written by another version")


def _done(run: RunDirectory, whole: bool = False) -> tuple[dict[str, Any] | None, str]:
    """The contents of ``decode.json``; None, and the reason, if it is out of date or a table is not whole."""
    try:
        values, reason = _read(run, whole)
    except FileNotFoundError:
        return None, _ABSENT
    except InputError as error:
        return None, error.reason
    if not reason and run.info.keep == "raw" and _stray(run, values[PARTS]):
        reason = f"{_stray(run, values[PARTS])} is not of this decode"
    return (None, reason) if reason else (values, "")


def _read(run: RunDirectory, whole: bool = False) -> tuple[dict[str, Any], str]:
    """The contents of ``decode.json``, or the reason why it cannot be used. Raises FileNotFoundError and InputError."""
    values = read_json(run.path / ACCOUNT, anything())
    if values.get("format") != DECODE_FORMAT:
        return values, _OTHER
    values.setdefault("marks", {})      # an older version wrote none
    try:
        _shape(run.info.nodes)("", values)
    except ValueError as error:
        return values, f"it makes no sense: {error}"
    losses = any(name == LOSS_TABLE or name.startswith("loss/") for name in values[PARTS])
    if not losses or (run.info.keep == "raw" and not any(name.startswith("events/") for name in values[PARTS])):
        return values, "it names no tables"
    made_of = _made_of(run)
    changed = [name for name in made_of if made_of[name] != values[_MADE_OF].get(name)]
    if changed:
        grown = set(changed) <= {"recorded", "stream_size", "begins"} and made_of.get("recorded") is None
        return values, _GROWN if grown else f"the recording has changed since ({', '.join(changed)})"
    parts = values[PARTS]
    for name, part in values[NEXT].items():
        # If killed between the two, either of them is valid.
        if faults(run.path, {name: parts[name]} if name in parts else {}):
            parts[name] = part
    wrong = faults(run.path, {name: part for name, part in parts.items() if name != FRAMED}, whole)
    return values, wrong[0] if wrong else ""


def _shape(nodes: int) -> Shape:
    """The required shape of ``decode.json``: values as those of :func:`summary`, and more."""
    count = integer(-1, (1 << 64) - 1)

    def of(value: Any) -> Shape:
        if isinstance(value, bool):
            return flag()
        if isinstance(value, list):
            return listed(count, nodes, nodes)
        return mapping(count) if isinstance(value, dict) else maybe(text()) if value is None else count

    parts = mapping(PART)

    def named(where: str, values: Any) -> None:
        parts(where, values)
        for name in values:
            if not _PART_NAME.fullmatch(name):
                raise ValueError(f"{where} has {name[:60]!r}, which is no table of a run")

    shapes = {name: of(value) for name, value in summary(Ledger(nodes, RunInfo("", 1, 10**8, "1", 0, 0).scale),
                                                          0).items()}
    return table({**shapes, _MADE_OF: mapping(anything()), PARTS: named, NEXT: named},
                 {"boards": listed(ALIGNMENT)})


def _stray(run: RunDirectory, parts: Mapping[str, Part]) -> str | None:
    """A file that readers of a directory of tables would read, and that is not one of the parts."""
    there = sorted(path.relative_to(run.path).as_posix() for name in ("events", "loss")
                   for path in (run.path / name).rglob("*.parquet"))
    return next((name for name in there if name not in parts), None)


def _settings(info: RunInfo) -> dict[str, Any]:
    """What tables are made of in every case; the last two only if set, because older versions did not state them."""
    values = asdict(info)
    return {"settings": {name: values[name] for name in _SETTINGS}
            | ({"quarter_clock": True} if info.quarter_clock else {})
            | ({"late_clocks": info.late_clocks} if info.late_clocks else {})}


def _made_of(run: RunDirectory) -> dict[str, Any]:
    """What tables are made of: if this changes, they are out of date."""
    info = asdict(run.info)
    settings = _settings(run.info)
    if run.info.boards:
        wires = {"wires": info["wires"]} if any(info["wires"]) else {}
        return {**settings, **wires, **{part.path.name: _made_of_board(part) for part in run.parts()}}
    if run.info.keep != "raw":
        return settings
    return {**settings, "recorded": (run.info.end or {}).get("stream"), "stream_size": run.stream_size,
            "begins": _window(run.begins)}


def _made_of_board(part: RunDirectory) -> dict[str, Any]:
    tables = {} if part.info.keep == "raw" else {name: one["crc32"] for name, one in decode_run(part)[PARTS].items()}
    # By what means the clock was compared changes no time, and an older version did not state it.
    clock = {name: value for name, value in asdict(part.clock).items() if name not in ("how", "pulses")}
    return {**_made_of(part), "clock": clock, "tables": tables}


def _window(account: dict[str, Any] | None) -> int:
    """The window before which there is no data."""
    return 0 if account is None else int(account["window"])


def tables_of(directory: Path) -> dict[str, Part]:
    """The tables that a decode has made in a directory."""
    paths = [*sorted((directory / "events").glob("*.parquet")), directory / LOSS_TABLE]
    return {path.relative_to(directory).as_posix(): described(path) for path in paths}


def write_account(run: Path, info: RunInfo, values: dict[str, Any], parts: Mapping[str, Part],
                  made_of: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes ``decode.json`` into a RUN: a :func:`summary`, and the tables that belong to it.

    Parameters
    ----------
    made_of : what the tables were made of, besides the settings of the recording.
    """
    made_of = made_of or _settings(info)
    account = {**values, _MADE_OF: made_of, PARTS: dict(parts), NEXT: {}}
    write_json(run / ACCOUNT, account)
    return account


def _decode_boards(run: RunDirectory) -> dict[str, Any]:
    """The same, for the recordings of several boards."""
    made_of = _made_of(run)
    result, parts = store_boards(run, _made_of_board, _read_board, cores())
    return write_account(run.path, run.info, result, parts, made_of)


def _read_board(part: RunDirectory, events: Callable[[pa.Table], object],
                losses: Callable[[list[Any]], object]) -> tuple[dict[str, Any], pa.Table | None]:
    """Reads the recording of one of several boards: its stream, or the tables that were recorded instead."""
    scale = part.info.scale
    if part.info.keep == "raw":
        result, late = _pass(part, None, lambda rows: events(_table(rows, scale)), losses)
        return result, None if late is None else late.events(scale)
    done = decode_run(part, whole=True)
    for batch in event_batches(event_files(part, done[PARTS]), Selection()):
        events(pa.Table.from_batches([batch]))
    for path in loss_files(part, done[PARTS]):
        losses([tuple(row.values()) for row in pq.ParquetFile(path).read().to_pylist()])
    return done, None


def _table(rows: Rows, scale: TimeScale) -> pa.Table:
    found = rows.events(scale)
    return event_table(found) if isinstance(found, Events) else found


def _decode(run: RunDirectory, progress: Progress | None) -> dict[str, Any]:
    info = run.info
    with aside(run.path) as new:
        losses = TableWriter(new / LOSS_TABLE, LOSS_SCHEMA)
        with EventWriter(new / "events", event_schema(info.item_modes, info.nodes), cores()) as events:
            result, late = _pass(run, progress, lambda rows: events.add(rows.events(info.scale)), losses.add)
        if late is not None:
            insert_events(new / "events", late.events(info.scale))
        losses.close()
        return _put_in_place(run, new, result, {**_made_of(run), "stream_size": result["stream_size"]})


def _pass(run: RunDirectory, progress: Progress | None, events: Callable[[Rows], object],
          losses: Callable[[list[Any]], object]) -> tuple[dict[str, Any], ItemTable | None]:
    """Reads a run's stream. Gives its :func:`summary`, and the rows that arrived too late to be in order.

    Parameters
    ----------
    events, losses : called with all others, in order.
    """
    info = run.info
    ledger = Ledger.of(info)
    scanner = BlockScanner(join=True)
    total, size = run.stream_size, 0
    with run.stream() as (begins, pieces):
        if begins is not None:
            ledger.resume(begins)

        def items() -> Iterator[Item]:
            nonlocal size
            for piece in pieces:
                size += len(piece)
                yield from scanner.feed(piece)
                losses(list(ledger.take_losses()))
                if progress is not None:
                    progress(size, total, ledger)
            yield from scanner.finish()

        for rows in chain(ledger.event_rows(items()), _late_bound(ledger)):
            events(rows)
    losses(list(ledger.take_losses()))
    result = summary(ledger, size, _window(begins))
    result["changed"] = _changed(run)
    result["complete"] &= result["changed"] is None
    return result, ledger.late_rows()


def _late_bound(ledger: Ledger) -> Iterator[Rows]:
    """The rows at the end, when everything else has arrived."""
    yield from ledger.finish()


def _changed(run: RunDirectory) -> str | None:
    """The file of the stream that differs from the recorded one, if the recording has ended and describes it."""
    said = (run.info.end or {}).get("stream")
    if said is None:
        return None
    there = {path.name: path for path in segments(run.path)[0]}
    for name, (size, total) in said.items():
        if name not in there:
            return f"{name} is missing"
        if there[name].stat().st_size != size or stream_sum(there[name]) != total:
            return f"{name} is not as it was recorded"
    more = there.keys() - said.keys()
    return f"{min(more)} was not recorded" if more else None


def _put_in_place(run: RunDirectory, new: Path, result: dict[str, Any], made_of: dict[str, Any]) -> dict[str, Any]:
    """The old decode is invalid from the first step on, the new one valid after the last, even after a power cut."""
    for path in new.rglob("*.parquet"):
        sync_file(path)
    sync_directory(new / "events")
    parts = tables_of(new)
    if os.path.lexists(run.path / ACCOUNT):
        os.rename(run.path / ACCOUNT, new / "old.json")
    names = ("events", LOSS_TABLE)
    with all_or_none(run.path / name for name in names):
        for name in names:
            put(new / name, run.path / name, new)
        sync_directory(run.path)
        return write_account(run.path, run.info, result, parts, made_of)
