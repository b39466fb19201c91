"""A plugin of pytest that records which functions of the host each test calls, and how long the test takes.

Records are lines of JSON, appended to the file that ``HYPERMON_REACHED`` names: a call is ``[test, file, function]``,
the result of a test ``[test, seconds, passed]``. Processes that a test starts are watched too (sitecustomize.py), and
the test that started them is in their environment.
"""

import json
import os
import sys
import threading

#: What precedes a file's name in the path that Python knows it by.
_HOST = f"{os.sep}hypermon{os.sep}host{os.sep}"


class Watch:
    """Appends to the record; a function is told once a test and process."""

    def __init__(self, record: str):
        # Every write of a short line to such a file is whole, whichever process does it.
        self.file = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.test, self.seen, self.seconds, self.passed = "", set(), 0.0, True

    def write(self, *values) -> None:
        os.write(self.file, (json.dumps(values) + "\n").encode())

    def called(self, frame, event, arg) -> None:
        code = frame.f_code
        if code not in self.seen:
            self.seen.add(code)
            _, found, file = code.co_filename.rpartition(_HOST)
            if found:
                self.write(self.test, file, code.co_qualname)

    def begin(self, test: str) -> None:
        self.test, self.seen, self.seconds, self.passed = test, set(), 0.0, True


def watch() -> Watch:
    """Watches this process, and says for which test."""
    found = Watch(os.environ["HYPERMON_REACHED"])
    found.test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    threading.settrace(found.called)
    sys.settrace(found.called)
    return found


_watch: Watch | None = None


def pytest_configure(config):
    global _watch
    _watch = watch()


def pytest_runtest_logstart(nodeid, location):
    _watch.begin(nodeid)
    sys.settrace(_watch.called)


def pytest_runtest_logreport(report):
    _watch.seconds += report.duration
    _watch.passed = _watch.passed and not report.failed


def pytest_runtest_logfinish(nodeid, location):
    _watch.write(nodeid, round(_watch.seconds, 3), _watch.passed)
