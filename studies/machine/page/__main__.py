"""``make machines``: the measurements of four more papers, repeated, as a page with figures and tables."""

from pathlib import Path

import click
from hypermon.studies.machine.page.evaluation import evaluate, over
from hypermon.studies.machine.page.figures import draw
from hypermon.studies.machine.page.page import all_rows, page, plain
from hypermon.studies.machine.page.rows import Data
from hypermon.studies.page.command import BUILT, JOBS, cpu_s, progress, run
from hypermon.studies.page.figures import available
from hypermon.studies.page.tables import Row, Tables, load, save

__all__ = ["write"]

#: Of the values in tables.
_DIGITS = 9


def write(tables: Tables, folder: Path, values: Path) -> None:
    """Writes ``machines.md`` and ``machines/``, its figures, into a folder, and the tables into the folder `values`."""
    beside = folder / "machines"
    beside.mkdir(parents=True, exist_ok=True)
    data = Data(tables)
    tables["rows"] = plain(all_rows(data))
    (folder / "machines.md").write_text(page(tables, draw(data, beside)), "utf-8")
    save(tables, values, _DIGITS)


def _made(tables: Tables, share: float, done: Tables, chosen: list[str]) -> Row:
    """How the tables were made: the options, what this evaluation added, and its processor time."""
    runs = done.get("runs", [])
    return {"options": " ".join([f"--share {share:g}", *chosen]), "share": f"{100 * share:g} %",
            "events": sum(row["events"] for row in tables.get("runs", [])), "runs": len(runs),
            "recorded": sum(bool(row["recorded"]) for row in runs),
            "cpu_s": round(cpu_s())}


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
@JOBS
@click.option("--again", is_flag=True, help="Run nothing: draw and write anew from the tables.")
def machines(folder: Path, values: Path, share: float, only: tuple[str, ...], begins: tuple[str, ...],
             minutes: float | None, jobs: int, again: bool) -> None:
    """Measure the machines of four more papers, and write docs/machines.md."""
    available()
    if again:
        write(load(values), folder, values)
        return
    old = load(values) if (only or begins) and (values / "runs.csv").is_file() else {}
    done = evaluate(share, jobs, progress(), only=only, begins=begins, minutes=minutes)
    tables = over(old, done)
    tables["made"] = [_made(tables, share, done, [*(f"--only {name}" for name in only),
                                                  *(f"--run '{name}'" for name in begins)])]
    write(tables, folder, values)
    print(f"{folder / 'machines.md'} is written.")


if __name__ == "__main__":
    run(machines, "machines")
