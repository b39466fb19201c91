"""A run of several boards under view: a map of all nodes, and one board as if it were alone."""

import json
import random
from dataclasses import asdict, replace

import pytest
from hypermon.hdl.layout import LATENCY
from hypermon.host import cli
from hypermon.host.live.history import History
from hypermon.host.live.machine import MachineSession
from hypermon.host.live.session import Session
from hypermon.host.live.tail import Tail
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter

from tests.host.external.browsing import browser_page, fits, has_state, served
from tests.host.fake_board import FakeBoard, random_run

NODES = (4, 3, 5, 16)


@pytest.fixture
def machine(tmp_path):
    """``machine(shares)``: how much of each board's stream is there; None: it has not begun. And the boards."""
    boards = [random_run(FakeBoard(nodes), random.Random(nodes), 40, losses=0.5 * (nodes != 3)) for nodes in NODES]

    def make(shares=(1, 1, 1, 1)):
        path = tmp_path / "run"
        path.mkdir()
        infos = [RunInfo(f"uart:{number}", board.nodes, board.clock_hz, "800", LATENCY, board.epoch,
                         sink=board.sink.name.lower()) for number, board in enumerate(boards)]
        for number, (board, info, share) in enumerate(zip(boards, infos, shares, strict=True)):
            if share is not None:
                with RunWriter(path / f"board-{number}", info) as writer:
                    writer.append(board.data[:int(share * len(board.data))])
                    if share == 1:
                        writer.close(how="test", duration_ps=12345)
        (path / "recording.json").write_text(json.dumps(asdict(replace(
            infos[0], board="all", boards=[f"board-{number}" for number in range(4)], nodes=sum(NODES)))))
        return path, boards

    return make


def settled(session, wanted=()):
    for _ in range(20):
        session.step(wanted)
    return session.snapshot(next(iter(wanted), None))


def test_the_map_has_what_each_board_counted(machine):
    path, boards = machine()
    session = MachineSession(path)
    state = settled(session)
    session.close()
    assert (state["state"], state["failure"], state["board"]) == ("ended", "", None)
    assert [(one["first"], one["nodes"], one["state"]) for one in state["boards"]] == [
        (0, 4, "ended"), (4, 3, "ended"), (7, 5, "ended"), (12, 16, "ended")]
    for one, board in zip(state["boards"], boards, strict=True):
        assert one["items"] == [board.delivered[node] for node in range(board.nodes)]
        assert one["lost"] == [sum(count for (own, _), count in board.refused.items() if own == node)
                               for node in range(board.nodes)]
    assert sum(state["lost"]) == sum(state["causes"].values()) > 0
    assert state["bytes"] == sum(len(board.data) for board in boards)
    assert (session.stretch(1), session.newest()) == (None, [])


def test_rates_are_those_of_the_last_second(machine):
    path, _ = machine()
    session, alone = MachineSession(path), Session(None, path / "board-0", path)
    state = settled(session)
    for _ in range(20):
        alone.step()
    last = alone.stretch(10**12)
    span_s = (last.end_ps - last.begin_ps) * 1e-12
    assert state["boards"][0]["rate"] == [round(count / span_s) for count in last.items.sum(axis=0)]
    session.close()
    alone.close()


def test_a_chosen_board_is_shown_as_if_alone(machine):
    path, _ = machine()
    session, alone = MachineSession(path), Session(None, path / "board-2", path)
    state = settled(session, {2, 99, None})
    for _ in range(20):
        alone.step()
    own = alone.snapshot()
    for name in ("nodes", "items", "lost", "losses", "time_ps", "causes"):
        assert session.snapshot(2)[name] == own[name], name
    assert session.newest(2) == alone.newest() != []
    assert (session.stretch(10**13, 2).items == alone.stretch(10**13).items).all()
    assert (session.snapshot(2)["board"], session.snapshot(99)["board"]) == (2, None)
    settled(session)
    assert session.newest(2) == [], "nobody looks at it any more"
    alone.close()
    session.close()
    assert state["state"] == "ended"


def test_boards_grow_and_begin_later(machine):
    path, boards = machine((0.4, None, 1, 1))
    session = MachineSession(path)
    state = settled(session, {1})
    assert (state["state"], state["board"]) == ("following", None)
    assert [one["state"] for one in state["boards"]] == ["following", "waiting", "ended", "ended"]
    assert state["boards"][1]["items"] == [0] * state["boards"][1]["nodes"]
    with open(path / "board-0" / "stream.bin", "ab") as file:
        file.write(boards[0].data[int(0.4 * len(boards[0].data)):])
    assert settled(session)["boards"][0]["items"] == [boards[0].delivered[node] for node in range(4)]
    session.close()


def test_a_board_that_cannot_be_shown_fails_alone(machine, monkeypatch):
    path, boards = machine()
    (path / "board-1" / "recording.json").write_text("{}")
    session, read = MachineSession(path), Tail.read
    monkeypatch.setattr(Tail, "read", lambda self, *size: (1 / 0 if self._run.name == "board-3" else read(self, *size)))
    state = settled(session)
    session.close()
    assert [one["state"] for one in state["boards"]] == ["ended", "failed", "ended", "failed"]
    assert "board-1" in state["failure"]
    assert "board-3 cannot be shown: ZeroDivisionError" in state["failure"]
    assert state["boards"][2]["items"] == [boards[2].delivered[node] for node in range(5)]


def test_memory_of_many_boards_is_small():
    """Of a board on the map, only the last seconds are kept: a quarter of a megabyte with 16 nodes."""
    assert History(16, levels=1)._counts.nbytes <= 1 << 18


def test_watch_names_what_shows_it(machine, capsys):
    pytest.importorskip("textual")
    path, _ = machine()
    assert cli._run(["watch", "-b", str(path)]) == 2
    assert f"hypermon serve -b {path}" in capsys.readouterr().err


def test_the_page(machine):
    path, boards = machine((1, 1, 0.5, 1))
    with served("-b", path) as address, browser_page(address, color_scheme="light") as page:
        has_state(page, "being recorded")
        with open(path / "board-2" / "stream.bin", "ab") as file:
            file.write(boards[2].data[int(0.5 * len(boards[2].data)):])
        has_state(page, "ended")
        tiles, lost = page.locator("#boards button"), sum(sum(board.refused.values()) for board in boards)
        assert page.inner_text("#items") == f"{sum(sum(board.delivered.values()) for board in boards):,}"
        assert page.inner_text("#lost") == f"{lost:,}"
        assert [tiles.nth(k).locator("rect.heat").count() for k in range(4)] == list(NODES)
        assert [tiles.nth(k).locator("rect.lost").count() > 0 for k in range(4)] == [
            bool(board.refused) for board in boards]
        assert not page.is_visible("#nodes")
        tiles.nth(2).click()
        page.locator("#nodes tbody tr").nth(4).wait_for()
        assert page.locator("#nodes tbody tr").count() == 5
        cells = page.locator("#nodes tbody tr").nth(4).locator("td")
        assert cells.nth(2).inner_text() == f"{boards[2].delivered[4]:,}"
        assert [tiles.nth(k).get_attribute("aria-pressed") for k in range(4)] == ["false", "false", "true", "false"]
        assert "nodes 7 to 11 of the run" in page.inner_text("#boards-text")
        for width in (360, 820, 1400):
            fits(page, width)

        # The link leads another page to the same board; a key leads back to all.
        other = page.context.browser.new_page()
        other.goto(page.url)
        other.locator("#nodes tbody tr").nth(4).wait_for()
        page.keyboard.press("b")
        page.locator("#nodes").wait_for(state="hidden")
        assert "board=" not in page.url
