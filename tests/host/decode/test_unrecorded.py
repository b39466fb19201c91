"""From when on losses may be in no record: of recordings that were killed, of lines, and of several boards; and what
rings and parts of runs do not have."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypermon.hdl.layout import CensusFlag, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.contracts.doubts import opened_trace
from hypermon.host.decode.ledger import Ledger
from hypermon.host.decode.unrecorded import END_PS, absent, cut_nodes, masked_events, rejected, unrecorded
from hypermon.host.record.excerpt import trim
from hypermon.host.record.joined import merge
from hypermon.host.recording.info import RunInfo
from hypermon.host.run import Run, open_run
from hypermon.host.tables.selection import Selection

from tests.host.fake_board import FakeBoard

LATENCY_PS = 20_000
#: Flags of a census: more may be lost on link 1 than is counted; nothing of link 2 has come.
UNSURE, ABSENT = 1 << 9, 1 << 14


def board(nodes: int, end: int | None = None, **more) -> FakeBoard:
    """It has counted everything until window 40."""
    made = FakeBoard(nodes, **more).start().frames([(10, {0: 1}), (50, {1: 2})]).census(time=40)
    return made if end is None else made.stop(end)


def doubts(run: Run) -> dict[int, int]:
    return unrecorded(run, run.decode())


def at(made: FakeBoard, window: int) -> int:
    """The earliest time of what is counted into a window."""
    return made.ps(window) - LATENCY_PS


def test_a_recording_with_an_end(make_run):
    run = make_run(board(3, 60))
    assert doubts(run) == {}
    assert "counted_until" not in run.decode()


def test_a_recording_that_was_killed(make_run):
    made = board(3)
    assert doubts(make_run(made, end=False)) == dict.fromkeys(range(3), at(made, 40))


def test_a_record_after_the_last_census_may_be_of_later_losses(make_run):
    """Then it is not known how many of the losses that the census counted are still without a record."""
    made = board(2).refuse(0, 50).refuse(1, 50).census(time=49).loss([(0, 30, 49, 49)])
    run = make_run(made, end=False)
    assert [(row["node"], row["lost"]) for row in run.loss().to_pylist()] == [(0, 30), (0, 20), (1, 50)]
    assert doubts(run) == {0: at(made, 40), 1: at(made, 49)}


def test_before_the_first_census_anything_may_be_lost(make_run):
    made = FakeBoard(2).frames([(10, {0: 1})])
    assert doubts(make_run(made, end=False)) == dict.fromkeys(range(2), at(made, 0))


def test_frames_that_were_read_from_registers(make_run):
    made = board(2, host=True)
    assert doubts(make_run(made, end=False)) == dict.fromkeys(range(2), at(made, 0))


@pytest.mark.parametrize(("flags", "nodes"), [(0, ()), (UNSURE, range(8, 16)), (ABSENT, range(16, 24)),
                                              (UNSURE | ABSENT, range(8, 24))])
def test_lines(make_run, flags, nodes):
    made = FakeBoard(30)
    made.always = CensusFlag.LINKS | flags
    made.start().frames([(10, {0: 1})]).stop(60)
    assert doubts(make_run(made)) == dict.fromkeys(nodes, at(made, 0))


def test_a_board_with_lines_that_was_killed(make_run):
    """Its lines report their losses later than a census."""
    made = FakeBoard(10)
    made.always, made.lined = CensusFlag.LINKS, 8
    made.start().frames([(10, {0: 1}), (50, {9: 1})]).census(time=40)
    assert doubts(make_run(made, end=False)) == {
        **dict.fromkeys(range(8), at(made, 0)), **dict.fromkeys(range(8, 10), at(made, 40))}


def test_stamps_of_front_ends_are_late(make_run):
    """Times of their items are earlier by as many clocks as the stamps are late."""
    made = FakeBoard(2, window=Window.CLOCK, sink=Sink.EXTENDED).start().compact([(100, 0, 1), (1500, 1, 2)])
    made.census(time=800)
    run = make_run(made, end=False, configuration={"front_late_clocks": [0, 300]})
    assert doubts(run) == {0: at(made, 800), 1: at(made, 500)}


def test_one_board_of_several(make_run, tmp_path):
    (tmp_path / "run").mkdir()
    made = [board(2, 60), board(3), board(2, 60)]
    names = [f"board-{number}" for number in range(3)]
    for name, own in zip(names, made, strict=True):
        make_run(own, name=f"run/{name}", end=own is not made[1])
    info = replace(RunInfo.load(tmp_path / "run" / "board-0" / "recording.json"), boards=names, board="all", nodes=7)
    (tmp_path / "run" / "recording.json").write_text(json.dumps(asdict(info)))
    run = open_run(tmp_path / "run")
    [aligned] = run.aligned_parts()[1][1].times(np.array([at(made[1], 40)])).tolist()
    assert doubts(run) == dict.fromkeys(range(2, 5), aligned)


def test_an_accounting_of_before(make_run):
    """It does not state until when everything was counted."""
    made = board(2)
    run = make_run(made, end=False)
    done = run.decode()
    del done["counted_until"]
    assert unrecorded(run, done) == dict.fromkeys(range(2), at(made, 0))


def test_a_part_of_tables_that_were_not_written_to_the_end(make_run, tmp_path):
    """The part has an end, the recording had none."""
    made = board(2)
    trim(make_run(made, end=False), tmp_path / "killed", Selection())
    info = RunInfo.load(tmp_path / "killed" / "recording.json")
    (tmp_path / "killed" / "recording.json").write_text(json.dumps(asdict(replace(info, end=None))))
    trim(open_run(tmp_path / "killed"), tmp_path / "part", Selection())
    for name in ("killed", "part"):
        assert doubts(open_run(tmp_path / name)) == dict.fromkeys(range(2), at(made, 0))


def test_what_parts_and_rings_do_not_have(make_run, tmp_path):
    made = board(3, 60)
    run = make_run(made)
    assert absent(run, run.decode()) == []
    assert absent(run, run.decode() | {"begins": 20}) == [
        (node, made.ps(0), made.ps(20)) for node in range(3)]
    trim(run, tmp_path / "part", Selection([0, 2], from_ps=10**7))
    part = open_run(tmp_path / "part")
    assert absent(part, part.decode()) == [(1, 0, END_PS), *((node, made.ps(0), 10**7) for node in range(3))]


@pytest.mark.parametrize("part", [False, True])
def test_a_ring_among_several_boards(make_run, tmp_path, part):
    """It does not have what was before its beginning, and neither does a part of it."""
    made = board(2, 60)
    ring, ledger = make_run(made, made.blocks[2] + made.blocks[3], name="ring"), Ledger.of(make_run(made).info)
    for _ in ledger.event_rows(BlockScanner().feed(made.blocks[0] + made.blocks[1])):
        pass
    (ring.path / "ring.json").write_text(json.dumps({"first": 0, "account": ledger.account()}))
    if part:
        trim(ring, tmp_path / "part", Selection())
    begins, second = ring.decode()["begins"], tmp_path / ("part" if part else "ring")
    assert begins > 0
    both = merge([tmp_path / "run", second], tmp_path / "both", {second: 3 * 10**6})
    assert absent(both, both.decode()) == [(node, made.ps(0) + 3 * 10**6, made.ps(begins) + 3 * 10**6)
                                           for node in (2, 3)]
    with opened_trace(both) as (trace, _):
        assert [own.start for own in trace.nodes] == [made.ps(0)] * 2 + [made.ps(begins) + 3 * 10**6] * 2


def test_rejects_of_several_boards(make_run, tmp_path):
    """Each board's spans are in its own windows; the judge takes them for gaps of these nodes."""
    for name, count in (("one", 0), ("two", 5)):
        made = board(2, 60)
        made.rejected[1] = count
        made.stop(9000)
        make_run(made, name=name)
    both = merge([tmp_path / "one", tmp_path / "two"], tmp_path / "both", {tmp_path / "two": 3 * 10**6})
    done = both.decode()
    assert done["rejected_spans"][:3] == [[], [], []]
    [[first, last, count]] = done["rejected_spans"][3]
    [_, (part, how)] = both.aligned_parts()
    low, high = (time + 3 * 10**6 for time in part.info.scale.span_ps(first, last))
    assert rejected(part, how, done) == [(3, low, high, 5)]
    with opened_trace(both) as (trace, _):
        end = trace.nodes[3].end
        assert trace.db.execute("select node, lo, hi, n from gaps where cause = 'filter'").fetchall() == [
            (3, max(low, trace.nodes[3].start), min(high, end), 5)]


@pytest.mark.parametrize(("configuration", "fronts", "found"), [
    ({"nodes_kept": [0, 2]}, [], [(1, 0, None)]), ({"glitch_clocks": 3}, [], []),
    ({"rate_limit": [1, 64]}, [], [(2, None, None)]),
    ({"nibbles_kept": [1, 2]}, [], [(2, None, None)]), ({}, ["port", "port", "uart"], [(2, None, None)]),
    ({}, ["uart", "uart", "port"], []), ({"start": "nibble=1"}, [], [(node, 0, 10) for node in range(3)]),
    ({"trigger_in": "start"}, [], [(node, 0, 10) for node in range(3)]),
    ({"stop": "nibble=1"}, [], [(node, 50, None) for node in range(3)]),
    ({"trigger_in": "both"}, [], [*((node, 0, 10) for node in range(3)), *((node, 50, None) for node in range(3))])])
def test_what_settings_made_a_board_discard(make_run, configuration, fronts, found):
    made = board(3, 60)
    run = make_run(made, configuration=configuration, identity={"fronts": fronts})
    done = run.decode() | {"rejected_per_node": [0, 0, 5], "discarded": 7,
                           "rejected_spans": [[], [], [[20, 30, 5]]]}
    rejects = run.info.scale.span_ps(20, 30)
    old = {name: value for name, value in done.items() if name != "rejected_spans"}
    assert (2, 0, END_PS) in absent(run, old) or (2, None, None) not in found
    assert absent(run, done) == [(node, *rejects) if first is None else (
        node, made.ps(first) + 1 if to is None and first else made.ps(first) if first else 0,
        END_PS if to is None else made.ps(to)) for node, first, to in found]
    assert absent(run, run.decode()) == [row for row in absent(run, done) if "nodes_kept" in configuration]


def test_events_that_a_mask_discards(make_run):
    run = make_run(board(2, 60), configuration={"events_out": [3, 200]})
    assert masked_events(run, run.decode()) == []
    assert masked_events(run, run.decode() | {"discarded": 1}) == [(0, 3), (0, 200), (1, 3), (1, 200)]


def test_a_board_whose_trigger_was_not_found(make_run):
    made = FakeBoard(2).start().stop(60)
    run = make_run(made, configuration={"start": "nibble=1"})
    assert absent(run, run.decode() | {"discarded": 3}) == [(0, 0, END_PS), (1, 0, END_PS)]
    stopped = replace(run.info, configuration={"stop": "nibble=1"})
    run.info = stopped
    assert absent(run, run.decode() | {"discarded": 3}) == [(0, 0, END_PS), (1, 0, END_PS)], "all came after the stop"


def test_nodes_that_were_left_out_of_boards():
    """Nodes of a board count from those of the boards before it."""
    def part(nodes, kept):
        return SimpleNamespace(info=SimpleNamespace(nodes=nodes, configuration={"trimmed": kept}))

    run = SimpleNamespace(parts=lambda: [part(3, {"nodes": [0, 2]}), part(4, None), part(2, {"nodes": [1]})])
    assert cut_nodes(run) == [1, 7]
