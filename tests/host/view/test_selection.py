"""An interval that is selected: its figures, against the tables, and files of exactly that interval."""

import json
import random
import re

import pytest
from hypermon.host.analysis.distributions import distributions_of
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.export.formats import export
from hypermon.host.export.items import item_files
from hypermon.host.report.report import report_html
from hypermon.host.run import Run
from hypermon.host.tables.selection import Selection

from tests.host.external.browsing import browser_page, fits, served
from tests.host.fake_board import FakeBoard, random_run
from tests.host.report.test_report import Page
from tests.host.telling import BOOK, made_up
from tests.host.web.test_timeline_page import calm, picture, said_of
from tests.host.web.test_timeline_tab import asked, within

BEGIN, END = 150 * 10**6, 250 * 10**6


def losing(told):
    window = 800_000        # of the losses' times, in ps
    rows = [(*row[:4], False) for row in made_up(random.Random(8), 3000)]
    at, end = BEGIN // window, END // window
    return told(rows, [(1, 7, at + 5, at + 20), (3, 2, at - 5, at + 5), (0, 4, end - 5, end + 5), (2, 9, 3000, 3100)],
                rows[-1][0] // window + 1)


def test_the_report_has_the_same_shares(told):
    """Of the whole run, with states that losses cut."""
    story = losing(told)
    begin = story.stats()["begins_ps"]
    end = begin + distributions_of(story).duration_ps
    rows = Page(report_html(story)).rows

    async def work(client):
        found = json.loads(await asked(client, "/timeline/statistics", from_=begin, to=end))
        assert len(found["states"]) == 2
        for name, share, _ in found["states"]:
            [said] = [row[3] for row in rows if len(row) == 10 and row[0] == name]
            assert float(said.removesuffix(" %").replace(",", "")) == pytest.approx(100 * share, rel=6e-3)

    within(story, work)


def test_the_whole_picture_has_the_figures_of_stats_and_the_report(told, run_cli):
    """The picture of the whole run has room beside it: time in which nothing was recorded does not count."""
    story = losing(told)
    recording = json.loads((story.path / "recording.json").read_text())
    recording["end"]["duration_ps"] = distributions_of(story).duration_ps      # a recording ends after its last window
    del recording["check"]
    (story.path / "recording.json").write_text(json.dumps(recording))
    story = Run(story.path)
    status, out, _ = run_cli("stats", story.path, "--json")
    assert status == 0
    told_by_stats, rows = json.loads(out), Page(report_html(story)).rows

    async def work(client):
        about = json.loads(await asked(client, "/timeline/run"))
        begin, end = int(about["begin_ps"]), int(about["end_ps"])
        room = (end - begin) // 50
        found = json.loads(await asked(client, "/timeline/statistics", from_=begin - room, to=end + room))
        span = int(found["to_ps"]) - int(found["from_ps"])
        assert (int(found["from_ps"]), span) == (told_by_stats["begins_ps"], told_by_stats["duration_ps"])
        assert found["lost"] == told_by_stats["lost"]
        assert len(found["states"]) == 2
        for name, share, _ in found["states"]:
            [said] = [row[3] for row in rows if len(row) == 10 and row[0] == name]
            assert float(said.removesuffix(" %").replace(",", "")) == pytest.approx(100 * share, rel=6e-4)
        # Of each node: all of its time is in a state, not known, or before its first state.
        first = dict(story.sql("select node, min(begin_ps) from states where name = 'phase' group by node").fetchall())
        table = found["by_node"]
        for node in table["nodes"]:
            took = sum(ps for of, k, ps in table["cells"] if of == node and table["names"][k] == "phase")
            assert took + first[node] <= span
        # Beside the run, there is nothing.
        beside = json.loads(await asked(client, "/timeline/statistics", from_=end + 5, to=end + room))
        assert (beside["events"], beside["lost"], beside["states"]) == (0, 0, [])
        assert (int(beside["from_ps"]), int(beside["to_ps"])) == (end + 5, end + room)

    within(story, work)
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()
        page.keyboard.press("0")
        page.keyboard.press("Enter")
        page.locator("#by-node").wait_for()
        assert page.inner_text("#statistics-text dd >> nth=0").split() == absolute(told_by_stats["begins_ps"])
        assert page.inner_text("#statistics-text dd >> nth=1").split() == absolute(
            told_by_stats["begins_ps"] + told_by_stats["duration_ps"])


def test_figures_of_an_interval(told):
    story = losing(told)
    rows = [row for row in story.sql("select * from framed").to_arrow_table().to_pylist()
            if BEGIN <= row["time_ps"] < END]
    inside = [row for row in story.loss().to_pylist() if row["from_ps"] >= BEGIN and row["to_ps"] <= END]
    edges = [row for row in story.loss().to_pylist() if any(row["from_ps"] < edge < row["to_ps"]
                                                            for edge in (BEGIN, END))]
    states = [row for row in story.states().to_pylist() if row["name"] == "phase"]
    open_ps = sum(max(min(row["end_ps"] or row["lost_ps"] or END, END) - max(row["begin_ps"], BEGIN), 0)
                  for row in states)
    borders = [row for row in story.messages().to_pylist() if row["name"] == "border"
               and row["latency_ps"] is not None and BEGIN <= row["sent_ps"] < END]
    latencies = sorted(row["latency_ps"] for row in borders if row["lost_ps"] is None)
    assert (len(inside), len(edges)) == (1, 2)

    async def work(client):
        found = json.loads(await asked(client, "/timeline/statistics", from_=BEGIN, to=END))
        assert found["events"] == len(rows) == sum(node[1] for node in found["nodes"])
        assert found["nodes"][1][:2] == [1, sum(row["node"] == 1 for row in rows)]
        assert found["lost"] == sum(row["lost"] for row in inside)
        assert found["edges"] == sum(row["lost"] for row in edges)
        share = {name: value for name, value, _ in found["states"]}
        assert share["phase"] == pytest.approx(open_ps / (4 * (END - BEGIN)), rel=1e-9)
        border = next(row for row in found["messages"] if row[0] == "border")
        assert (border[1], border[2], border[5]) == (len(latencies), latencies[0], latencies[-1])
        assert border[6] == len(borders) - len(latencies) > 0
        assert latencies[0] <= border[3] <= border[4] <= latencies[-1]
        for params, said in (({"from": "x", "to": 5}, "from"), ({"from": 5, "to": 5}, "to")):
            async with client.get("/timeline/statistics", params=params) as refused:
                assert (refused.status, (await refused.text()).split()[0]) == (400, said)
        for kind in ("", "exe", "../x"):
            async with client.post("/timeline/file", params={"from": 0, "to": 9, "kind": kind}) as refused:
                assert (refused.status, len((await refused.text()).splitlines())) == (400, 1)
        async with client.get("/timeline/file", params={"from": 0, "to": 9, "kind": "csv"}) as refused:
            assert refused.status == 405

    within(story, work)


@pytest.mark.parametrize(("text", "only"), [("0.2-3", [0, 2, 3]), ("1", [1]), ("none", []), ("3.0-9", range(4))])
def test_figures_of_some_nodes(told, text, only):
    """As in the tables; the shares are as in a run in which there are no other nodes."""
    story = losing(told)
    rows = [row for row in story.sql("select node, time_ps from framed").to_arrow_table().to_pylist()
            if BEGIN <= row["time_ps"] < END and row["node"] in only]
    losses = [row for row in story.loss().to_pylist() if row["node"] in only]
    messages = [row for row in story.messages().to_pylist() if row["name"] == "border" and
                row["latency_ps"] is not None and BEGIN <= row["sent_ps"] < END]
    between = [row["lost_ps"] is None for row in messages if row["sender"] in only and row["receiver"] in only]
    assert len(only) == 4 or len(between) < len(messages)

    async def work(client):
        found = json.loads(await asked(client, "/timeline/statistics", from_=BEGIN, to=END, nodes=text))
        assert found["of"] == [len(only), 4]
        assert found["events"] == len(rows)
        assert {node[0] for node in found["nodes"]} <= set(only)
        assert found["lost"] == sum(row["lost"] for row in losses if row["from_ps"] >= BEGIN and row["to_ps"] <= END)
        assert found["edges"] == sum(row["lost"] for row in losses for edge in (BEGIN, END)
                                     if row["from_ps"] < edge < row["to_ps"])
        assert [(row[1], row[6]) for row in found["messages"] if row[0] == "border"] == (
            [(sum(between), len(between) - sum(between))] if between else [])
        table = found["by_node"]
        assert table["nodes"] == list(only)
        for name, share, _ in found["states"]:
            took = sum(ps for _, k, ps in table["cells"] if table["names"][k] == name)
            assert share == pytest.approx(took / (len(only) * (END - BEGIN)), rel=1e-9)
        assert len(found["states"]) == (2 if only else 0)
        whole = json.loads(await asked(client, "/timeline/statistics", from_=BEGIN, to=END))
        assert sorted(table["cells"]) == sorted(cell for cell in whole["by_node"]["cells"] if cell[0] in only)
        for nodes in ("", "x", "1.", "1-2-3", "0" * 6):
            async with client.get("/timeline/statistics", params={"from": 0, "to": 5, "nodes": nodes}) as refused:
                assert (refused.status, (await refused.text()).split()[0]) == (400, "nodes")

    within(story, work)


def test_items_and_events_are_told_apart(make_run, tmp_path):
    """Kept and lost items are of one kind; events are of several items each."""
    run = make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000))
    (tmp_path / "book.toml").write_text(BOOK)
    keep_dictionary(run, tmp_path / "book.toml")
    item_files(run)     # makes the events
    rows, events = run.events().to_pylist(), run.sql("select node from framed").fetchall()
    assert 0 < len(events) < len(rows)

    async def work(client):
        about = json.loads(await asked(client, "/timeline/run"))
        lost = sum(row["lost"] for row in run.loss().to_pylist())
        assert [about[name] for name in ("framed", "items", "kept", "lost")] == [True, len(events), len(rows), lost]
        whole = {"from_": int(about["begin_ps"]), "to": int(about["end_ps"])}
        found = json.loads(await asked(client, "/timeline/statistics", **whole))
        assert [found[name] for name in ("framed", "events", "items", "lost")] == [True, len(events), len(rows), lost]
        for node, of_events, of_items, _ in found["nodes"]:
            assert of_events == sum(row[0] == node for row in events)
            assert of_items == sum(row["node"] == node for row in rows)

    within(run, work)


def test_hidden_nodes_in_a_browser(told):
    story = losing(told)
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()
        page.keyboard.press("Enter")
        page.locator("#by-node").wait_for()
        nodes = page.locator("#by-node tbody th").all_inner_texts
        assert (nodes(), "nodes\n4 of 4\n" in page.inner_text("#statistics-text")) == (
            [f"node {node}" for node in range(4)], True)
        for width in (1300, 1400):
            page.set_viewport_size({"width": width, "height": 900})
            calm(page)
            assert page.evaluate("(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)("
                                 "document.getElementById('by-node'))") == 0     # every column is in sight
        for text, said in (("0,2-3", "3 of 4, which are shown"), ("only 1", "1 of 4, which are shown")):
            page.fill("#text", text)
            page.press("#text", "Enter")
            calm(page, 600)
            page.locator("#statistics-text[aria-busy=false]").wait_for()
            assert f"nodes\n{said}\n" in page.inner_text("#statistics-text")
            assert nodes() == [f"node {node}" for node in ((0, 2, 3) if "2" in text else (1,))]
        page.locator("#legend button").get_by_text("Show 3 hidden nodes").click()
        calm(page, 600)
        assert len(nodes()) == 4


def test_hits_and_files_of_shown_nodes(told, tmp_path):
    """The panel counts the hits of the search in its interval; its files have the shown nodes, and it says how much."""
    story = losing(told)
    rows = [row for row in story.sql("select * from framed").to_arrow_table().to_pylist()
            if BEGIN <= row["time_ps"] < END and row["node"] in (1, 3)]
    hits = sum(row["name"] == "begin" for row in rows)
    assert 0 < hits < len(rows)

    async def work(client):
        wanted = {"from_": BEGIN, "to": END, "nodes": "1.3"}
        for text, total in (("begin", hits), ("begin of nodes 0,3", sum(
                (row["name"], row["node"]) == ("begin", 3) for row in rows)), ("node 2", 0),
                            ("state phase", story.sql(
                                "select count(*) from states where name = 'phase' and node in (1, 3) and begin_ps >= "
                                f"{BEGIN} and begin_ps < {END}").fetchall()[0][0])):
            found = json.loads(await asked(client, "/timeline/statistics", q=text, **wanted))
            assert (found["hits"]["total"], found["hits"]["counted"]) == (total, True), text
        for text in ("", "begin of nodes 9", "1 ms"):
            assert json.loads(await asked(client, "/timeline/statistics", q=text, **wanted))["hits"] is None
        for nodes, status in (("none", 409), ("x", 400)):
            params = {"from": BEGIN, "to": END, "kind": "events", "nodes": nodes}
            async with client.post("/timeline/file", params=params) as refused:
                assert (refused.status, len((await refused.text()).splitlines())) == (status, 1)

    within(story, work)
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        page.locator("#legend button").first.wait_for()
        page.fill("#text", "only 1,3")
        page.press("#text", "Enter")
        calm(page)
        for name, time in (("a", BEGIN), ("b", END)):
            page.fill(f"#cursor-{name}", f"{time} ps")
            page.press(f"#cursor-{name}", "Enter")
        page.fill("#text", "begin")
        page.press("#text", "Tab")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.locator("#statistics").wait_for()
        assert f"hits\n{hits} of begin\n" in page.inner_text("#statistics-text")
        assert page.inner_text("#selected-note") == f"Files: {len(rows)} events, 0 items of 2 of 4 nodes."
        page.select_option("#format", "events")
        with page.expect_download() as download:
            page.click("#selected-export")
        assert download.value.suggested_filename == f"events-{BEGIN}-nodes-1.3.csv"
        with page.context.expect_event("requestfinished", lambda one: "/perfetto/trace" in one.url) as traced:
            page.click("#selected-perfetto")
        assert f"?from={BEGIN}&to={END}&nodes=1.3&" in traced.value.url
        export(Run(story.path), "events", str(tmp_path / "own.csv"), Selection([1, 3], BEGIN, END))
        made = download.value.path().read_text()
        assert made == (tmp_path / "own.csv").read_text()
        assert len(made.splitlines()) == 1 + len(rows)
        page.select_option("#format", "events")
        page.locator("#legend button").get_by_text("Show 2 hidden nodes").click()
        calm(page, 600)
        page.locator("#statistics-text[aria-busy=false]").wait_for()
        assert "of 4 of 4 nodes." in page.inner_text("#selected-note")
        with page.expect_download() as download:
            page.click("#selected-export")
        assert download.value.suggested_filename == f"events-{BEGIN}.csv"


#: The next figures do not arrive before they are released.
_HELD = """() => {
  const ask = window.fetch;
  window.fetch = async (...values) => {
    if (!String(values[0]).startsWith('statistics')) return ask(...values);
    window.fetch = ask;
    await new Promise((go) => { window.release = go; });
    return ask(...values);
  }; }"""


def absolute(ps):
    """A time as the page writes it, in parts."""
    digits = f"{ps % 10**12:012d}"
    return [f"{ps // 10**12}.{digits[:3]}", digits[3:6], digits[6:9], digits[9:], "s"]


def test_selected_in_a_browser(losing_run, tmp_path):
    times = losing_run.events()["time_ps"].to_pylist()
    with served(losing_run.path, command="view", said=said_of(losing_run)) as address, \
            browser_page(address, color_scheme="light") as page:
        page.set_viewport_size({"width": 1366, "height": 768})
        picture(page)
        box = page.locator("#lanes").bounding_box()
        page.keyboard.down("Shift")
        page.mouse.move(box["x"] + 400, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 900, box["y"] + 100, steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        page.locator("#statistics").wait_for()
        calm(page)
        low, high = (int(re.search(rf"[#&]{name}=(-?\d+)", page.url)[1]) for name in "ab")
        count = sum(low <= time < high for time in times)
        assert 0 < count < len(times)
        assert f"items\n{count:,}\n" in page.inner_text("#statistics-text")
        assert "events" not in page.inner_text("#statistics-text")      # there is no dictionary
        assert page.inner_text("#figures").split("\n")[0] == f"{len(times):,} items"
        side = page.locator("#selected-export").bounding_box()
        assert side["y"] + side["height"] < 768
        with page.expect_download() as download:
            page.click("#selected-export")
        export(Run(losing_run.path), "csv", str(tmp_path / "own.csv"), Selection(from_ps=low, to_ps=high))
        assert download.value.path().read_bytes() == (tmp_path / "own.csv").read_bytes()
        assert download.value.suggested_filename == f"csv-{low}.csv"

        # A cursor moves: the panel follows, and what it exports is what it shows.
        page.keyboard.press("Escape")
        page.mouse.click(box["x"] + 600, box["y"] + 10)
        calm(page, 600)
        page.locator("#statistics-text[aria-busy=false]").wait_for()
        low, high = sorted(int(re.search(rf"[#&]{name}=(-?\d+)", page.url)[1]) for name in "ab")
        assert f"items\n{sum(low <= time < high for time in times):,}\n" in page.inner_text("#statistics-text")
        assert page.inner_text("#statistics-text dd >> nth=0").split() == absolute(low)
        page.evaluate(_HELD)        # the figures of the next interval do not arrive
        page.keyboard.down("Shift")
        page.mouse.click(box["x"] + 500, box["y"] + 10)
        page.keyboard.up("Shift")
        calm(page, 600)
        assert page.inner_text("#statistics-text dd >> nth=0").split() == absolute(low)
        with page.expect_download() as download:
            page.click("#selected-export")
        assert download.value.suggested_filename == f"csv-{low}.csv"
        export(Run(losing_run.path), "csv", str(tmp_path / "next.csv"), Selection(from_ps=low, to_ps=high))
        assert download.value.path().read_bytes() == (tmp_path / "next.csv").read_bytes()
        page.evaluate("window.release()")
        calm(page, 600)
        low, high = sorted(int(re.search(rf"[#&]{name}=(-?\d+)", page.url)[1]) for name in "ab")
        assert page.inner_text("#statistics-text dd >> nth=0").split() == absolute(low)
        page.keyboard.press("c")
        calm(page)
        assert not page.is_visible("#statistics")       # there is no interval
        for name, text in (("a", "10 %"), ("b", "20 %")):
            page.fill(f"#cursor-{name}", text)
            page.press(f"#cursor-{name}", "Enter")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.locator("#statistics").wait_for()

        # With the tool, without Shift; and with two cursors, by keyboard.
        page.locator("#statistics-close").click()
        assert not page.is_visible("#side")
        page.keyboard.press("i")
        assert page.get_attribute("#select", "aria-pressed") == "true"
        page.mouse.move(box["x"] + 600, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + 700, box["y"] + 100, steps=4)
        page.mouse.up()
        page.locator("#statistics").wait_for()
        page.keyboard.press("Escape")
        assert page.get_attribute("#select", "aria-pressed") == "false"
        page.locator("#statistics-close").click()
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        page.locator("#statistics").wait_for()
        for width in (1366, 400):
            fits(page, width, 768)
