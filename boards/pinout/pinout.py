"""Pinouts: the assignment of every node's wires, as rows and as a drawing, and the facts that are needed to wire them.

The balls come from the board's Amaranth platform. :data:`BALLS` keeps them, so that a host can print a pinout without
Amaranth. ``make docs`` regenerates all of it.
"""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hypermon.hdl.layout import BEAT_BYTES, Front

from ..model.board import FRONT_ROLES, PIN_ROLES, Board, Pin
from ..model.links import uart
from ..model.mixture import kind, stated
from ..model.reach import level_ns, reaches
from .picture import picture

__all__ = ["Wire", "balls", "called", "drawing", "facts", "kept", "mixed_facts", "standard", "wires"]

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


def called(board: Board, of: list[str] | None = None) -> dict[Pin, str]:
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
        ("Reference clock", _reference(board, called(board, of))),
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
                            f"{called(before)[board.reference.pin]}; without that clock the board does nothing.")
    up = [kind(front) for front in dict.fromkeys(board.ports) if board.pad(front) != board.attributes]
    if up:
        pulls += f" The lines of {' and '.join(up)} are pulled up instead, so they are idle."
    return [
        ("Build", f"`hypermon build {board.name}{fed} --ports {stated(board.ports)}`."),
        ("Pins", f"{len(taken)} of {len(at)}; free: {', '.join(free) or 'none'}."),
        ("Level", f"{board.level}. {pulls}"),
        *said,
    ]


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
            "[the driver board](../driver-board.md).")


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


def drawing(board: Board, every: list[Wire], title: str = "") -> str:
    """The board's connectors as an SVG, each wire at its hole, with the board's title or that of its page."""
    wired = {}
    pins = [pin for node in range(board.nodes) for pin in board.node(node)]
    for pin, wire in zip(pins, every, strict=True):
        short = _SHORT.get(wire.role, wire.role.replace("data", "D"))
        signs = "+-" if pin.negative else ("",)
        for name, ball, sign in zip(filter(None, (pin.name, pin.negative)), wire.ball.split("/"), signs, strict=True):
            wired[name] = (wire.node, short + sign, ball)
    return picture(f"{title or board.title}: where the wires go", board.shapes, wired,
                   [kind(front) for front in board.ports])
