"""Tables are served if they are whole and of this decode; else they are made anew, or refused with what is missing."""

import os
import random
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypermon.hdl.layout import BlockType, Sink
from hypermon.host import open_run
from hypermon.host.device.device import Device, Settings
from hypermon.host.dictionary.semantics import TABLES
from hypermon.host.errors import InputError
from hypermon.host.record.recorder import record
from hypermon.host.recording import parts
from hypermon.host.recording.parts import described, fault
from hypermon.host.tables import parquet

from tests.host.fake_board import FakeBoard, FakeLink, random_run


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Several parts a run."""
    monkeypatch.setattr(parquet, "_GROUP", 100)
    monkeypatch.setattr(parquet, "_GROUPS_PER_FILE", 1)
    monkeypatch.setattr("hypermon.host.decode.ledger._BATCH", {BlockType.FRAMES: 2000, BlockType.COMPACT: 200})


def part(run, at=1):
    return sorted((run.path / "events").iterdir())[at]


def cut(run, other):
    path = part(run)
    path.write_bytes(path.read_bytes()[:-7])


def flipped(run, other):
    data = bytearray(part(run).read_bytes())
    data[len(data) // 3] ^= 4
    part(run).write_bytes(data)


def old_time(run, other):
    """Damaged, and its time set to one that is not its own."""
    flipped(run, other)
    os.utime(part(run), ns=(10**18, 10**18))


DAMAGE = {
    "removed": lambda run, other: part(run).unlink(), "cut": cut, "flipped": flipped, "old_time": old_time,
    "last removed": lambda run, other: part(run, -1).unlink(),
    "all removed": lambda run, other: shutil.rmtree(run.path / "events"),
    "of another run": lambda run, other: shutil.copy2(part(other), part(run)),
    "exchanged": lambda run, other: shutil.copy2(part(run, 0), part(run)),
    "losses of another run": lambda run, other: shutil.copy2(other.path / "loss.parquet", run.path / "loss.parquet"),
    "losses removed": lambda run, other: (run.path / "loss.parquet").unlink(),
    "account of another run": lambda run, other: shutil.copy2(other.path / "decode.json", run.path / "decode.json"),
}


def recorded(path, seed, keep):
    """A run of 40 nodes' worth of blocks: the same size, whatever the seed."""
    board = FakeBoard(sink=Sink.CLASSIC).start()
    rng = random.Random(seed)
    for block in range(12):
        board.frames([(100 * block + k, {rng.randrange(16): rng.randrange(16)}) for k in range(50)])
        board.loss([(block, 1 + seed, 100 * block + 60, 100 * block + 70)])
    board.stop(2000)
    record(Device(FakeLink(board)), path, Settings(), keep=keep)
    run = open_run(path)
    assert run.events().to_pylist() == [dict(zip(("time_ps", "node", "nibble"), row, strict=True))
                                        for row in board.events()]
    assert len(run.event_files()) > 3
    return run, board


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_raw_run_is_decoded_anew(tmp_path, run_cli, damage):
    run, _ = recorded(tmp_path / "run", 1, "raw")
    other, _ = recorded(tmp_path / "other", 2, "raw")
    asked = ("query", run.path, "select sum(time_ps), sum(node), sum(nibble), count(*), sum(lost) from events, "
             "(select sum(lost) as lost from loss)", "--csv")
    wanted, events, losses = run_cli(*asked), run.events(), run.loss()
    DAMAGE[damage](run, other)
    status, out, err = run_cli(*asked)
    assert (status, out, err[1:]) == (*wanted[:2], wanted[2])
    assert f"{run.path}: decoded anew, because " in err[0]
    assert run_cli(*asked) == wanted
    DAMAGE[damage](run, other)
    assert run.events().equals(events)
    DAMAGE[damage](run, other)
    assert run.loss().equals(losses)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("command", [["stats"], ["export", "--to", "csv", "-"], ["query"]])
def test_what_cannot_be_made_anew_is_refused(tmp_path, run_cli, damage, command):
    run, _ = recorded(tmp_path / "run", 1, "events")
    other, _ = recorded(tmp_path / "other", 2, "events")
    DAMAGE[damage](run, other)
    status, out, err = run_cli(command[0], run.path, *command[1:])
    assert (status, out, len(err)) == (2, "", 1)
    assert "--keep events: there are no blocks" in err[0]


def rot(path, rng, first=0):
    """Flips a bit, in the byte ``first`` or a later one, and keeps the time, as a failing disk does, or a copy of a
    damaged file that keeps times.
    """
    time_ns, data = path.stat().st_mtime_ns, bytearray(path.read_bytes())
    data[rng.randrange(first, len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    os.utime(path, ns=(time_ns, time_ns))
    parts._READ.clear()     # as in a new process


@pytest.mark.parametrize("keep", ["raw", "events"])
def test_damage_that_changes_no_time(tmp_path, run_cli, keep):
    run, _ = recorded(tmp_path / "run", 1, keep)
    asked = [("query", run.path, "from events", "--csv"), ("query", run.path, "from loss", "--json"),
             ("export", run.path, "--to", "csv", "-"), ("export", run.path, "--to", "vcd", "-"),
             ("trim", run.path, tmp_path / "cut", "--from-ms", "0.01")]
    rng = random.Random(3)
    for command in asked:
        wanted = run_cli(*command)
        shutil.rmtree(tmp_path / "cut", ignore_errors=True)
        for path in (part(run), run.path / "loss.parquet"):
            whole, time_ns = path.read_bytes(), path.stat().st_mtime_ns
            rot(path, rng)
            status, out, err = run_cli(*command)
            shutil.rmtree(tmp_path / "cut", ignore_errors=True)
            if keep == "raw":
                assert (status, out) == wanted[:2]
                assert any(f"{path.relative_to(run.path)} has other contents than were written" in line for line in err)
                continue
            assert (status, out, len(err)) == (2, "", 2)
            assert "there are no blocks" in err[1]
            path.write_bytes(whole)
            os.utime(path, ns=(time_ns, time_ns))


def test_damage_of_what_a_table_says_of_itself(mixed_run, tmp_path, run_cli):
    """A run with a dictionary: which one its events were named with is read before any row, and they are named anew."""
    book = tmp_path / "book.toml"
    book.write_text("[a]\nid = 1\nfields = { x = \"u8\" }\n")
    assert run_cli("decode", mixed_run.path, "--dictionary", book)[0] == 0
    path = next((mixed_run.path / "events").iterdir())
    rng = random.Random(4)
    for command in (("decode", mixed_run.path), ("query", mixed_run.path, "from events", "--csv"),
                    ("export", mixed_run.path, "--to", "events", "-"), ("stats", mixed_run.path)):
        wanted = run_cli(*command)
        assert wanted[0] == 0
        for _ in range(5):
            data = path.read_bytes()
            rot(path, rng, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
            status, out, err = run_cli(*command)
            assert (status, out) == wanted[:2]
            # `stats` uses no rows: it may find that the events are named, and read no more.
            assert command[0] == "stats" or any(f"{path.name} has other contents than were written" in line
                                                for line in err)


def test_a_table_that_pyarrow_cannot_read(mixed_run):
    """Whatever pyarrow raises, the message has the file's name. A column's name that is no text is a ValueError."""
    mixed_run.decode()
    path = part(mixed_run, 0)
    whole, found = path.read_bytes(), set()
    for at in [*range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole)), whole.rfind(b"payload")]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1:])
        try:
            pq.read_schema(path)
        except (pa.ArrowException, OSError, ValueError) as error:
            found.add(type(error))
            with pytest.raises(InputError, match=path.name):
                parquet.checked_table(path, pa.schema([]))
    assert found >= {OSError, UnicodeDecodeError}


def test_a_stray_part_is_not_served(tmp_path, run_cli):
    run, _ = recorded(tmp_path / "run", 1, "raw")
    other, _ = recorded(tmp_path / "other", 2, "raw")
    wanted = run.events()
    shutil.copy(part(other), run.path / "events" / "part-00099.parquet")
    assert run.events().equals(wanted)
    assert not (run.path / "events" / "part-00099.parquet").exists()


def test_a_copy_is_read_once_and_used_as_it_is(tmp_path, monkeypatch):
    """Whatever times the copy has."""
    run, _ = recorded(tmp_path / "run", 1, "raw")
    wanted = run.events()
    shutil.copytree(run.path, tmp_path / "copy", copy_function=shutil.copyfile)
    for path in (tmp_path / "copy").rglob("*"):
        os.utime(path, ns=(1, 1))
    monkeypatch.setattr("hypermon.host.decode.decode._decode", None)
    assert open_run(tmp_path / "copy").events().equals(wanted)
    monkeypatch.setattr("hypermon.host.recording.parts.checksum", None)
    assert open_run(tmp_path / "copy").events().equals(wanted)


def test_a_file_and_its_description(tmp_path):
    run, _ = recorded(tmp_path / "run", 1, "raw")
    path = part(run)
    said = described(path)
    assert fault(path, said) is None
    assert fault(path, {**said, "bytes": said["bytes"] + 1}) == \
        f"has {said['bytes']} bytes instead of {said['bytes'] + 1}"
    assert fault(path, {**said, "crc32": said["crc32"] ^ 1}) == "has other contents than were written"
    assert fault(path.parent, said) == "is not a file"
    path.unlink()
    assert fault(path, said) == "is missing"
    os.symlink(path.name, path)
    assert "cannot be read" in fault(path, said)


@pytest.mark.parametrize("damage", [
    lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:-1]),
    lambda path: path.write_bytes(bytes(path.stat().st_size)),
    lambda path: path.write_bytes((data := path.read_bytes())[:30] + bytes(10) + data[40:]),
    lambda path: shutil.copy2(path.with_name("loss.parquet"), path), lambda path: rot(path, random.Random(1))])
@pytest.mark.parametrize("name", ["framed.parquet", "logs.parquet", *(f"{name}.parquet" for name in TABLES)])
def test_derived_tables_are_made_anew(make_run, tmp_path, damage, name):
    from hypermon.host.dictionary.run_dictionary import keep_dictionary
    from hypermon.host.events import framed_events

    board = FakeBoard(nodes=2).start()
    nibbles = [nibble for kind in (0x01, 0x02, 0xfb) for nibble in (2, kind & 15, kind >> 4, 7, 4)]
    board.frames([(10 * k, {0: nibble, 1: nibble}) for k, nibble in enumerate(nibbles * 20)]).stop(10**5)
    run = make_run(board)
    (tmp_path / "book.toml").write_text("[go]\nid = 1\nbegin = 'x'\nsend = 'm'\nfields = { k = 'u8' }\ncounters = ['k']"
                                        "\n[end]\nid = 2\nend = 'x'\nreceive = 'm'\nfields = { k = 'u8' }\n[logging]\n")
    keep_dictionary(run, tmp_path / "book.toml")
    framed_events(run)
    table = name.partition(".")[0]
    wanted = run.sql(f"from {table}").fetchall()
    assert wanted
    damage(run.path / name)
    assert run.sql(f"from {table}").fetchall() == wanted


def test_groups_are_refused_if_they_are_not_those_recorded(tmp_path):
    board = random_run(FakeBoard(host=True), random.Random(5), 20)
    link = FakeLink(board)
    run_path = tmp_path / "run"
    from hypermon.host.recording.info import RunInfo
    from hypermon.host.recording.writer import RunWriter

    info = RunInfo("fake:", 16, 100_000_000, "800", 3, board.epoch, drain="registers")
    with RunWriter(run_path, info) as writer:
        writer.append(link.board.data)
        writer.add_groups([(1, 2, 3), (4, 5, 6)])
        writer.close(how="test", duration_ps=1)
    run = open_run(run_path)
    assert run.sql("from groups").fetchall() == [(1, 2, 3), (4, 5, 6)]
    shutil.copy2(run_path / "loss.parquet", run_path / "groups.parquet")
    with pytest.raises(InputError, match=r"groups\.parquet: it has "):
        run.sql("from groups")
    (run_path / "groups.parquet").unlink()
    with pytest.raises(InputError, match=r"groups\.parquet: it is missing"):
        run.sql("from groups")


@pytest.mark.parametrize("step", range(3))
def test_killed_while_a_table_is_replaced(tmp_path, monkeypatch, step):
    """The old table or the new one is there, and neither is refused."""
    run, _ = recorded(tmp_path / "run", 1, "events")
    wanted, name = run.events(), f"events/{part(run).name}"
    shutil.copy(part(run), run.path / "new")
    with open(run.path / "new", "r+b") as file:  # the same rows in other bytes
        import pyarrow.parquet as pq
        table = pq.read_table(file)
    pq.write_table(table, run.path / "new", compression="none")
    calls, replace = [], os.replace

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) > step:
            raise KeyboardInterrupt
        return replace(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            parts.replace_part(run.path, run.path / "new", name)
    assert len(calls) == step + 1
    assert open_run(run.path).events().equals(wanted)


def test_a_clock_of_another_run(tmp_path):
    """It is refused; without it UTC is by the start of the recording."""
    run, _ = recorded(tmp_path / "run", 1, "raw")
    other, _ = recorded(tmp_path / "other", 2, "raw")
    assert run.clock.utc_ns
    shutil.copy(other.path / "clock.json", run.path / "clock.json")
    with pytest.raises(InputError, match=r"clock\.json: it is not the one that was recorded"):
        run.utc(0)
    (run.path / "clock.json").unlink()
    assert run.clock.uncertainty_ns is None


@pytest.mark.parametrize("keep", ["raw", "events", "stats"])
def test_a_recording_json_of_another_run(tmp_path, run_cli, keep):
    """With the same settings."""
    board = FakeBoard().start().frames([(1, {0: 1})]).stop(9)
    for name in ("run", "other"):
        record(Device(FakeLink(board)), tmp_path / name, Settings(), keep=keep)
        assert run_cli("decode", tmp_path / name)[0] == 0
        time.sleep(0.002)
    shutil.copy(tmp_path / "other" / "recording.json", tmp_path / "run" / "recording.json")
    (tmp_path / "run" / "clock.json").unlink()
    status, _, err = run_cli("stats", tmp_path / "run")
    assert status == (0 if keep == "raw" else 2)
    assert "the recording has changed since (settings)" in err[0]


def test_another_stream_is_said(tmp_path, run_cli):
    """Of the same size, with blocks of the same board: nothing but the recording's end knows."""
    run, _ = recorded(tmp_path / "run", 1, "raw")
    other, _ = recorded(tmp_path / "other", 2, "raw")
    (run.path / "decode.json").unlink()
    shutil.copy(other.stream_path, run.stream_path)
    assert run.stream_size == other.stream_size
    status, _, err = run_cli("stats", run.path)
    assert (status, len(err)) == (0, 1)
    assert "stream.bin is not as it was recorded" in err[0]
    assert not run.stats()["complete"]
    shutil.copy(other.stream_path, run.path / "stream-00001.bin")
    assert "stream.bin is not" in run_cli("stats", run.path)[2][-1]
