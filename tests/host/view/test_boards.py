"""The map of boards on the page of a large machine, in a browser."""

import json
import random
from dataclasses import asdict, replace

import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
from hypermon.host.report.report import write_report
from hypermon.host.run import open_run
from hypermon.host.view.counts import Counts
from hypermon.host.view.picture import Pictures

from tests.host.external.browsing import browser_page, served
from tests.host.external.readers import needs
from tests.host.fake_board import FakeBoard, random_run
from tests.host.web.test_timeline_page import looks_well, picture, said_of

NODES = 32


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Three boards of 32 nodes, of which the second loses items."""
    return made(tmp_path_factory.mktemp("machine") / "run", NODES)


def made(path, nodes):
    path.mkdir()
    for number in range(3):
        board = random_run(FakeBoard(nodes), random.Random(number), 60, losses=0.5 * (number == 1))
        info = RunInfo(f"uart:{number}", nodes, board.clock_hz, "800", LATENCY, board.epoch,
                       sink=board.sink.name.lower())
        with RunWriter(path / f"board-{number}", info) as writer:
            writer.append(board.data)
            writer.close(how="test", duration_ps=12345)
        save_clock(path / f"board-{number}", WallClock(10**18 + 1000 * number, 10.0 * number, 400, 9))
    info = RunInfo.load(path / "board-0" / "recording.json")
    (path / "recording.json").write_text(json.dumps(asdict(
        replace(info, boards=[f"board-{number}" for number in range(3)], nodes=3 * nodes))))
    return open_run(path)


def test_the_page_is_told_the_figures_of_every_board(machine):
    stats, pictures = machine.stats(), Pictures(machine)
    boards = pictures.about()["boards"]
    pictures.close()
    assert [(board["first"], board["nodes"]) for board in boards] == [(0, 32), (32, 32), (64, 32)]
    assert [count for board in boards for count in board["items"]] == stats["events_per_node"]
    assert [count for board in boards for count in board["lost"]] == stats["lost_per_node"]
    assert [sum(board["lost"]) > 0 for board in boards] == [False, True, False]


def test_a_run_of_few_nodes_has_no_map(losing_run):
    pictures = Pictures(losing_run)
    assert pictures.about()["boards"] == []
    pictures.close()


def test_a_tile_opens_to_the_nodes_of_its_board(machine, tmp_path):
    lost = sum(machine.stats()["lost_per_node"])
    with served(machine.path, command="view", said=said_of(machine)) as address, \
            browser_page(address, color_scheme="light") as page:
        picture(page)
        tiles = page.locator("#boards button")
        assert tiles.count() == 3
        assert [tiles.nth(k).locator("rect.heat").count() for k in range(3)] == [32] * 3
        assert [tiles.nth(k).locator("rect.lost").count() > 0 for k in range(3)] == [False, True, False]
        assert tiles.nth(1).get_attribute("title").endswith(f"{lost:,} lost")
        all_nodes = page.locator("#lanes").bounding_box()["height"]

        def shown(link=""):
            page.wait_for_timeout(400)
            page.wait_for_url(lambda url: link in url, timeout=20_000)
            picture(page)
            return page.url.partition("#")[2], [tiles.nth(k).get_attribute("aria-pressed") for k in range(3)]

        tiles.nth(1).click()
        link, pressed = shown()
        assert "first=32&board=1" in link
        assert pressed == ["false", "true", "false"]
        page.keyboard.press("PageDown")
        assert "first=64&board=1" in shown("first=64&board=1")[0]
        page.keyboard.press("PageUp")
        link, pressed = shown("first=32&board=1")
        assert ("first=32&board=1" in link, pressed[1]) == (True, "true")

        # The link leads another page to the same board; a second click leads back to all.
        other = page.context.browser.new_page(viewport={"width": 1300, "height": 900})
        other.goto(page.url)
        other.locator("#boards button[aria-pressed=true]").wait_for()
        assert other.locator("#boards button").nth(1).get_attribute("aria-pressed") == "true"
        tiles.nth(1).click()
        link, pressed = shown()
        assert "board=" not in link
        assert pressed == ["false"] * 3
        assert page.locator("#lanes").bounding_box()["height"] >= all_nodes - 2
        looks_well(page, tmp_path)


def test_counts_of_a_board_are_of_its_nodes(machine):
    """A row group is counted for the nodes of its board only, and its items are at the run's nodes."""
    counts = Counts(machine.event_files(), 3 * NODES)
    assert [len(group.nodes) <= NODES for group in counts.groups] == [True] * len(counts.groups)
    end = max(group.last_ps for group in counts.groups) + 1
    begin = min(group.first_ps for group in counts.groups)
    read = counts.stretch(begin, end, 7)
    counts.make(lambda: False)
    counted = counts.stretch(begin, end, 7)
    for stretch in (read, counted):
        assert stretch.items.sum(axis=0) == pytest.approx(machine.stats()["events_per_node"])


def test_the_report_of_a_machine_fits_a_narrow_window(machine, tmp_path):
    """All tiles open."""
    api = pytest.importorskip("playwright.sync_api")

    pytest.importorskip("matplotlib")
    write_report(machine, tmp_path / "report.html")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs("chromium"),
                                             args=["--no-sandbox", "--headless"])
        page = browser.new_page(viewport={"width": 360, "height": 800})
        page.goto(f"file://{tmp_path}/report.html")
        assert page.locator(".boards details").count() == 3
        for tile in page.locator(".boards summary").all():
            tile.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        browser.close()


def test_few_nodes_are_grouped_by_their_boards(tmp_path):
    """A heading above the lanes of each board, whose menu hides them."""
    run = made(tmp_path / "run", 4)
    pictures = Pictures(run)
    assert pictures.about()["groups"] == [{"first": first, "nodes": 4} for first in (0, 4, 8)]
    assert pictures.about()["boards"] == []
    pictures.close()
    with served(run.path, command="view", said=said_of(run)) as address, browser_page(address) as page:
        picture(page)
        box = page.locator("#lanes").bounding_box()
        lane = (box["height"] - 33 - 3 * 16) / 12
        page.mouse.click(box["x"] + 20, box["y"] + 32 + 16 + 4 * lane + 8)
        assert page.inner_text("#menu strong") == "board 1"
        page.locator("#menu button").get_by_text("Hide its nodes").click()
        page.wait_for_url(lambda url: "off=4.5.6.7" in url)
