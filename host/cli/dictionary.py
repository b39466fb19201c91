"""The command ``dict``."""

import json
import re
from pathlib import Path

import click
from hypermon.host.dictionary.c_header import c_header
from hypermon.host.dictionary.dictionary import load_dictionary, print_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.export.formats import sink
from hypermon.host.text.console import make_console

__all__ = ["dictionary"]


@click.command("dict")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only say whether it is right; exit status 2 and why if not.")
@click.option("--c-header", "header", metavar="OUT", help="Write a C header of its ids, and of functions that write "
                                                          "its events by sim/node/hypermon.h; - is standard output.")
@click.option("--prefix", metavar="NAME", help="Of the names in the header. Default: the file's name.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, a line an event.")
def dictionary(file: Path, check: bool, header: str | None, prefix: str | None, as_json: bool) -> None:
    """Look at an event dictionary: a TOML file that says what a program's event ids mean.

    docs/dictionary.md says what can stand in it. `hypermon decode RUN --dictionary FILE` decodes with it.
    """
    if header is not None and as_json:
        raise HypermonError("--c-header and --json: say one of them")
    events = load_dictionary(file)
    if header is not None:
        name = click.format_filename(file, shorten=True)
        text = c_header(events, name, re.sub(r"\W", "_", file.stem) if prefix is None else prefix)
        with sink(header) as out:
            out.write(text.encode())
    elif as_json:
        for kind in events.events:
            click.echo(json.dumps(kind.as_dict()))
    elif not check:
        print_dictionary(events, make_console())
    if check:
        counts = f"{len(events.events)} events, {len(events.nodes)} nodes with names"
        click.echo(f"{click.format_filename(file)}: {counts}", err=header == "-")
