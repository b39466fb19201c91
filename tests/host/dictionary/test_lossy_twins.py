"""One program recorded twice, whole and with losses: what the lossy run says of its states and messages is true."""

import heapq
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypermon.hdl.layout import BlockType
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.cli import _run
from hypermon.host.decode.ledger import Ledger
from hypermon.host.decode.unrecorded import unrecorded
from hypermon.host.dictionary.run_dictionary import FRAMED
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run

BOOK = """
begin = { id = 1, fields = { job = "u8" }, begin = "job", key = "job" }
end = { id = 2, fields = { job = "u8" }, end = "job", key = "job" }
work = { id = 3, end = "rest", begin = "work" }
rest = { id = 4, end = "work", begin = "rest" }
call = { id = 5, begin = "call" }
back = { id = 6, end = "call" }
send = { id = 7, fields = { peer = "u8", number = "u8" }, send = "border", peer = "peer", key = "number" }
receive = { id = 8, fields = { peer = "u8", number = "u8" }, receive = "border", peer = "peer", key = "number" }
cast = { id = 9, fields = { number = "u16" }, send = "cast", key = "number" }
caught = { id = 10, fields = { number = "u16" }, receive = "cast", key = "number" }
ping = { id = 11, fields = { peer = "u8" }, send = "ping", peer = "peer" }
pong = { id = 12, fields = { peer = "u8" }, receive = "ping", peer = "peer" }
"""
NODES = 16
#: Clocks of 10 ns by which a line delays all stamps (docs/regeneration.md), and the nodes on it.
LATE_PS, LINED = 4109 * 10_000, range(8)
#: Numbers of messages come again after so many.
AGAIN = 16


class Program:
    """Nodes that have nested states and send to each other; now and then one is silent, so that framing recovers.

    ``nibble_ns``, ``pause`` : the time that a nibble takes, and at most so many times that between two events.
    """

    def __init__(self, seed: int, nibble_ns: int = 1000, pause: int = 30):
        self.rng, self.nibble_ns, self.pause = random.Random(seed), nibble_ns, pause
        self.free = [1000 + self.rng.randrange(500) for _ in range(NODES)]
        self.inbox: list[list] = [[] for _ in range(NODES)]
        self.jobs: list[list[int]] = [[] for _ in range(NODES)]
        self.calls, self.works = [0] * NODES, [False] * NODES
        self.sent: dict = {}
        self.writes: list[tuple[int, int, int]] = []

    def put(self, node: int, *data: int) -> int:
        nibbles = [len(data), *(half for byte in data for half in (byte & 15, byte >> 4))]
        self.writes += [(self.free[node] + k * self.nibble_ns, node, value) for k, value in enumerate(nibbles)]
        end = self.free[node] + len(nibbles) * self.nibble_ns
        self.free[node] = end + self.rng.randrange(self.nibble_ns, self.pause * self.nibble_ns)
        return end

    def step(self) -> None:
        rng, node = self.rng, min(range(NODES), key=self.free.__getitem__)
        peer = (node + rng.choice([1, 2, NODES - 1])) % NODES
        what = rng.choice(["job", "job", "phase", "call", "border", "border", "cast", "ping"])
        if rng.random() < 0.02:
            self.free[node] += 11_000_000
        elif self.inbox[node] and self.inbox[node][0][0] < self.free[node]:
            self.put(node, *heapq.heappop(self.inbox[node])[2])
        elif what == "job":
            opens = not self.jobs[node] or rng.random() < 0.5
            job = rng.randrange(8) if opens else self.jobs[node].pop(rng.randrange(len(self.jobs[node])))
            self.jobs[node] += [job] if opens else []
            self.put(node, 1 if opens else 2, job)
        elif what == "phase":
            self.works[node] = not self.works[node]
            self.put(node, 3 if self.works[node] else 4)
        elif what == "call":
            opens = not self.calls[node] or rng.random() < 0.5
            self.calls[node] += 1 if opens else -1
            self.put(node, 5 if opens else 6)
        else:
            of = "cast" if what == "cast" else (what, node, peer)
            number = self.sent[of] = self.sent.get(of, -1) + 1
            said, heard = {"border": ((7, peer, number % AGAIN), (8, node, number % AGAIN)),
                           "cast": ((9, number % AGAIN, 0), (10, number % AGAIN, 0)),
                           "ping": ((11, peer), (12, node))}[what]
            heapq.heappush(self.inbox[peer], (self.put(node, *said) + 2000, len(self.writes), heard))

    def write(self, path: Path) -> None:
        rows = sorted(row for time, node, value in self.writes for row in
                      ((time - 40, node, value), (time, node, 16 | value), (time + 80, node, value)))
        path.write_text("time_ns,node,port\n" + "".join(f"{time},{node},{port}\n" for time, node, port in rows))


def framed(run: Path, book: Path) -> Run:
    assert _run(["decode", str(run), "--framing", "event", "--dictionary", str(book)]) == 0
    return Run(run)


def play(folder: Path, program: Program) -> tuple[Path, Run]:
    """The stimulus, the dictionary, and the whole run, in a folder."""
    for _ in range(2000):
        program.step()
    program.write(folder / "play.csv")
    (folder / "book.toml").write_text(BOOK)
    assert _run(["sim", str(folder / "play.csv"), "-o", str(folder / "whole"), "--window", "1"]) == 0
    truth = framed(folder / "whole", folder / "book.toml")
    assert truth.decode()["complete"]
    return folder, truth


@pytest.fixture(scope="module")
def played(tools, tmp_path_factory):
    return play(tmp_path_factory.mktemp("twins"), Program(3))


def blocks_of(run: Path) -> list[bytes]:
    data, blocks = (run / "stream.bin").read_bytes(), []
    while data:
        size = 48 + -(-int.from_bytes(data[12:16], "little") // 16) * 16
        blocks.append(data[:size])
        data = data[size:]
    return blocks


def without_blocks(run: Path, new: Path, rng: random.Random) -> None:
    """The recording of a link that loses blocks."""
    blocks = blocks_of(run)
    gone = set(rng.sample(range(1, len(blocks) - 1), max(len(blocks) // 20, 1)))
    with RunWriter(new, Run(run).info) as writer:
        writer.append(b"".join(block for at, block in enumerate(blocks) if at not in gone))
        writer.close(how="test", duration_ps=12345)


def earlier(rows: list[dict[str, Any]], lined: range, **times: str) -> list[dict[str, Any]]:
    """Rows as if no node were on a line; ``times`` : each column of times, and the one of its node."""
    for row in rows:
        for time, node in times.items():
            if row[time] is not None and row[node] in lined:
                row[time] -= LATE_PS
    return rows


def compared(truth: Run, lossy: Run, lined: range = range(0)) -> tuple[int, ...]:
    """How many states ended, and were lost; how many messages are sure, and in doubt. Asserts that all are true."""
    whole, states = ({(row["node"], row["name"], row["key"], row["begin_ps"]): row for row in rows} for rows in (
        truth.states().to_pylist(),
        earlier(lossy.states().to_pylist(), lined, begin_ps="node", end_ps="node", lost_ps="node")))
    true = {key: row["end_ps"] for key, row in whole.items()}
    assert set(states) <= set(true)
    ended = {key: row["end_ps"] for key, row in states.items() if row["end_ps"] is not None}
    assert ended == {key: true[key] for key in ended}
    lost = {key: row["lost_ps"] for key, row in states.items() if row["lost_ps"] is not None}
    assert [key for key, until in lost.items() if true[key] is not None and true[key] < until] == []
    true_events, events = (
        run.sql(f"select node, time_ps, event, payload from {Path(FRAMED).stem} where not aborted").to_arrow_table()
        .to_pylist() for run in (truth, lossy))
    events = {tuple(row.values()) for row in earlier(events, lined, time_ps="node")}
    assert events <= {tuple(row.values()) for row in true_events}
    # Both endpoints were seen, and nothing was lost between them, or may have been.
    seen = {(node, time) for node, time, *_ in events}
    gaps = earlier(lossy.loss().to_pylist(), lined, from_ps="node", to_ps="node")
    doubts = unrecorded(lossy, lossy.decode())
    for key, end in true.items():
        node, *_, begin = key
        known = {(node, begin), (node, end)} <= seen and end < doubts.get(node, end + 1) and not any(
            gap["node"] == node and gap["from_ps"] < end and gap["to_ps"] > begin for gap in gaps)
        assert not known or ended.get(key) == end
    columns = ["name", "key", "sender", "receiver", "sent_ps", "received_ps"]
    pairs = {tuple(row[name] for name in columns) for row in truth.messages().to_pylist()}
    found = [row for row in lossy.messages().to_pylist() if row["latency_ps"] is not None]
    doubted = [row["lost_ps"] is not None for row in found]
    sure = {tuple(row[name] for name in columns) for row, doubt in zip(
        earlier(found, lined, sent_ps="sender", received_ps="receiver"), doubted, strict=True) if not doubt}
    assert sure <= pairs
    return len(ended), len(lost), len(sure), sum(doubted)


@pytest.mark.parametrize("rate", ["1e5", "1e6"])
def test_losses_of_the_board(played, tmp_path: Path, rate: str) -> None:
    folder, truth = played
    assert _run(["sim", str(folder / "play.csv"), "-o", str(tmp_path / "run"), "--window", "1", "--drain-rate",
                 rate]) == 0
    lossy = framed(tmp_path / "run", folder / "book.toml")
    assert lossy.decode()["lost"] > 100
    assert min(compared(truth, lossy)[:3]) > 5


@pytest.mark.parametrize("seed", range(4))
def test_losses_of_the_link(played, tmp_path: Path, seed: int) -> None:
    folder, truth = played
    without_blocks(truth.path, tmp_path / "run", random.Random(seed))
    lossy = framed(tmp_path / "run", folder / "book.toml")
    assert lossy.decode()["missing_blocks"] > 0
    assert min(compared(truth, lossy)) > 0


def test_losses_of_a_line(tools, tmp_path: Path) -> None:
    """Eight of the nodes write more than the line of their regeneration board carries."""
    folder, truth = play(tmp_path, Program(3, 200, 8))
    assert _run(["sim", str(folder / "play.csv"), "-o", str(tmp_path / "run"), "--window", "1", "--port",
                 "0-7=line"]) == 0
    lossy = framed(tmp_path / "run", folder / "book.toml")
    done = lossy.decode()
    assert done["accounted"]
    assert done["causes"]["regeneration_gate"] == done["lost"] > 100
    assert min(compared(truth, lossy, LINED)[:3]) > 5
    # Killed, its lines may have losses that they have not told of: no events of their nodes are framed.
    blocks = blocks_of(tmp_path / "run")
    for end in random.Random(2).sample(range(2, len(blocks) - 1), 8):
        killed = tmp_path / f"killed-{end}"
        with RunWriter(killed, replace(Run(tmp_path / "run").info, end=None)) as writer:
            writer.append(b"".join(blocks[:end]))
        compared(truth, framed(killed, folder / "book.toml"), LINED)


@pytest.mark.parametrize(("rate", "ended"), [("1e5", 6), ("1e6", 0)])
def test_a_recording_that_was_killed(played, tmp_path: Path, rate: str, ended: int) -> None:
    """The last losses may be in no record: the stream ends between them and the count of them. With the higher rate
    there is no count before the end."""
    folder, truth = played
    assert _run(["sim", str(folder / "play.csv"), "-o", str(tmp_path / "run"), "--window", "1", "--drain-rate",
                 rate]) == 0
    blocks, counts = blocks_of(tmp_path / "run"), np.zeros(4, int)
    for end in random.Random(1).sample(range(2, len(blocks) - 1), min(6, len(blocks) - 3)):
        killed = tmp_path / f"killed-{end}"
        with RunWriter(killed, replace(Run(tmp_path / "run").info, end=None)) as writer:
            writer.append(b"".join(blocks[:end]))
        lossy = framed(killed, folder / "book.toml")
        assert not lossy.decode()["stopped"]
        counts += compared(truth, lossy)
    assert counts[0] >= ended
    assert min(counts[1:3]) > 5


@pytest.mark.parametrize("seed", range(4))
def test_a_block_that_was_lost_before_the_recorder_was_killed(played, tmp_path: Path, seed: int) -> None:
    """No census counts what was in it, so nibbles after it are not framed as if nothing were missing."""
    folder, truth = played
    blocks, rng = blocks_of(truth.path), random.Random(seed)
    censuses = [at for at, block in enumerate(blocks) if block[5] == BlockType.CENSUS]
    gone = rng.choice(censuses[:-1]) + rng.randrange(1, 20)
    with RunWriter(tmp_path / "run", replace(truth.info, end=None)) as writer:
        writer.append(b"".join(blocks[:gone] + blocks[gone + 1:gone + 20]))
    lossy = framed(tmp_path / "run", folder / "book.toml")
    assert lossy.decode()["uncounted"]
    compared(truth, lossy)


@pytest.mark.parametrize("first", [20, 60, 97])
@pytest.mark.parametrize("rate", [None, "4e6"])
def test_a_ring(played, tmp_path: Path, first: int, rate: str | None) -> None:
    """It begins anywhere in an event, among messages, and after losses of which it has no record."""
    folder, truth = played
    options = [] if rate is None else ["--drain-rate", rate]
    assert _run(["sim", str(folder / "play.csv"), "-o", str(tmp_path / "run"), "--window", "1", *options]) == 0
    blocks, ledger = blocks_of(tmp_path / "run"), Ledger.of(truth.info)
    first = min(first, len(blocks) // 3)
    for _ in ledger.event_rows(BlockScanner().feed(b"".join(blocks[:first]))):
        pass
    with RunWriter(tmp_path / "ring", Run(tmp_path / "run").info) as writer:
        writer.append(b"".join(blocks[first:]))
        writer.close(how="test", duration_ps=Run(tmp_path / "run").info.end["duration_ps"])
    (tmp_path / "ring" / "ring.json").write_text(json.dumps({"first": 0, "account": ledger.account()}))
    ring = framed(tmp_path / "ring", folder / "book.toml")
    assert ring.decode()["begins"] > 0
    assert compared(truth, ring)[0] > 0


@pytest.mark.parametrize("nodes", [None, "0-7"])
def test_a_part(played, tmp_path: Path, nodes: str | None) -> None:
    """It begins among messages, and the peers of its nodes may be left out."""
    _, truth = played
    options = ["--from-ms", "10"] if nodes is None else ["--nodes", nodes]
    assert _run(["trim", str(truth.path), str(tmp_path / "part"), *options]) == 0
    ended, _, sure, doubted = compared(truth, Run(tmp_path / "part"))
    assert ended > 0
    assert (sure > 0, doubted > 0) == (nodes is not None, True)


@pytest.mark.parametrize(("options", "sure", "doubted"), [
    (["--mask", "nodes=0x0fff"], True, True), (["--start", "nibble=13"], False, True),
    (["--stop", "nibble=13"], True, False),
    (["--rate-limit", "9/1024"], True, True)])
def test_what_a_board_discards(played, tmp_path: Path, options: list[str], sure: bool, doubted: bool) -> None:
    """Items that masks, triggers and filters discard are in no loss, and may have been between those that came."""
    folder, truth = played
    assert _run(["sim", str(folder / "play.csv"), "-o", str(tmp_path / "run"), "--config", "extended", "--window", "1",
                 *options]) == 0
    found = compared(truth, framed(tmp_path / "run", folder / "book.toml"))
    assert (found[2] > 0, found[3] > 0) == (sure, doubted)
