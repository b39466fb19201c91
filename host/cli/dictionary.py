"""The command ``dict``."""

import json
import re
from pathlib import Path

import click
from hypermon.host.dictionary.c_header import c_header
from hypermon.host.dictionary.dictionary import Dictionary, load_dictionary, print_dictionary
from hypermon.host.dictionary.log_strings import elf_strings
from hypermon.host.errors import HypermonError
from hypermon.host.export.sinks import refuse_output, sink
from hypermon.host.text.console import make_console

__all__ = ["dictionary"]


@click.command("dict")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check it; exit status 2 and the reason if it is wrong.")
@click.option("--c-header", "header", metavar="OUT", help="Write a C header with its ids and with functions that write "
                                                          "its events with node/hypermon.h; - is standard output.")
@click.option("--prefix", metavar="NAME", help="Prefix of the names in the header. Default: the file's name.")
@click.option("--elf", metavar="PROGRAM", type=click.Path(path_type=Path),
              help="ELF file of a node's program: --output adds the format strings of its HM_LOG() calls.")
@click.option("-o", "--output", "out", metavar="OUT", help="With --elf, the dictionary to write; - is standard output.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one line per event.")
def dictionary(file: Path, check: bool, header: str | None, prefix: str | None, elf: Path | None, out: str | None,
               as_json: bool) -> None:
    """Show an event dictionary: a TOML file that gives a program's event ids names and fields.

    docs/dictionary.md describes the file. `hypermon decode RUN --dictionary FILE` decodes with it.
    """
    if header is not None and as_json:
        raise HypermonError("--c-header and --json: choose one")
    if (elf is None) != (out is None):
        raise HypermonError("--elf PROGRAM and --output OUT belong together")
    for target in (header, out):
        if target is not None:
            refuse_output(target)
    events = load_dictionary(file)
    if elf is not None and out is not None:
        _add_strings(events, elf, out)
        return
    if header is not None:
        name = click.format_filename(file, shorten=True)
        text = c_header(events, name, re.sub(r"\W", "_", file.stem) if prefix is None else prefix)
        with sink(header) as opened:
            opened.write(text.encode())
    elif as_json:
        for kind in events.events:
            click.echo(json.dumps(kind.as_dict()))
    elif not check:
        print_dictionary(events, make_console())
    if check:
        counts = f"{len(events.events)} events, {len(events.nodes)} nodes with names"
        click.echo(f"{click.format_filename(file)}: {counts}", err=header == "-")


def _add_strings(events: Dictionary, elf: Path, out: str) -> None:
    """Writes a dictionary with the format strings of a program."""
    if events.logging is not None and events.logging.strings:
        raise HypermonError("the dictionary has strings already; give the one that was written by hand")
    strings = elf_strings(elf)
    lines = [f"{number} = {json.dumps(text)}" for number, text in strings.items()]
    with sink(out) as file:
        file.write(events.source.rstrip() + b"\n\n[logging.strings]\n" + "\n".join(lines).encode() + b"\n")
    click.echo(f"{out}: {len(strings)} format strings of {click.format_filename(elf)}", err=out == "-")
