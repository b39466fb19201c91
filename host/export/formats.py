"""A run in other formats."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
from hypermon.hdl.layout import PORT_BITS
from hypermon.host.analysis.logs import log_file
from hypermon.host.analysis.losses import outages
from hypermon.host.blocks.blocks import BlockScanner
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.decode.ledger import Ledger, Rows
from hypermon.host.dictionary.run_dictionary import kept_dictionary
from hypermon.host.errors import HypermonError, InputError, naming, system_reason
from hypermon.host.export.items import item_batches, item_columns
from hypermon.host.export.soundness import check_tables
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["FORMATS", "export", "folder", "refuse_format", "sink", "written"]

#: The modes of nodes each of whose bytes is an item.
_SINGLE = (ItemMode.BYTE, ItemMode.LINE)


def export(run: Run, form: str, out: str, selection: Selection | None = None) -> None:
    """Writes a run to a file, or a directory, as ``form``, one of :data:`FORMATS`; ``-`` is standard output.

    The output appears when it is whole. An existing file is replaced, a directory is not. Memory does not grow with the
    run. All tables are checked before the first byte is written.

    Parameters
    ----------
    selection : of nodes and times, if not all; ``columns`` has no meaning here.

    Raises
    ------
    InputError
        if the format cannot represent a run of this kind, or one of its tables is damaged or belongs to another run.
    HypermonError
        if the format is unknown, does not support a selection, or is not installed.
    """
    selection = selection or Selection()
    refuse_format(run, form, selection)
    check_tables(run, form)
    FORMATS[form](run, out, selection)


def refuse_format(run: Run, form: str, selection: Selection | None = None) -> None:
    """Raises the errors of :func:`export` if the format cannot represent this run, before anything is decoded."""
    if form not in FORMATS:
        raise HypermonError(f"there is no format {form!r}; there are {', '.join(FORMATS)}")
    if selection is not None and selection.nodes is not None and form == "frames":
        raise HypermonError("--to frames: a frame has the nibbles of all nodes; choose times only, or --to csv")
    run.refuse_without_events()
    if form == "frames" and run.info.keep != "raw":
        raise InputError(run.path, None, f"it was recorded with --keep {run.info.keep}: there are no frames in it")
    if form in ("frames", "sr") and run.info.boards:
        raise InputError(run.path, None, "a run of several boards, each with its own windows; export one of "
                                         f"them: {run.path / run.info.boards[0]}")
    if form == "frames" and run.info.sink != "classic":
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration has no event frames; "
                                         "export it to csv")
    if form == "sr" and run.info.port_bits != PORT_BITS:
        raise InputError(run.path, None, f"its nodes have ports of {run.info.port_bits} bits; a session needs ports of "
                                         f"{PORT_BITS}")
    modes = {run.info.item_modes.said(node) for node in range(run.info.nodes)}
    if not modes & {ItemMode.NIBBLE, *(_SINGLE if form == "csv" else ())} and form in ("csv", "sr"):
        raise InputError(run.path, None, "no node of this run was in nibble mode: export its events with --to events; "
                                         "its words are in RUN/events/*.parquet")
    if form == "events" and modes == {ItemMode.WORD}:
        raise InputError(run.path, None, "all nodes of this run were in word mode; its words are in "
                                         "RUN/events/*.parquet")


def _aside(path: Path) -> Path:
    """What a file or directory is called until it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.new")


def written(out: str) -> int:
    """Bytes that an export of this process to ``out`` has written so far; 0 for one that needs no other name."""
    aside = _aside(Path(out).resolve())
    files = aside.rglob("*") if aside.is_dir() else [aside] if aside.exists() else []
    return sum(file.stat().st_size for file in files)


@contextmanager
def sink(out: str) -> Iterator[BinaryIO]:
    """The file ``out``, which appears when it is whole; ``-`` is standard output.

    A symbolic link is kept, and its target is written. If the path is not a regular file, such as a pipe or a device,
    it is written directly.

    Raises
    ------
    HypermonError
        if it is a directory, is not in an existing directory, or standard output is closed.
    """
    if out == "-":
        if sys.stdout is None:
            raise HypermonError("-: standard output is closed")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(out)
    if path.is_dir() or not path.parent.is_dir():
        raise HypermonError(f"{out}: it is a directory" if path.is_dir() else f"{out}: there is no {path.parent}")
    if path.exists() and not path.is_file():
        with naming(out), open(path, "wb") as file:
            yield file
        return
    path = path.resolve()
    aside = _aside(path)
    try:
        with _named(out):
            aside.unlink(missing_ok=True)       # of an earlier process with the same number
            with open(aside, "xb") as file:
                yield file
            os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _named(out: str) -> Iterator[None]:
    """For an error of the system that names no file, states which file could not be written."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise HypermonError(f"{out}: {system_reason(error)}; nothing is left of it") from None


@contextmanager
def folder(out: str) -> Iterator[Path]:
    """The directory ``out``, which appears when it is whole."""
    path = Path(out)
    if out == "-":
        raise HypermonError("-: this format is a directory; give its name")
    if os.path.lexists(path):
        raise HypermonError(f"{out}: it exists already; name a new directory")
    refuse_existing(path)
    aside = _aside(path)
    aside.mkdir()
    try:
        with _named(out):
            yield aside
            os.rename(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _rows(file: BinaryIO, batches: Iterator[pa.RecordBatch]) -> None:
    options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
    for batch in batches:
        pa_csv.write_csv(batch, file, options)


def _csv(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,node,nibble``, decimal: by time, ties by node, then by arrival, as they are stored. The third column
    has the byte of a node in byte mode.

    Nodes whose items are words or events are left out.
    """
    run.decode()
    modes = run.info.item_modes
    single = pa.array([node for node in range(run.info.nodes) if modes.said(node) in _SINGLE], pa.int16())
    with sink(out) as file:
        file.write(b"time_ps,node,nibble\n")
        _rows(file, (_single(batch, single) if batch.num_columns > 3 else batch for batch in _nibbles(run, selection)))


def _single(batch: pa.RecordBatch, nodes: pa.Array) -> pa.RecordBatch:
    """The nibbles of a batch, and the whole bytes of these nodes, whose items are events of one byte."""
    columns = [batch[name] for name in ("nibble",) if name in batch.schema.names]
    if len(nodes):
        own = pc.and_(pc.is_in(batch["node"], nodes), pc.invert(batch["aborted"]))
        columns.append(pc.if_else(own, batch["event"], pa.scalar(None, pa.uint8())))
    values = pc.coalesce(*columns)
    return pa.RecordBatch.from_arrays([batch["time_ps"], batch["node"], values],
                                      names=["time_ps", "node", "nibble"]).filter(pc.is_valid(values))


def _nibbles(run: Run, selection: Selection) -> Iterator[pa.RecordBatch]:
    return run.batches(nodes=selection.nodes, from_ps=selection.from_ps, to_ps=selection.to_ps)


def _frames(run: Run, out: str, selection: Selection) -> None:
    """The event frames alone, raw, in order: 16 bytes each, 24 on boards of more than 16 nodes."""
    ledger = Ledger(run.info.nodes, run.info.scale, run.info.epoch)
    scanner = BlockScanner()
    with sink(out) as file:
        for piece in run.pieces():
            _write_frames(file, ledger.event_rows(scanner.feed(piece)), run, selection)
        _write_frames(file, ledger.event_rows(scanner.finish()), run, selection)


def _write_frames(file: BinaryIO, events: Iterable[Rows], run: Run, selection: Selection) -> None:
    for rows in events:
        if isinstance(rows, FrameRows):
            times = run.info.scale.starts_ps(rows.stamps)
            first, last = (default if time is None else int(np.searchsorted(times, time))
                           for time, default in ((selection.from_ps, 0), (selection.to_ps, len(times))))
            file.write(rows.words[first:last].tobytes())


def _events(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,node,event,payload_hex`` of whole events: those of the nodes in event mode, or, if there is none, those
    framed from the nibbles.
    """
    if run.info.item_modes.events:
        _own_events(run, out, selection)
        return
    from hypermon.host.events import FRAMED, framed_events, framed_file

    if framed_file(run) is None:
        framed_events(run)
    with sink(out) as file:
        file.write(b"time_ps,node,event,payload_hex\n")
        _rows(file, (_whole(batch) for batch in selected_batches([run.path / FRAMED], selection)))


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The events of a batch that were not aborted, as they are printed."""
    batch = batch.filter(pc.invert(batch["aborted"]))
    payload = pa.array([value.hex() for value in batch["payload"].to_pylist()], pa.string())
    return pa.RecordBatch.from_arrays([*(batch[name] for name in ("time_ps", "node", "event")), payload],
                                      names=["time_ps", "node", "event", "payload_hex"])


def _perfetto(run: Run, out: str, selection: Selection) -> None:
    """Tracks, slices, instants, flows and counters; see :mod:`hypermon.host.export.perfetto`."""
    from hypermon.host.export.perfetto import Group, write_trace
    from hypermon.host.export.tracks import tracks_of

    boards = [Group(f"board {number}", board["first_node"], board["nodes"])
              for number, board in enumerate(run.decode().get("boards") or [])]
    with sink(out) as file:
        write_trace(file, tracks_of(run, selection), outages(run.loss(), run.info.nodes, selection),
                    title=run.path.resolve().name, duration_ps=_ended(run), nodes=selection.nodes, boards=boards,
                    clock=None if run.clock.uncertainty_ns is None else run.clock)


def _manifest(run: Run, out: str, selection: Selection) -> None:
    """What Perfetto needs to merge ``NAME.pftrace``, the trace of run NAME, with traces of other machines by UTC."""
    from hypermon.host.export.perfetto import manifest

    if run.clock.uncertainty_ns is None:
        raise InputError(run.path, None, "its time was never compared with UTC, so it cannot be merged by UTC")
    name = run.path.resolve().name
    with sink(out) as file:
        file.write(manifest(f"{name}.pftrace", f"hypermon {name}"))


def _own_events(run: Run, out: str, selection: Selection) -> None:
    """The events of nodes in event mode; prints to stderr how many were aborted."""
    aborted = 0
    with sink(out) as file:
        file.write(b"time_ps,node,event,payload_hex\n")
        for batch in _nibbles(run, selection):
            events = batch.filter(pc.is_valid(batch["payload"]))
            whole = events.filter(pc.invert(events["aborted"]))
            aborted += len(events) - len(whole)
            payload = pa.array([value.hex() for value in whole["payload"].to_pylist()], pa.string())
            _rows(file, iter([pa.RecordBatch.from_arrays(
                [whole["time_ps"], whole["node"], whole["event"], payload],
                names=["time_ps", "node", "event", "payload_hex"])]))
    if aborted:
        print(f"{run.path}: {aborted} aborted events are left out", file=sys.stderr)


def _logs(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,begun_ps,node,name,complete,text``: long messages and log lines, and the lines of nodes in line mode;
    CSV with quotes where needed.
    """
    from hypermon.host.export.text_lines import LINE_SCHEMA, text_lines

    path, columns = log_file(run), LINE_SCHEMA.names
    if path is None and not run.info.item_modes.lines:
        raise InputError(run.path, None, "its dictionary has no table logging, or it has no events; "
                                         f"hypermon decode {run.path} --dictionary FILE")
    logs = selected_batches([path], replace(selection, columns=columns)) if path is not None else iter(())
    lines = text_lines(run, selection) if run.info.item_modes.lines else iter(())
    if path is not None and run.info.item_modes.lines:      # of different nodes, in one order
        both = pa.Table.from_batches([*(batch.cast(LINE_SCHEMA) for batch in logs), *lines], LINE_SCHEMA)
        logs, lines = iter(both.sort_by("time_ps").to_batches()), iter(())
    with sink(out) as file:
        file.write(f"{','.join(columns)}\n".encode())
        for batch in chain(logs, lines):
            pa_csv.write_csv(batch, file, pa_csv.WriteOptions(include_header=False, quoting_style="needed"))


def _vcd(run: Run, out: str, selection: Selection) -> None:
    """A value change dump; see :mod:`hypermon.host.export.vcd`."""
    with sink(out) as file:
        _dump(run, file, selection)


def _fst(run: Run, out: str, selection: Selection) -> None:
    """The same, packed; see :mod:`hypermon.host.export.fst`."""
    from hypermon.host.export.fst import packed

    if out == "-":
        raise HypermonError("-: an FST is a file; give its name")
    with sink(out) as file, packed(Path(file.name)) as dump:
        _dump(run, dump, selection)


def _dump(run: Run, file: BinaryIO, selection: Selection) -> None:
    from hypermon.host.export.vcd import write_vcd

    write_vcd(file, item_batches(run, selection), outages(run.loss(), run.info.nodes, selection),
                  columns=item_columns(run), names=_node_names(run), port_bits=run.info.port_bits,
                  duration_ps=_duration(run, selection))


def _ctf(run: Run, out: str, selection: Selection) -> None:
    """A directory; see :mod:`hypermon.host.export.ctf`."""
    from hypermon.host.export.ctf import write_ctf

    with folder(out) as directory:
        write_ctf(directory, item_batches(run, selection), outages(run.loss(), run.info.nodes, selection),
                  begin_ps=run.info.scale.span_ps(0, 0)[0], dictionary=kept_dictionary(run),
                  title=run.path.resolve().name)


def _otf2(run: Run, out: str, selection: Selection) -> None:
    """A directory; see :mod:`hypermon.host.export.otf2_archive`."""
    from hypermon.host.export.otf2_archive import write_otf2
    from hypermon.host.export.tracks import tracks_of

    with folder(out) as directory:
        write_otf2(directory, tracks_of(run, selection), outages(run.loss(), run.info.nodes, selection),
                   title=run.path.resolve().name)


def _sr(run: Run, out: str, selection: Selection) -> None:
    """A sigrok session of the lines of nodes in nibble mode; see :mod:`hypermon.host.export.srzip`.

    Events that are too close to each other to be played again are named on stderr.
    """
    from hypermon.host.export.srzip import write_sr

    scale, modes = run.info.scale, run.info.item_modes
    nodes = [node for node in range(run.info.nodes)
             if modes[node] is ItemMode.NIBBLE and (selection.nodes is None or node in selection.nodes)]
    first = None if selection.from_ps is None else scale.stamp_at(selection.from_ps)
    last = scale.stamp_at(_duration(run, selection))
    lines = Selection(nodes, None if first is None else scale.start_ps(first), scale.start_ps(last + 1))
    with sink(out) as file:
        close = write_sr(file, _nibbles(run, lines), outages(run.loss(), run.info.nodes, lines), nodes=nodes,
                         scale=scale, first=first, last=last)
    if close is not None:
        print(f"hypermon: {out}: {close.count:,} items follow another one of their node within less than "
              f"{close.least_ps / 1000:g} ns, the first at node {close.node}, {close.time_ps} ps: a board may miss "
              f"them when the session is played; hypermon sim {run.path} plays them all", file=sys.stderr)


def _ended(run: Run) -> int:
    """Time at which the run was stopped."""
    figures = run.stats()
    return int(figures["begins_ps"] + figures["duration_ps"])


def _duration(run: Run, selection: Selection) -> int:
    """Time at which an export ends."""
    last = run.decode()["last_time"]
    whole: int = max(_ended(run), run.info.scale.span_ps(last, last)[1])
    return whole if selection.to_ps is None else min(selection.to_ps, whole)


def _node_names(run: Run) -> list[str]:
    dictionary = kept_dictionary(run)
    return [dictionary.node_name(node) if dictionary is not None else f"node {node}" for node in range(run.info.nodes)]


#: Name and writer of every format.
FORMATS: dict[str, Callable[[Run, str, Selection], None]] = {
    "csv": _csv, "frames": _frames, "events": _events, "logs": _logs, "vcd": _vcd, "fst": _fst, "ctf": _ctf,
    "otf2": _otf2, "sr": _sr, "perfetto": _perfetto, "manifest": _manifest}
