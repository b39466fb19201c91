"""The style of a report's plots: legible at half their size, in light and dark, for colour-blind readers.

A plot is drawn in light colours. Its SVG then names them as variables, whose values follow the reader's theme.
"""

import re
from typing import Any

__all__ = ["GREY", "GRID", "INK", "LOSS", "STYLE", "TEXT", "lines", "themed"]

TEXT, GRID, GREY = "#161616", "#e1e1e1", "#767676"
INK, LOSS = "#1f4e79", "#b3400f"
#: Eight colours that colour-blind people can tell apart (Okabe and Ito, black and yellow replaced); with two kinds of
#: line they are enough for 16 nodes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c8c8c")
_KINDS = ("-", "--")
#: Light colours, and those in their place on a dark ground.
_DARK = {TEXT: "#e8e8e8", GRID: "#3a3f46", GREY: "#a2a8b0", INK: "#86bdf0", LOSS: "#ffa07a",
         "#0072b2": "#4fb0ea", "#d55e00": "#ff8a3d", "#009e73": "#35cfa3", "#7a5195": "#b995d6"}

STYLE: dict[str, Any] = {
    "figure.figsize": (7.2, 2.4), "font.family": "serif", "font.serif": ["STIXGeneral"], "mathtext.fontset": "stix",
    "font.size": 12, "axes.titlesize": 12, "axes.labelsize": 12, "xtick.labelsize": 11, "ytick.labelsize": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "axes.grid": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False,
    "legend.fontsize": 11, "svg.fonttype": "path", "svg.hashsalt": "hypermon", "lines.linewidth": 1.4,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7, "axes.formatter.use_mathtext": True,
    "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
    "savefig.transparent": True,
}


def lines(count: int) -> list[dict[str, str]]:
    """Colour and kind of each of up to 16 lines; after these they repeat."""
    own = [{"color": colour, "linestyle": kind} for kind in _KINDS for colour in _COLOURS]
    return [own[k % len(own)] for k in range(count)]


def themed(svg: str) -> str:
    """A plot whose colours follow the theme. Rasters and colour scales, which are dark on light, are inverted."""
    def named(colour: str) -> str:
        return f"--c{colour[1:]}"

    light = "".join(f"{named(colour)}:{colour};" for colour in _DARK)
    dark = "".join(f"{named(colour)}:{other};" for colour, other in _DARK.items())
    style = (f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}"
             "image,g[id^=QuadMesh]{filter:invert(1) hue-rotate(180deg)}}</style>")
    svg = re.sub("|".join(_DARK), lambda found: f"var({named(found[0])})", svg)
    head = svg.index(">", svg.index("<svg")) + 1
    return svg[:head] + style + svg[head:]
