"""The driver board and its cables' receivers: netlists, and tables and drawings of driver-board.md.

Three boards of four nodes each. :data:`WIRES` says which gate every wire goes through; parts and nets follow from it,
and everything else from these. ``make docs`` writes it all anew, ``tests/test_driver_board.py`` checks it.
"""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import NamedTuple

from hypermon.boards.model.board import PIN_ROLES

__all__ = ["BOARDS", "DRIVER", "KINDS", "NODES", "RECEIVER", "WIRES", "Board", "Kind", "Wire", "board", "cable_pins",
           "drawing", "files", "netlist", "node_pins", "parts", "wires"]

NODES = 4
SUPPLY, GROUND = "+3V3", "GND"
#: Enables of the drivers and of the receivers: on when EN is high or EN* is low.
_COMMON = {4: "EN", 8: "GND", 12: "EN*", 16: "VCC"}


class Gate(NamedTuple):
    """Pins of one gate: the single-ended one, and the pair's."""

    single: int
    positive: int
    negative: int


#: Pins of the gates: the DS90LV031A's and the DS90C031's are those of every 26x31, the DS90LV032A's of every 26x32.
DRIVER = {1: Gate(1, 2, 3), 2: Gate(7, 6, 5), 3: Gate(9, 10, 11), 4: Gate(15, 14, 13)}
RECEIVER = {1: Gate(3, 2, 1), 2: Gate(5, 6, 7), 3: Gate(11, 10, 9), 4: Gate(13, 14, 15)}


class Kind(NamedTuple):
    """A kind of part: what to order, its package as KiCad calls it, and its pins' names by number."""

    value: str
    package: str
    pins: dict[int, str]


def _quad(gates: dict[int, Gate], single: str, pair: str) -> dict[int, str]:
    pins = dict(_COMMON)
    for number, gate in gates.items():
        pins |= {gate.single: f"{single}{number}", gate.positive: f"{pair}{number}+", gate.negative: f"{pair}{number}-"}
    return dict(sorted(pins.items()))


def _row(count: int) -> dict[int, str]:
    return {number: str(number) for number in range(1, count + 1)}


_RESISTOR, _CAPACITOR = "Resistor_SMD:R_0805_2012Metric", "Capacitor_SMD:C_0805_2012Metric"
_SOIC = "Package_SO:SOIC-16_3.9x9.9mm_P1.27mm"

KINDS = {
    "driver": Kind("DS90LV031A", _SOIC, _quad(DRIVER, "DIN", "DOUT")),
    "receiver": Kind("DS90LV032A", _SOIC, _quad(RECEIVER, "ROUT", "RIN")),
    "series": Kind("33 ohm", _RESISTOR, _row(2)),
    "pull-down": Kind("47 kilohm", _RESISTOR, _row(2)),
    "termination": Kind("100 ohm, 1 %", _RESISTOR, _row(2)),
    "bias to supply": Kind("8.2 kilohm", _RESISTOR, _row(2)),
    "bias to ground": Kind("5.6 kilohm", _RESISTOR, _row(2)),
    "at each supply pin": Kind("100 nF, ceramic", _CAPACITOR, _row(2)),
    "at each supply pin, nearest": Kind("1 nF, ceramic", _CAPACITOR, _row(2)),
    "where the supply enters": Kind("10 uF, ceramic", "Capacitor_SMD:C_1206_3216Metric", _row(2)),
    "five wires": Kind("header 2 x 5", "Connector_IDC:IDC-Header_2x05_P2.54mm_Vertical", _row(10)),
    "five pairs": Kind("header 2 x 10", "Connector_IDC:IDC-Header_2x10_P2.54mm_Vertical", _row(20)),
    "supply": Kind("header 1 x 2", "Connector_PinHeader_2.54mm:PinHeader_1x02_P2.54mm_Vertical", _row(2)),
}


class Wire(NamedTuple):
    """A wire of a node, and the gate that drives it and the one that receives it: the same one of the same part."""

    node: int
    role: str
    part: str
    gate: int

    @property
    def name(self) -> str:
        return f"node{self.node}_{self.role}"

    @property
    def place(self) -> int:
        """Place among all wires, from 1: what the resistors are counted by."""
        return 1 + self.node * len(PIN_ROLES) + PIN_ROLES.index(self.role)


#: A node's data share a part; the strobes, which carry the time, share one of their own.
WIRES = tuple(Wire(node, role, "U5", node + 1) if role == "strobe" else Wire(node, role, f"U{node + 1}", place)
              for node in range(NODES) for place, role in enumerate(PIN_ROLES))


def node_pins(role: str) -> tuple[int, int]:
    """Pins of a header of five wires: the wire's, and the ground's beside it."""
    first = 2 * PIN_ROLES.index(role) + 1
    return first, first + 1


def cable_pins(role: str) -> tuple[int, int, int, int]:
    """Pins of a header of five pairs: positive, negative, and their two ground pins."""
    first = 4 * PIN_ROLES.index(role) + 1
    return first, first + 1, first + 2, first + 3


Nets = dict[str, list[tuple[str, int]]]


class Board(NamedTuple):
    """One board: parts as ``{reference: kind}``, nets as ``{name: [(reference, pin), ...]}``."""

    name: str
    title: str
    parts: dict[str, str]
    nets: Nets


def board(name: str, title: str, of: Iterable[Wire] = WIRES) -> Board:
    """The driver's board (``driver``), the receiver's (``receiver``), or the bias (``bias``)."""
    parts: dict[str, str] = {}
    nets: Nets = {SUPPLY: [], GROUND: []}

    def add(reference: str, kind: str, *ends: str) -> None:
        """Adds a part; ``ends``: the nets of its pins from 1 on."""
        parts[reference] = kind
        for pin, net in enumerate(ends, 1):
            nets.setdefault(net, []).append((reference, pin))

    quad = name if name in ("driver", "receiver") else None
    left, right = {"driver": ("five wires", "five pairs"), "receiver": ("five pairs", "five wires"),
                   "bias": ("five pairs", "five pairs")}[name]
    for node in range(NODES):
        add(f"J{node + 1}", left)
        add(f"J{node + 1 + NODES}", right)
    add(f"J{2 * NODES + 1}", "supply", SUPPLY, GROUND)
    used = sorted({wire.part for wire in of}) if quad else []
    for place, reference in enumerate(used, 1):
        add(reference, str(quad))
        nets[SUPPLY] += [(reference, 16), (reference, 4)]
        nets[GROUND] += [(reference, 8), (reference, 12)]
        add(f"C{place}", "at each supply pin", SUPPLY, GROUND)
        add(f"C{place + len(used)}", "at each supply pin, nearest", SUPPLY, GROUND)
    add(f"C{2 * len(used) + 1}", "where the supply enters", SUPPLY, GROUND)
    for wire in of:
        here, there = wire.place, wire.place + len(WIRES)
        ports = {f"J{wire.node + 1}": left, f"J{wire.node + 1 + NODES}": right}
        positive, negative = f"{wire.name}+", f"{wire.name}-"
        inner = f"{wire.name}_{'in' if quad == 'driver' else 'out'}"
        for reference, kind in ports.items():
            if kind == "five wires":
                pin, ground = node_pins(wire.role)
                nets.setdefault(wire.name, []).append((reference, pin))
                nets[GROUND].append((reference, ground))
            else:
                plus, minus, *grounds = cable_pins(wire.role)
                nets.setdefault(positive, []).append((reference, plus))
                nets.setdefault(negative, []).append((reference, minus))
                nets[GROUND] += [(reference, ground) for ground in grounds]
        if quad:
            gate = (DRIVER if quad == "driver" else RECEIVER)[wire.gate]
            nets[positive].append((wire.part, gate.positive))
            nets[negative].append((wire.part, gate.negative))
            nets.setdefault(inner, []).append((wire.part, gate.single))
        if quad == "driver":
            add(f"R{here}", "series", wire.name, inner)
            add(f"R{there}", "pull-down", inner, GROUND)
        elif quad == "receiver":
            add(f"R{here}", "termination", positive, negative)
            add(f"R{there}", "series", inner, wire.name)
        else:
            add(f"R{here}", "bias to supply", SUPPLY, negative)
            add(f"R{there}", "bias to ground", positive, GROUND)
    return Board(name, title, parts, nets)


BOARDS = {
    "driver": board("driver", "Driver board: four nodes in, twenty pairs out"),
    "receiver": board("receiver", "Receivers for a board with one pin a wire: twenty pairs in, four ports out"),
    "bias": board("bias", "Bias for a board with inputs that are pairs: what an open pair leans on"),
}


# ----------------------------------------------------------------------------------------- tables and netlists

def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def wires() -> str:
    """Every wire's way, from the node to the capture board."""
    rows = []
    for wire in WIRES:
        out, back = DRIVER[wire.gate], RECEIVER[wire.gate]
        near, far, pin = f"J{wire.node + 1}", f"J{wire.node + 1 + NODES}", node_pins(wire.role)[0]
        plus, minus, *grounds = cable_pins(wire.role)
        rows.append((f"{wire.node} {wire.role}", f"{near} {pin}", f"{wire.part} gate {wire.gate}",
                     f"{out.single}; {out.positive}, {out.negative}", f"{plus}, {minus}",
                     f"{grounds[0]}, {grounds[1]}", f"{back.positive}, {back.negative}; {back.single}",
                     f"{far} {pin}", f"R{wire.place}, R{wire.place + len(WIRES)}"))
    return _table(("wire", "from the node", "part", "driver: in; +, \u2212", "cable: +, \u2212", "ground",
                   "receiver: +, \u2212; out", "to the board", "resistors"), rows)


def _shortened(references: list[str]) -> str:
    """``R1 to R20`` for references that follow each other."""
    letter, numbers = references[0][0], sorted(int(reference[1:]) for reference in references)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{letter}{run[0]}" if len(run) == 1 else f"{letter}{run[0]} to {letter}{run[-1]}"
                     for run in runs)


def parts() -> str:
    """What to order for each board."""
    rows = []
    for name, of in BOARDS.items():
        for kind in KINDS:
            references = [reference for reference, what in of.parts.items() if what == kind]
            if references:
                rows.append((f"`{name}`", len(references), KINDS[kind].value, kind, _shortened(references),
                             KINDS[kind].package.partition(":")[2]))
    return _table(("board", "count", "part", "purpose", "references", "footprint"), rows)


def netlist(of: Board) -> str:
    """The board for KiCad's board editor (File, Import, Netlist)."""
    lines = ['(export (version "E")', "  (components"]
    for reference, kind in of.parts.items():
        value, package, _ = KINDS[kind]
        lines.append(f'    (comp (ref "{reference}") (value "{value}") (footprint "{package}"))')
    lines += ["  )", "  (nets"]
    for code, (name, nodes) in enumerate(of.nets.items(), 1):
        lines.append(f'    (net (code "{code}") (name "{name}")')
        lines += [f'      (node (ref "{reference}") (pin "{pin}"))' for reference, pin in nodes]
        lines.append("    )")
    return "\n".join([*lines, "  )", ")", ""])


# ----------------------------------------------------------------------------------------- drawings

#: From pin to pin of a cable's header, and from wire to wire: a pair and two of ground.
_PIN, _WIRE = 18, 72
_BLOCK, _WIDTH, _TOP = len(PIN_ROLES) * _WIRE + 54, 900, 56
_STYLE = (".l{stroke:#222;stroke-width:1.4;fill:none}.b{stroke:#222;stroke-width:1.4;fill:#f6f6f2}"
          ".n{fill:#06c;font-size:11px}.s{fill:#555;font-size:12px}.h{font-weight:bold;font-size:16px}"
          ".r{font-weight:bold}.c{fill:#555;font-size:11px}.m{text-anchor:middle}.e{text-anchor:end}")
#: Classes of texts by where their place is.
_ANCHORS = {"start": "", "middle": "m", "end": "e"}
#: Lines: before and after their points.
_LINE, _END = '<path class="l" d="M', '"/>'


class _Sheet:
    """An SVG in the making."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        classes = " ".join(filter(None, (style, _ANCHORS[anchor])))
        shown = f' class="{classes}"' if classes else ""
        self.made.append(f'<text x="{x:g}" y="{y:g}"{shown}>{escape(text)}</text>')

    def line(self, *points: tuple[float, float]) -> None:
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        if self.made and self.made[-1].startswith(_LINE):     # lines in a row are one path
            self.made[-1] = f'{self.made[-1][:-len(_END)]}M{path}{_END}'
        else:
            self.made.append(f"{_LINE}{path}{_END}")

    def box(self, x: float, y: float, width: float, height: float) -> None:
        self.made.append(f'<rect class="b" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def dot(self, x: float, y: float) -> None:
        self.made.append(f'<circle cx="{x:g}" cy="{y:g}" r="2.8" fill="#222"/>')

    def bubble(self, x: float, y: float) -> None:
        self.made.append(f'<circle cx="{x:g}" cy="{y:g}" r="3.4" fill="#fff" stroke="#222"/>')

    def ground(self, x: float, y: float) -> None:
        for drop, half in ((0, 9), (4, 5.5), (8, 2)):
            self.line((x - half, y + drop), (x + half, y + drop))

    def supply(self, x: float, y: float) -> None:
        self.line((x - 8, y), (x + 8, y))
        self.text(x, y - 4, "+3.3 V", "s", "middle")

    def across(self, x: float, y: float, label: str) -> None:
        """A resistor in a line that goes from left to right, 40 long from ``x`` on."""
        self.box(x, y - 5, 40, 10)
        self.text(x + 20, y - 9, label, "s", "middle")

    def capacitor(self, x: float, top: float, bottom: float, reference: str, value: str) -> None:
        middle = (top + bottom) / 2
        self.line((x, top), (x, middle - 3))
        self.line((x, middle + 3), (x, bottom))
        for y in (middle - 3, middle + 3):
            self.line((x - 9, y), (x + 9, y))
        self.dot(x, top)
        self.dot(x, bottom)
        self.text(x + 5, middle - 9, reference, "c")
        self.text(x + 5, middle + 17, value, "c")


def _header(sheet: _Sheet, of: Board, reference: str, y: float, *, left: bool) -> None:
    """A connector at the sheet's left or right edge, with its grounds."""
    x, width = (24, 104) if left else (_WIDTH - 24 - 104, 104)
    edge, way = (x + width, 1) if left else (x, -1)
    pairs = of.parts[reference] == "five pairs"
    sheet.box(x, y - 26, width, len(PIN_ROLES) * _WIRE + 10)
    sheet.text(x + width / 2, y - 32, f"{reference}, {KINDS[of.parts[reference]].value}", "r", "middle")
    for place, role in enumerate(PIN_ROLES):
        centre = y + place * _WIRE
        if pairs:
            plus, minus, *grounds = cable_pins(role)
            shown = [(plus, f"{role} +", -0.5), (minus, f"{role} \u2212", 0.5)]
            ends = [(grounds[0], 1.5), (grounds[1], 2.5)]
        else:
            pin, ground = node_pins(role)
            shown, ends = [(pin, role, 0.0)], [(ground, 1.5)]
        for pin, label, down in [*shown, *((pin, "ground", down) for pin, down in ends)]:
            at = centre + down * _PIN
            sheet.text(x + width / 2, at + 4, label, "" if label != "ground" else "s", "middle")
            sheet.text(edge - 5 * way, at + 4, str(pin), "n", "end" if left else "start")
        away = edge + 14 * way
        for _, down in ends:
            sheet.line((edge, centre + down * _PIN), (away, centre + down * _PIN))
        foot = centre + ends[-1][1] * _PIN
        if len(ends) > 1:
            sheet.line((away, centre + ends[0][1] * _PIN), (away, foot))
            sheet.dot(away, foot)
        sheet.line((away, foot), (away + 12 * way, foot))
        sheet.line((away + 12 * way, foot), (away + 12 * way, foot + 3))
        sheet.ground(away + 12 * way, foot + 3)


def _driver(sheet: _Sheet, wire: Wire, y: float) -> None:
    gate, start, end = DRIVER[wire.gate], 128, _WIDTH - 128
    sheet.line((start, y), (200, y))
    sheet.across(200, y, f"R{wire.place}, 33 \u03a9")
    sheet.line((240, y), (400, y))
    sheet.dot(290, y)
    sheet.line((290, y), (290, y + 10))
    sheet.box(285, y + 10, 10, 26)
    sheet.line((290, y + 36), (290, y + 42))
    sheet.ground(290, y + 42)
    sheet.text(301, y + 28, f"R{wire.place + len(WIRES)}, 47 k\u03a9", "s")
    sheet.line((400, y - 30), (400, y + 30), (470, y), (400, y - 30))
    sheet.text(406, y + 5, f"{wire.part}.{wire.gate}", "r")
    sheet.text(394, y - 5, str(gate.single), "n", "end")
    sheet.line((449, y - 9), (end, y - 9))
    sheet.line((449, y + 9), (end, y + 9))
    sheet.bubble(453, y + 9)
    sheet.text(478, y - 13, str(gate.positive), "n")
    sheet.text(478, y + 21, str(gate.negative), "n")
    sheet.text(600, y - 14, f"{wire.name} +", "s", "middle")
    sheet.text(600, y + 22, f"{wire.name} \u2212", "s", "middle")


def _receiver(sheet: _Sheet, wire: Wire, y: float) -> None:
    gate, start, end = RECEIVER[wire.gate], 128, _WIDTH - 128
    sheet.line((start, y - 9), (430, y - 9))
    sheet.line((start, y + 9), (430, y + 9))
    sheet.text(240, y - 14, f"{wire.name} +", "s", "middle")
    sheet.text(240, y + 22, f"{wire.name} \u2212", "s", "middle")
    sheet.line((350, y - 9), (350, y + 9))
    sheet.box(346, y - 6, 8, 12)
    sheet.dot(350, y - 9)
    sheet.dot(350, y + 9)
    sheet.text(350, y - 15, f"R{wire.place}, 100 \u03a9", "s", "middle")
    sheet.line((430, y - 30), (430, y + 30), (500, y), (430, y - 30))
    sheet.bubble(426, y + 9)
    sheet.text(436, y + 5, f"{wire.part}.{wire.gate}", "r")
    sheet.text(420, y - 13, str(gate.positive), "n", "end")
    sheet.text(420, y + 21, str(gate.negative), "n", "end")
    sheet.line((500, y), (600, y))
    sheet.text(508, y - 5, str(gate.single), "n")
    sheet.across(600, y, f"R{wire.place + len(WIRES)}, 33 \u03a9")
    sheet.line((640, y), (end, y))


def _bias(sheet: _Sheet, wire: Wire, y: float) -> None:
    start, end = 128, _WIDTH - 128
    sheet.line((start, y - 9), (end, y - 9))
    sheet.line((start, y + 9), (end, y + 9))
    sheet.text(240, y - 14, f"{wire.name} +", "s", "middle")
    sheet.text(240, y + 22, f"{wire.name} \u2212", "s", "middle")
    # The line to the supply crosses the positive wire; without a dot it does not touch it.
    sheet.dot(360, y + 9)
    sheet.line((360, y + 9), (360, y - 14))
    sheet.box(355, y - 36, 10, 22)
    sheet.line((360, y - 36), (360, y - 40))
    sheet.line((352, y - 40), (368, y - 40))
    sheet.text(374, y - 34, "+3.3 V", "s")
    sheet.text(374, y - 19, f"R{wire.place}, 8.2 k\u03a9", "s")
    sheet.dot(500, y - 9)
    sheet.line((500, y - 9), (500, y + 14))
    sheet.box(495, y + 14, 10, 22)
    sheet.line((500, y + 36), (500, y + 40))
    sheet.ground(500, y + 40)
    sheet.text(511, y + 30, f"R{wire.place + len(WIRES)}, 5.6 k\u03a9", "s")


#: What is written below a drawing.
_GATES = "U5.1 is gate 1 of U5; blue are pin numbers."
_NEAREST = "C1 to C10 beside pin 16 of their part, the 1 nF nearest."
_NOTES = {
    "driver": ("U1 to U5: DS90LV031A. For nodes of 5 V put DS90C031 in their places, and +5 V for +3.3 V.",
            f"{_GATES} U1 to U4: the data of nodes 0 to 3; U5: the strobes of all.",
            f"{_NEAREST} Leads from the nodes to J1 to J4: to 10 cm."),
    "receiver": ("U1 to U5: DS90LV032A. No bias: their own keeps an open pair high.",
                     f"{_GATES} R1 to R20 beside the receivers' pins, no stub behind.",
                     f"{_NEAREST} Leads from J5 to J8 to the board: to 10 cm."),
    "bias": ("The 100 \u03a9 across each pair are in the FPGA (DIFFRESISTOR=100): fit none here.",
                 "Lines that cross without a dot do not touch. Leads from J5 to J8 to the board: pairs, to 10 cm."),
}


def _power(sheet: _Sheet, of: Board, y: float) -> None:
    """Supply, enables and capacitors."""
    quads = [reference for reference in of.parts if reference[0] == "U"]
    top, bottom = y + 20, y + 130
    last = _WIDTH - 24 if quads else 320
    sheet.line((84, top), (last, top))
    sheet.line((84, bottom), (last, bottom))
    sheet.text(last, top - 6, "+3.3 V", "s", "end")
    sheet.text(last, bottom + 16, "ground", "s", "end")
    sheet.box(24, top - 14, 60, bottom - top + 28)
    sheet.text(54, top - 20, f"J{2 * NODES + 1}, supply", "r", "middle")
    sheet.text(79, top + 4, "1", "n", "end")
    sheet.text(79, bottom + 4, "2", "n", "end")
    sheet.capacitor(104, top, bottom, f"C{2 * len(quads) + 1}", "10 \u00b5F")
    for place, reference in enumerate(quads, 1):
        x = 152 + (place - 1) * 148
        sheet.box(x, top + 26, 56, bottom - top - 52)
        sheet.text(x + 28, (top + bottom) / 2 + 5, reference, "r", "middle")
        for shift, edge, rail, pins in ((26, top + 26, top, (16, 4)), (-26, bottom - 26, bottom, (8, 12))):
            for column, pin in zip((x + 14, x + 42), pins, strict=True):
                sheet.line((column, edge), (column, rail))
                sheet.dot(column, rail)
                sheet.text(column + 3, rail + shift * 0.55 + 4, str(pin), "n")
                name = KINDS[of.parts[reference]].pins[pin]
                sheet.text(column, edge + (13 if shift > 0 else -5), name, "s", "middle")
        sheet.capacitor(x + 66, top, bottom, f"C{place}", "100 nF")
        sheet.capacitor(x + 113, top, bottom, f"C{place + len(quads)}", "1 nF")


def drawing(of: Board) -> str:
    """The board's schematic as an SVG: a block a node, and the supply."""
    sheet = _Sheet()
    sheet.text(24, 30, of.title, "h")
    draw = {"driver": _driver, "receiver": _receiver, "bias": _bias}[of.name]
    for node in range(NODES):
        y = _TOP + 54 + node * _BLOCK
        for reference, left in ((f"J{node + 1}", True), (f"J{node + 1 + NODES}", False)):
            _header(sheet, of, reference, y, left=left)
        sheet.text(_WIDTH / 2, y - 36, f"node {node}", "r", "middle")
        for wire in WIRES:
            if wire.node == node:
                draw(sheet, wire, y + PIN_ROLES.index(wire.role) * _WIRE)
    foot = _TOP + 20 + NODES * _BLOCK
    _power(sheet, of, foot)
    for place, note in enumerate(_NOTES[of.name]):
        sheet.text(24, foot + 186 + 20 * place, note)
    height = foot + 186 + 20 * len(_NOTES[of.name])
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        'font-size="13">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>', *sheet.made, "</svg>", ""])


def files(drawings: Path, netlists: Path) -> dict[Path, str]:
    """What is made whole: a drawing and a netlist a board."""
    return {folder / f"{name}.{suffix}": make(of) for name, of in BOARDS.items()
            for folder, suffix, make in ((drawings, "svg", drawing), (netlists, "net", netlist))}
