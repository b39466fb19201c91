"""sigrok sessions: read by sigrok-cli, decoded by the project's decoder for sigrok."""

import random
import re
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypermon.hdl.layout import LATENCY, BlockType, Sink, Window
from hypermon.host import cli
from hypermon.host.analysis.losses import outages
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.compact import LongItem
from hypermon.host.blocks.compact_plain import read
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.export import srzip
from hypermon.host.run import Run

from tests.host.external.readers import read_by
from tests.host.fake_board import FakeBoard, random_run

DECODERS = Path(srzip.__file__).parents[1] / "sigrok"


def decoded(session: Path, node: int, *options: str, kind: str = "nibble") -> list[tuple[int, int, str]]:
    """First and last sample, and text, of what sigrok shows of a node's port."""
    lines = ":".join(f"{pin}={name}_{node}" for pin, name in
                     (("d0", "D0"), ("d1", "D1"), ("d2", "D2"), ("d3", "D3"), ("strobe", "STROBE")))
    decoder = ":".join(["hypermon_port", lines, "lost=lost", *options])
    said = read_by("sigrok-cli", "-i", session, "-P", decoder, "-A", f"hypermon_port={kind}",
                   "--protocol-decoder-samplenum", SIGROKDECODE_DIR=str(DECODERS))
    rows = re.findall(r"^(\d+)-(\d+) hypermon_port-1: (.*)$", said, re.MULTILINE)
    return [(int(first), int(last), text) for first, last, text in rows]


@pytest.fixture
def quick_run(make_run) -> Run:
    """Windows of one clock, events in one after another, and two losses."""
    board = FakeBoard(nodes=13, window=Window.CLOCK).start()
    board.frames([(10, {0: 5, 12: 1}), (11, {0: 5}), (12, {0: 10, 3: 15}), (40, {0: 0}), (300_000, {3: 7})])
    board.loss([(3, 9, 20, 30), (5, 2, 100, 110)])
    return make_run(board.stop(400_000))


@pytest.mark.parametrize("piece", [1 << 14, 1 << 18])
def test_ports(quick_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
               piece: int) -> None:
    monkeypatch.setattr(srzip, "_PIECE", piece)
    out = tmp_path / "out.sr"
    assert cli._run(["export", str(quick_run.path), "--to", "sr", "--nodes", "0-11", str(out)]) == 0
    said = capsys.readouterr().err
    # A strobe rises at the time of its event.
    for node, wanted in ((0, [(10, 5), (11, 5), (12, 10), (40, 0)]), (3, [(12, 15), (300_000, 7)])):
        assert decoded(out, node) == [
            (2 * (window - LATENCY), 2 * (window - LATENCY) + 1, f"{nibble:X}") for window, nibble in wanted]
    assert "2 items follow another one of their node within less than 30 ns, the first at node 0, 50000 ps" in said
    scale = quick_run.info.scale
    lost = sorted(outage for own in outages(quick_run.loss(), 13) for outage in own)
    assert sorted(decoded(out, 0, kind="lost")) == sorted(
        (2 * (scale.stamp_at(o.from_ps) - LATENCY), 2 * (scale.stamp_at(o.to_ps) - LATENCY) + 1, "items lost")
        for o in lost)


def levels(session: Path, nodes: int) -> np.ndarray:
    """Every sample's port values, a column a node."""
    with zipfile.ZipFile(session) as archive:
        names = sorted((name for name in archive.namelist() if name.startswith("logic-1-")),
                       key=lambda name: int(name.rpartition("-")[2]))
        data = np.frombuffer(b"".join(archive.read(name) for name in names), np.uint8)
    bits = np.unpackbits(data.reshape(-1, (5 * nodes + 8) // 8), axis=1, bitorder="little")[:, :5 * nodes]
    return np.packbits(bits.reshape(-1, nodes, 5), axis=2, bitorder="little")[:, :, 0]


def test_rule_of_a_port(make_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of three samples and data three samples ahead wherever there is time, however the file is cut."""
    rng, times, board = random.Random(4), [0, 0, 0], FakeBoard(nodes=3, window=Window.CLOCK).start()
    frames: dict[int, dict[int, int]] = {}
    for node in range(3):
        for _ in range(300):
            times[node] += rng.choice([1, 2, 3, 4, 5, 9])
            frames.setdefault(20 + times[node], {})[node] = rng.randrange(16)
    run = make_run(board.frames(sorted(frames.items())).stop(3000))
    made = []
    for piece in (10, 64, 1 << 18):
        monkeypatch.setattr(srzip, "_PIECE", piece)
        assert cli._run(["export", str(run.path), "--to", "sr", str(tmp_path / "x.sr")]) == 0
        made.append(levels(tmp_path / "x.sr", 3))
    assert (made[0] == made[2]).all()
    assert (made[1] == made[2]).all()
    for node in range(3):
        own = [(2 * (window - LATENCY), nibbles[node]) for window, nibbles in sorted(frames.items()) if node in nibbles]
        strobe, data = made[2][:, node] >> 4, made[2][:, node] & 15
        rises = np.flatnonzero(np.diff(strobe.astype(int)) == 1) + 1
        assert rises.tolist() == [sample for sample, _ in own]
        for k, (sample, nibble) in enumerate(own):
            before = sample - own[k - 1][0] if k else 100
            after = own[k + 1][0] - sample if k + 1 < len(own) else 100
            high, low = min(after // 2, 3), min(before // 2, 3)
            assert strobe[sample:sample + high].all()
            assert not strobe[sample + high]
            assert not strobe[sample - low:sample].any()
            assert (data[sample - low:sample + high] == nibble).all()


def test_samples_between_changes_are_not_computed(make_run, tmp_path: Path) -> None:
    """A piece of 2 MiB takes little more memory than its bytes, and with this its time."""
    board = FakeBoard(nodes=12, window=Window.CLOCK).start()
    run = make_run(board.frames([(20 + 5000 * k, {k % 12: k % 16}) for k in range(100)]).stop(500_000))
    with open(tmp_path / "x.sr", "wb") as file:
        batches = list(run.batches())
        tracemalloc.start()
        srzip.write_sr(file, batches, [[] for _ in range(12)], nodes=list(range(12)), scale=run.info.scale, first=None,
                       last=500_000)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert np.count_nonzero(np.diff((levels(tmp_path / "x.sr", 12) >> 4).astype(int), axis=0) == 1) == 100
    assert most < 8 << 20


def test_classic_run(losing_run: Run, tmp_path: Path) -> None:
    """A stretch of some nodes, in windows of 800 ns."""
    out = tmp_path / "out.sr"
    assert cli._run(["export", str(losing_run.path), "--to", "sr", "--nodes", "2,15", "--from-ms", "20", "--to-ms",
                     "60", str(out)]) == 0
    scale = losing_run.info.scale
    first = scale.stamp_at(20 * 10**9)
    rows = losing_run.events(nodes=[15], from_ps=scale.start_ps(first), to_ps=60 * 10**9).to_pylist()
    assert len(rows) > 20
    samples = [2 * (scale.stamp_at(row["time_ps"]) - first) for row in rows]
    assert decoded(out, 15) == [(sample + 1, sample + 2, f"{row['nibble']:X}")
                                for sample, row in zip(samples, rows, strict=True)]


def test_events(make_run, tmp_path: Path) -> None:
    """Nibbles that are framed: a filler, an event with a payload, one without, one that is aborted."""
    nibbles = [0, 2, 7, 4, 11, 10, 1, 15, 15, 3, 1]
    frames = [(1000 * k + 10, {0: nibble}) for k, nibble in enumerate(nibbles)] + [(40_000, {0: 1}), (41_000, {0: 3}),
                                                                                   (42_000, {0: 0})]
    run = make_run(FakeBoard(nodes=1).start().frames(frames).stop(50_000))
    out = tmp_path / "out.sr"
    assert cli._run(["export", str(run.path), "--to", "sr", str(out)]) == 0

    def said(kind: str) -> list[str]:
        return [text for *_, text in decoded(out, 0, "framing=event", kind=kind)]

    assert said("event") == ["event 71 ab", "event 255", "event 3"]
    assert said("aborted") == ["aborted"]


def test_refusals(quick_run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def export(*options: str) -> str:
        assert cli._run(["export", str(quick_run.path), "--to", "sr", str(tmp_path / "x.sr"), *options]) == 2
        return capsys.readouterr().err

    assert "choose some with --nodes" in export()
    assert "--nodes 3-: expected" in export("--nodes", "3-")
    assert "there are nodes 0 to 12" in export("--nodes", "2,13")
    assert not (tmp_path / "x.sr").exists()
    assert cli._run(["export", str(quick_run.path), "--to", "frames", "--nodes", "1", str(tmp_path / "x")]) == 2
    assert "a frame has the nibbles of all nodes" in capsys.readouterr().err


# ----------------------------------------------------------------------- the stream itself, as sigrok sees it

def of_stream(path: Path, kind: str, channels: int = 8) -> list[str]:
    """What sigrok shows of a stream, a byte a sample; with more channels one is the clock."""
    lines = ":".join([f"b{bit}={bit}" for bit in range(8)] + ["clk=8"] * (channels > 8))
    said = read_by("sigrok-cli", "-I", f"binary:numchannels={channels}:samplerate=1000000", "-i", path,
                   "-P", f"hypermon_stream:{lines}", "-A", f"hypermon_stream={kind}", SIGROKDECODE_DIR=str(DECODERS))
    return re.findall(r"^hypermon_stream-1: (.*)$", said, re.MULTILINE)


@pytest.mark.parametrize("nodes", [16, 20])
def test_compact_stream(make_run, nodes: int) -> None:
    """Every item, and every loss."""
    made = random_run(FakeBoard(nodes, sink=Sink.EXTENDED), random.Random(nodes), 30, losses=0.5, gap=300)
    run = make_run(made)
    items = [item for kind, rows in made.kinds if kind is BlockType.COMPACT for item in rows]
    assert of_stream(run.stream_path, "item") == [f"{window} {node}: {nibble:X}" for window, node, nibble in items]
    losses = [row for kind, rows in made.kinds if kind is BlockType.LOSS for row in rows]
    assert of_stream(run.stream_path, "lost") == [
        f"node {node} lost {lost}, windows {first} to {last}" for node, lost, first, last in losses]
    assert len(of_stream(run.stream_path, "block")) == len(made.blocks)
    # With a clock, and other things on the lines while it is low.
    clocked = run.path / "clocked"
    clocked.write_bytes(b"".join(bytes([byte ^ 0x5a, 0, byte, 1]) for byte in run.stream_path.read_bytes()))
    assert of_stream(clocked, "item", 16) == of_stream(run.stream_path, "item")


def test_items_of_several_nibbles(mixed_run: Run) -> None:
    """Words and events, some aborted; then with noise between two blocks, which costs nothing."""
    wanted: dict[str, list[str]] = {"item": [], "aborted": []}
    data = mixed_run.stream_path.read_bytes()
    for block in BlockScanner().feed(data):
        if block.head.type is BlockType.COMPACT:
            for item in read(block.payload, block.time, block.head.nodes, items=True):
                text = " ".join(f"{value:X}" for value in item.nibbles[:len(item.nibbles) - item.filler])
                wanted["aborted" if item.filler else "item"].append(f"{item.window} {item.node}: {text}")
    assert len(wanted["aborted"]) > 5
    assert {kind: of_stream(mixed_run.stream_path, kind) for kind in wanted} == wanted
    second = data.index(b"HMON", 4)
    mixed_run.stream_path.write_bytes(data[:second] + b"HMnoise" + data[second:])
    assert of_stream(mixed_run.stream_path, "item") == wanted["item"]
    assert of_stream(mixed_run.stream_path, "wrong") != []


def test_frames_in_a_stream(losing_run: Run) -> None:
    found = of_stream(losing_run.stream_path, "frame")
    scale = losing_run.info.scale
    shown = [(scale.start_ps(int(line.split()[0])), *map(int, (node, str(int(nibble, 16))))) for line in found
             for node, nibble in (word.split(":") for word in line.split()[1:])]
    assert shown == [tuple(row.values()) for row in losing_run.events().to_pylist()]


def test_late_items(make_run) -> None:
    """Ones that were passed over, and one that is ahead."""
    modes = ItemModes.of([ItemMode.EVENT, ItemMode.NIBBLE])
    board = FakeBoard(nodes=2, window=Window.CLOCK, sink=Sink.EXTENDED).start()
    board.items([LongItem(100, 1, b"\x05"), LongItem(40, 0, bytes([1, 2, 3]), late=True),
                 LongItem(130, 0, bytes([1, 4, 5]), late=True), LongItem(150, 1, b"\x06")], modes)
    run = make_run(board.stop(1000), modes=["event", "nibble"], item_timeout_clocks=1000)
    assert of_stream(run.stream_path, "item") == ["100 1: 5", "40 0: 1 2 3", "130 0: 1 4 5", "150 1: 6"]
