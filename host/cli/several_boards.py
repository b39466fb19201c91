"""``hypermon record`` with several boards, and ``hypermon echo``, which measures the wires between them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from hypermon.hdl.layout import Extra, Sink
from hypermon.host.cli.complete import boards_like
from hypermon.host.cli.options import open_device, virtual_geometry
from hypermon.host.device.device import Device
from hypermon.host.errors import HypermonError
from hypermon.host.record.echo import SETS, echo_file, load_echoes, measure_wires
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.wiring import Wiring
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import counted

__all__ = ["echo", "record_several"]

#: Options that are not handed on to the recorder of each board.
_OWN = ("boards", "run", "follow", "wires", "echo", "as_json")


def record_several(context: click.Context, boards: Sequence[str], run: Path, follow: bool, wires: str,
                   echo: Path | None, as_json: bool) -> None:
    """Records boards together, with the options of the command that is being run."""
    from hypermon.host.record.several_boards import record_together

    if context.params["keep"] == "stats":
        raise HypermonError("--keep stats: figures of several boards do not add up to a run; omit it, or record "
                            "each board separately")
    options = _said(context)
    wiring = Wiring.parse(wires, len(boards))
    echoes = None if echo is None else load_echoes(echo, boards, wiring.parents)
    with Interrupt().noted() as interrupt, make_console(stderr=True).status(cell(str(run))) as status:

        def show(figures: list[dict[str, Any]]) -> None:
            if as_json:
                click.echo(json.dumps({"boards": figures}))
            else:
                items = counted(_sum(figures, "events"), "item")
                status.update(cell(f"{run}  {items}  {_sum(figures, 'lost'):,} lost"))

        figures = record_together(boards, run, options, follow=follow, interrupt=interrupt, progress=show,
                                  wiring=wiring, echoes=echoes)
    if as_json:
        click.echo(json.dumps({"boards": figures}))
        return
    for board, own in zip(boards, figures, strict=True):
        click.echo(f"{board}: {counted(own['events'], 'item')}, {own['lost']:,} lost; {own['how']}")
    click.echo(f"{run}: {counted(_sum(figures, 'events'), 'item')}, {_sum(figures, 'lost'):,} lost. "
               f"Next: hypermon stats {run}")


@click.command()
@click.option("-b", "--board", "boards", multiple=True, required=True, metavar="BOARD", shell_complete=boards_like,
              help="The boards, in the order of `hypermon record`.")
@click.option("-o", "--output", "out", required=True, metavar="FILE", type=click.Path(path_type=Path),
              help="File for what was measured; hypermon record --echo FILE uses it.")
@click.option("--wires", default="star", show_default=True, metavar="WIRES",
              help="How the boards are wired, as for `hypermon record`.")
@click.option("--sets", type=click.IntRange(1, 10_000), default=SETS, show_default=True, metavar="N",
              help="Measure N sets of 256 echoes of each wire.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def echo(boards: tuple[str, ...], out: Path, wires: str, sets: int, as_json: bool) -> None:
    """Measure the delays of the wires between boards, once, by echo.

    sync_out of each board that follows is wired back to sync_in of the board that it follows, by a
    wire of the same length. In a star, connect these wires one after the other, or all through an OR
    gate. The board that is followed needs the extra `echo` (docs/several-boards.md).
    """
    if len(boards) < 2:
        raise HypermonError("an echo needs two boards or more: -b BOARD for each")
    from hypermon.host.export.sinks import refuse_output, sink

    refuse_output(out)
    wiring = Wiring.parse(wires, len(boards))
    geometry = replace(virtual_geometry(Sink.EXTENDED), extras=(Extra.ECHO,))

    def open_pair(leader: str, follower: str) -> tuple[Device, Device]:
        if leader.startswith("sim:") and follower.startswith("sim:"):
            from hypermon.sim.virtual.open import open_echo

            first, second = open_echo(leader, follower, geometry)
            return Device(first), Device(second)
        first_device = open_device(leader, geometry)
        return first_device, open_device(follower, geometry)

    def said(board: int, wire: dict[str, Any]) -> None:
        if not as_json:
            click.echo(f"{boards[board]}: {wire['delay_ps'] / 1000:,.2f} ns from {boards[wire['follows']]}, to "
                       f"{wire['uncertainty_ps'] / 1000:,.2f} ns ({wire['echoes']:,} echoes of "
                       f"{wire['echo_clocks']:,.2f} clocks)")

    found = measure_wires(boards, wiring.parents, open_pair, sets, said)
    with sink(str(out)) as file:
        file.write(echo_file(boards, found))
    if as_json:
        click.echo(json.dumps({"boards": list(boards), "wires": found}))


def _sum(figures: Sequence[dict[str, Any]], name: str) -> int:
    return sum(own.get(name, 0) for own in figures)


def _said(context: click.Context) -> list[str]:
    """The options that were given, as one would give them again."""
    words = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _OWN or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Option) and parameter.is_flag:
            words.append(parameter.opts[-1])
        else:
            words += [f"{parameter.opts[-1]}={one}" for one in (value if parameter.multiple else [value])]
    return words
