"""Value change dumps: read back line by line, and by GTKWave's vcd2fst and fst2vcd."""

import io
import os
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypermon.host import cli
from hypermon.host.analysis.losses import LossSpan, outages
from hypermon.host.errors import HypermonError
from hypermon.host.export.vcd import exact_unit, say_limits, unit_text, write_vcd
from hypermon.host.run import Run

from tests.host.external.readers import needs, read_by

Change = tuple[int, str]


def read(text: str) -> dict[tuple[str, str], list[Change]]:
    """What changed of every signal: time in picoseconds, and value; of an event variable, when."""
    found_scale = re.search(r"\$timescale\s+(10*)\s*(ps|ns|us)\s+\$end", text)
    assert found_scale
    unit = int(found_scale[1]) * {"ps": 1, "ns": 1000, "us": 10**6}[found_scale[2]]
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
            assert int(line[1:]) * unit > time
            time = int(line[1:]) * unit
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


def test_a_packer_that_cannot_write_all(losing_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    """GTKWave's program ends with status 0 on a full disk: the file is checked, wherever it was cut."""
    losing_run.decode()
    out = tmp_path / "out.fst"
    arguments = ["export", str(losing_run.path), "--to", "fst", str(out)]
    real = needs("vcd2fst")
    assert cli._run(arguments) == 0
    size = out.stat().st_size
    out.unlink()
    program = tmp_path / "bin" / "vcd2fst"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    for kept in (0, 5, 73, 330, 331, 339, size // 2, size - 1):
        program.write_text(f'#!/bin/sh\n{real} "$@"\ntruncate -s {kept} "$2"\ntouch "$2.hier"\n')
        program.chmod(0o755)
        capsys.readouterr()
        assert cli._run(arguments) == 2, kept
        assert f"hypermon: {out}: vcd2fst could not write all of it" in capsys.readouterr().err
        assert not list(tmp_path.glob("*out.fst*")), kept


def test_a_pipe_or_a_device_is_not_replaced(losing_run: Run, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    """GTKWave's program would put a file in its place."""
    losing_run.decode()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for out in (pipe, tmp_path / "link", "-"):
        assert cli._run(["export", str(losing_run.path), "--to", "fst", str(out)]) == 2
        assert f"hypermon: {out}: vcd2fst writes no pipe and no device" in capsys.readouterr().err
    assert pipe.is_fifo()


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


def test_the_unit_is_the_coarsest_that_is_exact(losing_run: Run, tmp_path: Path) -> None:
    """Of the times of items and of losses, at whatever place the one is that needs it."""
    out = tmp_path / "out.vcd"
    assert cli._run(["export", str(losing_run.path), "--to", "vcd", str(out)]) == 0
    times = [time for changes in read(out.read_text()).values() for time, _ in changes]
    [(number, unit)] = re.findall(r"\$timescale (\d+) (\w+)", out.read_text())
    assert (number, unit) == ("10", "ns")
    assert all(time % 10**4 == 0 for time in times)
    assert any(time % 10**5 for time in times)


@pytest.mark.parametrize(("times", "unit"), [
    ([[]], "1 us"), ([[0, 3 * 10**6], [10**9]], "1 us"), ([[10**6, 12 * 10**5]], "100 ns"), ([[10**7], [5000]], "1 ns"),
    ([[700], [0]], "100 ps"), ([[10], [10**6]], "10 ps"), ([[10**6, 10**6], [10**6 + 1], [5]], "1 ps")])
def test_units(times: list[list[int]], unit: str) -> None:
    assert unit_text(exact_unit(np.array(part, np.int64) for part in times)) == unit


def test_nothing_is_rounded_but_the_end() -> None:
    """A run that has grown since its times were looked at has others."""
    def dump(time_ps: int, lost: list[LossSpan]) -> str:
        file = io.BytesIO()
        rows = pa.record_batch({"time_ps": pa.array([time_ps], pa.int64()), "node": pa.array([0], pa.int16()),
                                "nibble": pa.array([1], pa.uint8())})
        last = write_vcd(file, [rows], [lost], columns=["nibble"], names=["a"], duration_ps=40_001, unit_ps=10_000)
        assert last == 5
        return file.getvalue().decode()

    assert dump(20_000, []).endswith("#2\nb0001 !\n1%\n#5\n")
    for time_ps, lost in ((20_001, []), (20_000, [LossSpan(3, 5, 10_000)])):
        with pytest.raises(HypermonError, match="not all times are whole numbers of 10 ns"):
            dump(time_ps, lost)


def test_gtkwave_is_told_of(losing_run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    say_limits(losing_run, 2**53 - 1, 1)
    assert capsys.readouterr().err == ""
    say_limits(losing_run, 2**53, 10)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "9007199254740992 times 10 ps" in said
    assert "dbl_mant_dig_override" in said
