"""The page of a board in its documentation. Boards whose wires are at the same pins share a page and its drawing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from hypermon.hdl.layout import FRONT_WIRES

from ..model.board import FRONT_CONFIGS, PIN_ROLES, TIME_PINS, TIMED, Board, Pin
from .pinout import Wire, called, facts, wires

__all__ = ["Page", "page", "pages"]

#: Facts that are remarks: below the table of a board's page, where it says whence its pins are known last.
_REMARKS = ("Shared", "Note", "Limit", "Source of the pins")
#: The name of each of several boards in the commands of their page.
_ANY = "BOARD"


@dataclass(frozen=True)
class Page:
    """A page: the name of its files, its title, and its boards."""

    name: str
    title: str
    boards: tuple[Board, ...]


def pages(boards: Iterable[Board], of: Mapping[str, list[str]] | None = None) -> list[Page]:
    """The pages of boards, one for all with the same wires; with the kept balls, or those ``of`` each board's pins."""
    families: dict[object, list[Board]] = {}
    for board in boards:
        pins = called(board, of[board.name] if of else None)
        key = (board.nodes, board.level, *board.attributes.items(), *pins.items())
        families.setdefault(key, []).append(board)
    return [Page(_common(board.name for board in own), _common(board.title for board in own), tuple(own))
            for own in families.values()]


def _common(names: Iterable[str]) -> str:
    """The words with which all of the names begin."""
    parts = zip(*(re.split(r"(\W)", name) for name in names), strict=False)
    return re.sub(r"\W+$", "", "".join(part for part, *_ in takewhile(lambda same: len(set(same)) == 1, parts)))


def page(own: Page, of: list[str]) -> str:
    """The page in Markdown, with the balls of its boards' pins."""
    first, several = own.boards[0], len(own.boards) > 1
    # The commands name any of several boards, so that their facts are equal where nothing else differs.
    alike = [replace(board, name=_ANY) if several else board for board in own.boards]
    every, wide = wires(first, of), len(PIN_ROLES)
    part = "" if several else f", {first.fpga}"
    lines = [
        f"# {own.title}", "",
        "<!-- Made by `make docs` from the board's file in boards/. -->", "",
        f"{first.nodes} nodes{part}. {_built(alike[0])}", "",
        *(_choice(own.boards) if several else []),
        f"**{first.level}.**", "",
        f"![Wiring]({own.name}.svg)", "",
        "| node | " + " | ".join(PIN_ROLES) + " |", "|---|" + "---|" * wide,
    ]
    for node in range(first.nodes):
        row = every[node * wide:(node + 1) * wide]
        lines.append(f"| {node} | " + " | ".join(f"{wire.label} ({wire.ball})" for wire in row) + " |")
    said = _merged([(board.name, facts(one, of)) for board, one in zip(own.boards, alike, strict=True)])
    lines += ["", "Pin on the board, with the FPGA's pin or ball in brackets.", "",
              "## Facts", "", "| | |", "| --- | --- |",
              *(f"| {name}{f', {_quoted(whose)}' if whose else ''} | {_capital(text)} |" for name, text, whose in said
                if name not in _REMARKS), "",
              *(f"- {f'{_quoted(whose)}: ' if whose else ''}{_capital(text)}{'' if text.endswith('.') else '.'}"
                for name, text, whose in said if name in _REMARKS[:-1]),
              *(f"- Source of the pins: {text}." for name, text, _ in said if name == _REMARKS[-1]), ""]
    made = [(_timed(one, called(one, of)), _fronts(one), _regenerations(one, every)) for one in alike]
    for sections in zip(*made, strict=True):
        lines += _sections(list(zip((board.name for board in own.boards), sections, strict=True)))
    return "\n".join(lines)


def _choice(boards: Sequence[Board]) -> list[str]:
    """The boards of a page, in a table."""
    return [f"`{_ANY}` is one of these. They have the same pins. The table and the facts below state how they differ.",
            "",
            "| board | name | FPGA | capture clock, MHz | configurations |", "| --- | --- | --- | ---: | --- |",
            *(f"| {board.title} | `{board.name}` | {board.fpga} | {board.capture_hz / 1e6:g} | "
              f"{_quoted(board.configs)} |" for board in boards), ""]


def _merged(said: Sequence[tuple[str, list[tuple[str, str]]]]) -> list[tuple[str, str, list[str]]]:
    """Facts of several boards in their order: name, text, and the boards of which it is true; none means all."""
    whose: dict[tuple[str, str], list[str]] = {}
    for board, own in said:
        for fact in own:
            whose.setdefault(fact, []).append(board)
    order = list(dict.fromkeys(name for _, own in said for name, _ in own))
    return [(name, text, boards if len(boards) < len(said) else [])
            for name, text in sorted(whose, key=lambda fact: order.index(fact[0]))
            for boards in [whose[name, text]]]


def _sections(said: Sequence[tuple[str, list[str]]]) -> list[str]:
    """A section of several boards: a paragraph names the boards if not all have it."""
    lines: list[str] = []
    for text in dict.fromkeys(tuple(own) for _, own in said if own):
        whose = [board for board, own in said if tuple(own) == text]
        heading, blank, *rest = text
        only = [f"Boards: {_quoted(whose)}.", ""] if len(whose) < len(said) else []
        lines += [heading, blank, *only, *rest]
    return lines


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


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
