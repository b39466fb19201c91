"""Takes the pictures of the pages with Chromium: ``make docs OF=pictures``. Needs Debian's package `chromium`.

docs/pictures/timeline.png is the timeline of the demo's program, recorded by a host that is too slow now and then: a
twenty-fifth of the run, the first loss in the middle. live.png and report.png are the live view and the report of the
same run. two-picos.png is the timeline of docs/first-picture.md. Each has at most 256 colours.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from hypermon.host import open_run
from hypermon.host.text.output import set_up

__all__: list[str] = []

ROOT = Path(__file__).parents[2]
WORK, PICTURES = ROOT / ".build" / "pictures", ROOT / "docs" / "pictures"
HYPERMON = Path(sys.executable).with_name("hypermon")
#: Bytes per second at which the host reads: the first rate at which it loses at most this share. The program is as fast
#: as the machine lets it be, so no single rate fits.
_RATES, _SHARE = [*range(1_600_000, 4_000_000, 100_000)], 0.08
#: What is shown: this part of the run, and where in it the first loss is.
_PART, _WHERE = 25, 0.5


def run_in_work(*command: str | Path, out: str | None = None) -> None:
    """Runs a command in the work folder, because pages show names of files. ``out``: file for what it prints."""
    with open(WORK / out, "w") if out else nullcontext() as file:
        subprocess.run(command, check=True, cwd=WORK, stdout=file)


def recorded() -> Path:
    """A run of the demo's program with some losses, and with names."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run_in_work(sys.executable, "-m", "hypermon.sim.demo", "-o", "demo")
    share = 1.0
    for rate in _RATES:
        if share <= _SHARE:
            break
        shutil.rmtree(WORK / "life", ignore_errors=True)
        run_in_work(HYPERMON, "sim", "demo/life.csv", "-o", "life", "--drain-rate", str(rate))
        figures = open_run(WORK / "life").stats()
        share = figures["lost"] / (figures["events"] + figures["lost"])
    if share == 0:
        sys.exit(f"make docs OF=pictures: no rate up to {_RATES[-1]} bytes per second loses just a few items")
    run_in_work(HYPERMON, "decode", "life", "--framing", "event", "--dictionary", ROOT / "node" / "life.toml")
    return Path("life")


def picos() -> Path:
    """The run of docs/first-picture.md, from the example's programs."""
    run_in_work(sys.executable, ROOT / "tests" / "node" / "emulators" / "two_picos.py", "60", out="picos.csv")
    run_in_work(HYPERMON, "record", "-b", "sim:picos.csv", "-o", "picos", "--config", "extended", "--mode", "event")
    run_in_work(HYPERMON, "decode", "picos", "--dictionary", ROOT / "examples" / "two_picos" / "picos.toml")
    return Path("picos")


def timeline(run: Path, chromium: str) -> None:
    [(first, end)] = open_run(WORK / run).sql(
        "select (select min(from_ps) from loss), (select max(time_ps) from events)").fetchall()
    span = end // _PART
    with served("view", run) as address:
        picture(f"{address}#from={first - int(_WHERE * span)}&span={span}", "timeline.png", chromium)


@contextmanager
def served(command: str, *args: str | Path) -> Iterator[str]:
    """The address of a page that a command of `hypermon` serves."""
    serving = subprocess.Popen([HYPERMON, command, *args, "--port", "0"], cwd=WORK, stdout=subprocess.PIPE,
                               text=True)
    try:
        assert serving.stdout is not None
        yield next(word for line in serving.stdout for word in line.split() if word.startswith("http://"))
    finally:
        serving.terminate()
        serving.wait()


def picture(address: str, name: str, chromium: str, height: int = 800, heading: str = "") -> None:
    """What a browser shows at an address, from a heading on, with few colours, so that the file is small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": height}, color_scheme="light")
        page.goto(address)
        page.wait_for_load_state("load" if name == "live.png" else "networkidle")
        page.wait_for_timeout(3000)
        if heading:
            page.get_by_role("heading", name=heading).evaluate("found => found.scrollIntoView()")
        page.screenshot(path=WORK / name)
        browser.close()
    with Image.open(WORK / name) as taken:
        taken.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE).save(PICTURES / name, optimize=True)


def main() -> None:
    set_up()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("make docs OF=pictures: chromium is missing. On Debian: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    run = recorded()
    timeline(run, chromium)
    with served("serve", "-b", run) as address:
        picture(address, "live.png", chromium)
    run_in_work(HYPERMON, "report", run, "-o", "report.html")
    picture((WORK / "report.html").as_uri(), "report.png", chromium, heading="Nodes over time")
    with served("view", picos()) as address:
        picture(f"{address}#from=0&span={30 * 10**9}", "two-picos.png", chromium, 400)


if __name__ == "__main__":
    main()
