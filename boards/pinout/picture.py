"""Drawing of a board's connectors as an SVG: holes in their positions, coloured by node."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ..model.connectors import Connector, Hole, Use

__all__ = ["picture"]

#: Colours of nodes: neighbours differ, in print too (Okabe and Ito's, without black).
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")
#: The hole of a strobe, a clock or a line is filled, those of other wires are tinted.
_FIRST = ("S", "C", "L")
_FILLED, _TINTED = 0.85, 0.35
#: What is in the holes of nodes, by their kinds, where there are several; of a line of text each.
_KINDS = {("port",): "S its strobe, D0 to D3 its data",
          ("two_wire", "selected"): "C its clock, D its data, CS its chip select", ("uart", "swo"): "L its line"}
_RED = "#c1121f"
#: Classes of texts: in a hole, small if there is much; bold; left of a hole.
_STYLE = ".m,.n{text-anchor:middle;font-size:11px}.n{font-size:10px}.b{font-weight:bold}.e{text-anchor:end}"
#: Of a hole; between rows; from one column to the next, and to the frame, which leaves room for labels.
_WIDE, _HIGH, _ROW, _SIDE, _LISTED = 44, 22, 28, 92, 86
_NEAR = _WIDE + 8
_HEAD, _FOOT, _GAP, _EDGE = 46, 26, 18, 24
_WIDTH_MAX, _WIDTH_MIN = 1200, 172

#: Node, wire and ball of every hole that has a wire, by the name of its pin.
Wired = Mapping[str, tuple[int, str, str]]


def picture(title: str, connectors: Iterable[Connector], wired: Wired, kinds: Sequence[str] = ()) -> str:
    """Draws the connectors from left to right in rows, under a title, above a legend. ``kinds`` : of each node, if
    there are several."""
    connectors = list(connectors)
    parts: list[str] = []
    x, y, tall, right = _EDGE, 58, 0, 0
    under, room = 0, 0    # the lower end of the last one, and its width: one that fits is placed beneath it
    for connector in connectors:
        wide, high = _size(connector)
        if under and wide <= room and under + _GAP + high <= y + tall:
            parts += _connector(connector, wired, x - room - _GAP, under + _GAP)
            under += _GAP + high
            continue
        if x > _EDGE and x + wide > _WIDTH_MAX:
            x, y, tall = _EDGE, y + tall + _GAP, 0
        parts += _connector(connector, wired, x, y)
        x, tall, under, room = x + wide + _GAP, max(tall, high), y + high, wide
        right = max(right, x - _GAP)
    width = max(right + _EDGE, 660)
    legend, height = _legend(connectors, wired, y + tall + _GAP + 8, width, kinds)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<style>{_STYLE}</style>',
        f'<defs><rect id="hole" width="{_WIDE}" height="{_HIGH}" rx="{_HIGH / 2:g}"/>'
        '<pattern id="hot" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="#fff"/><rect width="2" height="6" fill="{_RED}" fill-opacity="0.45"/>'
        '</pattern></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_EDGE, 36, title, 'font-size="18" font-weight="bold"'),
        *parts, *legend, "</svg>", ""])


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " * bool(more)}{more}>{escape(text)}</text>'


def _places(connector: Connector) -> list[int]:
    """Middles of its columns, from the frame: two adjacent ones share the room between them."""
    if connector.known and len(connector.columns) == 2:
        return [_SIDE + _WIDE // 2, _SIDE + _WIDE // 2 + _NEAR]
    return [14 + _WIDE // 2 + column * (_WIDE + _LISTED) for column in range(len(connector.columns))]


def _size(connector: Connector) -> tuple[int, int]:
    wide = _places(connector)[-1] + _WIDE // 2 + (_SIDE if connector.known else _LISTED)
    return max(wide, _WIDTH_MIN), _HEAD + max(map(len, connector.columns)) * _ROW + _FOOT


def _connector(connector: Connector, wired: Wired, left: int, top: int) -> list[str]:
    """Its frame, name, holes, and where ground is."""
    wide, high = _size(connector)
    dashes = "" if connector.known else ' stroke-dasharray="5 4"'
    note = connector.note if connector.known else connector.note or "in order: layout not known"
    parts = [f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="8" fill="#f6f6f4" stroke="#999"{dashes}/>',
             _text(left + 12, top + 20, connector.name, 'font-size="15" font-weight="bold"'),
             _text(left + 12, top + 36, note, 'font-size="10" fill="#555"')]
    columns = list(zip(_places(connector), connector.columns, strict=True))
    for place, column in columns:
        mirrored = place != columns[-1][0] and connector.known
        for line, hole in enumerate(column):
            if hole:
                parts += _hole(hole, wired, left + place, top + _HEAD + line * _ROW + _ROW // 2, mirrored)
    ground = f"GND: {connector.grounds or ('see the schematic' if connector.doubtful else 'none')}"
    return [*parts, _text(left + 12, top + high - 10, ground, 'font-size="11" font-weight="bold"')]


def _hole(hole: Hole, wired: Wired, x: int, y: int, mirrored: bool) -> list[str]:
    """A hole, its contents, and its label, on the left if ``mirrored``."""
    node, wire, ball = wired.get(hole.pin, (0, "", ""))
    first = hole.number == 1
    corner = f'x="{x - _WIDE / 2:g}" y="{y - _HIGH / 2:g}"'
    box = f'<rect {corner} width="{_WIDE}" height="{_HIGH}" rx="2" ' if first else f'<use href="#hole" {corner} '
    middle = f'class="{"m" if len(f"{node} {wire}") < 6 else "n"}{" b" * bool(wire)}"'
    said, what = hole.label, ball if ball != hole.label else ""
    if wire:
        colour = _COLOURS[node % len(_COLOURS)]
        opacity = _FILLED if wire.rstrip("+-") in _FIRST else _TINTED
        kind = "wire"
        parts = [f'{box}fill="{colour}" fill-opacity="{opacity}" stroke="{colour}"/>',
                 _text(x, y + 4, f"{node} {wire}", middle)]
    elif hole.use is Use.GROUND:
        kind = "ground"
        parts = [f'{box}fill="#111" stroke="#111"/>', _text(x, y + 4, hole.text, f'{middle} fill="#fff"')]
    elif hole.use is Use.SUPPLY:
        kind, what = "supply", hole.text if hole.burns else ""
        parts = [f'{box}fill="{"url(#hot)" if hole.burns else "#fff"}" stroke="{_RED}" stroke-width="1.5"/>']
        if hole.burns:
            across, up = _WIDE / 2 - 5, _HIGH / 2 - 3
            parts.append(f'<path d="M{x - across:g} {y - up:g}L{x + across:g} {y + up:g}M{x - across:g} {y + up:g}'
                         f'L{x + across:g} {y - up:g}" stroke="{_RED}" stroke-width="2"/>')
        else:
            parts.append(_text(x, y + 4, hole.text, f'{middle} fill="{_RED}"'))
    elif hole.use is Use.UNKNOWN:
        kind, said = "unknown", ""
        parts = [f'{box}fill="#fff" stroke="#777" stroke-dasharray="3 3"/>', _text(x, y + 4, hole.text, middle)]
    else:
        kind = "free" if hole.use is Use.PIN else "other"
        what = hole.text
        parts = [f'{box}fill="{"#fff" if hole.use is Use.PIN else "#ddd"}" stroke="#aaa"/>']
    mark = " ▸" if mirrored else "◂ "
    label = f"{said}{mark * first}" if mirrored else f"{mark * first}{said}"
    shown = (what, label) if mirrored else (label, what)
    beside = " ".join(_looking(text, text is what, hole) for text in shown if text)
    at, left = (x - _WIDE / 2 - 5, ' class="e"') if mirrored else (x + _WIDE / 2 + 5, "")
    return [f'<g class="{kind}">', *parts,
            *([f'<text x="{at:g}" y="{y + 4:g}"{left}>{beside}</text>'] if beside else []), "</g>"]


def _looking(text: str, what: bool, hole: Hole) -> str:
    """A label is black, the text next to it small; 5 V is red."""
    if not what:
        return escape(text)
    look = f'font-size="11" font-weight="bold" fill="{_RED}"' if hole.burns else 'font-size="10" fill="#666"'
    return f"<tspan {look}>{escape(text)}</tspan>"


def _legend(connectors: list[Connector], wired: Wired, top: int, width: int,
            kinds: Sequence[str]) -> tuple[list[str], int]:
    """Meaning of colours and shapes, and the height of the drawing with it."""
    nodes = sorted({node for node, _, _ in wired.values()})
    holes = [hole for connector in connectors for hole in connector.holes]
    x, y, parts = _EDGE, top + _HIGH, []
    step = 140 if kinds else 80
    for node in nodes:
        colour = _COLOURS[node % len(_COLOURS)]
        if x + step > width - _EDGE:
            x, y = _EDGE, y + _ROW
        parts += [f'<rect x="{x}" y="{y - 11}" width="16" height="14" rx="7" fill="{colour}" '
                  f'fill-opacity="{_FILLED}"/>',
                  _text(x + 21, y, f"node {node}, {kinds[node]}" if kinds else f"node {node}")]
        x += step
    y += _ROW
    lines = [f"In a hole: the node, and {_KINDS['port',]}. Beside it: its label and the FPGA's ball."]
    if kinds:
        lines = ["In a hole: the node and its wire. Beside it: its label and the FPGA's ball.",
                 *(f"{', '.join(those)}: {what}." for of, what in _KINDS.items()
                   if (those := [name for name in of if name in kinds]))]
    if any(wire.endswith("-") for _, wire, _ in wired.values()):
        lines[0] += " + and - are the two wires of a pair."
    lines.append("Square hole: pin 1. Black: ground. White: an FPGA pin that no node uses. Grey: something else.")
    if any(hole.use is Use.UNKNOWN for hole in holes):
        lines.append("?: not an FPGA pin. Ground, a supply or nothing: see the board's schematic.")
    if not all(connector.known for connector in connectors):
        lines.append("Dashed frame: the pins of a connector in the order of their numbers, not of their "
                     "positions. For ground, see the board's schematic.")
    for line in lines:
        parts.append(_text(_EDGE, y, line, 'fill="#333"'))
        y += 18
    if any(hole.burns for hole in holes):
        parts.append(_text(_EDGE, y, "Crossed out in red: more than 3.3 V, which destroys an FPGA. Leave it free.",
                           f'fill="{_RED}" font-weight="bold"'))
        y += 18
    return parts, y + 6
