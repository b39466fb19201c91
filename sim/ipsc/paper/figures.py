"""The paper's figures, drawn from the measured values: SVG."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from hypermon.host.errors import HypermonError
from hypermon.sim.ipsc.programs import PROGRAMS
from hypermon.sim.ipsc.runs.printed_values import NODES, TITLES
from hypermon.sim.ipsc.runs.tables import Evaluation, Series

__all__ = ["available", "bandwidth", "merging", "rates", "volumes", "wished"]


def available() -> None:
    """Raises HypermonError if the drawing library is not installed."""
    if find_spec("matplotlib") is None:
        raise HypermonError("the figures need matplotlib, which is not installed: pip install 'hypermon[paper]'")


def _axes(rows: int = 1, inches: float = 1.8) -> tuple[Any, Any]:
    """A figure and its axes; with several rows, each has the given height."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    # The same picture gives the same file.
    pyplot.rcParams.update({"svg.hashsalt": "hypermon", "svg.fonttype": "none", "font.size": 9,
                            "axes.spines.top": False, "axes.spines.right": False})
    size = (7, 3.2 if rows == 1 else inches * rows)
    return pyplot.subplots(rows, 1, figsize=size, squeeze=False, layout="constrained")


def _legend(axes: Any) -> None:
    """Beside the axes, where no curve is."""
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def bandwidth(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Figure 8: megabytes per second across the bus by the delay, one curve per number of nodes; overruns are rings."""
    figure, [[axes]] = _axes()
    for nodes in sorted({run["nodes"] for run in runs}):
        own = sorted((run for run in runs if run["nodes"] == nodes), key=lambda run: run["delay"])
        whole = [run for run in own if not run["lost"]]
        [line] = axes.plot([run["delay"] for run in whole], [run["bytes_per_second"] / 1e6 for run in whole], ".-",
                           label=f"{nodes} node{'s' * (nodes > 1)}")
        axes.plot([run["delay"] for run in own if run["lost"]], [run["bytes_per_second"] / 1e6 for run in own
                                                               if run["lost"]], "o", mfc="none", color=line.get_color())
    axes.set(xlabel="delay, iterations (rings: overrun)", ylabel="MB/s across the bus", ylim=(0, None))
    _legend(axes)
    _save(figure, path)


def merging(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Figure 9: merged nibbles in percent by nodes, one curve per delay; dashed: the result of independent phases."""
    figure, [[axes]] = _axes()
    for delay in sorted({run["delay"] for run in runs}):
        own = sorted((run for run in runs if run["delay"] == delay and not run["lost"]), key=lambda run: run["nodes"])
        if len(own) > 1:
            nodes = [run["nodes"] for run in own]
            [line] = axes.plot(nodes, [100 * run["merged"] for run in own], "o-", label=f"delay {delay}")
            axes.plot(nodes, [100 * run["expected_merged"] for run in own], "--", color=line.get_color())
    axes.set(xlabel="nodes", ylabel="merged nibbles, %", ylim=(0, None))
    _legend(axes)
    _save(figure, path)


def rates(path: Path, curves: Mapping[int, tuple[Series, float]]) -> None:
    """Figures 10 to 13: frames per second in intervals of the run, one curve per number of nodes."""
    figure, [[axes]] = _axes()
    for nodes, (series, seconds) in sorted(curves.items(), reverse=True):
        axes.step(np.arange(len(series)), series / 1000, where="post", linewidth=1,
                  label=f"{nodes} node{'s' * (nodes > 1)}: {seconds:.3g} s")
    axes.set(xlabel="interval", ylabel="thousand frames/s", xlim=(0, None), ylim=(0, None))
    _legend(axes)
    _save(figure, path)


def volumes(path: Path, curves: Mapping[int, Series]) -> None:
    """Figure 14: bytes of events in each millisecond."""
    figure, axes = _axes(len(curves))
    for [own], (nodes, series) in zip(axes, sorted(curves.items()), strict=True):
        own.plot(np.arange(len(series)), series / 1000, linewidth=0.6)
        own.set(ylabel="MB/s", xlim=(0, len(series)), ylim=(0, None), title=f"{nodes} nodes")
    axes[-1][0].set(xlabel="time, ms")
    _save(figure, path)


def wished(path: Path, done: Evaluation) -> None:
    """The cost of recording on eight nodes: the program's time, and bytes, by recorder."""
    figure, [[slower], [larger]] = _axes(2, 2.4)
    names = {"software": "software", "hardware": "board of 1990", "extended": "extended board", "wide": "8-bit ports"}
    at = np.arange(len(PROGRAMS))
    for place, (how, name) in enumerate(names.items()):
        runs = [(done.row(program, NODES[-1], "raw"), done.row(program, NODES[-1], "software"),
                 done.row(program, NODES[-1], how)) for program in PROGRAMS]
        beside = at + (place - 1.5) * 0.2
        slower.bar(beside, [100 * (own["seconds"] / raw["seconds"] - 1) for raw, _, own in runs], 0.18, label=name)
        larger.bar(beside, [own["logged"] / soft["logged"] for _, soft, own in runs], 0.18)
    slower.set(ylabel="slower than raw, %", yscale="log")
    larger.set(ylabel="bytes : software's", yscale="log")
    larger.axhline(1, color="black", linewidth=0.6)
    for axes in (slower, larger):
        axes.set_xticks(at, [TITLES[program] for program in PROGRAMS])
        axes.yaxis.set_major_formatter("{x:g}")
    _legend(slower)
    _save(figure, path)
