"""The paper's figures, drawn from the measured values: SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.host.report.style import TEXT
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.monitor import CLASSIC
from hypermon.studies.ipsc.runs.printed_values import NODES, ONE_NODE, TABLE_2, TITLES, TWO_NODES, VOLUMES
from hypermon.studies.ipsc.runs.tables import Evaluation, Series
from hypermon.studies.page.figures import cross, legend, panes, save

__all__ = ["bandwidth", "merging", "rates", "vectors", "volumes", "wished", "writes"]

#: Megabytes of a frame.
_FRAME_MB = 16e-6


def _axes(rows: int = 1, inches: float = 1.8) -> tuple[Any, Any]:
    """A figure and its axes; with several rows, each has the given height, and one has at least 3.2 inches."""
    return panes(rows, 1, 7, max(3.2, inches) if rows == 1 else inches * rows)


def _cross(axes: Any, x: Any, y: Any, label: str = "paper") -> None:
    cross(axes, x, y, label)


def _line(axes: Any, y: float, label: str) -> None:
    axes.axhline(y, color=TEXT, linewidth=0.8, linestyle="--")
    axes.annotate(label, (1, y), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)


def bandwidth(path: Path, done: Evaluation) -> None:
    """Figure 8: megabytes per second across the bus by the delay, one curve per number of nodes, of those that the
    board was not overrun by; rings: what came through where it was.
    """
    figure, [[axes]] = _axes()
    runs = done.tables["bandwidth"]
    for nodes in sorted({run["nodes"] for run in runs}):
        own = sorted((run for run in runs if run["nodes"] == nodes), key=lambda run: run["delay"])
        whole = [run["delay"] for run in own if not run["lost"]]
        rates = [np.mean([row["frames_per_second"] for row in done.tables["bench_seeds"]
                          if (row["nodes"], row["delay"]) == (nodes, delay)]) * _FRAME_MB for delay in whole]
        [line] = axes.plot(whole, rates, ".-", label=f"{nodes} node{'s' * (nodes > 1)}")
        axes.plot([run["delay"] for run in own if run["lost"]], [run["bytes_per_second"] / 1e6 for run in own
                                                               if run["lost"]], "o", mfc="none", color=line.get_color())
    _cross(axes, [0, 0], [ONE_NODE * _FRAME_MB, TWO_NODES * _FRAME_MB])
    rate = (CLASSIC.rate or 0) / 1e6
    _line(axes, rate, "the host reads")
    _line(axes, rate * (1 - CLASSIC.stop_ms / CLASSIC.every_ms), "with its pauses")
    axes.set(xlabel="delay, iterations (rings: overrun)", ylabel="MB/s across the bus", ylim=(0, None))
    legend(axes)
    save(figure, path)


def merging(path: Path, done: Evaluation) -> None:
    """Figure 9: merged nibbles in percent by nodes, one curve per delay, with the standard deviation of the seeds;
    dashed: the result of independent phases.
    """
    figure, [[axes]] = _axes()
    runs = done.tables["bandwidth"]
    for delay in sorted({run["delay"] for run in runs}):
        nodes = sorted({run["nodes"] for run in runs})
        merged = [[100 * row["merged"] for row in done.tables["bench_seeds"]
                   if (row["nodes"], row["delay"]) == (count, delay)] for count in nodes]
        line = axes.errorbar(nodes, [np.mean(own) for own in merged], [np.std(own, ddof=1) for own in merged], fmt="o",
                             markersize=4, capsize=3, label=f"delay {delay}")
        axes.plot(nodes, [100 * done.bench_row(count, delay)["expected_merged"] for count in nodes], "--", linewidth=1,
                  color=line[0].get_color())
    axes.set(xlabel="nodes (a board that loses nothing)", ylabel="merged nibbles, %", ylim=(0, None))
    legend(axes)
    save(figure, path)


def rates(path: Path, program: str, curves: Mapping[int, tuple[Series, float]]) -> None:
    """Figures 10 to 13: frames per second in intervals of the run, one pane per number of nodes; cross: the mean of
    Table 2.
    """
    figure, panes = _axes(len(curves), 1.2)
    for [axes], (nodes, (series, seconds)) in zip(panes, sorted(curves.items(), reverse=True), strict=True):
        axes.stairs(series / 1000, label=f"{nodes} node{'s' * (nodes > 1)}: {seconds:.3g} s")
        printed = TABLE_2[program, nodes]
        if printed.frames:
            _cross(axes, [len(series) / 2], [printed.frames / printed.hard / 1000], "paper's mean")
        axes.set(xlim=(0, len(series)), ylim=(0, None))
        legend(axes)
    panes[-1][0].set(xlabel="interval")
    figure.supylabel("thousand frames/s", fontsize=9)
    save(figure, path)


def volumes(path: Path, curves: Mapping[int, Series]) -> None:
    """Figure 14: bytes of events in each millisecond; cross: the paper's mean."""
    figure, axes = _axes(len(curves))
    for [own], (nodes, series) in zip(axes, sorted(curves.items()), strict=True):
        own.plot(np.arange(len(series)), series / 1000, linewidth=0.6)
        own.axhline(series.mean() / 1000, color="C1", linewidth=1, label="mean")
        _cross(own, [len(series) / 2], [VOLUMES[nodes] / 1000], "paper's mean")
        own.set(ylabel="MB/s", xlim=(0, len(series)), ylim=(0, None), title=f"{nodes} nodes")
        legend(own)
    axes[-1][0].set(xlabel="time, ms")
    save(figure, path)


def _levels(axes: Any, rows: Sequence[Mapping[str, Any]], names: Sequence[str], bits: Sequence[Sequence[int]]) -> None:
    """Lines of a logic analyser, the first on top."""
    time = np.array([row["ns"] for row in rows]) / 1000
    for place, (name, levels) in enumerate(zip(names, bits, strict=True)):
        base = len(names) - 1 - place
        axes.step(time, base + 0.6 * np.array(levels), where="post", linewidth=1.2, color="C0")
        axes.annotate(name, (0, base + 0.3), xycoords=("axes fraction", "data"), xytext=(-6, 0),
                      textcoords="offset points", ha="right", va="center")
    axes.set(xlabel="us", xlim=(0, time[-1]), ylim=(-0.4, len(names)), yticks=[])
    axes.spines["left"].set_visible(False)


def writes(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Figure 3: the port's bits in two nibbles, and what the node's queue takes."""
    figure, [[axes]] = _axes()
    names = [*(f"data {bit}" for bit in (3, 2, 1, 0)), "strobe", "to the queue"]
    bits = [[row["data"] >> bit & 1 for row in rows] for bit in (3, 2, 1, 0)]
    _levels(axes, rows, names, [*bits, [row["strobe"] & 1 for row in rows], [row["push"] & 1 for row in rows]])
    for row in rows:
        if row["push"]:
            axes.annotate(f"nibble {row['nibble'] & 15:X}", (row["ns"] / 1000, 0.3), xytext=(6, 0),
                          textcoords="offset points", va="center")
    save(figure, path)


def vectors(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Figure 4: strobes as the windows take them, and the strobe vectors of the frames."""
    figure, [[axes]] = _axes(inches=4.2)
    nodes = max(row["strobe"] for row in rows).bit_length()
    names = [*(f"strobe {node}" for node in range(nodes)), "taken", "frame"]
    bits = [[row["strobe"] >> node & 1 for row in rows] for node in range(nodes)]
    _levels(axes, rows, names, [*bits, [bool(row["push"]) for row in rows], [row["vector"] >= 0 for row in rows]])
    for row in rows:
        if row["end"]:
            axes.axvline((row["ns"] + rows[1]["ns"]) / 1000, color=TEXT, linewidth=0.6, linestyle=":")
        if row["vector"] >= 0:
            at = row["ns"] / 1000
            axes.annotate(f"window {row['stamp']}", (at, -0.1), ha="center", va="top", fontsize=8)
            for node in range(nodes):
                own = row["vector"] >> node & 1
                axes.annotate(str(node), (at, 0.3), xytext=(8 + 11 * node, 0), textcoords="offset points", ha="center",
                              va="center", fontsize=7, color="white" if own else TEXT,
                              bbox={"boxstyle": "square,pad=0.25", "fc": "C0" if own else "none", "ec": TEXT,
                                    "lw": 0.5})
    save(figure, path)


def wished(path: Path, done: Evaluation) -> None:
    """The cost of recording on eight nodes: the program's time, and bytes, by recorder."""
    figure, [[slower], [larger]] = _axes(2, 2.4)
    names = {"software": "software", "hardware": "board of 1990", "extended": "extended board", "wide": "8-bit ports",
             "adapter": "adapters"}
    at = np.arange(len(PROGRAMS))
    for place, (how, name) in enumerate(names.items()):
        runs = [(done.row(program, NODES[-1], "raw"), done.row(program, NODES[-1], "software"),
                 done.row(program, NODES[-1], how)) for program in PROGRAMS]
        beside = at + (place - 2) * 0.16
        slower.bar(beside, [100 * (own["seconds"] / raw["seconds"] - 1) for raw, _, own in runs], 0.15, label=name)
        larger.bar(beside, [own["logged"] / soft["logged"] for _, soft, own in runs], 0.15)
    slower.set(ylabel="slower than raw, %", yscale="log")
    larger.set(ylabel="bytes : software's", yscale="log")
    larger.axhline(1, color=TEXT, linewidth=0.6)
    printed = [TABLE_2[program, NODES[-1]] for program in PROGRAMS]
    for place, column in enumerate(("soft", "hard")):
        _cross(slower, at + (place - 2) * 0.16, [100 * (getattr(row, column) / row.raw - 1) for row in printed],
               "paper" if not place else "")
    logged = [(beside, (row.hard_bytes or 0) / row.soft_bytes) for beside, row in zip(at - 0.16, printed, strict=True)
              if row.hard_bytes]
    _cross(larger, *zip(*logged, strict=True))
    for axes in (slower, larger):
        axes.set_xticks(at, [TITLES[program] for program in PROGRAMS])
        axes.yaxis.set_major_formatter("{x:g}")
    legend(slower)
    save(figure, path)
