"""Several recorders and the run that they make; the recorders are made up."""

import json
import os
import re
from dataclasses import asdict

import pytest
from hypermon.host import cli
from hypermon.host.errors import HypermonError, IncompleteError
from hypermon.host.record import several_boards
from hypermon.host.record.interrupt import Interrupt
from hypermon.host.record.wiring import Wiring
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter


class Recorder:
    """Records nothing, as soon as it is begun, and ends after so many looks; it may fail by then."""

    made: list["Recorder"] = []  # noqa: RUF012
    looks = 3
    failing: str | None = None
    other: dict = {}  # noqa: RUF012
    silent = ()
    stubborn = False

    def __init__(self, board, run, options, files=()):
        self.files = files
        self.board, self.options, self.left = board, options, self.looks
        self.stopped = False
        self.patience = []
        self.figures = {}
        Recorder.made.append(self)
        self.failure = "gone" if board == self.failing else None
        if self.failure:
            return
        values = {"clock_hz": 100_000_000, "window": "800"} | self.other.get(board, {})
        info = RunInfo(board, 16, latency=4, epoch=1, **values)
        with RunWriter(run, info) as writer:
            writer.append(b"" if board in self.silent else b"x")
            writer.close(how="test", duration_ps=1000 * len(Recorder.made))

    @property
    def running(self):
        self.left -= 1
        self.figures = {"events": 5, "lost": 1, "how": "test", "bytes": 0 if self.board in self.silent else 100}
        return not self.stopped and self.left > 0 and not self.failure

    def stop(self):
        self.stopped = True

    def close(self, patience_s):
        self.stopped = True
        self.patience.append(patience_s)
        if self.stubborn and patience_s:
            raise KeyboardInterrupt


@pytest.fixture
def recorders(monkeypatch):
    monkeypatch.setattr(Recorder, "made", [])
    monkeypatch.setattr(several_boards, "RecorderProcess", Recorder)
    monkeypatch.setattr(several_boards, "_LOOK_S", 0.001)
    monkeypatch.setattr(several_boards, "_WAVE_S", 0.05)
    return Recorder


def go(run, boards=("uart:a", "uart:b"), options=("--window=400",), follow=False, interrupt=None):
    return several_boards.record_together(boards, run, options, follow=follow, interrupt=interrupt or Interrupt())


def test_a_run_of_two(recorders, tmp_path):
    figures = go(tmp_path / "run")
    assert [own["events"] for own in figures] == [5, 5]
    info = RunInfo.load(tmp_path / "run" / "recording.json")
    assert (info.board, info.nodes, info.boards) == ("uart:a, uart:b", 32, ["board-0", "board-1"])
    assert (info.end["how"], info.end["duration_ps"]) == ("all boards finished", 2000)
    assert [own.options for own in recorders.made] == [["--window=400"]] * 2


def test_those_that_follow_are_started_first(recorders, tmp_path):
    go(tmp_path / "run", ("uart:a", "uart:b", "uart:c"), follow=True)
    assert [(own.board, "--follow" in own.options) for own in recorders.made] == [
        ("uart:b", True), ("uart:c", True), ("uart:a", False)]


@pytest.mark.parametrize(("boards", "looks", "why"), [
    (("uart:a", "uart:b", "uart:c"), 10**9, "uart:c: it received no wave from uart:a: is that one's sync_out wired"),
    (("uart:a", "uart:b", "uart:c"), 3, "uart:c: it received no wave from uart:a")])
def test_a_wave_that_never_came(recorders, tmp_path, monkeypatch, boards, looks, why):
    """Also if all have ended before it is missed. What the others have is kept."""
    monkeypatch.setattr(recorders, "looks", looks)
    monkeypatch.setattr(recorders, "silent", boards[2:])
    with pytest.raises(IncompleteError) as caught:
        go(tmp_path / "run", boards, follow=True)
    assert why in str(caught.value)
    assert "uart:b" not in str(caught.value)
    assert str(caught.value).endswith(f"what was recorded is in {tmp_path / 'run'}")
    end = RunInfo.load(tmp_path / "run" / "recording.json").end
    assert why in end["how"]
    assert end["proper"] is False
    patience = {own.board: own.patience for own in recorders.made}
    assert patience[boards[2]] == [1.0]
    assert patience[boards[1]][0] > 10


def test_a_chain_is_started_from_its_end(recorders, tmp_path):
    wiring = Wiring.parse("chain", 3)
    several_boards.record_together(("uart:a", "uart:b", "uart:c"), tmp_path / "run", (), follow=True,
                                   interrupt=Interrupt(), wiring=wiring)
    assert [own.board for own in recorders.made] == ["uart:c", "uart:b", "uart:a"]
    assert RunInfo.load(tmp_path / "run" / "recording.json").wires == [None, {"follows": 0}, {"follows": 1}]


def test_virtual_boards_get_pipes(recorders, tmp_path, monkeypatch):
    """One for each wire; every end is closed in this process, whatever happens."""
    before = set(os.listdir("/proc/self/fd"))
    several_boards.record_together(("sim:", "sim:x?ppm=3", "sim:y"), tmp_path / "run", (), follow=True,
                                   interrupt=Interrupt(), wiring=Wiring.parse("0,1", 3))
    third, second, first = recorders.made
    assert re.fullmatch(r"sim:y\?sync_in=\d+", third.board)
    assert re.fullmatch(r"sim:x\?ppm=3&sync_in=\d+&sync_out=\d+", second.board)
    assert re.fullmatch(r"sim:\?sync_out=\d+", first.board)
    assert [len(own.files) for own in recorders.made] == [1, 2, 1]
    assert set(os.listdir("/proc/self/fd")) <= before
    assert RunInfo.load(tmp_path / "run" / "recording.json").wires == [None, {"follows": 0}, {"follows": 1}]


def test_without_a_wave_nobody_is_waited_for(recorders, tmp_path, monkeypatch):
    """Boards that do not follow may be silent for long."""
    monkeypatch.setattr(recorders, "looks", 300)
    monkeypatch.setattr(recorders, "silent", ("uart:a", "uart:b"))
    go(tmp_path / "run")
    assert all(own.left <= 0 for own in recorders.made)


def test_a_second_interrupt_kills(recorders, tmp_path, monkeypatch):
    """All of them, and the run has its end."""
    monkeypatch.setattr(recorders, "stubborn", True)
    go(tmp_path / "run")
    assert [own.patience[-1] for own in recorders.made] == [0.0, 0.0]
    assert RunInfo.load(tmp_path / "run" / "recording.json").end is not None


def test_an_interrupt_before_all_were_there(recorders, tmp_path, monkeypatch):
    """Nothing is left behind of boards that had recorded nothing."""
    interrupt = Interrupt()
    interrupt.hit = True
    monkeypatch.setattr(recorders, "silent", ("uart:b",))
    monkeypatch.setattr(several_boards, "_listens", lambda recorder: False)
    with pytest.raises(HypermonError, match="interrupted before all boards were there"):
        go(tmp_path / "run", follow=True, interrupt=interrupt)
    assert [own.board for own in recorders.made] == ["uart:b"]
    assert recorders.made[0].stopped
    assert not (tmp_path / "run").exists()


def test_an_interrupt_ends_all(recorders, tmp_path, monkeypatch):
    interrupt = Interrupt()
    monkeypatch.setattr(recorders, "looks", 10**9)
    monkeypatch.setattr(several_boards, "write_json", lambda path, values, real=several_boards.write_json: (
        real(path, values), setattr(interrupt, "hit", True)))
    go(tmp_path / "run", interrupt=interrupt)
    assert all(own.stopped for own in recorders.made)
    assert RunInfo.load(tmp_path / "run" / "recording.json").end["how"] == "interrupted"


def test_one_that_fails_ends_all(recorders, tmp_path, monkeypatch):
    monkeypatch.setattr(recorders, "failing", "uart:b")
    monkeypatch.setattr(recorders, "looks", 10**9)
    with pytest.raises(HypermonError, match="gone"):
        go(tmp_path / "run")
    assert recorders.made[0].stopped
    assert (tmp_path / "run" / "board-0" / "stream.bin").exists()
    monkeypatch.setattr(recorders, "failing", "uart:a")
    with pytest.raises(HypermonError, match="gone"):
        go(tmp_path / "none", ("uart:a",))
    assert not (tmp_path / "none").exists()


def test_boards_that_do_not_make_one_run(recorders, tmp_path, monkeypatch):
    monkeypatch.setattr(recorders, "other", {"uart:b": {"clock_hz": 50_000_000}})
    with pytest.raises(HypermonError, match="clock_hz is 100000000 and 50000000"):
        go(tmp_path / "run")
    assert all(own.stopped for own in recorders.made)


def test_the_same_board_twice(recorders, tmp_path):
    with pytest.raises(HypermonError, match="uart:a is given twice"):
        go(tmp_path / "run", ("uart:a", "uart:a"))
    assert not (tmp_path / "run").exists()


def test_the_command_hands_on_what_was_said(recorders, tmp_path, capsys):
    words = ["record", "-b", "uart:a", "-b", "uart:b", "-o", str(tmp_path / "run"), "--config", "extended", "--follow",
             "--mode", "0=event", "--mode", "1=word", "--seconds", "2.5", "--json"]
    assert cli._run(words) == 0
    assert [own.options for own in recorders.made] == [
        ["--seconds=2.5", "--config=extended", "--mode=0=event", "--mode=1=word", *more] for more in (["--follow"], [])]
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["boards"][1]["events"] == 5
    assert cli._run(["record", "-b", "uart:a", "-b", "uart:b", "-o", str(tmp_path / "more"), "--keep", "stats"]) == 2
    assert "--keep stats" in capsys.readouterr().err


def test_of_one_board_nothing_has_changed(tmp_path):
    values = asdict(RunInfo("uart:a", 16, 100_000_000, "800", 4, 1))
    del values["boards"]
    (tmp_path / "recording.json").write_text(json.dumps(values))
    assert RunInfo.load(tmp_path / "recording.json").boards == []
