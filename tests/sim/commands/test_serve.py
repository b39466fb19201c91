"""The live page of a board: the virtual one, recorded at the press of a button."""

import json
from pathlib import Path

import pytest
from hypermon.host.run import open_run

from tests.host.external.browsing import browser_page, has_state, served


@pytest.fixture
def stimulus(tmp_path) -> Path:
    """Node 3 writes every 10 us, for a second of board time."""
    path = tmp_path / "play.csv"
    with open(path, "w") as file:
        file.write("time_ns,node,port\n")
        for k in range(100_000):
            file.write(f"{10_000 * k},3,{k % 16}\n{10_000 * k + 100},3,{16 + k % 16}\n")
    return path


def test_record_and_stop_from_the_page(classic, stimulus, tmp_path):
    """And be told why not."""
    with served("-b", f"sim:{stimulus}", "-o", tmp_path) as address, browser_page(address) as page:
        has_state(page, "idle")
        page.fill("[name=start]", "nibble=7")
        page.press("[name=start]", "Enter")
        has_state(page, "failed")
        assert "--start nibble=7: the classic board has no triggers" in page.inner_text("#failure")
        assert not list(tmp_path.glob("run-*"))

        page.fill("[name=start]", "")
        page.fill("[name=mask_nodes]", "0x8")
        page.locator("h1").click()
        page.keyboard.press("s")
        has_state(page, "recording")
        assert not page.is_visible("#failure")
        assert page.inner_text("#command").endswith("--mask=nodes=0x8")
        page.locator("#nodes tbody tr:nth-child(4) td:nth-child(3):not(:text-is('0'))").wait_for()
        page.keyboard.press("x")
        has_state(page, "ended")
        page.keyboard.press("5")
        shown = int(page.inner_text("#items").replace(",", ""))
        (path,) = tmp_path.glob("run-*")
        assert page.inner_text("#run") == str(path)
        assert page.is_enabled("#perfetto")
        # Once more, and Ctrl-C to the server: it ends both, properly.
        page.keyboard.press("s")
        has_state(page, "recording")
        page.locator("#nodes tbody tr:nth-child(4) td:nth-child(3):not(:text-is('0'))").wait_for()
    (other,) = set(tmp_path.glob("run-*")) - {path}
    assert open_run(other).info.end["how"] == "interrupted"
    assert open_run(other).stats()["complete"]
    run = open_run(path)
    assert run.info.end["how"] == "interrupted"
    assert 0 < shown == run.stats()["events"] == run.stats()["events_per_node"][3] < 100_000
    assert json.loads((path / "recording.json").read_text())["configuration"]["nodes_kept"] == [3]
