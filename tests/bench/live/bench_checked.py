"""How late `hypermon record --check` says a violation, at a rate of items: up to ten rules, each violated once.

    python tests/bench/live/bench_checked.py [--rate 1e5] [--seconds 8] [--rules 10]

A RUN is written as a board and a recorder would, in real time: a census every 10 ms. The process that judges reads it.
Prints for each rule the time from the census with which the violation is certain, as it was written, until the report
arrived; then the processor time of that process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3])]

from hypermon.hdl.layout import LATENCY, Window  # noqa: E402  (the path comes first)
from hypermon.host.record.process import hypermon_command  # noqa: E402
from hypermon.host.recording.info import RunInfo  # noqa: E402
from hypermon.host.recording.writer import RunWriter  # noqa: E402

from tests.host.fake_board import FakeBoard  # noqa: E402

#: Windows of 10 ns between two censuses.
_CENSUS = 1_000_000
#: Each node writes 0 to 7 in turn; node k omits a 2, once.
_RULES = {
    "period": 'event = { event = "nibble:2", nodes = [%(n)d] }\nevery = "%(turn)d ns"\ntolerance = "5 us"',
    "response": 'after = { event = "nibble:1", nodes = [%(n)d] }\nexpect = { event = "nibble:2", nodes = [%(n)d] }\n'
                'max = "%(most)d ns"',
    "precedence": 'event = { event = "nibble:3", nodes = [%(n)d] }\nneeds = { event = "nibble:2", nodes = [%(n)d] }\n'
                  'within = "%(most)d ns"',
    "duration": 'begin = { event = "nibble:1", nodes = [%(n)d] }\nend = { event = "nibble:2", nodes = [%(n)d] }\n'
                'max = "%(most)d ns"',
    "order": 'events = [{ event = "nibble:1", nodes = [%(n)d] }, { event = "nibble:2", nodes = [%(n)d] }, '
             '{ event = "nibble:3", nodes = [%(n)d] }]',
}


def rules(step: int, count: int) -> str:
    """Rules on the nodes from 0 on. ``step``: windows between two items."""
    text = ""
    for n in range(count):
        kind = list(_RULES)[n % len(_RULES)]
        values = {"n": n, "turn": 16 * 8 * step * 10, "most": 24 * step * 10}
        text += f'[[rule]]\nname = "{n}"\nkind = "{kind}"\n{_RULES[kind] % values}\n'
    return text


def pieces(step: int, seconds: float) -> list[tuple[float, bytes]]:
    """What is written, and after how many seconds of board time; and each rule's time of certainty, in ``due``."""
    board, found, row, at = FakeBoard(window=Window.CLOCK).start(), [], 0, 0
    while at < seconds * 1e8:
        rows = []
        while (stamp := 1000 + row * step) < at + _CENSUS:
            node, turn = row % 16, row // 16
            if node > 9 or turn != omitted(node, step, seconds):
                rows.append((stamp, {node: turn % 8}))
            row += 1
        at += _CENSUS
        board.frames(rows).census(time=at)
        found.append((at / 1e8, b"".join(board.blocks)))
        board.blocks.clear()
    board.stop(at)
    return [*found, (at / 1e8, b"".join(board.blocks))]


def omitted(node: int, step: int, seconds: float) -> int:
    """The turn in which a node omits its 2."""
    turns = seconds * 1e8 / (16 * step)
    return int(turns * (0.15 + 0.08 * node)) // 8 * 8 + 2


def certain_s(node: int, step: int, seconds: float) -> float:
    """The end of the census interval after the next 2, when all rules are decided."""
    stamp = 1000 + (16 * (omitted(node, step, seconds) + 8) + node) * step + LATENCY
    return (stamp // _CENSUS + 1) * _CENSUS / 1e8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1e5)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rules", type=int, default=10)
    asked = parser.parse_args()
    step = round(1e8 / asked.rate)
    written = pieces(step, asked.seconds)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "rules.toml").write_text(rules(step, asked.rules))
        run, arrived, ready = Path(name) / "run", {}, threading.Event()
        process = subprocess.Popen(hypermon_command("check", str(run), f"{name}/rules.toml", "--of", str(os.getpid())),
                                   stdout=subprocess.PIPE, text=True)

        def read() -> None:
            for line in process.stdout or ():
                report = json.loads(line)
                arrived[report.get("rule", "")] = time.monotonic()
                ready.set()

        reader = threading.Thread(target=read)
        reader.start()
        ready.wait()
        info = RunInfo("fake:", 16, 10**8, "1", LATENCY, 1)
        with RunWriter(run, info) as writer:
            begun, late = time.monotonic(), 0.0
            for at, data in written:
                late = max(late, time.monotonic() - begun - at)
                time.sleep(max(begun + at - time.monotonic(), 0))
                writer.append(data)
            writer.close(how="the end", duration_ps=round(1e12 * asked.seconds))
        reader.join()
        process.wait()
    lags = []
    for node in range(asked.rules):
        if str(node) not in arrived:
            print(f"{node} {list(_RULES)[node % len(_RULES)]:10}  was not said")
            continue
        lags.append(1000 * (arrived[str(node)] - begun - certain_s(node, step, asked.seconds)))
        print(f"{node} {list(_RULES)[node % len(_RULES)]:10} {lags[-1]:8.1f} ms")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{asked.rate:,.0f} items/s: at most {max(lags, default=0):.1f} ms, {used.ru_utime + used.ru_stime:.1f} s of "
          f"a processor for {asked.seconds:g} s, {used.ru_maxrss >> 10} MiB; the writer was late by at most "
          f"{1000 * late:.1f} ms")


if __name__ == "__main__":
    main()
