"""Runs in parallel: each result once, with its name, and what is said of it."""

import time
from functools import partial

from hypermon.studies.page.runs import in_parallel


def twice(number, waits_s):
    time.sleep(waits_s)
    return None if number == 2 else 2 * number


def test_each_result_has_its_name():
    """In the order in which they complete; nothing is said of a run that was left out."""
    said = []
    tasks = {f"run {number}": partial(twice, number, 0.5 * (number == 1)) for number in (1, 2, 3)}
    found = list(in_parallel(tasks, 2, lambda *of: said.append(of)))
    assert sorted(found) == [("run 1", 2), ("run 3", 6)]
    assert [(total, name) for _, total, name in said] == [(3, name) for name, _ in found]
