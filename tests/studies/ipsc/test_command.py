"""`hypermon ipsc`: the emulated machine on the command line."""

import json
import re
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypermon.hdl.layout import Geometry, Window
from hypermon.host.cli import cli
from hypermon.host.errors import HypermonError
from hypermon.studies.commands.ipsc import _monitor, _show


def said(*words: str) -> dict:
    done = CliRunner().invoke(cli, ["ipsc", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_program_without_a_board():
    raw, soft = (said("run", "life", "--nodes", "4", "--config", config) for config in ("raw", "software"))
    assert raw["logged"] == 0 < soft["logged"]
    assert raw["seconds"] < soft["seconds"] < 1.05 * raw["seconds"]
    assert "equal those of the sequential program" in soft["result"]


def test_values_for_people():
    """Every value has a name, a unit and separators; the table has the values of the JSON."""
    words = ["run", "life", "--nodes", "4", "--config", "software"]
    values = said(*words)
    done = CliRunner().invoke(cli, ["ipsc", *words], catch_exceptions=False)
    shown = dict(re.split(r" {2,}", line.rstrip(), maxsplit=1) for line in done.stdout.splitlines())
    assert shown == {
        "program": "life", "nodes": "4", "recorded by": "software",
        "share of the program": f"{100 * values['share']:.2f} %", "duration": f"{1000 * values['seconds']:.4g} ms",
        "logged": f"{values['logged']:,} bytes", "event frames": "0", "port writes": "0", "items lost": "0",
        "nibbles that share their frame": "0 %", "units of work": str(values["units"]), "result": values["result"],
        "messages": str(values["messages"]), "messages received before sent": str(values["early"])}
    assert values["logged"] > 1000


def test_values_of_a_test_for_people(capsys):
    part = pytest.importorskip("hypermon.studies.ipsc.runs.benchmark")
    done = part.Bandwidth(nodes=2, delay=20, nibbles=10_000, frames=3_416_990, lost=5, merged=0.25, seconds=1.0,
                          whole_rate=3.41e6, drained=None)
    values = {**done.as_dict(), "expected_frames_per_second": 3.5e6, "expected_merged": 0.3}
    _show(values, as_json=False)
    text = capsys.readouterr().out
    for line in (r"delay between nibbles +20 iterations", r"nibbles +10,000", r"event frames +3,416,990",
                 r"frame rate +3\.42 M/s", r"bandwidth +54\.7 MB/s", r"frame rate, calculated +3\.5 M/s",
                 r"nibbles that share their frame +25 %", r"nibbles that share their frame, calculated +30 %"):
        assert re.search(f"^{line} *$", text, re.MULTILINE), line
    assert not re.search(r"_|[0-9]e[+-]|None", text)


def test_options_reach_the_board():
    pytest.importorskip("amaranth")
    monitor = _monitor("hardware", "200", 8e6, False)
    assert (monitor.window, monitor.rate, monitor.stalls(100)) == (Window.NS200, 8_000_000, [])
    assert _monitor("extended", None, 5e6, True).window is Window.CLOCK


def test_a_rate_that_the_bus_does_not_carry_is_said(capsys):
    pytest.importorskip("amaranth")
    _monitor("hardware", None, 18e6, False)
    _monitor("extended", None, 40e6, False)     # its blocks leave over the stream
    assert capsys.readouterr().err == ""
    _monitor("hardware", None, 40e6, False)
    assert re.fullmatch(r"hypermon: --drain-rate 4e\+07: .*18\.8e6 bytes/s.*\n", capsys.readouterr().err)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the virtual board needs g++")
def test_bandwidth_on_the_board(tmp_path, monkeypatch):
    monitors = pytest.importorskip("hypermon.studies.ipsc.runs.monitor")
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
