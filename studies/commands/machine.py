"""The commands ``hypermon machine``: the emulated machines of four more papers, and figures of their recordings."""

import json
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from hypermon.host.cli.complete import runs_like
from hypermon.host.cli.progress_line import decoded
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.recording.writer import refuse_existing
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import finite
from rich.table import Table

__all__ = ["machine"]

_MACHINES = ("ipsc860", "asciq", "sp2", "qsnet")
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(no_args_is_help=False)
def machine() -> None:
    """Emulate the machines of four more papers, and analyse their recordings.

    Programs run on emulated nodes and write events to ports; the virtual board, which is the gateware, records the
    ports. The figures are computed from the recording alone, so recordings of other programs that write the same
    events can be analysed, too. `make machines` repeats the papers' measurements.
    """


def _part(name: str) -> Any:
    """A module of the emulator, which a plain install does not have."""
    try:
        return import_module(f"hypermon.studies.{name}")
    except ImportError as error:
        raise HypermonError(f"the emulated machines need {error.name or error}, which is not installed: "
                            f"{to_install('sim')}") from None


def _show(values: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(values, indent=2))
        return
    table = Table.grid(padding=(0, 2))
    for name, value in values.items():
        for number, row in enumerate(value if isinstance(value, list) else [value]):
            table.add_row("" if number else f"[bold]{name}", cell(_text(row)))
    make_console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(of)}" for name, of in value.items())
    return f"{value:,.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def _drops(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


@machine.command("run")
@click.argument("name", metavar="MACHINE", type=click.Choice(_MACHINES))
@click.argument("experiment")
@click.option("--nodes", type=click.IntRange(1, 65_535), metavar="N", help="Nodes that take part.")
@click.option("--bytes", "size", type=click.IntRange(0, 1 << 24), metavar="N", help="Bytes of a message.")
@click.option("--compute-ms", type=click.FloatRange(0, 1e6), callback=finite, metavar="MS",
              help="Computation before each collective operation.")
@click.option("--drop", metavar="0,1,31", help="Leave out the noise that only these nodes of a partition "
                                               "have. With the word all, leave out the background noise of every node.")
@click.option("--rule", type=click.Choice(["timeline", "absorb", "defer"]), default="timeline", show_default=True,
              help="Effect of noise on a waiting node. timeline: the noise runs when it is due; absorb: it costs "
                   "nothing; defer: it runs in the next computation.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Repetitions. Default: a short run.")
@click.option("--seed", type=int, default=1990, show_default=True, metavar="N", help="Seed of all random numbers.")
@click.option("-o", "--output", "run", metavar="RUN", type=click.Path(path_type=Path),
              help="Directory in which the recorded run is kept; must not exist. Default: it is not kept.")
@_JSON
def run_command(name: str, experiment: str, nodes: int | None, size: int | None, compute_ms: float | None,
                drop: str | None, rule: str, count: int | None, seed: int, run: Path | None, as_json: bool) -> None:
    """Run an experiment of a paper, record it with the virtual board, and print its figures.

    Experiments: ipsc860: path, edges-1, edges-2, edges-3, nodes; asciq: quantum, bsp; sp2: exchange, all-to-all; qsnet:
    ping, bidirectional, hotspot.
    """
    if run is not None:
        refuse_existing(run)
    part = _part("machine.machines.commands")
    wish = part.Wish(nodes, size, compute_ms, _drops(drop), rule, count, seed)
    with TemporaryDirectory(prefix="hypermon-") as folder:
        recorded = part.record(name, experiment, wish, run or Path(folder) / "run")
        _show(_part(f"machine.analysis.{name}").analyse(recorded), as_json)


@machine.command()
@click.argument("name", metavar="MACHINE", type=click.Choice(_MACHINES))
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path), shell_complete=runs_like)
@_JSON
def analyse(name: str, run: Path, as_json: bool) -> None:
    """Compute a machine's figures from a recorded RUN.

    The RUN may be any recording in event mode whose events have the ids of studies/machine/events.toml;
    docs/machines.md describes each figure.
    """
    analysis = _part(f"machine.analysis.{name}")
    opened, _ = decoded(run)
    _show(analysis.analyse(opened), as_json)


@machine.command()
@click.argument("workload", type=click.Choice(["bsp", "exchange"]))
@click.option("--boards", type=click.IntRange(1, 4096), default=256, show_default=True, metavar="N", help="Boards.")
@click.option("--nodes", type=click.IntRange(1, 32), default=16, show_default=True, metavar="N",
              help="Nodes of each board.")
@click.option("--events", type=click.IntRange(1, 10**12), default=1_000_000, show_default=True, metavar="N",
              help="Minimum number of items that all nodes write together.")
@click.option("--seed", type=click.IntRange(0), default=1990, show_default=True, metavar="N",
              help="Seed of all random numbers.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes. Default: one per processor.")
@click.option("-o", "--output", "run", metavar="RUN", type=click.Path(path_type=Path), required=True,
              help="Directory of the recording. An unfinished one of the same machine is continued.")
def simulate(workload: str, boards: int, nodes: int, events: int, seed: int, jobs: int | None, run: Path) -> None:
    """Simulate a machine of many boards, and record it.

    Four to eight boards, chosen at random, are recorded by the verilated gateware, the others by a model of it.
    `configuration.simulated` in each recording.json states which of the two made it. Clocks drift, cables have delays,
    and some nodes write more than their board accepts.

    bsp: nodes compute and meet at a barrier. exchange: between computing and the barrier, pairs of nodes also exchange
    messages.

    \b
      hypermon machine simulate exchange --boards 256 --events 100000000 -o RUN
    """
    part = _part("scale.simulate")
    of = _part("scale.workload").Machine(boards, nodes, events, workload, seed)
    line = make_console(stderr=True)
    with line.status(f"0 of {boards} boards") as status:
        made, gateware = part.simulate(of, run, jobs or part.cores(), lambda done, written: status.update(
            f"{done} of {boards} boards, {written:,} items"))
    click.echo(f"{run}: {made} boards simulated, of {boards}; by the gateware: {', '.join(map(str, gateware))}. "
               f"Next: hypermon stats {run}")
