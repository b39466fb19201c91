"""The commands ``hypermon ipsc``: the emulated iPSC/2, monitored by HYPERMON."""

import json
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from hypermon.hdl.layout import FRAME_WINDOW, Sink
from hypermon.host.analysis.stats import duration_text, quantity
from hypermon.host.cli.options import warn_of_the_bus
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import finite, significant
from rich.table import Table

__all__ = ["ipsc"]

_NODES = click.option("--nodes", type=click.Choice(["1", "2", "4", "8", "16"]), default="2", show_default=True,
                      help="Nodes of the cube.")
_DELAY_HELP = "Iterations of a null loop between two nibbles, 13 cycles each."
_DELAY = click.option("--delay", type=click.IntRange(0, 100_000), default=20, show_default=True, metavar="N",
                      help=_DELAY_HELP)
_WINDOW = click.option("--window", type=click.Choice(list(FRAME_WINDOW)), default=None,
                       help="Synchronization window in ns; 1 is one clock. Default: 800; extended: 1.")
_RATE = click.option("--drain-rate", type=click.FloatRange(1, 1e12), callback=finite,
                     default=5e6, show_default=True, metavar="BYTES/S",
                     help="Rate at which the host reads. At more than 5.7e6 it reads bursts; a higher rate than the "
                          "bus carries in bursts, 18.8e6, is reported. The result `drained` is the rate while the "
                          "board was overrun.")
_STOPS = click.option("--stops/--no-stops", default=True, show_default=True,
                      help="The host stops reading for 1.3 ms of every 6.5 ms to store its data.")
_OUT = click.option("-o", "--output", "run", metavar="RUN", type=click.Path(path_type=Path),
                    help="Directory for the recorded run; must not exist. Default: the run is not kept.")
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(no_args_is_help=False)
def ipsc() -> None:
    """Run programs on an emulated iPSC/2 that HYPERMON monitors.

    The machine is that of the paper: 80386 nodes at 16 MHz on a hypercube, whose operating system writes events to
    5-bit ports. The board is the virtual board, configured as in 1990. `make paper` repeats all of sections 5 and
    6.
    """


def _part(name: str) -> Any:
    """A module of the emulator, which a plain install does not have."""
    try:
        return import_module(f"hypermon.studies.ipsc.runs.{name}")
    except ImportError as error:
        raise HypermonError(f"the emulated iPSC/2 needs {error.name or error}, which is not installed: "
                            f"{to_install('sim')}") from None


def _monitor(config: str, window: str | None, drain_rate: float, stops: bool) -> Any:
    monitors = _part("monitor")
    monitor = monitors.BOARDS.get(config, monitors.CLASSIC)
    monitor = replace(monitor, rate=int(drain_rate), stop_ms=monitor.stop_ms if stops else 0)
    if monitor.sink is Sink.CLASSIC:
        warn_of_the_bus(drain_rate, monitor.geometry)
    return replace(monitor, window=FRAME_WINDOW[window]) if window else monitor


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)} %"


#: How a value is shown to people: its name, and its unit or a way to write it.
_LABELS: dict[str, tuple[str, str | Callable[[Any], str]]] = {
    "program": ("program", ""), "nodes": ("nodes", ""), "how": ("recorded by", ""),
    "share": ("share of the program", _percent),
    "seconds": ("duration", lambda value: duration_text(round(value * 1e12))),
    "logged": ("logged", "bytes"), "frames": ("event frames", ""), "writes": ("port writes", ""),
    "lost": ("items lost", ""), "merged": ("nibbles that share their frame", _percent),
    "units": ("units of work", ""), "result": ("result", ""),
    "expected_frames": ("event frames, calculated", ""),
    "expected_backlog": ("most frames waiting, calculated", ""),
    "messages": ("messages", ""), "early": ("messages received before sent", ""),
    "delay": ("delay between nibbles", "iterations"), "nibbles": ("nibbles", ""),
    "whole_rate": ("frame rate of the whole run", lambda value: quantity(value, "/s")),
    "drained": ("read by the host while overrun", lambda value: quantity(value, "B/s")),
    "frames_per_second": ("frame rate", lambda value: quantity(value, "/s")),
    "bytes_per_second": ("bandwidth", lambda value: quantity(value, "B/s")),
    "expected_frames_per_second": ("frame rate, calculated", lambda value: quantity(value, "/s")),
    "expected_merged": ("nibbles that share their frame, calculated", _percent),
}


def _show(values: dict[str, Any], as_json: bool) -> None:
    """All values as JSON; or, for people, each of them once, with its unit."""
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    table = Table.grid(padding=(0, 2))
    for name, value in values.items():
        if name == "checked" or value is None:
            continue
        label, unit = _LABELS[name]
        text = unit(value) if callable(unit) else f"{value:,} {unit}".rstrip() if isinstance(value, int) else str(value)
        table.add_row(f"[bold]{label}", cell(text))
    make_console().print(table)


@ipsc.command("run")
@click.argument("program", type=click.Choice(["simplex", "life", "matmul", "place"]))
@_NODES
@click.option("--config", default="hardware", show_default=True,
              type=click.Choice(["raw", "software", "hardware", "extended", "wide", "adapter"]),
              help="The recorder: none (raw), software in node memory, the board of 1990 (hardware), the extended "
                   "board, the extended board with ports of 8 bits (wide), or the extended board with a regeneration "
                   "board on each node's bus (adapter).")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), callback=finite,
              default=0.01, show_default=True, metavar="S",
              help="Part of the program to run; 1 is as long as in Table 2: millions of frames.")
@click.option("--delay", type=click.IntRange(0, 100_000), default=None, metavar="N",
              help=_DELAY_HELP + " Default: 20; extended and wide: 0; adapter: none, whatever N is.")
@_WINDOW
@_RATE
@_STOPS
@click.option("--seed", type=int, default=1990, show_default=True, metavar="N", help="Seed of all random numbers.")
@_OUT
@_JSON
def run_command(program: str, nodes: str, config: str, share: float, delay: int | None, window: str | None,
                drain_rate: float, stops: bool, seed: int, run: Path | None, as_json: bool) -> None:
    """Run one of the four programs of Table 1, and check its results.

    Some parameters are fitted to the paper, such as the cost of the program's work; docs/paper.md lists them.
    """
    if run is not None:
        refuse_existing(run)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        result = _part("experiment").experiment(
            program, int(nodes), config, share, path=run or Path(folder) / "run", delay=delay, seed=seed,
            monitor=_monitor(config, window, drain_rate, stops))
    _show({**result.as_dict(), "result": result.checked}, as_json)


@ipsc.command()
@_NODES
@_DELAY
@click.option("--bytes", "size", type=click.FloatRange(4, 1e9), callback=finite,
              default=4000, show_default=True, metavar="N",
              help="Bytes of events that each node writes, four per event.")
@_WINDOW
@_RATE
@_STOPS
@_OUT
@_JSON
def bench(nodes: str, delay: int, size: float, window: str | None, drain_rate: float, stops: bool, run: Path | None,
          as_json: bool) -> None:
    """Measure the bandwidth, as section 5.1 does: nodes that do nothing but write events.

    More than a thousand clocks of the board are simulated for each byte, so a megabyte needs a long time.
    """
    if run is not None:
        refuse_existing(run)
    part, monitor = _part("benchmark"), _monitor("hardware", window, drain_rate, stops)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        done = part.bandwidth(int(nodes), delay, int(size), run or Path(folder) / "run",
                              monitor=monitor)
    rate, merged = part.predicted(int(nodes), delay, window_s=monitor.window_s)
    _show({**done.as_dict(), "expected_frames_per_second": rate, "expected_merged": merged}, as_json)
