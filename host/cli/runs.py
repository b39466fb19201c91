"""The commands for recorded runs: decoding, figures, queries, exports."""

import json
import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from hypermon.host.cli.complete import formats_like, runs_like
from hypermon.host.cli.junk_line import complain_of_junk, complain_of_rejects
from hypermon.host.cli.options import nodes_of
from hypermon.host.cli.progress_line import busy_line, decoded
from hypermon.host.decode.decode import count_run
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.run import Run
from hypermon.host.text.console import cell, make_console
from hypermon.host.text.numbers import counted, finite
from rich.table import Table

if TYPE_CHECKING:
    import duckdb
    from hypermon.host.contracts.rules import Rules
    from hypermon.host.tables.selection import Selection

__all__ = ["check", "decode", "export", "judge_and_print", "merge", "query", "report", "stats", "trim",
           "warn_of_ports"]

Command = TypeVar("Command", bound=Callable[..., Any])
_RUN = click.argument("run", metavar="RUN", type=click.Path(path_type=Path), shell_complete=runs_like)
#: Thirty years: times of a run have 64 bits of picoseconds, which is less.
_OFFSET_MS = 1e12
#: Rows that are shown to people.
_SHOWN = 100


def _selects(command: Command) -> Command:
    """The options of a command that takes a part of a run: ``nodes``, ``from_ms``, ``to_ms``."""
    for option in (
            click.option("--to-ms", type=float, callback=finite, metavar="T", help="End before this time."),
            click.option("--from-ms", type=float, callback=finite, metavar="T", help="Begin at this time."),
            click.option("--nodes", metavar="NODES", help="Only these nodes: 0,3,8-15.")):
        command = option(command)
    return command


def warn_of_ports(device: Device, settings: Settings) -> None:
    """Lines on stderr about a stimulus that the board that plays it may not see as it is meant."""
    if device.link.played is not None:
        for line in device.link.played.complaints(
                device.identity.clock_hz, port_bits=device.identity.data_bits, rising=settings.rising,
                falling=settings.falling, after=settings.after, kept=settings.nodes_kept):
            click.echo(f"hypermon: {line}", err=True)


@click.command()
@_RUN
@click.option("--framing", type=click.Choice(["event"]),
              help="Also find the events that the nodes' software framed in nibbles: RUN/framed.parquet.")
@click.option("--dictionary", metavar="FILE", type=click.Path(path_type=Path),
              help="Event dictionary: adds a name and fields to every event. A copy is kept in RUN and used from "
                   "then on.")
def decode(run: Path, framing: str | None, dictionary: Path | None) -> None:
    """Turn a recorded run into tables: RUN/events/*.parquet and RUN/loss.parquet.

    Any engine reads them, for instance: duckdb -c "from 'RUN/events/*.parquet' limit 10".
    Decoding again changes nothing.
    """
    from hypermon.host.analysis.junk import find_junk, of_nodes
    from hypermon.host.analysis.named_events import fit_events
    from hypermon.host.analysis.stats import lost_text
    from hypermon.host.decode.unrecorded import is_accounted
    from hypermon.host.dictionary.run_dictionary import keep_dictionary
    from hypermon.host.export.items import item_files
    from hypermon.host.recording.parts import PARTS
    from hypermon.host.view.counts import keep_counts

    if dictionary is not None:
        keep_dictionary(Run(run), dictionary)
    opened, done = decoded(run, in_place=True)
    lost = lost_text(done["lost"], is_accounted(opened, done))
    click.echo(f"{run}: {counted(done['events'], 'item')} in {opened.path / 'events'}, {lost} lost")
    if framing is not None:
        from hypermon.host.events import FRAMED, framed_events

        count = framed_events(opened)
        click.echo(f"{run}: {count:,} events in {opened.path / FRAMED}, framed from nibbles")
    fit = fit_events(opened)
    if fit is not None:
        junk = find_junk(opened, decoded=True, rows=sys.maxsize) if fit.unknown or fit.short or fit.long else None
        click.echo(f"{run}: {fit.as_text()}{'' if junk is None else f': {of_nodes(junk)}'}")
    elif dictionary is not None:
        click.echo(f"{run}: the dictionary is kept; it needs events: --framing event finds them in nibbles")
    complain_of_junk(opened)
    complain_of_rejects(opened, done["events_per_node"], done["rejected_per_node"])
    if opened.info.keep != "stats":
        keep_counts(run, item_files(opened), opened.info.nodes, opened.decode()[PARTS])


@click.command()
@_RUN
@click.option("--to", "form", required=True, metavar="FORMAT", shell_complete=formats_like, help="A format above.")
@_selects
@click.argument("out", metavar="OUT")
def export(run: Path, form: str, nodes: str | None, from_ms: float | None, to_ms: float | None, out: str) -> None:
    """Write a recorded run to OUT in another format; `-` is standard output.

    \b
    csv      time_ps,node,nibble
    frames   the event frames of a classic run, raw: 16 bytes each (24 on boards of more than 16 nodes)
    events   time_ps,node,event,payload_hex: the events that the nodes' software logged
    logs     time_ps,begun_ps,node,name,complete,text: long messages and log lines, as the run's dictionary defines them
    vcd      a value change dump: GTKWave, Surfer
    fst      the same, compressed, for GTKWave: opens at once, whatever its length
    ctf      Common Trace Format 1.8, a directory: babeltrace2, Trace Compass
    ctf2     Common Trace Format 2, a directory: babeltrace2 from 2.1 on
    otf2     Open Trace Format 2, a directory: Vampir, otf2-print
    sr       a sigrok session of up to 12 nodes' lines: PulseView, sigrok-cli
    perfetto a trace for ui.perfetto.dev: tracks of nodes, losses, and the slices and counters of the
             run's dictionary (hypermon decode RUN --framing event --dictionary FILE)
    manifest JSON with which Perfetto merges the trace with those of other machines (docs/several-boards.md)

    All formats except csv, frames, events, logs and manifest contain the losses; docs/exports.md
    describes how.
    A loss that overlaps the chosen times is kept whole. perfetto and otf2 also keep each span whole that overlaps them.
    """
    from hypermon.host.analysis.stats import quantity
    from hypermon.host.export import formats as exports
    from hypermon.host.export.sinks import refuse_output, written

    if form not in exports.FORMATS:
        raise HypermonError(f"--to {form}: there are {', '.join(exports.FORMATS)}")
    opened = Run(run)
    selection = _selection(opened, nodes, from_ms, to_ms)
    exports.refuse_format(opened, form, selection)
    refuse_output(out, directory=exports.FORMATS[form].directory)
    opened, _ = decoded(run)
    with busy_line(f"exporting {run} to {form}", lambda: quantity(written(out), "B")):
        exports.export(opened, form, out, selection)


def _selection(run: Run, nodes: str | None, from_ms: float | None, to_ms: float | None) -> "Selection":
    """What :func:`_selects` has given. Raises HypermonError if nothing can be in it."""
    from hypermon.host.tables.selection import Selection

    # Of several boards, one may have begun before the first, whose time is that of the run.
    from_ps, to_ps = _range(from_ms, to_ms, negative=bool(run.info.boards))
    return Selection(None if nodes is None else nodes_of("--nodes", nodes, run.info.nodes), from_ps, to_ps)


def _range(from_ms: float | None, to_ms: float | None, negative: bool) -> tuple[int | None, int | None]:
    """Two times in picoseconds; raises HypermonError if no event can be between them."""
    for option, ms in (("--from-ms", from_ms), ("--to-ms", to_ms)):
        if ms is not None and ms < 0 and not negative:
            raise HypermonError(f"{option} {ms:g}: times begin at 0, the start of the recording")
    from_ps, to_ps = (None if ms is None else round(ms * 10**9) for ms in (from_ms, to_ms))
    begin = from_ps if from_ps is not None or negative else 0
    if begin is not None and to_ps is not None and begin >= to_ps:
        raise HypermonError(f"--from-ms {from_ms or 0:g} --to-ms {to_ms:g}: no time is between these; the second "
                            "must be later than the first")
    return from_ps, to_ps


@click.command()
@_RUN
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def stats(run: Path, as_json: bool) -> None:
    """Show the figures of a recorded run."""
    from hypermon.host.analysis.stats import print_stats
    from hypermon.host.analysis.stats import stats as figures

    opened, done = decoded(run, count_run)
    if as_json:
        click.echo(json.dumps(figures(opened, done), indent=2))
    else:
        print_stats(opened, make_console(), done)


@click.command()
@_RUN
@click.argument("question", metavar="[SQL]", required=False)
@click.option("--json", "as_json", is_flag=True, help="All rows as JSON, one line per row.")
@click.option("--csv", "as_csv", is_flag=True, help="All rows as CSV.")
def query(run: Path, question: str | None, as_json: bool, as_csv: bool) -> None:
    """Query the tables of a recorded run in SQL (DuckDB); without SQL, list the tables.

    Times are board time in picoseconds. The first hundred rows are shown; --json and --csv print all.
    Binary values are hexadecimal. JSON has null for NaN and infinities. In CSV, a text that a
    spreadsheet would take for a formula (=, +, -, @) begins with an apostrophe.

    \b
    hypermon query RUN
    hypermon query RUN "select node, count(*) from events group by node order by node"
    hypermon query RUN "from loss order by lost desc limit 5" --json
    """
    from hypermon.host.analysis.query import TABLES_QUESTION, batches, sql

    if as_json and as_csv:
        raise HypermonError("--json and --csv: choose one")
    opened, _ = decoded(run)
    relation = sql(opened, question or TABLES_QUESTION)
    if as_csv:
        _print_csv(relation)
    elif as_json:
        twice = [name for name, count in Counter(relation.columns).items() if count > 1]
        if twice:
            raise HypermonError(f"--json: two columns are called {twice[0]}; name one of them: {twice[0]} as ...")
        for batch in batches(relation):
            for row in batch.to_pylist():
                click.echo(json.dumps(_of_json(row), allow_nan=False))
    else:
        _print_table(relation)


def _plain(value: Any) -> str:
    """A value that JSON has no word for."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _of_json(value: Any) -> Any:
    """A value as JSON has it: null for what is no number, text for what it has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _of_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_of_json(one) for one in value]
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value if value is None or isinstance(value, bool | int | str) else _plain(value)


#: What a spreadsheet takes for a formula, and what is a number all the same.
_FORMULA, _NUMBER = re.compile(r"[=+\-@\t\r]"), re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def _of_csv(value: Any) -> Any:
    """A value as a cell: a text that a spreadsheet would compute has an apostrophe before it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int | float | Decimal | None):
        return value
    text = str(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _print_csv(relation: "duckdb.DuckDBPyRelation") -> None:
    import csv

    from hypermon.host.analysis.query import batches

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(_of_csv, relation.columns))
    for batch in batches(relation):
        columns = (map(_of_csv, column.to_pylist()) for column in batch.columns)
        writer.writerows(zip(*columns, strict=True))


def _print_table(relation: "duckdb.DuckDBPyRelation") -> None:
    from hypermon.host.analysis.query import first_rows

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name, kind in zip(relation.columns, relation.types, strict=True):
        number = "INT" in str(kind) or str(kind) in ("DOUBLE", "FLOAT") or str(kind).startswith("DECIMAL")
        table.add_column(cell(name), justify="right" if number else "left", overflow="fold")
    rows = first_rows(relation, _SHOWN + 1)
    for row in rows[:_SHOWN]:
        table.add_row(*("" if value is None else cell(_plain(value)) for value in row))
    make_console().print(table)
    if len(rows) > _SHOWN:
        click.echo(f"Only {_SHOWN} rows are shown; --json and --csv print all.", err=True)


@click.command()
@_RUN
@click.argument("rules", metavar="[RULES]", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--reasons", is_flag=True, help="With --json: also the notes on each rule, and the reason of each place.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path),
              help="Also write the verdicts to FILE, a test report that CI systems read.")
@click.option("--of", "parent", type=int, hidden=True)
@click.option("--dictionary", type=click.Path(path_type=Path), hidden=True)
def check(run: Path, rules: Path | None, as_json: bool, reasons: bool, junit: Path | None, parent: int | None,
          dictionary: Path | None) -> int:
    """Judge a run by RULES: pass, fail, or undecided where something lost could matter (docs/check.md).

    Exit status 0: all rules pass. 1: one fails. 4: none fails, and one is undecided: what was lost, the
    uncertainty of times, or the ends of the recording leave it open.

    Without RULES, check that no message was received before it was sent; exit status 1 if one was, and 4
    if none was and losses leave open which messages were received. A message between boards may seem to
    be received before it was sent, by up to the uncertainty of the boards' times, which `hypermon stats`
    prints. Such messages are shown, but only messages that are off by more are errors. The run's
    dictionary defines the messages (docs/dictionary.md). If no message was both sent and received, there
    is nothing to check: exit status 2.
    """
    if rules is not None and parent is not None:
        from hypermon.host.live.checking import check_live

        check_live(run, rules, dictionary, parent, lambda line: print(line, flush=True))
        return 0
    if rules is not None:
        return _check_rules(run, rules, as_json, reasons, junit)
    if junit is not None:
        raise HypermonError(f"--junit: there are no verdicts without rules: hypermon check {run} RULES --junit {junit}")
    return _check_causality(run, as_json)


def _check_rules(run: Path, path: Path, as_json: bool, reasons: bool, junit: Path | None) -> int:
    from hypermon.host.contracts.rules import load_rules
    from hypermon.host.export.sinks import refuse_output

    rules = load_rules(path)
    if junit is not None:
        if str(junit) == "-":
            raise HypermonError("--junit -: give the name of a file")
        refuse_output(junit)
    opened, _ = decoded(run)
    return judge_and_print(opened, rules, as_json, junit, reasons)


def judge_and_print(run: Run, rules: "Rules", as_json: bool, junit: Path | None = None, reasons: bool = False) -> int:
    """Judges a RUN by rules. Returns the exit status."""
    from hypermon.host.contracts.judge import judge_rules
    from hypermon.host.contracts.verdicts import STATUS, as_dict, overall, print_verdicts
    from hypermon.host.contracts.verdicts import junit as junit_file
    from hypermon.host.export.sinks import sink

    with busy_line(f"judging {run.given}"):
        judged = judge_rules(run, rules)
    if junit is not None:
        with sink(str(junit)) as file:
            file.write(junit_file(judged, run.given))
    if as_json:
        click.echo(json.dumps(as_dict(judged, reasons)))
    else:
        print_verdicts(judged, run.given, make_console())
    return STATUS[overall(judged)]


def _check_causality(run: Path, as_json: bool) -> int:
    from hypermon.host.analysis.causality import causality
    from hypermon.host.contracts.verdicts import STATUS
    from hypermon.host.dictionary.run_dictionary import kept_dictionary

    opened, _ = decoded(run)
    if kept_dictionary(opened) is None:
        raise HypermonError(f"{run}: nothing to check: the run has no dictionary that defines messages; "
                            f"hypermon decode {run} --dictionary FILE")
    found = causality(opened)
    if not found.matched:
        raise HypermonError(f"{run}: nothing to check: by its dictionary it has {found.messages:,} messages, and none "
                            "was seen both sent and received")
    if as_json:
        click.echo(json.dumps(found._asdict()))
    else:
        least = "" if found.least_ps is None else f" (the quickest took {found.least_ps / 1000:,.0f} ns)"
        excused = (f", {found.backwards - found.beyond:,} of them within the uncertainty of the boards' times"
                   if found.beyond < found.backwards else "")
        unsure = (f"; after losses {found.uncertain:,} may be matched wrongly, which leaves them undecided"
                  if found.uncertain else "")
        click.echo(f"{run}: {found.messages:,} messages, {found.matched:,} sent and received, {found.sent_only:,} sent "
                   f"only, {found.received_only:,} received only; {found.backwards:,} received before they were sent"
                   f"{excused}{least}{unsure}")
    return STATUS["fail" if found.beyond else "undecided" if found.uncertain else "pass"]


@click.command()
@_RUN
@click.option("-o", "--output", "out", metavar="FILE", type=click.Path(path_type=Path),
              help="File to write; - is standard output. Default: RUN/report.html.")
@_selects
def report(run: Path, out: Path | None, nodes: str | None, from_ms: float | None, to_ms: float | None) -> None:
    """Write a report of a recorded run: one HTML page with figures and tables, for any browser.

    The page shows the recorded and lost items; rates, volume and every node over time; the busiest
    moments; the buffer size with which nothing would have been lost, for several rates of the host;
    how many items share a window; the times between items; and messages, if the run's dictionary
    defines them. Needs the extra `report`.
    """
    from hypermon.host.export.sinks import refuse_output
    from hypermon.host.record.excerpt import trim as trim_run
    from hypermon.host.report.report import write_report
    from hypermon.host.tables.selection import Selection

    selection = _selection(Run(run), nodes, from_ms, to_ms)
    path = run / "report.html" if out is None else out
    if out is None and os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise HypermonError(f"{path}: it is not a regular file of the run; remove it, or name another file with -o")
    refuse_output(path)
    opened, _ = decoded(run)
    with busy_line(f"writing the report of {run}"), tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        if selection != Selection():
            trim_run(opened, Path(folder) / opened.path.resolve().name, selection)
            opened = Run(Path(folder) / opened.path.resolve().name)
        write_report(opened, path)
    click.echo(f"{run}: {path}", err=str(path) == "-")


@click.command()
@_RUN
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@_selects
def trim(run: Path, out: Path, nodes: str | None, from_ms: float | None, to_ms: float | None) -> None:
    """Write a part of a recorded run to OUT, as a run of its own: some nodes, a span of time, or both.

    All commands open it. It has tables but no blocks, like a recording with --keep events. Times and
    node numbers are unchanged. Losses that overlap the span are kept whole.
    """
    from hypermon.host.analysis.stats import lost_text
    from hypermon.host.record.excerpt import trim as trim_run
    from hypermon.host.recording.writer import refuse_existing

    refuse_existing(out)
    opened = Run(run)
    selection = _selection(opened, nodes, from_ms, to_ms)
    opened, _ = decoded(run)
    with busy_line(f"trimming {run}"):
        done = trim_run(opened, out, selection)
    click.echo(f"{out}: {counted(done['events'], 'item')}, {lost_text(done['lost'], done['accounted'])} lost. "
               f"Next: hypermon stats {out}")


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, metavar="OUT", type=click.Path(path_type=Path),
              help="Directory of the merged run; must not exist.")
@click.option("--offset", "offsets", multiple=True, metavar="RUN=MS",
              help="When the board of RUN began, in ms of the first board's time, if another source states it. "
                   "Repeatable.")
def merge(runs: tuple[Path, ...], out: Path, offsets: tuple[str, ...]) -> None:
    """Merge recordings of several boards, made separately, into one run.

    Node numbers continue from board to board, and times are those of the first board. The recordings
    are aligned by the clock of the computer that made them, with the uncertainty that `hypermon stats`
    prints, or as --offset states. OUT has copies of the recordings.
    """
    from hypermon.host.analysis.stats import lost_text
    from hypermon.host.record.joined import merge as merge_runs

    known = {}
    for text in offsets:
        name, _, ms = text.rpartition("=")
        try:
            if Path(name) not in runs or not abs(float(ms)) < _OFFSET_MS:
                raise ValueError
            offset = round(Decimal(ms) * 10**9)
        except ValueError:
            raise HypermonError(f"--offset {text}: expected RUN=MS, one of the runs and a time in ms") from None
        if Path(name) in known:
            raise HypermonError(f"--offset {text}: the offset of {name} is given twice")
        known[Path(name)] = offset
    if len(set(runs)) < max(len(runs), 2):
        raise HypermonError("merge: give at least two different runs")
    with busy_line(f"merging into {out}"):
        merged = merge_runs(runs, out, known)
        figures = merged.stats()
    click.echo(f"{out}: {counted(figures['events'], 'item')} of {len(runs)} boards, "
               f"{lost_text(figures['lost'], figures['accounted'])} lost. Next: hypermon stats {out}")
