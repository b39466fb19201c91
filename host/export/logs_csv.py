"""``logs``: the log lines of a run."""

from dataclasses import replace
from itertools import chain

import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.host.analysis.logs import log_file
from hypermon.host.errors import InputError
from hypermon.host.export.format import Format
from hypermon.host.export.items import write_rows
from hypermon.host.export.sinks import sink
from hypermon.host.export.text_lines import LINE_SCHEMA, text_lines
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection, selected_batches

__all__ = ["LOGS"]


def _write(run: Run, out: str, selection: Selection) -> None:
    """``time_ps,begun_ps,node,name,complete,text``: long messages and log lines, and the lines of nodes in line mode;
    CSV with quotes where needed.
    """
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
        write_rows(file, chain(logs, lines), "needed")


LOGS = Format("logs", _write)
