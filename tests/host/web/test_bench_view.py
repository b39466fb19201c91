"""The measurement of the timeline, tests/bench/bench_view.py, on a small run: it asks for what the page asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patience

BENCH = Path(__file__).parents[2] / "bench" / "bench_view.py"


@pytest.mark.parametrize(("options", "said"), [
    (["--zooms", "10"], ["first time: ready", "again: zooms: 10", "again: searches"]),
    (["--open", "1", "--states"], ["states, made in", "new command, cold: least", "server that runs, warm: least"])])
def test_it_measures(options, said):
    done = subprocess.run([sys.executable, BENCH, "--items", "60000", *options], capture_output=True, text=True,
                          timeout=patience(120))
    assert (done.returncode, done.stderr) == (0, "")
    for text in said:
        assert text in done.stdout
