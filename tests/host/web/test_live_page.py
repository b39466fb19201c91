"""The live page of a recording, in a browser."""

import random

import pytest
from hypermon.host.export.formats import export

from tests.host.external.browsing import browser_page, has_state, served
from tests.host.fake_board import FakeBoard, random_run

#: Of what is read, against what it stands on: relative luminances, as WCAG 2.2 defines contrast.
_CONTRAST = """() => {
  const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = (e) => { const c = getComputedStyle(e).backgroundColor;
    return c === 'rgba(0, 0, 0, 0)' && e.parentElement ? ground(e.parentElement) : c; };
  return [...document.querySelectorAll('h1, h2, p, th, td, button, label, #spans span')]
    .filter((e) => e.offsetParent && e.innerText.trim() && !e.disabled).map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), e.outerHTML.slice(0, 80)]; }).sort((x, y) => x[0] - y[0])[0]; }"""


@pytest.fixture(scope="module")
def made():
    return random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000)


def test_a_recording(make_run, made, tmp_path):
    """One that grows, and ends."""
    run = make_run(made, data=made.data[:20_000], end=False)
    with served("-b", run.path) as address, browser_page(address, color_scheme="light") as page:
        has_state(page, "being recorded")
        with open(run.path / "stream.bin", "ab") as file:
            file.write(made.data[20_000:])
        has_state(page, "ended")
        assert page.title() == f"HYPERMON: {run.path}"
        lost = sum(made.refused.values())
        assert page.inner_text("#items") == f"{sum(made.delivered.values()):,}"
        assert page.inner_text("#lost") == f"{lost:,}"
        cells = page.locator("#nodes tbody tr").nth(5).locator("td")
        assert cells.nth(0).inner_text().strip() == "5"
        assert cells.nth(2).inner_text() == f"{made.delivered[5]:,}"
        losses = [(node, n) for kind, rows in made.kinds if kind == 3 for node, n, *_ in rows]
        shown = page.locator("#losses tbody tr").all_inner_texts()
        assert [tuple(map(int, text.split("\t")[:2])) for text in shown] == losses[-50:][::-1]
        assert page.locator("canvas").count() >= 3
        assert page.inner_text("#rate").endswith("/s on average")
        assert page.inner_text("#scale").startswith("a band is")
        band = page.locator("#chart .u-over").bounding_box()
        page.mouse.move(band["x"] + band["width"] / 2, band["y"] + band["height"] * 5.5 / 16)
        assert page.inner_text("#scale").startswith("node 5: ")
        assert not page.is_visible("#start")

        # By keyboard alone.
        for key, span in (("1", "1"), ("+", "1"), ("-", "10"), ("5", "1000000000")):
            page.keyboard.press(key)
            assert page.locator("#spans input:checked").get_attribute("value") == span
        page.keyboard.press("?")
        assert page.is_visible("#keys")
        page.keyboard.press("h")
        assert page.get_attribute("#hold", "aria-pressed") == "true"
        page.keyboard.press("Tab")
        reached = set()
        for _ in range(40):
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.type"))
            page.keyboard.press("Tab")
        assert {"perfetto", "theme", "help", "hold", "all", "radio", "checkbox"} <= reached

        with page.expect_download() as download:
            page.keyboard.press("p")
        export(run, "perfetto", str(tmp_path / "own.pftrace"))
        assert download.value.suggested_filename == "run.pftrace"
        assert download.value.path().read_bytes() == (tmp_path / "own.pftrace").read_bytes()

        grounds = []
        for theme in ("light", "dark"):
            while page.inner_text("#theme").split()[-1] != theme:
                page.keyboard.press("t")
            contrast, where = page.evaluate(_CONTRAST)
            assert contrast >= 4.5, where
            grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.screenshot(path=tmp_path / f"{theme}.png")
        assert grounds[0] != grounds[1]
