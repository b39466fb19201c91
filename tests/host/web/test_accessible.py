"""Pages in a browser as axe-core sees them, which is no program of ours: no serious fault, light and dark."""

import random

import pytest

from tests.host.external.browsing import browser_page, served
from tests.host.telling import made_up
from tests.node.emulators.rp2040 import npm_package
from tests.programs import MissingError

from .test_timeline_page import calm, picture, said_of

#: What the page shows when it is judged: keys that lead there.
STATES = {"at first": (), "keys": ("?",), "an item": ("/", "node 3", "Enter"), "an interval": ("i",), "a note": ("b",),
          "a query": ("q",), "figures": ("Enter",)}


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core."""
    try:
        return (npm_package("axe-core") / "axe.min.js").read_text()
    except MissingError as missing:
        pytest.skip(str(missing))


def faults(page, axe: str) -> list:
    """Those that axe-core calls serious or critical."""
    page.evaluate(axe)
    found = page.evaluate("axe.run().then((said) => said.violations.map((one) => "
                          "[one.impact, one.id, one.nodes.map((node) => node.html.slice(0, 200))]))")
    return [one for one in found if one[0] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_time_line_has_no_serious_fault(told, axe: str, scheme: str) -> None:
    story = told(made_up(random.Random(8), 600), [(1, 7, 10, 20), (3, 2, 100, 3000)])
    with served(story.path, command="view", said=said_of(story)) as address, \
            browser_page(address, color_scheme=scheme) as page:
        picture(page)
        for state, keys in STATES.items():
            page.reload()
            calm(page, 500)
            for key in keys:
                page.keyboard.type(key) if " " in key else page.keyboard.press(key)
            calm(page)
            assert faults(page, axe) == [], state
        page.evaluate("document.querySelector('h1').style.color = '#888888'")     # a fault, to see one
        page.evaluate("document.querySelector('header').style.background = '#777777'")
        assert [one[1] for one in faults(page, axe)] == ["color-contrast"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_live_page_has_no_serious_fault(told, axe: str, scheme: str) -> None:
    story = told(made_up(random.Random(8), 600), [(1, 7, 10, 20), (3, 2, 100, 3000)])
    with served("-b", story.path) as address, browser_page(address, color_scheme=scheme) as page:
        page.locator("#state").wait_for()
        calm(page, 1000)
        assert faults(page, axe) == []
        page.keyboard.press("?")
        calm(page)
        assert faults(page, axe) == []
