"""Exports of a simulated machine of several boards, whose time is tied to UTC."""

import json
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.run import Run
from hypermon.studies.scale.simulate import simulate
from hypermon.studies.scale.workload import Machine

from tests.host.external.trace_processor import query

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def test_boards_are_groups_and_times_are_tied_to_utc(tmp_path: Path) -> None:
    """What Perfetto itself says the parents are, and which UTC a time is."""
    run = tmp_path / "run"
    simulate(Machine(4, 2, 60, "bsp", 3), run, 1, lambda done, events: None)
    out = tmp_path / "run.pftrace"
    assert cli._run(["export", str(run), "--to", "perfetto", str(out)]) == 0
    parents, ties = query(
        out.read_bytes(), tmp_path,
        "select n.name, b.name, r.name from track n join track b on n.parent_id = b.id "
        "join track r on b.parent_id = r.id where n.name like 'node%' order by 1",
        "select ts, clock_id, clock_value from clock_snapshot order by ts, clock_id")
    assert parents == [(f"node {node}", f"board {node // 2}", "run") for node in range(8)]
    utc_ns = Run(run).clock.utc_ns
    assert [tie for tie in ties if tie[0] == 0] == [(0, 1, utc_ns), (0, 6, 0)]
    end_ns = max(tie[0] for tie in ties)
    assert end_ns > 1e7
    assert (end_ns, 1, int(Run(run).clock.utc(end_ns * 1000).astype("int64"))) in ties


def test_a_manifest_names_the_trace_and_its_machine(tmp_path: Path) -> None:
    run = tmp_path / "run"
    simulate(Machine(2, 2, 30, "bsp", 3), run, 1, lambda done, events: None)
    out = tmp_path / "perfetto_manifest.json"
    assert cli._run(["export", str(run), "--to", "manifest", str(out)]) == 0
    assert out.read_bytes().replace(b" ", b"").replace(b"\n", b"").startswith(b'{"perfetto_manifest"')
    assert json.loads(out.read_bytes()) == {"perfetto_manifest": {"version": 1, "files": [
        {"path": "run.pftrace", "machine": {"name": "hypermon run"}}]}}
