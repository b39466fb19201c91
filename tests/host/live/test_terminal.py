"""The live view in a terminal, by Textual's pilot."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from hypermon.host.cli import _run
from hypermon.host.live.session import Session

from tests.host.fake_board import FakeBoard, random_run

pytest.importorskip("textual")


def shown(app) -> str:
    """The text on the screen."""
    return "\n".join("".join(segment.text for segment in line) for line in app.screen._compositor.render_strips())


@pytest.fixture
def watching(make_run):
    """``watching(work, data)``: runs ``work(app, pilot, run, made)`` on a recording that has come to ``data`` bytes."""
    made = random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000)

    def go(work, size=None):
        from hypermon.host.live.terminal import WatchApp

        run = make_run(made, data=made.data[:size], end=size is None)

        async def within():
            app = WatchApp(Session(None, run.path, run.path.parent))
            async with app.run_test(size=(130, 40)) as pilot:
                return await work(app, pilot, run, made)

        return asyncio.run(within())

    return go


def test_a_recording_that_grows(watching, tmp_path):
    async def work(app, pilot, run, made):
        assert "following" in shown(app)
        with open(run.path / "stream.bin", "ab") as file:
            file.write(made.data[20_000:])
        for _ in range(40):
            await pilot.pause(0.1)
            if "ended" in shown(app):
                break
        text = shown(app)
        assert f"items {sum(made.delivered.values()):,}" in text
        assert f"lost {sum(made.refused.values()):,}" in text
        rows = {}
        for words in map(str.split, text.splitlines()):
            if words and words[0].isdecimal():
                rows.setdefault(words[0], words)     # further down are the losses
        for node in range(16):
            lost = sum(n for (own, _), n in made.refused.items() if own == node)
            assert f"{made.delivered[node]:,}" in rows[str(node)]
            assert f"{lost:,}" in rows[str(node)]
        assert "losses, newest first" in text
        assert any(shade in text for shade in "░▒▓")
        (tmp_path / "screen.svg").write_text(app.export_screenshot())

    watching(work, 20_000)


def test_keys(watching):
    async def work(app, pilot, run, made):
        assert "shown: 10 s" in shown(app)
        for key, text in (("plus", "shown: 1 s"), ("plus", "shown: 1 s"), ("minus", "shown: 10 s"),
                          ("minus", "shown: 1 min"), ("h", ", held"), ("h", "shown: 1 min ")):
            await pilot.press(key)
            await pilot.pause(0.3)
            assert text in shown(app)
        before = app.theme
        await pilot.press("t")
        assert app.theme != before
        await pilot.press("s")
        await pilot.pause(0.4)
        assert "this is a recording" in shown(app)
        await pilot.press("q")

    watching(work)


def test_options_need_a_board(make_run, capsys):
    run = make_run(FakeBoard().start().stop())
    assert _run(["watch", "-b", str(run.path), "--", "--config", "extended"]) == 2
    assert "need a board" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_as_its_key_does(watching, number):
    """The terminal is then as before."""
    async def work(app, pilot, run, made):
        os.kill(os.getpid(), number)
        while app.is_running:
            await asyncio.sleep(0)

    before = signal.signal(number, lambda *_: None)
    try:
        watching(work)
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_keys_that_end_it(watching, key):
    """On a terminal that a program draws on, Ctrl-C is a key, and no signal."""
    async def work(app, pilot, run, made):
        await pilot.press(key)
        await pilot.pause()
        assert not app.is_running

    watching(work)


def test_nothing_has_come_yet(tmp_path):
    from hypermon.host.live.terminal import WatchApp

    async def within():
        app = WatchApp(Session(None, None, tmp_path))
        async with app.run_test(size=(130, 40)) as pilot:
            await pilot.press("x")
            await pilot.pause(0.4)
            assert "no data yet" in shown(app)
            assert "no recording is running" in shown(app)

    asyncio.run(within())


@pytest.mark.parametrize("part", ["step", "snapshot", "stretch"])
def test_a_view_that_fails_goes_on(watching, monkeypatch, part):
    """Whatever fails is shown, and when it is over the recording is again."""
    async def work(app, pilot, run, made):
        async def until(text):
            for _ in range(100):
                await pilot.pause(0.05)
                if text in shown(app):
                    return shown(app)
            raise AssertionError(shown(app))

        await until("lost ")
        with monkeypatch.context() as patched:
            patched.setattr(Session, part, lambda *of: 1 // 0)
            text = await until("the view failed and continues: ZeroDivisionError")
            assert "ended  " not in text
            await pilot.press("h", "h", "plus", "t")
        assert "the view failed" not in await until("ended  ")
        assert f"items {sum(made.delivered.values()):,}" in shown(app)

    watching(work)


def test_a_key_that_fails_is_said(watching, monkeypatch):
    async def work(app, pilot, run, made):
        monkeypatch.setattr(Session, "stop", lambda self: Path("/nowhere/at/all").read_bytes())
        await pilot.press("x")
        await pilot.pause(0.5)
        assert "that failed: FileNotFoundError" in shown(app)

    watching(work)
