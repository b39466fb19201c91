"""The runs of ``make machines``: each is emulated, recorded by the virtual board, and analysed."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from hypermon.host.run import Run
from hypermon.studies.machine.analysis import asciq as asciq_analysis
from hypermon.studies.machine.analysis import ipsc860 as ipsc860_analysis
from hypermon.studies.machine.analysis import qsnet as qsnet_analysis
from hypermon.studies.machine.analysis import sp2 as sp2_analysis
from hypermon.studies.machine.core.noise import Quiet, Source
from hypermon.studies.machine.core.session import Machine, Session
from hypermon.studies.machine.machines import asciq, ipsc860, qsnet, sp2
from hypermon.studies.machine.machines.commands import counted, kept
from hypermon.studies.machine.machines.elan import ELAN, MAIN, Model
from hypermon.studies.machine.page.blind import drawn_asciq, drawn_ipsc860, drawn_qsnet, drawn_sp2
from hypermon.studies.page.tables import Row, Tables

__all__ = ["BLIND_SEEDS", "CASES", "PARTS", "SEEDS", "Task", "tasks"]

#: Seeds of every predicted row, and of the blind runs: the first ones there are.
SEEDS, BLIND_SEEDS = range(1, 6), range(1, 21)
#: Cases of Table 4.1: what is left out.
CASES: dict[str, tuple[int, ...]] = {"all": (), "without 0": (0,), "without 1": (1,), "without 31": (31,),
                                     "without 0, 1, 31": (0, 1, 31), "without background": (asciq.ALL,)}
#: Parts of what is left without the background: the sources of these nodes alone.
PARTS = {"only 31": (31,), "only 0 and 1": (0, 1)}
#: The share from which on the figures' sweeps and the machine of 32 ports are whole.
_SWEEP = 0.05
#: What a call of the message library takes more, at most, us: where programs contend, where they do not, and where it
#: only starts a DMA.
_JITTER_US, _LITTLE_US, _SMALL_US = 2.0, 0.2, 0.02
_SYSTEMS = {"ipsc860": ipsc860_analysis, "asciq": asciq_analysis, "sp2": sp2_analysis,
            "qsnet": qsnet_analysis}


class Task(NamedTuple):
    """A run.

    Members
    -------
    name, machine : of it. ``program``: runs on a session. ``ports``: of the board.
    model : makes the machine. ``columns``: are added to each of its rows.
    raw : is run once more with nobody recording, to see what the recording costs.
    drawn : figures show its curves. ``counted``: the board counts it once more, with nobody recording.
    """

    name: str
    machine: str
    ports: int
    model: Callable[[], Machine]
    program: Callable[[Session], None]
    columns: Row
    raw: bool = False
    drawn: bool = False
    counted: bool = False

    def run(self) -> Tables:
        """The tables that come of it."""
        session = Session(self.model(), self.ports)
        begin = time.process_time()
        self.program(session)
        events = sum(len(recorder.times) for recorder in session.recorders)
        row: Row = {"task": self.name, "machine": self.machine, "events": events, "seconds": session.us / 1e6}
        if self.raw:
            alone = Session(self.model(), self.ports, raw=True)
            self.program(alone)
            row["disturbed"] = session.us / alone.us - 1
        run, row["recorded"] = kept(session)
        tables = self._tables(_SYSTEMS[self.machine].analyse(run), run)
        for name, rows in _SYSTEMS[self.machine].curves(run).items() if self.drawn else ():
            tables[name] = [{"task": self.name, **self.columns, **own} for own in rows]
        if self.counted:
            tables["gap_bins"] = [{"task": self.name, **self.columns, **own} for own in counted(session)]
        row["cpu_s"] = time.process_time() - begin
        tables["runs"] = [{**row, "lost": tables.pop("lost")[0]["lost"]}]
        return tables

    def _tables(self, done: dict[str, Any], run: Run) -> Tables:
        """The analysis as rows: a table for each of its lists, and one for its single values."""
        mark: Row = {"task": self.name, **self.columns}
        tables: Tables = {"lost": [{"lost": done["lost"]}]}
        single = {name: value for name, value in done.items() if isinstance(value, int | float)}
        for name, value in done.items():
            if isinstance(value, dict):
                single |= {f"{name}_{key}": of for key, of in value.items()}
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                tables[name] = [{**mark, **{key: str(of) if isinstance(of, list) else of for key, of in row.items()}}
                                for row in value]
            elif isinstance(value, list) and value and isinstance(value[0], float):
                tables[name] = [{**mark, "value": of} for of in value]
        tables["single"] = [{**mark, **single}]
        return tables


def tasks(share: float) -> Iterator[Task]:
    """All runs; ``share`` of their full lengths, but never so short that a figure could not be computed."""
    yield from _ipsc860(share)
    yield from _asciq(share)
    yield from _sp2(share)
    yield from _qsnet(share)
    yield from _blind(share)


def _many(full: float, share: float, least: int) -> int:
    return max(round(full * share), least)


def _ipsc860(share: float) -> Iterator[Task]:
    def machine(seed: int, jitter: float = _JITTER_US, **change: Any) -> Callable[[], Machine]:
        return lambda: ipsc860.machine(replace(ipsc860.Model(), **change), seed=seed, jitter_us=jitter)

    few = (0, 4, *range(20, 101, 20), 101, *range(200, 1001, 200))
    for seed in SEEDS:
        yield Task(f"path {seed}", "ipsc860", 2, machine(seed, _LITTLE_US),
                   lambda session: ipsc860.path(session, sizes=few, count=_many(100, share, 10)), {"seed": seed},
                   seed == 1)
    yield Task("path, all sizes", "ipsc860", 2, machine(1, _LITTLE_US),
               lambda session: ipsc860.path(session, count=_many(100, share, 10)), {"seed": 1},
               drawn=True)
    count = _many(100, share, 31)
    for seed in SEEDS:
        for experiment, paths, sizes in (("edges-2", (1, 2, 4, 8), (0, 7000)), ("edges-3", (1, 8), (7000,)),
                                         ("edges-1", (1, 2, 4), (80,)), ("nodes", (1, 2, 3, 4), (0, 7000))):
            yield Task(f"{experiment} {seed}", "ipsc860", 16, machine(seed), _together(experiment, paths, sizes, count),
                       {"seed": seed, "variant": "s = 1"}, seed == 1)
    for held in (0.0, 0.5):
        yield Task(f"edges-2, s = {held:g}", "ipsc860", 16, machine(1, share=held),
                   _together("edges-2", (1, 4, 8), (0,), count), {"seed": 1, "variant": f"s = {held:g}"})
    for ends in (True, False):
        for held in (0.0, 0.5, 1.0):
            variant = f"{'at each end of each leg' if ends else 'before the probe, after the data'}, s = {held:g}"
            yield Task(f"edges-1, {variant}", "ipsc860", 8, machine(1, share=held, ends=ends),
                       _together("edges-1", (1, 2, 4), (6000, 7000), 31), {"seed": 1, "variant": variant})
        yield Task(f"edges-1 sweep, {ends}", "ipsc860", 8, machine(1, share=0.5, ends=ends),
                   _together("edges-1", (1, 2, 3, 4), _sweep(range(0, 201, 10), share), 3),
                   {"seed": 1, "variant": f"sweep {'ends' if ends else 'around'}"})
    yield Task("edges-1, one leg", "ipsc860", 8, machine(1, limit=1 << 30), _together("edges-1", (1, 2), (7000,), 31),
               {"seed": 1, "variant": "no probe"})
    for experiment in ("edges-2", "edges-3"):
        yield Task(f"{experiment} sweep", "ipsc860", 16, machine(1),
                   _together(experiment, (1, 2, 4, 8), _sweep(range(0, 201, 10), share), 3),
                   {"seed": 1, "variant": "sweep"})


def _sweep(small: Sequence[int], share: float) -> list[int]:
    """Sizes of a figure: by 25 bytes, as in the paper, but in a test; and small ones."""
    return sorted({*small, *range(0, 7001, 25 if share >= _SWEEP else 500)})


def _together(experiment: str, paths: Any, sizes: Any, count: int) -> Callable[[Session], None]:
    def program(session: Session) -> None:
        for size in sizes:
            for number in paths:
                ipsc860.contended(session, experiment, number, size, count=count)
    return program


def _asciq(share: float) -> Iterator[Task]:
    def machine(seed: int, nodes: int = 1024, rule: str = "timeline", drop: tuple[int, ...] = (),
                table: Any = asciq.TABLE, slower: Any = None) -> Callable[[], Machine]:
        return lambda: asciq.machine(nodes, noise=asciq.Daemons(table, frozenset(drop)), rule=rule, seed=seed,
                                     slower=slower)

    nodes, each = (range(32), 20) if share >= _SWEEP else ((0, 1, 2, 5, 9, 17, 30, 31), 50)
    yield Task("quantum", "asciq", len(nodes), machine(1, 32, slower={17: 1.25}),
               lambda session: asciq.quantum(session, nodes=nodes, each=each), {"seed": 1, "each": each}, True, True)
    yield Task("each quantum", "asciq", 4, machine(1, 32), lambda session: asciq.quantum(
        session, nodes=(0, 1, 5, 31), each=1, seconds=20.0 if share >= _SWEEP else 3.0), {"seed": 1, "each": 1},
        drawn=True, counted=True)

    def bsp(us: float, seconds: float, kind: int = asciq.ALLREDUCE) -> Callable[[Session], None]:
        return lambda session: asciq.bsp(session, us=us, seconds=seconds, kind=kind, shown_s=min(5.0, seconds / 60))

    # What scatters most over the seeds is as long as in the paper from a quarter on.
    whole = min(4 * share, 1.0)
    long = {5000.0: max(300 * whole, 10), 1000.0: max(60 * share, 3)}
    for us, seconds in long.items():
        for seed in SEEDS:
            for case, drop in CASES.items():
                yield Task(f"bsp {us / 1000:g} ms, {case}, {seed}", "asciq", 4, machine(seed, drop=drop),
                           bsp(us, seconds), {"seed": seed, "case": case, "rule": "timeline"}, seed == 1 and not drop,
                           us == 5000.0 and seed == 1 and not drop)
            misprint = {**asciq.TABLE, asciq.ALL: (Source(24, 16), Source(42, 1.9))}
            yield Task(f"bsp {us / 1000:g} ms, 1.9 ms, {seed}", "asciq", 4, machine(seed, table=misprint),
                       bsp(us, seconds), {"seed": seed, "case": "1.9 ms", "rule": "timeline"})
        for rule in ("absorb", "defer"):
            for case, drop in CASES.items():
                yield Task(f"bsp {us / 1000:g} ms, {case}, {rule}", "asciq", 4, machine(1, rule=rule, drop=drop),
                           bsp(us, max(300 * share, 10) if us == 5000.0 else seconds),
                           {"seed": 1, "case": case, "rule": rule})
    for seed in SEEDS:
        for name, keys in PARTS.items():
            yield Task(f"bsp 5 ms, {name}, {seed}", "asciq", 4,
                       machine(seed, table={key: asciq.TABLE[key] for key in keys}), bsp(5000.0, max(300 * share, 10)),
                       {"seed": seed, "case": name, "rule": "timeline"})
        for nodes in (32, 64, 128, 256, 512):
            yield Task(f"bsp of {nodes}, {seed}", "asciq", 4, machine(seed, nodes), bsp(5000.0, max(100 * whole, 10)),
                       {"seed": seed, "case": "nodes", "rule": "timeline"})
        yield Task(f"barrier, {seed}", "asciq", 4, machine(seed), bsp(5000.0, long[5000.0], asciq.BARRIER),
                   {"seed": seed, "case": "barrier", "rule": "timeline"})
    yield Task("bsp 0 ms", "asciq", 4, machine(1), bsp(0.0, max(0.3 * share, 0.02)),
               {"seed": 1, "case": "0 ms", "rule": "timeline"})


def _sp2(share: float) -> Iterator[Task]:
    def machine(seed: int, noise: Any = None) -> Callable[[], Machine]:
        return lambda: sp2.machine(noise, seed=seed)

    def spread(count: int, ports: Any, sizes: Any = (2, 4, 8, 16, 32), us: float = sp2.LARGE_US
               ) -> Callable[[Session], None]:
        def program(session: Session) -> None:
            for nodes in sizes:
                # Two nodes make few events, and the resampling is from them.
                sp2.all_to_all(session, nodes, count=count * (10 if nodes == 2 else 1), ports=ports, us=us)
        return program

    for seed in SEEDS:
        yield Task(f"exchange {seed}", "sp2", 2, machine(seed),
                   lambda session: sp2.exchange(session, count=_many(100_000, share, 1500)),
                   {"seed": seed, "variant": ""}, seed == 1, seed == 1)
        yield Task(f"all-to-all {seed}", "sp2", 32, machine(seed), spread(_many(100, share, 30), None),
                   {"seed": seed, "variant": ""}, seed == 1, True)
        for ms in sp2.STALLS_MS:
            yield Task(f"bounded {ms:g} ms, {seed}", "sp2", 1, machine(seed, sp2.bounded(ms)),
                       spread(_many(100, share, 30), (0,), us=1e6 / 40.991),
                       {"seed": seed, "variant": f"{ms:g} ms"})
        yield Task(f"free {seed}", "sp2", 1, machine(seed, sp2.Stalls(Source(12.0, 30.0, irregular=True))),
                   spread(_many(100, share, 30), (0,), us=1e6 / 41.05), {"seed": seed, "variant": "free"})
    yield Task("nCUBE", "sp2", 2, machine(1, Quiet()),
               lambda session: sp2.exchange(session, count=_many(2000, share, 100), us=4500.0),
               {"seed": 1, "variant": "nCUBE"})


def _qsnet(share: float) -> Iterator[Task]:
    whole = sorted({*qsnet.SIZES, *qsnet.FINE, *qsnet.TAGGED})

    def one_way(session: Session) -> None:
        for mode in qsnet.MODES:
            fine = mode in (qsnet.Mode("put", ELAN, ELAN), qsnet.Mode("mpi"))
            qsnet.ping(session, Model(), mode, sizes=whole if fine else qsnet.SIZES,
                       count=_many(100, share, 15))

    def both_ways(model: Model, modes: Any, sizes: Any, count: int) -> Callable[[Session], None]:
        def program(session: Session) -> None:
            for mode in modes:
                qsnet.ping(session, model, mode, sizes=sizes, count=count, both=True)
        return program

    def crowd(session: Session) -> None:
        for operation in ("put", "get"):
            for users in (1, 2, 4, 8, 16):
                qsnet.hotspot(session, Model(), qsnet.Mode(operation), users, count=_many(100, share, 31))

    puts = [mode for mode in qsnet.MODES if mode.operation == "put"]
    for seed in SEEDS:
        def machine(seed: int = seed) -> Machine:
            return qsnet.machine(seed=seed, jitter_us=_SMALL_US)

        column = {"seed": seed, "variant": "own"}
        yield Task(f"ping {seed}", "qsnet", 2, machine, one_way, column, seed == 1)
        yield Task(f"bidirectional {seed}", "qsnet", 2, machine,
                   both_ways(Model(), (*puts, qsnet.Mode("mpi")), (0, 64, 512, 4096, *qsnet.SIZES[-4:]), 31), column,
                   seed == 1)
        yield Task(f"hotspot {seed}", "qsnet", 16, machine, crowd, column, seed == 1)
    for name, change in qsnet.VARIANTS.items():
        model = replace(Model(), **change)
        yield Task(f"bidirectional, {name}", "qsnet", 2, lambda model=model: qsnet.machine(model, jitter_us=_SMALL_US),
                   both_ways(model, puts, qsnet.SIZES[-4:], 5), {"seed": 1990, "variant": name})


def _blind(share: float) -> Iterator[Task]:
    """Runs whose parameters the analysis does not know: what was planted is in the columns."""
    for seed in BLIND_SEEDS:
        model, planted = drawn_ipsc860(Random(seed))
        yield Task(f"blind ipsc860 {seed}", "ipsc860", 2,
                   lambda model=model, seed=seed: ipsc860.machine(model, seed=seed), _lines_and_plateaus,
                   {"seed": seed, **planted})
        noise, slower, rows = drawn_asciq(Random(seed))
        yield Task(f"blind asciq {seed}", "asciq", 4,
                   lambda noise=noise, slower=slower, seed=seed: asciq.machine(32, noise=noise, slower=slower,
                                                                               seed=seed),
                   lambda session, slower=slower: asciq.quantum(session, nodes=(0, 1, 31, *slower),
                                                                        each=20 if share >= 1 else 125),
                   {"seed": seed, "planted": json.dumps(rows)})
        system, planted = drawn_sp2(Random(seed))
        yield Task(f"blind sp2 {seed}", "sp2", 1, lambda system=system, seed=seed: sp2.machine(system, seed=seed),
                   lambda session: sp2.exchange(session, count=_many(20_000, share, 3000)), {"seed": seed, **planted})
        elan, planted = drawn_qsnet(Random(seed))
        yield Task(f"blind qsnet {seed}", "qsnet", 2, lambda elan=elan, seed=seed: qsnet.machine(elan, seed=seed),
                   lambda session, elan=elan: _steps_and_rates(session, elan), {"seed": seed, **planted})


def _lines_and_plateaus(session: Session) -> None:
    ipsc860.path(session, distances=(1, 3, 7), sizes=(*range(10, 101, 30), *range(110, 1001, 178)), count=1)
    ipsc860.path(session, distances=(1,), sizes=range(1100, 9201, 100), count=1)


def _steps_and_rates(session: Session, model: Model) -> None:
    large = qsnet.SIZES[-3:]
    qsnet.ping(session, model, qsnet.Mode("put", ELAN, ELAN), sizes=(1, 16, *qsnet.FINE, *large), count=1)
    for mode in (qsnet.Mode("put", MAIN, ELAN), qsnet.Mode("put", ELAN, MAIN), qsnet.Mode()):
        qsnet.ping(session, model, mode, sizes=(1, 16, 128, *large), count=3)
    qsnet.ping(session, model, qsnet.Mode("mpi"), sizes=(1, 16, 128, *qsnet.TAGGED), count=2)
    qsnet.ping(session, model, qsnet.Mode("put", ELAN, ELAN), sizes=large, count=3, both=True)
