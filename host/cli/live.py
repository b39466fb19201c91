"""The commands for live views and for access from another machine: ``serve``, ``watch``, ``relay``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from hypermon.host.cli.complete import boards_and_runs_like, boards_like
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.link import split_uri
from hypermon.host.link.access import refuse_open_access
from hypermon.host.text.printable import printable

__all__ = ["relay", "serve", "watch"]

Command = TypeVar("Command", bound=Callable[..., Any])

_WHAT = click.option("-b", "--board", "what", required=True, metavar="BOARD|RUN", shell_complete=boards_and_runs_like,
                     help="A board, as `hypermon devices` lists it, to record and view; or a run to view, "
                          "finished or still being recorded.")
_FOLDER = click.option("-o", "--output", "folder", metavar="FOLDER", default=".", show_default="the current folder",
                       type=click.Path(path_type=Path, exists=True, file_okay=False),
                       help="Folder of the recordings; each is named by its time.")


def _listens(port: int) -> Callable[[Command], Command]:
    """The options of a command that others come to by the network: ``host``, ``port``, ``token``."""
    options = (
        click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
                     help="Address to listen on. Other than loopback, it needs --token."),
        click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True, metavar="PORT",
                     help="Port to listen on; 0: any free one."),
        click.option("--token", metavar="TEXT", envvar="HYPERMON_TOKEN",
                     help="Clients must present this token. Also from the environment: HYPERMON_TOKEN."))

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _missing(error: ImportError) -> HypermonError:
    return HypermonError(f"the live views need {error.name}, which is not installed: {to_install('live')}")


def _target(what: str) -> tuple[str | None, Path | None]:
    """A board or a run: a run is a directory."""
    if Path(what).is_dir():
        return None, Path(what)
    split_uri(what)
    return what, None


@click.command()
@_WHAT
@_FOLDER
@_listens(8017)
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
def serve(what: str, folder: Path, host: str, port: int, token: str | None, browse: bool) -> None:
    """Show a board or a recording as a web page, live.

    The page shows rates, losses, buffer levels, a timeline and the newest items. For a board it also
    has triggers, filters, start and stop. Nothing is loaded from the network. A separate process
    records, so the page cannot delay it.

    \b
    hypermon serve -b uart:/dev/ttyUSB0          then open http://127.0.0.1:8017/
    hypermon serve -b RUN                        a recording, finished or not
    ssh -L 8017:localhost:8017 LAB               the page of another machine, encrypted
    """
    try:
        from hypermon.host.live.server import serve as serve_page
    except ImportError as error:
        raise _missing(error) from None
    from hypermon.host.live.session import Session

    refuse_open_access(host, token, port)
    session = Session(*_target(what), folder)

    def ready(address: str) -> None:
        click.echo(f"{printable(session.name)}: {address} (Ctrl-C ends it)")
        if browse:
            click.launch(address)

    try:
        serve_page(session, host, port, token, ready)
    finally:
        session.close()


@click.command()
@_WHAT
@_FOLDER
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- RECORD OPTIONS]")
def watch(what: str, folder: Path, options: tuple[str, ...]) -> None:
    """Show a board or a recording in the terminal, live.

    For a board, a separate process starts to record at once. Options after `--` are passed to
    `hypermon record`. Keys: S start, X stop, + and - zoom in time, H hold, T theme, Q quit; quitting
    ends the recording properly.

    \b
    hypermon watch -b uart:/dev/ttyUSB0
    hypermon watch -b uart:/dev/ttyUSB0 -- --config extended --start node=2,nibble=7
    hypermon watch -b RUN                        a recording, finished or not
    """
    try:
        from hypermon.host.live.terminal import WatchApp
    except ImportError as error:
        raise _missing(error) from None
    from hypermon.host.live.session import Session

    board, run = _target(what)
    if run is not None and options:
        raise HypermonError(f"{options[0]}: options of `hypermon record` need a board, and {run} is a recording")
    session = Session(board, run, folder)
    try:
        WatchApp(session, options).run()
    finally:
        session.close()


@click.command()
@click.option("-b", "--board", required=True, metavar="BOARD", shell_complete=boards_like,
              help="The board, as `hypermon devices` lists it.")
@_listens(8018)
def relay(board: str, host: str, port: int, token: str | None) -> None:
    """Let another machine record a board of this machine; nothing is kept here.

    On the other machine the board is tcp:HOST:PORT, or tcp:HOST:PORT?token=TEXT. One client at a time
    uses the board. Another client gets it when the first has been silent for 10 s or, with a token, at
    once with &takeover=yes. The first client's recording then ends and reports why. The connection is
    not encrypted: use ssh beyond your own network.

    \b
    hypermon relay -b usb:                                      here, until Ctrl-C
    ssh -L 8018:localhost:8018 LAB                              there: a tunnel to here
    hypermon record -b tcp:localhost:8018 -o RUN                there
    """
    from hypermon.host.link import open_link
    from hypermon.host.link.relay import listen, serve_link

    refuse_open_access(host, token, port)
    listener = listen(host, port)
    link = open_link(board)
    try:
        click.echo(f"{board}: tcp:{host}:{listener.getsockname()[1]} (Ctrl-C ends it)")
        serve_link(link, listener, token, lambda text: click.echo(f"{board}: {text}", err=True))
    except KeyboardInterrupt:
        click.echo("")
    finally:
        listener.close()
        link.close()
