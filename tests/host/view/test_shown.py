"""What is shown of a run, in a browser: the legend, lanes that are pinned or hidden, the axis, the ends of the run."""

import random

import pytest

from tests.host.external.browsing import browser_page, served
from tests.host.telling import made_up
from tests.host.web.test_timeline_page import calm, go_to, picture, said_of


@pytest.fixture
def story(told):
    return told(made_up(random.Random(8), 4000))


def click_name(page, lane):
    box = page.locator("#lanes").bounding_box()
    lanes = 4 if lane >= 0 else 3
    page.mouse.click(box["x"] + 20, box["y"] + 32 + (box["height"] - 33) / lanes * (abs(lane) + 0.5))


#: Pixels of the canvas that differ from those before.
_PIXELS = """() => { const c = document.getElementById('lanes');
  const { data } = c.getContext('2d').getImageData(120, 33, c.width - 130, c.height - 34);
  let hash = 0;
  for (let k = 0; k < data.length; k += 1) hash = (hash * 31 + data[k]) | 0;
  return hash; }"""


def test_what_is_shown(story):
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        begin, end, _ = picture(page)
        page.locator("#legend button").first.wait_for()
        assert page.locator("#legend button").all_inner_texts() == ["it's a job", "phase", "job", "load"]

        # A state is hidden, and comes again.
        go_to(page, "from=0&span=60000000")
        before = page.evaluate(_PIXELS)
        page.locator("#legend button").nth(1).click()
        calm(page)
        assert page.locator("#legend button").nth(1).get_attribute("aria-pressed") == "false"
        assert page.evaluate(_PIXELS) != before
        assert "hide=s1" in page.url
        page.locator("#legend button").nth(1).press("Enter")
        page.mouse.move(5, 5)
        calm(page)
        assert page.evaluate(_PIXELS) == before

        # Lanes: pinned, hidden, and the link has it.
        calm(page)
        click_name(page, 2)
        page.locator("#menu button").get_by_text("Pin to the top").wait_for()
        assert page.inner_text("#menu strong") == "node 2"
        page.keyboard.press("Enter")
        calm(page)
        click_name(page, 0)
        assert page.inner_text("#menu strong") == "node 2"
        page.keyboard.press("Escape")
        click_name(page, 1)
        assert page.inner_text("#menu strong") == "node 0"
        page.locator("#menu button").get_by_text("Hide").click()
        calm(page)
        assert "pin=2" in page.url
        assert "off=0" in page.url
        other = page.context.browser.new_page(viewport={"width": 1366, "height": 768})
        other.goto(page.url)
        picture(other)
        other.locator("#legend button").get_by_text("Show 1 hidden node").wait_for()
        calm(other)
        click_name(other, -1)
        assert other.inner_text("#menu strong") == "node 1"
        other.locator("#menu button").get_by_text("Show all").click()
        calm(other)
        assert "off=" not in other.url
        other.close()

        # Moved, and a scale of its own; the link has it.
        page.keyboard.press("0")
        page.locator("#note").get_by_text("a full lane").wait_for()
        calm(page)
        before = page.evaluate(_PIXELS)
        click_name(page, -2)
        assert page.inner_text("#menu strong") == "node 3"
        page.locator("#menu button").get_by_text("Move up").click()
        page.locator("#menu button").get_by_text("Its own scale").click()
        calm(page)
        assert "order=2.3.1" in page.url
        assert "own=3" in page.url
        assert page.evaluate(_PIXELS) != before
        other = page.context.browser.new_page(viewport={"width": 1366, "height": 768})
        other.goto(page.url)
        picture(other)
        calm(other)
        click_name(other, -1)
        assert other.inner_text("#menu strong") == "node 3"
        other.locator("#menu button").get_by_text("Show all, in order").click()
        calm(other)
        assert "order=" not in other.url
        other.close()

        # Nothing beyond the run.
        page.keyboard.press("0")
        for _ in range(8):
            page.keyboard.press("s")
        for _ in range(8):
            page.keyboard.press("d")
        calm(page)
        assert picture(page)[1] - picture(page)[0] == pytest.approx(end - begin, rel=1e-3)
        assert picture(page)[0] == pytest.approx(begin, abs=(end - begin) / 50)
        for _ in range(12):
            page.keyboard.press("w")
        for _ in range(300):
            page.keyboard.press("d")
        calm(page)
        assert picture(page)[1] <= end + (end - begin) / 50


def test_only_some_nodes(story):
    """The menu of a node, and a list in the search; the menu is in sight however few lanes there are."""
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        picture(page)
        go_to(page, "off=0.1.3")
        box = page.locator("#lanes").bounding_box()
        page.mouse.click(box["x"] + 20, box["y"] + 50)
        last = page.locator("#menu button").get_by_text("Show all, in order")
        under = last.evaluate("(one) => { const { x, y, width, height } = one.getBoundingClientRect(); "
                              "return document.elementFromPoint(x + width / 2, y + height / 2) === one; }")
        assert under        # nothing cuts it off or covers it
        assert page.inner_text("#menu strong") == "node 2"
        go_to(page, "off=2")
        assert not page.is_visible("#menu")     # its node is hidden
        last = page.locator("#legend button").get_by_text("Show 1 hidden node")
        last.click()
        calm(page)
        click_name(page, 3)
        page.locator("#menu button").get_by_text("Show only this").click()
        calm(page)
        assert "only=3" in page.url
        page.locator("#legend button").get_by_text("Show 3 hidden nodes").wait_for()
        for text, shown, said in (("0-1,3", {"off=2"}, "3 of 4 nodes are shown"), ("only 2", {"only=2"}, "1 of 4"),
                                  ("7-9", {"only=2"}, "no such nodes; nodes are 0 to 3")):
            page.fill("#text", text)
            page.press("#text", "Enter")
            calm(page)
            assert {part for part in page.url.partition("#")[2].split("&") if part.startswith(("only", "off"))} == shown
            assert said in page.inner_text("#detail")
        other = page.context.browser.new_page(viewport={"width": 1366, "height": 768})
        other.goto(page.url)
        other.locator("#legend button").get_by_text("Show 3 hidden nodes").wait_for()


def test_the_page_is_as_large_as_the_window_of_a_laptop(told):
    """With 16 nodes: a search does not scroll it, and no panel makes it larger."""
    rows = [(step * 10**6 + node * 10**3, node, 3, b"", False) for step in range(40) for node in range(16)]
    story = told(rows, nodes=16)
    sizes = ("(({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight, scrollX, scrollY])"
             "(document.documentElement)")
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        picture(page)
        page.locator("#legend button").first.wait_for()
        for keys in ((), ("/", "phase of node 15", "Enter", "Escape"), ("Enter",), ("b", "Escape"), ("q", "Escape")):
            for key in keys:
                page.keyboard.type(key) if " " in key else page.keyboard.press(key)
            calm(page, 600)
            assert page.evaluate(sizes) == [1366, 768, 0, 0], keys
        strip = page.evaluate("[...document.querySelectorAll('#overview, #overview .uplot')].map((each) => "
                              "each.getBoundingClientRect().height)")
        assert 0 <= strip[0] - strip[1] <= 2


#: Texts of the canvas that are written over the number of lost items, while the page draws once.
_OVERPRINTED = """async () => {
  const { prototype } = CanvasRenderingContext2D, write = prototype.fillText, texts = [];
  prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text), left = { right: x - width, center: x - width / 2 }[this.textAlign] ?? x;
    const top = { top: y, middle: y - 5 }[this.textBaseline] ?? y - 9;
    texts.push({ text, left, right: left + width, top, bottom: top + 10 });
    write.call(this, text, x, y);
  };
  window.dispatchEvent(new Event('resize'));
  await new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 100)); });
  prototype.fillText = write;
  const lost = texts.filter(({ text }) => text.startsWith('lost'));
  const over = (one, other) => one !== other && one.text !== other.text && one.left < other.right - 1
    && other.left < one.right - 1 && one.top < other.bottom - 1 && other.top < one.bottom - 1;
  return [lost.length, lost.flatMap((one) => texts.filter((each) => over(one, each)).map(({ text }) => text))]; }"""


def test_no_text_is_over_the_number_of_lost_items(told):
    story = told(made_up(random.Random(8), 4000), [(1, 7, 10, 20), (3, 2, 100, 30000)])
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()
        seen = 0
        for stretch in ("", "from=0&span=4000000000", "from=70000000&span=60000000&own=3",
                        "from=60000000&span=40000000"):
            go_to(page, stretch)
            lost, over = page.evaluate(_OVERPRINTED)
            seen += lost
            assert over == [], stretch
        assert seen >= 3


def test_offsets_of_the_axis(story):
    """From a round time, where times have many digits."""
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        labels = """import('/web/kit/time.js').then(({ labels }) => {
          const { base, common, text } = labels(121800000000n, 50000000, 10000000);
          return [common, text(121840000000n), String(base)]; })"""
        assert page.evaluate(labels) == ["0.121\u202f5 s", "+340 us", "121500000000"]
        labels = "import('/web/kit/time.js').then(({ labels }) => { const { common, text } = labels(0n, 2e12, 2e11); " \
                 "return [common, text(200000000000n)]; })"
        assert page.evaluate(labels) == ["", "0.2 s"]
