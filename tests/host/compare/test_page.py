"""The page of a comparison: whole, self-contained, and safe whatever the names are."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
from hypermon.host.compare.comparison import compare_measures
from hypermon.host.compare.estimates import Samples
from hypermon.host.compare.lanes import COLUMNS, Lanes, Timeline
from hypermon.host.compare.page import comparison_page
from hypermon.host.compare.recording import Measure

EVIL = "<script>alert(1)</script>\x1b[31m\u202e&\"'"


class Reader(HTMLParser):
    """Notes the tags, and fails on one that is not closed in its order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def made(name: str) -> str:
    rng = np.random.default_rng(1)
    groups = [{Measure("duration", name): Samples.of(
        (scale * 10**6 * np.exp(0.3 * rng.standard_normal(2000))).astype(np.int64),
        (np.arange(2000) // 20).astype(np.uint16), 100)} for scale in (1, 2)]
    lanes = Lanes({0: {name: np.full(COLUMNS, 0.5)}}, np.ones((2, COLUMNS), np.int64),
                  np.arange(2 * COLUMNS).reshape(2, COLUMNS) % COLUMNS < 3)
    return comparison_page([name, "B"], compare_measures(*groups), [], groups,
                           [Timeline(name, [name, "1"], lanes, -10**9, 10**12)] * 2, name)


def test_whole_and_alone() -> None:
    reader = Reader(made("work"))
    assert reader.open == []
    assert (reader.seen.count("svg"), reader.seen.count("polyline"), reader.seen.count("table")) == (3, 2, 2)
    assert {"3 of 3 figures differ, or may differ", "duration:work.p50", "higher"} <= set(reader.words)


def test_names_are_text() -> None:
    text = made(EVIL)
    reader = Reader(text)
    assert "script" not in reader.seen
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_pictures_are_drawn_within_their_frames() -> None:
    for svg in re.findall(r"<svg.*?</svg>", made("work"), re.DOTALL):
        picture = ElementTree.fromstring(svg)
        *_, wide, high = map(float, picture.get("viewBox", "").split())
        for rect in picture.iter("rect"):
            x, y, width = (float(rect.get(name, "nan")) for name in ("x", "y", "width"))
            assert 0 <= x <= x + width <= wide + 0.1
            assert 0 <= y <= high
        for line in picture.iter("polyline"):
            points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
            assert points == sorted(points, key=lambda point: point[0])
            assert all(0 <= x <= wide and 0 <= y <= high for x, y in points)


def test_the_command(two, tmp_path, run_cli) -> None:
    first, second = (run.path for run in two([(0, 5, 40, 41)]))
    status, out, err = run_cli("compare", first, second, "--html", tmp_path / "page.html", "--align", "begin")
    assert (status, "latency:cast.p50" in out) == (0, True)
    assert all("5 items lost" in line for line in err)
    text = (tmp_path / "page.html").read_text()
    assert Reader(text).open == []
    assert "the first begin of each" in text
    assert 'class="lost"' in text
    for more, said in ((["--align", "begin"], "--html FILE"), (["--html", "-"], "the name of a file"),
                       (["--html", tmp_path / "none" / "x"], "there is no"),
                       (["--html", tmp_path / "y.html", "--align", "nix"], "no event 'nix'")):
        status, out, [*_, line] = run_cli("compare", first, second, *more)
        assert (status, out, said in line) == (2, "", True)
    assert not (tmp_path / "y.html").exists()
