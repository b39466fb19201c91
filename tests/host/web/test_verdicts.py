"""The verdicts on rules in the timeline: those of `hypermon check`, a list, and marks at the places."""

import asyncio
import json
import random
import subprocess
import sys

import pytest
from hypermon.host.cli import _run
from hypermon.host.record.process import hypermon_command

from tests.host.external.browsing import browser_page, served
from tests.host.fake_board import FakeBoard, random_run
from tests.host.web.test_timeline_page import calm, picture, said_of
from tests.patience import patience

aiohttp = pytest.importorskip("aiohttp")
from hypermon.host.run import Run  # noqa: E402
from hypermon.host.view.picture import Pictures  # noqa: E402
from hypermon.host.web import verdicts  # noqa: E402
from hypermon.host.web.program import application  # noqa: E402
from hypermon.host.web.shown import Shown  # noqa: E402

RULES = """
[[rule]]
name = "no five"
kind = "absence"
event = { event = "nibble:5", nodes = [2] }

[[rule]]
name = "a one is seldom"
kind = "rate"
event = { event = "nibble:1", nodes = [3] }
per = "1 us"
max = 3

[[rule]]
name = "a one was there"
kind = "rate"
event = "nibble:1"
per = "1 ns"
max = 1000000
"""


@pytest.fixture
def run(make_run):
    return make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000))


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def checked(run, rules):
    done = subprocess.run(hypermon_command("check", str(run.path), str(rules), "--json", "--reasons"),
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


def answers(run, work, rules=None):
    """Runs ``work(ask)``; ``ask()`` is the status and the text of the verdicts."""
    from aiohttp.test_utils import TestClient, TestServer

    async def go():
        shown = Shown(pictures=Pictures(Run(run.path)), rules=rules)
        async with TestClient(TestServer(application(shown, "timeline"))) as client:
            async def ask(path="verdicts"):
                async with client.get(f"/timeline/{path}") as answer:
                    return answer.status, await answer.text()

            return await work(ask)

    return asyncio.run(go())


async def ready(ask):
    async with asyncio.timeout(patience(60)):
        while (said := await ask()) == (200, "null"):
            await asyncio.sleep(0.05)
    return said


def test_they_are_those_of_the_command(run, rules):
    async def work(ask):
        assert json.loads((await ask("run"))[1])["rules"] is True
        status, text = await ready(ask)
        assert (status, await ask()) == (200, (200, text))
        return json.loads(text)

    found = answers(run, work, rules)
    assert found == checked(run, rules)
    assert [rule["verdict"] for rule in found["rules"]] == ["fail", "undecided", "pass"]
    assert {place["failed"] for place in found["rules"][0]["where"]} == {True}
    assert all("lost" in place["why"] for place in found["rules"][1]["where"])


def test_without_rules(run):
    async def work(ask):
        assert json.loads((await ask("run"))[1])["rules"] is False
        status, text = await ask()
        assert status == 409
        assert "--check RULES" in text

    answers(run, work)


def test_rules_that_do_not_fit(run, rules, capsys):
    """They are said in one line: by the command at once if they are not valid, else on the page."""
    rules.write_text(RULES.replace("nibble:5", "send"))

    async def work(ask):
        return await ready(ask)

    status, text = answers(run, work, rules)
    assert (status, len(text.splitlines())) == (409, 1)
    assert "rules.toml" in text
    rules.write_text(RULES.replace("absence", "presence"))
    assert _run(["view", str(run.path), "--check", str(rules)]) == 2
    assert "rules.toml:4" in capsys.readouterr().err


def test_the_process_ends_with_the_page(run, rules, monkeypatch, tmp_path):
    note = tmp_path / "began"
    script = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    monkeypatch.setattr(verdicts, "hypermon_command", lambda *words: [sys.executable, "-c", script, str(note)])

    async def work(ask):
        async with asyncio.timeout(patience(20)):
            while not (note.exists() and note.read_text()):
                assert await ask() == (200, "null")
                await asyncio.sleep(0.05)

    answers(run, work, rules)
    assert subprocess.run(["kill", "-0", note.read_text()], capture_output=True, check=False).returncode != 0


def test_in_a_browser(run, rules):
    found = checked(run, rules)
    with served(run.path, "--check", rules, command="view", said=said_of(run)) as address, \
            browser_page(address) as page:
        page.locator("#rules-list li.fail").wait_for()
        assert page.inner_text("#judged span") == "Rules: fail"
        assert page.locator("#rules-list li").all_inner_texts()[2].startswith("a one was there: pass")
        calm(page)
        assert int(picture(page)[2]["marks"]) == sum(len(rule["where"]) for rule in found["rules"])
        page.locator("#rules-list li.fail button").click()
        first = found["rules"][0]["where"][0]
        places = page.locator("#rules-list li.place")
        assert places.count() == len(found["rules"][0]["where"])
        calm(page, 400)
        assert f"a={first['time_ps']}" in page.url
        assert "no five" in page.inner_text("#detail")
        assert "violated" in page.inner_text("#detail")
        # The mark is there, and says what it is.
        box = page.locator("#lanes").bounding_box()
        begin, end, _ = picture(page)
        x = box["x"] + 96 + (first["time_ps"] - begin) / (end - begin) * (box["width"] - 96)
        for y in range(int(box["y"]) + 32, int(box["y"] + box["height"]), 2):
            page.mouse.move(x, y)
            page.wait_for_timeout(20)
            if page.is_visible("#card") and page.inner_text("#card strong") == "node 2: no five":
                break
        else:
            pytest.fail("no mark")
        page.keyboard.press("r")
        assert not page.is_visible("#rules")
