"""Figures of the pages that compare a paper with recordings: SVG, in the style of reports."""

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hypermon.host.errors import HypermonError, to_install
from hypermon.host.report.style import STYLE, TEXT, lines, themed
from hypermon.studies.page.compact import compact

__all__ = ["available", "cross", "legend", "panes", "save"]

#: Colours of as many lines. The kinds of lines are left to the pages: dashed is the paper's formula or bound.
_COLOURS = 8
#: A page's figure is wider than a report's: it has panes side by side, and a legend beside them.
_SMALLER = {"font.size": 10, "axes.titlesize": 11, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
            "legend.fontsize": 9}


def available() -> None:
    """Raises HypermonError if the drawing library is not installed."""
    if find_spec("matplotlib") is None:
        raise HypermonError(f"the figures need matplotlib, which is not installed: {to_install('report')}")


def panes(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """A figure of that many inches, and its axes as rows of columns."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    colours = pyplot.cycler(color=[own["color"] for own in lines(_COLOURS)])
    pyplot.rcParams.update({**STYLE, **_SMALLER, "axes.prop_cycle": colours})
    return pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Writes the figure in few bytes, with colours that follow the reader's theme, and closes it.

    The same picture gives the same file.
    """
    from matplotlib import pyplot

    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    path.write_text(compact(themed(out.getvalue())), "utf-8")


def cross(axes: Any, x: Sequence[float], y: Sequence[float], label: str) -> None:
    """The paper's printed points; nothing else of a figure has the colour of the text and is a cross."""
    axes.plot(x, y, "x", color=TEXT, markersize=7, markeredgewidth=1.4, label=label, zorder=5)


def legend(axes: Any) -> None:
    """Beside the axes, where no curve is, if anything has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
