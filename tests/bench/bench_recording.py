"""What recording costs on one core, by what is kept; and what a long recording does to memory and disk.

The source is at the link seam: COMPACT blocks of random events at a mean gap of 100 clocks of 10 ns, a million events a
second of board time; or frames of one event, 64 in a block. They come as fast as they are taken, and are made before
the clock starts: the figures are those of a recording's own process, without what a link's driver takes. Each is the
best of three. The blocks of the long recording are made while it goes on.
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from hypermon.host.device.device import Device
from hypermon.host.record.keep import KEEP
from hypermon.host.record.recorder import Moment, record

from tests.host.endless import EndlessLink


def resident_mib() -> int:
    """Of this process, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def recording_s(link: EndlessLink, path: Path, keep: str) -> tuple[float, int, int]:
    """Processor time for recording what the link has, its bytes, and bytes on the disk."""
    size = link.make_ahead()
    device = Device(link)
    begin = time.process_time()
    ledger = record(device, path, link.settings, keep=keep)
    spent = time.process_time() - begin
    assert (ledger.events, ledger.lost, ledger.stopped) == (link.events_a_round * link.round, 0, True)
    disk = folder_bytes(path)
    shutil.rmtree(path)
    return spent, size, disk


def ceilings(folder: Path, rounds: int, frames: int | None) -> None:
    kind = "COMPACT blocks" if frames is None else f"FRAMES blocks of {frames}"
    count = EndlessLink().events_a_round * rounds
    print(f"recording on one core: {count:,} events in {kind}")
    print("keep      M events/s   MB/s   of a core at 50 MB/s   bytes an event on disk")
    for keep in KEEP:
        spent, size, disk = min(recording_s(EndlessLink(rounds=rounds, frames=frames), folder / keep, keep)
                                for _ in range(3))
        print(f"{keep:8}  {count / spent / 1e6:10.1f}  {size / spent / 1e6:5.0f}   {50e6 * spent / size:20.2f}   "
              f"{disk / count:22.2f}", flush=True)


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

    ledger = record(Device(link), folder / "long", link.settings, progress=progress, **more)
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
        ceilings(Path(directory), options.rounds, None)
        ceilings(Path(directory), max(options.rounds // 16, 1), 64)
        long(Path(directory), options.minutes, {})
        long(Path(directory), options.minutes, {"ring_s": options.minutes * 6})


if __name__ == "__main__":
    main()
