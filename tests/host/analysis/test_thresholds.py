"""The limits that figures depend on: those of docs/thresholds.md are those of the code, and a run names
the ones that it uses.
"""

import random
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from hypermon.host.decode import event_framing
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.recording import clock, pulses
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import AT_RISK_S
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard, FakeLink, random_run

ROOT = Path(__file__).resolve().parents[3]
#: The modules of the host with limits, by the commands that print them.
MODULES = {"stats": ("recording.clock", "recording.pulses", "decode.drift", "decode.event_framing"),
           "compare": ("compare.comparison",), "record": ("analysis.junk", "analysis.rejects"),
           "wirecheck": ("diagnose.wirecheck",)}
#: Modules whose limits are in those of another one.
WITHIN = {"compare.estimates", "compare.measures"}


def listed() -> dict[str, dict[str, float]]:
    """The table of the page: by command, the name and value of each limit."""
    found: dict[str, dict[str, float]] = {}
    for line in (ROOT / "docs/thresholds.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            names, values = re.findall(r"`(\w+)`", cells[1]), re.split(r", (?!\d{3})", cells[2])
            command = re.findall(r"`(\w+)`", cells[0])[0]
            found.setdefault(command, {}).update(zip(
                names, (float(value.replace(",", "")) for value in values), strict=True))
    return found


def test_the_page_lists_what_the_code_uses():
    used = {command: {name: float(value) for module in modules
                      for name, value in import_module(f"hypermon.host.{module}").THRESHOLDS.items()}
            for command, modules in MODULES.items()}
    used["stats"]["at_risk_s"] = AT_RISK_S
    assert listed() == used


def test_no_module_is_forgotten():
    host = ROOT / "host"
    found = {".".join(path.relative_to(host).with_suffix("").parts) for path in host.rglob("*.py")
             if re.search(r"^THRESHOLDS = ", path.read_text(), re.MULTILINE)}
    assert found - WITHIN == {module for modules in MODULES.values() for module in modules}


def test_a_run_names_the_limits_that_it_uses(make_run):
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    assert run.stats()["thresholds"] == {}
    host = WallClock(10**18, 1.5, 400, 9)
    save_clock(run.path, host)
    assert Run(run.path).stats()["thresholds"] == clock.THRESHOLDS
    save_clock(run.path, replace(host, how="pps", pulses={"used": 9, "missing": 0, "doubled": 0, "strayed": 0,
                                                            "holdover_s": 1.0}))
    assert Run(run.path).stats()["thresholds"] == pulses.THRESHOLDS


def test_a_run_that_was_cut_names_what_may_be_missing(make_run):
    run = make_run(FakeBoard(2).start().frames([(1, {0: 1})]).census(time=50), end=False)
    assert run.stats()["thresholds"] == {"at_risk_s": AT_RISK_S}


def test_framed_events_name_their_silence(run_cli, make_run, tmp_path):
    board = FakeBoard(2).start().frames([(k, {0: value}) for k, value in enumerate((1, 7, 0), 1)]).census().stop(99)
    run = make_run(board)
    dictionary = tmp_path / "d.toml"
    dictionary.write_text("[it]\nid = 7\n")
    run_cli("decode", run.path, "--framing", "event", "--dictionary", dictionary)
    figures = Run(run.path).stats()
    assert figures["events_per_name"] == {"it": 1}
    assert figures["thresholds"] == event_framing.THRESHOLDS


def test_a_clock_that_is_gone_is_said(run_cli, tmp_path):
    record(Device(FakeLink(random_run(FakeBoard(2), random.Random(1), 4))), tmp_path / "run", Settings())
    assert run_cli("stats", tmp_path / "run", "--json")[2] == []
    (tmp_path / "run" / "clock.json").unlink()
    assert "clock.json: it was recorded, and is gone" in run_cli("stats", tmp_path / "run", "--json")[2][0]
