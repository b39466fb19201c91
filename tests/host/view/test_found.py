"""What a click, a search or the pointer found, in a browser: the card beside it, and the panel."""

import random
import re

import pytest

from tests.host.external.browsing import browser_page, fits, served
from tests.host.telling import made_up
from tests.host.web.test_timeline_page import calm, go_to, picture, said_of

#: A laptop's window.
WIDE, TALL = 1366, 768
LEFT = 96


@pytest.fixture
def story(told):
    return told(made_up(random.Random(8), 6000), [(1, 7, 10, 20), (3, 2, 100, 30000)])


def at(page, time_ps):
    """The place of a time, in pixels of the window."""
    begin, end, _ = picture(page)
    box = page.locator("#lanes").bounding_box()
    return box["x"] + LEFT + (time_ps - begin) / (end - begin) * (box["width"] - LEFT), box


def in_sight(page, name):
    box = page.locator(name).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= WIDE
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= TALL
    return box


def beginning(page):
    """Shows the first 40 us."""
    go_to(page, "from=0&span=40000000")


def search(page, text):
    page.fill("#text", text)
    page.press("#text", "Enter")
    calm(page, 500)


def beside(page, time_ps):
    """The card is in sight, and near the place of that time."""
    x, _ = at(page, time_ps)
    box = in_sight(page, "#card")
    assert min(abs(box["x"] - x), abs(box["x"] + box["width"] - x)) < 20
    return page.inner_text("#card").split("\n")


def test_what_was_found_is_in_sight(story):
    rows = [row for row in story.sql("select * from framed order by time_ps").to_arrow_table().to_pylist()
            if row["name"] == "begin" and row["node"] == 2 and not row["aborted"]]
    states = story.states().to_pylist()
    with served(story.path, command="view", said=said_of(story)) as address, \
            browser_page(address, color_scheme="light") as page:
        page.set_viewport_size({"width": WIDE, "height": TALL})
        beginning(page)
        picture(page)
        page.locator("#legend button").first.wait_for()
        in_sight(page, "#panel")
        assert not page.is_visible("#card")

        # A search: an item with its fields, a state, a message, a loss.
        for _ in range(2):
            search(page, "begin of node 2")
        said = beside(page, rows[1]["time_ps"])
        assert said[0] == "node 2: begin"
        for name in ("time", "job", "payload"):
            assert name in said
        assert said[said.index("job") + 1] == str(rows[1]["job"])
        in_sight(page, "#panel")
        assert f"job\n{rows[1]['job']}" in page.inner_text("#fields")
        marked = page.evaluate(_MARKED)
        assert marked > 20      # the frame around it
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        calm(page)
        assert not page.is_visible("#card")
        assert page.evaluate(_MARKED) < marked - 20
        page.keyboard.press("c")
        beginning(page)
        search(page, "state phase of node 1")
        phase = next(row for row in states if row["node"] == 1 and row["name"] == "phase")
        said = beside(page, phase["begin_ps"])
        assert said[0] == "node 1: phase"
        assert said[said.index("to") + 1] == "not seen"     # a loss comes first
        assert (phase["end_ps"], phase["lost_ps"] is None) == (None, False)
        search(page, "receive of node 2 from node 3")
        assert {"from", "sent", "received", "latency"} <= set(page.inner_text("#card").split("\n"))
        search(page, "loss of node 3")
        assert page.inner_text("#card").startswith("node 3: lost 2")

        # The pointer, then a click.
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.keyboard.press("c")
        beginning(page)
        x, box = at(page, phase["begin_ps"])
        bands = box["y"] + 32 + (box["height"] - 33) / 4
        for y in range(round(bands), round(bands + (box["height"] - 33) / 4), 3):
            page.mouse.move(x + 2, y)
            if page.is_visible("#card") and page.inner_text("#card").startswith("node 1: phase\nfrom"):
                break
        assert "duration" in beside(page, phase["begin_ps"])
        page.mouse.down()
        page.mouse.up()
        page.mouse.move(5, 5)
        calm(page)
        beside(page, phase["begin_ps"])
        assert page.inner_text("#detail").startswith("node 1: phase")

        # The address has it.
        other = page.context.browser.new_page(viewport={"width": WIDE, "height": TALL})
        other.goto(page.url)
        other.locator("#card").wait_for()
        assert other.inner_text("#card") == page.inner_text("#card")
        other.close()


def test_a_search_lists_its_hits(story):
    phases = story.sql("select begin_ps from states where name = 'phase' and node = 1 order by 1").fetchall()
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        page.set_viewport_size({"width": WIDE, "height": TALL})
        picture(page)
        page.locator("#legend button").first.wait_for()
        search(page, "state phase of node 1")
        in_sight(page, "#side")
        assert page.locator("#hits-list li").count() == 150
        assert page.inner_text("#hits-title") == f"150 of {len(phases)} hits"
        assert page.inner_text("#hits-list [aria-current]").endswith("node 1: phase")
        told = page.locator("#hits-list button").all_inner_texts()
        assert all(re.fullmatch(r"[\d.\s]+ s \((unknown|not seen|[\d.\s]+ [mun]?s|0 ps)\) node 1: phase", each)
                   for each in told)
        assert any("(unknown)" in each for each in told)

        # The longest of the run first; what is not known comes last.
        def ps(text):
            found = re.search(r"\(([\d.\s]+) (us|ms|ns|ps)\)", text)
            return -1 if found is None else round(float(re.sub(r"\s", "", found[1])) * {
                "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}[found[2]])
        page.locator("#hits-sort").click()
        calm(page)
        longest = page.locator("#hits-list button").all_inner_texts()
        own = [row for row in story.states().to_pylist() if (row["node"], row["name"]) == (1, "phase")]
        took = sorted((row["end_ps"] - row["begin_ps"] if row["lost_ps"] is None and row["end_ps"] is not None else -1
                       for row in own), reverse=True)
        assert list(map(ps, longest)) == took[:200]
        assert page.inner_text("#hits-title") == f"{len(own)} hits"
        assert page.inner_text("#hits-note") == ""
        page.locator("#hits-list button").first.click()
        calm(page)
        assert page.inner_text("#hits-list [aria-current]") == longest[0]
        duration = re.search(r"\((.+)\)", longest[0])[1]
        assert page.inner_text("#detail").endswith(f"duration {duration}")
        page.locator("#hits-sort").click()
        calm(page)
        assert page.inner_text("#hits-list [aria-current]") == longest[0]
        page.keyboard.press("c")
        go_to(page, "from=0&span=40000000")
        search(page, "state phase of node 1")
        assert page.locator("#hits-list button").all_inner_texts() == told
        page.locator("#hits-list button").nth(7).click()
        calm(page)
        beside(page, phases[7][0])
        assert f"a={phases[7][0]}" in page.url
        page.keyboard.press("n")
        calm(page)
        where = "[...document.querySelectorAll('#hits-list button')].findIndex((b) => b.hasAttribute('aria-current'))"
        assert page.evaluate(where) == 8
        page.keyboard.press("0")
        page.keyboard.press("c")
        go_to(page, "from=0&span=40000000&a=900000000000")
        search(page, "state phase of node 1")
        assert "from the beginning of the run again" in page.inner_text("#detail")
        # Keys zoom about the hit; about the centre, if it is out of sight.
        hit = int(re.search(r"[#&]a=(\d+)", page.url)[1])
        begin, end, _ = picture(page)
        page.keyboard.press("Escape")       # from the field of the search
        page.keyboard.press("w")
        calm(page)
        closer, until, _ = picture(page)
        assert until - closer == pytest.approx(.6 * (end - begin), rel=.01)
        assert (hit - closer) / (until - closer) == pytest.approx((hit - begin) / (end - begin), abs=.01)

        # The list and the line at the foot are of this picture.
        hidden = page.locator("#hits").is_hidden
        assert not hidden()
        strip = page.locator("#overview").bounding_box()
        page.mouse.move(strip["x"] + strip["width"] * .8, strip["y"] + 20)
        page.mouse.down()
        page.mouse.move(strip["x"] + strip["width"] * .9, strip["y"] + 20, steps=4)
        page.mouse.up()
        calm(page)
        assert hidden()
        search(page, "phas of node 9")
        assert page.inner_text("#detail") == "search: there is no node 9; nodes are 0 to 3"
        assert not page.is_visible("#side")
        go_to(page, "from=0&span=40000000")
        assert "node 9" not in page.inner_text("#detail")
        search(page, "state phase of node 1")
        assert not hidden()
        go_to(page, "from=0&span=50000000")
        assert hidden()
        for theme in ("light", "dark"):
            while page.inner_text("#theme").split()[-1] != theme:
                page.locator("#theme").click()
        search(page, "state phase")
        for width in (1366, 400):
            fits(page, width, 768)


def test_a_search_keeps_the_filter_of_nodes(story):
    """N, Shift+N and a click on a hit visit shown nodes only; the list has the number of the others."""
    rows = [row[0] for row in story.sql("select node from framed where name = 'begin'").fetchall()]
    own = sum(node in (1, 3) for node in rows)
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()
        search(page, "only 1,3")
        search(page, "begin")
        page.keyboard.press("Escape")
        for key in ("n", "n", "Shift+N", "n", "n"):
            page.keyboard.press(key)
            calm(page)
            assert "off=0.2" in page.url
            assert page.inner_text("#detail").split(":")[0] in ("node 1", "node 3")
        listed = page.locator("#hits-list button").all_inner_texts()
        assert {re.search(r"node \d", text)[0] for text in listed} == {"node 1", "node 3"}
        assert page.inner_text("#hits-title") == f"{len(listed)} of {own:,} hits"
        assert f"Not listed: {len(rows) - own:,} on hidden nodes." in page.inner_text("#hits-note")
        page.locator("#hits-list button").nth(9).click()
        calm(page)
        assert "off=0.2" in page.url

        # Other nodes: the list follows. None of these has a hit: the page says where there are some.
        page.keyboard.press("Escape")
        page.locator("#legend button").get_by_text("Show 2 hidden nodes").click()
        calm(page)
        assert page.inner_text("#hits-title").endswith(f" of {len(rows):,} hits")
        assert "hidden" not in page.inner_text("#hits-note")
        search(page, "only 2")
        search(page, "loss")
        assert page.inner_text("#detail") == "loss: none on the nodes that are shown, 2 on hidden nodes"
        assert "only=2" in page.url

        # The longest of all, not of those that are listed.
        page.locator("#legend button").get_by_text("Show 3 hidden nodes").click()
        search(page, "state it's a job")
        page.locator("#hits-sort").click()
        calm(page)
        longest = story.sql("select node, begin_ps from states where name = 'it''s a job' and lost_ps is null "
                            "and end_ps is not null order by end_ps - begin_ps desc, begin_ps limit 1").fetchall()[0]
        assert page.inner_text("#hits-title").startswith("200 of ")
        assert page.inner_text("#hits-note") == "These are the longest ones."
        assert f"node {longest[0]}: it's a job" in page.locator("#hits-list button").first.inner_text()
        page.locator("#hits-list button").first.click()
        calm(page)
        assert int(re.search(r"[#&]a=(\d+)", page.url)[1]) == longest[1]


#: Pixels of the canvas that have the colour of a frame.
_MARKED = """async () => {
  const { colour } = await import('/web/kit/colours.js'), canvas = document.getElementById('lanes');
  const [r, g, b] = colour('accent').match(/[\\d.]+/g).map(Number);
  const { data } = canvas.getContext('2d').getImageData(0, 14, canvas.width, canvas.height - 14);
  let n = 0;
  for (let k = 0; k < data.length; k += 4) n += data[k] === r && data[k + 1] === g && data[k + 2] === b;
  return n; }"""


def test_names_are_texts(told, tmp_path):
    """Of a dictionary that somebody else wrote."""
    from hypermon.host.dictionary.run_dictionary import keep_dictionary

    run = told(made_up(random.Random(8), 300))
    evil = "<img src=x onerror=alert(1)>"
    book = (run.path / "dictionary.toml").read_text().replace('"phase"', f'"{evil}"') + f'[nodes]\n2 = "{evil}2"\n'
    (tmp_path / "evil.toml").write_text(book)
    keep_dictionary(run, tmp_path / "evil.toml")
    with served(run.path, command="view", said=said_of(run)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()     # states are made after the first picture
        search(page, "state <img")
        assert evil in page.inner_text("#card")
        assert evil in page.inner_text("#detail")
        assert page.locator("img").count() == 0
