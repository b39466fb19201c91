"""A RUN is opened by its overview before its tables are checked, and what needs their rows waits for the check."""

import errno
import os
import random
import threading
from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypermon.host import cli
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.errors import HypermonError
from hypermon.host.recording import parts
from hypermon.host.run import Run
from hypermon.host.tables import parquet
from hypermon.host.view import counts, picture, tables
from hypermon.host.view.picture import Check, Pictures

from tests.host.fake_board import FakeBoard, random_run
from tests.host.telling import BOOK, made_up
from tests.host.web.test_timeline_tab import unpacked
from tests.patience import patience


@pytest.fixture
def long_run(make_run, monkeypatch):
    """A RUN of many row groups with an overview. `hypermon decode` wrote both."""
    monkeypatch.setattr(parquet, "_GROUP", 300)
    monkeypatch.setattr(picture, "_SINGLE", 300)
    run = make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.1))
    assert cli._run(["decode", str(run.path)]) == 0
    assert (run.path / counts.OVERVIEW).exists()
    # A process that has not read the tables yet.
    monkeypatch.setattr(parts, "_READ", {})
    return Run(run.path)


def whole(pictures):
    return pictures.picture(pictures.begin_ps, pictures.end_ps, 20, range(16))


def done(pictures):
    pictures.prepare()
    pictures._thread.join(timeout=patience(30))
    assert pictures.ready


def silent_damage(path):
    """Another byte, and the time that the file had."""
    status, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_the_first_picture_reads_no_table_of_items(long_run, monkeypatch):
    read = []
    checksum = parts.checksum
    monkeypatch.setattr(parts, "checksum", lambda path: read.append(path.name) or checksum(path))
    row_group = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group",
                        lambda self, *given, **more: read.append("rows") or row_group(self, *given, **more))
    pictures = Pictures(long_run)
    first, overview = whole(pictures), pictures.overview(30)
    assert set(read) <= {"loss.parquet", "rows"}
    assert read.count("rows") == 1                  # of the overview
    assert b'"estimated":false' in first
    done(pictures)
    assert "part-00000.parquet" in read
    assert not pictures.trouble
    # The same pictures without the overview.
    (long_run.path / counts.OVERVIEW).unlink()
    other = Pictures(long_run)
    done(other)
    assert [each[-20 * 16 * 4:] for each in (whole(pictures), whole(other))] == [first[-20 * 16 * 4:]] * 2
    assert other.overview(30)[-240:] == overview[-240:]
    other.close()
    pictures.close()


def test_rows_are_read_after_the_check(long_run):
    pictures = Pictures(long_run)
    found = []
    span = (pictures.end_ps - pictures.begin_ps) // 1000
    asks = threading.Thread(target=lambda: found.append(
        pictures.picture(pictures.begin_ps, pictures.begin_ps + span, 10, range(16))))
    asks.start()
    asks.join(timeout=0.3)
    assert not found
    done(pictures)
    asks.join(timeout=patience(30))
    assert b'"items"' in found[0]
    pictures.close()


def test_tables_with_silent_damage_are_made_anew(long_run):
    silent_damage(sorted((long_run.path / "events").iterdir())[0])
    pictures = Pictures(long_run)
    first = whole(pictures)
    done(pictures)
    assert not pictures.trouble
    assert np.array_equal(*(np.frombuffer(each[-20 * 16 * 4:], "<f4") for each in (first, whole(pictures))))
    assert pictures.tables.ask("select count(*) from items") == [(pictures.counts.rows,)]
    pictures.close()


def test_damaged_tables_that_cannot_be_made_anew_are_not_used(long_run, monkeypatch):
    silent_damage(sorted((long_run.path / "events").iterdir())[0])
    pictures = Pictures(long_run)
    monkeypatch.setattr(picture, "item_files", lambda run: (_ for _ in ()).throw(HypermonError("it is damaged")))
    done(pictures)
    assert pictures.trouble == "it is damaged"
    with pytest.raises(HypermonError, match="it is damaged"):
        pictures.tables.ask("select count(*) from items")
    pictures.close()


@pytest.mark.parametrize("change", ["names", "tables"])
def test_a_picture_has_the_names_of_its_states(told, monkeypatch, change):
    """The states become known, or the tables of a whole run replace the growing ones, while it is made."""
    run = told(made_up(random.Random(4), 300))
    own, other = Pictures(Run(run.path)), Pictures(Run(run.path))
    losses = own.tables.losses

    def meanwhile(*asked):
        known = own if change == "names" else other
        known.tables.tell(own.begin_ps, own.end_ps)
        own.tables = known.tables
        return losses(*asked)

    monkeypatch.setattr(own.tables, "losses", meanwhile)
    answer, _ = unpacked(own.picture(own.begin_ps, own.end_ps, 20, range(4)))
    assert len(answer["names"]) == (2 if change == "names" else 0)
    assert {row[5] for row in answer["spans"]["rows"]} == set(range(len(answer["names"])))
    for pictures in (own, other):
        pictures.close()


@pytest.mark.parametrize("seed", range(3))
def test_states_are_the_same_from_the_overview_and_from_the_tables(told, monkeypatch, seed):
    """Equal numbers for random stretches of random runs: by the overview alone, all of its file, and just made."""
    monkeypatch.setattr(tables, "MANY", 10)
    monkeypatch.setattr(picture, "_SINGLE", 300)
    rng = random.Random(seed)
    run = told(made_up(rng, 8000), losses=[])
    made = Pictures(run)
    done(made)
    assert (run.path / tables.STATES_OVERVIEW).exists()
    assert made.tables.states > 1000
    length, = made.tables._lengths[:1]
    assert length.values.sum() == sum(
        max(row["end_ps"] or row["lost_ps"] or made.end_ps, row["begin_ps"]) - row["begin_ps"]
        for row in run.states().to_pylist())
    first = Pictures(Run(run.path))
    read = Pictures(Run(run.path))
    done(read)
    for columns in (1, 7, 30):
        for _ in range(15):
            span = rng.randrange(2 * length.bin_ps * columns + 1, 3 * (made.end_ps - made.begin_ps))
            begin = rng.randrange(made.begin_ps - span // 2, made.end_ps)
            assert all(each.tables.spans(begin, begin + span, range(4), columns, each.end_ps)["many"]
                       for each in (made, first, read))
            found = [each.tables.shares(begin, begin + span, range(4), columns, each.end_ps)
                     for each in (made, first, read)]
            assert [kinds for kinds, _ in found] == [found[0][0]] * 3
            assert first.tables.names == read.tables.names == made.tables.names
            assert all(np.array_equal(shares, found[0][1]) for _, shares in found)
    begin = made.begin_ps
    for span in np.geomspace(3000, made.end_ps - begin, 20).astype(int).tolist():
        one, two = (each.picture(begin, begin + span, 30, range(4)) for each in (made, read))
        assert one == two
    for each in (made, first, read):
        each.close()


def test_states_of_other_tables_are_made_again(told, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "MANY", 10)
    monkeypatch.setattr(picture, "_SINGLE", 300)
    run = told(made_up(random.Random(1), 3000))
    done(Pictures(run))
    before = (run.path / tables.STATES_OVERVIEW).read_bytes()
    assert Pictures(Run(run.path)).tables.names
    (tmp_path / "book.toml").write_text(BOOK.replace('"phase"', '"step"'))
    keep_dictionary(run, tmp_path / "book.toml")
    again = Pictures(Run(run.path))
    assert not again.tables.names
    done(again)
    assert "step" in again.tables.names
    assert (run.path / tables.STATES_OVERVIEW).read_bytes() != before
    # Its file is damaged.
    (run.path / tables.STATES_OVERVIEW).write_bytes(before[:-100])
    last = Pictures(Run(run.path))
    assert not last.tables.names
    done(last)
    assert whole(last)[-400:] == whole(again)[-400:]


def test_a_run_that_cannot_be_written(told, monkeypatch):
    """Overviews are made for each start, and the pictures are the same."""
    monkeypatch.setattr(tables, "MANY", 10)
    run = told(made_up(random.Random(2), 3000))
    found = []
    for writable in (False, True):
        if not writable:
            monkeypatch.setattr("hypermon.host.view.bins.aside", unwritable)
            monkeypatch.setattr(counts, "aside", unwritable)
        pictures = Pictures(Run(run.path))
        done(pictures)
        assert not pictures.trouble
        found.append(whole(pictures))
        assert (run.path / tables.STATES_OVERVIEW).exists() == (run.path / counts.OVERVIEW).exists() == writable
        monkeypatch.undo()
        monkeypatch.setattr(tables, "MANY", 10)
    assert found[0] == found[1]


@contextmanager
def unwritable(run):
    raise OSError(errno.EROFS, "Read-only file system")
    yield


def test_a_check():
    told = []
    check = Check(lambda: told.append(1))
    threading.Timer(0.05, check.ends).start()
    check.passed()
    assert told == [1]
    check.passed()
    assert told == [1]
