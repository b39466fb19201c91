"""How fast the timeline of a long run is: `hypermon view` of 100 M items by default.

Makes a run, starts the command, and asks for pictures as a page does: the first one, then stretches of all lengths at
random places. Prints times of the answers, before and after the items are counted, and the memory of the server.
"""

import argparse
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.made_run import made_run

_COMMAND = Path(sys.executable).with_name("hypermon")


def asked(url: str, path: str, **values: object) -> tuple[bytes, float]:
    """An answer, and its seconds."""
    begin = time.perf_counter()
    with urlopen(f"{url}{path}?{urlencode(values)}") as answer:
        data = answer.read()
    return data, time.perf_counter() - begin


def state(picture: bytes) -> dict[str, object]:
    return json.loads(picture[4:4 + int.from_bytes(picture[:4], "little")])


def processor_s(process: int) -> float:
    """Processor seconds of a process so far."""
    values = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def zooms(url: str, about: dict[str, object], count: int, rng: random.Random) -> list[tuple[float, int]]:
    """Seconds and lengths of stretches."""
    begin, end = int(about["begin_ps"]), int(about["end_ps"])
    found = []
    for _ in range(count):
        span = round(10 ** rng.uniform(math.log10(about["clock_ps"] * 4), math.log10(end - begin)))
        at = rng.randint(begin, end - span)
        found.append((asked(url, "picture", **{"from": at, "to": at + span}, columns=1500, first=0, lanes=64)[1], span))
    return found


def measure(run: Path, count: int, label: str) -> None:
    begun = time.perf_counter()
    server = subprocess.Popen([_COMMAND, "view", run, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
    try:
        url = re.search(r"http\S+", server.stdout.readline())[0]
        ready = time.perf_counter() - begun
        about = json.loads(asked(url, "run")[0])
        picture, seconds = asked(url, "picture", **{"from": about["begin_ps"], "to": about["end_ps"]}, columns=1500,
                                 first=0, lanes=64)
        print(f"{label}: command to address {ready:.2f} s, first picture {seconds * 1000:.0f} ms "
              f"({state(picture)['counted']:.0%} counted), command to picture {time.perf_counter() - begun:.2f} s, of "
              f"processor time {processor_s(server.pid):.2f} s")
        rng = random.Random(1)
        early = zooms(url, about, count // 5, rng)
        while not state(asked(url, "overview", columns=1000)[0])["ready"]:
            time.sleep(0.1)
        print(f"{label}: ready {time.perf_counter() - begun:.2f} s after the command")
        for name, found in (("while it prepares", early), ("zooms", zooms(url, about, count, rng))):
            times = [seconds * 1000 for seconds, _ in found]
            worst = max(found)
            print(f"{label}: {name}: {len(times)}, median {statistics.median(times):.0f} ms, 99 % "
                  f"{statistics.quantiles(times, n=100)[98]:.0f} ms, longest {worst[0] * 1000:.0f} ms "
                  f"({worst[1] / 1e12:.3g} s shown)")
        found = [asked(url, "search", q=text, at=0)[1] * 1000 for text in ("f of node 3", "loss of node 5", "node 9")]
        print(f"{label}: searches {', '.join(f'{ms:.0f}' for ms in found)} ms")
        memory = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())
        print(f"{label}: memory at most {int(memory[1]) / 1024:.0f} MiB")
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=float, default=1e8)
    parser.add_argument("--zooms", type=int, default=300)
    parser.add_argument("--run", type=Path, help="a run that exists, instead of one that is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        run = given.run or made_run(Path(folder) / "run", round(given.items)).path
        measure(run, given.zooms, "first time")
        measure(run, given.zooms, "again")


if __name__ == "__main__":
    main()
