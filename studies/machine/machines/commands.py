"""Runs an experiment of a machine and records it as a RUN, for ``hypermon machine run``."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from hypermon.host.errors import HypermonError
from hypermon.host.run import Run
from hypermon.sim.cache import cache_directory
from hypermon.sim.virtual.build import library
from hypermon.studies.machine.core.board import board_of, play, stimulus_of, tallied
from hypermon.studies.machine.core.records import EVENTS
from hypermon.studies.machine.core.session import Session
from hypermon.studies.machine.machines import asciq, ipsc860, qsnet, sp2
from hypermon.studies.machine.machines.elan import Model

__all__ = ["Wish", "counted", "kept", "record", "recorded"]

#: What decides a recording besides the writes and the board: the programs that play, record and decode. An analysis is
#: never kept.
_SOURCES = ("studies/machine/core", "sim/stimulus", "sim/virtual", "host/decode", "host/device", "host/dictionary",
            "host/record", "host/recording", "host/blocks")


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
        for a machine without a model, an experiment that it does not have, or an option that it does not take.
    """
    experiments = _EXPERIMENTS.get(name, {})
    if not experiments:
        raise HypermonError(f"{name}: there is no model of it yet")
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


def kept(session: Session) -> tuple[Run, bool]:
    """The same recording, or the one that was kept of the same writes on the same board; and whether it is new."""
    writes, monitor = stimulus_of(session.recorders), board_of(len(session.recorders))
    digest = sha256(str(library(monitor.geometry)).encode() + EVENTS.read_bytes() + _sources())
    for column in (writes.time_ps, writes.node, writes.port):
        digest.update(column.tobytes())
    folder = cache_directory() / "machines"
    path = folder / digest.hexdigest()[:24]
    new = not path.is_dir()
    if new:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as aside:
            run = play(writes, Path(aside) / "run", monitor, dictionary=EVENTS.read_text("utf-8"))
            with suppress(OSError):
                run.path.rename(path)
    return Run(path), new


def counted(session: Session) -> list[dict[str, float]]:
    """How the same writes are counted by a board that nobody records: by port, times between its events in powers of
    two, as `low_us`, `high_us` and `count`.
    """
    done = tallied(stimulus_of(session.recorders), board_of(len(session.recorders)))
    stamp_us = done.stamp_ps / 1e6
    return [{"port": port, "low_us": stamp_us * 2**place, "high_us": stamp_us * 2**(place + 1), "count": many}
            for port, bins in enumerate(done.gaps) for place, many in enumerate(bins) if many]


@cache
def _sources() -> bytes:
    """A hash of the files that decide a recording."""
    digest, root = sha256(), Path(__file__).parents[3]
    for folder in _SOURCES:
        for source in sorted((root / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.digest()


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


def _dropped(wish: Wish) -> asciq.Daemons:
    keys = {"all": asciq.ALL, "0": 0, "1": 1, "31": 31}
    if unknown := [name for name in wish.drop if name not in keys]:
        raise ValueError(f"--drop {unknown[0]}: there are {', '.join(keys)}")
    return asciq.without(*(keys[name] for name in wish.drop))


def _quantum(experiment: str, wish: Wish) -> Session:
    nodes = min(wish.nodes or 4, 32)
    seen = range(nodes) if nodes > 4 else (0, 1, 31, 5)[:nodes]
    session = Session(asciq.machine(32, noise=_dropped(wish), rule=wish.rule, seed=wish.seed), len(seen))
    us, count = 1000 * (1.0 if wish.compute_ms is None else wish.compute_ms), wish.count or 8000
    if us <= 0:
        raise ValueError("--compute-ms: a quantum is longer than 0")
    asciq.quantum(session, nodes=seen, seconds=count * 20 * us / 1e6, us=us)
    return session


def _bsp(experiment: str, wish: Wish) -> Session:
    machine = asciq.machine(wish.nodes or 1024, noise=_dropped(wish), rule=wish.rule, seed=wish.seed)
    ports = [node for node in (0, 1, 5, 31) if node < machine.nodes]
    session = Session(machine, len(ports))
    us = 1000 * (5.0 if wish.compute_ms is None else wish.compute_ms)
    asciq.bsp(session, us=us, seconds=(wish.count or 1000) * (us + 5) / 1e6, ports=ports)
    return session


def _exchange(experiment: str, wish: Wish) -> Session:
    session = Session(sp2.machine(seed=wish.seed), 2)
    sp2.exchange(session, count=wish.count or 3000, size=sp2.SMALL if wish.size is None else wish.size)
    return session


def _all_to_all(experiment: str, wish: Wish) -> Session:
    most = wish.nodes or 32
    if not 2 <= most <= 32:
        raise ValueError("--nodes is 2 to 32")
    session = Session(sp2.machine(seed=wish.seed), most)
    for nodes in (2, 4, 8, 16, 32) if wish.nodes is None else (most,):
        sp2.all_to_all(session, nodes, count=wish.count or 10, size=sp2.LARGE if wish.size is None else wish.size)
    return session


def _ping(experiment: str, wish: Wish) -> Session:
    session, model = Session(qsnet.machine(seed=wish.seed), 2), Model()
    if wish.nodes not in (None, 2):
        raise ValueError("--nodes is 2")
    fine = sorted({*qsnet.SIZES, *qsnet.FINE, *qsnet.TAGGED})
    for mode in qsnet.MODES:
        # Remote reads and the block of a put need no more than the sizes that double.
        whole = mode.operation == "mpi" or mode == qsnet.Mode("put", qsnet.ELAN, qsnet.ELAN)
        sizes = (wish.size,) if wish.size is not None else fine if whole and experiment == "ping" else qsnet.SIZES
        if experiment == "ping" or mode.operation != "get":
            qsnet.ping(session, model, mode, sizes=sizes, count=wish.count or 2, both=experiment == "bidirectional")
    return session


def _hotspot(experiment: str, wish: Wish) -> Session:
    most = wish.nodes or 16
    if not 1 <= most <= 16:
        raise ValueError("--nodes is 1 to 16")
    session, model = Session(qsnet.machine(nodes=most + 1, seed=wish.seed), most), Model()
    for operation in ("put", "get"):
        for users in (1, 2, 4, 8, 16) if wish.nodes is None else (most,):
            qsnet.hotspot(session, model, qsnet.Mode(operation), users, size=wish.size or 32_768,
                          count=wish.count or 10)
    return session


_EXPERIMENTS: dict[str, dict[str, Callable[[str, Wish], Session]]] = {
    "ipsc860": {"path": _path, "edges-1": _contended, "edges-2": _contended, "edges-3": _contended,
                "nodes": _contended},
    "asciq": {"quantum": _quantum, "bsp": _bsp},
    "sp2": {"exchange": _exchange, "all-to-all": _all_to_all},
    "qsnet": {"ping": _ping, "bidirectional": _ping, "hotspot": _hotspot},
}
