"""Small parts of links and of recordings of several boards, at their bounds."""

from collections import deque
from types import SimpleNamespace

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.link.uart import _parse
from hypermon.host.link.usb import UsbLink
from hypermon.host.record import several_boards


@pytest.mark.parametrize(("query", "legal"), [
    ("timeout=3599.9", True), ("timeout=3600", False), ("timeout=0", False), ("timeout=0.001", True), ("baud=1", True),
    ("baud=0", False), ("baud=-1", False), ("speed=1", False), ("timeout=nan", False)])
def test_options_of_a_serial_port(query, legal):
    if legal:
        path, baud, timeout = _parse(f"uart:/dev/port?{query}")
        assert (path, f"baud={baud}" == query or f"timeout={timeout:g}" == query) == ("/dev/port", True)
    else:
        with pytest.raises(HypermonError, match="it is uart:DEVICE"):
            _parse(f"uart:/dev/port?{query}")


# ------------------------------------------------------------------------------------ USB transfers

COMPLETED, STALL, CANCELLED, ERROR = range(4)


class Transfer:
    """One that has ended."""

    def __init__(self, status, data):
        self.status, self.data, self.submitted = status, data, 0

    def getStatus(self):  # noqa: N802
        return self.status

    def getActualLength(self):  # noqa: N802
        return len(self.data)

    def getBuffer(self):  # noqa: N802
        return self.data + b"of an earlier one"

    def submit(self):
        self.submitted += 1


@pytest.mark.parametrize(("status", "again", "failed", "stalled"), [
    (COMPLETED, 1, False, False), (STALL, 0, False, True), (CANCELLED, 0, False, False), (ERROR, 0, True, False)])
@pytest.mark.parametrize("before", ["", "_closing", "_failed", "_stalled"])
def test_transfers_that_end(status, again, failed, stalled, before):
    """What they bring is kept, however they end; they go on only if nothing speaks against it."""
    link = UsbLink.__new__(UsbLink)
    link._arrived, link._closing, link._failed, link._stalled = deque(), False, False, False
    link._usb1 = SimpleNamespace(TRANSFER_COMPLETED=COMPLETED, TRANSFER_STALL=STALL, TRANSFER_CANCELLED=CANCELLED,
                                 USBError=OSError)
    if before:
        setattr(link, before, True)
    transfer = Transfer(status, b"data")
    link._came(transfer)
    link._came(Transfer(status, b""))
    assert list(link._arrived) == [b"data"]
    assert transfer.submitted == (0 if before else again)
    assert (link._failed, link._stalled) == (failed or before == "_failed", stalled or before == "_stalled")


# ------------------------------------------------------------------------------------ several boards

def test_the_end_takes_no_longer_for_several_than_for_one(monkeypatch):
    """Those that have begun share the time; one that has not is given less; none any after a second Ctrl-C."""
    now = [100.0]
    monkeypatch.setattr(several_boards.time, "monotonic", lambda: now[0])
    given = []

    class Recorder:
        def __init__(self, begun, takes, interrupted=False):
            self.begun, self.takes, self.interrupted, self.stopped = begun, takes, interrupted, False
            self.figures = {"events": 1} if begun else {}

        def stop(self):
            self.stopped = True

        def close(self, patience_s):
            assert all(one.stopped for one in recorders)
            given.append(patience_s)
            now[0] += min(self.takes, patience_s)
            if self.interrupted:
                self.interrupted = False
                raise KeyboardInterrupt

    monkeypatch.setattr(several_boards, "_has_begun", lambda recorder: recorder.begun)
    recorders = [Recorder(True, 5), Recorder(False, 5), Recorder(True, 30), Recorder(True, 1)]
    several_boards._end(recorders)
    assert given == [20, 1, 14, 0]
    given.clear()
    recorders = [Recorder(True, 5), Recorder(True, 5, interrupted=True), Recorder(True, 5)]
    several_boards._end(recorders)
    assert given == [20, 15, 0, 0]
