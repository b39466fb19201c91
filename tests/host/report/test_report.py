"""Reports: pages that need nothing else and say what the other commands say."""

import base64
import io
import math
import random
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from hypermon.host.analysis.distributions import distributions_of
from hypermon.host.analysis.stats import duration_text
from hypermon.host.cli import cli
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.report.report import report_html, write_report
from PIL import Image

from tests.host.external.browsing import fits
from tests.host.external.readers import needs
from tests.host.fake_board import FakeBoard
from tests.host.telling import made_up
from tests.host.web.test_live_page import _CONTRAST


class Page(HTMLParser):
    """Titles, rows of cells and pictures of a page; fails if it asks for something outside."""

    def __init__(self, text: str):
        super().__init__()
        self.titles: list[str] = []
        self.rows: list[list[str]] = []
        self.pictures: list[ET.Element] = []
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        assert tag not in ("script", "link", "iframe")
        assert "href" not in values
        self._in = tag
        if tag == "img":
            kind, data = values["src"].split(",", 1)
            assert kind == "data:image/svg+xml;base64"
            assert values["alt"]
            svg = base64.b64decode(data)
            assert not re.search(rb"(?:href|src)=\"(?!#|data:)|url\((?!#)", svg)
            self.pictures.append(ET.fromstring(svg))
        elif tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self._in == "h2" and data.strip():
            self.titles.append(data)
        elif self._in in ("td", "th") and data.strip():
            self.rows[-1].append(data)


PLAIN = ["What was recorded", "What was lost", "Rates over time", "Nodes over time", "Volume", "Busiest moments",
         "Bursts against buffer depth", "Merging", "Times between items"]


def test_report(losing_run):
    done = CliRunner().invoke(cli, ["report", str(losing_run.path)])
    assert done.exit_code == 0, done.output
    page, figures = Page((losing_run.path / "report.html").read_text()), losing_run.stats()
    assert page.titles == PLAIN
    assert len(page.pictures) == 7
    assert ["node", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "longest"] in page.rows
    assert ["items", f"{figures['events']:,}"] in page.rows
    assert ["lost", f"{figures['lost']:,}"] in page.rows
    loss = losing_run.loss().to_pylist()
    largest = max(loss, key=lambda row: (row["lost"], row["node"]))
    assert [str(largest["node"]), str(largest["lost"]), f"{largest['from_ps'] / 1e9:,.6f}",
            f"{largest['to_ps'] / 1e9:,.6f}"] in page.rows
    for node, (events, lost) in enumerate(zip(figures["events_per_node"], figures["lost_per_node"], strict=True)):
        assert any(row[:2] == [str(node), f"{events:,}"] and row[-1] == f"{lost:,}" for row in page.rows)


def test_messages(told):
    run = told([(*row[:4], False) for row in made_up(random.Random(4), 2000)])
    page = Page(report_html(run))
    assert page.titles == [*PLAIN[:3], "Events by name", "States", "Messages"]
    (every, matched), = run.sql("select count(*), count(latency_ps) from messages").fetchall()
    assert every > matched > 0
    assert ["messages", f"{every:,}"] in page.rows
    assert ["sent and received", f"{matched:,}"] in page.rows
    for name, count in run.sql("select name, count(latency_ps) from messages group by name").fetchall():
        assert any(row[:2] == [name, f"{count:,}"] for row in page.rows)


def test_events_and_states_by_name(told):
    run = told(made_up(random.Random(5), 3000), [(1, 9, 100, 110), (1, 3, 2000, 2500), (2, 5, 700, 701)])
    page, shares = Page(report_html(run)), {}
    whole = Counter(row["name"] for row in run.sql("from framed where not aborted").to_arrow_table().to_pylist())
    del whole[None]
    named = [(row[0], row[1]) for row in page.rows if row[1:2] and len(row) == 4 and row[0] in whole]
    assert named == sorted(((name, f"{count:,}") for name, count in whole.items()), key=lambda row: (
        -int(row[1].replace(",", "")), row[0]))
    lengths, known = defaultdict(list), Counter()
    still, end = Counter(), run.stats()["begins_ps"] + distributions_of(run).duration_ps
    for row in run.states().to_pylist():
        known[row["name"]] += (row["end_ps"] or row["lost_ps"] or end) - row["begin_ps"]
        if row["end_ps"] is None:
            still[row["name"]] += 1
        else:
            lengths[row["name"]].append(row["end_ps"] - row["begin_ps"])
    assert len(lengths) == 2
    for name, own in lengths.items():
        own.sort()
        [row] = [row for row in page.rows if row[0] == name and len(row) == 10]
        assert row[1:3] == [f"{len(own):,}", duration_text(known[name])]
        assert row[4] == duration_text(own[0])
        assert row[5] == duration_text(own[math.ceil(len(own) / 2) - 1])
        assert row[8:] == [duration_text(own[-1]), f"{still[name]:,}"]
        shares[name] = float(row[3].removesuffix(" %").replace(",", "")) / known[name]
    assert shares["phase"] == pytest.approx(100 / distributions_of(run).duration_ps / run.info.nodes, rel=0.01)
    assert shares["it's a job"] == pytest.approx(shares["phase"], rel=0.01)


def test_in_a_browser(told, losing_run, tmp_path):
    """Both themes, three widths: the page is not wider than the window, texts can be read, figures have the ground."""
    chromium, api = needs("chromium"), pytest.importorskip("playwright.sync_api")
    named = told(made_up(random.Random(4), 2000))
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--headless"])
        for number, run in enumerate((named, losing_run)):
            write_report(run, tmp_path / f"{number}.html")
            for theme, dark in (("light", False), ("dark", True)):
                page = browser.new_page(color_scheme=theme)
                page.goto(f"file://{tmp_path}/{number}.html")
                contrast, where = page.evaluate(_CONTRAST)
                assert contrast >= 4.5, where
                for width in (1300, 800, 380):
                    fits(page, width)
                    # Labels do not shrink with the window.
                    assert page.evaluate("document.querySelector('img').clientWidth") >= 540
                picture = Image.open(io.BytesIO(page.locator("img").first.screenshot())).convert("L")
                ground = max((count, level) for level, count in enumerate(picture.histogram()))[1]
                assert (ground < 60) if dark else (ground > 200)
                assert picture.getextrema()[dark] in (range(200, 256) if dark else range(60))
        browser.close()


def test_a_run_of_nothing(make_run):
    page = Page(report_html(make_run(FakeBoard().start().stop(1000))))
    assert page.titles == PLAIN[:3]


def test_without_matplotlib(losing_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HypermonError, match=re.escape(to_install("report"))):
        report_html(losing_run)
