"""The event mask on the virtual board: what it keeps out is thrown away and counted, the rest is as it would be."""

import json

import numpy as np
import pytest
from hypermon.hdl.layout import EVENT_IDS, EVENT_MASK_ROW, Sink, Window
from hypermon.host.cli import _run
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import finish, read, start, write
from tests.sim.played.test_items import EVENT, NIBBLE, WORD, Node, came, modes, plays


def masked(nodes, geometry, out, window=Window.CLOCK, **options):
    """The run, and how many items were thrown away; each of ``nodes`` has counted them all as accepted."""
    played = plays(nodes)
    with VirtualLink(played, geometry, **options) as link:
        write(link, "WORD_NODES", modes(nodes, WORD))
        write(link, "EVENT_NODES", modes(nodes, EVENT))
        for row in range(EVENT_IDS // EVENT_MASK_ROW):
            ids = range(EVENT_MASK_ROW * row, EVENT_MASK_ROW * (row + 1))
            write(link, "EVENT_MASK", row << 8 | sum(1 << k for k, identity in enumerate(ids) if identity in out))
        start(link, played, window, Sink.EXTENDED)
        run = finish(link, window)
        return run, read(link, "DISCARDED_LOW")


def talk(rng, ids, count, slow=False):
    """So many nodes, some in each mode, with events of few ids; one may be slow, so that its items come late."""
    nodes = [Node([EVENT, WORD, NIBBLE, EVENT][n % 4]) for n in range(count)]
    for n, node in enumerate(nodes):
        for _ in range(30):
            before = len(node.items)
            at = len(node.rows)
            node.item(rng, gap=3000 if slow and n == 3 else 4, after=int(rng.integers(4, 400)))
            if node.mode == EVENT and before < len(node.items):
                # The same event with another id: its second and third nibble.
                clock, nibbles, missing = node.items[-1]
                chosen = int(rng.choice(ids))
                nibbles = bytes([nibbles[0], chosen & 15, chosen >> 4, *nibbles[3:]])
                node.items[-1] = (clock, nibbles, missing)
                for k, nibble in enumerate(nibbles):
                    for r in range(3):
                        time, port = node.rows[at + 3 * k + r]
                        node.rows[at + 3 * k + r] = (time, port & 16 | nibble)
    return nodes


@pytest.mark.parametrize(("kind", "window"), [
    *((kind, window) for window in (Window.CLOCK, Window.NS800) for kind in ("some", "all", "none")),
    ("slow", Window.CLOCK), pytest.param("slow", Window.NS800, marks=pytest.mark.slow)])
def test_keeps_what_it_says(extended, kind, window):
    rng = np.random.default_rng(len(kind) + window)
    ids = [3, 4, 0x80, 0xff, 0x47]
    nodes = talk(rng, ids, extended.nodes, kind == "slow")
    events = [n for n, node in enumerate(nodes) if node.mode == EVENT]
    out = {"some": {3, 0xff, 0x46}, "all": set(ids), "none": set(), "slow": {4, 0x47}}[kind]
    every, nothing = masked(nodes, extended, set(), window)
    run, thrown = masked(nodes, extended, out, window)
    assert nothing == 0
    want = [item for item in sorted((i.window, i.node, i.nibbles, i.missing) for i in every.items)
            if item[1] not in events or item[2][1] | item[2][2] << 4 not in out]
    assert came(run) == want
    assert thrown == len(every.items) - len(run.items)
    assert bool(thrown) == bool(out)
    assert any(item.late for item in run.items) or kind != "slow" or window is not Window.CLOCK
    for n, node in enumerate(run.census):
        gone = sum(item.node == n for item in every.items) - sum(item.node == n for item in run.items)
        lost = sum(record["lost"] for record in run.losses if record["node"] == n)
        assert node["accepted"] == node["delivered"] + gone == len(nodes[n].items) - lost


def test_skipping_changes_nothing(extended):
    nodes = talk(np.random.default_rng(8), [1, 2, 3], extended.nodes)
    for node in nodes:
        node.clock += 500_000
        node.item(np.random.default_rng(9))
    streams = [masked(nodes, extended, {1, 2}, skip=skip)[0].stream for skip in (True, False)]
    assert streams[0] == streams[1]


def test_option(extended, tmp_path, capsys):
    """`hypermon sim --mask events=`: the events that are left, and how many are not, in the figures."""
    nodes = talk(np.random.default_rng(5), [1, 2, 17, 40], 16)
    path = tmp_path / "played.csv"
    rows = sorted((time, n, port) for n, node in enumerate(nodes) for time, port in node.rows)
    path.write_text("time_ns,node,port\n" + "".join(f"{t / 1000},{n},{v}\n" for t, n, v in rows))
    out, table = tmp_path / "run", tmp_path / "events.csv"
    base = ["sim", str(path), "-o", str(out), "--config", "extended"]
    mode = [f"--mode={n}={['nibble', 'word', 'event'][node.mode]}" for n, node in enumerate(nodes) if node.mode]
    assert _run([*base, *mode, "--mask", "events=1,16-31"]) == 0
    assert _run(["export", str(out), "--to", "events", str(table)]) == 0
    ids = [line.split(",")[2] for line in table.read_text().splitlines()[1:]]
    all_ids = [nibbles[1] | nibbles[2] << 4 for node in nodes if node.mode == EVENT for _, nibbles, _ in node.items]
    assert sorted(int(i) for i in ids if i) == sorted(i for i in all_ids if i in (1, 17))
    capsys.readouterr()
    assert _run(["stats", str(out), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["discarded"] == sum(i not in (1, 17) for i in all_ids)
    assert (figures["lost"], figures["trigger"]) == (0, None)
    for arguments, said in (([*mode, "--mask", "events=256"], "events=IDS"),
                            ([*mode, "--mask", "events=5-3"], "events=IDS"),
                            (["--mask", "events=1"], "add --mode event")):
        assert _run([*base[:2], "-o", str(tmp_path / "other"), "--config", "extended", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert said in error
