"""Bookmarks of a run, and that an address shows the same picture again."""

import json
import random

import pytest
from hypermon.host.errors import HypermonError
from hypermon.host.view.bookmarks import BOOKMARKS, add, bookmarks, remove
from hypermon.host.view.picture import Pictures

from tests.host.external.browsing import browser_page, served
from tests.host.telling import made_up
from tests.host.web.test_timeline_page import calm, go_to, picture, said_of
from tests.host.web.test_timeline_tab import within


def test_they_are_kept(tmp_path):
    assert bookmarks(tmp_path) == []
    add(tmp_path, "the first loss", "from=1&span=2")
    add(tmp_path, "a\x1b[2J\nnote", "from=3&span=4&q=a+b%20c")
    first, second = bookmarks(tmp_path)
    assert (first["note"], first["address"]) == ("the first loss", "from=1&span=2")
    assert second["note"].isprintable()
    assert remove(tmp_path, first["number"]) == [second]
    assert remove(tmp_path, 99) == [second]
    assert remove(tmp_path, second["number"]) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("note", "address", "said"), [
    ("x" * 401, "from=1", "400 characters"), ("x", "from=<b>", "not the address"),
    ("x", "a" * 2001, "not the address")])
def test_what_is_refused(tmp_path, note, address, said):
    with pytest.raises(HypermonError, match=said):
        add(tmp_path, note, address)
    assert list(tmp_path.iterdir()) == []


def test_somebody_elses_file(tmp_path):
    for text in ("[", "{}", '{"bookmarks": [{"number": 1}]}',
                 '{"bookmarks": [{"number": 1, "note": "\\u0007", "address": ""}]}'):
        (tmp_path / BOOKMARKS).write_text(text)
        with pytest.raises(HypermonError, match=BOOKMARKS):
            bookmarks(tmp_path)
        with pytest.raises(HypermonError, match=BOOKMARKS):
            add(tmp_path, "", "from=1")
        assert (tmp_path / BOOKMARKS).read_text() == text
    (tmp_path / BOOKMARKS).write_text('{"bookmarks": [{"number": 1, "note": "", "address": "javascript:alert(1)"}]}')
    assert bookmarks(tmp_path) == []


def test_requests(losing_run):
    async def work(client):
        for number in ("0", "x", "1e9"):
            async with client.post("/timeline/bookmarks/remove", params={"number": number}) as refused:
                assert (refused.status, len((await refused.text()).splitlines())) == (400, 1)
        async with client.post("/timeline/bookmarks", params={"note": "n", "address": "<"}) as refused:
            assert (refused.status, len((await refused.text()).splitlines())) == (409, 1)
        async with client.post("/timeline/bookmarks", params={"note": "n", "address": "from=1"},
                               headers={"Origin": "http://elsewhere.example"}) as refused:
            assert refused.status == 403
        async with client.post("/timeline/bookmarks", params={"note": "n", "address": "from=1"}) as answer:
            assert [each["note"] for each in await answer.json()] == ["n"]
        async with client.get("/timeline/bookmarks") as answer:
            assert len(await answer.json()) == 1

    within(losing_run, work)


def test_a_recording_in_progress_has_them(losing_run, monkeypatch):
    about = Pictures.about
    monkeypatch.setattr(Pictures, "about", lambda self: about(self) | {"growing": True})

    async def work(client):
        async with client.post("/timeline/bookmarks", params={"note": "n", "address": "from=1"}) as answer:
            assert [each["note"] for each in await answer.json()] == ["n"]

    within(losing_run, work)
    assert [each["note"] for each in bookmarks(losing_run.path)] == ["n"]


def test_in_a_browser(told):
    story = told(made_up(random.Random(8), 3000))
    evil = "<img src=x onerror=alert(1)>"
    with served(story.path, command="view", said=said_of(story)) as address, browser_page(address) as page:
        picture(page)
        go_to(page, "from=100000000&span=60000000&a=120000000&b=130000000&pin=2&off=0&hide=s1&q=phase")
        here = picture(page)
        page.keyboard.press("b")
        page.locator("#bookmarks").wait_for()
        page.keyboard.type(evil)
        page.keyboard.press("Enter")
        page.locator("#bookmarks-list li").wait_for()
        kept, = json.loads((story.path / BOOKMARKS).read_text())["bookmarks"]
        assert kept["note"] == evil
        assert page.locator("#bookmarks-list img").count() == 0

        # Another page, another day.
        other = page.context.browser.new_page(viewport={"width": 1300, "height": 900})
        other.goto(address)
        picture(other)
        other.keyboard.press("b")
        other.locator("#bookmarks-list button").first.click()
        calm(other)
        assert picture(other)[:2] == here[:2]
        for part in ("a=120000000", "b=130000000", "pin=2", "off=0", "hide=s1", "q=phase"):
            assert part in other.url
        assert other.locator("#legend button[aria-pressed=false]").all_inner_texts() == ["phase"]
        other.locator("#bookmarks-list .away").click()
        other.locator("#bookmarks-note").get_by_text("None yet").wait_for()
        assert not (story.path / BOOKMARKS).exists()
        other.close()
