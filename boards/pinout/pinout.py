"""Pinouts: the assignment of every node's wires, as rows, and as the page and the drawing of a board's documentation.

The balls come from the board's Amaranth platform. :data:`BALLS` keeps them, so that a host can print a pinout without
Amaranth. ``make docs`` regenerates all of it.
"""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hypermon.hdl.layout import BEAT_BYTES

from ..model.board import PIN_ROLES, Board
from ..model.links import uart
from ..model.reach import level_ns, reaches
from .picture import picture

__all__ = ["Wire", "balls", "drawing", "facts", "page", "standard", "wires"]

#: The kept balls: ``{board: [ball, ...]}`` in the order of a board's pins.
BALLS = "balls.json"


@dataclass(frozen=True)
class Wire:
    """One wire of a node's port."""

    node: int
    role: str
    label: str
    ball: str


def balls(board: Board) -> list[str]:
    """The balls of its pins, from its platform (needs Amaranth); of a pair both, with a slash between."""
    module, name = board.platform.split(":")
    mapping: dict[str, str] = {}
    for connector in getattr(importlib.import_module(module), name).connectors:
        mapping |= dict(connector)
    return ["/".join(mapping.get(name, name) for name in (pin.name, pin.negative) if name) for pin in board.pins]


@cache
def _kept() -> dict[str, list[str]]:
    kept: dict[str, list[str]] = json.loads(files(__package__).joinpath(BALLS).read_text())
    return kept


def wires(board: Board, of: list[str] | None = None) -> list[Wire]:
    """All wires, node by node, strobe first; with the kept balls, or those ``of`` its pins."""
    wide = len(PIN_ROLES)
    return [Wire(index // wide, PIN_ROLES[index % wide], pin.label, ball)
            for index, (pin, ball) in enumerate(zip(board.pins, of or _kept()[board.name], strict=True))]


def facts(board: Board) -> list[tuple[str, str]]:
    """Facts that are needed to wire the board, and its capabilities: names and sentences, in Markdown."""
    capture, oscillator = board.clock_ratio
    geometry = board.geometry()
    both = len(geometry.sinks) > 1
    others = "".join(f", or with `--link {link.kind}` {link.text}" for link in board.links[1:])
    # The node library assumes 100 MHz by default: a level that is too long does no harm.
    slow = f"; compile nodes with `-DHM_CLOCK_HZ={board.capture_hz}`" if board.capture_hz < 100_000_000 else ""
    held = [f"{geometry.node_depth} nibbles per node", f"{geometry.vector_depth} windows",
            f"{geometry.frame_depth} frames" + " of the classic sink" * both]
    if geometry.store_depth:
        kib = {link.kind: board.geometry(link=link.kind).store_depth * BEAT_BYTES // 1024 for link in board.links}
        most = kib[board.links[0].kind]
        held.append(f"{most} KiB of blocks" + "".join(
            f" ({less} with `--link {kind}`)" for kind, less in kib.items() if less != most))
    if board.memory:
        held.append(f"{board.memory.text}: [how long a host may be away](../buffers.md)")
    return [
        ("Level", f"{board.level}. {_idle(board)}"),
        ("Standard", f"`{standard(board)}`."),
        ("Clock", f"{board.capture_hz / 1e6:g} MHz, exactly {capture}/{oscillator} of the board's oscillator "
                  f"({board.oscillator_hz / 1e6:g} MHz); times are as accurate as the oscillator."),
        ("Strobe", f"each level at least {level_ns(board.capture_hz)} ns, data stable as long before it{slow}."),
        ("Link", f"{board.links[0].text}{others}; {_opened(board)}."),
        ("Reaches", reaches(board)),
        ("Sinks", ("classic and extended, chosen at run time" if both else "classic alone") + (
            "; `hypermon build --config half-clock`: strobes stamped to half a clock" if "half-clock" in board.configs
            else "") + "."),
        ("Buffers", f"{', '.join(held)}."),
        ("Self-test", "`hypermon selftest`, with nothing attached." if geometry.emulated else
                      "none, because the board has no node emulator; use `hypermon wirecheck`."),
        ("Ground", "one wire from every node's ground to the board's, beside the strobe."),
        *(("Ground", f"{text}.") for text in _grounds(board)),
        *(("Shared", text) for text in board.shared),
        *(("Limit", text) for text in board.limits),
        *(("Source of the pins", text) for text in board.documents),
    ]


def page(board: Board, every: list[Wire]) -> str:
    """The board's page, in Markdown."""
    lines = [
        f"# {board.title}", "",
        "<!-- Made by `make docs` from the board's file in boards/. -->", "",
        f"{board.nodes} nodes, {board.fpga}. {_built(board)}", "",
        *(f"- **{name}**: {text}" for name, text in facts(board)), "",
        f"![Wiring]({board.name}.svg)", "",
        "| node | " + " | ".join(PIN_ROLES) + " |", "|---|" + "---|" * len(PIN_ROLES),
    ]
    wide = len(PIN_ROLES)
    for node in range(board.nodes):
        row = every[node * wide:(node + 1) * wide]
        lines.append(f"| {node} | " + " | ".join(f"{wire.label} ({wire.ball})" for wire in row) + " |")
    lines += ["", "Pin on the board, with the FPGA's ball in brackets.", ""]
    return "\n".join(lines)


def _built(board: Board) -> str:
    build, flash = f"`hypermon build {board.name}`", f"`hypermon flash {board.name}`"
    if board.family == "xilinx7":
        return (f"{build} writes a project, Vivado builds the bitstream (`vivado -mode batch -source "
                f"hypermon_board.tcl`), {flash} loads it.")
    return f"Build: {build}. Load: {flash}."


def _opened(board: Board) -> str:
    """How a host finds the board."""
    usual = uart().baud
    ports = [link.baud for link in board.links if link.baud not in (0, usual)]
    if ports:
        return f"`hypermon devices` lists the serial port: open it as `uart:PORT?baud={ports[0]}`"
    return "`hypermon devices` finds it"


def _idle(board: Board) -> str:
    if not board.pins[0].negative:
        way = "up" if "PULLUP" in board.attributes else "down"
        return f"The FPGA pulls every pin {way}, so an unconnected port is silent."
    return ("An unconnected pair may have any level: mask its node (`--mask nodes=...`), or see "
            "[the regeneration board](../erb.md).")


def _grounds(board: Board) -> list[str]:
    """Where ground is, one entry per connector; those where that is not known share one."""
    known = [f"{connector.name} {connector.grounds}" for connector in board.shapes if connector.grounds]
    doubtful = [connector.name for connector in board.shapes if connector.doubtful]
    return known + ([f"for {', '.join(doubtful)}, see the board's schematic"]
                    if doubtful else [])


def standard(board: Board) -> str:
    """The I/O standard of every wire, as the tools call it."""
    return " ".join(f"{key}={value}" for key, value in board.attributes.items())


def drawing(board: Board, every: list[Wire]) -> str:
    """The board's connectors as an SVG, each wire at its hole."""
    wired = {}
    for pin, wire in zip(board.pins, every, strict=True):
        short = wire.role[0].upper() + wire.role.removeprefix("strobe").removeprefix("data")
        signs = "+-" if pin.negative else ("",)
        for name, ball, sign in zip(filter(None, (pin.name, pin.negative)), wire.ball.split("/"), signs, strict=True):
            wired[name] = (wire.node, short + sign, ball)
    return picture(f"{board.title}: where the wires go", board.shapes, wired)
