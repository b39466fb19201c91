"""What a RUN does not have, and its loss table does not state."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from hypermon.host.decode.alignment import Alignment
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.recording.directory import RunDirectory
from hypermon.host.recording.info import RunInfo

__all__ = ["END_PS", "absent", "begun", "cut_nodes", "discarded", "is_accounted", "is_all_written", "masked_events",
           "rejected", "rejects_items", "unrecorded", "waits_for"]

#: After every item, in picoseconds.
END_PS = (1 << 63) - 1


def unrecorded(run: DecodedRun, done: dict[str, Any]) -> dict[int, int]:
    """The nodes of which more may be lost than the loss table states, and the time of the run from which on, in
    picoseconds; ``done``: the accounting of the run.

    Of a stream that was cut short, this is about the time of the last census. It is the beginning for nodes of a
    regeneration board that was connected late, was restarted, or was silent at the end; if frames were read from
    registers; and if the recorder could not write its tables to their end. What an accounting of an older version does
    not state is doubtful from the beginning.
    """
    if is_accounted(run, done):
        return {}
    told = done.get("counted_until") if is_all_written(run) else None
    windows = told or [0] * run.info.nodes
    found = {}
    for part, how in run.aligned_parts():
        scale, late = part.info.scale, part.info.late_clocks or [0] * how.nodes
        for own in range(how.nodes):
            if (until := windows[how.first_node + own]) < 0:
                continue
            stamps = -(-part.info.phases * late[own] // scale.stamp_window)
            found[how.first_node + own] = int(how.times(np.array([scale.span_ps(until - stamps, until)[0]]))[0])
    return found


def is_accounted(run: DecodedRun, done: dict[str, Any]) -> bool:
    """Every loss of the run has been counted. ``done``: :func:`hypermon.host.decode.account.summary`."""
    return bool(done["accounted"]) and is_all_written(run)


def is_all_written(run: DecodedRun) -> bool:
    """All received data is in the files: always for blocks, for tables only if the recorder could finish."""
    parts = run.parts() or [run]
    return all(part.info.keep == "raw" or (part.info.end or {}).get("all_written", part.info.end is not None)
               for part in parts)


def cut_nodes(run: DecodedRun) -> list[int]:
    """The nodes of a part of a run that ``hypermon trim`` left out."""
    cut, first = list[int](), 0
    for part in run.parts() or [run]:
        kept = (part.info.configuration.get("trimmed") or {}).get("nodes")
        if isinstance(kept, list):
            cut += [first + node for node in range(part.info.nodes) if node not in kept]
        first += part.info.nodes
    return cut


def begun(part: RunDirectory) -> int:
    """The window before which the recording of one of several boards has no data, because it is a ring."""
    if part.info.keep != "raw":     # a part of a ring has its tables only
        return int(part.decode()["begins"]) if isinstance(part, DecodedRun) else 0
    account = part.begins
    return 0 if account is None else int(account["window"])


def absent(run: DecodedRun, done: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Node, from_ps, to_ps: between which times a RUN lacks items without a loss; ``done``: its accounting.

    A ring and a part of a run lack what was before their beginning. A ring may have items that are older than its
    beginning, and not the losses among them. Of the nodes that were left out, a part has nothing. What the settings of
    a board made it discard is lacking, too: see :func:`discarded`.
    """
    found = [(node, 0, END_PS) for node in cut_nodes(run)]
    for part, how in run.aligned_parts():
        scale, cut = part.info.scale, (part.info.configuration.get("trimmed") or {}).get("from_ps")
        begins = done["begins"] if part is run else begun(part)
        if (first := max(scale.start_ps(begins * scale.stamp_window), cut if isinstance(cut, int) else 0)) > 0:
            start, first = how.times(np.array([scale.start_ps(0), first])).tolist()
            found += [(how.first_node + node, start, first) for node in range(how.nodes)]
    return found + discarded(run, done)


def discarded(run: DecodedRun, done: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Node, from_ps, to_ps: between which times a board may have discarded items because its settings say so: items of
    nodes that it masks, rejected items, and items before its start trigger and after its stop trigger.

    Levels that only a glitch filter rejected are no items. For events that the mask of events discards, see
    :func:`masked_events`.
    """
    found = []
    for part, how in run.aligned_parts():
        of, nodes = part.info.configuration, range(how.first_node, how.first_node + how.nodes)
        kept, filters = of.get("nodes_kept"), rejects_items(part.info)
        found += [(node, 0, END_PS) for own, node in enumerate(nodes) if isinstance(kept, list) and own not in kept]
        found += [(node, lo, hi) for node, lo, hi, _ in rejected(part, how, done)
                  if filters[node - how.first_node]]
        begins, ends = waits_for("start", part.info), waits_for("stop", part.info)
        if done["discarded"] and (begins or ends):
            first, last = _times_of(run, nodes)
            found += [(node, 0, END_PS if first is None else first) for node in nodes if begins or first is None]
            found += [(node, last + 1, END_PS) for node in nodes if ends and last is not None]
    return found


def rejects_items(info: RunInfo) -> list[bool]:
    """For each node of a board, whether it may reject whole items: by a filter, or because its front end does."""
    of, fronts = info.configuration, info.identity.get("fronts") or []
    filters = bool(of.get("rate_limit")) or len(of.get("nibbles_kept") or range(16)) < 16
    return [filters or (node < len(fronts) and fronts[node] != "port") for node in range(info.nodes)]


def waits_for(trigger: str, info: RunInfo) -> bool:
    """Whether a condition or a pin starts, or stops, what a board keeps; ``trigger``: ``start`` or ``stop``."""
    of = info.configuration
    return bool(of.get(trigger)) or of.get("trigger_in") in (trigger, "both")


def rejected(part: RunDirectory, how: Alignment, done: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """Node, from_ps, to_ps, and how many: what a board's filters and front ends rejected between these times. A level
    that a glitch filter rejected counts, too. What an accounting of an older version counts may be of any time.
    """
    found = []
    for node in range(how.first_node, how.first_node + how.nodes):
        count, spans = done["rejected_per_node"][node], done.get("rejected_spans")
        if spans is None:
            found += [(node, 0, END_PS, count)] * bool(count)
            continue
        for first, last, part_of in spans[node]:
            low, high = how.times(np.array(part.info.scale.span_ps(first, last))).tolist()
            found.append((node, low, high, part_of))
    return found


def _times_of(run: DecodedRun, nodes: range) -> tuple[int | None, int | None]:
    """The times of the first and of the last item of one board's nodes; None if it has no items."""
    times = list[int]()
    for path in run.event_files():
        about = pq.read_metadata(path)
        for group in map(about.row_group, range(about.num_row_groups)):
            time, node = (group.column(about.schema.names.index(name)).statistics for name in ("time_ps", "node"))
            if group.num_rows and node.min in nodes:        # a file is of one board
                times += [time.min, time.max]
    return (min(times), max(times)) if times else (None, None)


def masked_events(run: DecodedRun, done: dict[str, Any]) -> list[tuple[int, int]]:
    """Node and id of the events that a board's mask of events discards, if it discarded any items."""
    parts = run.aligned_parts() if done["discarded"] else []
    return [(how.first_node + node, one) for part, how in parts for node in range(how.nodes)
            for one in part.info.configuration.get("events_out") or []]
