"""The command that compares recordings."""

import json
from pathlib import Path

import click
from hypermon.host.cli.complete import runs_like
from hypermon.host.cli.progress_line import busy_line, decoded
from hypermon.host.errors import HypermonError
from hypermon.host.run import Run
from hypermon.host.text.console import make_console

__all__ = ["compare"]

#: What a RUN has, and a directory of RUNs has not.
_RECORDING = "recording.json"


@click.command()
@click.argument("first", metavar="A", type=click.Path(path_type=Path), shell_complete=runs_like)
@click.argument("second", metavar="B", type=click.Path(path_type=Path), shell_complete=runs_like)
@click.option("--fail-if", "limits", multiple=True, metavar="LIMIT",
              help="Exit status 1 if a difference is beyond this, such as 'latency.p99 > +5 %'; 4 if it may be. "
                   "Repeatable.")
@click.option("--level", type=click.FloatRange(1e-4, 0.2), default=0.01, show_default=True, metavar="P",
              help="The probability that any figure is called different by chance.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="As Markdown, for a pull request.")
@click.option("--html", "page", metavar="FILE", help="Also write a page: figures, distributions, both timelines.")
@click.option("--align", metavar="EVENT",
              help="With --html: the timelines are aligned at the first EVENT of each run, such as barrier_leave or "
                   "nibble:7. Default: at the starts.")
def compare(first: Path, second: Path, limits: tuple[str, ...], level: float, as_json: bool, as_markdown: bool,
            page: str | None, align: str | None) -> int:
    """Compare two runs, or two groups of runs: durations, latencies, periods, rates, shares, losses (docs/compare.md).

    A and B are runs, or directories of runs. Each figure has its difference, an interval of it and a
    verdict: higher, lower, same, or undecided where something lost or the uncertainty of times could
    explain the difference.

    Exit status 1: a limit is exceeded. 4: none is exceeded, and one may be.
    """
    from hypermon.host.compare.comparison import compare_measures
    from hypermon.host.compare.lanes import aligned
    from hypermon.host.compare.limits import judge_limits, limit_of
    from hypermon.host.compare.measures import Measured
    from hypermon.host.compare.page import comparison_page
    from hypermon.host.compare.tables import STATUS, as_dict, markdown, overall, print_comparison
    from hypermon.host.export.sinks import refuse_output, sink

    if as_json and as_markdown:
        raise HypermonError("--json and --markdown: choose one")
    if page == "-":
        raise HypermonError("--html -: give the name of a file")
    if align is not None and page is None:
        raise HypermonError("--align is for the timelines of --html FILE")
    if page is not None:
        refuse_output(page)
    asked = [limit_of(text) for text in limits]
    groups = [[decoded(path)[0] for path in _group(given)] for given in (first, second)]
    with busy_line(f"comparing {first} and {second}"):
        found = [Measured(group) for group in groups]
        figures = compare_measures(found[0], found[1], level)
        if not figures:
            raise HypermonError(f"{first}, {second}: nothing to compare: neither has an item, a loss or a state that "
                                "a figure could be of")
        broken = judge_limits(figures, asked)
        if page is not None:
            text = comparison_page([str(first), str(second)], figures, broken, found,
                                   aligned([group[0] for group in groups], align), align)
    if page is not None:
        with sink(page) as file:
            file.write(text.encode())
    if as_json:
        click.echo(json.dumps(as_dict(figures, broken), allow_nan=False))
    elif as_markdown:
        click.echo(markdown(figures, broken), nl=False)
    else:
        print_comparison(figures, broken, make_console())
    return STATUS[overall(broken)]


def _group(path: Path) -> list[Path]:
    """A RUN, or the RUNs in a directory."""
    if path.is_dir() and not (path / _RECORDING).exists():
        runs = sorted(below for below in path.iterdir() if (below / _RECORDING).is_file())
        if not runs:
            raise HypermonError(f"{path}: it is neither a run nor a directory of runs")
        return runs
    Run(path)
    return [path]
