"""A run in other formats."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]
from hypermon.host.blocks import BlockScanner
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.frames import FrameRows
from hypermon.host.ledger import Ledger, Rows
from hypermon.host.modes import ItemMode
from hypermon.host.recording import Run

__all__ = ["FORMATS", "export", "refuse_format", "sink"]


def export(run: Run, form: str, out: str) -> None:
    """Writes a run to a file as ``form``, one of :data:`FORMATS`; ``-`` is standard output.

    A file appears when it is whole; one that is there already is replaced.

    Raises
    ------
    InputError
        if a run of this kind cannot be written so.
    HypermonError
        if the format is unknown.
    """
    refuse_format(run, form)
    FORMATS[form](run, out)


def refuse_format(run: Run, form: str) -> None:
    """Raises what :func:`export` does if it cannot write this run so, before anything is decoded."""
    if form not in FORMATS:
        raise HypermonError(f"no format is called {form!r}; there are {', '.join(FORMATS)}")
    if form == "frames" and run.info.sink != "classic":
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration has no event frames; "
                                         "export it to csv")
    modes = {run.info.item_modes[node] for node in range(run.info.nodes)}
    if form == "csv" and ItemMode.NIBBLE not in modes:
        raise InputError(run.path, None, "no node of this run was in nibble mode: export its events by --to events; "
                                         "its words are in RUN/events/*.parquet")
    if form == "events" and ItemMode.NIBBLE not in modes and ItemMode.EVENT not in modes:
        raise InputError(run.path, None, "all nodes of this run were in word mode; its words are in "
                                         "RUN/events/*.parquet")


@contextmanager
def sink(out: str) -> Iterator[BinaryIO]:
    """The file ``out``, which appears when it is whole; ``-`` is standard output."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(out)
    if path.is_dir() or not path.parent.is_dir():
        raise HypermonError(f"{out}: it is a directory" if path.is_dir() else f"{out}: there is no {path.parent}")
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(aside, "wb") as file:
            yield file
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def _rows(file: BinaryIO, batches: Iterator[pa.RecordBatch]) -> None:
    options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
    for batch in batches:
        pa_csv.write_csv(batch, file, options)


def _csv(run: Run, out: str) -> None:
    """``time_ps,node,nibble``, decimal: by time, ties by node, then by arrival, which is how they are stored.

    Nodes whose items are words or events are left out.
    """
    run.decode()
    with sink(out) as file:
        file.write(b"time_ps,node,nibble\n")
        columns = ["time_ps", "node", "nibble"]
        _rows(file, (batch.filter(pc.is_valid(batch["nibble"])).select(columns) if batch.num_columns > 3 else batch
                     for batch in run.batches()))


def _frames(run: Run, out: str) -> None:
    """The event frames alone, raw, in order: 16 bytes each, 24 on boards of more than 16 nodes."""
    ledger = Ledger(run.info.nodes, run.info.scale, run.info.epoch)
    scanner = BlockScanner()
    with sink(out) as file:
        for piece in run.pieces():
            _write_frames(file, ledger.event_rows(scanner.feed(piece)))
        _write_frames(file, ledger.event_rows(scanner.finish()))


def _write_frames(file: BinaryIO, events: Iterable[Rows]) -> None:
    for rows in events:
        if isinstance(rows, FrameRows):
            file.write(rows.words.tobytes())


def _events(run: Run, out: str) -> None:
    """``time_ps,node,event,payload_hex`` of whole events: those of the nodes in event mode, or, if there is none,
    those that the nibbles frame."""
    if run.info.item_modes.events:
        _own_events(run, out)
        return
    from hypermon.host.events import framed_events

    table = framed_events(run)
    table = table.filter(pc.invert(table["aborted"]))
    payload = pa.array([value.hex() for value in table["payload"].to_pylist()], pa.string())
    table = table.select(["time_ps", "node", "event"]).append_column("payload_hex", payload)
    with sink(out) as file:
        file.write(b"time_ps,node,event,payload_hex\n")
        _rows(file, iter(table.to_batches()))


def _perfetto(run: Run, out: str) -> None:
    """Tracks, slices, instants and counters; see :mod:`hypermon.host.perfetto`."""
    from hypermon.host.events import FRAMED, framed_events
    from hypermon.host.naming import kept_dictionary
    from hypermon.host.perfetto import write_trace

    dictionary = kept_dictionary(run)
    # Nibbles are events if somebody has said so: by framing them, or by a dictionary.
    framed = not run.info.item_modes.longer and (dictionary is not None or (run.path / FRAMED).is_file())
    items = framed_events(run) if framed else run.events()
    with sink(out) as file:
        write_trace(file, items, run.loss(), dictionary=dictionary, title=run.path.resolve().name,
                    nodes=run.info.nodes, duration_ps=run.stats()["duration_ps"])


def _own_events(run: Run, out: str) -> None:
    """The events of nodes in event mode; says on stderr how many were aborted."""
    aborted = 0
    with sink(out) as file:
        file.write(b"time_ps,node,event,payload_hex\n")
        for batch in run.batches():
            events = batch.filter(pc.is_valid(batch["payload"]))
            whole = events.filter(pc.invert(events["aborted"]))
            aborted += len(events) - len(whole)
            payload = pa.array([value.hex() for value in whole["payload"].to_pylist()], pa.string())
            _rows(file, iter([pa.RecordBatch.from_arrays(
                [whole["time_ps"], whole["node"], whole["event"], payload],
                names=["time_ps", "node", "event", "payload_hex"])]))
    if aborted:
        print(f"{run.path}: {aborted} aborted events are left out", file=sys.stderr)


#: Name and writer of every format.
FORMATS: dict[str, Callable[[Run, str], None]] = {
    "csv": _csv, "frames": _frames, "events": _events, "perfetto": _perfetto}
