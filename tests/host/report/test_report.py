"""Reports: pages that need nothing else and say what the other commands say."""

import base64
import random
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from hypermon.host.cli import cli
from hypermon.host.errors import HypermonError, to_install
from hypermon.host.report.report import report_html

from tests.host.fake_board import FakeBoard
from tests.host.telling import made_up


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
    run = told(made_up(random.Random(4), 2000))
    page = Page(report_html(run))
    assert page.titles == [*PLAIN[:3], "Messages"]
    (every, matched), = run.sql("select count(*), count(latency_ps) from messages").fetchall()
    assert every > matched > 0
    assert ["messages", f"{every:,}"] in page.rows
    assert ["sent and received", f"{matched:,}"] in page.rows
    for name, count in run.sql("select name, count(latency_ps) from messages group by name").fetchall():
        assert any(row[:2] == [name, f"{count:,}"] for row in page.rows)


def test_a_run_of_nothing(make_run):
    page = Page(report_html(make_run(FakeBoard().start().stop(1000))))
    assert page.titles == PLAIN[:3]


def test_without_matplotlib(losing_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HypermonError, match=re.escape(to_install("report"))):
        report_html(losing_run)
