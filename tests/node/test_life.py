"""The demo program: what its ports say is what it did, and it did Life."""

import csv
import re
import signal
import subprocess
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypermon.host.dictionary.c_header import c_header
from hypermon.host.dictionary.dictionary import load_dictionary
from port_reader import read_events, read_nibbles, read_writes

from tests.patience import patience

NODE = Path(__file__).parents[2] / "node"
SEND, RECEIVE, GENERATION = 2, 3, 4


@pytest.fixture(scope="module")
def life(compile_c) -> Path:
    return compile_c(NODE / "life.c")


def read_log(path: Path) -> dict[int, list[dict]]:
    log = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            log[int(row["node"])].append({
                "from": int(row["from_ns"]), "to": int(row["to_ns"]),
                "event": int(row["event"]), "payload": bytes.fromhex(row["payload"])})
    return log


def play(program: Path, folder: Path, *options: object) -> tuple[dict, dict, str]:
    """Run it; what its log says and what its ports say, per node."""
    edges = 2 if "--edges-2" in options else 1
    options = tuple(o for o in options if o != "--edges-2")
    done = subprocess.run([program, *map(str, options), "-o", folder / "life.csv", "--log", folder / "log.csv"],
                          capture_output=True, text=True, timeout=patience(60))
    assert done.returncode == 0, done.stderr
    nibbles = read_nibbles(read_writes(folder / "life.csv"), edges)
    return read_log(folder / "log.csv"), {node: read_events(n) for node, n in nibbles.items()}, done.stdout


@pytest.mark.parametrize(("nodes", "size", "generations"),
                         [(16, 64, 30), (1, 8, 5), (2, 9, 5), (3, 3, 5), (16, 17, 10), (32, 33, 3), (16, 16, 0)])
def test_ports_say_what_the_log_says(life: Path, tmp_path: Path, nodes: int, size: int, generations: int) -> None:
    log, ports, said = play(life, tmp_path, "--nodes", nodes, "--size", size, "--generations", generations)
    assert "what one node alone computes" in said
    assert set(log) == set(ports) == set(range(nodes))
    for node in range(nodes):
        assert [(e["event"], e["payload"]) for e in log[node]] == [e[1:] for e in ports[node]]
        assert len(log[node]) == 2 + 7 * generations
        # The first nibble's strobe is one hold behind the write before it, and inside the call.
        for line, event in zip(log[node], ports[node], strict=True):
            assert line["from"] <= event.time_ns <= line["to"]


def test_every_message_is_sent_once_and_then_received_once(life: Path, tmp_path: Path) -> None:
    _, ports, _ = play(life, tmp_path, "--size", 64, "--generations", 50)
    sent, received = {}, {}
    for node, events in ports.items():
        for event in events:
            if event.event in (SEND, RECEIVE):
                peer, sequence = event.payload[0], int.from_bytes(event.payload[1:], "little")
                where, key = (sent, (node, peer)) if event.event == SEND else (received, (peer, node))
                assert (*key, sequence) not in where
                where[(*key, sequence)] = event.time_ns
    assert len(sent) == 16 * 2 * 50
    assert sent.keys() == received.keys()
    assert all(sent[key] < received[key] for key in sent)


def test_living_cells_are_lifes(life: Path, tmp_path: Path) -> None:
    """The counts in the events are those of Life computed here, from the same seed."""
    size, generations = 24, 12
    _, ports, _ = play(life, tmp_path, "--nodes", 5, "--size", size, "--generations", generations, "--seed", 7)
    state = (7 * 2654435769 | 1) & 0xffffffff
    board = [[0] * size for _ in range(size)]
    for row in board:
        for column in range(size):
            state ^= state << 13 & 0xffffffff
            state ^= state >> 17
            state ^= state << 5 & 0xffffffff
            row[column] = int(state % 3 == 0)
    alive = []
    for _ in range(generations):
        alive.append(sum(map(sum, board)))
        around = [[sum(board[(y + dy) % size][(x + dx) % size] for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - board[y][x]
                   for x in range(size)] for y in range(size)]
        board = [[int(n == 3 or (n == 2 and here)) for n, here in zip(*rows, strict=True)]
                 for rows in zip(around, board, strict=True)]
    told = defaultdict(int)
    for events in ports.values():
        for event in events:
            if event.event == GENERATION:
                told[int.from_bytes(event.payload[:2], "little")] += int.from_bytes(event.payload[2:], "little")
    assert [told[g] for g in range(generations)] == alive
    assert len(set(alive)) > 3


def test_strobe_on_both_edges(compile_c, tmp_path: Path) -> None:
    program = compile_c(NODE / "life.c", "-DHM_EDGES=2")
    log, ports, _ = play(program, tmp_path, "--size", 32, "--generations", 5, "--edges-2")
    for node in range(16):
        assert [(e["event"], e["payload"]) for e in log[node]] == [e[1:] for e in ports[node]]


@pytest.mark.slow
def test_stopped_in_mid_event(life: Path, tmp_path: Path) -> None:
    """The whole program is stopped again and again for longer than an event may take, as an overloaded machine
    would: no event has a silence in it, and none is lost, doubled or told at a wrong time."""
    with subprocess.Popen([life, "--size", "16", "--generations", "500", "-o", tmp_path / "life.csv",
                           "--log", tmp_path / "log.csv"], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.012)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.008)
        said = process.stdout.read()
    assert process.returncode == 0
    log = read_log(tmp_path / "log.csv")
    nibbles = read_nibbles(read_writes(tmp_path / "life.csv"), 1)
    for node in range(16):
        events = read_events(nibbles[node])
        assert [(e["event"], e["payload"]) for e in log[node]] == [e[1:] for e in events]
        times = [time_ns for time_ns, _ in nibbles[node]]
        begins = {event.time_ns for event in events}
        assert max(b - a for a, b in pairwise(times) if b not in begins) <= 5_000_000
        for line, event in zip(log[node], events, strict=True):
            assert line["from"] <= event.time_ns <= line["to"]
    print(re.search(r"torn.*", said)[0])


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_sanitizers_find_nothing(compile_c, tmp_path: Path, sanitizer: str) -> None:
    program = compile_c(NODE / "life.c", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g")
    play(program, tmp_path, "--size", 32, "--generations", 5)


@pytest.mark.parametrize(("options", "message"), [
    (["--nodes", "0"], "--nodes must be 1..32, not '0'"),
    (["--nodes", "33"], "--nodes must be 1..32, not '33'"),
    (["--size", "8"], "--size must be at least --nodes = 16, not 8"),
    (["--generations", "many"], "--generations must be 0..32767, not 'many'"),
    (["--fast", "1"], "'--fast' is no option"),
    (["--size"], "'--size' is no option, or lacks its value"),
    (["-o", "/no/such/folder/life.csv"], "No such file or directory"),
])
def test_says_what_is_wrong(life: Path, tmp_path: Path, options: list[str], message: str) -> None:
    done = subprocess.run([life, *options], capture_output=True, text=True, timeout=patience(20), cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_header_is_made_of_the_dictionary() -> None:
    """The command that wrote it: hypermon dict node/life.toml --c-header node/life_events.h"""
    dictionary = load_dictionary(NODE / "life.toml")
    assert (NODE / "life_events.h").read_text() == c_header(dictionary, "life.toml", "life")
    assert len(dictionary.events) == 7
