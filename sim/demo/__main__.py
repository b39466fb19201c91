"""The demo: sixteen threads of a real program, traced through the virtual board, and checked.

    make demo        (or: python -m hypermon.sim.demo)

Builds and plays ``node/life.c``. Sends what its sixteen ports did through the virtual board, with the same commands
that a user would type. Compares the result with what the program itself logged.
"""

import csv
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypermon.host.dictionary.dictionary import EventKind, load_dictionary
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.run import Run
from hypermon.sim.demo.strip import Activity, rate_strip, spans, strip
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Checks", "LogEntry", "check", "main", "read_log"]

NODE = Path(__file__).parents[2] / "node"
#: What the events of life.toml begin; stop ends all.
COMPUTING, EXCHANGING, WAITING = range(3)
ACTIVITIES = [Activity("computing", "█", "#", "green"), Activity("exchanging borders", "▒", "=", "yellow"),
              Activity("at the barrier", "·", ".", "blue")]
BEGINS = {"start": EXCHANGING, "send": EXCHANGING, "receive": EXCHANGING, "generation": COMPUTING,
          "barrier_enter": WAITING, "barrier_leave": EXCHANGING, "stop": -1}
#: The board reports the clock before an edge or one of the two after it, and the synchronizer's latency is subtracted.
WINDOW_NS = 10
LATE_NS = 2 * WINDOW_NS + 200


@dataclass(frozen=True)
class LogEntry:
    """One event as the program itself logged it, with the times just before and after it wrote the event."""

    from_ns: int
    to_ns: int
    event: int
    payload: bytes


def read_log(path: Path) -> dict[int, list[LogEntry]]:
    """The program's own log, by node, in order."""
    log: dict[int, list[LogEntry]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            log.setdefault(int(row["node"]), []).append(LogEntry(
                int(row["from_ns"]), int(row["to_ns"]), int(row["event"]), bytes.fromhex(row["payload"])))
    return log


# ------------------------------------------------------------------------------------------- checks

@dataclass
class Checks:
    """What was checked: pairs of passed and a sentence with the count; and what was measured meanwhile."""

    results: list[tuple[bool, str]] = field(default_factory=list)
    #: Picoseconds from the beginning of a send event to the beginning of the receive event.
    latency_ps: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, passed: bool, text: str) -> None:
        self.results.append((bool(passed), text))

    @property
    def passed(self) -> bool:
        return all(passed for passed, _ in self.results)


def check(events: pa.Table, log: dict[int, list[LogEntry]], kinds: dict[str, EventKind],
          stats: dict[str, Any]) -> Checks:
    """Compares the board's output with the program's log, and with itself.

    Parameters
    ----------
    events : of :func:`hypermon.host.decode.event_framing.frame_events`.
    log : of :func:`read_log`.
    kinds : the event dictionary, by name.
    stats : of the run.
    """
    checks = Checks()
    _check_log(checks, events, log)
    whole = stats["complete"] and not stats["lost"] and not stats["missing_blocks"] and not stats["torn_bytes"]
    checks.add(whole, "the board lost nothing by its own count, and every block arrived" if whole else
               f"the board's count: {stats['lost']:,} nibbles lost, {stats['missing_blocks']:,} blocks missing, "
               f"{stats['torn_bytes']:,} bytes torn" + ("" if stats["accounted"] else ", no proper end"))
    _check_messages(checks, events, kinds)
    _check_barriers(checks, events, kinds, len(log))
    return checks


def _check_log(checks: Checks, events: pa.Table, log: dict[int, list[LogEntry]]) -> None:
    came: dict[int, list[tuple[int, int | None, bytes, bool]]] = {}
    for row in zip(*(events[name].to_pylist() for name in ("node", "time_ps", "event", "payload", "aborted")),
                   strict=True):
        came.setdefault(row[0], []).append(row[1:])
    wrong = [node for node in sorted(log.keys() | came.keys())
             if [(e.event, e.payload, False) for e in log.get(node, [])] != [e[1:] for e in came.get(node, [])]]
    written = sum(map(len, log.values()))
    checks.add(not wrong,
               f"all {written:,} events of the program's log came back, in order, byte for byte"
               if not wrong else f"of {written:,} events {events.num_rows:,} came back; those of node "
                                 f"{', '.join(map(str, wrong))} are not what the program logged")
    if wrong:
        return
    pairs = [(mine, theirs) for node in log for mine, theirs in zip(log[node], came[node], strict=True)]
    early = sum(theirs[0] < (mine.from_ns - WINDOW_NS) * 1000 for mine, theirs in pairs)
    late = sum(theirs[0] > (mine.to_ns + LATE_NS) * 1000 for mine, theirs in pairs)
    checks.add(not early and not late,
               f"all {len(pairs):,} time stamps are between the program's clock readings around them"
               if not early and not late else f"{early:,} time stamps are too early, {late:,} too late")


def _check_messages(checks: Checks, events: pa.Table, kinds: dict[str, EventKind]) -> None:
    ends = []
    for name in ("send", "receive"):
        rows = kinds[name].rows(events)
        node, peer, sequence = (rows[column].to_numpy().astype(np.int64) for column in ("node", "peer", "sequence"))
        sender, receiver = (node, peer) if name == "send" else (peer, node)
        key = (sender * 256 + receiver) * 65536 + sequence
        order = np.argsort(key, kind="stable")
        ends.append((key[order], rows["time_ps"].to_numpy()[order]))
    (sent, sent_ps), (received, received_ps) = ends
    once = len(np.unique(sent)) == len(sent) and np.array_equal(sent, received)
    checks.add(once, f"all {len(sent):,} messages were sent once and received once" if once else
               f"{len(sent):,} messages were sent and {len(received):,} received, and they do not match")
    if not once:
        return
    checks.latency_ps = received_ps - sent_ps
    wrong = int(np.count_nonzero(checks.latency_ps <= 0))
    shortest = f" (shortest latency: {checks.latency_ps.min() / 1e3:,.0f} ns)" if len(sent) else ""
    checks.add(wrong == 0, f"none of {len(sent):,} was received before it was sent{shortest}" if wrong == 0
               else f"{wrong:,} of {len(sent):,} messages were received before they were sent")


def _check_barriers(checks: Checks, events: pa.Table, kinds: dict[str, EventKind], nodes: int) -> None:
    enter, leave = (kinds[f"barrier_{what}"].rows(events) for what in ("enter", "leave"))
    last = enter.group_by("generation").aggregate([("time_ps", "max"), ("node", "count_distinct")])
    first = leave.group_by("generation").aggregate([("time_ps", "min")])
    joined = last.join(first, "generation", join_type="full outer")
    unmatched = joined["time_ps_max"].null_count + joined["time_ps_min"].null_count
    good = unmatched == 0 and bool(np.all(joined["node_count_distinct"].to_numpy() == nodes)
                                   and np.all(joined["time_ps_max"].to_numpy() < joined["time_ps_min"].to_numpy()))
    checks.add(good, f"none of {joined.num_rows:,} barriers was left before all {nodes} nodes were in" if good
               else "a barrier was left before all nodes were in")


# ------------------------------------------------------------------------------------------- phases

class Phases:
    """Prints each phase, and records how long it took."""

    def __init__(self, console: Console):
        self.console = console
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, text: str) -> Iterator[None]:
        self.console.print(f"[bold]{text}")
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begin

    def run(self, *command: str | Path) -> None:
        """Runs a command and shows it as a user would type it. Raises HypermonError if it fails."""
        words = [_short(word) if isinstance(word, Path) else word for word in command]
        self.console.print(f"  $ {shlex.join(words)}", style="cyan", highlight=False, markup=False, soft_wrap=True)
        sys.stdout.flush()
        try:
            done = subprocess.run([str(word) for word in command])
        except OSError as error:
            raise HypermonError(f"{words[0]}: {error.strerror}") from None
        if done.returncode:
            raise HypermonError(f"{words[0]} failed, status {done.returncode}")


def _short(path: Path) -> str:
    """A path as a user would type it here."""
    short = os.path.relpath(path)
    return str(path) if short.startswith("..") else short if os.sep in short else f".{os.sep}{short}"


def _compiler() -> str:
    named = os.environ.get("CC")
    for name in [named] if named else ["cc", "gcc", "clang"]:
        if name and shutil.which(name):
            return name
    raise HypermonError(f"no C compiler ({named or 'cc, gcc or clang'}); on Debian: apt-get install gcc")


def _fresh(folder: Path) -> None:
    """Removes what an earlier demo left here, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("life", "life.csv", "log.csv"):
        (folder / name).unlink(missing_ok=True)
    for name in ("run", "slow"):
        if (folder / name / "recording.json").is_file():
            shutil.rmtree(folder / name)


# ------------------------------------------------------------------------------------------- report

def _node_table(run: Run, events: pa.Table, stats: dict[str, Any], nodes: int) -> Table:
    """Events, rate, share of nibbles that share their frame, loss: one row per node, and one for all."""
    nibbles = run.events()
    time_ps, node = nibbles["time_ps"].to_numpy(), nibbles["node"].to_numpy()
    # Frames have different times, so nibbles of one time are nibbles of one frame.
    _, frame, size = np.unique(time_ps, return_inverse=True, return_counts=True)
    shared = np.bincount(node[size[frame] > 1], minlength=nodes)
    count = np.bincount(node, minlength=nodes)
    framed = np.bincount(events["node"].to_numpy(), minlength=nodes)
    seconds = stats["duration_ps"] / 1e12

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 1))
    for title in ("node", "events", "events/s", "nibbles", "merged", "lost"):
        table.add_column(title, justify="right")

    def row(name: str, of: int | slice, style: str = "") -> None:
        total = int(count[of].sum())
        lost = int(np.sum(stats["lost_per_node"][of]))
        table.add_row(name, f"{framed[of].sum():,}", f"{framed[of].sum() / seconds:,.0f}", f"{total:,}",
                      f"{100 * shared[of].sum() / max(total, 1):.1f} %", f"[red]{lost:,}" if lost else "0", style=style)

    for i in range(nodes):
        row(str(i), slice(i, i + 1))
    row("all", slice(None), "bold")
    return table


def _timeline(console: Console, events: pa.Table, kinds: dict[str, EventKind], nodes: int, generations: int) -> None:
    """Two generations, node by node; and the rate of events over the whole run."""
    ascii_only = not console.encoding.lower().startswith("utf")
    width = min(console.width, 132) - 6
    time_ps, node = events["time_ps"].to_numpy(), events["node"].to_numpy()
    event = events["event"].to_numpy()
    begins = {kinds[name].id: kind for name, kind in BEGINS.items()}
    all_spans = {i: spans(time_ps[node == i], event[node == i].astype(np.int64), begins, int(time_ps[-1]))
                 for i in range(nodes)}

    # The two consecutive generations with the shortest time: other programs interfered least.
    first, from_ps, to_ps = _quickest(kinds["barrier_leave"].rows(events), generations, int(time_ps[0]))
    console.print(f"\n[bold]Generations {first} and {first + 1} of {generations}[/], the quickest two, as the board "
                  f"saw them.\nA column is {(to_ps - from_ps) / width / 1e6:.1f} us and shows its longest activity.\n",
                  highlight=False)
    console.print(strip(all_spans, ACTIVITIES, from_ps, to_ps, width, ascii_only), no_wrap=True, crop=True)

    whole = np.array([time_ps[0], time_ps[-1]])
    shares = sum(s.shares(len(ACTIVITIES), whole).sum(axis=1) for s in all_spans.values())
    legend = Text()
    for activity, share in zip(ACTIVITIES, shares / max(shares.sum(), 1), strict=True):
        legend.append("     ")
        legend.append(activity.plain if ascii_only else activity.glyph, activity.style)
        legend.append(f" {activity.name} {share:.0%}")
    console.print(legend)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < nodes:
        console.print(f"     {nodes} threads share {cores} core{'s' * (cores > 1)}: most of the waiting is for one.",
                      style="dim")
    bars, rate = rate_strip(time_ps, int(time_ps[0]), int(time_ps[-1]) + 1, width, ascii_only)
    console.print(f"\n[bold]The whole run[/], {(time_ps[-1] - time_ps[0]) / 1e9:.1f} ms: events per second, "
                  f"at most {rate:,.0f}\n", highlight=False)
    console.print(Text("     " + bars, "magenta"), no_wrap=True, crop=True)


def _quickest(leave: pa.Table, generations: int, begin_ps: int) -> tuple[int, int, int]:
    """The first of the two consecutive generations with the shortest time, and their beginning and end."""
    left, order = leave["time_ps"].to_numpy(), leave["generation"].to_numpy()
    first, last = np.full(generations, np.iinfo(np.int64).max), np.zeros(generations, np.int64)
    np.minimum.at(first, order, left)
    np.maximum.at(last, order, left)
    begin = np.concatenate([[begin_ps], first[:-2]])
    at = int(np.argmin(last[1:] - begin))
    return at, int(begin[at]), int(last[at + 1]) + 1


def _excerpt(console: Console, events: pa.Table, kinds: dict[str, EventKind], rows: int = 8) -> None:
    """A few consecutive rows of the trace, with names and fields."""
    by_id = {kind.id: kind for kind in kinds.values()}
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 1))
    table.add_column("time, us", justify="right")
    table.add_column("node", justify="right")
    for title in ("event", "fields"):
        table.add_column(title)
    part = events.slice(max(events.num_rows // 2 - rows, 0), rows)
    for i in range(part.num_rows):
        kind = by_id[part["event"][i].as_py()]
        one = kind.rows(part.slice(i, 1)).to_pylist()[0]
        fields = "  ".join(f"{field.name} {one[field.name]}" for field in kind.fields)
        table.add_row(f"{one['time_ps'] / 1e6:,.2f}", str(one["node"]), kind.name, fields)
    console.print(f"\n[bold]{part.num_rows} rows from the middle of the trace[/]: all nodes, one time\n")
    console.print(table)


def _results(console: Console, checks: Checks) -> None:
    ascii_only = not console.encoding.lower().startswith("utf")
    console.print("\n[bold]Checked against the program's own log[/]\n")
    for passed, text in checks.results:
        mark = ("ok" if ascii_only else "✓") if passed else ("NO" if ascii_only else "✗")
        line = Text(f"  {mark} ", "bold green" if passed else "bold red")
        line.append(text, "default not bold" if passed else "red")
        console.print(line, highlight=False)
    if len(checks.latency_ps):
        middle, most = np.percentile(checks.latency_ps, [50, 99]) / 1e6
        console.print(f"    Half of them took less than {middle:,.1f} us, 99 of 100 less than {most:,.1f} us.",
                      style="dim", highlight=False)


def _next(console: Console, folder: Path, hypermon: Path, options: list[str]) -> None:
    command = _short(hypermon)
    run = _short(folder / "run")
    console.print("\n[bold]The files, and what to try next[/]\n")
    files = [(_short(folder / name), text) for name, text in (
        ("life.csv", "the writes to the ports: the stimulus"), ("log.csv", "the program's own log"),
        ("run/stream.bin", "the blocks that the board sent"), ("run/events/", "items: the nibbles, stamped"),
        ("run/framed.parquet", "the program's events: time_ps, node, event, payload, name and fields"))]
    files.append((_short(NODE / "hypermon.h"), "the node library, for your own programs"))
    width = max(len(name) for name, _ in files)
    for name, text in files:
        console.print(f"  {name:<{width}}  {text}", highlight=False, markup=False, soft_wrap=True)
    console.print()
    for line in (f"{command} stats {run}",
                 f"{command} export {run} --to events - | head",
                 f"{command} export {run} --to perfetto life.pftrace   # for ui.perfetto.dev"
                 + ("" if find_spec("perfetto") else f"; before: {to_install('perfetto')}"),
                 shlex.join([command, "sim", _short(folder / "life.csv"), "-o", _short(folder / "slow"), *options,
                             "--drain-rate", "1e6"]) + "   # a host that is too slow: see what is lost",
                 "make demo ARGS='--edges 2'   # half the writes per nibble: the strobe toggles"):
        console.print(f"  {line}", style="cyan", highlight=False, markup=False, soft_wrap=True)


# --------------------------------------------------------------------------------------------- main

@click.command()
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("demo"),
              show_default=True, help="Folder of the files; those of an earlier demo are replaced.")
@click.option("--nodes", type=click.IntRange(2, 32), default=16, show_default=True, help="Threads, one port each.")
@click.option("--size", type=click.IntRange(32, 8192), default=1024, show_default=True,
              help="Side of the board of Life, in cells.")
@click.option("--generations", type=click.IntRange(2, 32767), default=100, show_default=True, help="Number to compute.")
@click.option("--edges", type=click.Choice(["1", "2"]), default="1", show_default=True,
              help="1: strobe on the rising edge, two writes per nibble. 2: on both edges, one write.")
def demo(folder: Path, nodes: int, size: int, generations: int, edges: str) -> None:
    """Trace sixteen threads of Conway's Life through the virtual board, and check every event."""
    begin = time.monotonic()
    console = Console(emoji=False)
    phases = Phases(console)
    hypermon = Path(sys.executable).with_name("hypermon")
    _fresh(folder)
    kinds = load_dictionary(NODE / "life.toml").by_name
    run_path = folder / "run"

    with phases.phase("build", "1. Build the program: Life on threads that share no memory, each with a 5-bit port"):
        phases.run(_compiler(), "-std=c99", "-O2", "-pthread", f"-DHM_EDGES={edges}", NODE / "life.c",
                   "-o", folder / "life")
    with phases.phase("run", "2. Run it: every port write is stamped with the real time"):
        phases.run(folder / "life", "--nodes", str(nodes), "--size", str(size), "--generations", str(generations),
                   "-o", folder / "life.csv", "--log", folder / "log.csv")
    with phases.phase("board", "3. Play the ports on the virtual board, the gateware itself; one nibble is one item"):
        options = ["--window", "1", *(["--nodes", str(nodes)] if nodes != 16 else []),
                   *(["--edge", "both"] if edges == "2" else [])]
        phases.run(hypermon, "sim", folder / "life.csv", "-o", run_path, *options)
    with phases.phase("decode", "4. Find the program's events in the nibbles, and name them and their fields"):
        phases.run(hypermon, "decode", run_path, "--framing", "event", "--dictionary", NODE / "life.toml")
    with phases.phase("check", "5. Compare with the program's own log"):
        run = Run(run_path)
        stats = run.stats()
        events = pq.read_table(run_path / "framed.parquet")
        checks = check(events, read_log(folder / "log.csv"), kinds, stats)

    console.print()
    console.print(_node_table(run, events, stats, nodes))
    console.print(f"\nmerged: share of a node's nibbles whose event frame contains nibbles of other nodes too.\n"
                  f"The board sent {stats['frames']:,} frames in {stats['stream_bytes']:,} bytes, "
                  f"over {stats['duration_ps'] / 1e9:,.1f} ms of its time.", style="dim", highlight=False)
    if checks.results[0][0]:
        _timeline(console, events, kinds, nodes, generations)
        _excerpt(console, events, kinds)
    _results(console, checks)
    _next(console, folder, hypermon, options)
    took = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases.seconds.items())
    console.print(f"\nTook {time.monotonic() - begin:.1f} s: {took}.", highlight=False)
    if not checks.passed:
        raise HypermonError("the demo failed: the recording differs from what the program did")


def main() -> None:
    """Exit status 0; 2 and one line on stderr if something failed."""
    try:
        demo(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.ClickException, HypermonError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        print(f"demo: {message}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)


if __name__ == "__main__":
    main()
