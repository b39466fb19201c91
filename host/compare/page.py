"""A comparison as one self-contained page of HTML: figures, distributions over each other, timelines above each other.
"""

import html
import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from hypermon.host.analysis.stats import duration_text
from hypermon.host.compare.comparison import Figure
from hypermon.host.compare.estimates import Floats, Ratio, Samples
from hypermon.host.compare.lanes import COLUMNS, LANES, Lanes, Timeline
from hypermon.host.compare.limits import Broken
from hypermon.host.compare.recording import Measure
from hypermon.host.compare.tables import TITLES, overall, row_of, sentences
from hypermon.host.text.printable import printable

__all__ = ["comparison_page"]

T = TypeVar("T")
#: Points of a distribution.
_POINTS = 200
#: An axis of times is logarithmic if the longest is at least this many times as long as the shortest.
_LOGARITHMIC = 50
#: Colours of states that readers who are colour-blind can tell apart, and of all others.
_COLOURS, _OTHER = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195"), "#8c8c8c"
_WIDE, _LABEL, _HIGH, _STEP = 1000, 110, 13, 17
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #161616; --quiet: #555; --ground: #fff; --rule: #d5d5d5; --a: #0072b2;
        --b: #d55e00; --loss: #a8330a; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e8e8e8; --quiet: #a9afb7; --ground: #15181d; --rule: #3a3f46;
        --a: #4fb0ea; --b: #ff8a3d; --loss: #ffa07a; }} }}
body {{ max-width: 64rem; margin: 2rem auto; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; color: var(--ink);
       background: var(--ground); }}
h1 {{ font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }} h2 {{ font-size: 1.1rem; margin: 2rem 0 .4rem; }}
.quiet {{ color: var(--quiet); }} .a {{ color: var(--a); }} .b {{ color: var(--b); }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .15rem 1rem .15rem 0; text-align: right; white-space: nowrap;
       font-variant-numeric: tabular-nums; }}
td:first-child, th:first-child, td:last-child, th:last-child {{ text-align: left; }}
th {{ font-weight: normal; color: var(--quiet); border-bottom: 1px solid var(--rule); }}
tr.higher td:last-child, tr.lower td:last-child {{ font-weight: 600; color: var(--loss); }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1rem 2rem; }}
figure {{ margin: 0; }} figcaption {{ font-size: .9rem; overflow-wrap: anywhere; }}
svg {{ width: 100%; height: auto; display: block; }} .wide svg {{ min-width: 42rem; }}
svg text {{ font-size: 12px; fill: var(--ink); }} svg .quiet {{ fill: var(--quiet); }}
.rule {{ stroke: var(--rule); }} .lost {{ fill: var(--loss); }} .at {{ stroke: var(--ink); stroke-dasharray: 3 3; }}
.line {{ fill: none; stroke-width: 1.8; }} .line.a {{ stroke: var(--a); }}
.line.b {{ stroke: var(--b); stroke-dasharray: 6 3; }}
.key {{ display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p><b>{verdict}</b> <span class="quiet">{changed}</span></p>
{body}
</body>
</html>
"""


def comparison_page(names: Sequence[str], figures: Sequence[Figure], broken: Sequence[Broken],
         groups: Sequence[Mapping[Measure, Samples | Ratio]], timelines: Sequence[Timeline], align: str | None) -> str:
    """The page.

    Parameters
    ----------
    names : the names of A and B. ``groups``: their measures.
    timelines : the first run of each group, over the same time before and after the event ``align``.
    """
    differ = [one for one in figures if one.verdict in ("higher", "lower", "undecided")]
    changed = f"{len(differ)} of {len(figures)} figures differ, or may differ"
    body = [*(f"<p>{_text(line)}</p>" for line in sentences(broken)),
            _section("Figures that differ, or may differ", _table(differ)) if differ else "",
            _section("Distributions", _plots(figures, groups)), _section("Timelines", _timelines(timelines, align)),
            _section("All figures", _table(figures))]
    return _PAGE.format(title=f"{_text(names[0])} and {_text(names[1])}", changed=changed, body="\n".join(body),
                        verdict=overall(broken) if broken else "")


def _text(text: str) -> str:
    """Untrusted text, for HTML."""
    return html.escape(printable(text))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>\n{body}\n</section>" if body else ""


def _table(figures: Sequence[Figure]) -> str:
    head = "".join(f"<th>{title}</th>" for title in TITLES)
    cells = [(one.verdict, "".join(f"<td>{_text(cell)}</td>" for cell in row_of(one))) for one in figures]
    rows = "".join(f'<tr class="{verdict}">{cell}</tr>\n' for verdict, cell in cells)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>'


def _plots(figures: Sequence[Figure], groups: Sequence[Mapping[Measure, Samples | Ratio]]) -> str:
    """The distributions of durations; those with a figure that differs come first."""
    differ = {one.measure for one in figures if one.verdict in ("higher", "lower", "undecided")}
    plots = []
    for measure in sorted({*groups[0], *groups[1]}, key=lambda one: (one not in differ, one)):
        samples = [own if isinstance(own := group.get(measure), Samples) else None for group in groups]
        if any(own is not None and len(own.values) for own in samples):
            plots.append(_plot(measure, samples))
    said = ('<p class="quiet">Each curve: the part of the samples that are at most so long. <span class="a">A</span> '
            'is solid, <span class="b">B</span> dashed.</p>\n')
    return f'{said}<div class="plots">{"".join(plots)}</div>' if plots else ""


def _plot(measure: Measure, samples: Sequence[Samples | None]) -> str:
    shares = np.linspace(0, 1, _POINTS)
    curves = [None if own is None or not len(own.values) else np.array(own.ranked(shares.tolist()), np.float64)
              for own in samples]
    every = np.concatenate([curve for curve in curves if curve is not None])
    low, high = float(every.min()), float(every.max())
    logarithmic = low > 0 and high / low >= _LOGARITHMIC
    wide, tall, foot = 400, 130, 24

    def x_of(times: Floats) -> Floats:
        if high <= low:
            return np.full(len(times), wide / 2.0)
        scaled: Floats = np.log(times / low) / math.log(high / low) if logarithmic else (times - low) / (high - low)
        return 4 + scaled * (wide - 8)

    lines = []
    for side, curve in zip("ab", curves, strict=True):
        if curve is not None:
            points = " ".join(f"{x:.1f},{tall - 4 - share * (tall - 8):.1f}"
                              for x, share in zip(x_of(curve), shares, strict=True))
            lines.append(f'<polyline class="line {side}" points="{points}"/>')
    grid = "".join(f'<line class="rule" x1="0" x2="{wide}" y1="{y}" y2="{y}"/>' for y in
                   (4, tall // 2, tall - 4))
    ends = (f'<text class="quiet" x="0" y="{tall + 14}">{duration_text(round(low))}</text>'
            f'<text class="quiet" x="{wide}" y="{tall + 14}" text-anchor="end">{duration_text(round(high))}'
            f'{", logarithmic" if logarithmic else ""}</text>')
    name = f"{measure.kind} of {measure.name}"
    counts = ", ".join(f"{side}: {0 if own is None else len(own.values):,}"
                       for side, own in zip("AB", samples, strict=True))
    return (f'<figure><svg viewBox="0 0 {wide} {tall + foot}" role="img" aria-label="{_text(name)}">{grid}'
            f'{"".join(lines)}{ends}</svg><figcaption>{_text(name)} <span class="quiet">{counts}</span></figcaption>'
            "</figure>")


def _timelines(timelines: Sequence[Timeline], align: str | None) -> str:
    """The timelines one above the other, over the same time; each node is a lane."""
    took: dict[str, float] = {}
    for own in timelines:
        for states in own.lanes.states.values():
            for name, shares in states.items():
                took[name] = took.get(name, 0.0) + float(shares.sum())
    ordered = sorted(took, key=lambda name: (-took[name], name))
    colours = dict(zip(ordered, _COLOURS, strict=False))
    where = f"the first {_text(align)} of each" if align is not None else "the start of each recording"
    text = [f'<p class="quiet">Time 0 is {where}. A bar below a lane: items of that node were lost. '
            + ("Each column has the colours of its states, mixed by their shares." if took else
               "The darker a column, the more items.") + "</p>"]
    if took:
        keys = [f'<span class="key" style="background:{colours.get(name, _OTHER)}"></span>{_text(name)}'
                for name in ordered[:len(_COLOURS)]]
        if len(ordered) > len(_COLOURS):
            keys.append(f'<span class="key" style="background:{_OTHER}"></span>{len(ordered) - len(_COLOURS)} others')
        text.append(f"<p>{''.join(keys)}</p>")
    most = max(int(own.lanes.items.max(initial=0)) for own in timelines) if timelines else 0
    for side, own in zip("ab", timelines, strict=False):
        text.append(f'<h3 class="{side}">{side.upper()}: {_text(own.title)}</h3>\n'
                    f'<div class="wide">{_drawn(own, colours, most)}</div>')
    return "\n".join(text)


def _drawn(own: Timeline, colours: Mapping[str, str], most: int) -> str:
    nodes = len(own.lanes.items)
    column = (_WIDE - _LABEL) / COLUMNS
    tall = nodes * _STEP + 22
    parts = []
    for node in range(nodes):
        y = node * _STEP
        parts.append(f'<text x="{_LABEL - 6}" y="{y + 11}" text-anchor="end">{_text(own.names[node])[:16]}</text>')
        parts += [f'<rect x="{_LABEL + first * column:.1f}" y="{y}" width="{count * column:.2f}" height="{_HIGH}" '
                  f'fill="{fill}" fill-opacity="{opacity:.2f}"/>'
                  for first, count, (fill, opacity) in _joined(_fills(own.lanes, node, colours, most))]
        parts += [f'<rect class="lost" x="{_LABEL + first * column:.1f}" y="{y + _HIGH}" '
                  f'width="{count * column:.2f}" height="2"/>'
                  for first, count, lost in _joined(own.lanes.lost[node].tolist()) if lost]
    zero = _LABEL - own.low / (own.high - own.low) * (_WIDE - _LABEL)
    foot = nodes * _STEP
    parts.append(f'<line class="at" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{foot + 4}"/>')
    for x, time, anchor in ((_LABEL, own.low, "start"), (_WIDE, own.high, "end")):
        text = f"{'-' if time < 0 else ''}{duration_text(abs(time))}"
        parts.append(f'<text class="quiet" x="{x}" y="{foot + 16}" text-anchor="{anchor}">{text}</text>')
    more = len(own.names) - nodes
    said = f'<p class="quiet">{more} more nodes are not drawn; the first {LANES} are.</p>' if more > 0 else ""
    return f'<svg viewBox="0 0 {_WIDE} {tall}" role="img" aria-label="timeline">{"".join(parts)}</svg>{said}'


def _fills(lanes: Lanes, node: int, colours: Mapping[str, str], most: int) -> list[tuple[str, float]]:
    """Colour and opacity of each column."""
    if not any(lanes.states.values()):
        return [("var(--ink)", round(math.sqrt(count / most), 2) if most else 0.0) for count in
                lanes.items[node].tolist()]
    mixed, total = np.zeros((COLUMNS, 3)), np.zeros(COLUMNS)
    for name, shares in lanes.states.get(node, {}).items():
        colour = colours.get(name, _OTHER)
        mixed += shares[:, None] * [int(colour[k:k + 2], 16) for k in (1, 3, 5)]
        total += shares
    rgb = np.divide(mixed, total[:, None], out=np.zeros_like(mixed), where=total[:, None] > 0)
    return [(f"#{red:02x}{green:02x}{blue:02x}", round(min(share, 1.0), 2))
            for (red, green, blue), share in zip(rgb.round().astype(int).tolist(), total.tolist(), strict=True)]


def _joined(columns: Sequence[T]) -> list[tuple[int, int, T]]:
    """First column, number and value of neighbours that are the same."""
    found: list[tuple[int, int, T]] = []
    first = 0
    for k in range(1, len(columns) + 1):
        if k == len(columns) or columns[k] != columns[first]:
            found.append((first, k - first, columns[first]))
            first = k
    return found
