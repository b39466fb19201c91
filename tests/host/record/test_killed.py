"""kill -9 while it records, however it keeps what comes: what is there opens, is true, and nobody calls it whole."""

import multiprocessing
import os
import random
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.host.analysis.stats import headline
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Torn
from hypermon.host.blocks.compact import decode
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.run import open_run

from tests.host.endless import EndlessLink
from tests.host.fake_board import FakeBoard, FakeLink, random_run
from tests.patience import in_time

#: By which options it keeps what; the checkpoints are close to each other, so that many fall among the kills.
MODES = {
    "raw": {}, "segments": {"segment_bytes": 20_000}, "ring": {"ring_s": 0.05}, "events": {"keep": "events"},
    "stats": {"keep": "stats"}, "registers": {"drain": "registers"}}
_GAP = 200


def make_link(mode):
    if mode != "registers":
        return EndlessLink(gap=_GAP, paced=True, blocks=1)
    link = FakeLink(random_run(FakeBoard(4), random.Random(9), 400, gap=20), piece=300, trickle=4)
    link.on_poll = lambda polls: time.sleep(0.001)
    return link


def child(path, mode, said):
    """Records until it is killed; ``said`` is the number of events that it has taken so far."""
    from hypermon.host.record import keep, recorder

    keep._CHECKPOINT_S, recorder._SYNC_S = 0.03, 0.01
    link = make_link(mode)

    def progress(moment):
        said.value = moment.ledger.events

    record(Device(link), Path(path), getattr(link, "settings", Settings()), progress=progress, **MODES[mode])


def start(path, mode):
    """A recorder as a process of its own: where to, the number of events that it has taken so far, the process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([
        "tests.host.endless", "tests.host.fake_board", "hypermon.host.record.recorder", "hypermon.host.decode.decode"])
    said = context.Value("q", -1, lock=False)
    process = context.Process(target=child, args=(str(path), mode, said))
    process.start()
    return path, said, process


def kill_one(path, mode, rng):
    """Kills a recorder at a random moment; the number of events that it had taken, of which it knew."""
    _, said, process = start(path, mode)
    begin = time.monotonic()
    if rng.random() < 0.9:      # else it is killed while it begins
        while said.value <= 0 and process.is_alive():
            in_time(begin, 60)
            time.sleep(0.0005)
    time.sleep(rng.choice([0.01, 0.1, 0.3]) * rng.random())
    process.kill()
    process.join()
    return said.value


def played(mode, count):
    """The first events that the board has played, as columns: time_ps, node, nibble."""
    link = make_link(mode)
    if mode == "registers":
        events = link.board.events()[:count]
        return [np.array(column) for column in zip(*events, strict=True)] if events else [np.array([])] * 3
    times, payloads = [at for at, _ in link._payloads], [payload for _, payload in link._payloads]
    parts = decode(payloads, times, 16).parts
    windows, nodes, nibbles = (np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)
                               for name in ("windows", "node", "nibble"))
    rounds = count // len(windows) + 1
    later = np.repeat(np.arange(rounds) * link.windows_a_round, len(windows))
    return [((np.tile(windows, rounds) + later - LATENCY) * 10_000)[:count], np.tile(nodes, rounds)[:count],
            np.tile(nibbles, rounds)[:count]]


def check_what_is_there(path, mode, said):
    run = open_run(path)
    assert run.info.end is None
    if "keep" not in MODES[mode]:
        data = b"".join(run.pieces())
        scanner = BlockScanner()
        items = [*scanner.feed(data), *scanner.finish()]
        torn = [item for item in items if isinstance(item, Torn)]
        assert all(item.offset + item.size == len(data) for item in torn), "torn in the middle"
    stats = run.stats()
    assert (stats["complete"], stats["accounted"]) == (False, False)
    assert stats["missing_blocks"] == 0 or mode == "ring"
    assert stats["lost"] == 0 or mode == "registers"
    words = headline(path, run.decode(), run)
    assert "cut short" in words
    assert ("seconds before that may be missing" in words) == ("keep" in MODES[mode])
    if mode == "stats":
        assert stats["events"] <= said + 20_000
        return
    table = run.events()
    found = [table[name].to_numpy() for name in ("time_ps", "node", "nibble")]
    if mode == "ring":      # the last ones of what had come
        whole = played(mode, said + 20_000)
        begin = int(np.searchsorted(whole[0], found[0][0])) if len(table) else 0
        assert begin + len(table) >= said
        wanted = [column[begin:begin + len(table)] for column in whole]
    else:
        wanted = played(mode, len(table))
        assert len(table) >= (stats["events"] if mode == "events" else said)
    assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))
    if mode != "events":
        assert stats["events"] == len(table)


def campaign(tmp_path, mode, count, seed):
    rng = random.Random(f"{mode}{seed}")
    opened = 0
    for trial in range(count):
        path = tmp_path / f"{mode}-{trial}"
        said = kill_one(path, mode, rng)
        if (path / "recording.json").exists() and ((path / "stream.bin").exists() or said > 0):
            if "keep" in MODES[mode] and not (path / "decode.json").exists():
                continue    # it was killed while it began
            check_what_is_there(path, mode, said)
            opened += said > 0
    assert opened > count / 2


@pytest.mark.parametrize("mode", MODES)
def test_killed_at_some_moments(tmp_path, mode):
    campaign(tmp_path, mode, 3, 1)


@pytest.mark.parametrize("seconds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_ring_is_read_while_it_rotates(tmp_path, seconds):
    """Files go while somebody reads them: what is read is a part of the recording, and nothing of it is a loss."""
    path, said, process = start(tmp_path / "run", "ring")
    try:
        while said.value < 10_000:      # the ring is full, or nearly
            assert process.is_alive()
            time.sleep(0.001)
        reads, begins, end = 0, set(), time.monotonic() + seconds
        while time.monotonic() < end or reads < 3 or len(begins) < 2:
            in_time(end, 60, "the ring to rotate")
            run = open_run(path)
            stats = run.stats()
            assert (stats["lost"], stats["missing_blocks"], stats["faults"]) == (0, 0, {})
            assert stats["events"] > 0
            times = run.events()["time_ps"].to_numpy()
            whole = played("ring", said.value + 40_000)[0]
            at = int(np.searchsorted(whole, times[0]))
            assert np.array_equal(times, whole[at:at + len(times)])
            reads, begins = reads + 1, begins | {stats["begins_ps"]}
        assert process.is_alive()
        assert len(begins) > 1
    finally:
        process.kill()
        process.join()
    assert reads > 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_killed_at_many_moments(tmp_path, mode):
    campaign(tmp_path, mode, int(os.environ.get("HYPERMON_KILLS", "40")), 2)


def test_killed_between_a_table_and_its_accounts(tmp_path, monkeypatch):
    """A new file of events is there, and the accounts do not know of it yet."""
    monkeypatch.setattr("hypermon.host.record.keep._CHECKPOINT_S", 0.0)
    monkeypatch.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
    made = random_run(FakeBoard(2), random.Random(1), 20)

    class Killed(BaseException):
        pass

    def kill(path, values, said=[]):  # noqa: B006
        from hypermon.host.recording.segments import write_json

        said.append(path)
        if len(said) == 6:
            (tmp_path / "run").rename(tmp_path / "killed")
            raise Killed
        write_json(path, values)

    monkeypatch.setattr("hypermon.host.decode.account.write_json", kill)
    with pytest.raises(Killed):
        record(Device(FakeLink(made, piece=200)), tmp_path / "run", Settings(), keep="events")
    run = open_run(tmp_path / "killed")
    rows = [tuple(row.values()) for row in run.events().to_pylist()]
    assert rows == made.events()[:len(rows)]
    assert len(rows) >= run.stats()["events"] > 0
    assert not run.stats()["complete"]
    parts = sorted((tmp_path / "killed" / "events").glob("*.parquet"))
    assert sum(pq.read_metadata(part).num_rows for part in parts) >= len(rows)
