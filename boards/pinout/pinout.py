"""Pinouts: the assignment of every node's wires, as rows, and as the page and the drawing of a board's documentation.

The balls come from the board's Amaranth platform. :data:`BALLS` keeps them, so that a host can print a pinout without
Amaranth. ``make docs`` regenerates all of it.
"""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hypermon.hdl.layout import BEAT_BYTES, FRONT_WIRES, Front

from ..model.board import FRONT_CONFIGS, FRONT_ROLES, PIN_ROLES, TIME_PINS, TIMED, Board, Pin
from ..model.links import uart
from ..model.mixture import kind, stated
from ..model.reach import level_ns, reaches
from .picture import picture

__all__ = ["Wire", "balls", "drawing", "facts", "kept", "mixed_facts", "page", "standard", "wires"]

#: Facts that are remarks: below the table of a board's page, where it says whence its pins are known last.
_REMARKS = ("Shared", "Note", "Limit", "Source of the pins")
#: The kept balls: ``{board: [ball, ...]}`` in the order of a board's pins, and then of the spare ones.
BALLS = "balls.json"
#: Names of wires in a drawing; the others are data, with their number.
_SHORT = {"strobe": "S", "clock": "C", "data": "D", "select": "CS", "line": "L"}
#: Facts of a board that are the same whatever its nodes are.
_COMMON = ("Clock", "Link", "Grounds", "Shared", "Note", "Limit", "Source of the pins")


@dataclass(frozen=True)
class Wire:
    """One wire of a node."""

    node: int
    role: str
    label: str
    ball: str


def balls(board: Board) -> list[str]:
    """The balls of its pins and of the spare ones, from its platform (needs Amaranth); of a pair both, with a slash
    between."""
    module, name = board.platform.split(":")
    mapping: dict[str, str] = {}
    for connector in getattr(importlib.import_module(module), name).connectors:
        mapping |= dict(connector)
    return ["/".join(mapping.get(name, name) for name in (pin.name, pin.negative) if name)
            for pin in (*board.pins, *board.spare)]


@cache
def _kept() -> dict[str, list[str]]:
    kept: dict[str, list[str]] = json.loads(files(__package__).joinpath(BALLS).read_text())
    return kept


def kept(board: Board, before: Board) -> list[str]:
    """The kept balls of its pins and of the spare ones, if it is made of the board ``before``, whose pins it has in
    another order."""
    there = dict(zip((*before.pins, *before.spare), _kept()[before.name], strict=True))
    return [there[pin] for pin in (*board.pins, *board.spare)]


def wires(board: Board, of: list[str] | None = None) -> list[Wire]:
    """All wires, node by node, strobe first, of a board with ``ports`` in the order of
    :data:`~.model.board.FRONT_ROLES`; with the kept balls, or those ``of`` its pins."""
    at = dict(zip((*board.pins, *board.spare), of or _kept()[board.name], strict=True))
    return [Wire(node, role, pin.label, at[pin]) for node in range(board.nodes)
            for role, pin in zip(FRONT_ROLES[board.ports[node] if board.ports else Front.PORT], board.node(node),
                                 strict=True)]


def _called(board: Board, of: list[str] | None = None) -> dict[Pin, str]:
    """Every pin, also a spare one, as on the page: its label, with the ball in brackets."""
    every = zip((*board.pins, *board.spare), of or _kept()[board.name], strict=True)
    return {pin: f"{pin.label} ({ball})" for pin, ball in every}


def facts(board: Board, of: list[str] | None = None) -> list[tuple[str, str]]:
    """Facts that are needed to wire the board, and its capabilities: names and sentences, in Markdown; with the kept
    balls, or those ``of`` its pins."""
    capture, oscillator = board.clock_ratio
    geometry = board.geometry()
    both = len(geometry.sinks) > 1
    others = "".join(f", or {link.text} with `--link {link.kind}`" for link in board.links[1:])
    ratio = "directly from" if capture == oscillator else f"exactly {capture} times" if oscillator == 1 else (
        f"exactly {capture}/{oscillator} of")
    source = "" if capture == oscillator else f" ({board.oscillator_hz / 1e6:g} MHz)"
    # The node library assumes 100 MHz by default: a level that is too long does no harm.
    slow = (f"; compile the nodes' software with `-DHM_CLOCK_HZ={board.capture_hz}`"
            if board.capture_hz < 100_000_000 else "")
    held = [f"{geometry.node_depth} nibbles per node", f"{geometry.vector_depth} strobe vectors",
            f"{geometry.frame_depth} frames" + " of the classic sink" * both]
    if geometry.store_depth:
        kib = {link.kind: board.geometry(link=link.kind).store_depth * BEAT_BYTES // 1024 for link in board.links}
        most = kib[board.links[0].kind]
        held.append(f"{most} KiB of blocks" + "".join(
            f" ({less} KiB with `--link {kind}`)" for kind, less in kib.items() if less != most))
    if board.memory:
        held.append(f"{board.memory.text}: [how long a host may be away](../buffers.md)")
    return [
        ("Level", f"{board.level}. {_idle(board)}"),
        ("Standard", f"`{standard(board)}`."),
        ("Clock", f"{board.capture_hz / 1e6:g} MHz, {ratio} the board's oscillator{source}; "
                  "times are as accurate as the oscillator."),
        ("Reference clock", _reference(board, _called(board, of))),
        ("Strobe", f"the node must hold each level for at least {level_ns(board.capture_hz)} ns, and the data for the "
                   f"same time before the active edge{slow}."),
        ("Link", f"{board.links[0].text}{others}; {_opened(board)}."),
        ("Rates", reaches(board)),
        ("Sinks", ("classic and extended, chosen at run time" if both else "classic alone") + (
            "; `hypermon build --config half-clock`: strobes stamped to half a clock" if "half-clock" in board.configs
            else "; strobes stamped to a quarter of a clock, once `hypermon selftest` has checked the phases"
            if "quarter-clock" in board.configs else "") + "."),
        ("Buffers", f"{', '.join(held)}."),
        ("Self-test", "`hypermon selftest`, with nothing attached." if geometry.emulated else
                      "none, because the board has no node emulator; use `hypermon wirecheck`."),
        ("Grounds", "one wire from every node's ground to the board's, beside the strobe: "
                    f"{'; '.join(_grounds(board))}."),
        *(("Shared", text) for text in board.shared),
        *(("Note", text) for text in board.notes),
        *(("Limit", text) for text in board.limits),
        *(("Source of the pins", text) for text in board.documents),
    ]


def mixed_facts(board: Board, before: Board) -> list[tuple[str, str]]:
    """Facts that are needed to wire a board with ``ports``, which is made of the board ``before``."""
    at = dict(zip((*board.pins, *board.spare), kept(board, before), strict=True))
    taken = [pin for node in range(board.nodes) for pin in board.node(node)]
    free = [pin.label for pin in at if pin not in taken]
    pulls, fed = _idle(before), ""
    said = [(name, text) for name, text in facts(before) if name in _COMMON]
    if board.reference and board.reference_hz:
        over, under = board.clock_ratio
        fed = f" --reference {board.reference_hz}"
        said[0] = ("Clock", f"{board.capture_hz / 1e6:g} MHz, {f'{over}/{under}' if under > 1 else f'{over} times'} "
                            f"the external clock of {board.reference_hz / 1e6:g} MHz at "
                            f"{_called(before)[board.reference.pin]}; without that clock the board does nothing.")
    up = [kind(front) for front in dict.fromkeys(board.ports) if board.pad(front) != board.attributes]
    if up:
        pulls += f" The lines of {' and '.join(up)} are pulled up instead, so they are idle."
    return [
        ("Build", f"`hypermon build {board.name}{fed} --ports {stated(board.ports)}`."),
        ("Pins", f"{len(taken)} of {len(at)}; free: {', '.join(free) or 'none'}."),
        ("Level", f"{board.level}. {pulls}"),
        *said,
    ]


def page(board: Board, of: list[str] | None = None) -> str:
    """The board's page, in Markdown; with the kept balls, or those ``of`` its pins."""
    every = wires(board, of)
    lines = [
        f"# {board.title}", "",
        "<!-- Made by `make docs` from the board's file in boards/. -->", "",
        f"{board.nodes} nodes, {board.fpga}. {_built(board)}", "",
        f"**{board.level}.**", "",
        f"![Wiring]({board.name}.svg)", "",
        "| node | " + " | ".join(PIN_ROLES) + " |", "|---|" + "---|" * len(PIN_ROLES),
    ]
    wide = len(PIN_ROLES)
    for node in range(board.nodes):
        row = every[node * wide:(node + 1) * wide]
        lines.append(f"| {node} | " + " | ".join(f"{wire.label} ({wire.ball})" for wire in row) + " |")
    said = facts(board, of)
    lines += ["", "Pin on the board, with the FPGA's pin or ball in brackets.", "",
              "## Facts", "", "| | |", "| --- | --- |",
              *(f"| {name} | {_capital(text)} |" for name, text in said if name not in _REMARKS), "",
              *(f"- {_capital(text)}{'' if text.endswith('.') else '.'}" for name, text in said
                if name in _REMARKS[:-1]),
              *(f"- Source of the pins: {text}." for name, text in said if name == _REMARKS[-1]), "",
              *_timed(board, _called(board, of)), *_fronts(board), *_regenerations(board, every)]
    return "\n".join(lines)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _reference(board: Board, called: dict[Pin, str]) -> str:
    """Where a reference clock feeds the PLL, and which wire it displaces."""
    if board.reference is None:
        return "none, because none of the pins can feed the PLL."
    pin, rates = board.reference.pin, [f"{hz / 1e6:g}" for hz in board.references_hz]
    fed = board.fed(board.references_hz[0])
    every = (*board.pins, *board.spare)
    node, role = divmod(every.index(pin), len(PIN_ROLES))
    moved = f" {PIN_ROLES[role]} of node {node} moves to {called[every[-1]]}." if node < fed.nodes else ""
    count = f" {fed.nodes} nodes are left." if fed.nodes < board.nodes else ""
    return (f"`hypermon build {board.name} --reference HZ` feeds the PLL from an external clock of "
            f"{', '.join(rates[:-1])} or {rates[-1]} MHz at {called[pin]}, an input {board.reference.function} of the "
            f"part, in place of the oscillator.{moved}{count} Without that clock the board does nothing.")


def _timed(board: Board, called: dict[Pin, str]) -> list[str]:
    """The configuration with pins for time, with the oscillator and with a reference clock."""
    rows = []
    for fed in (board, *([board.fed(board.references_hz[0])] if board.reference else [])):
        for config in fed.timed:
            how = f"`{config}`, `--reference`" if fed.reference_hz else f"`{config}`"
            pins = (called[pin] for pin in fed.time_pins(config).values())
            rows.append(f"| {how} | {fed.wired(config)} | {' | '.join(pins)} |")
    if not rows:
        return []
    return [
        "## With pins for time", "",
        f"`hypermon build {board.name} --config {TIMED}`: as `extended`, with all extras. The wave, pulses each second "
        "and a trigger have pins of their own, of the last ones of the list: "
        "[several boards](../several-boards.md) describes them. The pins have the level of the ports. No "
        "bitstream of this configuration has been placed and routed yet.", "",
        f"| configuration | nodes | {' | '.join(TIME_PINS)} |", f"| --- | ---: |{' --- |' * len(TIME_PINS)}",
        *rows, ""]


def _fronts(board: Board) -> list[str]:
    """The configurations whose nodes have fewer wires: how many, and on which pins."""
    if not board.fronts:
        return []
    roles = {"two-wire": "clock, data", "selected": "clock, data, chip select", "uart": "line", "swo": "line"}
    rows = []
    for config, nodes in board.fronts.items():
        front = FRONT_CONFIGS[config]
        first, last = (", ".join(pin.label for pin in board.node(node, front)) for node in (0, nodes - 1))
        rows.append(f"| `{config}` | {nodes} | {FRONT_WIRES[front]}: {roles[config]} | {first} | {last} |")
    spare = f", then {', '.join(pin.label for pin in board.spare)}" if board.spare else ""
    return [
        "## With fewer wires", "",
        f"`hypermon build {board.name} --config {next(iter(board.fronts))}` and the like: all nodes have the same "
        f"[front end](../front-ends.md). They take the pins in the order of the table above, row by row{spare}. "
        "These configurations were never tried on hardware.", "",
        "| configuration | nodes | wires per node | node 0 | last node |", "| --- | ---: | --- | --- | --- |",
        *rows, ""]


def _regenerations(board: Board, every: list[Wire]) -> list[str]:
    """The configurations with regeneration boards: how many nodes, and on which pins."""
    if not board.regenerations:
        return []
    named = dict(zip(board.pins, every, strict=True))
    rows = []
    for config in board.regenerations:
        pins = [" and ".join(f"{wire.label} ({wire.ball})" for wire in (named[one], named[other]))
                for one, other in board.regeneration_pins(config)]
        geometry, wired = board.geometry(config), board.wired(config)
        first = geometry.linked_nodes
        rest = ("none" if not wired else f"{first}, as 0 above" if wired == 1 else
                f"{first} to {first + wired - 1}, as 0 to {wired - 1} above")
        rows.append(f"| `{config}` | {geometry.nodes} | {2 * len(pins)} | " + "; ".join(pins) + f" | {rest} |")
    clock = board.geometry(board.regenerations[0]).clock_hz
    return [
        "## With regeneration boards", "",
        f"`hypermon build {board.name} --config {board.regenerations[0]}`"
        + (f" to `{board.regenerations[-1]}`" if len(board.regenerations) > 1 else "") + ": a "
        "[regeneration board](../regeneration.md) carries eight nodes over two pins: the reference clock, an output, "
        "to an LVDS driver, and the line, an input, from an LVDS receiver. Its nodes are the first ones, eight per "
        f"board in the order of the table. The capture clock is {clock / 1e6:g} MHz. These configurations were never "
        "tried on hardware.", "",
        "| configuration | nodes | pins of the links | reference clock and line, for each board | wired nodes |",
        "| --- | ---: | ---: | --- | --- |", *rows, ""]


def _built(board: Board) -> str:
    build, flash = f"`hypermon build {board.name}`", f"`hypermon flash {board.name}`"
    if board.family == "xilinx7":
        return (f"{build} writes a project. Vivado builds the bitstream (`vivado -mode batch -source "
                f"hypermon_board.tcl`). {flash} loads it.")
    return f"Build: {build}. Load: {flash}."


def _opened(board: Board) -> str:
    """How a host finds the board."""
    usual = uart().baud
    ports = [link.baud for link in board.links if link.baud not in (0, usual)]
    if ports:
        return f"`hypermon devices` lists the serial port: open it as `uart:PORT?baud={ports[0]}`"
    return "`hypermon devices` finds the board"


def _idle(board: Board) -> str:
    if not board.pins[0].negative:
        way = "up" if "PULLUP" in board.attributes else "down"
        return f"The FPGA pulls every pin {way}, so an unconnected port is silent."
    return ("An unconnected pair may have any level: exclude its node from capture (`--mask nodes=...` with one "
            "bit per node to keep), or see "
            "[the event regeneration board](../erb.md).")


def _grounds(board: Board) -> list[str]:
    """Where ground is, one entry per connector; those where that is not known share one."""
    known = [f"{connector.name} {connector.grounds}" for connector in board.shapes if connector.grounds]
    doubtful = [connector.name for connector in board.shapes if connector.doubtful]
    return known + ([f"for {', '.join(doubtful)}, see the board's schematic"]
                    if doubtful else [])


def standard(board: Board, node: int = 0) -> str:
    """The I/O standard of a node's wires, as the tools call it: the same for all nodes, unless there are several kinds
    of them."""
    pad = board.pad(board.ports[node]) if board.ports else board.attributes
    return " ".join(f"{key}={value}" for key, value in pad.items())


def drawing(board: Board, every: list[Wire]) -> str:
    """The board's connectors as an SVG, each wire at its hole."""
    wired = {}
    pins = [pin for node in range(board.nodes) for pin in board.node(node)]
    for pin, wire in zip(pins, every, strict=True):
        short = _SHORT.get(wire.role, wire.role.replace("data", "D"))
        signs = "+-" if pin.negative else ("",)
        for name, ball, sign in zip(filter(None, (pin.name, pin.negative)), wire.ball.split("/"), signs, strict=True):
            wired[name] = (wire.node, short + sign, ball)
    return picture(f"{board.title}: where the wires go", board.shapes, wired, [kind(front) for front in board.ports])
