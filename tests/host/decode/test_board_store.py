"""Recordings of several boards, read as one."""

import json
import random
from dataclasses import asdict, replace

import pytest
from hypermon.hdl.layout import CensusFlag
from hypermon.host import cli
from hypermon.host.decode.alignment import align
from hypermon.host.device.device import Device, Settings
from hypermon.host.errors import InputError
from hypermon.host.record.recorder import record
from hypermon.host.recording.clock import WallClock, save_clock
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.segments import write_json
from hypermon.host.run import open_run

from tests.host.fake_board import FakeBoard, FakeLink, random_run

#: Corrected times are rounded to an eighth of a clock of 100 MHz.
HALF_TICK = 625


@pytest.fixture
def several(make_run, tmp_path):
    """``several(boards, clocks=..., follow=...)``: a run of those boards."""

    def make(boards, clocks=None, follow=False, uri="uart:{}"):
        path = tmp_path / "together"
        path.mkdir()
        names = [f"board-{number}" for number in range(len(boards))]
        for number, (name, board) in enumerate(zip(names, boards, strict=True)):
            part = make_run(board, name=f"together/{name}", configuration={"follow": follow and number > 0},
                            board=uri.format(number))
            if clocks is not None:
                save_clock(part.path, clocks[number])
        info = replace(RunInfo.load(path / "board-0" / "recording.json"), boards=names, board="all",
                       nodes=sum(board.nodes for board in boards))
        (path / "recording.json").write_text(json.dumps(asdict(info)))
        return open_run(path)

    return make


def boards(*nodes: int) -> list[FakeBoard]:
    return [random_run(FakeBoard(count), random.Random(count + k), 12, losses=0.6) for k, count in enumerate(nodes)]


def wanted(made, times):
    """Time, node, nibble of all events, in order."""
    rows, base = [], 0
    for board, moved in zip(made, times, strict=True):
        rows += [(moved(time), base + node, nibble) for time, node, nibble in board.events()]
        base += board.nodes
    return sorted(rows, key=lambda row: row[:2])


def got(run):
    return [tuple(row.values()) for row in run.events().to_pylist()]


def following(*nodes: int, flags: int = CensusFlag.FOLLOWS) -> list[FakeBoard]:
    """All but the first say that they follow another one, or something else."""
    made = [FakeBoard(count) for count in nodes]
    for board in made[1:]:
        board.always = flags
    return [random_run(board, random.Random(board.nodes + k), 12, losses=0.6) for k, board in enumerate(made)]


def test_by_wire(several):
    made = following(4, 6, 16)
    run = several(made, follow=True)
    assert got(run) == wanted(made, [lambda time: time] * 3)
    stats = run.stats()
    assert (stats["nodes"], stats["events"]) == (26, sum(len(board.events()) for board in made))
    assert stats["events_per_node"] == [board.delivered[node] for board in made for node in range(board.nodes)]
    assert stats["lost"] == sum(sum(board.refused.values()) for board in made) == sum(run.loss()["lost"].to_pylist())
    assert stats["lost_per_node"][4:10] == [
        sum(n for (own, _), n in made[1].refused.items() if own == node) for node in range(6)]
    assert (stats["accounted"], stats["complete"]) == (True, stats["lost"] == 0)
    assert [(own["first_node"], own["nodes"], own["how"], own["uncertainty_ns"]) for own in stats["boards"]] == [
        (0, 4, "first", 0), (4, 6, "wire", 815), (10, 16, "wire", 815)]    # a window, and a clock and a half
    assert run.sql("select count(distinct node) from events").fetchall() == [(26,)]
    made_at = (run.path / "decode.json").stat().st_mtime_ns
    assert run.decode()["events"] == stats["events"]
    assert (run.path / "decode.json").stat().st_mtime_ns == made_at     # once is enough


def rewired(run, wires):
    """The same run, whose boards are said to be wired like this."""
    info = replace(RunInfo.load(run.path / "recording.json"), wires=wires)
    (run.path / "recording.json").write_text(json.dumps(asdict(info)))
    return open_run(run.path)


@pytest.mark.parametrize(("wires", "offsets", "unsure"), [
    ([None, {"follows": 0}, {"follows": 1}, {"follows": 2}], [0, 0, 40_000, 80_000], [0, 815, 830, 845]),
    ([None, {"follows": 0}, {"follows": 0}, {"follows": 1}], [0, 0, 0, 40_000], [0, 815, 815, 830]),
    # A delay that was measured: the mean of the lag is half a clock less, and is known.
    ([None, {"follows": 0, "delay_ps": 123_456, "uncertainty_ps": 1_250}, {"follows": 0},
      {"follows": 1, "delay_ps": -1_000, "uncertainty_ps": 2_000}],
     [0, 118_456, 0, 118_456 - 1_000 + 35_000], [0, 812, 815, 824])])
def test_wires_one_after_the_other(several, capsys, wires, offsets, unsure):
    """Each adds its lag and its uncertainty: a chain is said to be one."""
    run = rewired(several(following(2, 2, 2, 2), follow=True), wires)
    boards = run.stats()["boards"]
    assert [own["offset_ps"] for own in boards] == offsets
    assert [own["uncertainty_ns"] for own in boards] == unsure
    assert cli._run(["stats", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "by wire, to 81" in said
    assert f"by {max(own['hops'] for own in boards)} wires in a chain, to 8" in said


def test_a_chain_with_a_link_that_failed(several):
    """Who follows a board that has lost the wave is not aligned either; the others are."""
    made = following(2, 2, 2, 2)
    made[2] = random_run(FakeBoard(2), random.Random(5), 12, losses=0.6)
    run = rewired(several(made, follow=True), [None, {"follows": 0}, {"follows": 1}, {"follows": 2}])
    assert [own["uncertainty_ns"] for own in run.stats()["boards"]] == [0, 815, None, None]


@pytest.mark.parametrize(("wires", "why"), [
    ([None], "2 boards have 1 wires"), ([None, {"follows": 1}], "board 1 follows board 1, which does not come before"),
    ([None, {"follows": -1}], "follows"), ([None, {}], "follows"),
    ([None, {"follows": 0, "delay_ps": "x"}], "delay_ps")])
def test_wires_that_are_none(several, wires, why):
    run = several(following(2, 2), follow=True)
    with pytest.raises(InputError, match=why):
        rewired(run, wires)


def test_by_the_hosts_clock(several):
    """The second board is switched on 3 ms later and runs 20 ppm slower than the host; the first, 5 ppm faster."""
    made = boards(3, 3)
    run = several(made, [WallClock(10**18, -5.0, 400, 9), WallClock(10**18 + 3_000_000, 20.0, 900, 9)])
    [_, own] = align(run.parts(), [part.decode() for part in run.parts()])
    assert (own.how, own.uncertainty_ns, own.drift_ppm) == ("host clock", 1301, pytest.approx(25.0, abs=1e-3))

    def exactly(time):
        return (3_000_000_000 + time * (1 + 20e-6)) / (1 - 5e-6)

    for (time, node, nibble), (want, *rest) in zip(got(run), wanted(made, [lambda time: time, exactly]), strict=True):
        assert abs(time - want) <= HALF_TICK + 2
        assert [node, nibble] == rest
    losses = [(row["node"], row["from_ps"]) for row in run.loss().to_pylist()]
    ours = [(row["node"], row["from_ps"]) for row in run.parts()[0].loss().to_pylist()]
    other = [(3 + row["node"], row["from_ps"]) for row in run.parts()[1].loss().to_pylist()]
    for (node, time), (own_node, want) in zip(losses, sorted(
            ours + [(node, exactly(time)) for node, time in other], key=lambda row: (row[1], row[0])), strict=True):
        assert (node, abs(time - want) <= HALF_TICK + 2) == (own_node, True)
    assert run.clock.uncertainty_ns == 400


@pytest.mark.parametrize("flags", [0, CensusFlag.FOLLOWS | CensusFlag.STRAYED, None])
def test_a_wire_that_failed(several, capsys, flags):
    """The wave that a board was to follow failed, or it has not followed, or nothing came from it: no uncertainty."""
    made = following(2, 2, flags=flags or 0)
    run = several([made[0], FakeBoard(2)] if flags is None else made, follow=True)
    [_, own] = run.stats()["boards"]
    assert (own["how"], own["uncertainty_ns"]) == ("wire", None)
    assert run.parts()[1].decode()["followed"] is False
    assert cli._run(["stats", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not aligned: the first board's wave never arrived, or it failed for a while" in said
    assert " us" not in said.partition("not aligned")[2].partition("clock")[0]


def test_a_drift_that_was_not_measured(several, capsys):
    """Nothing is printed of it."""
    run = several(boards(2, 2), [WallClock(10**18, 0.0, 400, 3), WallClock(10**18 + 7, 0.0, 900, 4)])
    assert cli._run(["stats", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "by the host's clock: +0.000000 s, drift not measured, to 1.30 us" in said
    assert "to 0.4 us by the host's clock; drift not measured" in said
    assert "ppm" not in said


def test_what_is_not_known_is_said(several, capsys):
    run = several(boards(2, 2), [WallClock(10**18), WallClock(10**18 + 7)])
    [_, own] = run.stats()["boards"]
    assert (own["how"], own["offset_ps"], own["uncertainty_ns"]) == ("host clock", 7000, None)
    assert cli._run(["stats", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not aligned: the host's clock was not compared with the boards' (too short a recording)" in said
    assert "0.000007" not in said


def test_virtual_boards_begin_together(several):
    made = boards(2, 2)
    run = several(made, uri="sim:{}.csv")
    assert got(run) == wanted(made, [lambda time: time] * 2)
    assert run.stats()["boards"][1]["how"] == "together"


def test_exports(several, tmp_path, capsys):
    made = boards(4, 4)
    run = several(made, follow=True)
    assert cli._run(["export", str(run.path), "--to", "csv", str(tmp_path / "out.csv"), "--nodes", "5"]) == 0
    rows = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert rows == [f"{time},5,{nibble}" for time, node, nibble in made[1].events() if node == 1]
    for form in ("ctf", "vcd", "perfetto"):
        assert cli._run(["export", str(run.path), "--to", form, str(tmp_path / form)]) == 0
    capsys.readouterr()
    for form in ("frames", "sr"):
        assert cli._run(["export", str(run.path), "--to", form, str(tmp_path / form)]) == 2
        assert "export one of them" in capsys.readouterr().err


def test_more_that_comes_is_merged_again(several):
    made = boards(2, 2)
    run = several(made, follow=True)
    whole = (run.path / "board-1" / "stream.bin").read_bytes()
    (run.path / "board-1" / "stream.bin").write_bytes(whole[:len(whole) // 2])
    before = run.stats()
    assert (before["complete"], before["events"] < sum(len(board.events()) for board in made)) == (False, True)
    (run.path / "board-1" / "stream.bin").write_bytes(whole)
    assert got(run) == wanted(made, [lambda time: time] * 2)


def test_a_part_that_is_gone(several):
    run = several(boards(2, 2))
    (run.path / "board-1" / "recording.json").unlink()
    with pytest.raises(InputError, match="board-1: no recording"):
        run.events()


def test_boards_of_different_years(several):
    """Times of the run would have more than 64 bits."""
    run = several(boards(2, 2), clocks=[WallClock(0), WallClock(10**18)])
    with pytest.raises(InputError, match=r"board-1: its clock is 11574 days from that of board-0"):
        run.decode()


@pytest.mark.parametrize("names", [["../x"], ["board-"], [7]])
def test_names_that_are_no_boards(several, names):
    run = several(boards(2))
    values = json.loads((run.path / "recording.json").read_text()) | {"boards": names}
    (run.path / "recording.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"boards\[0\] is"):
        open_run(run.path)


def test_a_clock_that_is_gone_is_said(tmp_path, run_cli):
    """Without it the boards are aligned by nothing but the starts of their recordings."""
    (tmp_path / "run").mkdir()
    for number in range(2):
        board = random_run(FakeBoard(2), random.Random(number), 5)
        record(Device(FakeLink(board)), tmp_path / "run" / f"board-{number}", Settings())
    info = RunInfo.load(tmp_path / "run" / "board-0" / "recording.json")
    write_json(tmp_path / "run" / "recording.json",
               asdict(replace(info, boards=["board-0", "board-1"], nodes=4, modes=[], end=None)))
    assert not [line for line in run_cli("stats", tmp_path / "run")[2] if "clock" in line]
    (tmp_path / "run" / "decode.json").unlink()
    (tmp_path / "run" / "board-1" / "clock.json").unlink()
    assert "board-1: clock.json is missing" in run_cli("stats", tmp_path / "run")[2][-1]
    assert not open_run(tmp_path / "run").stats()["complete"]
