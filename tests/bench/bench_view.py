"""How fast the timeline of a long run is: `hypermon view` of 100 M items by default.

Makes a run, starts the command, and asks for pictures as a page does: the first one, then stretches of all lengths at
random places. Prints times of the answers, before and after the items are counted, and the memory of the server.

With ``--states``, the run has events, and a dictionary by which two of them are a state. With ``--open N``, the run is
only opened, N times each: with the RUN's files in the page cache (*warm*) and not (*cold*); by a new command, and by a
server that runs already and has read nothing of the RUN. The time ends with the first picture of the whole run that has
counts of all items, and all states if there are any. ``--browser`` has Chromium draw it.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow.parquet as pq
from hypermon.host.analysis.semantic_tables import semantic_files
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.run import Run

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.made_run import IDS, made_events, made_run

_COMMAND = Path(sys.executable).with_name("hypermon")


#: States of the events of `made_events`: each pair of ids is one.
_BOOK = "".join(f'[{way}{k}]\nid = {k}\n{way} = "{("computing", "sending", "waiting", "storing")[k // 2 % 4]}"\n'
                for k in range(IDS) for way in (("begin", "end")[k % 2],))


def asked(url: str, path: str, **values: object) -> tuple[bytes, float]:
    """An answer, and its seconds."""
    begin = time.perf_counter()
    with urlopen(f"{url}timeline/{path}?{urlencode(values)}") as answer:
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


def picture_of(url: str, about: dict[str, object]) -> tuple[bytes, float]:
    """The picture of the whole run."""
    return asked(url, "picture", **{"from": about["begin_ps"], "to": about["end_ps"]}, columns=1500, first=0, lanes=64)


def full(url: str, states: bool) -> bytes:
    """Waits for the picture of the whole run that lacks nothing."""
    about = json.loads(asked(url, "run")[0])
    while True:
        picture = picture_of(url, about)[0]
        found = state(picture)
        if not found.get("estimated") and (found["spans"]["many"] or found["spans"]["rows"] or not states):
            return picture
        time.sleep(0.01)


def forget(run: Path) -> None:
    """Removes the files of a RUN from the page cache."""
    for path in run.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def drawn(url: str, states: bool, browser: object) -> float:
    """Seconds from opening the page to the picture that lacks nothing, in a browser."""
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    begin = time.perf_counter()
    page.goto(f"{url}timeline/", wait_until="commit")
    more = "[data-states]:not([data-states='']):not([data-states='0'])" if states else ""
    page.locator(f"#lanes[data-shows]:not([data-from='']):not([data-estimated='true']){more}").wait_for(timeout=120_000)
    seconds = time.perf_counter() - begin
    page.close()
    return seconds


def opened(run: Path, command: list[object], states: bool, browser: object) -> tuple[float, float]:
    """Seconds from the start of a command, and from the first request, to the picture that lacks nothing."""
    begun = time.perf_counter()
    server = subprocess.Popen([_COMMAND, *map(str, command), "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        url = re.search(r"http\S+", server.stdout.readline())[0]
        asks = time.perf_counter()
        if browser is not None:
            drawn(url, states, browser)
        else:
            full(url, states)
        return time.perf_counter() - begun, time.perf_counter() - asks
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=300)


def openings(run: Path, count: int, states: bool, browser: object = None) -> None:
    """Opens a RUN several times, and prints the times."""
    for what, command, which in (("new command", ["view", run], 0), ("server that runs", ["serve", "-b", run], 1)):
        for cold in (True, False):
            found = []
            for _ in range(count):
                if cold:
                    forget(run)
                found.append(opened(run, command, states, browser)[which])
            print(f"{what}, {'cold' if cold else 'warm'}{', in Chromium' if browser is not None else ''}: least "
                  f"{min(found):.2f} s, median {statistics.median(found):.2f} s, most {max(found):.2f} s", flush=True)


def told(run: Path) -> None:
    """Makes the states of a RUN, and says how many there are."""
    begun = time.perf_counter()
    keep_dictionary(Run(run), _book(run))
    files = semantic_files(Run(run))
    count = pq.read_metadata(files["states"]).num_rows
    print(f"{count:,} states, made in {time.perf_counter() - begun:.0f} s", flush=True)


def _book(run: Path) -> Path:
    path = run.with_name("states.toml")
    path.write_text(_BOOK)
    return path


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
    parser.add_argument("--states", action="store_true", help="events with states, of 16 nodes")
    parser.add_argument("--open", type=int, metavar="N", help="only open the run, N times each")
    parser.add_argument("--browser", action="store_true", help="with --open: in Chromium")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hypermon-") as folder:
        make = (lambda path, count: made_events(path, count, nodes=16)) if given.states else made_run
        run = given.run or make(Path(folder) / "run", round(given.items)).path
        if given.states and given.run is None:
            told(run)
        if given.open is None:
            measure(run, given.zooms, "first time")
            measure(run, given.zooms, "again")
        elif given.browser:
            from playwright.sync_api import sync_playwright

            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                openings(run, given.open, given.states, browser)
        else:
            openings(run, given.open, given.states)


if __name__ == "__main__":
    main()
