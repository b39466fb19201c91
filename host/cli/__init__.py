"""The command ``hypermon``.

Flow: commands, welcome, options, settings, record, contract, several_boards, devices, runs, compare, analyse, live,
    boards, dictionary, complete, help_examples, progress_line, progress_json, junk_line
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from hypermon.host.cli.commands import COMMANDS, CommandTable
from hypermon.host.errors import HypermonError, system_reason
from hypermon.host.text.output import STANDARD_OUTPUT, ReaderGoneError, drain, give_up, set_up
from hypermon.host.text.printable import printable

__all__ = ["main"]


@click.group(cls=CommandTable, table=COMMANDS, invoke_without_command=True,
             context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hypermon", message="hypermon %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """One globally timed trace of up to 32 nodes, from 5-bit ports.

    A node's software writes events to its port, a nibble at a time. The board stamps the nibbles of
    all nodes with the time of one clock. This program records the board's output, decodes it, and
    reports every loss.

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


def _run(arguments: Sequence[str]) -> int:
    """Exit status: 0, or what the command says; one line on stderr and the error's (2 or 3); 130: a second Ctrl-C.

    If the reader of standard output closes it, as ``head`` does, the command ends with 0.
    """
    try:
        status = cli.main(args=list(arguments), prog_name="hypermon", standalone_mode=False)
        drain()
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "hypermon"
        click.echo(f"{command}: {printable(error.format_message()).rstrip('.')} (see {command} --help)", err=True)
    except (click.ClickException, HypermonError) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _complain(text)
        return error.status if isinstance(error, HypermonError) else 2
    except (KeyboardInterrupt, click.Abort):
        return 130
    except ReaderGoneError:     # it has enough
        give_up()
        return 0
    except OSError as error:
        if error.filename == STANDARD_OUTPUT:
            give_up()
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        _complain(f"{where}{system_reason(error)}")
    except Exception as error:
        duckdb = sys.modules.get("duckdb")      # loaded if a command has used it
        if duckdb is None or not isinstance(error, duckdb.Error):
            raise
        _complain(f"a table cannot be read: {str(error).splitlines()[0]}; to make the tables of a RUN anew, remove its "
                  "decode.json and run hypermon decode")
    return 2


def _complain(text: str) -> None:
    from hypermon.host.recording.linked_copy import as_given

    click.echo(f"hypermon: {printable(as_given(text))}", err=True)


def main() -> None:
    set_up()
    status = _run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # the status is settled; Ctrl-C must not replace it
    try:
        drain()
    except (OSError, ReaderGoneError):      # after another error, which has been printed
        give_up()
    sys.exit(status)
