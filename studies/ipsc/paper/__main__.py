"""``make paper``: sections 5 and 6 of the paper, run again, as a page with figures and tables."""

import time
from pathlib import Path

import click
from hypermon.host.errors import HypermonError
from hypermon.studies.ipsc.paper import figures
from hypermon.studies.ipsc.paper.evaluation import HOWS, evaluate
from hypermon.studies.ipsc.paper.evaluation import add as add_rows
from hypermon.studies.ipsc.paper.page import page
from hypermon.studies.ipsc.programs import PROGRAMS
from hypermon.studies.ipsc.runs.tables import Evaluation
from hypermon.studies.page.command import BUILT, JOBS, cpu_s, progress, run
from hypermon.studies.page.figures import available

__all__ = ["write"]

_FIRST_FIGURE = 10
_WRITES, _VECTORS = 3, 4
#: Approximate number of frames per run on the board, unless requested otherwise.
_FRAMES = 20_000


def write(done: Evaluation, folder: Path, values: Path) -> None:
    """Writes ``paper.md`` and ``paper/``, its figures, into a folder, and the tables into the folder `values`."""
    beside = folder / "paper"
    beside.mkdir(parents=True, exist_ok=True)
    figures.writes(beside / "figure-3.svg", [row for row in done.tables["waves"] if row["figure"] == _WRITES])
    figures.vectors(beside / "figure-4.svg", [row for row in done.tables["waves"] if row["figure"] == _VECTORS])
    figures.bandwidth(beside / "figure-8.svg", done)
    figures.merging(beside / "figure-9.svg", done)
    for number, program in enumerate(PROGRAMS, _FIRST_FIGURE):
        figures.rates(beside / f"figure-{number}.svg", program, done.rates(program))
    figures.volumes(beside / "figure-14.svg", done.volumes())
    figures.wished(beside / "wished.svg", done)
    done.save(values)
    (folder / "paper.md").write_text(page(done), "utf-8")


def _frames(context: click.Context, option: click.Parameter, value: str) -> int | None:
    if value == "all":
        return None
    if not value.isdecimal() or int(value) < 100:
        raise HypermonError(f"--frames {value}: it must be a number of at least 100, or all")
    return int(value)


@click.command()
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("docs"),
              show_default=True, help="Where paper.md and paper/ go.")
@click.option("--tables", "values", type=click.Path(path_type=Path, file_okay=False), default=BUILT / "paper",
              show_default=True, help="Where the tables go as CSV, and where --again and --add read them.")
@click.option("--frames", callback=_frames, default=str(_FRAMES), show_default=True,
              metavar="N",
              help="Approximate number of frames per run on the board; all: the paper's full length, some hours. "
                   "Runs without a board always have the full length.")
@JOBS
@click.option("--add", type=click.Choice(HOWS[2:]), default=None, metavar="RECORDER",
              help="Run the programs with this recorder only, and add them to the tables.")
@click.option("--again", is_flag=True, help="Run nothing: draw and write anew from the tables.")
def paper(folder: Path, values: Path, frames: int | None, jobs: int, add: str | None, again: bool) -> None:
    """Run the evaluation of the paper again, and write docs/paper.md."""
    available()
    if again:
        write(Evaluation.load(values), folder, values)
        return
    begin = time.monotonic()
    earlier = Evaluation.load(values) if add else None
    if add and earlier:
        add_rows(earlier, add, frames, jobs, progress())
        write(earlier, folder, values)
        return
    print("The first run waits for three virtual boards to be built: two minutes, once.", flush=True)
    done = evaluate(frames, jobs, progress())
    command = "make paper" if frames == _FRAMES else f'make paper ARGS="--frames {frames or "all"}"'
    done.tables["made"] = [{"command": command, "frames": frames or "all",
                            "minutes": (time.monotonic() - begin) / 60, "cpu_minutes": cpu_s() / 60}]
    write(done, folder, values)
    print(f"{folder / 'paper.md'} is written.")


if __name__ == "__main__":
    run(paper, "paper")
