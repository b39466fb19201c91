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
@click.option("--check", is_flag=True, help="Only check it; exit status 2 and the reason if it is wrong.")
@click.option("--c-header", "header", metavar="OUT", help="Write a C header with its ids and with functions that write "
                                                          "its events with sim/node/hypermon.h; - is standard output.")
@click.option("--prefix", metavar="NAME", help="Prefix of the names in the header. Default: the file's name.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per event.")
def dictionary(file: Path, check: bool, header: str | None, prefix: str | None, as_json: bool) -> None:
    """Show an event dictionary: a TOML file that gives a program's event ids names and fields.

    docs/dictionary.md describes the file. `hypermon decode RUN --dictionary FILE` decodes with it.
    """
    if header is not None and as_json:
        raise HypermonError("--c-header and --json: choose one")
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
