"""What the board of soc.v saw: the bytes of its stream, as they came, become a recording, and that its events.

``python examples/decode.py stream.bin run``, and then all of `hypermon` can be had: `hypermon stats run`.
"""

import sys
from pathlib import Path

from hypermon.hdl.layout import LATENCY
from hypermon.host import open_run
from hypermon.host.recording import RunInfo, RunWriter


def recorded(stream: Path, run: Path) -> None:
    """A recording of two nodes at 100 MHz, in windows of one clock."""
    with RunWriter(run, RunInfo(f"file:{stream}", nodes=2, clock_hz=100_000_000, window="1", latency=LATENCY,
                                epoch=1)) as writer:
        writer.append(stream.read_bytes())
        writer.close(how="decoded")


if __name__ == "__main__":
    stream, run = map(Path, sys.argv[1:])
    recorded(stream, run)
    for row in open_run(run).events().sort_by("time_ps").to_pylist():
        print(f"{row['time_ps'] // 1000:8} ns  node {row['node']}  {row['nibble']}")
