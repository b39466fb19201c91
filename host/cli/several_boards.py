"""``hypermon record`` with several boards."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from hypermon.host.errors import HypermonError
from hypermon.host.record.recorder import Interrupt
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import counted

__all__ = ["record_several"]

#: Options that are not handed on to the recorder of each board.
_OWN = ("boards", "run", "follow", "as_json")


def record_several(context: click.Context, boards: Sequence[str], run: Path, follow: bool, as_json: bool) -> None:
    """Records boards together, with the options of the command that is being run."""
    from hypermon.host.record.several_boards import record_together

    if context.params["keep"] == "stats":
        raise HypermonError("--keep stats: figures of several boards do not add up to a run; omit it, or record "
                            "each board separately")
    options = _said(context)
    with Interrupt().noted() as interrupt, make_console(stderr=True).status(cell(str(run))) as status:

        def show(figures: list[dict[str, Any]]) -> None:
            if as_json:
                click.echo(json.dumps({"boards": figures}))
            else:
                items = counted(_sum(figures, "events"), "item")
                status.update(cell(f"{run}  {items}  {_sum(figures, 'lost'):,} lost"))

        figures = record_together(boards, run, options, follow=follow, interrupt=interrupt, progress=show)
    if as_json:
        click.echo(json.dumps({"boards": figures}))
        return
    for board, own in zip(boards, figures, strict=True):
        click.echo(f"{board}: {counted(own['events'], 'item')}, {own['lost']:,} lost; {own['how']}")
    click.echo(f"{run}: {counted(_sum(figures, 'events'), 'item')}, {_sum(figures, 'lost'):,} lost. "
               f"Next: hypermon stats {run}")


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
