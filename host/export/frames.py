"""``frames``: the event frames of a run."""

from collections.abc import Iterable
from typing import BinaryIO

import numpy as np
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.decode.ledger import Ledger, Rows
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.export.format import Format, Tables, refuse_several_boards
from hypermon.host.export.sinks import sink
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

__all__ = ["FRAMES"]


def _refuse(run: Run, selection: Selection) -> None:
    if selection.nodes is not None:
        raise HypermonError("--to frames: a frame has the nibbles of all nodes; choose times only, or --to csv")
    run.refuse_without_events()
    if run.info.keep != "raw":
        raise InputError(run.path, None, f"it was recorded with --keep {run.info.keep}: there are no frames in it")
    refuse_several_boards(run)
    if run.info.sink != "classic":
        raise InputError(run.path, None, f"a run of the {run.info.sink} configuration has no event frames; "
                                         "export it to csv")


def _write(run: Run, out: str, selection: Selection) -> None:
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


FRAMES = Format("frames", _write, Tables.STREAM, _refuse)
