"""The commands that capture a board: ``record`` and ``counters``."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from hypermon.hdl.layout import Counter, Sink
from hypermon.host.analysis.stats import lost_text
from hypermon.host.cli.complete import boards_like
from hypermon.host.cli.contract import Contract
from hypermon.host.cli.junk_line import complain_of_junk, complain_of_rejects
from hypermon.host.cli.options import (
    BOARD,
    EDGES,
    MASKS,
    MODES,
    SAMPLES,
    WINDOW,
    open_device,
    settings_options,
    virtual_geometry,
    window_of,
)
from hypermon.host.cli.progress_json import ProgressJson
from hypermon.host.cli.progress_line import ProgressLine, complain
from hypermon.host.cli.runs import warn_of_ports
from hypermon.host.cli.settings import (
    edge_masks,
    guard_settings,
    lowest_of,
    mask_settings,
    modes_of,
    rate_settings,
    refuse_edges,
    trigger_settings,
)
from hypermon.host.cli.several_boards import record_several
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.counting import count, print_reduction
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.record.drain import refuse_drain
from hypermon.host.record.keep import KEEP
from hypermon.host.record.printed_items import PrintedItems
from hypermon.host.record.recorder import CutShortError, Interrupt, Limits
from hypermon.host.record.recorder import record as record_board
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import SEGMENT_BYTES
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.run import Run
from hypermon.host.text.console import make_console
from hypermon.host.text.numbers import counted, finite

__all__ = ["counters", "record", "record_with_progress"]

_OUT = click.option("-o", "--output", "run", required=True, metavar="RUN", type=click.Path(path_type=Path),
                    help="Directory of the recorded run; must not exist.")


@click.command()
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
              help="Keep only the last M minutes (up to an eighth more), for instance to see what led to an incident.")
@click.option("--segment-mib", type=click.IntRange(1), default=SEGMENT_BYTES >> 20, show_default=True, metavar="MIB",
              help="Begin a new file of blocks after MIB mebibytes.")
@click.option("--follow", is_flag=True,
              help="Follow the time of another board, whose sync_out is wired to this one's sync_in. Capture begins "
                   "with the other board's next synchronization signal. Needs --config extended.")
@click.option("--wires", default="star", show_default=True, metavar="WIRES",
              help="With --follow and several boards, how they are wired: star (all to the first), chain (each to the "
                   "one before), or the number of the board that each board after the first follows, such as 0,0,1.")
@click.option("--echo", metavar="FILE", type=click.Path(path_type=Path),
              help="With --follow and several boards, the delays of their wires, as `hypermon echo` measured them.")
@click.option("--trigger-in", type=click.Choice(["start", "stop", "both"]),
              help="The first rise of the pin trigger_in starts the capture (start), stops it (stop), or starts it "
                   "until the second rise stops it (both). The board needs the extra trigger_in.")
@settings_options
@click.option("--json", "as_json", is_flag=True,
              help="Print progress as JSON, up to ten lines per second; a slow reader misses some.")
@click.option("--print", "printing", is_flag=True,
              help="Print a line per item, as `hypermon tail RUN` does. A slow reader delays only the lines. If the "
                   "reader ends, the recording ends.")
@click.option("--dictionary", metavar="FILE", type=click.Path(path_type=Path),
              help="Event dictionary: a copy is kept in RUN, and used by --print and --check.")
@click.option("--check", "rules", metavar="RULES", type=click.Path(path_type=Path),
              help="Judge by RULES while recording: the first violation of each rule is reported at once, and the "
                   "verdicts after the end, as by `hypermon check RUN RULES`, with its exit status.")
@click.option("--until-fail", is_flag=True, help="Stop at the first violation. Needs --check.")
def record(boards: tuple[str, ...], run: Path, seconds: float | None, events: int | None,
                   until_trigger: bool, keep: str, last_minutes: float | None, segment_mib: int, follow: bool,
                   wires: str, echo: Path | None, trigger_in: str | None, as_json: bool, printing: bool,
                   dictionary: Path | None, rules: Path | None, until_fail: bool, config: str, window: str | None,
                   drain: str, flush_ms: float, edges: tuple[str, ...], samples: tuple[str, ...],
                   modes: tuple[str, ...], rates: tuple[str, ...], orders: tuple[str, ...], glitch: int,
                   rate_limit: str | None, masks: tuple[str, ...], start: str | None, stop: str | None,
                   pretrigger: int, item_timeout_ms: float) -> int:
    """Record a board, or several as one, until Ctrl-C.

    Ctrl-C ends the recording properly: the data still on the board are drained. If this program or
    the machine fails, everything recorded until then can be read. Recording stops automatically
    before the disk is full.
    """
    if (wires != "star" or echo is not None) and (len(boards) < 2 or not follow):
        raise HypermonError("--wires and --echo describe wires of several boards: add --follow and -b BOARD for each")
    if until_trigger and start is None and stop is None:
        raise HypermonError("--until-trigger needs --stop or --start")
    if printing and (as_json or keep != "raw" or len(boards) > 1):
        raise HypermonError("--print prints the blocks of one board: omit --json, --keep and further boards")
    if until_fail and rules is None:
        raise HypermonError("--until-fail needs --check RULES")
    if rules is not None and (len(boards) > 1 or keep != "raw" or drain != "stream"):
        raise HypermonError("--check judges the stream of one board: omit --keep, --drain and further boards")
    book = None if dictionary is None else load_dictionary(dictionary)
    contract = None if rules is None else Contract(rules, book, until_fail)
    if last_minutes is not None and (keep != "raw" or drain != "stream"):
        raise HypermonError("--last-minutes keeps blocks of the stream: omit --keep and --drain")
    sink = Sink[config.upper()]
    refuse_drain(drain, sink)
    kept = (mask_settings(masks, sink) | trigger_settings(start, stop, pretrigger, sink)
            | guard_settings(glitch, rate_limit, sink) | rate_settings(rates, sink))
    refuse_existing(run)
    if len(boards) > 1:
        record_several(click.get_current_context(), boards, run, follow, wires, echo, as_json)
        return 0
    with open_device(boards[0], virtual_geometry(sink)) as device:
        refuse_edges(edges, samples, device.geometry.fronts)
        rising, falling, after = edge_masks(edges, samples, device.identity.nodes)
        settings = Settings(window_of(window, sink), rising, falling, after, flush_ms, sink=sink,
                            modes=modes_of(modes, device.identity.nodes, sink, device.geometry.fronts),
                            item_timeout_ms=item_timeout_ms, lowest=lowest_of(orders, device.identity.nodes),
                            follow=follow, pin=trigger_in or "", **kept)
        if contract is not None:
            contract.refuse_unfit(settings.modes, device.identity.nodes)
        try:
            record_with_progress(device, run, settings, drain, limits=Limits(seconds, events, until_trigger),
                                 total_s=seconds, as_json=as_json, printing=printing, dictionary=dictionary, keep=keep,
                                 ring_s=None if last_minutes is None else 60 * last_minutes,
                                 segment_bytes=segment_mib << 20, contract=contract)
        except CutShortError:
            if contract is not None and run.is_dir():
                contract.judge(run, as_json)
            raise
    return 0 if contract is None else contract.judge(run, as_json)


@click.command()
@BOARD
@click.option("--seconds", type=click.FloatRange(0, min_open=True), callback=finite, metavar="S",
              help="Stop when S seconds of board time have passed.")
@click.option("--every", type=click.FloatRange(0, min_open=True), callback=finite, metavar="S",
              help="Also show the figures so far, every S seconds of board time.")
@WINDOW
@EDGES
@SAMPLES
@MODES
@MASKS
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line for each report.")
def counters(board: str, seconds: float | None, every: float | None, window: str | None, edges: tuple[str, ...],
             samples: tuple[str, ...], modes: tuple[str, ...], masks: tuple[str, ...], as_json: bool) -> None:
    """Show the counters of a board, without recording, until Ctrl-C.

    While it captures, an extended board counts items, the times between a node's items (in powers of
    two), the nodes that share a window, and the highest fill of its memories. These counters describe
    a run of any length in one small table.
    """
    sink, console = Sink.EXTENDED, make_console()
    kept = mask_settings(masks, sink)

    def show(counted: Any) -> None:
        if as_json:
            click.echo(json.dumps(counted.as_dict()))
        else:
            print_reduction(board, counted, console)

    with open_device(board, virtual_geometry(sink)) as device, Interrupt().noted() as interrupt:
        refuse_edges(edges, samples, device.geometry.fronts)
        rising, falling, after = edge_masks(edges, samples, device.identity.nodes)
        settings = Settings(window_of(window, sink), rising, falling, after, sink=sink,
                            modes=modes_of(modes, device.identity.nodes, sink, device.geometry.fronts), **kept)
        show(count(device, settings, seconds=seconds, interrupt=interrupt, every=every, look=show))


def record_with_progress(device: Device, run: Path, settings: Settings, drain: str, *, aside: bool = False,
                         limits: Limits | None = None, total_s: float | None = None, as_json: bool = False,
                         printing: bool = False, dictionary: Path | None = None, contract: Contract | None = None,
                         **more: Any) -> None:
    """``more``: of :func:`.recorder.record`. What it raises of a cut recording is raised when all has been printed.

    A first Ctrl-C after the end of the recording is only noted, too, until the command ends.
    """
    warn_of_ports(device, settings)
    if not device.phases_known:
        click.echo(f"hypermon: {device.link.uri} samples strobes four times per clock, but the phases of its samples "
                   "were not checked since it was switched on: stamps count whole clocks; to check them: hypermon "
                   f"selftest -b {device.link.uri}", err=True)
    interrupt, cut, printed = Interrupt(), None, None
    feed = ProgressJson(sys.stdout.fileno(), interrupt) if as_json else None
    click.get_current_context().with_resource(interrupt.noted())
    with ExitStack() as stack:
        if contract is not None:
            stack.enter_context(contract.watched(run, dictionary, interrupt))
        if printing:
            printed = stack.enter_context(PrintedItems(run, dictionary, interrupt))
            progress = printed.recording
        elif feed is not None:
            progress = feed.recording
        else:
            progress = stack.enter_context(ProgressLine(str(run), total_s, device.identity.frame_depth)).recording
        try:
            ledger = record_board(device, run, settings, drain=drain, aside=aside, limits=limits, interrupt=interrupt,
                                  progress=progress, **more)
        except CutShortError as error:
            ledger, cut = error.ledger, error
    if dictionary is not None and run.is_dir():
        keep_dictionary(Run(run), dictionary)
    junk = complain_of_junk(Run(run), (device, settings)) if run.is_dir() else None
    rejects = complain_of_rejects(Run(run), ledger.per_node.tolist(), ledger.counted(Counter.REJECTED),
                                  device) if run.is_dir() else None
    if feed is not None:
        end = RunInfo.load(run / "recording.json").end if run.is_dir() else None
        feed.end(ledger, end["how"] if end is not None else str(cut), cut is None, junk, rejects)
    try:
        if feed is None and (cut is None or run.is_dir()):
            click.echo(f"{run}: {counted(ledger.events, 'item')}, {lost_text(ledger.lost, ledger.stopped)} lost. "
                       f"Next: hypermon stats {run}", err=printing)
    finally:
        if cut is not None:     # whether or not anybody reads the line
            raise cut
    complain(Run(run), ledger)
    if printed is not None and printed.failed:      # the RUN is whole, what was printed is not
        raise click.exceptions.Exit(2)
    if aside and (RunInfo.load(run / "recording.json").end or {}).get("how") == interrupt.why:
        click.echo(f"{run}: interrupted before the end of the stimulus", err=True)
        raise click.exceptions.Exit(130)
