"""The live page in a browser: served by a process, looked at in Debian's Chromium."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.host.external.readers import needs
from tests.patience import in_time, patience

__all__ = ["browser_page", "fits", "has_state", "served"]


@contextmanager
def served(*arguments: object, command: str = "serve", said: str = "") -> Iterator[str]:
    """The address of ``hypermon serve``, or another command; it must end well, and say this on standard error."""
    process = subprocess.Popen([sys.executable, "-c", "from hypermon.host.cli import main; main()", command, "--port",
                                "0", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=patience(60))
    assert (process.returncode, told[1]) == (0, said)


@contextmanager
def browser_page(address: str, **options: object) -> Iterator[object]:
    """The page; fails if it complains, or asks for anything that is not from there."""
    chromium = needs("chromium")
    api = pytest.importorskip("playwright.sync_api")
    faults = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless"])
        page = browser.new_page(viewport={"width": 1300, "height": 900}, **options)
        page.on("pageerror", lambda error: faults.append(str(error.stack or error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith((address, "data:", "blob:")) else
                faults.append(request.url))
        page.set_default_timeout(1000 * patience(30))
        page.goto(address)
        yield page
        browser.close()
    assert not faults, "; ".join(faults)


def has_state(page: object, text: str) -> None:
    """Waits until the page says so. (Its policy lets no text be run as a program: no ``wait_for_function``.)"""
    page.locator(f"#state:text-is({text!r})").wait_for()


def fits(page: object, width: int, height: int = 900, within: float = 10) -> None:
    """Gives the window a size, and waits until nothing is wider: charts follow their place a moment later."""
    page.set_viewport_size({"width": width, "height": height})
    began = time.monotonic()
    while (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
        in_time(began, within, f"{wide} pixels to fit a window of {width}")
        time.sleep(0.05)
