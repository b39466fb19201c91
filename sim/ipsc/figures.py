"""The paper's figures, drawn from what was measured: SVG."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypermon.host.errors import HypermonError

__all__ = ["available", "bandwidth", "merging", "rates", "volumes"]

_Series = npt.NDArray[np.float64]


def available() -> None:
    """Raises HypermonError if what draws is not installed."""
    if find_spec("matplotlib") is None:
        raise HypermonError("the figures need matplotlib, which is not installed: pip install 'hypermon[paper]'")


def _axes(rows: int = 1) -> tuple[Any, Any]:
    """A figure and its axes."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    # The same picture gives the same file.
    pyplot.rcParams.update({"svg.hashsalt": "hypermon", "svg.fonttype": "none", "font.size": 9,
                            "axes.spines.top": False, "axes.spines.right": False})
    return pyplot.subplots(rows, 1, figsize=(7, 3.2 if rows == 1 else 1.8 * rows), squeeze=False, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def bandwidth(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Figure 8: megabytes a second across the bus by the delay, a curve a number of nodes; overruns are rings."""
    figure, [[axes]] = _axes()
    for nodes in sorted({run["nodes"] for run in runs}):
        own = sorted((run for run in runs if run["nodes"] == nodes), key=lambda run: run["delay"])
        whole = [run for run in own if not run["lost"]]
        [line] = axes.plot([run["delay"] for run in whole], [run["bytes_per_second"] / 1e6 for run in whole], ".-",
                           label=f"{nodes} node{'s' * (nodes > 1)}")
        axes.plot([run["delay"] for run in own if run["lost"]], [run["bytes_per_second"] / 1e6 for run in own
                                                               if run["lost"]], "o", mfc="none", color=line.get_color())
    axes.set(xlabel="delay, iterations (rings: overrun)", ylabel="MB/s across the bus", ylim=(0, None))
    axes.legend()
    _save(figure, path)


def merging(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Figure 9: merged nibbles in percent by nodes, a curve for each delay; dashed what independent phases give."""
    figure, [[axes]] = _axes()
    for delay in sorted({run["delay"] for run in runs}):
        own = sorted((run for run in runs if run["delay"] == delay and not run["lost"]), key=lambda run: run["nodes"])
        if len(own) > 1:
            nodes = [run["nodes"] for run in own]
            [line] = axes.plot(nodes, [100 * run["merged"] for run in own], "o-", label=f"delay {delay}")
            axes.plot(nodes, [100 * run["expected_merged"] for run in own], "--", color=line.get_color())
    axes.set(xlabel="nodes", ylabel="merged nibbles, %", ylim=(0, None))
    axes.legend()
    _save(figure, path)


def rates(path: Path, curves: Mapping[int, tuple[_Series, float]]) -> None:
    """Figures 10 to 13: frames a second in intervals of the run, a curve for each number of nodes."""
    figure, [[axes]] = _axes()
    for nodes, (series, seconds) in sorted(curves.items(), reverse=True):
        axes.step(np.arange(len(series)), series / 1000, where="post", linewidth=1,
                  label=f"{nodes} node{'s' * (nodes > 1)}: {seconds:.3g} s")
    axes.set(xlabel="interval", ylabel="thousand frames/s", ylim=(0, None))
    axes.legend()
    _save(figure, path)


def volumes(path: Path, curves: Mapping[int, npt.NDArray[np.int64]]) -> None:
    """Figure 14: bytes of events in each millisecond."""
    figure, axes = _axes(len(curves))
    for [own], (nodes, series) in zip(axes, sorted(curves.items()), strict=True):
        own.plot(np.arange(len(series)), series / 1000, linewidth=0.6)
        own.set(ylabel="MB/s", ylim=(0, None), title=f"{nodes} nodes")
    axes[-1][0].set(xlabel="time, ms")
    _save(figure, path)
