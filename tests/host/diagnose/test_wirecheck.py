"""The wire check: mixed-up ports by computation, and on the virtual board what a real program writes."""

import json
import random
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypermon.hdl.layout import Geometry
from hypermon.host.cli import cli
from hypermon.host.device.device import Device
from hypermon.host.diagnose.wirecheck import WALK, _explanations, _patterns, check_wires, judge
from hypermon.sim.stimulus.stimulus import load
from hypermon.sim.virtual.link import VirtualLink

from tests.patience import patience

NODE = Path(__file__).parents[3] / "node"
#: Who shows what: wire i of the board shows wire MIX[i] of the node, or a level.
LOW, HIGH = "low", "high"


def board_sees(mix, both_edges, rounds=20):
    """Port values of a mixed-up port, a write each: the check of the checker, written another way."""
    value, writes = 0, []
    for nibble in WALK * rounds:
        for strobe in ((0, 1) if not both_edges else (1 - (value >> 4),)):
            value = nibble | strobe << 4
            shown = {wire: value >> wire & 1 for wire in range(5)} | {LOW: 0, HIGH: 1}
            writes.append(sum(shown[wire] << place for place, wire in enumerate(mix)))
    return writes


def nibbles(writes, both_edges):
    taken = []
    for before, now in pairwise(writes):
        if both_edges and (before ^ now) & 16:
            taken.append(now & 15)
        elif not both_edges and now & 16 and not before & 16:
            taken.append(before & 15)
    return taken


RIGHT = (0, 1, 2, 3, 4)
CASES = [
    (RIGHT, "every wire is correct"), ((1, 0, 2, 3, 4), "data0 and data1 are swapped"),
    ((3, 2, 1, 0, 4), "data0 and data3 are swapped, data1 and data2 are swapped"),
    ((0, 1, 2, LOW, 4), "data3 is always 0 (not connected?)"),
    ((0, HIGH, 2, 3, 4), "data1 is always 1 (not connected, on a board with pull-ups?)"),
    ((0, 0, 2, 3, 4), "data1 shows the node's data0"), ((0, 1, 2, 3, LOW), "nothing: strobe not connected"),
    ((0, 1, 4, 3, 2), "data2 and strobe are swapped"),
]


@pytest.mark.parametrize("both_edges", [False, True])
@pytest.mark.parametrize(("mix", "says"), CASES, ids=[says for _, says in CASES])
def test_mixed_up_wires(mix, says, both_edges):
    ok, seen = judge(nibbles(board_sees(mix, both_edges, rounds=80), both_edges), both_edges)
    assert ok == (mix == RIGHT)
    assert says in seen


def test_too_few_and_something_else():
    assert "a verdict needs" in judge(WALK, False)[1]
    assert "not the wire check's pattern" in judge([(7 * k + k // 5) % 16 for k in range(200)], False)[1]


def test_some_losses_do_not_matter():
    came = list(WALK * 100)
    del came[100:103]
    assert judge(came, False)[0]


@pytest.mark.parametrize("both_edges", [False, True])
@pytest.mark.parametrize(("mix", "says"), CASES, ids=[says for _, says in CASES])
def test_a_slow_link_brings_pieces(mix, says, both_edges):
    """Nine nibbles at a time, with any number lost between; where those were lost is known."""
    came, rng = nibbles(board_sees(mix, both_edges, rounds=800), both_edges), random.Random(1)
    at, kept, cuts = 0, [], []
    while at < len(came):
        kept += came[at:at + 9]
        cuts.append(len(kept))
        at += 9 + rng.randrange(50)
    ok, seen = judge(kept, both_edges, [cut for cut in cuts if cut < len(kept)])
    assert ok == (mix == RIGHT)
    assert says in seen


def test_pieces_that_are_too_short_are_no_verdict():
    came = list(WALK * 100)
    assert "runs of 6 in a row" in judge(came, False, range(0, len(came), 5))[1]


@pytest.mark.parametrize("both_edges", [False, True])
def test_each_pattern_has_pieces_of_its_own(both_edges):
    assert len(_patterns(both_edges)) == len([pattern for pattern in _explanations(both_edges) if pattern])


@pytest.mark.parametrize("apart_ns", [100, 400])
def test_a_fast_node(tmp_path, apart_ns):
    """Faster than windows of 800 ns, as any of them is."""
    played = stimulus(tmp_path / "s.csv", {3: board_sees(RIGHT, False, rounds=1000)}, apart_ns // 2)
    done = wirecheck("-b", f"sim:{played}", "--json", "--seconds", "0.01", "--nodes", "3")
    assert json.loads(done.stdout)["seen"] == "every wire is correct"


def test_four_fast_nodes_at_a_serial_port(tmp_path):
    """Of 20 million nibbles a second 300 kB/s bring a thousandth."""
    walk = board_sees(RIGHT, False, rounds=1000)
    played = stimulus(tmp_path / "s.csv", dict.fromkeys(range(4), walk), 100)
    with VirtualLink(load([played]), Geometry(), drain_rate=300_000) as link:
        verdicts = check_wires(Device(link), seconds=0.001, both_edges=False)
    assert [verdict.seen for verdict in verdicts[:4]] == ["every wire is correct"] * 4
    assert max(verdict.nibbles for verdict in verdicts) < len(walk) // 4


def test_a_loose_wire_is_not_right():
    rng = random.Random(1)
    came = [value & ~1 if rng.random() < 0.1 else value for value in WALK * 100]
    ok, seen = judge(came, False)
    assert not ok
    assert re.search(r"^every wire is correct, but \d+% of the nibbles do not fit: a loose", seen)


def test_a_node_that_does_something_else_has_no_dead_wires():
    rng = random.Random(1)
    came = [0 if rng.random() < 0.93 else rng.randrange(16) for _ in range(1000)]
    assert "not the wire check's pattern" in judge(came, False)[1]


def stimulus(path, ports, apart_ns=2_000):
    rows = [(1_000 + apart_ns * k, node, value) for node, writes in ports.items() for k, value in enumerate(writes)]
    path.write_text("time_ns,node,port\n" + "".join(f"{t},{n},{v}\n" for t, n, v in sorted(rows)))
    return path


def wirecheck(*arguments):
    return CliRunner().invoke(cli, ["wirecheck", *arguments], standalone_mode=False)


def test_command(tmp_path):
    played = stimulus(tmp_path / "s.csv", {node: board_sees(mix, False) for node, (mix, _) in enumerate(CASES[:4])})
    done = wirecheck("-b", f"sim:{played}", "--json", "--seconds", "0.01", "--nodes", "0,1,2,3")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["seen"] for line in lines] == [says for _, says in CASES[:4]]
    assert [line["ok"] for line in lines] == [True, False, False, False]
    assert done.return_value == 1
    assert wirecheck("-b", f"sim:{played}", "--seconds", "0.01", "--nodes", "0").return_value == 0


@pytest.mark.parametrize(("nodes", "reason"), [("0,x", "not a list of numbers"), ("16", "nodes 0 to 15, not 16")])
def test_wrong_nodes(nodes, reason):
    assert reason in str(wirecheck("--nodes", nodes).exception)


@pytest.mark.parametrize("edges", [1, 2])
def test_the_node_library_walks_as_the_check_expects(tmp_path, edges):
    (tmp_path / "walk.c").write_text("""
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"
int main(int argc, char **argv)
{
    hm_port port, *ports[1] = {&port};
    uint64_t start = hm_virtual_now();
    FILE *out = fopen(argv[argc - 1], "w");
    int round;
    if (out == NULL || hm_virtual_open(&port, 10000) != 0)
        return 1;
    for (round = 0; round < 40; round++)
        hm_wire_check(&port);
    return hm_virtual_save(out, ports, 1, start) != 0 || fclose(out) != 0;
}
""")
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", f"-DHM_EDGES={edges}", f"-I{NODE}", "walk.c", "-o", "walk",
                    "-pthread"], cwd=tmp_path, check=True, timeout=patience(60))
    subprocess.run(["./walk", "out.csv"], cwd=tmp_path, check=True, timeout=patience(60))
    writes = [0] + [int(line.split(",")[2]) for line in (tmp_path / "out.csv").read_text().splitlines()[1:]
                    if line[0].isdigit()]
    assert judge(nibbles(writes, edges == 2), edges == 2) == (True, "every wire is correct")
