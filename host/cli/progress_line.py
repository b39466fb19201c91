"""Progress on one line of the terminal; nothing if stderr is not a terminal.

Rich is imported when a line is shown: `hypermon view` begins with :func:`decoded`, which mostly shows none.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
from hypermon.host.analysis.stats import headline, quantity
from hypermon.host.decode.account import summary
from hypermon.host.decode.decode import decode_run
from hypermon.host.decode.ledger import Ledger
from hypermon.host.recording.clock import CLOCK
from hypermon.host.recording.linked_copy import as_given, linked_copy
from hypermon.host.recording.parts import ACCOUNT
from hypermon.host.run import Run
from hypermon.host.text.output import plain
from hypermon.host.text.printable import printable, visible

if TYPE_CHECKING:
    from hypermon.host.record.recorder import Moment
    from rich.live import Live
    from rich.text import Text

__all__ = ["ProgressLine", "busy_line", "complain", "decoded"]

_REFRESH_S = 0.1


@contextlib.contextmanager
def busy_line(what: str, figure: Callable[[], str] = lambda: "") -> Iterator[None]:
    """One line while inside: what is being done, for how long, and a figure. For work of unknown length.

    Parameters
    ----------
    figure : called from another thread; an OSError, such as for a file that is not there yet, is no figure.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, begun = Console(file=plain(sys.stderr)), time.monotonic()

    def line() -> "Text":
        seconds, text = int(time.monotonic() - begun), ""
        with contextlib.suppress(OSError):
            text = figure()
        parts = (visible(what), f"{seconds // 60}:{seconds % 60:02}", text)
        return Text("  ".join(part for part in parts if part), no_wrap=True, overflow="ellipsis")

    if not console.is_terminal:
        yield
        return
    # Standard output may be the result itself.
    with Live(get_renderable=line, console=console, transient=True, redirect_stdout=False):
        yield


class ProgressLine:
    """One line: how far, events/s, bytes/s, level of the frame FIFO, room on the disk, loss. Use as a context manager.

    Parameters
    ----------
    what : what is being done.
    total_s : board time at which it will be over; None if that is not known.
    depth : of the frame FIFO, in frames.
    """

    def __init__(self, what: str, total_s: float | None = None, depth: int | None = None):
        self._what, self._total, self._depth = what, total_s, depth
        self._live: Live | None = None
        self._shown = self._events = self._bytes = 0.0

    def __enter__(self) -> "ProgressLine":
        from rich.console import Console
        from rich.live import Live

        console = Console(file=plain(sys.stderr))
        if console.is_terminal:
            self._live = Live("", console=console, transient=True, auto_refresh=False)
            self._live.start()
            self._shown = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def recording(self, moment: "Moment") -> None:
        """For :func:`~.recorder.record`."""
        done = moment.board_s / self._total if self._total else None
        self._show(f"{moment.board_s:8.3f} s", done, moment.ledger, moment.bytes,
                   f"{quantity(moment.free, 'B')} free" if moment.free < 1 << 60 else "")

    def decoding(self, size: int, total: int, ledger: Ledger) -> None:
        """For :func:`~.decode.decode_run`."""
        self._show("", size / total if total else None, ledger, size)

    def _show(self, at: str, done: float | None, ledger: Ledger, size: int, room: str = "") -> None:
        now = time.monotonic()
        span = now - self._shown
        if self._live is None or span < _REFRESH_S:
            return
        from rich.text import Text

        rate, flow = (ledger.events - self._events) / span, (size - self._bytes) / span
        self._shown, self._events, self._bytes = now, ledger.events, size
        parts = [visible(self._what), at, f"{min(done, 1):4.0%}" if done is not None else "",
                 f"{ledger.events:,} items", quantity(rate, "items/s"), quantity(flow, "B/s")]
        if ledger.census is not None and self._depth:
            parts.append(f"frame FIFO {ledger.census.frame_level / self._depth:.0%}")
        parts.append(room)
        line = Text("  ".join(part for part in parts if part))
        line.append(f"  {ledger.lost:,} lost", style="bold red" if ledger.lost else "")
        self._live.update(line, refresh=True)


def complain(run: Run, done: Ledger | dict[str, Any], path: Path | None = None) -> None:
    """The one line on stderr about loss, a truncated stream, or a recording that ended early. ``path``: the RUN's name
    in it, if it is another one."""
    line = headline(path or run.path, summary(done, 0) if isinstance(done, Ledger) else done, run)
    if line is not None:
        click.echo(printable(line), err=True)


def _tell(said: str) -> None:
    click.echo(printable(as_given(said)), err=True)


def decoded(path: Path, decode: Callable[..., dict[str, Any]] = decode_run, *,
            in_place: bool = False) -> tuple[Run, dict[str, Any]]:
    """A RUN and the summary of its decode, with a line of progress, and one about its losses.

    Parameters
    ----------
    in_place : tables are made in the RUN, or not at all. Otherwise, those of a RUN that cannot be written are made in
        a copy of links, and the path of the returned RUN is that of the copy.
    """
    run = Run(path)
    if not in_place and not os.access(path, os.W_OK):
        run = Run(linked_copy(path))
        if decode is decode_run and not (path / ACCOUNT).exists():
            click.echo(printable(f"{path}: it cannot be written; its tables are made in {run.path} and removed at the "
                                 "end"), err=True)
    run.tell = _tell
    with contextlib.ExitStack() as stack:
        line: ProgressLine | None = None

        def decoding(size: int, total: int, ledger: Ledger) -> None:
            nonlocal line
            if line is None:
                line = stack.enter_context(ProgressLine(f"decoding {path}"))
            line.decoding(size, total, ledger)

        done = decode(run, decoding, _tell)
    complain(run, done, path)
    if run.clock_gone:
        _tell(f"{path / CLOCK}: it was recorded, and is gone; UTC is taken from the computer's clock at the start")
    return run, done
