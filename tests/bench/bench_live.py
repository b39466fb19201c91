"""What a page of `hypermon serve` costs a recording at 50 MB/s that it watches.

A board with an event each 30 ns on the mean, at the pace of its own time, is recorded by one process, which makes its
blocks too; `hypermon serve` reads the recording, and a client its messages, as a page does. The folder should be in
memory, so that no disk is measured.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "host" / "endless.py"
_COMMAND = Path(sys.executable).with_name("hypermon")


def processor_s(process: subprocess.Popen[str] | None) -> float:
    """Processor time of a process so far."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def watch(url: str, seconds: float) -> int:
    """Messages that a page gets."""
    import aiohttp

    count, until = 0, time.monotonic() + seconds
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as page:
        while time.monotonic() < until:
            await page.receive(timeout=30)
            count += 1
    return count


def measure(run: Path, watched: bool, seconds: float) -> None:
    """Records, with or without a page, and prints a line."""
    recorder = subprocess.Popen([sys.executable, _SOURCE, run, "gap=3", "paced=1"], text=True)
    stream = run / "stream.bin"
    while not stream.exists():
        time.sleep(0.05)
    server = url = None
    if watched:
        server = subprocess.Popen([_COMMAND, "serve", "-b", run, "--port", "0"], stdout=subprocess.PIPE, text=True)
        url = re.search(r"http(://\S+)", server.stdout.readline())[1]
    time.sleep(2)
    size, spent, served, begin = stream.stat().st_size, processor_s(recorder), processor_s(server), time.monotonic()
    if server:
        messages = asyncio.run(watch(f"ws{url}live", seconds))
    else:
        messages = 0
        time.sleep(seconds)
    took = time.monotonic() - begin
    rate = (stream.stat().st_size - size) / took / 1e6
    spent, served = processor_s(recorder) - spent, processor_s(server) - served
    for process in filter(None, (recorder, server)):
        process.send_signal(signal.SIGINT)
        process.wait(60)
    stats = json.loads(subprocess.check_output([_COMMAND, "stats", run, "--json"]))
    print(f"{'yes' if watched else 'no':<6}{rate:>7.1f}{spent / took:>20.2f}{served / took:>8.2f}{messages:>10}"
          f"{stats['events'] / 1e6:>15.1f}{stats['lost']:>6}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6)
    memory = Path("/dev/shm")
    parser.add_argument("--folder", type=Path, default=memory if memory.is_dir() else None, help="1 GB (in memory)")
    args = parser.parse_args()
    print("page     MB/s  recorder and source  server  messages  events, million  lost      (cores)")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for turn in range(4):
            measure(Path(folder) / f"run-{turn}", turn % 2 == 1, args.seconds)


if __name__ == "__main__":
    main()
