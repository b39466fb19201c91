"""The page of the evaluation: what was measured beside what the paper prints."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.sim.ipsc.benchmark import NIBBLES
from hypermon.sim.ipsc.cpu import Cpu
from hypermon.sim.ipsc.evaluation import DELAYS, Evaluation
from hypermon.sim.ipsc.monitor import CLASSIC
from hypermon.sim.ipsc.printed import NODES, TABLE_2, Printed
from hypermon.sim.ipsc.programs import PROGRAMS

__all__ = ["page"]

TITLES = {"simplex": "Simplex", "life": "Life", "matmul": "MatMul", "place": "Place"}
_PAGE = Path(__file__).with_name("page.md")
_FIGURES = {"simplex": 10, "life": 11, "matmul": 12, "place": 13}


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [list(head)]
    lines += [["---:"] * len(lines[0]), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _deviation(value: float, printed: float) -> str:
    return f"{100 * (value / printed - 1):+.1f} %"


def _each() -> list[tuple[str, int, Printed]]:
    return [(program, nodes, TABLE_2[program, nodes]) for program in PROGRAMS for nodes in NODES]


def _times(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        raw, soft, hard = (done.row(program, nodes, how) for how in ("raw", "software", "hardware"))
        share = raw["share"]
        seconds = [row["seconds"] / share for row in (raw, soft, hard)]
        rows.append((f"{TITLES[program]} {nodes}", f"{100 * share:.3g} %",
                     *(f"{ours:.3f} ({theirs:.3f}) {_deviation(ours, theirs)}" for ours, theirs in
                       zip(seconds, printed[:3], strict=True))))
    return _table(("program, nodes", "played", "raw, s", "soft, s", "hard, s"), rows)


def _volumes(done: Evaluation) -> str:
    rows = []
    for program, nodes, printed in _each():
        soft, hard = (done.row(program, nodes, how) for how in ("software", "hardware"))
        share = soft["share"]
        soft_bytes, hard_bytes = soft["logged"] / share, hard["logged"] / share
        if hard["lost"]:
            said = f"overrun, {hard['lost']:,} of {hard['nibbles']:,} nibbles refused"
            said += " (overrun)" if printed.hard_bytes is None else f" ({printed.hard_bytes:,})"
        elif printed.hard_bytes is None:
            said = f"{hard_bytes:,.0f} (overrun)"
        else:
            said = f"{hard_bytes:,.0f} ({printed.hard_bytes:,}) {_deviation(hard_bytes, printed.hard_bytes)}"
        theirs = "-" if printed.hard_bytes is None else f"{printed.hard_bytes / printed.soft_bytes:.1f}"
        rows.append((f"{TITLES[program]} {nodes}",
                     f"{soft_bytes:,.0f} ({printed.soft_bytes:,}) {_deviation(soft_bytes, printed.soft_bytes)}", said,
                     f"{hard_bytes / soft_bytes:.1f} ({theirs})", f"{100 * hard['merged']:.1f} %"))
    return _table(("program, nodes", "soft, bytes", "hard, bytes", "hard : soft", "merged"), rows)


def _wished(done: Evaluation) -> str:
    rows = []
    for program, nodes, _ in _each():
        raw, soft, hard, more = (done.row(program, nodes, how) for how in ("raw", "software", "hardware", "extended"))
        rows.append((f"{TITLES[program]} {nodes}",
                     *(f"{100 * (row['seconds'] / raw['seconds'] - 1):.2f} %" for row in (soft, hard, more)),
                     f"{hard['logged'] / soft['logged']:.1f}", f"{more['logged'] / soft['logged']:.2f}",
                     f"{hard['lost']:,}", f"{more['lost']:,}"))
    return _table(("program, nodes", "slower: software", "1990", "extended", "volume: 1990", "extended", "lost: 1990",
                   "extended"), rows)


def _causality(done: Evaluation) -> str:
    rows = []
    for program, nodes, _ in _each():
        if nodes > 1:
            cells = [f"{row['early']:,} of {row['messages']:,}" for row in
                     (done.row(program, nodes, how) for how in ("software", "hardware", "extended"))]
            rows.append((f"{TITLES[program]} {nodes}", *cells))
    return _table(("program, nodes", "by the nodes' clocks", "by the board of 1990", "by the extended board"), rows)


def _bench(done: Evaluation) -> str:
    rows = []
    for row in done.bench:
        printed = {(1, 0): 113_000, (2, 0): 202_000}.get((row["nodes"], row["delay"]))
        overrun = f"overrun, {row['lost']:,} refused" if row["lost"] else "-"
        rate = row["frames_per_second"]
        rows.append((row["nodes"], row["delay"], f"{rate:,.0f}", f"{row['expected_frames_per_second']:,.0f}",
                     f"{printed:,} {_deviation(rate, printed)}" if printed else "shape only",
                     f"{row['bytes_per_second'] / 1e6:.2f}", f"{100 * row['merged']:.1f}",
                     f"{100 * row['expected_merged']:.1f}", overrun))
    return _table(("nodes", "delay", "frames/s", "closed form", "paper", "MB/s", "merged, %", "closed form", "overrun"),
                  rows)


def _bursts(done: Evaluation) -> str:
    printed = {4: 82, 8: 276, 16: 629}
    rows = []
    for nodes, series in sorted(done.volumes.items()):
        twenty = np.convolve(series, np.ones(20), "valid").max() / 20 if len(series) >= 20 else series.max()
        mean = series.sum() / len(series)
        rows.append((nodes, f"{mean:.0f} ({printed[nodes]}) {_deviation(mean, printed[nodes])}",
                     f"{twenty / 1000:.2f}", f"{series.max() / 1000:.2f}"))
    return _table(("nodes", "mean, KB/s", "highest in 20 ms, MB/s", "in 1 ms, MB/s"), rows)


def _agreement(done: Evaluation) -> dict[str, Any]:
    """How well things agree, in percent and points, over all runs that were not overrun; and what was counted."""
    whole = [(program, nodes, printed, done.row(program, nodes, "hardware")) for program, nodes, printed in _each()]
    hard = {(program, nodes): abs(row["seconds"] / row["share"] / printed.hard - 1)
            for program, nodes, printed, row in whole if not row["lost"]}
    frames = [abs(row["logged"] / row["share"] / printed.hard_bytes - 1) for program, nodes, printed, row in whole
              if printed.hard_bytes and not row["lost"] and (nodes == 1 or program in ("life", "place"))]
    software = [row for row in done.table if row["how"] == "software"]
    boards = [row for row in done.table if row["how"] in ("hardware", "extended")]
    overrun = done.row("place", NODES[-1], "hardware")["lost"]
    return {
        "few": 100 * max(deviation for (_, nodes), deviation in hard.items() if nodes <= 2),
        "many": 100 * max(deviation for (_, nodes), deviation in hard.items() if nodes > 2),
        "frames": 100 * max(frames),
        "merged": 100 * max(abs(row["merged"] - row["expected_merged"]) for row in done.bench if not row["lost"]),
        "place": "overruns the board, as it did in 1990" if overrun else "did not overrun the board in so short a run",
        "early_soft": sum(row["early"] for row in software), "messages": sum(row["messages"] for row in software),
        "early": f"{sum(row['early'] for row in boards) or 'none'}",
        "lost": f"{sum(row['lost'] for row in boards if row['how'] == 'extended') or 'nothing'}",
    }


def page(done: Evaluation, command: str, minutes: float) -> str:
    """The whole page: ``page.md``, with what was measured.

    Parameters
    ----------
    command : that made it. ``minutes``: that it took.
    """
    cpu = Cpu()
    alone, two = done.bench_row(1, 0)["frames_per_second"], done.bench_row(2, 0)
    million, recorded = NIBBLES * 1e6 / alone, cpu.us(cpu.record)
    stop, drained = CLASSIC.stop_ms / CLASSIC.every_ms, (CLASSIC.rate or 0) / 1e6
    figures = "\n\n".join(
        f"**Figure {number}**, *{TITLES[program]}*:\n\n![Figure {number}](paper/figure-{number}.svg)"
        for program, number in _FIGURES.items())
    checked = "\n".join(f"- *{TITLES[program]}*: {text}" for (program, nodes), text in sorted(done.checked.items())
                        if nodes == NODES[-1])
    return _PAGE.read_text("utf-8").format(
        command=command, minutes=minutes, clock=CLASSIC.geometry.clock_hz / 1e6,
        node_depth=CLASSIC.geometry.node_depth, frame_depth=CLASSIC.geometry.frame_depth,
        alone=alone, million=million, recorded=recorded, ratio=million / recorded,
        two=two["frames_per_second"], two_expected=two["expected_frames_per_second"],
        nibble=cpu.nibble, iteration=cpu.iteration, event=cpu.event, one_write=cpu.nibble - cpu.write,
        drained=drained, stop=100 * stop, stop_ms=CLASSIC.stop_ms, average=drained * (1 - stop),
        bench=_bench(done), times=_times(done), volumes=_volumes(done), wished=_wished(done),
        causality=_causality(done), bursts=_bursts(done), figures=figures, checked=checked,
        delays=", ".join(map(str, DELAYS)), **_agreement(done))
