"""The named events of a RUN: the files that contain them, how many there are, and how well its dictionary matches."""

from pathlib import Path

import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.dictionary.fields import Fit
from hypermon.host.dictionary.run_dictionary import fit_of, kept_dictionary
from hypermon.host.events import framed_file

__all__ = ["events_per_name", "fit_events", "named_files"]


def named_files(run: DecodedRun) -> list[Path]:
    """The tables that contain events: of nodes in event mode, and those that were framed from nibbles."""
    framed = framed_file(run)
    return (run.event_files() if run.info.item_modes.events else []) + ([framed] if framed is not None else [])


def fit_events(run: DecodedRun) -> Fit | None:
    """How well a RUN's events and its dictionary match; None without such tables, or without a dictionary."""
    dictionary, files = kept_dictionary(run), named_files(run)
    if dictionary is None or not files:
        return None
    total = Fit()
    for path in files:
        total += fit_of(path, dictionary) or Fit()
    return total


def events_per_name(run: DecodedRun) -> dict[str, int]:
    """Number of whole events of every name in the tables; events with other ids are not included."""
    dictionary = kept_dictionary(run)
    counts = {kind.name: 0 for kind in dictionary.events} if dictionary is not None else {}
    for path in named_files(run) if counts else []:
        table = pq.read_table(path, columns=["name"], filters=~pc.field("aborted"))
        for row in table["name"].value_counts().to_pylist():
            if row["values"] in counts:
                counts[row["values"]] += row["counts"]
    return counts
