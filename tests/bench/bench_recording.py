"""What recording costs on one core, by what is kept; and what a long recording does to memory and disk.

The source is at the link seam: COMPACT blocks of random events at a mean gap of 100 clocks of 10 ns, a million events a
second of board time, as fast as they are taken. What making them costs is taken off.
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "host"))

from endless import EndlessLink
from hypermon.hdl.layout import Sink, Window
from hypermon.host.device import Device, Settings
from hypermon.host.keeping import KEEP
from hypermon.host.recorder import Moment, record

SETTINGS = Settings(window=Window.CLOCK, sink=Sink.EXTENDED)


def resident_mib() -> int:
    """Of this process, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def making_s(rounds: int) -> tuple[float, int]:
    """Processor time for the blocks alone, and their bytes."""
    link, size = EndlessLink(rounds=rounds), 0
    link.write(link.by_name["CONTROL"], 2)
    begin = time.process_time()
    while not link.ended:
        size += len(link.stream(1 << 20))
    return time.process_time() - begin, size


def ceilings(folder: Path, rounds: int) -> None:
    alone, size = making_s(rounds)
    count = EndlessLink().events_a_round * rounds
    print(f"recording on one core, {count:,} events, {size:,} bytes")
    print("keep      M events/s   MB/s   of a core at 50 MB/s   bytes an event on disk")
    for keep in KEEP:
        begin = time.process_time()
        ledger = record(Device(EndlessLink(rounds=rounds)), folder / keep, SETTINGS, keep=keep)
        spent = time.process_time() - begin - alone
        assert (ledger.events, ledger.lost, ledger.stopped) == (count, 0, True)
        disk = folder_bytes(folder / keep) / count
        print(f"{keep:8}  {count / spent / 1e6:10.1f}  {size / spent / 1e6:5.0f}   {50e6 * spent / size:20.2f}   "
              f"{disk:22.2f}", flush=True)
        shutil.rmtree(folder / keep)


def long(folder: Path, minutes: float, more: dict[str, float]) -> None:
    """Says how it goes ten times."""
    link, shown = EndlessLink(), 0.0
    link.limit_to(int(minutes * 60e8 / link.windows_a_round))
    begin = time.perf_counter()
    name = "all" if not more else f"the last {more['ring_s'] / 60:g} minutes"
    print(f"{minutes:g} minutes of board time at 1 M events/s, raw, {name} kept")
    print("board time   events          memory, MiB   disk, MB   seconds")

    def progress(moment: Moment) -> None:
        nonlocal shown
        now = link.windows / 60e8
        if now >= shown:
            shown += minutes / 10
            print(f"{now:6.1f} min   {moment.ledger.events:14,}   {resident_mib():11,}   "
                  f"{folder_bytes(folder / 'long') / 1e6:8,.0f}   {time.perf_counter() - begin:7.1f}", flush=True)

    ledger = record(Device(link), folder / "long", SETTINGS, progress=progress, **more)
    print(f"{link.windows / 60e8:6.1f} min   {ledger.events:14,}   {resident_mib():11,}   "
          f"{folder_bytes(folder / 'long') / 1e6:8,.0f}   {time.perf_counter() - begin:7.1f}   {ledger.lost} lost")
    shutil.rmtree(folder / "long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of 115,200 events")
    parser.add_argument("--minutes", type=float, default=2, help="of board time")
    parser.add_argument("--folder", type=Path, help="on a disk with room: 140 MB a minute")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as directory:
        ceilings(Path(directory), options.rounds)
        long(Path(directory), options.minutes, {})
        long(Path(directory), options.minutes, {"ring_s": options.minutes * 6})


if __name__ == "__main__":
    main()
