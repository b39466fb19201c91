"""Counting without recording: the board captures, and only its own counts are kept."""

import time
from collections.abc import Callable
from dataclasses import replace

from hypermon.host.analysis.stats import duration_text, quantity
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.reduction import Reduction, read_reduction
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.text.console import cell
from rich.console import Console
from rich.table import Table

__all__ = ["count", "print_reduction"]

_LIMIT = 1 << 20
#: Seconds for a stopped board to report that nothing is left.
_PATIENCE_S = 2.0
_BAR = 40


def count(device: Device, settings: Settings, *, seconds: float | None = None, interrupt: Interrupt | None = None,
          every: float | None = None, look: Callable[[Reduction], None] | None = None) -> Reduction:
    """Captures, and discards the captured data.

    Parameters
    ----------
    settings : in the extended configuration.
    seconds, interrupt : what ends it, besides a link that has ended. Seconds are the board's.
    every, look : ``look`` is called with the counts so far, every ``every`` seconds of the board.

    Returns
    -------
    the counts at the end.

    Raises
    ------
    HypermonError
        if the board rejects the settings, or is not in the extended configuration.
    """
    link, interrupt = device.link, interrupt or Interrupt()
    device.prepare(settings)
    read_reduction(device)      # or reports now that this board does not count
    device.start()
    begun, looked = time.monotonic(), 0.0
    while not link.ended and not interrupt.hit:
        link.stream(_LIMIT)
        board_ps = link.board_ps
        now = time.monotonic() - begun if board_ps is None else board_ps / 1e12
        if seconds is not None and now >= seconds:
            break
        if every is not None and look is not None and now - looked >= every:
            looked = now
            look(read_reduction(device))
    stopped_ps = device.stop()
    silent_since = time.monotonic()
    while link.stream(_LIMIT) and time.monotonic() - silent_since < _PATIENCE_S:
        pass
    numerator, denominator = device.scale.ratio
    windows = stopped_ps * denominator // (numerator * device.scale.window_clocks)
    return replace(read_reduction(device), windows=windows)     # without the windows of the wait


def print_reduction(board: str, counted: Reduction, console: Console) -> None:
    """Prints the figures as tables, for people."""
    total = sum(counted.accepted)
    head = Table.grid(padding=(0, 2))
    for name, text in (
            ("board", f"{board}, windows of {duration_text(round(counted.window_ps))}"),
            ("duration", duration_text(round(counted.seconds * 1e12))),
            ("items", f"{total:,}" + (f", {quantity(total / counted.seconds, '/s')}" if counted.seconds else "")),
            ("windows", f"{sum(counted.shared):,}, {counted.merged_windows_percent:.1f} % of them with more than one "
                        f"item; {counted.merged_percent:.1f} % of items share theirs"),
            ("highest level", f"{counted.vector_high:,} strobe vectors, {16 * counted.store_high:,} bytes of codes")):
        head.add_row(f"[bold]{name}", cell(text))
    nodes = Table("node", box=None, header_style="bold")
    for title in ("items", "per second", "lost", "most in FIFO"):
        nodes.add_column(title, justify="right")
    for node, (items, rate, lost, high) in enumerate(zip(
            counted.accepted, counted.rates(), counted.lost, counted.node_high, strict=True)):
        nodes.add_row(str(node), f"{items:,}", quantity(rate, ""), f"[red]{lost:,}" if lost else "0", str(high))
    gaps = Table("time between items of a node", box=None, header_style="bold")
    gaps.add_column("items", justify="right")
    gaps.add_column("")
    bins = [sum(row[k] for row in counted.gaps) for k in range(len(counted.gaps[0]))]
    used = [k for k, n in enumerate(bins) if n]
    for k in range(used[0], used[-1] + 1) if used else ():
        begin, end = (duration_text(round((1 << b) * counted.stamp_ps)) for b in (k, k + 1))
        gaps.add_row(f"{begin} to {end}", f"{bins[k]:,}", "#" * -(-_BAR * bins[k] // max(bins)))
    console.print(head, "", nodes, "", gaps, sep="\n")
