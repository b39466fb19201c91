"""One program shows a recording live and over time: the way from one tab to the other, and which run a page shows."""

import asyncio
import json
import random
import shutil

import pytest
from hypermon.host.errors import HypermonError

from tests.host.external.browsing import browser_page, has_state, served
from tests.host.fake_board import FakeBoard, random_run
from tests.host.web.test_timeline_page import calm, picture, said_of

aiohttp = pytest.importorskip("aiohttp")
from hypermon.host.web.program import application  # noqa: E402
from hypermon.host.web.shown import Shown, session_of  # noqa: E402


@pytest.fixture
def losing(make_run):
    return make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000))


def test_a_click_on_a_loss(losing):
    with served("-b", losing.path) as address, browser_page(address) as page:
        has_state(page, "ended")
        row = page.locator("#losses tbody tr").first
        shown = row.locator("td").first.inner_text()
        with page.context.expect_page() as opened:
            row.locator("a").click()
        tab = opened.value
        tab.locator("#figures span").first.wait_for()
        assert tab.url.startswith(f"{address}timeline/#")
        picture(tab)
        values = dict(part.split("=") for part in tab.url.partition("#")[2].split("&"))
        losses = {(row["node"], row["from_ps"], row["to_ps"]) for row in losing.loss().to_pylist()}
        assert (int(shown), int(values["a"]), int(values["b"])) in losses
        assert int(picture(tab)[2]["losses"]) >= 1


def test_from_tab_to_tab(losing):
    """Whichever was opened first; the timeline comes back as it was left."""
    for command, arguments, first, text in (("serve", ("-b", losing.path), "live", ""),
                                            ("view", (losing.path,), "timeline", said_of(losing))):
        with served(*arguments, command=command, said=text) as address, browser_page(address) as page:
            assert page.url.startswith(f"{address}{first}/")
            if first == "timeline":
                picture(page)
                page.keyboard.press("v")
            has_state(page, "ended")
            assert page.inner_text("#items") == f"{losing.decode()['events']:,}"
            page.keyboard.press("v")
            page.wait_for_url("**/timeline/*")
            picture(page)
            page.keyboard.press("w")
            calm(page)
            closer = picture(page)[:2]
            page.get_by_role("link", name="Live").click()
            has_state(page, "ended")
            page.get_by_role("link", name="Timeline").click()
            page.wait_for_url("**/timeline/*")
            calm(page)
            assert picture(page)[:2] == closer


def within(work, shown, first="live"):
    from aiohttp.test_utils import TestClient, TestServer

    async def go():
        async with TestClient(TestServer(application(shown(), first))) as client:
            return await work(client)

    return asyncio.run(go())


class Recording:
    """A session whose newest run changes, as when somebody begins another recording."""

    def __init__(self):
        self.run, self.state, self.closed = None, "idle", 0

    def step(self, boards=()):
        pass

    def close(self):
        self.closed += 1


async def said(client, path, status=200):
    async with client.get(path) as answer:
        assert answer.status == status, await answer.text()
        return await answer.text()


def test_a_page_is_never_given_another_run(make_run):
    """It is told to reload, and the pictures of the last run are closed when nobody uses them any more."""
    runs = [make_run(random_run(FakeBoard(), random.Random(seed), 20), name=f"run-{seed}") for seed in (3, 4)]
    session = Recording()
    shown = []

    def show():
        shown.append(Shown(session))
        return shown[0]

    async def work(client):
        assert "start one on the live tab" in await said(client, "/timeline/run", 409)
        session.run = runs[0].path
        about = json.loads(await said(client, "/timeline/run"))
        assert (about["name"], about["items"]) == ("run-3", runs[0].decode()["events"])
        first = shown[0]._opened.pictures
        session.run = runs[1].path
        assert json.loads(await said(client, "/timeline/run?of=run-3")) == about
        async with shown[0].pictures("run-3"):
            assert json.loads(await said(client, "/timeline/run"))["name"] == "run-4"
            assert not first._over.is_set()
        assert first._over.is_set()
        for path in ("run?of=run-3", "overview?columns=10&of=run-3", "item?at=0&node=0&of=run-3"):
            assert await said(client, f"/timeline/{path}", 409) == "another recording is shown by now: reload the page"
        numbers = await said(client, "/timeline/item?at=0&node=0&of=run-4")
        assert json.loads(numbers) == []

    within(work, show)
    assert session.closed == 1
    assert shown[0]._opened.pictures._over.is_set()


def test_runs_that_cannot_be_read(losing, tmp_path):
    """They are a conflict with one line, on both tabs."""
    session = Recording()
    session.run = tmp_path / "nothing"

    async def work(client):
        text = await said(client, "/timeline/run", 409)
        assert len(text.splitlines()) == 1
        assert "nothing" in text

    within(work, lambda: Shown(session))
    with pytest.raises(HypermonError, match="nothing"):
        session_of(tmp_path / "nothing")

    from hypermon.host.run import Run
    from hypermon.host.view.picture import Pictures

    pictures = Pictures(Run(losing.path))

    async def gone(client):
        shutil.rmtree(losing.path)
        for path in ("changes", "start"):
            async with client.request("POST" if path == "start" else "GET", f"/live/{path}", json={}) as answer:
                assert (answer.status, len((await answer.text()).splitlines())) == (409, 1)

    within(gone, lambda: Shown(pictures=pictures), "timeline")
