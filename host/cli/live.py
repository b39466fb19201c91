"""The commands for views and for access from another machine: ``serve``, ``watch``, ``tail``, ``view``, ``relay``."""

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

import click
from hypermon.host.cli.complete import boards_and_runs_like, boards_like, runs_like
from hypermon.host.cli.options import nodes_of
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.link import split_uri
from hypermon.host.link.access import refuse_open_access
from hypermon.host.text.printable import printable

if TYPE_CHECKING:
    from hypermon.host.live.lines import Lines
    from hypermon.host.record.interrupt import Interrupt
    from hypermon.host.record.process import RecorderProcess

__all__ = ["relay", "serve", "tail", "view", "watch"]

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
                     help="Address to listen on. Any address other than loopback needs --token."),
        click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True, metavar="PORT",
                     help="Port to listen on; 0: any free one."),
        click.option("--token", metavar="TEXT", envvar="HYPERMON_TOKEN",
                     help="Clients must present this token. Also from the environment: HYPERMON_TOKEN."))

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _missing(error: ImportError, extra: str = "live") -> HypermonError:
    what = "the live views need" if extra == "live" else "the timeline needs"
    return HypermonError(f"{what} {error.name}, which is not installed: {to_install(extra)}")


def _import_web() -> None:
    """Imports aiohttp, which is needed soon; who needs it finds out if there is none."""
    with suppress(ImportError):
        import hypermon.host.web.guard  # noqa: F401


def _import_picture() -> None:
    with suppress(ImportError):
        import hypermon.host.view.picture  # noqa: F401


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing becomes garbage in here: looking for it takes a tenth of the time that importing takes."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _target(what: str) -> tuple[str | None, Path | None]:
    """A board or a run: a run is a directory."""
    path = Path(what)
    if path.is_dir():
        return None, path
    try:
        split_uri(what)
    except HypermonError as error:
        raise HypermonError(f"{what}: it is a file; a recording is a directory" if path.exists() else
                            f"{what}: there is no such directory, and {error}") from None
    return what, None


def _boards_of(run: Path) -> list[str]:
    """The directories of a run's boards, if it has several."""
    from hypermon.host.recording.info import RunInfo

    return RunInfo.load(run / "recording.json").boards


@click.command()
@_WHAT
@_FOLDER
@_listens(8017)
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
def serve(what: str, folder: Path, host: str, port: int, token: str | None, browse: bool) -> None:
    """Show a board or a recording as a web page, live.

    The page shows rates, losses, buffer levels, a timeline and the newest items. For a board it also
    has triggers, filters, start and stop. For a run of several boards it has a map of all nodes; a
    click shows one board. A tab leads to the timeline of the recording, as `hypermon view` shows it.
    Nothing is loaded from the network. A separate process records, so the page cannot delay it.

    \b
    hypermon serve -b uart:/dev/ttyUSB0          then open http://127.0.0.1:8017/
    hypermon serve -b RUN                        a recording, finished or not
    ssh -L 8017:localhost:8017 LAB               the page of another machine, encrypted
    """
    try:
        from hypermon.host.web.program import serve as serve_pages
        from hypermon.host.web.shown import Shown, session_of
    except ImportError as error:
        raise _missing(error) from None
    from hypermon.host.live.session import Session

    refuse_open_access(host, token, port)
    board, run = _target(what)
    session = Session(board, None, folder) if run is None else session_of(run)

    def ready(address: str) -> None:
        click.echo(f"{printable(session.name)}: {address} (Ctrl-C ends it)")
        if browse:
            click.launch(address)

    try:
        serve_pages(lambda: Shown(session), "live", host, port, token, ready)
    finally:
        session.close()


@click.command()
@click.argument("path", metavar="RUN", type=click.Path(path_type=Path), shell_complete=runs_like)
@_listens(8019)
@click.option("--dictionary", metavar="FILE", type=click.Path(path_type=Path),
              help="Event dictionary: names and fields of events. A copy is kept in RUN.")
@click.option("--check", "rules", metavar="RULES", type=click.Path(path_type=Path),
              help="Judge the run by RULES, as `hypermon check` does, and mark where a rule fails or is undecided.")
@click.option("--open", "browse", is_flag=True, help="Open the page in a browser.")
def view(path: Path, host: str, port: int, token: str | None, dictionary: Path | None, rules: Path | None,
         browse: bool) -> None:
    """Show the timeline of a recorded run as a web page, from hours to single clocks.

    The page shows items, states and messages by the names of the run's dictionary, and losses. It has
    two cursors and a search; its address restores the same view. A recording in progress is followed.
    A tab leads to the live view of `hypermon serve`. Nothing is loaded from the network.

    \b
    hypermon view RUN                            then open http://127.0.0.1:8019/
    hypermon view RUN --open                     the same, in a browser at once
    """
    refuse_open_access(host, token, port)
    with _no_collection():
        # The two halves of what is needed are read at once: files, and code without the interpreter's lock.
        web = Thread(target=_import_web)
        web.start()
        from hypermon.host.cli.progress_line import decoded
        from hypermon.host.dictionary.run_dictionary import keep_dictionary
        from hypermon.host.run import Run

        run = Run(path)
        _import_picture()
        web.join()
        try:
            from hypermon.host.view.opened import opened
            from hypermon.host.web.program import serve as serve_pages
            from hypermon.host.web.shown import Shown
        except ImportError as error:
            raise _missing(error, "view") from None
    if rules is not None:
        from hypermon.host.contracts.rules import load_rules

        load_rules(rules)       # if it is not valid, this is the time to say so
    if dictionary is not None:
        keep_dictionary(run, dictionary)
    pictures = opened(run, lambda: decoded(path, in_place=True)[0])

    def ready(address: str) -> None:
        click.echo(f"{printable(str(path))}: {address} (Ctrl-C ends it)")
        if browse:
            click.launch(address)

    try:
        serve_pages(lambda: Shown(pictures=pictures, rules=rules), "timeline", host, port, token, ready)
    finally:
        pictures.close()


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
    if run is not None and (boards := _boards_of(run)):
        raise HypermonError(f"{run}: a run of several boards; watch one of them, such as {run / boards[0]}, or see all "
                            f"with: hypermon serve -b {run}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise HypermonError("watch draws on a terminal, and this is none; for a file or another program: hypermon tail "
                            f"{what}")
    session = Session(board, run, folder)
    try:
        WatchApp(session, options).run()
    finally:
        session.close()


@click.command()
@click.argument("what", metavar="RUN|BOARD", shell_complete=boards_and_runs_like)
@_FOLDER
@click.option("--node", "nodes", metavar="NODES", help="Only items and losses of these nodes: 0,3,8-15.")
@click.option("--name", "names", multiple=True, metavar="NAME",
              help="Only events with this name in the dictionary. Repeatable.")
@click.option("--where", metavar="CONDITION",
              help="Only items for which this SQL condition is true, such as \"peer = 3 and sequence > 100\". Its "
                   "columns are those of the events table.")
@click.option("--dictionary", metavar="FILE", type=click.Path(path_type=Path),
              help="Event dictionary. Default: the copy in RUN, if there is one.")
@click.option("--framing", type=click.Choice(["event"]),
              help="Find the events that the nodes' software framed in nibbles.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for other programs.")
@click.option("--new", is_flag=True, help="Only items and losses that arrive from now on.")
@click.option("--no-wait", is_flag=True, help="End at the end of the data, even if the recording continues.")
@click.option("--of", "parent", type=int, hidden=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- RECORD OPTIONS]")
def tail(what: str, folder: Path, nodes: str | None, names: tuple[str, ...], where: str | None,
         dictionary: Path | None, framing: str | None, as_json: bool, new: bool, no_wait: bool, parent: int | None,
         options: tuple[str, ...]) -> None:
    """Print a line per item of a recording, finished or not, or of a board.

    A line has the board's time in seconds, the node, and the nibble, the word, or the event's name and
    fields as the dictionary defines them. Losses and resets have lines of their own, in the order of
    their times. The output continues until the recording ends, until its recorder is gone (killed,
    for instance), which the last line states, or until Ctrl-C.

    For a board, a separate process records into FOLDER. A slow reader of these lines delays only
    them, never the recording.

    \b
    hypermon tail RUN                            a recording, finished or not
    hypermon tail RUN --name send --where "peer = 5"
    hypermon tail usb: --json -- --config extended --mode event
    """
    from hypermon.host.dictionary.dictionary import load_dictionary
    from hypermon.host.dictionary.run_dictionary import kept_dictionary
    from hypermon.host.live.follow import follow
    from hypermon.host.live.lines import Lines
    from hypermon.host.live.tail import Pulse
    from hypermon.host.record.interrupt import Interrupt
    from hypermon.host.recording.directory import RunDirectory

    board, path = _target(what)
    if path is not None and options:
        raise HypermonError(f"{options[0]}: options of `hypermon record` need a board, and {path} is a recording")
    known = None if dictionary is None else load_dictionary(dictionary)
    with ExitStack() as stack:
        # From the first process on: none records after this one has ended.
        interrupt = stack.enter_context(Interrupt().noted())
        recorder = None if board is None else _recorder(stack, board, folder, options, interrupt)
        if recorder is not None:
            path = recorder.run
        assert path is not None
        run = RunDirectory(path)
        lines = Lines(run.info, known or kept_dictionary(run), framing=framing is not None, as_json=as_json,
                      nodes=None if nodes is None else nodes_of("--node", nodes, run.info.nodes),
                      names=names or None, where=where)

        pulse = Pulse(path)

        def alive() -> bool:
            if recorder is None:
                return (parent is None or os.getppid() == parent) and pulse.alive()
            if interrupt.hit:
                recorder.stop()
            return recorder.running

        _print(lines, follow(path, alive, stop=lambda: interrupt.hit and recorder is None, wait=not no_wait,
                             framing=framing is not None, new=new))
        if recorder is not None:
            recorder.close()
            if recorder.failure is not None:
                raise HypermonError(recorder.failure.removeprefix("hypermon: "))


def _recorder(stack: ExitStack, board: str, folder: Path, options: tuple[str, ...],
              interrupt: "Interrupt") -> "RecorderProcess":
    """A process that records the board, whose recording has begun. Raises KeyboardInterrupt if that is no longer
    wanted.
    """
    from hypermon.host.live.session import new_run
    from hypermon.host.record.process import RecorderProcess
    from hypermon.host.recording.segments import segments

    recorder = stack.enter_context(closing(RecorderProcess(board, new_run(folder), options)))
    while recorder.running and not segments(recorder.run)[0]:
        if interrupt.hit:
            raise KeyboardInterrupt
        time.sleep(0.02)
    if recorder.failure is not None:
        raise HypermonError(recorder.failure.removeprefix("hypermon: "))
    click.echo(f"{board}: recording to {recorder.run}", err=True)
    return recorder


def _print(lines: "Lines", parts: Iterator[Any]) -> None:
    """Prints until the items end."""
    for part in parts:
        text = lines.of(part)
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
    sys.stdout.write(lines.finish())


@click.command()
@click.option("-b", "--board", required=True, metavar="BOARD", shell_complete=boards_like,
              help="The board, as `hypermon devices` lists it.")
@_listens(8018)
def relay(board: str, host: str, port: int, token: str | None) -> None:
    """Let another machine record a board of this machine; nothing is kept here.

    On the other machine the board is tcp:HOST:PORT, or tcp:HOST:PORT?token=TEXT. One client at a time
    uses the board. Another client gets it when the first has been silent for 10 s. If the relay has a
    token, another client gets it at once with tcp:HOST:PORT?token=TEXT&takeover=yes. The first client's
    recording then ends and reports why. The connection is not encrypted: use ssh beyond your own
    network.

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
