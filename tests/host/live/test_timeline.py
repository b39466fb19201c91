"""A click on a loss of the live page shows it in the time line, which `hypermon view` serves."""

import asyncio
import random
import socket
from pathlib import Path

import pytest
from hypermon.host.errors import HypermonError

from tests.host.external.browsing import browser_page, has_state, served
from tests.host.fake_board import FakeBoard, random_run
from tests.host.view.test_page import picture

pytest.importorskip("aiohttp")
from hypermon.host.live import timeline as timeline_module
from hypermon.host.live.timeline import Timeline


def alive(port: int) -> bool:
    with socket.socket() as other:
        return other.connect_ex(("127.0.0.1", port)) == 0


def port_of(address: str) -> int:
    return int(address.split(":")[2].split("/")[0])


def test_a_click_on_a_loss(make_run):
    run = make_run(random_run(FakeBoard(), random.Random(3), 60, losses=0.5, gap=3000))
    with served("-b", run.path) as address, browser_page(address) as page:
        has_state(page, "ended")
        row = page.locator("#losses tbody tr").first
        shown = row.locator("td").first.inner_text()
        with page.context.expect_page() as opened:
            row.locator("button").click()
        tab = opened.value
        tab.locator("#figures span").first.wait_for()
        picture(tab)
        values = dict(part.split("=") for part in tab.url.partition("#")[2].split("&"))
        losses = {(row["node"], row["from_ps"], row["to_ps"]) for row in run.loss().to_pylist()}
        assert (int(shown), int(values["a"]), int(values["b"])) in losses
        assert int(picture(tab)[2]["losses"]) >= 1
        port = port_of(tab.url)
        assert alive(port)
        with page.context.expect_page() as opened:
            page.locator("#losses tbody tr").nth(1).locator("button").click()
        opened.value.wait_for_url(f"http://127.0.0.1:{port}/**")      # the same process
    assert not alive(port)


def test_a_port_that_is_taken_and_a_run_that_is_none(make_run, tmp_path, monkeypatch):
    run = make_run(random_run(FakeBoard(), random.Random(3), 5))

    async def work():
        timeline = Timeline("127.0.0.1", "correct-horse-battery")
        try:
            with pytest.raises(HypermonError, match="nothing") as refused:
                await timeline.address(Path(tmp_path / "nothing"))
            assert len(str(refused.value).splitlines()) == 1
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                monkeypatch.setattr(timeline_module, "_PORT", taken.getsockname()[1])
                address = await timeline.address(run.path)
            assert address.endswith("?token=correct-horse-battery")
            assert port_of(address) != timeline_module._PORT
            assert await timeline.address(run.path) == address
        finally:
            await timeline.close()
        assert not alive(port_of(address))

    asyncio.run(work())
