"""Several boards in one recording: a recorder of its own for each, and a RUN that has them all."""

import datetime
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError
from hypermon.host.live.process import RecorderProcess
from hypermon.host.recorder import Interrupt
from hypermon.host.recording import RunInfo, refuse_existing
from hypermon.host.segments import write_json

__all__ = ["record_together"]

_LOOK_S = 0.1
#: What must be the same of all boards of a run, and by which option it becomes so.
_SAME = {"clock_hz": "boards of one clock", "window": "--window", "sink": "--config",
         "port_bits": "boards of one width", "half_clock": "boards that all sample twice a clock, or none"}


def record_together(boards: Sequence[str], run: Path, options: Sequence[str], *, follow: bool, interrupt: Interrupt,
                    progress: Callable[[list[dict[str, Any]]], None] | None = None) -> list[dict[str, Any]]:
    """Records boards until all have come to their end, or one fails, or it is interrupted.

    Parameters
    ----------
    boards : URIs; the time of the run is that of the first.
    options : of ``hypermon record``, for each of them.
    follow : the others follow the first by wire. They are started before it, and wait for it.
    progress : is given what each recorder said last, ten times a second.

    Returns
    -------
    what each recorder said last; see :mod:`hypermon.host.feed`.

    Raises
    ------
    HypermonError
        if a board cannot be recorded, or they cannot make one run. What was recorded until then is there.
    """
    if len(set(boards)) < len(boards) and not all(board.startswith("sim:") for board in boards):
        raise HypermonError(f"-b: {next(board for board in boards if boards.count(board) > 1)} is named twice")
    refuse_existing(run)
    run.mkdir()
    names = [f"board-{number}" for number in range(len(boards))]
    recorders: dict[int, RecorderProcess] = {}
    try:
        for number in [*range(1, len(boards)), 0] if follow else range(len(boards)):
            own = [*options, "--follow"] if follow and number else list(options)
            recorder = recorders[number] = RecorderProcess(boards[number], run / names[number], own)
            if follow and number:
                _wait(partial(_listens, recorder), [recorder], interrupt)
        paths = [run / name / "recording.json" for name in names]
        _wait(lambda: all(path.exists() for path in paths), list(recorders.values()), interrupt)
        info = _info(run, names)
        write_json(run / "recording.json", asdict(info))
        how = _watch([recorders[number] for number in range(len(boards))], interrupt, progress)
    finally:
        for recorder in recorders.values():
            recorder.stop()
        for recorder in recorders.values():
            recorder.close()
        if not any((run / name / "recording.json").exists() for name in names):
            shutil.rmtree(run)
    ends = [RunInfo.load(path).end or {} for path in paths]
    durations = [end["duration_ps"] for end in ends if end.get("duration_ps") is not None]
    info.end = {"how": how, "duration_ps": max(durations, default=None),
                "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")}
    write_json(run / "recording.json", asdict(info))
    failed = [f"{board}: {recorders[number].failure}" for number, board in enumerate(boards)
              if recorders[number].failure]
    if failed:
        raise HypermonError("; ".join(failed))
    return [recorders[number].figures for number in range(len(boards))]


def _listens(recorder: RecorderProcess) -> bool:
    """It has said something, so its board has been enabled."""
    return bool(recorder.figures)


def _wait(ready: Callable[[], bool], recorders: Sequence[RecorderProcess], interrupt: Interrupt) -> None:
    """Until it is ready; raises HypermonError if a recorder fails before that, or it is interrupted."""
    while not ready():
        for recorder in recorders:
            if recorder.failure:
                raise HypermonError(recorder.failure)
        if interrupt.hit:
            raise HypermonError("interrupted before all boards were there")
        if not any(recorder.running for recorder in recorders) and not ready():
            raise HypermonError("the recorders ended before all boards were there")
        time.sleep(_LOOK_S / 4)


def _watch(recorders: Sequence[RecorderProcess], interrupt: Interrupt,
           progress: Callable[[list[dict[str, Any]]], None] | None) -> str:
    """Until all have ended; says why."""
    how = "all boards came to their end"
    while any(recorder.running for recorder in recorders):
        failed = any(recorder.failure for recorder in recorders)
        if interrupt.hit or failed:
            how = "interrupted" if interrupt.hit else "a board failed"
            for recorder in recorders:
                recorder.stop()
            for recorder in recorders:
                recorder.close()
            break
        if progress is not None:
            progress([recorder.figures for recorder in recorders])
        time.sleep(_LOOK_S)
    return how


def _info(run: Path, names: list[str]) -> RunInfo:
    """Of the run as a whole. Raises HypermonError if what the boards have recorded cannot be one."""
    infos = [RunInfo.load(run / name / "recording.json") for name in names]
    for name, remedy in _SAME.items():
        values = [getattr(info, name) for info in infos]
        if len(set(values)) > 1:
            raise HypermonError(f"the boards do not make one run: {name} is {' and '.join(map(str, values))}; it takes "
                                f"{remedy}, or a recording of each")
    first = infos[0]
    modes = [mode for info in infos for mode in (info.modes or ["nibble"] * info.nodes)]
    return RunInfo(
        board=", ".join(info.board for info in infos), nodes=sum(info.nodes for info in infos), clock_hz=first.clock_hz,
        window=first.window, latency=first.latency, epoch=first.epoch, sink=first.sink, drain=first.drain,
        identity=first.identity, configuration=first.configuration,
        modes=modes if any(mode != "nibble" for mode in modes) else [], item_timeout_clocks=first.item_timeout_clocks,
        port_bits=first.port_bits, half_clock=first.half_clock, started=min(info.started for info in infos),
        boards=names)
