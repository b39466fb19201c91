"""The table of nodes and states of an interval, against the tables, the report, and in a browser."""

import itertools
import json
from types import SimpleNamespace

import pytest
from hypermon.host.report.named import state_shares
from hypermon.host.view.bynode import NAMES_MOST, NODES_MOST, by_node

from tests.host.external.browsing import browser_page, fits, served
from tests.host.view.test_selection import BEGIN, END, losing
from tests.host.web.test_timeline_page import calm, picture, said_of
from tests.host.web.test_timeline_tab import asked, within


def until(row, end_ps):
    return next(ps for ps in (row["end_ps"], row["lost_ps"], end_ps) if ps is not None)


def unknown(story, node, begin, end, end_ps):
    """Stretches in which no state is known: swept from one time at which anything changes to the next."""
    states = [row for row in story.states().to_pylist() if row["node"] == node]
    points = [row["from_ps"] for row in story.loss().to_pylist() if row["node"] == node]
    points += [row["lost_ps"] for row in states if row["lost_ps"] is not None]
    begins = [row["begin_ps"] for row in states]
    times = sorted({begin, end, *(at for at in (*begins, *points, *(until(row, end_ps) for row in states))
                                  if begin < at < end)})
    found = []
    for low, high in itertools.pairwise(times):
        since = max((at for at in begins if at <= low), default=-2**62)
        known = any(row["begin_ps"] <= low < until(row, end_ps) for row in states)
        if not known and any(since <= at <= low for at in points):
            if found and found[-1][1] == low and low not in begins:
                found[-1][1] = high
            else:
                found.append([low, high])
    return found


def test_the_report_has_the_same_shares(told):
    story = losing(told)

    async def work(client):
        about = json.loads(await asked(client, "/timeline/run"))
        begin, end = int(about["begin_ps"]), int(about["end_ps"])
        found = json.loads(await asked(client, "/timeline/statistics", from_=begin, to=end))
        table, shares = found["by_node"], state_shares(story, begin, end - begin, 4)
        assert (table["names"], table["nodes"]) == (["it's a job", "phase"], [0, 1, 2, 3])
        for node, name, ps in table["cells"]:
            assert 100 * ps / (end - begin) == pytest.approx(shares[table["names"][name]][node], rel=1e-9)
        assert len(table["cells"]) == 8
        for k, name in enumerate(table["names"]):       # and of all nodes together
            whole = sum(ps for _, number, ps in table["cells"] if number == k) / (4 * (end - begin))
            assert whole == pytest.approx(next(share for each, share, _ in found["states"] if each == name), rel=1e-9)

    within(story, work)


@pytest.mark.parametrize(("begin", "end"), [(BEGIN, END), (-10**9, 2 * 10**9), (0, 5 * 10**6), (190 * 10**6, END)])
def test_times_of_an_interval(told, begin, end):
    story = losing(told)

    async def work(client):
        end_ps = int(json.loads(await asked(client, "/timeline/run"))["end_ps"])
        found = json.loads(await asked(client, "/timeline/statistics", from_=begin, to=end))["by_node"]
        took, best, gaps = {}, {}, {}
        for row in story.states().to_pylist():
            ps = min(until(row, end_ps), end) - max(row["begin_ps"], begin)
            if ps > 0:
                own = row["node"], row["name"]
                took[own] = took.get(own, 0) + ps
                best[own] = max(best.get(own, 0), ps)
        assert {(node, found["names"][name]): ps for node, name, ps in found["cells"]} == took
        for node in range(4):
            gaps[node] = [high - low for low, high in unknown(story, node, begin, end, end_ps)]
        assert dict(found["unknown"]) == {node: sum(own) for node, own in gaps.items() if own}
        for (node, name), ps in best.items():
            one = json.loads(await asked(client, "/timeline/longest", from_=begin, to=end, kind="state", node=node,
                                         name=name))
            ends = next((int(one[key]) for key in ("end_ps", "lost_ps") if one[key] is not None), end_ps)
            assert min(ends, end) - max(int(one["time_ps"]), begin) == ps
            assert one["text"].startswith(name)
        for node, own in gaps.items():
            one = json.loads(await asked(client, "/timeline/longest", from_=begin, to=end, kind="unknown", node=node))
            assert (int(one["end_ps"]) - int(one["time_ps"]) if one else 0) == max(own, default=0)
        return gaps

    gaps = within(story, work)
    if (begin, end) != (0, 5 * 10**6):
        assert sum(map(len, gaps.values())) > 1


@pytest.mark.parametrize(("begin", "end", "said"), [
    (0, 100, {0: 30, 2: 30}),       # node 0 is known to have a job up to 50 us
    (60, 100, {0: 20, 2: 10}),      # what was lost is before the interval, and so are the states
    (45, 55, {0: 5, 2: 10}),
    (85, 100, {}),
    (0, 30, {}),
])
def test_times_that_are_not_known(told, begin, end, said):
    story = told([(10 * 10**6, 0, 1, b"\1", False), (10 * 10**6, 1, 1, b"\1", False),
                  (10 * 10**6, 2, 3, b"", False), (20 * 10**6, 0, 3, b"", False),
                  (20 * 10**6, 1, 2, b"\1\0\0", False), (30 * 10**6, 0, 3, b"", True),   # a phase that was cut short
                  (50 * 10**6, 0, 2, b"\1\0\0", False), (70 * 10**6, 2, 3, b"", False),
                  (80 * 10**6, 0, 3, b"", False)], [(2, 3, 50, 60)], 200)     # from 40 us on

    async def work(client):
        found = json.loads(await asked(client, "/timeline/statistics", from_=begin * 10**6, to=end * 10**6))
        assert {node: round(ps / 10**6) for node, ps in found["by_node"]["unknown"]} == said

    within(story, work)


def test_the_longest_loss(told):
    story = losing(told)

    async def work(client):
        values = {"from_": BEGIN, "to": END, "node": 1}
        one = json.loads(await asked(client, "/timeline/longest", kind="loss", **values))
        own = [row for row in story.loss().to_pylist() if row["node"] == 1]
        assert [one[key] for key in ("time_ps", "end_ps", "text")] == [str(own[0]["from_ps"]), str(own[0]["to_ps"]),
                                                                       "lost 7"]
        assert json.loads(await asked(client, "/timeline/longest", kind="loss", **values | {"node": 0})) is None
        refused = json.loads(await asked(client, "/timeline/longest", kind="cat", **values))
        assert refused == {"refused": "'cat' is not one of state, loss, unknown"}

    within(story, work)


class Few:
    """Tables with one state of each node and name, and no losses."""

    stories, names = True, ()

    def __init__(self, nodes, names):
        self.rows = [(node, f"state {name}", 1.0 + name) for node in range(nodes) for name in range(names)]

    def ask(self, question, values):
        return [] if "points" in question else self.rows


def test_a_table_is_bounded():
    pictures = SimpleNamespace(tables=Few(NODES_MOST + 44, NAMES_MOST + 10), dictionary=None, end_ps=10,
                               run=SimpleNamespace(info=SimpleNamespace(nodes=NODES_MOST + 44)))
    table = by_node(pictures, 0, 100)
    assert (len(table["nodes"]), len(table["names"]), table["out"]) == (NODES_MOST, NAMES_MOST, 10)
    assert len(table["cells"]) == NODES_MOST * NAMES_MOST
    assert "state 0" not in table["names"]      # the shortest
    assert f"state {NAMES_MOST + 9}" in table["names"]


def column(page, k):
    return page.locator(f"#by-node tbody tr > :nth-child({k})").all_inner_texts()


def test_in_a_browser(told):
    story = losing(told)
    with served(story.path, command="view", said=said_of(story)) as address, \
            browser_page(address, color_scheme="light") as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        picture(page)
        page.locator("#legend button").first.wait_for()
        # Nothing is selected: the table is of the visible stretch, and follows it.
        page.keyboard.press("Enter")
        page.locator("#by-node").wait_for()
        assert page.inner_text("#statistics-title") == "Visible stretch"
        assert [text.split("\n")[0] for text in page.locator("#by-node th[scope=col]").all_inner_texts()] == [
            "node", "it's a job", "phase", "not known", "lost"]
        assert column(page, 1) == ["node 0", "node 1", "node 2", "node 3"]
        assert page.locator("#by-node tbody tr").first.bounding_box()["height"] < 30      # one line
        whole = column(page, 3)
        page.keyboard.press("w")
        calm(page, 600)
        assert column(page, 3) != whole
        page.keyboard.press("Escape")

        # Sorted by a click, both ways.
        page.locator("#by-node th[scope=col]").nth(2).click()
        assert page.get_attribute("#by-node th[scope=col] >> nth=2", "aria-sort") == "descending"
        shares = [float(text.split()[-2]) for text in column(page, 3)]
        assert shares == sorted(shares, reverse=True)
        page.locator("#by-node th[scope=col]").nth(2).click()
        assert [float(text.split()[-2]) for text in column(page, 3)] == shares[::-1]
        page.locator("#by-node th[scope=col]").nth(0).click()
        assert column(page, 1) == ["node 0", "node 1", "node 2", "node 3"]

        # An interval; by keyboard to a cell, and to its longest state. The table stays.
        for name, text in (("a", f"{BEGIN // 10**6} us"), ("b", f"{END // 10**6} us")):
            page.fill(f"#cursor-{name}", text)
            page.press(f"#cursor-{name}", "Enter")
        calm(page, 600)
        assert page.inner_text("#statistics-title") == "Selection"
        rows = [row for row in story.states().to_pylist() if row["name"] == "phase" and row["node"] == 1]
        best = max((row for row in rows), key=lambda row: min(until(row, 10**18), END) - max(row["begin_ps"], BEGIN))
        before = page.inner_text("#by-node")
        page.focus("#by-node [tabindex='0']")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        calm(page)
        assert page.inner_text("#detail").startswith("node 1: phase, from ")
        begin, end, _ = picture(page)
        assert begin <= best["begin_ps"] <= until(best, end) <= end
        assert (f"a={BEGIN}" in page.url, f"b={END}" in page.url) == (True, True)
        assert page.inner_text("#by-node") == before
        page.locator("#by-node tbody tr").nth(1).locator("td").nth(3).click()     # the loss
        calm(page)
        assert page.inner_text("#detail").startswith("node 1: lost 7")
        page.locator("#by-node tbody tr").nth(1).locator("td").nth(2).click()
        calm(page)
        assert page.inner_text("#detail").startswith("node 1: no state is known, from ")
        for width in (1366, 400):
            fits(page, width, 768)


#: A table of 256 nodes and 40 names, in the page: milliseconds until it is laid out, and its size.
_LARGE = """async () => {
  const { ByNode } = await import('/web/timeline/bynode.js'), table = new ByNode((node) => `node ${node}`, () => {});
  const names = Array.from({ length: 40 }, (_, k) => `a state of number ${k}`);
  const nodes = Array.from({ length: 256 }, (_, k) => k);
  const cells = nodes.flatMap((node) => names.map((_, k) => [node, k, 1e9 + 977 * node * k]));
  const began = performance.now();
  const place = document.getElementById('statistics-text');
  place.replaceChildren(...table.made({ by_node: { names, nodes, cells, unknown: [], out: 0 }, nodes: [] }, 1e12));
  const box = document.getElementById('by-node').getBoundingClientRect();
  const [all, stops] = ['td', '[tabindex="0"]'].map((each) => place.querySelectorAll(each).length);
  return [performance.now() - began, box.width, box.height, all, stops]; }"""


def test_a_large_table_scrolls_in_its_panel(told):
    story = losing(told)
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        picture(page)
        page.locator("#legend button").first.wait_for()
        page.keyboard.press("Enter")
        page.locator("#by-node").wait_for()
        took, wide, tall, cells, stops = page.evaluate(_LARGE)
        assert cells == 256 * 42
        assert wide < 1366 / 3
        assert tall < 400
        assert stops == 1
        assert took < 5000
        fits(page, 1366, 768)
