"""The command ``hypermon``.

Flow: welcome, runs, live, boards, emulate, ipsc, several_boards, settings, complete, help_examples, progress_line,
    progress_json
"""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from hypermon.hdl.layout import BEAT_BYTES, FRAME_WINDOW, NODES_MAX, PORT_BITS, Geometry, Sink, Window
from hypermon.host.analysis.stats import lost_text
from hypermon.host.cli.boards import BOARD_COMMANDS
from hypermon.host.cli.complete import boards_like
from hypermon.host.cli.emulate import emulate
from hypermon.host.cli.help_examples import add_examples
from hypermon.host.cli.ipsc import ipsc
from hypermon.host.cli.live import LIVE_COMMANDS
from hypermon.host.cli.progress_json import Feed
from hypermon.host.cli.progress_line import ProgressLine
from hypermon.host.cli.runs import RUN_COMMANDS, complain, warn_of_ports
from hypermon.host.cli.settings import edge_masks, guard_settings, mask_settings, modes_of, trigger_settings
from hypermon.host.cli.several_boards import record_several
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.record.drain import refuse_drain
from hypermon.host.record.keep import KEEP
from hypermon.host.record.recorder import CutShortError, Interrupt, Limits, record
from hypermon.host.recording.info import Run, RunInfo, refuse_existing
from hypermon.host.recording.segments import SEGMENT_BYTES
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import finite
from hypermon.host.text.printable import printable
from hypermon.host.wire.item_modes import TIMEOUT_MS
from rich.markup import escape
from rich.table import Table

__all__ = ["main"]

Function = Callable[..., Any]
_BOARD = click.option("-b", "--board", default="sim:", show_default=True, metavar="BOARD", shell_complete=boards_like,
                      help="The board, as `hypermon devices` lists it: sim: (virtual, idle), sim:FILE (virtual, "
                           "plays a stimulus), usb: or usb:SERIAL, uart:DEVICE (at a serial port), tcp:HOST:PORT "
                           "(at another machine).")


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hypermon", message="hypermon %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """One globally timed trace of up to 32 nodes, from 5-bit ports.

    A node's software writes events to its port, a nibble at a time. The board stamps the nibbles of
    all nodes with one time. This program records the board's output, decodes it, and reports every
    loss.

    \b
    To begin without hardware (a stimulus is a file of port writes):
      printf 'time_ns,node,port\\n1000,0,5\\n2000,0,21\\n' > hello.csv
      hypermon sim hello.csv -o hello       play it on the virtual board and record the output
      hypermon stats hello                  figures of the run
      hypermon export hello --to csv -      the nibbles, one per line
    """
    if context.invoked_subcommand is None:
        from hypermon.host.cli.welcome import welcome

        click.echo(welcome(Path()))


cli.add_command(ipsc)


# ------------------------------------------------------------------------------------------ boards

@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def devices(as_json: bool) -> None:
    """List the boards that are connected, and what to do if one cannot be opened."""
    from hypermon.host.link import find_boards

    found = find_boards()
    if as_json:
        click.echo(json.dumps([board._asdict() for board in found], indent=2))
        return
    width = max(len(printable(board.uri)) for board in found)
    for board in found:
        click.echo(f"{printable(board.uri):{width}}  {printable(board.what)}")
        if board.problem is not None:
            click.echo(f"{'':{width}}  cannot be opened: {printable(board.problem)}")


@cli.command()
@_BOARD
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def info(board: str, as_json: bool) -> None:
    """Describe a board, and the source of its clock if its bitstream is known here."""
    from hypermon.host.flash.bitstreams import clock_known

    with _open(board) as device:
        values = {"board": board, **device.identity.as_dict()}
    values |= clock_known(values["build"], Path(".build/boards"))
    if values.get("bitstreams") == [] and board.partition(":")[0] != "sim":
        click.echo(f"hypermon: {board} has build {values['build']}, and no bitstream that is known here has: it is "
                   "older or newer than those; to load one of them: hypermon flash BOARD", err=True)
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    table = Table.grid(padding=(0, 2))
    for name, value in values.items():
        table.add_row(f"[bold]{name}", cell(", ".join(value) if isinstance(value, list) else str(value)))
    make_console().print(table)


def _open(uri: str, geometry: Geometry | None = None) -> Device:
    """``geometry`` is what a virtual board gets; a real one has its own."""
    from hypermon.host.link import open_link

    return Device(open_link(uri, geometry))


# --------------------------------------------------------------------------------------- recording

_WINDOW = click.option("--window", type=click.Choice(list(FRAME_WINDOW)), default=None,
                       help="Synchronization window in ns; 1 is one clock. Default: 800; extended: 1.")
_EDGES = click.option("--edge", "edges", multiple=True, metavar="[NODE=]EDGE",
                      help="Active edge of the strobes: rising (default), falling or both. NODE= sets one node.")
_SAMPLES = click.option("--sample", "samples", multiple=True, metavar="[NODE=]POINT",
                        help="Sample the data before or after the edge (default: before; after with both edges).")
_MODES = click.option("--mode", "modes", multiple=True, metavar="[NODE=]MODE",
                      help="What an item is: a nibble (default), a word (8 nibbles) or an event (its length, then "
                           "bytes). NODE= sets one node. Words and events need --config extended.")
_MASKS = click.option("--mask", "masks", multiple=True, metavar="WHAT=MASK",
                      help="Keep only items whose bit is set: nodes=0x00ff (nodes 0 to 7), nibbles=0x8001 (nibbles 0 "
                           "and 15; needs --config extended). Or only events with the given ids: "
                           "events=1,3,0x80-0xff (needs --mode event).")
_GLITCH = click.option("--glitch", type=click.IntRange(0, 15), default=0, metavar="CLOCKS",
                       help="A strobe level counts only if it lasts the given number of clocks, 2 to 15. Runts and "
                            "ringing are rejected and counted. Needs --config extended.")
_RATE_LIMIT = click.option("--rate-limit", metavar="ITEMS/WINDOWS",
                           help="Per node, accept at most ITEMS (1 to 255) in each interval of WINDOWS (a power of "
                                "two). Further items are rejected and counted. Protects against a floating strobe. "
                                "Needs --config extended.")
_START = click.option("--start", metavar="MATCH",
                      help="Keep nothing until an item matches: [node=N,]nibble=V (byte=V with ports of 8 bits) or "
                           "[node=N,]event=ID. Append /MASK to a number to compare only some of its bits. V is the "
                           "first nibble of the item. Needs --config extended.")
_STOP = click.option("--stop", metavar="MATCH", help="Keep nothing after the window of the first item that matches.")
_PRETRIGGER = click.option("--pretrigger", type=int, default=0, show_default=True, metavar="N",
                           help="Also keep the N port writes before the start, and the whole window of the first one.")


def _settings_options(function: Function) -> Function:
    """The options that `sim` and `record` share."""
    for option in reversed([
        click.option("--config", type=click.Choice([sink.name.lower() for sink in Sink]), default="classic",
                     show_default=True, help="Which board: that of 1990, or the extended one."),
        _WINDOW,
        click.option("--drain", type=click.Choice(["stream", "registers"]), default="stream", show_default=True,
                     help="How data leave the board: over the link's stream, or through registers as in 1990."),
        click.option("--flush-ms", type=click.FloatRange(0), callback=finite, default=1.0, show_default=True,
                     metavar="F", help="Longest time in ms that an item waits for others to fill its block."),
        _EDGES, _SAMPLES, _GLITCH, _RATE_LIMIT, _MODES, _MASKS, _START, _STOP, _PRETRIGGER,
        click.option("--item-timeout-ms", type=click.FloatRange(0, min_open=True), callback=finite,
                     default=TIMEOUT_MS, show_default=True, metavar="T",
                     help="Abort a word or event that waits longer than T for its next nibble."),
    ]):
        function = option(function)
    return function


_OUT = click.option("-o", "--output", "run", required=True, metavar="RUN", type=click.Path(path_type=Path),
                    help="Directory of the recorded run; must not exist.")


@cli.command()
@click.argument("stimulus", nargs=-1, required=True, metavar="STIMULUS...")
@_OUT
@click.option("--nodes", type=click.IntRange(1, NODES_MAX), default=16, show_default=True, metavar="N",
              help=f"Nodes of the board, 1 to {NODES_MAX}.")
@_settings_options
@click.option("--clock", type=int, default=100_000_000, show_default=True, metavar="HZ",
              help="Clock of the board, a multiple of 5 MHz.")
@click.option("--drain-rate", type=click.FloatRange(1), callback=finite, metavar="BYTES/S",
              help="Rate at which the host reads the stream. Default: faster than the board can write.")
@click.option("--stall", "stalls", multiple=True, metavar="AT_MS,FOR_MS",
              help="At AT_MS the host stops reading for FOR_MS. Repeatable.")
@click.option("--store-kib", type=click.IntRange(0, 512), metavar="KIB",
              help="Block RAM that buffers blocks for the host. Default: none in the classic configuration, 48 in "
                   "the extended one.")
@click.option("--memory-mib", type=click.IntRange(0, 4096), default=0, metavar="MIB",
              help="SDRAM that buffers blocks for the host, a power of two.")
@click.option("--port", "ports", multiple=True, metavar="[FILE#]NODE=D0,D1,D2,D3,STROBE[,EDGE][,POINT]",
              help="The channels of a .sr or .vcd file that are a node's port. Repeatable. "
                   "With --port-bits 8, D0 to D7.")
@click.option("--half-clock", is_flag=True,
              help="A board that samples strobes twice per clock: with --window 1, stamps count half clocks. Needs "
                   "--config extended.")
@click.option("--port-bits", type=click.Choice(["4", "8"]), default="4", show_default=True, metavar="4|8",
              help="Data bits of a port. With 8, each write carries a byte. Needs --config extended.")
@click.option("--seed", type=int, metavar="N",
              help="Delay inputs that change at the sampling edge by one clock, at random.")
@click.option("--no-skip", is_flag=True, help="Simulate every clock, even when nothing happens (same result).")
def sim(stimulus: tuple[str, ...], run: Path, nodes: int, config: str, window: str | None, drain: str,
        flush_ms: float, edges: tuple[str, ...], samples: tuple[str, ...], modes: tuple[str, ...],
        glitch: int, rate_limit: str | None, masks: tuple[str, ...], start: str | None, stop: str | None,
        pretrigger: int, item_timeout_ms: float, clock: int, drain_rate: float | None, stalls: tuple[str, ...],
        store_kib: int | None, memory_mib: int, ports: tuple[str, ...], half_clock: bool, port_bits: str,
        seed: int | None, no_skip: bool) -> None:
    """Play STIMULUS on the virtual board and record the output.

    The virtual board is the gateware itself, simulated. A stimulus is a CSV file with the columns
    `time_ns,node,port`, a sigrok session (.sr), a value change dump (.vcd), or a recorded run. Several are merged.
    In a CSV file `port` is the new value of the port: bit 4 is the strobe, bits 3 to 0 are the nibble. With
    --port-bits 8, bit 8 is the strobe and bits 7 to 0 are the byte.
    """
    from hypermon.host.link import open_virtual

    sink = Sink[config.upper()]
    item_modes = modes_of(modes, nodes, sink)
    kept = (mask_settings(masks, sink) | trigger_settings(start, stop, pretrigger, sink)
            | guard_settings(glitch, rate_limit, sink))
    refuse_drain(drain, sink)
    for option, asked in (("--half-clock", half_clock), ("--port-bits 8", port_bits == "8")):
        if asked and sink is Sink.CLASSIC:
            raise HypermonError(f"{option}: the classic board does not have it; add --config extended")
    try:
        geometry = _geometry(sink, nodes, clock, half_clock, int(port_bits))
    except ValueError as error:
        raise HypermonError(f"--clock {clock}: {error}") from None
    geometry = _with_buffers(geometry, store_kib, memory_mib)
    pauses = tuple(_stall(text) for text in stalls)
    refuse_existing(run)
    rate = None if drain_rate is None else int(drain_rate)
    link = open_virtual(stimulus, geometry, ports=ports, edges=edges, samples=samples, drain_rate=rate,
                        stalls=pauses, seed=seed, skip=not no_skip)
    times: Any = getattr(getattr(link, "stimulus", None), "time_ps", ())
    settings = Settings(window=_window(window, sink), flush_ms=flush_ms, sink=sink, modes=item_modes,
                        item_timeout_ms=item_timeout_ms, **kept)
    with Device(link) as device:
        _record(device, run, settings, drain, aside=True, total_s=times[-1] / 1e12 if len(times) else None)


@cli.command("record")
@click.option("-b", "--board", "boards", multiple=True, default=("sim:",), show_default=True, metavar="BOARD",
              shell_complete=boards_like,
              help="The board, as `hypermon devices` lists it. Several boards make one recording: node numbers "
                   "continue from board to board, and times are those of the first.")
@_OUT
@click.option("--seconds", type=click.FloatRange(0, min_open=True), callback=finite, metavar="S",
              help="Stop when S seconds of board time have passed.")
@click.option("--events", type=click.IntRange(1), metavar="N", help="Stop after about N items.")
@click.option("--until-trigger", is_flag=True,
              help="Stop when the board has found the --stop item or, without --stop, the --start item.")
@click.option("--keep", type=click.Choice(KEEP), default="raw", show_default=True,
              help="What to keep: the raw blocks, the decoded items (RUN/events), or only the figures.")
@click.option("--last-minutes", type=click.FloatRange(0, min_open=True), callback=finite, metavar="M",
              help="Keep only the last M minutes, at most an eighth more: to see what led to an incident.")
@click.option("--segment-mib", type=click.IntRange(1), default=SEGMENT_BYTES >> 20, show_default=True, metavar="MIB",
              help="Begin a new file of blocks after MIB mebibytes.")
@click.option("--follow", is_flag=True,
              help="Follow the time of another board, whose sync_out is wired to this one's sync_in. Capture begins "
                   "with its next wave. Needs --config extended.")
@_settings_options
@click.option("--json", "as_json", is_flag=True,
              help="Print progress as JSON, up to ten lines per second; a slow reader misses some.")
def record_command(boards: tuple[str, ...], run: Path, seconds: float | None, events: int | None,
                   until_trigger: bool, keep: str, last_minutes: float | None, segment_mib: int, follow: bool,
                   as_json: bool, config: str, window: str | None, drain: str, flush_ms: float, edges: tuple[str, ...],
                   samples: tuple[str, ...], modes: tuple[str, ...], glitch: int, rate_limit: str | None,
                   masks: tuple[str, ...], start: str | None, stop: str | None, pretrigger: int,
                   item_timeout_ms: float) -> None:
    """Record a board, or several as one, until Ctrl-C.

    Ctrl-C ends the recording properly: the data still on the board are drained. If this program or
    the machine fails, everything recorded until then can be read. Recording stops automatically
    before the disk is full.
    """
    if until_trigger and start is None and stop is None:
        raise HypermonError("--until-trigger needs --stop or --start")
    if last_minutes is not None and (keep != "raw" or drain != "stream"):
        raise HypermonError("--last-minutes keeps blocks of the stream: omit --keep and --drain")
    sink = Sink[config.upper()]
    refuse_drain(drain, sink)
    kept = (mask_settings(masks, sink) | trigger_settings(start, stop, pretrigger, sink)
            | guard_settings(glitch, rate_limit, sink))
    refuse_existing(run)
    if len(boards) > 1:
        record_several(click.get_current_context(), boards, run, follow, as_json)
        return
    with _open(boards[0], _geometry(sink)) as device:
        rising, falling, after = edge_masks(edges, samples, device.identity.nodes)
        settings = Settings(_window(window, sink), rising, falling, after, flush_ms, sink=sink,
                            modes=modes_of(modes, device.identity.nodes, sink), item_timeout_ms=item_timeout_ms,
                            follow=follow, **kept)
        _record(device, run, settings, drain, limits=Limits(seconds, events, until_trigger), total_s=seconds,
                as_json=as_json, keep=keep, ring_s=None if last_minutes is None else 60 * last_minutes,
                segment_bytes=segment_mib << 20)


@cli.command()
@_BOARD
@click.option("--seconds", type=click.FloatRange(0, min_open=True), callback=finite, metavar="S",
              help="Stop when S seconds of board time have passed.")
@click.option("--every", type=click.FloatRange(0, min_open=True), callback=finite, metavar="S",
              help="Also show the figures so far, every S seconds of board time.")
@_WINDOW
@_EDGES
@_SAMPLES
@_MODES
@_MASKS
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line each time.")
def counters(board: str, seconds: float | None, every: float | None, window: str | None, edges: tuple[str, ...],
             samples: tuple[str, ...], modes: tuple[str, ...], masks: tuple[str, ...], as_json: bool) -> None:
    """Show the counters of a board, without recording, until Ctrl-C.

    While it captures, an extended board counts items, the times between a node's items (in powers of
    two), the nodes that share a window, and the highest fill of its memories. This describes a run of
    any length in one small table.
    """
    from hypermon.host.diagnose.counting import count, print_reduction

    sink, console = Sink.EXTENDED, make_console()
    kept = mask_settings(masks, sink)

    def show(counted: Any) -> None:
        if as_json:
            click.echo(json.dumps(counted.as_dict()))
        else:
            print_reduction(board, counted, console)

    with _open(board, _geometry(sink)) as device, Interrupt().noted() as interrupt:
        rising, falling, after = edge_masks(edges, samples, device.identity.nodes)
        settings = Settings(_window(window, sink), rising, falling, after, sink=sink,
                            modes=modes_of(modes, device.identity.nodes, sink), **kept)
        show(count(device, settings, seconds=seconds, interrupt=interrupt, every=every, look=show))


cli.add_command(emulate)


@cli.command("selftest")
@_BOARD
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per check.")
def selftest_command(board: str, as_json: bool) -> int:
    """Let a board test itself, with no node attached.

    The board's node emulator writes to every port, after the pads: every value, all nodes at once,
    more than the FIFOs hold, and until the store is full while the host does not read. Received,
    refused and reported nibbles must agree exactly. Exit status 1 if a check fails.
    """
    from hypermon.host.diagnose.selftest import VIRTUAL_LINK, selftest
    from hypermon.host.link import open_virtual

    console, failed, geometry = make_console(), 0, _geometry(Sink.EXTENDED)
    virtual = board.partition(":")[0] == "sim"
    with Device(open_virtual([], geometry, uri=board, drain_rate=VIRTUAL_LINK)) if virtual else _open(board) as device:
        for verdict in selftest(device):
            failed += verdict.passed is False
            if as_json:
                click.echo(json.dumps(verdict._asdict()))
            else:
                mark = {True: "[green]passed[/]", False: "[red]FAILED[/]", None: "  -   "}[verdict.passed]
                console.print(f"{mark}  {verdict.name:<28} {escape(verdict.seen)}", highlight=False, soft_wrap=True)
    if failed and not as_json:
        click.echo(f"hypermon: {board} failed {failed} checks", err=True)
    return 1 if failed else 0


def _geometry(sink: Sink, nodes: int = 16, clock_hz: int = 100_000_000, half_clock: bool = False,
              port_bits: int = PORT_BITS) -> Geometry:
    """What a virtual board is built as: with the classic sink alone, or with both and larger buffers."""
    if sink is Sink.CLASSIC:
        return Geometry(nodes, clock_hz)
    return Geometry.extended(nodes, clock_hz, half_clock=half_clock, port_bits=port_bits)


def _with_buffers(geometry: Geometry, store_kib: int | None, memory_mib: int) -> Geometry:
    """With these buffers before the link, instead of its own."""
    try:
        if store_kib is not None:
            geometry = replace(geometry, store_depth=store_kib * 1024 // BEAT_BYTES)
        return replace(geometry, external_depth=memory_mib * 1024 * 1024 // BEAT_BYTES)
    except ValueError as error:
        raise HypermonError(f"--store-kib, --memory-mib: {error} (in beats of {BEAT_BYTES} bytes)") from None


def _window(name: str | None, sink: Sink) -> Window:
    """The window by its name; without one, 800 ns as in 1990, or one clock in the extended configuration."""
    return FRAME_WINDOW[name or ("800" if sink is Sink.CLASSIC else "1")]


def _record(device: Device, run: Path, settings: Settings, drain: str, *, aside: bool = False,
            limits: Limits | None = None, total_s: float | None = None, as_json: bool = False, **more: Any) -> None:
    """``more``: of :func:`.recorder.record`. What it raises of a cut recording is raised when all has been printed."""
    warn_of_ports(device, settings)
    interrupt, cut = Interrupt(), None
    feed = Feed(sys.stdout.fileno(), interrupt) if as_json else None
    with interrupt.noted(), ProgressLine(str(run), total_s, device.identity.frame_depth) as line:
        try:
            ledger = record(device, run, settings, drain=drain, aside=aside, limits=limits, interrupt=interrupt,
                            progress=line.recording if feed is None else feed.recording, **more)
        except CutShortError as error:
            ledger, cut = error.ledger, error
    if feed is not None:
        end = RunInfo.load(run / "recording.json").end if run.is_dir() else None
        feed.end(ledger, end["how"] if end is not None else str(cut), cut is None)
    elif cut is None or run.is_dir():
        click.echo(f"{run}: {ledger.events:,} items, {lost_text(ledger.lost, ledger.stopped)} lost. "
                   f"Next: hypermon stats {run}")
    if cut is not None:
        raise cut
    complain(Run(run), ledger)
    if interrupt.hit and aside:
        click.echo(f"{run}: interrupted before the end of the stimulus", err=True)
        raise click.exceptions.Exit(130)


def _stall(text: str) -> tuple[Decimal, Decimal]:
    try:
        at, length = (Decimal(part) for part in text.split(","))
        if not (0 <= at < Decimal("inf") and 0 <= length < Decimal("inf")):
            raise ValueError
    except (ValueError, ArithmeticError):
        raise HypermonError(f"--stall {text}: expected AT_MS,FOR_MS, two times in milliseconds") from None
    return at, length


# ---------------------------------------------------------------------------------- other commands

for _command in (*RUN_COMMANDS, *LIVE_COMMANDS, *BOARD_COMMANDS):
    cli.add_command(_command)


@cli.command("dict")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check it; exit status 2 and the reason if it is wrong.")
@click.option("--c-header", "header", metavar="OUT", help="Write a C header with its ids and with functions that write "
                                                          "its events with sim/node/hypermon.h; - is standard output.")
@click.option("--prefix", metavar="NAME", help="Prefix of the names in the header. Default: the file's name.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per event.")
def dictionary_command(file: Path, check: bool, header: str | None, prefix: str | None, as_json: bool) -> None:
    """Show an event dictionary: a TOML file that gives a program's event ids names and fields.

    docs/dictionary.md describes the file. `hypermon decode RUN --dictionary FILE` decodes with it.
    """
    from hypermon.host.dictionary.dictionary import load_dictionary, print_dictionary

    if header is not None and as_json:
        raise HypermonError("--c-header and --json: choose one")
    dictionary = load_dictionary(file)
    if header is not None:
        from hypermon.host.dictionary.c_header import c_header
        from hypermon.host.export.formats import sink

        name = click.format_filename(file, shorten=True)
        text = c_header(dictionary, name, re.sub(r"\W", "_", file.stem) if prefix is None else prefix)
        with sink(header) as out:
            out.write(text.encode())
    elif as_json:
        for kind in dictionary.events:
            click.echo(json.dumps(kind.as_dict()))
    elif not check:
        print_dictionary(dictionary, make_console())
    if check:
        counts = f"{len(dictionary.events)} events, {len(dictionary.nodes)} nodes with names"
        click.echo(f"{click.format_filename(file)}: {counts}", err=header == "-")


add_examples(cli)


# -------------------------------------------------------------------------------------------- main

def _run(arguments: Sequence[str]) -> int:
    """Exit status: 0, or what the command says; one line on stderr and the error's (2 or 3); 130: a second Ctrl-C."""
    try:
        status = cli.main(args=list(arguments), prog_name="hypermon", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "hypermon"
        click.echo(f"{command}: {printable(error.format_message()).rstrip('.')} (see {command} --help)", err=True)
    except (click.ClickException, HypermonError) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"hypermon: {printable(text)}", err=True)
        return getattr(error, "status", 2)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # The reader of our output has gone: no more of it, and no complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        click.echo(f"hypermon: {printable(f'{where}{error.strerror or error}')}", err=True)
    return 2


def main() -> None:
    sys.exit(_run(sys.argv[1:]))
