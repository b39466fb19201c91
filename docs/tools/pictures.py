"""Takes the pictures of the pages with Chromium: ``make docs OF=pictures``. Needs Debian's package `chromium`.

docs/pictures/timeline.png is the time line of the demo's program, recorded by a host that is too slow now and then: a
fiftieth of the run, with the first losses at its end. docs/pictures/two-picos.png is that of docs/first-picture.md.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from hypermon.host import open_run
from hypermon.host.text.output import set_up

__all__: list[str] = []

ROOT = Path(__file__).parents[2]
WORK, PICTURES = ROOT / ".build" / "pictures", ROOT / "docs" / "pictures"
HYPERMON = Path(sys.executable).with_name("hypermon")
#: Bytes per second at which the host reads: some of the program's generations are too much.
_RATE = "1.6e6"
#: What is shown: this part of the run, and where in it the first loss is.
_PART, _WHERE = 50, 0.7


def recorded() -> Path:
    """A run of the demo's program with losses, and with names."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run = WORK / "run"
    subprocess.run([sys.executable, "-m", "hypermon.sim.demo", "-o", WORK / "demo"], check=True)
    subprocess.run([HYPERMON, "sim", WORK / "demo" / "life.csv", "-o", run, "--drain-rate", _RATE], check=True)
    names = ROOT / "node" / "life.toml"
    subprocess.run([HYPERMON, "decode", run, "--framing", "event", "--dictionary", names], check=True)
    return run


def picos() -> Path:
    """The run of docs/first-picture.md, from the example's programs."""
    stimulus, run = WORK / "picos.csv", WORK / "picos"
    program = ROOT / "tests" / "node" / "emulators" / "two_picos.py"
    with open(stimulus, "w") as file:
        subprocess.run([sys.executable, program, "60"], check=True, stdout=file)
    subprocess.run([HYPERMON, "record", "-b", f"sim:{stimulus}", "-o", run, "--config", "extended", "--mode", "event"],
                   check=True)
    names = ROOT / "examples" / "two_picos" / "picos.toml"
    subprocess.run([HYPERMON, "decode", run, "--dictionary", names], check=True)
    return run


def timeline(run: Path, chromium: str) -> None:
    [(first, end)] = open_run(run).sql(
        "select (select min(from_ps) from loss), (select max(time_ps) from events)").fetchall()
    if first is None:
        sys.exit(f"make docs OF=pictures: nothing was lost at {_RATE} bytes per second; the picture shows a loss")
    span = end // _PART
    picture(run, "timeline.png", first - int(_WHERE * span), span, chromium)


def picture(run: Path, name: str, begin_ps: int, span_ps: int, chromium: str, height: int = 800) -> None:
    """The time line of a part of a run."""
    from playwright.sync_api import sync_playwright

    serving = subprocess.Popen([HYPERMON, "view", run, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        address = next(word for line in serving.stdout for word in line.split() if word.startswith("http://"))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": height}, color_scheme="light")
            page.goto(f"{address}#from={begin_ps}&span={span_ps}")
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(3000)
            page.screenshot(path=PICTURES / name)
            browser.close()
    finally:
        serving.terminate()
        serving.wait()


def main() -> None:
    set_up()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("make docs OF=pictures: chromium is missing. On Debian: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    timeline(recorded(), chromium)
    picture(picos(), "two-picos.png", 0, 30 * 10**9, chromium, 400)


if __name__ == "__main__":
    main()
