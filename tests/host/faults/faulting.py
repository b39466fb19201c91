"""Commands in processes whose disk fails. Run as a program, with ``disk.c`` preloaded; one case per line of input.

A case is JSON: ``work`` (arguments of ``hypermon``, or the name of a recording below), ``folder`` that fails, ``kind``
(write, fsync, rename, close), ``at``, ``error``, ``lasting``. The answer is JSON: exit status or what ended the
process, its output as hexadecimal digits, its lines on standard error, and how many calls of the kind there were.
"""

import ctypes
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from pathlib import Path

import duckdb  # noqa: F401  (loaded once, before processes fork)
from hypermon.host import cli
from hypermon.host.cli import (  # noqa: F401
    analyse,
    dictionary,
    live,
    progress_line,
    record,
    runs,
    several_boards,
)
from hypermon.host.device.device import Device
from hypermon.host.device.settings import Settings
from hypermon.host.errors import HypermonError
from hypermon.host.export import formats  # noqa: F401
from hypermon.host.record.recorder import record as record_board
from hypermon.host.report import report  # noqa: F401

from tests.host.fake_board import FakeBoard, FakeLink, random_run

#: Seconds after which a command hangs.
_HANGS_S = 120.0
_LIBRARY = ctypes.CDLL(None)


def _recording(**options):
    def run(path: str) -> int:
        board = random_run(FakeBoard(), random.Random(4), 60)
        try:
            record_board(Device(FakeLink(board, piece=500)), Path(path), Settings(), **options)
        except HypermonError as error:
            print(f"hypermon: {error}", file=sys.stderr)
            return error.status
        return 0

    return run


#: Recordings of a fake board.
RECORDINGS = {"record": _recording(), "record-ring": _recording(ring_s=2e-6),
              "record-events": _recording(keep="events"), "record-stats": _recording(keep="stats"),
              "record-registers": _recording(drain="registers")}


def _command(work) -> int:
    if isinstance(work, list):
        return cli._run(work)
    name, _, path = work.partition(":")
    return RECORDINGS[name](path)


def _child(case, said: int, told: int) -> None:
    os.dup2(said, 1)
    os.dup2(told, 2)
    sys.argv = ["hypermon"]
    _LIBRARY.set_fault(case["kind"].encode(), case["folder"].encode(), ctypes.c_long(case["at"]), case["error"],
                       int(case["lasting"]))
    status = 99
    try:
        status = _command(case["work"])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    # What a writer that is forgotten says at its end is part of the output.
    import gc
    gc.collect()
    sys.stderr.flush()
    count = min(_LIBRARY.fault_count(), 1 << 30)
    _LIBRARY.set_fault(b"-", b"", 0, 0, 0)
    os.write(told, f"\n{status} {count}".encode())
    os._exit(0)


def _run(case):
    (out, said), (err, told) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(case, said, told)
    os.close(said)
    os.close(told)
    texts, until = {out: b"", err: b""}, time.monotonic() + _HANGS_S
    open_ends = [out, err]
    while open_ends and time.monotonic() < until:
        for end in select.select(open_ends, [], [], 1)[0]:
            if piece := os.read(end, 1 << 16):
                texts[end] += piece
            else:
                open_ends.remove(end)
    if open_ends:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(out)
    os.close(err)
    lines, _, last = texts[err].decode(errors="replace").rpartition("\n")
    status, count = (int(word) for word in last.split()) if not open_ends and last else ("it hangs or died", 0)
    return {"status": status, "count": count, "out": texts[out].hex(), "lines": lines.splitlines()}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
