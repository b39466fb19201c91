"""``make machines``: the measurements of four more papers, repeated, as a page with figures and tables."""

import os
import sys
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import click
from hypermon.host.errors import HypermonError
from hypermon.studies.figures import BUILT, available
from hypermon.studies.machine.page.evaluation import evaluate, over
from hypermon.studies.machine.page.figures import draw
from hypermon.studies.machine.page.page import all_rows, page, plain
from hypermon.studies.machine.page.rows import Data
from hypermon.studies.machine.page.tables import Row, Tables, load, save

__all__ = ["write"]


def write(tables: Tables, folder: Path, values: Path) -> None:
    """Writes ``machines.md`` and ``machines/``, its figures, into a folder, and the tables into the folder `values`."""
    beside = folder / "machines"
    beside.mkdir(parents=True, exist_ok=True)
    data = Data(tables)
    tables["rows"] = plain(all_rows(data))
    (folder / "machines.md").write_text(page(tables, draw(data, beside)), "utf-8")
    save(tables, values)


def _made(tables: Tables, share: float, done: Tables, chosen: list[str]) -> Row:
    """How the tables were made: the options, what this evaluation added, and its processor time."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    runs = done.get("runs", [])
    return {"options": " ".join([f"--share {share:g}", *chosen]), "share": f"{100 * share:g} %",
            "events": sum(row["events"] for row in tables.get("runs", [])), "runs": len(runs),
            "recorded": sum(bool(row["recorded"]) for row in runs),
            "cpu_s": round(sum(one.ru_utime + one.ru_stime for one in used))}


@click.command()
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("docs"),
              show_default=True, help="Where machines.md and machines/ go.")
@click.option("--tables", "values", type=click.Path(path_type=Path, file_okay=False), default=BUILT / "machines",
              show_default=True, help="Where the tables go as CSV, and where --again and --only read them.")
@click.option("--share", type=click.FloatRange(0.001, 1), default=0.25, show_default=True,
              help="Length of the runs; 1 is as long as in the papers where a figure needs it: hours.")
@click.option("--only", multiple=True, type=click.Choice(["ipsc860", "asciq", "sp2", "qsnet"]),
              help="A machine. The tables of the others stay.")
@click.option("--run", "begins", multiple=True, metavar="TEXT",
              help="Only runs whose names begin with TEXT; the rows of the others stay.")
@click.option("--minutes", type=click.FloatRange(0), help="Begin no run later; rows without one say so.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, metavar="N",
              help="Processes.")
@click.option("--again", is_flag=True, help="Run nothing: draw and write anew from the tables.")
def machines(folder: Path, values: Path, share: float, only: tuple[str, ...], begins: tuple[str, ...],
             minutes: float | None, jobs: int, again: bool) -> None:
    """Measure the machines of four more papers, and write docs/machines.md."""
    available()
    if again:
        write(load(values), folder, values)
        return
    begin = time.monotonic()

    def said(done: int, total: int, name: str) -> None:
        passed = time.monotonic() - begin
        print(f"{done:3} of {total} runs, {passed / 60:4.1f} min, about {passed * (total - done) / done / 60:4.1f} to "
              f"go: {name}", flush=True)

    old = load(values) if (only or begins) and (values / "runs.csv").is_file() else {}
    done = evaluate(share, jobs, said, only=only, begins=begins, minutes=minutes)
    tables = over(old, done)
    tables["made"] = [_made(tables, share, done, [*(f"--only {name}" for name in only),
                                                  *(f"--run '{name}'" for name in begins)])]
    write(tables, folder, values)
    print(f"{folder / 'machines.md'} is written.")


def main() -> None:
    """Exit status 0; 2 and one line on stderr if something failed."""
    try:
        machines(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.ClickException, HypermonError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        print(f"machines: {message}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)


if __name__ == "__main__":
    main()
