"""The line about items that make no sense: `hypermon sim`, `record` and `decode` with wrong settings and right ones."""

import json
import random
import re

import pytest
from hypermon.host import cli
from hypermon.host.analysis.junk import THRESHOLDS, Junk, find_junk
from hypermon.host.run import Run

from tests.host.fake_board import FakeBoard

#: As the ids of a small program: one fixed length each, and one that is open.
DICTIONARY = """
[begun]
id = 0x21
fields = { task = "u8" }
[done]
id = 0x22
fields = { task = "u8", took = "u16" }
[name]
id = 0x23
fields = { text = "string" }
"""
PAYLOADS = {0x21: 1, 0x22: 3}
#: Of all commands here: a board of four nodes.
BOARD = ["--config", "extended", "--nodes", "4"]


def events(seed: int, count: int) -> list[tuple[int, bytes]]:
    rng = random.Random(seed)
    kinds = [rng.choice([0x21, 0x22, 0x23]) for _ in range(count)]
    return [(kind, rng.randbytes(PAYLOADS.get(kind, rng.randrange(15)))) for kind in kinds]


def nibbles(event: int, payload: bytes) -> list[int]:
    values = [event, *payload]
    return [len(values), *(n for byte in values for n in (byte & 15, byte >> 4))]


def rows(items, *, edges=1, wires=lambda value: value, node=0, gap_us=2, together=False):
    """Port writes: with one edge per nibble the strobe falls with the new data, and rises 30 ns later; with two, each
    change of the strobe is a write. ``together``: the strobe rises with the data.
    """
    time, strobe = 1000, 0
    for item in items:
        for value in map(wires, nibbles(*item)):
            if edges == 2:
                strobe ^= 16
                yield time, node, strobe | value
            else:
                yield time, node, value if not together else 16 | value
                yield time + 30, node, 16 | value if not together else value
            time += 100
        time += gap_us * 1000


@pytest.fixture
def go(tools, tmp_path, capsys):
    """``go(rows, options..., dictionary=True, status=0)``: lines of stderr of `sim` and `decode` about its items."""
    (tmp_path / "d.toml").write_text(DICTIONARY)

    def run(written, *options, dictionary=True, decode=True, board=BOARD):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        path.with_suffix(".csv").write_text("time_ns,node,port\n" + "".join(f"{t},{n},{p}\n" for t, n, p in written))
        kept = ["--dictionary", str(tmp_path / "d.toml")] if dictionary else []
        assert cli._run(["sim", str(path.with_suffix(".csv")), "-o", str(path), *board, *options, *kept]) == 0
        assert not decode or cli._run(["decode", str(path), *kept]) == 0
        return [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines() if "make no sense" in line]

    return run


def reverse(value: int) -> int:
    return int(f"{value:04b}"[::-1], 2)


@pytest.mark.parametrize(("how", "options", "advice"), [
    ({"edges": 2}, ["--mode", "event"], "add --edge both; then"),
    ({"together": True, "gap_us": 11_000}, ["--mode", "event"], "add --sample after; then"),
    ({"wires": reverse}, ["--mode", "event"], "reverse the order of the data wires of node 0; then"),
    ({"gap_us": 11_000}, ["--mode", "word"], "add --mode event; then"),
], ids=["edge", "sample", "wires", "mode"])
def test_a_wrong_setting(go, how, options, advice):
    """It is said with the right one, by `sim`; `decode` does not know the stimulus. The right one says nothing."""
    sim, decode = go(rows(events(1, 40), **how), *options)
    assert "of the first " in sim
    assert "reported from 25 % on): " in sim
    assert f": {advice}" in sim
    assert decode.endswith(": likely a wrong --edge, --sample or --mode, or data wires in another order, or the "
                           "dictionary of another program")
    right = advice.removeprefix("add ").partition(";")[0].split()
    if right[0].startswith("--"):
        assert go(rows(events(1, 40), **how), "--mode", "event", *right) == []


def test_one_of_two_nodes(go):
    written = sorted([*rows(events(1, 40)), *rows(events(2, 40), edges=2, node=3)])
    [line] = go(written, "--mode", "event", decode=False)
    assert ": add --edge 3=both; then 8" in line
    assert go(written, "--mode", "event", "--edge", "3=both") == []


def loose(value: int) -> int:
    """The board pulls a wire down that is loose, here data1."""
    return value & ~2


def test_a_loose_wire_of_one_node_of_many(go, tmp_path, capsys):
    """Its events are a small part of all: the node is named by `sim` and `decode`, with how many."""
    written = sorted(row for node in range(16)
                     for row in rows(events(node, 40), node=node, wires=loose if node == 3 else lambda value: value))
    board = ["--config", "extended", "--nodes", "16"]
    sim, decode = go(written, "--mode", "event", board=board)
    for line in (sim, decode):
        found = re.match(r"node 3: ([\d,]+) of its first ([\d,]+) items make no sense \(.+\); of the other 15 nodes: "
                         r"0 of 600 \(reported from 25 % on\): likely a data wire of that node that is loose", line)
        assert found, line
        assert int(found[1]) < 0.25 * 640       # of all nodes' items: below the limit
    [path] = [each for each in tmp_path.iterdir() if (each / "decode.json").exists()]
    assert cli._run(["decode", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r" events named, .+: \d+ of \d+ events of node 3\n", out), out
    assert go(sorted(row for node in range(16) for row in rows(events(node, 40), node=node)), "--mode", "event",
              board=board) == []


def test_without_a_dictionary_aborted_items_count(go):
    """With silences in which half an item is left waiting."""
    written = list(rows(events(1, 20), edges=2, gap_us=11_000))
    sim, decode = go(written, "--mode", "event", dictionary=False)
    assert " aborted; reported from 25 % on): add --edge both; then 20 of the first 20 items" in sim
    assert decode.endswith(": likely a wrong --edge, --sample or --mode, or data wires in another order")
    assert go(written, "--mode", "event", "--edge", "both", dictionary=False) == []


def test_nibbles_are_not_judged(go):
    assert go(rows(events(1, 40), edges=2)) == []


def test_record_says_it_too(tools, tmp_path, capfd):
    (tmp_path / "d.toml").write_text(DICTIONARY)
    (tmp_path / "p.csv").write_text("time_ns,node,port\n" + "".join(
        f"{t},{n},{p}\n" for t, n, p in rows(events(3, 40), edges=2)))
    words = ["record", "-b", f"sim:{tmp_path / 'p.csv'}", "--seconds", "0.001", "--config", "extended", "--mode",
             "event", "--dictionary", str(tmp_path / "d.toml"), "--json"]
    assert cli._run([*words, "-o", str(tmp_path / "wrong")]) == 0
    out, err = capfd.readouterr()
    assert ": add --edge both; then 40 of the first 40 items" in err
    junk = json.loads(out.splitlines()[-1])["junk"]
    assert junk["high"]
    assert 4 <= junk["unknown"] + junk["lengths"] + junk["aborted"] <= junk["items"]
    assert cli._run([*words, "-o", str(tmp_path / "right"), "--edge", "both"]) == 0
    out, err = capfd.readouterr()
    assert "make no sense" not in err
    last = json.loads(out.splitlines()[-1])
    assert last["rejecting"]["nodes"] == []
    assert last["junk"] == {"items": 40, "unknown": 0, "lengths": 0, "aborted": 0, "high": False,
                            "bad_nodes": [], "thresholds": THRESHOLDS}


@pytest.mark.parametrize(("junk", "high"), [
    (Junk(0), False), (Junk(3, 3), False), (Junk(4, 4), True), (Junk(16, 1, 1, 2), True), (Junk(17, 4), False)])
def test_the_threshold(junk, high):
    assert junk.high is high


def test_good_runs_say_nothing(tmp_path):
    """Two hundred random ones: nibbles of four nodes, framed by the host."""
    for seed in range(200):
        rng = random.Random(seed)
        board, clock, frames = FakeBoard(nodes=4).start(), 10, []
        for event in events(seed, rng.randrange(1, 40)):
            node = rng.randrange(4)
            for value in nibbles(*event):
                frames.append((clock, {node: value}))
                clock += rng.randrange(1, 50)
        run = recorded(board.frames(frames).stop(clock + 100), tmp_path / str(seed))
        (run.path / "dictionary.toml").write_text(DICTIONARY)
        assert cli._run(["decode", str(run.path), "--framing", "event"]) == 0
        junk = find_junk(Run(run.path), decoded=True)
        assert junk is not None, seed
        assert (junk.count, junk.high) == (0, False), (seed, junk)


def recorded(board: FakeBoard, path) -> Run:
    from hypermon.hdl.layout import FRAME_WINDOW, LATENCY
    from hypermon.host.recording.info import RunInfo
    from hypermon.host.recording.writer import RunWriter

    window = next(name for name, value in FRAME_WINDOW.items() if value is board.window)
    with RunWriter(path, RunInfo("fake:", board.nodes, board.clock_hz, window, LATENCY, board.epoch)) as writer:
        writer.append(board.data)
        writer.close(how="test", duration_ps=None)
    return Run(path)
