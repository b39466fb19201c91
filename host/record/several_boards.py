"""Several boards in one recording: one recorder per board, and a RUN that contains all of them."""

import datetime
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError, IncompleteError
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.process import RecorderProcess
from hypermon.host.record.wiring import Pipes, Wiring
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import write_json
from hypermon.host.recording.writer import refuse_existing

__all__ = ["record_together", "run_info"]

_LOOK_S = 0.1
#: Seconds from the first block of the first board to that of each board that follows it. The wave arrives within 2,047
#: clocks of time 0, and a board reports the beginning of its time at once.
_WAVE_S = 5.0
#: These seconds for virtual boards, which compute their time, side by side.
_VIRTUAL_WAVE_S = 300.0
#: Seconds for recorders to end when they are stopped; those that have recorded nothing need none.
_END_S, _EMPTY_S = 20.0, 1.0
#: Properties that must be the same for all boards of a run, and the option that sets each.
_SAME = {"clock_hz": "boards of one clock", "window": "--window", "sink": "--config",
         "port_bits": "boards of one width", "phases": "boards that all sample as often per clock"}


def record_together(boards: Sequence[str], run: Path, options: Sequence[str], *, follow: bool, interrupt: Interrupt,
                    progress: Callable[[list[dict[str, Any]]], None] | None = None,
                    wiring: Wiring | None = None,
                    echoes: list[dict[str, Any] | None] | None = None) -> list[dict[str, Any]]:
    """Records boards until all have reached their end, one fails, or the recording is interrupted.

    Parameters
    ----------
    boards : URIs; the time of the run is that of the first.
    options : of ``hypermon record``, for each of them.
    follow : the others follow the first by wire. They are started before it, and wait for it. Virtual boards are wired
        by pipes.
    wiring : which board follows which; None: all follow the first.
    echoes : for each board the wire that it follows, as :mod:`.record.echo` measured it.
    progress : called with the last report of each recorder, ten times a second.

    Returns
    -------
    the last report of each recorder; see :mod:`hypermon.host.cli.progress_json`.

    Raises
    ------
    HypermonError
        if a board cannot be recorded, or the recordings cannot form one run.
    IncompleteError
        if they were recorded, and one of them failed, or never received the wave that it follows. The data recorded
        until then is kept.
    """
    if len(set(boards)) < len(boards) and not all(board.startswith("sim:") for board in boards):
        raise HypermonError(f"-b: {next(board for board in boards if boards.count(board) > 1)} is given twice")
    refuse_existing(run)
    wiring = wiring or Wiring.parse("star", len(boards))
    pipes = Pipes(wiring, boards, follow)
    wave_s = _VIRTUAL_WAVE_S if pipes.some else _WAVE_S
    run.mkdir()
    names = [f"board-{number}" for number in range(len(boards))]
    recorders: dict[int, RecorderProcess] = {}
    try:
        for number in wiring.starting_order() if follow else range(len(boards)):
            own = [*options, "--follow"] if follow and number else list(options)
            uri, files = pipes.of(number)
            inherits = {"files": files} if files else {}
            recorder = recorders[number] = RecorderProcess(uri, run / names[number], own, **inherits)
            if follow and number:
                _wait(partial(_listens, recorder), [recorder], interrupt)
        paths = [run / name / "recording.json" for name in names]
        _wait(lambda: all(path.exists() for path in paths), list(recorders.values()), interrupt)
        pipes.close()
        info = run_info(run, names)
        if follow:
            info.wires = echoes or [None if parent is None else {"follows": parent} for parent in wiring.parents]
        write_json(run / "recording.json", asdict(info))
        how = _watch([recorders[number] for number in range(len(boards))], wave_s if follow else None, interrupt,
                     progress)
        before = {number: recorder.failure for number, recorder in recorders.items()}
    finally:
        pipes.close()
        _end(list(recorders.values()))
        if not (run / "recording.json").exists() and not _holds_something(run, recorders.values()):
            shutil.rmtree(run)
    ends = [RunInfo.load(path).end or {} for path in paths]
    durations = [end["duration_ps"] for end in ends if end.get("duration_ps") is not None]
    failed = []
    for number, board in enumerate(boards):
        fault = recorders[number].failure
        if follow and number and not _has_begun(recorders[number]):
            leader = boards[wiring.parents[number] or 0]
            fault = before[number] or (
                f"it received no wave from {leader}: is that one's sync_out wired to its sync_in?")
        failed += [f"{board}: {fault}"] if fault else []
    info.end = {"how": "; ".join([how, *failed]), "proper": not failed, "duration_ps": max(durations, default=None),
                "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")}
    write_json(run / "recording.json", asdict(info))
    if failed:
        raise IncompleteError(f"{'; '.join(failed)}; what was recorded is in {run}")
    return [recorders[number].figures for number in range(len(boards))]


def _listens(recorder: RecorderProcess) -> bool:
    """It has reported something, so its board has been enabled."""
    return bool(recorder.figures)


def _has_begun(recorder: RecorderProcess) -> bool:
    """Its board has sent data: the first block that a board sends reports the beginning of its time."""
    return bool(recorder.figures.get("bytes"))


def _holds_something(run: Path, recorders: Iterable[RecorderProcess]) -> bool:
    return any(map(_has_begun, recorders)) or any(path.stat().st_size for path in run.glob("board-*/stream*"))


def _end(recorders: Sequence[RecorderProcess]) -> None:
    """Stops all and waits for them, in total not much longer than for one. Another Ctrl-C kills those that remain."""
    until = time.monotonic() + _END_S
    patience = True
    for recorder in recorders:
        recorder.stop()
    for recorder in recorders:
        try:
            left = (until - time.monotonic()) if _has_begun(recorder) else _EMPTY_S
            recorder.close(max(left, 0.0) if patience else 0.0)
        except KeyboardInterrupt:
            patience = False
            recorder.close(0.0)


def _wait(ready: Callable[[], bool], recorders: Sequence[RecorderProcess], interrupt: Interrupt) -> None:
    """Waits until it is ready; raises HypermonError if a recorder fails before that, or it is interrupted."""
    while not ready():
        for recorder in recorders:
            if recorder.failure:
                raise HypermonError(recorder.failure)
        if interrupt.hit:
            raise HypermonError("interrupted before all boards were there")
        if not any(recorder.running for recorder in recorders) and not ready():
            raise HypermonError("the recorders ended before all boards were there")
        time.sleep(_LOOK_S / 4)


def _watch(recorders: Sequence[RecorderProcess], wave_s: float | None, interrupt: Interrupt,
           progress: Callable[[list[dict[str, Any]]], None] | None) -> str:
    """Waits until all have ended, one fails, or one has not received its wave in time; returns the reason."""
    began: float | None = None
    while any(recorder.running for recorder in recorders):
        if began is None and _has_begun(recorders[0]):
            began = time.monotonic()
        if interrupt.hit:
            return "interrupted"
        if any(recorder.failure for recorder in recorders):
            return "a board failed"
        if wave_s is not None and began is not None and time.monotonic() - began > wave_s and not all(
                _has_begun(recorder) for recorder in recorders):
            return "a wave never arrived"
        if progress is not None:
            progress([recorder.figures for recorder in recorders])
        time.sleep(_LOOK_S)
    return "all boards finished"


def run_info(run: Path, names: list[str]) -> RunInfo:
    """``recording.json`` of the whole run. Raises HypermonError if the boards' recordings cannot form one run."""
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
        identity=first.identity,
        # What a part was cut from is in its own configuration.
        configuration={key: value for key, value in first.configuration.items() if key != "trimmed"},
        modes=modes if any(mode != "nibble" for mode in modes) else [], item_timeout_clocks=first.item_timeout_clocks,
        port_bits=first.port_bits, half_clock=first.half_clock, quarter_clock=first.quarter_clock,
        started=min(info.started for info in infos),
        boards=names)
