"""The commands for dev boards: pin assignments, building and loading bitstreams, checking wires."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import click
from hypermon.boards.model.board import FRONT_CONFIGS, LINKS_MAX, REFERENCES_HZ, TIMED, Board
from hypermon.boards.model.mixture import kind, stated
from hypermon.boards.pinout.pinout import Wire, drawing, facts, kept, mixed_facts, standard, wires
from hypermon.boards.registry import BOARDS, find
from hypermon.hdl.layout import FRONT_WIRES
from hypermon.host.cli.progress_line import busy_line
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.flash.bitstreams import described, find_bitstream
from hypermon.host.flash.flashing import loading
from hypermon.host.text.console import make_console
from hypermon.host.text.numbers import finite
from hypermon.host.text.printable import printable
from rich.markup import escape
from rich.table import Table

__all__ = ["build_command", "flash", "pinout", "wirecheck"]

_OUT_DEFAULT = ".build/boards"
_OUT = click.option("-o", "--out", default=_OUT_DEFAULT, show_default=True, type=click.Path(path_type=Path),
                    help="Folder of bitstreams.")
_CONFIG = click.option("--config", metavar="CONFIG",
                       type=click.Choice(["classic", "half-clock", "quarter-clock", "extended", TIMED,
                                          *FRONT_CONFIGS, *(f"links{n + 1}" for n in range(LINKS_MAX))]),
                       help="classic: event frames, as in 1990. extended: event frames or compact items, selected at "
                            "run time. half-clock, quarter-clock: as extended, with strobes sampled twice or four "
                            "times per clock. timed: as extended, with all extras and pins for them, and fewer nodes. "
                            "two-wire, selected, uart, swo: as extended, with nodes of fewer wires. "
                            f"links1 to links{LINKS_MAX}: as extended, with that many "
                            "regeneration boards. Default: extended, where available.")


def _board(context: click.Context, argument: click.Parameter, name: str) -> Board:
    try:
        return find(name)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_NAME = click.argument("board", metavar="BOARD", callback=_board)


_LINK = click.option("--link", metavar="LINK", help="A link of the board: uart, usb-ulpi or usb-pins. Default: the "
                     "first that `hypermon pinout` lists.")


def _fed(board: Board, hz: int | None) -> Board:
    """The board, with its PLL fed by a reference clock if one is asked for."""
    try:
        return board if hz is None else board.fed(hz)
    except ValueError as error:
        raise HypermonError(str(error)) from None


_REFERENCE = click.option("--reference", type=int, metavar="HZ",
                          help=f"Feed the PLL from an external clock of {', '.join(map(str, REFERENCES_HZ))} Hz at the "
                               "pin that `hypermon pinout` lists, instead of the board's oscillator.")


def _clocked(board: Board, hz: int | None) -> Board:
    """The board with a slower capture clock, if one is asked for."""
    try:
        return board if hz is None else board.clocked(hz)
    except ValueError as error:
        raise HypermonError(f"--clock {hz}: {error}") from None


_CLOCK = click.option("--clock", type=int, metavar="HZ",
                      help="A capture clock that is slower than the board's own, which `hypermon pinout` lists, for "
                           "nodes that do not reach that one.")


_PORTS = click.option("--ports", metavar="NODES=KIND,...",
                      help="How nodes are wired, such as 0-3=port,4-9=uart: port (5 wires), two_wire or serial (clock, "
                           "data), selected (3 wires: also a chip select), uart, swo (1 wire). They take the pins in "
                           "their order. A KIND without nodes is that of all others, as many as there are pins. "
                           "Default: as --config says.")


def _mixed(board: Board, ports: str | None, config: str | None, nodes: int | None) -> Board:
    """The board with nodes that are wired as the option says, if it is given."""
    try:
        return board if ports is None else board.mixed(ports, config, nodes)
    except ValueError as error:
        raise HypermonError(str(error)) from None


def _stem(board: Board, config: str | None, link: str | None) -> str:
    """What the files of a bitstream are called."""
    try:
        return board.stem(board.config(config), board.link(link))
    except ValueError as error:
        raise HypermonError(str(error)) from None


def _command(name: str, board: Board, out: Path, config: str | None, link: str | None) -> str:
    """What to type for the same bitstream: what is not a default is in it."""
    words = ["hypermon", name, board.name]
    words += ["--reference", str(board.reference_hz)] if board.reference_hz else []
    words += ["--clock", str(board.slow_hz)] if board.slow_hz else []
    words += ["--config", config] if config and config != board.configs[-1] else []
    words += ["--ports", stated(board.ports)] if board.ports else []
    words += ["--link", link] if link else []
    words += ["-o", str(out)] if str(out) != _OUT_DEFAULT else []
    return shlex.join(words)


@click.command()
@click.argument("board", metavar="[BOARD]", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per wire.")
@click.option("--svg", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write a drawing to FILE.")
@_PORTS
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="With --ports: only the first N nodes.")
@click.option("--reference", type=int, metavar="HZ", help="With --ports: as with this option of `hypermon build`.")
@click.pass_context
def pinout(context: click.Context, board: str | None, as_json: bool, svg: Path | None, ports: str | None,
           nodes: int | None, reference: int | None) -> None:
    """Show where to connect the nodes of a dev board; without BOARD, list the boards.

    Each wire has a pin on the board, with the FPGA's ball in brackets.

    \b
      hypermon pinout
      hypermon pinout ulx3s-85f
      hypermon pinout ulx3s-85f --ports 0-3=port,uart
    """
    for option, given in (("--svg", svg), ("--ports", ports)):
        if board is None and given is not None:
            raise click.UsageError(f"{option} is for one board: give its name")
    for option, number in (("--nodes", nodes), ("--reference", reference)):
        if ports is None and number is not None:
            raise click.UsageError(f"{option} is for --ports: give the kinds of nodes")
    if board is None:
        return _list(as_json)
    if svg is not None and as_json:
        raise HypermonError("--svg and --json: choose one")
    if svg is not None:
        from hypermon.host.export.sinks import refuse_output

        refuse_output(svg)
    before = _board(context, context.command.params[0], board)
    chosen = _mixed(_fed(before, reference), ports, None, nodes)
    every = wires(chosen, kept(chosen, before))
    if svg is not None:
        from hypermon.host.export.sinks import sink

        with sink(str(svg)) as out:
            out.write(drawing(chosen, every).encode())
        return None
    if as_json:
        for wire in every:
            of = {"kind": kind(chosen.ports[wire.node])} if chosen.ports else {}
            click.echo(json.dumps({"node": wire.node, **of, "signal": wire.role, "pin": wire.label, "ball": wire.ball,
                                   "standard": standard(chosen, wire.node)}))
        return None
    make_console(highlight=False).print(_table(chosen, every))
    for name, text in mixed_facts(chosen, before) if chosen.ports else facts(chosen):
        plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).replace("`", "")
        click.echo(f"{name}: {plain}")
    return None


def _table(board: Board, every: list[Wire]) -> Table:
    """Where the wires of each node go."""
    if not board.ports:
        table = Table("node", *dict.fromkeys(wire.role for wire in every), title=board.title)
        for node in range(board.nodes):
            table.add_row(str(node), *(f"{wire.label} ({wire.ball})" for wire in every if wire.node == node))
        return table
    most = max(FRONT_WIRES[front] for front in board.ports)
    table = Table("node", "kind", *(f"wire {number + 1}" for number in range(most)), title=board.title)
    for node, front in enumerate(board.ports):
        table.add_row(str(node), kind(front), *(f"{wire.role} {wire.label} ({wire.ball})" for wire in every
                                                if wire.node == node))
    return table


def _list(as_json: bool) -> None:
    if as_json:
        for board in BOARDS.values():
            click.echo(json.dumps({"board": board.name, "title": board.title, "fpga": board.fpga, "nodes": board.nodes,
                                   "clock_hz": board.capture_hz, "links": [link.kind for link in board.links]}))
        return
    table = Table("board", "FPGA", "nodes", "clock", "links")
    for board in BOARDS.values():
        table.add_row(board.name, board.fpga, str(board.nodes), f"{board.capture_hz / 1e6:g} MHz",
                      "; ".join(f"{link.kind} ({link.text})" for link in board.links))
    make_console(highlight=False).print(table)


@click.command("build")
@_NAME
@_OUT
@_CONFIG
@_PORTS
@_LINK
@_REFERENCE
@_CLOCK
@click.option("--serial", metavar="TEXT",
              help="Serial number of a USB board, letters and digits, as in usb:TEXT. Default: 0")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Only the first N nodes; this builds faster.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="Seed for placement and routing. A different seed may reach a higher clock; the same seed gives "
                   "the same bitstream.")
@click.option("--json", "as_json", is_flag=True, help="Describe the result as JSON.")
def build_command(board: Board, out: Path, config: str | None, ports: str | None, link: str | None,
                  reference: int | None, clock: int | None, serial: str | None, nodes: int | None, seed: int,
                  as_json: bool) -> None:
    """Build the bitstream of a dev board with Yosys, nextpnr and a packer: ten minutes or more.

    Fails if a clock does not reach its frequency. Needs the extra `boards`.

    \b
      hypermon build ulx3s-85f
      hypermon flash ulx3s-85f
    """
    board = _mixed(_clocked(_fed(board, reference), clock), ports, config, nodes)
    _refuse_folder(out)
    try:
        from hypermon.boards.toolchain import bitstream as building
    except ImportError as error:
        raise HypermonError(f"building needs {error.name}: {to_install('boards')}") from None
    try:
        begun = time.time()
        with busy_line(f"building {board.name}", lambda: building.step(board, out, config, link, begun)):
            built = building.build(board, out, config=config, nodes=nodes, link=link, serial=serial, seed=seed,
                                   say=lambda text: click.echo(text, err=True))
    except building.ToolMissingError as error:
        raise HypermonError(f"{error}: {to_install('boards')}") from None
    except (building.BuildError, ValueError) as error:
        raise HypermonError(str(error)) from None
    if as_json:
        click.echo(described(out, _stem(board, config, link)).read_text(), nl=False)
        return
    if built.vendor:
        folder = (out / built.bitstream).parent
        luts, flops = (sum(n for kind, n in built.used.items() if kind.startswith(stem)) for stem in ("LUT", "FD"))
        click.echo(f"{folder}: a project for {built.vendor}, which does the rest; from Yosys: {luts} lookup tables, "
                   f"{flops} flip-flops; {built.seconds} s")
        click.echo(f"The bitstream: (cd {folder} && {built.vendor.lower()} -mode batch -source hypermon_board.tcl)")
        click.echo(f"To load it: {_command('flash', board, out, config, link)}")
        return
    skew = f"wires of a port differ by {max(built.skews_ps)} ps at most inside the FPGA; " if built.skews_ps else ""
    clocks = ", ".join(f"{name} {reached:g} MHz of {asked:g}" for name, (reached, asked) in built.clocks.items())
    click.echo(f"{out / built.bitstream}: {clocks}; {skew}{built.seconds} s; sha256 {built.sha256[:16]}...")
    click.echo(f"To load it: {_command('flash', board, out, config, link)}")


def _refuse_folder(out: Path) -> None:
    """Raises HypermonError if the folder cannot be made: before a build, not after its minutes."""
    there = out.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise HypermonError(f"{out}: the folder cannot be made: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise HypermonError(f"{out}: the folder cannot be made: nothing can be written in {there}")


@click.command()
@_NAME
@_OUT
@_CONFIG
@_PORTS
@_LINK
@_REFERENCE
@_CLOCK
@click.option("--keep", is_flag=True,
              help="Write to the board's flash memory, so that the bitstream survives power-off. For iCE40 boards and "
                   "boards with a boot loader this is always the case.")
@click.option("-v", "--verbose", is_flag=True, help="Show all that the program says that loads the bitstream.")
def flash(board: Board, out: Path, config: str | None, ports: str | None, link: str | None, reference: int | None,
          clock: int | None, keep: bool, verbose: bool) -> None:
    """Load a bitstream into a board; no HDL tool is needed.

    Uses openFPGALoader, or dfu-util or Apollo for boards with their own boot loader or debugger. A bitstream
    that was built here has precedence over that of the package hypermon-bitstreams.

    \b
      hypermon flash ulx3s-85f --keep
    """
    board = _mixed(_clocked(_fed(board, reference), clock), ports, config, None)
    found = find_bitstream(out, _stem(board, config, link), _command("build", board, out, config, link))
    with tempfile.TemporaryDirectory(prefix="hypermon-") as scratch:
        command = loading(board, found.path, keep, Path(scratch))
        said = found.said
        kinds = f" ({said['ports']})" if said.get("ports") else ""
        click.echo(f"{found.path}: {said['nodes']} nodes{kinds}, {said['config']}, gateware {said['build']}, "
                   f"{found.source}", err=True)
        if verbose:
            status, last = subprocess.run(command, check=False).returncode, ""
        else:
            with busy_line(f"loading {board.name}"):
                done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
            status = done.returncode
            for line in done.stdout.splitlines() if status == 0 else ():
                click.echo(printable(line))
            said_last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-1:]
            last = "".join(said_last).strip()
        if status:
            raise HypermonError(
                f"{board.name}: not loaded{f' ({printable(last)})' if last else ''}; are its cable and its power "
                "connected, and does `hypermon devices` list it? It may need a udev rule (docs/links.md). All that "
                f"{Path(command[0]).name} says: hypermon flash {board.name} -v")


@click.command()
@click.option("-b", "--board", default="sim:", show_default=True, metavar="BOARD",
              help="The board, as `hypermon devices` lists it.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), callback=finite,
              default=1.0, show_default=True, metavar="S",
              help="How long to listen, in seconds of board time.")
@click.option("--edge", type=click.Choice(["rising", "both"]), default="rising", show_default=True,
              help="Active edge of the nodes' strobes: rising for HM_EDGES 1, both for 2.")
@click.option("--nodes", metavar="N,N,...", help="The nodes that must be present. Default: all nodes of the board.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per node.")
def wirecheck(board: str, seconds: float, edge: str, nodes: str | None, as_json: bool) -> int:
    """Find swapped, stuck and missing wires while the nodes call hm_wire_check() repeatedly.

    All nodes write the same pattern, so exchanged ports are not detected: let one node write at a time to
    find them. Exit status 1 if a port is wired wrongly.

    \b
      hypermon wirecheck -b uart:/dev/ttyUSB0 --nodes 0,1,2
    """
    from hypermon.host.device.device import Device
    from hypermon.host.diagnose.wirecheck import THRESHOLDS, check_wires
    from hypermon.host.link import open_link

    try:
        named = None if nodes is None else sorted({int(node) for node in nodes.split(",")})
    except ValueError:
        raise click.BadParameter(f"{nodes!r} is not a list of numbers like 0,1,2", param_hint="--nodes") from None
    with Device(open_link(board, None)) as device:
        there = device.identity.nodes
        asked = range(there) if named is None else named
        if wrong := [node for node in asked if not 0 <= node < there]:
            raise click.BadParameter(f"the board has nodes 0 to {there - 1}, not {wrong[0]}", param_hint="--nodes")
        verdicts = [v for v in check_wires(device, seconds=seconds, both_edges=edge == "both") if v.node in asked]
    console = make_console(highlight=False)
    for verdict in verdicts:
        if as_json:
            click.echo(json.dumps({**asdict(verdict), "thresholds": THRESHOLDS}))
        else:
            mark = "[green]right[/]" if verdict.ok else "[red]WRONG[/]"
            console.print(f"{mark}  node {verdict.node:<3} {escape(verdict.seen)}", soft_wrap=True)
    return 0 if all(verdict.ok for verdict in verdicts) else 1
