"""Value change dumps: read back line by line, and by GTKWave's vcd2fst and fst2vcd."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.run import Run

from tests.host.external.readers import needs, read_by

Change = tuple[int, str]


def read(text: str) -> dict[tuple[str, str], list[Change]]:
    """What changed of every signal: time and value; of an event variable, when."""
    names: dict[str, tuple[str, str]] = {}
    scopes: list[str] = []
    found: dict[tuple[str, str], list[Change]] = defaultdict(list)
    time, body = -1, False
    for line in text.splitlines():
        words = line.split()
        if not words or (words[0].startswith("$") and body):
            continue
        if words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            names[words[3]] = (scopes[-1], words[4].partition("[")[0])
        elif words[0] == "$enddefinitions":
            body = True
        elif not body:
            continue
        elif line[0] == "#":
            assert int(line[1:]) > time
            time = int(line[1:])
        elif line[0] == "b":
            found[names[words[1]]].append((time, words[0][1:].lstrip("0") or "0"))
        elif line[0] == "1":
            found[names[line[1:]]].append((time, "1"))
    found["", "end"] = [(time, "")]
    return found


def wanted_losses(run: Run, node: int) -> list[Change]:
    changes = [(0, "0")]
    for outage in outages(run.loss(), run.info.nodes)[node]:
        changes += [(max(outage.from_ps, 0), f"{outage.lost:b}"), (max(outage.to_ps, 0), "0")]
    return changes


def as_bits(row: dict[str, object]) -> dict[str, str]:
    bits = {name: f"{row[name]:b}" for name in ("nibble", "word", "event") if row.get(name) is not None}
    if row.get("payload") is not None:
        bits["payload"] = f"{int.from_bytes(row['payload'], 'little'):b}"
    return bits


def check(run: Run, found: dict[tuple[str, str], list[Change]]) -> None:
    for node in range(run.info.nodes):
        scope = f"node_{node}"
        wanted: dict[str, list[Change]] = defaultdict(list)
        for row in run.events(nodes=[node]).to_pylist():
            time = max(row["time_ps"], 0)
            for name, bits in as_bits(row).items():
                wanted[name].append((time, bits))
            wanted["item"].append((time, "1"))
        for name, changes in wanted.items():
            got = [change for change in found[scope, name] if "x" not in change[1]]
            assert got == changes, (scope, name)
        assert found[scope, "lost"] == wanted_losses(run, node)


@pytest.mark.parametrize("kind", ["losing_run", "mixed_run"])
def test_dump(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    run = request.getfixturevalue(kind)
    out = tmp_path / "out.vcd"
    assert cli._run(["export", str(run.path), "--to", "vcd", str(out)]) == 0
    check(run, read(out.read_text()))
    # An independent reader, which writes another format; and what reads that one.
    read_by("vcd2fst", out, tmp_path / "out.fst")
    check(run, read(read_by("fst2vcd", tmp_path / "out.fst")))
    # And packed as it is written.
    needs("vcd2fst")
    assert cli._run(["export", str(run.path), "--to", "fst", str(tmp_path / "own.fst")]) == 0
    check(run, read(read_by("fst2vcd", tmp_path / "own.fst")))


def test_what_does_not_pack(losing_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                            capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says why, and nothing half-written."""
    losing_run.decode()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    arguments = ["export", str(losing_run.path), "--to", "fst"]
    assert cli._run([*arguments, str(tmp_path / "out.fst")]) == 2
    assert "apt-get install gtkwave" in capsys.readouterr().err
    assert cli._run([*arguments, "-"]) == 2
    program = tmp_path / "bin" / "vcd2fst"
    program.write_text("#!/bin/sh\necho no room >&2\nexit 7\n")
    program.chmod(0o755)
    capsys.readouterr()
    assert cli._run([*arguments, str(tmp_path / "out.fst")]) == 2
    assert "ended with status 7 no room" in capsys.readouterr().err
    assert not list(tmp_path.glob("*out.fst*"))


def test_selection(losing_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.vcd"
    assert cli._run(["export", str(losing_run.path), "--to", "vcd", str(out), "--nodes", "7", "--from-ms", "5",
                     "--to-ms", "50"]) == 0
    found = read(out.read_text())
    rows = losing_run.events(nodes=[7], from_ps=5 * 10**9, to_ps=50 * 10**9).to_pylist()
    assert [time for time, _ in found["node_7", "item"]] == [row["time_ps"] for row in rows]
    assert found["node_6", "item"] == []
    assert len(found["node_7", "lost"]) == 3
    assert found["", "end"] == [(50 * 10**9, "")]
