"""A recording as lines, while it grows: everything in it, in order, and nothing invented."""

import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypermon.hdl.layout import LATENCY, BlockType, Sink
from hypermon.host import cli
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.decode.ledger import Ledger
from hypermon.host.dictionary.dictionary import load_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.events import framed_events
from hypermon.host.live import tail
from hypermon.host.live.follow import Follow, Loss, Note, follow
from hypermon.host.live.lines import Lines
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.printed_items import PrintedItems
from hypermon.host.record.process import hypermon_command
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import segments, write_json

from tests.host.decode.test_item_runs import named
from tests.host.fake_board import FakeBoard, block, random_run
from tests.host.items import emitted, in_blocks, play
from tests.patience import patience, until


def info_of(board, **more) -> RunInfo:
    return RunInfo("fake:", board.nodes, board.clock_hz, "800", LATENCY, board.epoch, sink=board.sink.name.lower(),
                   **more)


def fed(following, data, piece):
    parts = [part for at in range(0, len(data), piece) for part in following.feed(data[at:at + piece])]
    return parts + list(following.finish())


def items_of(parts):
    return [row for part in parts if isinstance(part, pa.Table) for row in part.to_pylist()]


@pytest.mark.parametrize("sink", list(Sink))
@pytest.mark.parametrize("piece", [100, 5000, 1 << 20])
@pytest.mark.parametrize("seed", range(3))
def test_everything_in_order(sink, piece, seed):
    made = random_run(FakeBoard(sink=sink), random.Random(seed), 60, losses=0.5)
    parts = fed(Follow(info_of(made)), made.data, piece)
    assert [tuple(row.values()) for row in items_of(parts)] == made.events()
    losses = [part for part in parts if isinstance(part, Loss)]
    assert sum(loss.lost for loss in losses) == sum(made.refused.values()) > 0
    # A loss is before every item that began later, and after every item that began before it.
    times = [part.from_ps if isinstance(part, Loss) else row["time_ps"] for part in parts
             for row in (part.to_pylist() if isinstance(part, pa.Table) else [None])]
    assert times == sorted(times)


@pytest.mark.parametrize("seed", range(3))
def test_items_of_several_nibbles_are_not_held_for_long(make_run, seed):
    rng = random.Random(seed)
    board = FakeBoard(16, sink=Sink.EXTENDED)
    modes = ItemModes.of([ItemMode.EVENT] * 8 + [ItemMode.WORD] * 4 + [ItemMode.NIBBLE] * 4)
    data = play(rng, board, modes, in_blocks(rng, emitted(rng, board, modes, 3000), modes)).data
    run = make_run(board, data, **named(modes, board.nodes))
    following = Follow(run.info)
    parts = [part for at in range(0, len(data), 4096) for part in following.feed(data[at:at + 4096])]
    early = len(items_of(parts))
    rows = items_of(parts + list(following.finish()))
    assert rows == run.events().to_pylist()
    assert early > 0.5 * len(rows)


def test_a_stream_that_was_cut_has_a_last_line(make_run):
    made = random_run(FakeBoard(), random.Random(5), 40)
    whole, cut = make_run(made), make_run(made, data=made.data[:len(made.data) * 3 // 4], name="cut")
    assert not [part for part in follow(whole.path) if isinstance(part, Note)]
    last = [part for part in follow(cut.path) if isinstance(part, Note) or len(part)][-1]
    assert last.kind == "cut"
    assert "the stream was cut short" in last.text


def test_what_the_link_lost_is_a_line(make_run):
    made = random_run(FakeBoard(), random.Random(5), 40)
    kept = [data for k, data in enumerate(made.blocks) if not 10 <= k < 14]
    run = make_run(made, data=b"".join(kept))
    parts = fed(Follow(run.info), b"".join(kept), 3000)
    losses = [tuple(part) for part in parts if isinstance(part, Loss)]
    assert sorted(losses) == sorted(tuple(row.values()) for row in run.loss().to_pylist())
    assert losses
    assert items_of(parts) == run.events().to_pylist()


def test_resets_and_noise_have_lines():
    made = random_run(FakeBoard(), random.Random(5), 10)
    other = block(BlockType.FRAMES, b"", epoch=7)
    data = b"".join(made.blocks[:4]) + b"noise" + b"".join(made.blocks[4:8]) + other + b"".join(made.blocks[8:])
    parts = fed(Follow(info_of(made)), data, 1 << 20)
    notes = [part for part in parts if isinstance(part, Note)]
    assert [note.kind for note in notes] == ["torn", "reset"]
    assert "epoch 7" in notes[1].text
    assert [tuple(row.values()) for row in items_of(parts)] == made.events()


def test_a_census_does_not_settle_what_is_still_in_the_board():
    board = FakeBoard().start().frames([(10, {0: 1})])
    board.queued[0] = 1
    board.census(time=100).frames([(50, {0: 2})]).loss([(3, 7, 40, 45)])
    board.queued[0] = 0
    board.stop(200)
    following = Follow(info_of(board))
    parts = [*(part for data in board.blocks for part in following.feed(data)), *following.finish()]
    assert [part.lost if isinstance(part, Loss) else part["nibble"].to_pylist() for part in parts] == [[1], 7, [2]]


@pytest.mark.parametrize(("cut", "configuration"), [
    (None, {}), ("lost", {}), ("rejected", {"rate_limit": {"all": [3, 1024]}}), ("triggered", {"start": "node 1"})],
    ids=["whole", "lost", "rejected", "triggered"])
def test_framed_events_are_those_of_decode(make_run, cut, configuration):
    """Where a loss, a filter or a start trigger may have cut an event, nothing is framed until the next silence."""
    rng, board = random.Random(1), FakeBoard(4)
    board.start()
    stamp, last = 10, 0
    for k in range(300):
        node, payload = rng.randrange(4), bytes(rng.randrange(256) for _ in range(rng.randint(0, 14)))
        nibbles = [len(payload) + 1, *(part for byte in (k & 255, *payload) for part in (byte & 15, byte >> 4))]
        if cut == "rejected" and k % 20 == 7:
            board.rejected.update([node])
            del nibbles[0]
        if cut == "triggered" and k < 5:
            board.discarded += 1
            del nibbles[0]
        for nibble in nibbles:
            board.frames([(stamp, {node: nibble})])
            stamp += 1
        if cut == "lost" and k % 20 == 10:
            board.loss([(node, 3, last, stamp - 1)])
        if k % 20 == 10:
            board.census(time=stamp)
            stamp += 20_000 * (k % 40 == 10)     # a silence, after which the framing is known again
        last = stamp
    run = make_run(board.stop(stamp), configuration=configuration)
    framed_events(run)
    expected = run.sql("from framed").to_arrow_table().to_pylist()
    parts = fed(Follow(run.info, framing=True), board.data, 2000)
    rows = items_of(parts)
    assert rows == expected
    times = [part.from_ps if isinstance(part, Loss) else row["time_ps"] for part in parts
             for row in (part.to_pylist() if isinstance(part, pa.Table) else [None])]
    assert times == sorted(times)
    assert any(row["aborted"] for row in rows) == (cut is not None)
    written = sum(not row["aborted"] for row in rows)
    assert (written == 300) == (cut is None)
    assert written > 50


def test_an_open_event_is_before_a_loss_after_its_beginning():
    board = FakeBoard(2).start().frames([(10, {0: 1})]).loss([(1, 7, 20, 22)]).census(time=40)
    board.frames([(50, {0: 5}), (51, {0: 0})]).stop(200)
    following = Follow(info_of(board), framing=True)
    parts = [*(part for data in board.blocks for part in following.feed(data)), *following.finish()]
    assert [part.lost if isinstance(part, Loss) else part["event"].to_pylist() for part in parts] == [[5], 7]


def test_events_are_not_framed_where_data_are_missing_without_a_loss():
    """After a lost block that no census counts, and at the beginning of a ring."""
    board = FakeBoard(1).start()
    for at, nibbles in enumerate([(2, 1, 0), (1, 0), (2, 3, 0, 4, 0)]):
        board.frames([(1000 * at + k, {0: nibble}) for k, nibble in enumerate(nibbles)])

    def whole(following: Follow, blocks: list[bytes]) -> list[int]:
        parts = fed(following, b"".join(blocks), 1 << 20)
        return [row["event"] for part in parts if isinstance(part, pa.Table) for row in part.to_pylist()
                if not row["aborted"]]

    info = info_of(board)
    assert whole(Follow(info, framing=True), board.blocks) == [1, 3]
    assert whole(Follow(info, framing=True), [*board.blocks[:2], board.blocks[3]]) == []
    before = Ledger.of(info)
    for _ in before.event_rows(BlockScanner().feed(b"".join(board.blocks[:2]))):
        pass
    assert whole(Follow(info, before.account(), framing=True), board.blocks[2:]) == []


def test_a_growing_recording(make_run):
    made = random_run(FakeBoard(), random.Random(3), 40, losses=0.5)
    run = make_run(made, data=made.data[:1000], end=False)

    def grow():
        for at in range(1000, len(made.data), 5000):
            time.sleep(0.01)
            with open(run.path / "stream.bin", "ab") as file:
                file.write(made.data[at:at + 5000])
        recording = run.path / "recording.json"
        said = json.loads(recording.read_text())
        del said["check"]
        write_json(recording, said | {"end": {"how": "over", "proper": True}})

    thread = threading.Thread(target=grow)
    thread.start()
    rows = items_of(part for part in follow(run.path) if not isinstance(part, pa.Table) or len(part))
    thread.join()
    assert [tuple(row.values()) for row in rows] == made.events()
    # With nobody at work, and without a wait, it ends where the data ends.
    assert items_of(part for part in follow(run.path, new=True)) == []


def test_a_ring_that_is_faster_than_its_reader(make_run):
    made = random_run(FakeBoard(), random.Random(3), 40)
    run = make_run(made, data=b"".join(made.blocks[:10]), end=False)
    parts = follow(run.path, alive=lambda: False)
    first = next(parts)
    # The recorder drops the first file, and two more before they were read.
    ledger_then = Follow(run.info)
    assert list(ledger_then.feed(b"".join(made.blocks[:30]))) is not None
    (run.path / "stream-00003.bin").write_bytes(b"".join(made.blocks[30:]))
    write_json(run.path / "ring.json", {"first": 3, "account": ledger_then._ledger.account()})
    (run.path / "stream.bin").unlink()
    assert segments(run.path)[0]
    rest = list(parts)
    assert [part.kind for part in rest if isinstance(part, Note)] == ["skipped", "gone"]
    assert not [part for part in rest if isinstance(part, Loss)], "what a ring drops is no loss"
    rows = items_of([first, *rest])
    assert rows[-1] == dict(zip(("time_ps", "node", "nibble"), made.events()[-1], strict=True))
    assert len(rows) < len(made.events())


RECORDER = """
import sys, time
from pathlib import Path
from hypermon.hdl.layout import LATENCY
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
epoch, clock_hz = map(int, sys.argv[2:4])
with RunWriter(Path(sys.argv[1]), RunInfo("fake:", 16, clock_hz, "800", LATENCY, epoch, sink=sys.argv[4])) as writer:
    writer.append(sys.stdin.buffer.read())
    writer.sync()
    print("written", flush=True)
    time.sleep(1000)
"""


def test_a_recorder_that_is_killed(tmp_path, capsys, monkeypatch):
    """`tail` waits while the recorder is at work, however silent. Once it is gone, `tail` says so and ends."""
    made, run = random_run(FakeBoard(), random.Random(4), 12), tmp_path / "run"
    command = [sys.executable, "-c", RECORDER, run, str(made.epoch), str(made.clock_hz), made.sink.name.lower()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        try:
            recorder.stdin.write(b"".join(made.blocks[:12]))
            recorder.stdin.close()
            assert recorder.stdout.readline() == b"written\n"
            monkeypatch.setattr(tail, "_UNLOCKED_S", 0.0)
            pulse = tail.Pulse(run)
            time.sleep(0.1)
            assert pulse.alive()
        finally:
            recorder.kill()
    assert not pulse.alive()
    done = subprocess.run(hypermon_command("tail", str(run), "--json"), capture_output=True, text=True, check=True,
                          timeout=patience(20))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["kind"] == "item"
    assert rows[-1]["kind"] == "gone"
    assert "killed" in rows[-1]["text"]
    assert cli._run(["tail", str(run), "--json", "--no-wait"]) == 0
    assert '"gone"' not in capsys.readouterr().out


DICTIONARY = """
[nodes]
1 = "sender"
[send]
id = 2
fields = { peer = "u8", note = "string" }
[done]
id = 3
"""


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "d.toml"
    path.write_text(DICTIONARY)
    return path


def events_table(rows):
    return pa.table({"time_ps": pa.array([row[0] for row in rows], pa.int64()),
                     "node": pa.array([row[1] for row in rows], pa.int16()),
                     "event": pa.array([row[2] for row in rows], pa.uint8()),
                     "payload": pa.array([row[3] for row in rows], pa.binary()),
                     "aborted": pa.array([len(row) > 4 for row in rows])})


ROWS = events_table([(1_000_000, 1, 2, b"\x05two words"), (2_000_000, 0, 3, b""), (3_000_000, 0, 9, b"\xff\x01"),
                     (4_000_000, 1, 2, b"\x06\x1b[2J"), (5_000_000, 2, None, b"", True), (6_000_000, 1, 3, b"x")])


def lines_of(dictionary, **options):
    info = info_of(FakeBoard(4, sink=Sink.EXTENDED), modes=["event"] * 4)
    return Lines(info, load_dictionary(dictionary), **options)


def test_lines_for_people(dictionary):
    assert lines_of(dictionary).of(ROWS).splitlines() == [
        '0.000001000000  sender  send  peer=5 note="two words"',
        "0.000002000000  node 0  done",
        "0.000003000000  node 0  event 9  payload=ff01",
        "0.000004000000  sender  send  peer=6 note=\\x1b[2J",
        "0.000005000000  node 2  event  (aborted)",
        "0.000006000000  sender  done  payload=78",
    ]
    lines = lines_of(dictionary)
    assert lines.of(Loss(1, 1200, -10, 5_000_000)) == \
        "-0.000000000010  sender  LOST 1,200 items until 0.000005000000\n"
    assert lines.of(Note("reset", 7, "a\nb")) == "0.000000000007  RESET: a\\nb\n"


def test_lines_for_programs(dictionary):
    lines = lines_of(dictionary, as_json=True)
    rows = [json.loads(line) for line in lines.of(ROWS).splitlines()]
    assert rows[0] == {"kind": "event", "time_ps": 1_000_000, "node": 1, "event": 2, "name": "send",
                       "fields": {"peer": 5, "note": "two words"}}
    assert rows[2] == {"kind": "event", "time_ps": 3_000_000, "node": 0, "event": 9, "payload": "ff01"}
    assert rows[4]["aborted"] is True
    assert json.loads(lines.of(Loss(1, 12, 3, 5))) == {"kind": "loss", "time_ps": 3, "node": 1, "lost": 12,
                                                       "from_ps": 3, "to_ps": 5}


@pytest.mark.parametrize(("options", "times"), [
    ({"nodes": [1]}, [1, 4, 6]), ({"names": ["done"]}, [2, 6]), ({"where": "peer > 5"}, [4]),
    ({"where": "peer = 5 or event = 9"}, [1, 3]), ({"nodes": [1], "names": ["send"], "where": "peer < 6"}, [1])])
def test_filters(dictionary, options, times):
    rows = [json.loads(line) for line in lines_of(dictionary, as_json=True, **options).of(ROWS).splitlines()]
    assert [row["time_ps"] // 1_000_000 for row in rows] == times


def test_losses_of_other_nodes_are_left_out(dictionary):
    lines = lines_of(dictionary, nodes=[0])
    assert lines.of(Loss(1, 1, 0, 1)) == ""
    assert lines.of(Loss(0, 1, 0, 1))


@pytest.mark.parametrize(("options", "said"), [
    ({"names": ["sent"]}, "the dictionary has done, send"), ({"where": "nix = 3"}, "nix"),
    ({"where": "1) ; drop table x; --"}, "--where")])
def test_filters_that_make_no_sense(dictionary, options, said):
    with pytest.raises(HypermonError, match=said):
        lines_of(dictionary, **options)


# --------------------------------------------------------------------------------- the commands


def test_tail_prints_a_recording(make_run, capsys):
    made = random_run(FakeBoard(), random.Random(3), 40, losses=0.5)
    run = make_run(made)
    assert cli._run(["tail", str(run.path), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["time_ps"], r["node"], r["nibble"]) for r in rows if r["kind"] == "item"] == made.events()
    assert sum(r["lost"] for r in rows if r["kind"] == "loss") == sum(made.refused.values())


def test_tail_of_what_has_no_stream(make_run, capsys):
    run = make_run(random_run(FakeBoard(), random.Random(3), 4), keep="events")
    assert cli._run(["tail", str(run.path)]) == 2
    assert "its stream was not kept" in capsys.readouterr().err


@pytest.fixture
def stimulus(tmp_path) -> Path:
    path = tmp_path / "s.csv"
    rows = "".join(f"{1000 + 1000 * k},{k % 3},{k % 16}\n{1500 + 1000 * k},{k % 3},{16 + k % 16}\n"
                   for k in range(20_000))
    path.write_text(f"time_ns,node,port\n{rows}")
    return path


def started(*arguments) -> subprocess.Popen[str]:
    return subprocess.Popen([*hypermon_command(*map(str, arguments))], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_record_print(stimulus, tmp_path):
    """All items are printed; until somebody reads, the recording ends all the same."""
    run = tmp_path / "run"
    process = started("record", "-b", f"sim:{stimulus}", "-o", run, "--print")
    until(lambda: (run / "recording.json").exists() and RunInfo.load(run / "recording.json").end is not None,
          "a recording that a reader who does not read must not hold up", 120)
    assert process.poll() is None, "its lines do not fit a pipe"
    out, said = process.communicate(timeout=patience(60))
    assert len(out.splitlines()) == 20_000
    assert out.splitlines()[1].endswith("  node 1  nibble 1")
    assert "20,000 items, 0 lost" in said
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that is always full")
@pytest.mark.parametrize("command", ["record", "tail"])
def test_lines_that_cannot_be_written(stimulus, tmp_path, command):
    """The recording is whole, and the exit status states that its lines are not."""
    what = ["record", "-b", f"sim:{stimulus}", "-o", tmp_path / "run", "--print"] if command == "record" else \
        ["tail", f"sim:{stimulus}", "-o", tmp_path]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*hypermon_command(*map(str, what))], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.count("No space left on device") == 1
    assert "Traceback" not in done.stderr
    [run] = [path.parent for path in tmp_path.glob("*/recording.json")]
    assert RunInfo.load(run / "recording.json").end["proper"]


@pytest.mark.parametrize("command", ["record", "tail"])
def test_a_reader_that_has_enough(stimulus, tmp_path, command):
    """The recording of a board that would never end, ends properly, and the lines end without a complaint."""
    what = ["record", "-b", "sim:", "-o", tmp_path / "run", "--print"] if command == "record" else \
        ["tail", f"sim:{stimulus}", "-o", tmp_path]
    if command == "record":
        what[2] = f"sim:{stimulus}"
    process = started(*what)
    assert process.stdout.readline().endswith("  node 0  nibble 0\n")
    process.stdout.close()
    assert process.wait(60) == 0
    [run] = [path.parent for path in tmp_path.glob("*/recording.json")]
    assert RunInfo.load(run / "recording.json").end["proper"]
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for child processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_no_recorder_outlives_a_tail_that_ends_while_it_starts(stimulus, tmp_path, number):
    process = started("tail", f"sim:{stimulus}", "-o", tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: children.read_text().split() != [], "a process that records")
    recorder = Path("/proc") / children.read_text().split()[0]
    assert list(tmp_path.glob("*/stream.bin")) == []
    process.send_signal(number)
    out, err = process.communicate(timeout=patience(60))
    assert (process.returncode, out, err.strip()) == (130, "", "")
    assert not recorder.exists()


def test_the_end_of_the_reader_ends_the_recording(make_run):
    interrupt = Interrupt()
    run = make_run(random_run(FakeBoard(), random.Random(3), 4))
    with PrintedItems(run.path, None, interrupt) as printed:
        printed.recording(None)
        assert not interrupt.hit
        printed._process.wait(60)       # as one does whose reader has gone
        printed.recording(None)
        assert interrupt.hit


def test_ctrl_c_ends_a_tail(make_run):
    made = random_run(FakeBoard(), random.Random(3), 40)
    run = make_run(made, data=b"".join(made.blocks[:-1]), end=False)
    process = started("tail", run.path)
    # What is not final yet is printed after the signal.
    final = sum(len(part) for part in Follow(run.info).feed(b"".join(made.blocks[:-1])) if isinstance(part, pa.Table))
    assert 0 < final < len(made.events())
    out = "".join(process.stdout.readline() for _ in range(final))
    process.send_signal(signal.SIGINT)
    out += process.stdout.read()
    assert (process.wait(60), process.stderr.read()) == (0, "")
    process.stdout.close()
    process.stderr.close()
    assert len(out.splitlines()) == len(made.events())
