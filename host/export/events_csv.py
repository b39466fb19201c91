"""``events``: the whole events of a run."""

import sys

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.dictionary.run_dictionary import FRAMED
from hypermon.host.errors import InputError
from hypermon.host.events import framed_events, framed_file
from hypermon.host.export.format import Format
from hypermon.host.export.items import stored_batches, write_rows
from hypermon.host.export.sinks import sink
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["EVENTS"]

_HEAD = b"time_ps,node,event,payload_hex\n"


def _refuse(run: Run, selection: Selection) -> None:
    run.refuse_without_events()
    if all(run.info.item_modes.said(node) == ItemMode.WORD for node in range(run.info.nodes)):
        raise InputError(run.path, None, "all nodes of this run were in word mode; its words are in "
                                         "RUN/events/*.parquet")


def _write(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,node,event,payload_hex`` of whole events: those of the nodes in event mode, or, if there is none, those
    framed from the nibbles.
    """
    if run.info.item_modes.events:
        _own_events(run, out, selection)
        return
    if framed_file(run) is None:
        framed_events(run)
    with sink(out) as file:
        file.write(_HEAD)
        write_rows(file, (_whole(batch) for batch in selected_batches([run.path / FRAMED], selection)))


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The events of a batch that were not aborted, as they are printed."""
    batch = batch.filter(pc.invert(batch["aborted"]))
    payload = pa.array([value.hex() for value in batch["payload"].to_pylist()], pa.string())
    return pa.RecordBatch.from_arrays([*(batch[name] for name in ("time_ps", "node", "event")), payload],
                                      names=["time_ps", "node", "event", "payload_hex"])


def _own_events(run: Run, out: str, selection: Selection) -> None:
    """The events of nodes in event mode; prints to stderr how many were aborted."""
    aborted = 0
    with sink(out) as file:
        file.write(_HEAD)
        for batch in stored_batches(run, selection):
            events = batch.filter(pc.is_valid(batch["payload"]))
            whole = events.filter(pc.invert(events["aborted"]))
            aborted += len(events) - len(whole)
            payload = pa.array([value.hex() for value in whole["payload"].to_pylist()], pa.string())
            write_rows(file, iter([pa.RecordBatch.from_arrays(
                [whole["time_ps"], whole["node"], whole["event"], payload],
                names=["time_ps", "node", "event", "payload_hex"])]))
    if aborted:
        print(f"{run.given}: {aborted} aborted events are left out", file=sys.stderr)


EVENTS = Format("events", _write, refuse=_refuse)
