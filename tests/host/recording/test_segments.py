"""What a power cut leaves of a recording, and what a full or broken disk does to one."""

import errno
import io
import json
import os
import random
import re
from pathlib import Path

import pytest
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import InputError
from hypermon.host.record.recorder import CutShortError, record
from hypermon.host.recording import segments
from hypermon.host.recording.segments import (
    DiskFullError,
    SegmentWriter,
    StorageError,
    storage,
    sync_directory,
    write_json,
)
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run


@pytest.fixture
def steps(monkeypatch):
    """What is made safe, renamed and removed, in order, by name."""
    seen = []

    def named(verb, real, which=0):
        def call(*arguments, **more):
            what = arguments[which]
            path = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else str(what)
            name = os.path.basename(path)
            seen.append((verb, re.sub(r"\.[0-9a-f]{16}\.new$", "", name)))
            return real(*arguments, **more)
        return call

    monkeypatch.setattr(os, "fsync", named("sync", os.fsync))
    monkeypatch.setattr(os, "replace", named("replace", os.replace, 1))
    monkeypatch.setattr(os, "rename", named("rename", os.rename, 1))
    monkeypatch.setattr("pathlib.Path.unlink", named("unlink", Path.unlink))
    return seen


def test_a_replaced_file_is_safe_with_its_name(tmp_path, steps):
    write_json(tmp_path / "told.json", {"a": 1})
    assert steps == [("sync", ".told.json"), ("replace", "told.json"), ("sync", tmp_path.name)]


def test_a_new_segment_is_safe_with_its_name(tmp_path, steps):
    """And what comes before it in a ring goes only when the rest is safe."""
    writer = SegmentWriter(tmp_path, ring_ps=1000)
    writer.append(b"one")
    writer.begin(10_000, {"n": 1})
    assert steps == [("sync", "stream.bin"), ("sync", tmp_path.name), ]
    steps.clear()
    writer.append(b"two")
    writer.begin(20_000, {"n": 2})
    assert steps == [
        ("sync", "stream-00001.bin"), ("sync", tmp_path.name), ("sync", ".ring.json"), ("replace", "ring.json"),
        ("sync", tmp_path.name), ("unlink", "stream.bin")]
    ring = json.loads((tmp_path / "ring.json").read_text())
    assert (ring["first"], ring["account"]) == (1, {"n": 1})
    writer.close()


def test_file_systems_that_cannot_sync_a_directory(tmp_path, monkeypatch):
    for number, passes in ((errno.EINVAL, True), (errno.EIO, False)):
        def fail(descriptor, number=number):
            raise OSError(number, os.strerror(number))
        monkeypatch.setattr(os, "fsync", fail)
        if passes:
            sync_directory(tmp_path)
        else:
            with pytest.raises(OSError, match="Input/output"):
                sync_directory(tmp_path)


def test_tables_are_safe_before_it_is_said_that_they_are_there(make_run, steps):
    run = make_run(random_run(FakeBoard(2), random.Random(1), 4))
    steps.clear()
    run.decode()
    told = steps.index(("replace", "decode.json"))
    for name in ("part-00000.parquet", "loss.parquet", "events", run.path.name):
        assert ("sync", name) in steps[:told], name
    assert steps.index(("sync", "part-00000.parquet")) < steps.index(("rename", "events"))
    assert ("sync", run.path.name) in steps[told:]


@pytest.mark.parametrize("keep", ["events", "stats"])
def test_what_is_kept_is_safe_before_it_is_said_that_it_is_there(tmp_path, steps, keep):
    record(Device(FakeLink(random_run(FakeBoard(2), random.Random(1), 4))), tmp_path / "run", Settings(), keep=keep)
    ends = [number for number, step in enumerate(steps) if step == ("replace", "decode.json")]
    assert ("sync", ".loss.parquet.new") in steps[:ends[-1]]
    if keep == "events":
        assert ("sync", "part-00000.parquet") in steps[:ends[-1]]
        assert ("sync", "events") in steps[:ends[-1]]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE])
def test_the_kinds_of_bad_disks(tmp_path, number):
    full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    with pytest.raises(StorageError, match="the disk is full" if full else "the disk cannot be written") as said, \
            storage(tmp_path):
        raise OSError(number, os.strerror(number))
    assert isinstance(said.value, DiskFullError) == full


class Disk:
    """A disk on which the n-th write, sync or new name fails, and after it all of that kind.

    Parameters
    ----------
    number : of the error. ``good``: how many come before it fails.
    recovers : from the failure on, only so many fail: somebody has made room.
    """

    def __init__(self, monkeypatch, number, good, recovers=None):
        self.number, self.good, self.recovers, self.failed = number, good, recovers, 0
        self.on = True
        for name in ("fsync", "replace"):
            monkeypatch.setattr(os, name, self.failing(getattr(os, name)))
        disk = self

        class File(io.FileIO):
            def write(self, data):
                disk.step()
                return super().write(data)

        def opened(path, mode="r", *more, **options):
            return File(path, "x") if mode == "xb" else open(path, mode, *more, **options)

        monkeypatch.setattr(segments, "open", opened, raising=False)

    def step(self):
        if not self.on:
            return
        self.good -= 1
        if self.good < 0 and (self.recovers is None or self.failed < self.recovers):
            self.failed += 1
            raise OSError(self.number, os.strerror(self.number))

    def failing(self, real):
        def call(*arguments):
            self.step()
            return real(*arguments)
        return call


OPTIONS = [{}, {"segment_bytes": 2000}, {"ring_s": 0.001}, {"keep": "events"}, {"keep": "stats"},
           {"drain": "registers"}]


def meet(tmp_path, monkeypatch, number, good, recovers, options):
    """A recording on a bad disk: it ends in one line, and what can be read of it is true."""
    made = random_run(FakeBoard(), random.Random(5), 30, losses=0.4)
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr("hypermon.host.record.recorder._SYNC_S", 0.0)
        patched.setattr("hypermon.host.record.keep._CHECKPOINT_S", 0.0)
        disk, said = Disk(patched, number, good, recovers), None
        try:
            record(Device(FakeLink(made, piece=900)), run, Settings(), **options)
        except (CutShortError, StorageError) as error:
            said = error
    assert bool(disk.failed) == (said is not None)
    if said is None:
        return False
    assert "the disk is full" in str(said) or "the disk cannot be written" in str(said)
    assert "\n" not in str(said)
    if isinstance(said, StorageError):      # before anything was captured
        assert not run.exists()
        return True
    assert said.status == 3
    opened = open_run(run)
    end = opened.info.end
    done = opened.decode()
    whole = made.events()
    # It ended properly only if nothing but the very last sync of its name has failed.
    assert end is None or not end["proper"] or done["stopped"]
    assert end is None or not end["all_written"] or done["stopped"]
    assert done["events"] <= len(whole)
    if options.get("keep") == "events" and "events/part-00000.parquet" not in done["parts"]:
        with pytest.raises(InputError, match="before any items were kept"):
            opened.events()
        assert done["events"] == 0
    elif options.get("keep") != "stats":
        rows = [tuple(row.values()) for row in opened.events().to_pylist()]
        at = whole.index(rows[0]) if rows else 0
        assert rows == whole[at:at + len(rows)]
        assert at == 0 or "ring_s" in options
    if not done["stopped"]:
        assert not opened.stats()["complete"]
    return True


@pytest.mark.parametrize("options", OPTIONS)
def test_a_disk_that_fails_at_some_moment(tmp_path, monkeypatch, options):
    rng = random.Random(str(options))
    met = 0
    for trial in range(6):
        (tmp_path / str(trial)).mkdir()
        met += meet(tmp_path / str(trial), monkeypatch, rng.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT]),
                    rng.randrange(60), rng.choice([None, None, 1]), options)
    assert met


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("recovers", [None, 1, 2])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_at_many_moments(tmp_path, monkeypatch, options, recovers, number):
    """At the first write, and later and later, until the recording comes to its end before."""
    rng = random.Random(f"{options}{recovers}{number}")
    good = 0
    while True:
        (tmp_path / str(good)).mkdir()
        if not meet(tmp_path / str(good), monkeypatch, number, good, recovers, options):
            break
        good += rng.randint(1, 7)
    assert good > 50
