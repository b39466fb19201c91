"""Runs tests that failed once more, each alone, and says which were unstable.

`tests/outcomes.py` wrote the file that says what failed and how. A test is *unstable* if it failed because a wait took
too long, and passes alone, in one process, with the same seed. A test of data that fails once is not forgiven.
"""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Retried", "retry"]

#: With more failures than this, none is run again: that is no chance.
_MOST = 12
#: Seconds for one test alone.
_LIMIT_S = 900


@dataclass
class Retried:
    """``notes``: lines for the table. ``unstable``: a line for each test that failed once and is forgiven.
    ``forgiven``: whether every failure is one of these, and there is at least one."""

    notes: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    forgiven: bool = False


def retry(outcomes: Path, title: str, root: Path) -> Retried:
    """Runs every failed test of ``outcomes`` once more.

    Parameters
    ----------
    outcomes : JSON lines of `tests/outcomes.py`.
    title : the step's, for the notes.
    root : the checkout. Logs of the second runs go to the folder of ``outcomes``.
    """
    rows = [json.loads(line) for line in outcomes.read_text().splitlines()]
    skipped = Counter(row["error"] for row in rows if row["kind"] == "skip")
    retried = Retried(notes=[f"skipped: {count}, {reason}" for reason, count in skipped.most_common(6)])
    failures = {row["test"]: row for row in rows if row["kind"] in ("wait", "data")}
    # Of a run that was cut off nobody knows which tests would have failed.
    complete = any(row["kind"] == "end" and row["error"] == "1" for row in rows)
    if failures and not complete:
        retried.notes.append("failed: pytest did not run all tests")
    if len(failures) > _MOST:
        retried.notes += [f"failed: {len(failures)} tests of {title!r}, too many to run again; the first:"]
        failures = dict(list(failures.items())[:3])
        retried.notes += [_told(row) for row in failures.values()]
        return retried
    left = 0
    for number, row in enumerate(failures.values(), 1):
        alone = outcomes.with_name(f"{outcomes.stem}-again-{number}.log")
        passes = _passes(row["test"], alone, root)
        if row["kind"] == "wait" and passes:
            retried.unstable.append(f"{_told(row)}; passed alone: {alone.relative_to(root)}")
            continue
        left += 1
        again = "passes alone, but data that were wrong once are not forgiven" if passes else "fails again"
        retried.notes += [f"failed: {_told(row)}", f"        {again}: {alone.relative_to(root)}"]
    retried.forgiven = bool(failures) and complete and left == 0
    return retried


def _told(row: dict[str, str]) -> str:
    seed = f" (seed {row['seed']})" if row["seed"] else ""
    return f"{row['test']}{seed}: {row['error']}"


def _passes(test: str, log: Path, root: Path) -> bool:
    """Runs one test in one process."""
    command = [root / ".venv/bin/python", "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "-q",
               "--numprocesses=0", test]
    with log.open("w") as out:
        try:
            done = subprocess.run(command, cwd=root, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                  timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            out.write(f"ended after {_LIMIT_S} s\n")
            return False
    return done.returncode == 0
