"""A time that a user types, in a browser: in the search and in the fields of the cursors."""

import random
import re

import pytest

from tests.host.external.browsing import browser_page, served
from tests.host.telling import made_up
from tests.host.web.test_timeline_page import calm, go_to, picture, said_of


@pytest.fixture
def story(told):
    return told(made_up(random.Random(8), 4000))


def cursor(page, name):
    found = re.search(rf"[#&]{name}=(-?\d+)", page.url)
    return None if found is None else int(found[1])


def test_a_time_is_typed(story):
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        begin, end, _ = picture(page)
        about = page.evaluate("fetch('run').then((said) => said.json())")
        first, last = int(about["begin_ps"]), int(about["end_ps"])
        parsed = "import('/web/kit/time.js').then(({ timeOf }) => %s.map((text) => String(timeOf(text, 100n, 1100n))))"
        texts = ["1 ms", "0.097 2 s", "166us", "\u22122 ns", "25 %", "7", "x ms", "1 h", "1.5 ps"]
        assert page.evaluate(parsed % texts) == [
            "1000000000", "97200000000", "166000000", "-2000", "350", "null", "null", "null", "2"]

        # The search: from the zero of the axis, or a part of the run; the picture goes there.
        go_to(page, "from=0&span=40000000")
        for text, time in (("1 ms", 10**9), ("0.0012 s", 12 * 10**8), ("500 us", 5 * 10**8),
                           ("25 %", first + (last - first + 2) // 4)):
            page.fill("#text", text)
            page.press("#text", "Enter")
            calm(page)
            assert cursor(page, "a") == pytest.approx(time, abs=1)
            begin, end, _ = picture(page)
            assert begin < time < end
            assert "cursor A is at 0.00" in page.inner_text("#detail")
        page.fill("#text", "99 s")
        page.press("#text", "Enter")
        calm(page)
        assert "after the end of the run" in page.inner_text("#detail")
        assert cursor(page, "a") == pytest.approx(time, abs=1)

        # The fields: Enter sets, Escape restores, a text that is no time is one line.
        page.fill("#cursor-a", "1 ms")
        page.press("#cursor-a", "Enter")
        page.fill("#cursor-b", "1.5 ms")
        page.press("#cursor-b", "Enter")
        calm(page)
        assert (cursor(page, "a"), cursor(page, "b")) == (10**9, 15 * 10**8)
        assert page.inner_text("#between") == "B \u2212 A = 500 us"
        page.fill("#cursor-a", "soon")
        page.press("#cursor-a", "Enter")
        assert page.inner_text("#detail").startswith("cursor A: 'soon' is not a time")
        assert page.get_attribute("#cursor-a", "aria-invalid") == "true"
        page.press("#cursor-a", "Escape")
        assert page.input_value("#cursor-a").split() == ["0.001", "000", "000", "000", "s"]
        assert page.get_attribute("#cursor-a", "aria-invalid") is None
        assert cursor(page, "a") == 10**9
        page.fill("#cursor-b", "")
        page.press("#cursor-b", "Enter")
        calm(page)
        assert cursor(page, "b") is None
