"""Runs of several boards that were recorded separately, as one run; see ``host/decode/board_store.py``."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from hypermon.host.decode.alignment import Alignment
from hypermon.host.dictionary.run_dictionary import KEPT
from hypermon.host.errors import HypermonError, InputError
from hypermon.host.record.several_boards import run_info
from hypermon.host.recording.clock import CLOCK, WallClock, save_clock
from hypermon.host.recording.parts import checksum
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import new_directory
from hypermon.host.run import Run

__all__ = ["merge"]

#: It states when a recording began and ended, and checksums: no two recordings have the same.
_RECORDING = "recording.json"


def merge(paths: Sequence[Path], out: Path, offsets: Mapping[Path, int] | None = None) -> Run:
    """Writes a RUN of several boards: a copy of each recording, and one store of their items, in the first one's time.

    Parameters
    ----------
    paths : RUNs of one board each, which have ended. The numbers of their nodes continue from one to the next.
    out : the new RUN; must not exist.
    offsets : for a recording, the time of the first one, in picoseconds, at which its own time is 0. For recordings
        that are not listed, both boards' times must have been compared with the clock of the same computer.

    Raises
    ------
    HypermonError
        if the recordings cannot make one run, or their times cannot be aligned; nothing is written then.
    """
    offsets = offsets or {}
    runs = [Run(path) for path in paths]
    for number, run in enumerate(runs):
        for other in runs[:number]:
            if (run.path / _RECORDING).read_bytes() == (other.path / _RECORDING).read_bytes():
                raise HypermonError(f"{other.path} and {run.path} are the same recording")
    for run in runs:
        _refuse(run, runs[0], offsets)
    with new_directory(out) as aside:
        names = [f"board-{number}" for number in range(len(runs))]
        for run, name in zip(runs, names, strict=True):
            _copy(run.path, aside / name)
            if run.path in offsets:
                _set_clock(aside / name, runs[0], offsets[run.path])
        info = run_info(aside, names)
        info.end = {"how": f"merged from {', '.join(run.path.resolve().name for run in runs)}",
                    "proper": all((run.info.end or {}).get("proper", True) for run in runs),
                    "duration_ps": None}
        write_json(aside / "recording.json", info.as_dict())
        info.end["duration_ps"] = _duration(Run(aside))
        write_json(aside / "recording.json", info.as_dict())
        dictionaries = {(run.path / KEPT).read_bytes() for run in runs if (run.path / KEPT).is_file()}
        if len(dictionaries) == 1:
            (aside / KEPT).write_bytes(dictionaries.pop())
    return Run(out)


def _copy(run: Path, to: Path) -> None:
    """Copies a RUN without its hidden files. Raises OSError: the first of those that occurred."""
    try:
        shutil.copytree(run, to, ignore=shutil.ignore_patterns(".*"))
    except shutil.Error as error:
        reason = str(error.args[0][0][-1])
        number = re.match(r"\[Errno (\d+)\]", reason)
        raise OSError(int(number[1]) if number else None, reason) from None


def _duration(run: Run) -> int | None:
    """When the last of the boards was stopped, in the time of the run."""
    ends = [int(Alignment(**said).times(np.array([end["duration_ps"]]))[0])
            for part, said in zip(run.parts(), run.stats()["boards"], strict=True)
            if (end := part.info.end) is not None and end.get("duration_ps") is not None]
    return max(ends, default=None)


def _refuse(run: Run, first: Run, offsets: Mapping[Path, int]) -> None:
    """Raises HypermonError if a recording cannot be part of one."""
    if run.info.boards:
        raise InputError(run.path, None, "a run of several boards; merge those, such as "
                                         f"{run.path / run.info.boards[0]}")
    if run.info.end is None:
        raise InputError(run.path, None, "it has no end: it is still being recorded, or its recorder was killed; "
                                         f"hypermon trim {run.path} OUT makes a recording of what there is")
    if run is first and run.path in offsets:
        raise HypermonError(f"--offset {run.path}: the time of the first recording is the time of all")
    if offsets.get(run.path, 0) % 1000:
        raise HypermonError(f"--offset {run.path}: {offsets[run.path]:,} ps is no whole number of nanoseconds, as "
                            "clocks need: round it")
    if run is first or run.path in offsets:
        return
    if run.info.configuration.get("follow"):
        raise InputError(run.path, None, "its time is that of another board, by wire; record both with one command, or "
                                         f"state --offset {run.path}=MS")
    for one in (first, run):
        if one.clock.uncertainty_ns is None or one.clock.how == "stated":
            raise InputError(one.path, None, "it cannot be aligned: its board was never compared with the computer's "
                                             f"clock; if you know when it began, state --offset {run.path}=MS")


def _set_clock(directory: Path, first: Run, offset_ps: int) -> None:
    """Ties a copied recording to the clock of the first, at a known time."""
    clock = first.clock
    offset_ns = round(offset_ps * (1 + clock.drift_ppm * 1e-6) / 1000)
    save_clock(directory, WallClock(clock.utc_ns + offset_ns, clock.drift_ppm, 0, how="stated"))
    run = Run(directory)
    assert run.info.end is not None
    run.info.configuration["follow"] = False
    run.info.end["clock"] = checksum(directory / CLOCK)
    write_json(directory / "recording.json", run.info.as_dict())
