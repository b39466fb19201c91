"""Marks of the drift in a RUN: written bit by bit, read as far as they make sense."""

import struct

from hypermon.hdl.layout import MarkSource
from hypermon.host.recording.drift_log import DRIFT, DriftLog, load_drift

LATE, EARLY = MarkSource.SYNC_LATE, MarkSource.SYNC_EARLY


def test_what_was_added_is_read(tmp_path):
    assert load_drift(tmp_path) is None
    log = DriftLog(tmp_path)
    log.add([])
    assert len(load_drift(tmp_path)) == 0
    log.add([(LATE, 0, 1000)])
    log.add([(EARLY, 1, 2**40), (LATE, 5, 2**40 + 7)])
    assert load_drift(tmp_path).tolist() == [(1000, 0, LATE), (2**40, 1, EARLY), (2**40 + 7, 5, LATE)]
    assert (tmp_path / DRIFT).read_bytes()[:16] == struct.pack("<qII", 1000, 0, LATE)


def test_damage_is_left_out(tmp_path):
    rows = [(1000, 0, LATE), (-5, 1, LATE), (2000, 1, 77), (900, 2, LATE), (3000, 3, EARLY), (3000, 4, LATE),
            (2**62, 5, LATE), (4000, 6, LATE)]
    (tmp_path / DRIFT).write_bytes(b"".join(struct.pack("<qII", *row) for row in rows) + b"torn")
    assert [row[0] for row in load_drift(tmp_path).tolist()] == [1000, 3000, 4000]


def test_of_many_marks_some_are_kept(tmp_path):
    """All of the first; then as many as show how a crystal wanders."""
    log = DriftLog(tmp_path)
    clocks = [1000 + (k << 17) for k in range(1000)]
    for k, clock in enumerate(clocks):
        log.add([(LATE, k, clock)])
    assert [row[0] for row in load_drift(tmp_path).tolist()] == clocks[:64] + clocks[67::4]
