"""A plugin for pytest: recordings in tests, judged by rules (docs/check.md).

>>> def test_lock(recording):
...     with recording("locks.csv") as run:
...         pass
...     run.check("rules.toml")

The fixture records the board of ``--hypermon-board`` while the ``with`` block runs. The virtual board ``sim:``, the
default, plays a stimulus at the end of the block instead. The RUN of a test that failed is kept, and the report names
it.
"""

import shutil
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .recording import Recording, RulesNotMetError, Stimulus

_FAILED = pytest.StashKey[bool]()
_RUNS = pytest.StashKey[list[Path]]()


class _TestedRecording(Recording):
    """A recording whose test fails, without a traceback of this package, unless all rules pass."""

    def check(self, rules: str | Path, *, undecided: bool = False) -> dict[str, Any]:
        """Judges the RUN; see :meth:`.Recording.check`."""
        __tracebackhide__ = True
        try:
            return super().check(rules, undecided=undecided)
        except RulesNotMetError as error:
            pytest.fail(str(error), pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--hypermon-board``."""
    group = parser.getgroup("hypermon", "recordings of boards")
    group.addoption("--hypermon-board", default="sim:", metavar="BOARD",
                    help="the board that the fixture `recording` records; sim: is the virtual board, which plays the "
                         "stimulus of each test (default: %(default)s)")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Notes whether a test failed, and names the RUNs that are kept."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.stash[_FAILED] = True
        kept = [str(path) for path in item.stash.get(_RUNS, []) if path.exists()]
        if kept:
            report.sections.append(("hypermon", "\n".join(f"kept: {path}" for path in kept)))


@pytest.fixture
def recording(request: pytest.FixtureRequest,
              tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[..., Recording], None, None]:
    """``recording(stimulus, options=[...], dictionary=FILE, framing=True)``: records a ``with`` block."""
    folder = tmp_path_factory.mktemp("hypermon")
    runs: list[Path] = request.node.stash.setdefault(_RUNS, [])

    def make(stimulus: Stimulus | None = None, *, options: Sequence[str] = (), dictionary: str | Path | None = None,
             framing: bool = False) -> Recording:
        path = folder / f"run-{len(runs)}"
        board = request.config.getoption("--hypermon-board")
        made = _TestedRecording(board, path, stimulus, options, dictionary, framing)
        runs.append(path)
        return made

    yield make
    if not request.node.stash.get(_FAILED, False):
        shutil.rmtree(folder, ignore_errors=True)
