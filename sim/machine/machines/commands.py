"""What ``hypermon machine run`` runs: an experiment of a machine, to a RUN."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from hypermon.host.errors import HypermonError
from hypermon.host.recording.info import Run
from hypermon.sim.cache import cache_directory
from hypermon.sim.machine.core.board import board_of, play, stimulus_of
from hypermon.sim.machine.core.records import EVENTS
from hypermon.sim.machine.core.session import Session
from hypermon.sim.machine.machines import ipsc860
from hypermon.sim.virtual.build import library

__all__ = ["Wish", "kept", "record", "recorded"]


@dataclass(frozen=True)
class Wish:
    """Options of an experiment; None: its own."""

    nodes: int | None = None
    size: int | None = None
    compute_ms: float | None = None
    drop: tuple[str, ...] = ()
    rule: str = "timeline"
    count: int | None = None
    seed: int = 1990


def record(name: str, experiment: str, wish: Wish, path: Path) -> Run:
    """Runs an experiment and records it.

    Raises
    ------
    HypermonError
        for an experiment that the machine does not have, or an option that it does not take.
    """
    experiments = _EXPERIMENTS[name]
    if experiment not in experiments:
        raise HypermonError(f"{experiment}: {name} has no such experiment, but {', '.join(experiments)}")
    try:
        session = experiments[experiment](experiment, wish)
    except ValueError as error:
        raise HypermonError(f"{name} {experiment}: {error}") from None
    return recorded(session, path)


def recorded(session: Session, path: Path) -> Run:
    """Plays what a session wrote to its ports on a board, and records it."""
    return play(stimulus_of(session.recorders), path, board_of(len(session.recorders)),
                dictionary=EVENTS.read_text("utf-8"))


def kept(session: Session) -> Run:
    """The same recording, or the one that was kept of the same writes on the same board."""
    writes, monitor = stimulus_of(session.recorders), board_of(len(session.recorders))
    digest = sha256(str(library(monitor.geometry)).encode() + EVENTS.read_bytes())
    for column in (writes.time_ps, writes.node, writes.port):
        digest.update(column.tobytes())
    folder = cache_directory() / "machines"
    path = folder / digest.hexdigest()[:24]
    if not path.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as aside:
            run = play(writes, Path(aside) / "run", monitor, dictionary=EVENTS.read_text("utf-8"))
            with suppress(OSError):
                run.path.rename(path)
    return Run(path)


def _path(experiment: str, wish: Wish) -> Session:
    session = Session(ipsc860.machine(seed=wish.seed), 2)
    sizes = [size for size in ipsc860.SIZES if size % 20 == 0 and size <= 1000] if wish.size is None else [wish.size]
    nodes = wish.nodes or 128
    if nodes & (nodes - 1) or not 2 <= nodes <= 128:
        raise ValueError("--nodes is a power of two, 2 to 128")
    ipsc860.path(session, distances=range(1, nodes.bit_length()), sizes=sizes, count=wish.count or 3)
    return session


def _contended(experiment: str, wish: Wish) -> Session:
    pairs = {"edges-1": ipsc860.EDGES_1, "nodes": ipsc860.NODE_PATHS}.get(experiment, ipsc860.EDGES_2)
    most = len(pairs) if wish.nodes is None else wish.nodes // 2
    if not 1 <= most <= len(pairs):
        raise ValueError(f"--nodes is 2 to {2 * len(pairs)}: two for each path")
    session = Session(ipsc860.machine(seed=wish.seed), 2 * len(pairs))
    for size in (0, 7000) if wish.size is None else (wish.size,):
        for paths in (1, *(2**power for power in range(1, 4) if 2**power <= most)):
            ipsc860.contended(session, experiment, paths, size, count=wish.count or 10)
    return session


_EXPERIMENTS: dict[str, dict[str, Callable[[str, Wish], Session]]] = {
    "ipsc860": {"path": _path, "edges-1": _contended, "edges-2": _contended, "edges-3": _contended,
                "nodes": _contended},
    "asciq": {}, "sp2": {}, "qsnet": {},
}
