"""The command that makes a page: its options, its progress, its exit status."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import click
from hypermon.host.errors import HypermonError
from hypermon.studies.page.runs import Said

__all__ = ["BUILT", "JOBS", "cpu_s", "progress", "run"]

#: Where the evaluations put their tables: a build product, which a release contains.
BUILT = Path(".build/studies")
JOBS = click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, metavar="N",
                    help="Processes.")


def cpu_s() -> float:
    """Processor time of this process and of the child processes that it has waited for."""
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def progress() -> Said:
    """Prints how many runs are completed, and about how long the others take; the time begins now."""
    begin = time.monotonic()

    def said(done: int, total: int, name: str) -> None:
        passed = (time.monotonic() - begin) / 60
        print(f"{done:3} of {total} runs, {passed:4.1f} min, about {passed * (total - done) / done:4.1f} to go: {name}",
              flush=True)

    return said


def run(command: Callable[..., None], name: str) -> None:
    """Runs a command of click. Exit status 0; 2 and one line on stderr if something failed; 130 if interrupted."""
    try:
        command(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.ClickException, HypermonError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        print(f"{name}: {message}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
