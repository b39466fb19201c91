"""Events that nodes' software wrote as several nibbles, found by the host: ``RUN/framed.parquet``."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from hypermon.hdl.layout import PORT_BITS
from hypermon.host.blocks.item_modes import ItemMode
from hypermon.host.decode import event_framing
from hypermon.host.decode.decoded_run import DecodedRun
from hypermon.host.decode.unrecorded import END_PS, absent, unrecorded
from hypermon.host.dictionary.run_dictionary import FRAMED, kept_dictionary, write_named
from hypermon.host.errors import InputError
from hypermon.host.recording.aside import aside
from hypermon.host.recording.locking import locked
from hypermon.host.recording.parts import PARTS, fault, replace_part

__all__ = ["FRAMED", "framed_events", "framed_file"]

#: Minimum number of events in a row group.
_GROUP = 1 << 18


def framed_events(run: DecodedRun) -> int:
    """Decodes event framing from a run's nibbles and stores the result in the RUN, in constant memory.

    Nodes in word or event mode are skipped. The columns are ``time_ps``, ``node``, ``event``, ``payload``, ``aborted``;
    see :func:`.event_framing.frame_events`. If the RUN has a dictionary, its columns follow; see
    :func:`.fields.decode_fields`.

    Returns
    -------
    the number of events.

    Raises
    ------
    InputError
        if no node was in nibble mode, or its ports have 8 bits.
    """
    if "nibble" not in run.events(columns=None, to_ps=-1 << 62).column_names:
        raise InputError(run.path, None, "no node of this run was in nibble mode, so there is nothing to frame")
    if run.info.port_bits != PORT_BITS:
        raise InputError(run.path, None, "its ports have 8 bits, and only nibbles can be framed: record it with "
                                         "--mode event")
    count = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal count
        for table in _framed(run):
            count += table.num_rows
            yield table

    with locked(run.path, run.tell), aside(run.path) as new:
        write_named(new / FRAMED, event_framing.EVENT_SCHEMA, counted(), kept_dictionary(run))
        replace_part(run.path, new / FRAMED, FRAMED)
    return count


def framed_file(run: DecodedRun) -> Path | None:
    """The file of framed events, rebuilt if it is from another decode; None if the nibbles were never framed."""
    path, modes = run.path / FRAMED, run.info.item_modes
    if ItemMode.NIBBLE not in {modes[node] for node in range(run.info.nodes)}:
        return None
    part = run.decode()[PARTS].get(FRAMED)
    if part is None and not os.path.lexists(path):
        return None
    if part is None or fault(path, part, whole=True) is not None:
        with locked(run.path, run.tell):
            part = run.decode()[PARTS].get(FRAMED)      # another process may have made it meanwhile
            if part is None or fault(path, part, whole=True) is not None:
                framed_events(run)
    return path


def _framed(run: DecodedRun) -> Iterator[pa.Table]:
    """The events in order, in large pieces, so that row groups are not small."""
    framer = event_framing.EventFramer(loss=run.loss())
    for node, from_ps, to_ps in _unframed(run):
        framer.lose(node, from_ps, to_ps)
    held: list[pa.Table] = []
    for batch in run.batches(columns=["time_ps", "node", "nibble"]):
        nibbles = batch.drop_null()
        held.append(framer.add(*(nibbles[name].to_numpy() for name in ("time_ps", "node", "nibble"))))
        if sum(len(table) for table in held) >= _GROUP:
            yield pa.concat_tables(held)
            held = []
    yield pa.concat_tables([*held, framer.finish()])


def _unframed(run: DecodedRun) -> Iterator[tuple[int, int, int]]:
    """Node, from_ps, to_ps: where nibbles cannot be framed, although no loss is recorded.

    A ring and a part of a run begin anywhere in an event. If a block is missing after the last census, no row states
    which nodes lost something with it. A line tells of its losses after items that follow them, and not of all if its
    regeneration board was connected late, was restarted, or was silent at the end.
    """
    done = run.decode()
    yield from absent(run, done)
    lines = "links_unsure" in done
    for node, from_ps in unrecorded(run, done).items():
        if done["uncounted"] or (lines and not done.get("counted_until", [0] * run.info.nodes)[node]):
            yield node, from_ps, END_PS
