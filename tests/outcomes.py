"""Writes why tests failed or were skipped to a file, one JSON object per line: ``pytest --outcomes FILE``.

Continuous integration reads the file: it runs a test that failed once more, and forgives a *wait* that was too long,
never *data* that were wrong. What was raised tells the two apart:

- ``wait``: TimeoutError, from :mod:`tests.patience`, a socket or a page; ``subprocess.TimeoutExpired``; an address in
  use, or a connection that was refused, because a process did not start in time.
  A test that hangs is interrupted with a TimeoutError, too.
- ``data``: everything else. An AssertionError is always ``data``, also if it compares two times: a test that waits
  raises TimeoutError instead.

Each object has ``test``, ``kind``, ``error`` (one line), ``seed`` (text, empty if the test has none) and ``text`` (the
whole report). A skipped test has the kind ``skip``, and its reason as ``error``. The last line has the kind ``end``;
its ``error`` is pytest's exit status, or why it stopped before its last test. Without this line, pytest was ended.
"""

import errno
import json
import re
from pathlib import Path

import pytest

__all__ = ["Outcomes", "kind_of"]

_IN_USE = (errno.EADDRINUSE, errno.ECONNREFUSED)
_SEED = re.compile(r"HYPERMON_SEED=(\d+)|--hypothesis-seed=(\d+)|\bseed[ =](\d+)")


def kind_of(error: BaseException) -> str:
    """``wait`` or ``data``: whether a test that raised this may be forgiven. A cause that was named counts, too."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, AssertionError):
            return "data"
        # Playwright's TimeoutError is a class of its own, and so is subprocess's TimeoutExpired.
        named = type(seen).__name__ in ("TimeoutError", "TimeoutExpired")
        if named or (isinstance(seen, OSError) and seen.errno in _IN_USE) or isinstance(seen, TimeoutError):
            return "wait"
        seen = seen.__cause__
    return "data"


class Outcomes:
    """Plugin of the process that reports; :func:`note_kind` is called in the one that runs the test."""

    def __init__(self, file: Path):
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._write(report.nodeid, "skip", reason.removeprefix("Skipped: "), "")
        if report.failed:
            text = str(report.longrepr)
            crash = getattr(report.longrepr, "reprcrash", None)
            # A process that ended in the middle of a test has no kind: that is no wait.
            kind = dict(report.user_properties).get("kind", "data")
            self._write(report.nodeid, str(kind), crash.message if crash else text, text)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid, "data", str(report.longrepr).strip().splitlines()[-1], str(report.longrepr))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        stopped = session.shouldfail or session.shouldstop
        self._write("", "end", str(stopped or int(exitstatus)), "")

    def _write(self, test: str, kind: str, error: str, text: str) -> None:
        seed = _SEED.search(text)
        row = {"test": test, "kind": kind, "error": (error.strip().splitlines() or [""])[0][:500],
               "seed": next(filter(None, seed.groups()), "") if seed else "", "text": text[-20_000:]}
        with self._file.open("a") as out:
            out.write(json.dumps(row) + "\n")


def note_kind(item: pytest.Item, call: pytest.CallInfo) -> None:
    """Of a test that raised, says in its report which kind of failure this is."""
    if call.excinfo is not None and not isinstance(call.excinfo.value, pytest.skip.Exception):
        item.user_properties.append(("kind", kind_of(call.excinfo.value)))
