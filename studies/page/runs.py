"""Runs of an evaluation, in parallel processes."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

__all__ = ["Said", "in_parallel"]

_Result = TypeVar("_Result")
#: Is called with the number of completed runs, the number of all runs, and the name of the last one.
Said = Callable[[int, int, str], None]


def in_parallel(tasks: Mapping[str, Callable[[], _Result | None]], jobs: int, said: Said) -> Iterator[
        tuple[str, _Result]]:
    """The name and the result of each task, as they complete.

    Parameters
    ----------
    tasks : by name; each is sent to a process. Its result is None if it was not run.
    jobs : processes.
    said : called after each task that was run.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(task): name for name, task in tasks.items()}
        for count, future in enumerate(as_completed(running), 1):
            result = future.result()
            if result is not None:
                yield running[future], result
                said(count, len(running), running[future])
