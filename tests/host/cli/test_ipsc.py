"""`hypermon ipsc`: the emulated machine on the command line."""

import json
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypermon.hdl.layout import Geometry, Window
from hypermon.host.cli import cli
from hypermon.host.cli.ipsc import _monitor
from hypermon.host.errors import HypermonError


def said(*words: str) -> dict:
    done = CliRunner().invoke(cli, ["ipsc", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_program_without_a_board():
    raw, soft = (said("run", "life", "--nodes", "4", "--config", config) for config in ("raw", "software"))
    assert raw["logged"] == 0 < soft["logged"]
    assert raw["seconds"] < soft["seconds"] < 1.05 * raw["seconds"]
    assert "as sequentially" in soft["result"]


def test_options_reach_the_board():
    pytest.importorskip("amaranth")
    monitor = _monitor("hardware", "200", 8e6, False)
    assert (monitor.window, monitor.rate, monitor.stalls(100)) == (Window.NS200, 8_000_000, [])
    assert _monitor("extended", None, 5e6, True).window is Window.CLOCK


@pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")
def test_bandwidth_on_the_board(tmp_path, monkeypatch):
    monitors = pytest.importorskip("hypermon.sim.ipsc.runs.monitor")
    # The setting of 1990 on a board that other tests have, too.
    monkeypatch.setattr(monitors, "CLASSIC", replace(monitors.CLASSIC, geometry=Geometry()))
    run = tmp_path / "run"
    done = said("bench", "--nodes", "1", "--delay", "0", "--bytes", "400", "-o", str(run))
    assert done["nibbles"] == 1000
    assert done["lost"] == 0
    assert done["frames_per_second"] == pytest.approx(113_000, rel=0.01)
    assert (run / "groups.parquet").is_file()
    with pytest.raises(HypermonError, match="exists"):
        said("bench", "-o", str(run))
