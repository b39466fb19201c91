"""Accounts: offered = received + lost, for every node, whatever happens on the way; and loss is placed."""

import random
from collections import Counter as Tally

import pytest
from hypermon.hdl.layout import LATENCY, BlockType, Counter, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.bookkeeping import account, of
from tests.host.compact_write import encode
from tests.host.fake_board import FakeBoard, block, random_run


def test_a_quiet_run():
    board = FakeBoard(nodes=3).start().frames([(1, {0: 1, 2: 5}), (9, {1: 7}), (11, {1: 8})]).stop(20)
    ledger, rows, frames = account(board)
    assert (ledger.events, ledger.frames, ledger.merged, ledger.per_node.tolist()) == (4, 3, 2, [1, 2, 1])
    assert (rows, ledger.lost, ledger.stopped, ledger.started, ledger.uncounted) == ([], 0, True, True, False)
    assert len(frames) == 3
    assert ledger.payload_bytes == 48
    assert ledger.causes() == {"frame_fifo": 0, "node_fifo": 0, "vector_fifo": 0, "link": 0, "unsaid": 0}


def test_refused_items_are_placed_by_their_record():
    board = FakeBoard(nodes=2).start().loss([(1, 37, 10, 20)], cause=4).loss([(0, 1, 5, 5)], cause=1).stop(30)
    ledger, rows, _ = account(board)
    assert rows == [(1, 37, board.ps(10) - 20_000, board.ps(21)), (0, 1, board.ps(5) - 20_000, board.ps(6))]
    assert ledger.lost_per_node == [1, 37]
    assert ledger.causes() == {"frame_fifo": 1, "node_fifo": 0, "vector_fifo": 37, "link": 0, "unsaid": 0}


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 16, 20]), st.floats(0, 1), st.sampled_from(Sink))
def test_any_blocks_may_go_missing(seed, nodes, share, sink):
    """Exact per node, and every row holds as many of the missing events as it says."""
    rng = random.Random(seed)
    board = random_run(FakeBoard(nodes, sink=sink), rng, 12, losses=0.5)
    last = len(board.blocks) - 1
    dropped = {i for i in range(1, last) if rng.random() < share}
    ledger, rows, _ = account(board, b"".join(b for i, b in enumerate(board.blocks) if i not in dropped))
    missing = board.events(lambda i: i in dropped)
    offered = Tally(node for _, node, _ in board.events())
    refused = Tally()
    for (node, _), lost in board.refused.items():
        refused[node] += lost
    gone = Tally(node for _, node, _ in missing)
    for node in range(nodes):
        assert ledger.per_node[node] == offered[node] - gone[node]
        assert ledger.link_lost[node] == gone[node]
        assert ledger.lost_per_node[node] == gone[node] + refused[node] == of(rows, node)
    assert ledger.missing_blocks == len(dropped)
    # Every missing event lies in a row of its node, and every refusal whose record is missing too.
    for time, node, _ in missing:
        assert any(n == node and begin <= time <= end for n, _, begin, end in rows)
    for i in dropped:
        if board.kinds[i][0] is BlockType.LOSS:
            for node, _, first, final in board.kinds[i][1]:
                assert any(n == node and begin <= board.ps(first) and board.ps(final + 1) <= end
                           for n, _, begin, end in rows)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 16, 20]), st.floats(0, 0.5), st.sampled_from(Sink))
def test_what_is_in_no_row_is_later_than_what_was_counted(seed, nodes, share, sink):
    """Of a stream that ends at any block."""
    rng = random.Random(seed)
    board = random_run(FakeBoard(nodes, sink=sink), rng, 12, losses=0.5)
    end = rng.randrange(1, len(board.blocks))
    kept = {i for i in range(end) if i == 0 or rng.random() >= share}
    ledger, rows, _ = account(board, b"".join(board.blocks[i] for i in sorted(kept)))
    until = ledger.counted_until
    assert len(until) == nodes
    for time, node, _ in board.events(lambda i: i not in kept):
        assert time >= board.ps(until[node]) or any(n == node and begin <= time <= to for n, _, begin, to in rows)
    for i in set(range(len(board.blocks))) - kept:
        for node, _, first, last in board.kinds[i][1] if board.kinds[i][0] is BlockType.LOSS else ():
            assert last >= until[node] or any(
                n == node and begin <= board.ps(first) and board.ps(last + 1) <= to for n, _, begin, to in rows)


def test_everything_is_counted_until_the_last_census_or_item():
    board = FakeBoard(nodes=2).start().frames([(10, {0: 1}), (20, {1: 2})]).census(time=15)
    board.frames([(40, {0: 1})]).frames([(50, {0: 1})]).census(time=60).frames([(70, {0: 1}), (80, {1: 1})])
    data = list(board.blocks)
    whole = [*data, *board.stop(90).blocks[len(data):]]
    for blocks, until in ((data[:1], 0), (data[:2], 0), (data[:3], 15), (data[:5], 15), (data[:6], 51), (data, 60),
                          (data[:3] + data[4:5], 15), (data[:3] + data[4:6], 51), (data[:4] + data[5:], 60),
                          (whole, -1)):
        assert account(board, b"".join(blocks))[0].counted_until == [until] * 2


def test_what_was_rejected_is_between_two_censuses():
    """The second span would begin within the first one, which is longer for it. A census that is lost widens it."""
    def spans(*kept):
        board = FakeBoard(nodes=2, window=Window.CLOCK).start()
        for time, rejected in ((100_000, 0), (200_000, 3), (300_000, 4), (400_000, 4), (500_000, 4), (600_000, 9)):
            board.rejected[1] = rejected
            board.census(time=time)
        board.stop(700_000)
        ledger = account(board, b"".join(board.blocks[i] for i in kept or range(len(board.blocks))))[0]
        assert ledger.counted(Counter.REJECTED) == [0, 9]
        return ledger.rejected_spans

    off = 4096
    assert spans() == [[], [[100_000 - off, 300_000 + off, 4], [500_000 - off, 600_000 + off, 5]]]
    assert spans(0, 3, 7) == [[], [[0, 700_000 + off, 9]]]
    assert spans(0, 1, 2, 3, 5, 6, 7) == [[], [[100_000 - off, 300_000 + off, 4], [500_000 - off, 600_000 + off, 5]]]


def test_missing_frames_are_placed_between_their_neighbours():
    board = FakeBoard(nodes=2).start().frames([(10, {0: 1})]).frames([(20, {0: 1, 1: 2}), (30, {0: 3})])
    board.frames([(50, {1: 1})]).loss([(0, 1, 1, 1)]).frames([(55, {1: 1})]).census(time=60)
    board.frames([(70, {0: 1})]).stop(90)
    ledger, rows, _ = account(board, b"".join(board.blocks[:2] + board.blocks[3:]))
    begin, end = board.ps(11) - 20_000, board.ps(50)
    assert rows[1:] == [(0, 2, begin, end), (1, 1, begin, end)]
    assert ledger.causes()["link"] == 3


def test_a_carried_item_is_older_than_its_stamp():
    board = FakeBoard(nodes=1).start().frames([(10, {0: 1})]).frames([(20, {0: 1})])
    board.lag[0] = 4
    board.stop(30)
    _, rows, _ = account(board, board.blocks[0] + board.blocks[1] + board.blocks[3])
    assert rows == [(0, 1, board.ps(7) - 20_000, board.ps(31))]
    # ... but not older than time 0.
    _, rows, _ = account(board, board.blocks[0] + board.blocks[2] + board.blocks[3])
    assert rows == [(0, 1, board.ps(0) - 20_000, board.ps(20))]


def test_a_missing_record_is_placed_before_the_census_behind_it():
    board = FakeBoard(nodes=2).start().loss([(0, 2, 5, 6)]).census(time=100).loss([(0, 7, 130, 140)])
    board.frames([(150, {1: 1})]).census(time=200).census(time=300).stop(400)
    _, rows, _ = account(board, b"".join(board.blocks[:3] + board.blocks[4:]))
    assert rows[1:] == [(0, 7, board.ps(100) - 20_000, board.ps(201))]


def test_first_blocks_missing():
    board = FakeBoard(nodes=1).start().frames([(10, {0: 1})]).frames([(20, {0: 1})]).stop(30)
    ledger, rows, _ = account(board, b"".join(board.blocks[2:]))
    assert [r[:2] for r in rows] == [(0, 1)]
    assert not ledger.started


def test_missing_behind_the_last_census_is_not_known():
    board = FakeBoard(nodes=1).start().frames([(10, {0: 1})]).frames([(20, {0: 1})]).frames([(30, {0: 1})])
    ledger, rows, _ = account(board, b"".join(board.blocks[:2] + board.blocks[3:]))
    assert (rows, ledger.uncounted, ledger.stopped) == ([], True, False)


def test_refused_but_the_stream_ends_before_the_record():
    board = FakeBoard(nodes=2).start().loss([(0, 5, 1, 2)]).census(time=100)
    board.refuse(0, 7).census(time=200)
    ledger, rows, _ = account(board)
    assert rows[1:] == [(0, 7, board.ps(100) - 20_000, board.ps(201))]
    assert ledger.lost_per_node == [12, 0]
    assert ledger.causes()["node_fifo"] == 12


def test_record_that_comes_after_its_census_counts_once():
    board = FakeBoard(nodes=1).start().refuse(0, 7).census(time=50).loss([(0, 7, 40, 60)], counted=True).stop(90)
    assert account(board)[1] == [(0, 7, board.ps(40) - 20_000, board.ps(61))]


def test_records_behind_the_last_census_have_no_cause_yet():
    board = FakeBoard(nodes=1).start().loss([(0, 7, 40, 60)])
    ledger, rows, _ = account(board)
    assert (len(rows), ledger.causes()["unsaid"]) == (1, 7)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_frames_wrapped_by_the_host(seed, drop):
    """Their order among the censuses means nothing; what is missing is counted at the stop."""
    rng = random.Random(seed)
    board = random_run(FakeBoard(2, host=True), rng, 8)
    frames = [i for i, (t, _) in enumerate(board.kinds) if t is BlockType.FRAMES]
    others = [i for i in range(len(board.kinds)) if i not in frames]
    gone = {rng.choice(frames)} if drop else set()
    # Each in its own order, but any of the two next; the last census last.
    order = []
    while frames or others[1:]:
        order.append((frames if frames and (not others[1:] or rng.random() < 0.5) else others).pop(0))
    order = [board.blocks[i] for i in [*order, *others] if i not in gone]
    ledger, rows, _ = account(board, b"".join(order))
    missing = Tally(node for _, node, _ in board.events(lambda i: i in gone))
    assert [of(rows, n) for n in range(2)] == [missing[n] for n in range(2)] == ledger.link_lost
    assert ledger.host_bytes == sum(len(b) for b in order if b[27] & 2)


def test_frames_wrapped_by_the_host_that_are_missing_when_the_stream_ends_early():
    board = FakeBoard(nodes=1, host=True).start().frames([(3, {0: 1})]).frames([(4, {0: 1})]).frames([(9, {0: 1})])
    board.census(time=20)
    ledger, rows, _ = account(board, b"".join(board.blocks[:2] + board.blocks[3:]))
    assert (rows, ledger.uncounted) == ([(0, 1, board.ps(4) - 20_000, board.ps(21))], True)


def test_frames_wrapped_by_the_host_of_which_the_last_are_missing():
    """No number tells, and an earlier gap has nothing to do with them."""
    board = FakeBoard(nodes=1, host=True).start().frames([(3, {0: 1})]).frames([(4, {0: 1})]).frames([(9, {0: 1})])
    board.stop(20)
    ledger, rows, _ = account(board, b"".join(board.blocks[:3] + board.blocks[4:]))
    assert (rows, ledger.uncounted) == ([(0, 1, board.ps(5) - 20_000, board.ps(21))], False)
    _, rows, _ = account(board, b"".join([board.blocks[0], board.blocks[2], board.blocks[4]]))
    assert rows == [(0, 2, board.ps(0) - 20_000, board.ps(21))]


def test_frames_of_a_cut_block_are_taken_and_its_filler_is_not():
    board = FakeBoard(nodes=2).start()
    board.frames([(3, {0: 4}), (0, {}), (0, {})], cut=True)
    ledger, _, frames = account(board)
    assert (ledger.events, ledger.frames, len(frames), ledger.faults) == (1, 1, 1, {})


def test_cut_census_says_nothing():
    board = FakeBoard(nodes=1).start()
    data = board.data + block(BlockType.CENSUS, bytes(96), nodes=1, sequence=1, cut=True)
    assert account(board, data)[0].census.flags == 1


@pytest.mark.parametrize("other", [{"epoch": 2}, {"nodes": 4}, {"clock_hz": 5_000_000}, {"window": 1}, {"latency": 9}])
def test_blocks_of_another_run_are_left_out(other):
    board = FakeBoard(nodes=2).start().frames([(3, {0: 4})])
    foreign = block(BlockType.FRAMES, bytes(16), **{"nodes": 2, "sequence": 2, **other})
    ledger, _, _ = account(board, board.data + foreign)
    assert (ledger.foreign, ledger.events) == (1, 1)
    again, _, _ = account(board, board.data + foreign + foreign[:-1] + b"x" + foreign)
    assert (again.foreign, again.torn, again.torn_bytes, again.missing_blocks) == (2, 1, len(foreign), 0)


@pytest.mark.parametrize(("rows", "reason"), [
    ([(3, {0: 1})], "do not rise"), ([(2**61, {0: 1})], "beyond 2^63 ps"), ([(5, {1: 1})], "does not have")])
def test_a_whole_block_that_no_board_sends_is_left_out_and_said(rows, reason):
    """With a right checksum even: its events are not shown, but missed."""
    board = FakeBoard(nodes=2).start().frames([(3, {0: 4})])
    bad = FakeBoard(nodes=2)
    bad.nodes, bad.sequence = 2, 2
    bad.frames([(stamp, {n * 9 if n else 0: v for n, v in nibbles.items()}) for stamp, nibbles in rows])
    board._add(BlockType.FRAMES, b"", [], 3)
    board.blocks[-1] = bad.blocks[-1]
    board.delivered[0] += 1
    board.frames([(6, {1: 1})]).stop(9)
    ledger, losses, _ = account(board)
    [(said, count)] = ledger.faults.items()
    assert reason in said
    assert (ledger.events, count) == (2, 1)
    assert losses == [(0, 1, board.ps(4) - 20_000, board.ps(6))]


def test_times_that_are_none_are_left_out_in_every_kind_of_block():
    board = FakeBoard(nodes=1).start()
    late = 2**62
    data = board.data + block(BlockType.CENSUS, bytes(96), nodes=1, sequence=1, time=late)
    loss = FakeBoard(nodes=1)
    loss.sequence = 2
    loss.loss([(0, 1, 5, late)]).loss([(0, 1, 6, 5)]).loss([(1, 1, 5, 6)])
    ledger, rows, _ = account(board, data + loss.data)
    assert (rows, sum(ledger.faults.values()), ledger.last_time) == ([], 4, 0)


def test_the_last_sign_of_life():
    board = FakeBoard(nodes=1).start().census(time=70).frames([(20, {0: 1}), (50, {0: 1})])
    assert account(board)[0].last_time == 70
    board.frames([(90, {0: 1})])
    assert account(board)[0].last_time == 90


# ------------------------------------------------------------------------------------- COMPACT blocks

@pytest.mark.parametrize("piece", [None, 16])
def test_a_quiet_run_of_the_extended_sink(piece):
    """Windows count as frames do, wherever blocks end, and whether they come together or not."""
    board = FakeBoard(nodes=8, sink=Sink.EXTENDED).start()
    board.compact([(5, 0, 1), (5, 2, 2), (9, 1, 3)]).compact([(9, 2, 4)]).compact([(9, 7, 5), (10, 0, 6)])
    board.compact([(11, n, n) for n in range(8)]).compact([(15, 3, 3)]).stop(20)
    ledger, rows, items = account(board, piece=piece)
    assert (ledger.events, ledger.frames, ledger.merged) == (15, 5, 13)
    assert ledger.per_node.tolist() == [3, 2, 3, 2, 1, 1, 1, 2]
    assert (rows, ledger.lost, ledger.stopped, ledger.faults, ledger.last_time) == ([], 0, True, {}, 20)
    made = [contents for type, contents in board.kinds if type is BlockType.COMPACT]
    assert ledger.payload_bytes == sum(len(encode(contents, 8)) for contents in made)
    assert items == [item for contents in made for item in contents]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 4, 16, 32]), st.sampled_from([1, 3, 3000]),
       st.sampled_from([None, 64, 500]))
def test_windows_are_counted_as_if_blocks_had_no_ends(seed, nodes, gap, piece):
    board = random_run(FakeBoard(nodes, sink=Sink.EXTENDED), random.Random(seed), 6, gap=gap)
    ledger, _, items = account(board, piece=piece)
    sizes = Tally(window for window, _, _ in items)
    assert (ledger.events, ledger.frames) == (len(items), len(sizes))
    assert ledger.merged == sum(size for size in sizes.values() if size > 1)


def test_missing_items_are_placed_between_their_neighbours_even_in_their_windows():
    board = FakeBoard(nodes=4, sink=Sink.EXTENDED).start().compact([(5, 0, 1), (10, 1, 1)])
    board.compact([(10, 2, 1), (12, 0, 1), (20, 0, 1)]).compact([(20, 1, 1), (25, 3, 1)]).compact([(30, 0, 1)])
    board.compact([(40, 0, 1)]).stop(50)
    _, rows, _ = account(board, b"".join(board.blocks[:2] + board.blocks[3:]))
    begin, end = board.ps(10) - 20_000, board.ps(21)  # nodes of windows 10 and 20 may be missing
    assert rows == [(0, 2, begin, end), (2, 1, begin, end)]
    _, rows, _ = account(board, b"".join(board.blocks[:4] + board.blocks[5:]))
    assert rows == [(0, 1, board.ps(26) - 20_000, board.ps(40))]  # windows 25 and 40 are complete


@pytest.mark.parametrize("what", ["missing", "torn", "illegal", "early", "late", "beyond"])
def test_decoding_goes_on_behind_a_compact_block_that_cannot_be_read(what):
    board = FakeBoard(nodes=4, sink=Sink.EXTENDED).start()
    board.compact([(3, 0, 4), (7, 1, 5)]).compact([(8, 0, 6), (9, 1, 7)]).compact([(12, 3, 8)]).stop(20)
    first, bad, behind = board.blocks[1:4]
    stamp_max = TimeScale(board.clock_hz, board.window, LATENCY).stamp_max
    payload, fields = encode([(8, 0, 6), (9, 1, 7)], 4), {"nodes": 4, "sequence": 2, "time": 8, "flags": 1}
    made = {
        "missing": b"",
        "torn": bad[:33] + bytes([bad[33] ^ 1]) + bad[34:],
        "illegal": block(BlockType.COMPACT, bytes([payload[0] | 0xf0]) + payload[1:], **fields),
        "early": block(BlockType.COMPACT, payload, **{**fields, "time": 7}),
        "late": block(BlockType.COMPACT, payload, **{**fields, "time": 2**63 + 5}),
        "beyond": block(BlockType.COMPACT, payload, **{**fields, "time": stamp_max}),
    }[what]
    ledger, rows, items = account(board, board.blocks[0] + first + made + behind + board.blocks[4])
    assert items == [(3, 0, 4), (7, 1, 5), (12, 3, 8)]
    begin, end = board.ps(7) - 20_000, board.ps(13)
    assert rows == [(0, 1, begin, end), (1, 1, begin, end)]
    assert sum(ledger.faults.values()) == (what not in ("missing", "torn"))
    assert ledger.torn == (what == "torn")
    reason = next(iter(ledger.faults), "")
    assert {"illegal": "a node that", "early": "do not rise", "late": "beyond 2^63", "beyond": "beyond 2^63"}.get(
        what, "") in reason


def test_a_cut_compact_block_is_not_read_and_not_missed():
    """The board did not count its items as delivered."""
    board = FakeBoard(nodes=2, sink=Sink.EXTENDED).start().compact([(3, 0, 4)]).compact([(5, 0, 1)], cut=True)
    ledger, rows, items = account(board.stop(9))
    assert (items, rows, ledger.faults) == ([(3, 0, 4)], [], {})


def test_a_compact_block_without_items():
    board = FakeBoard(nodes=2, sink=Sink.EXTENDED).start()
    ledger, _, items = account(board, board.data + block(BlockType.COMPACT, b"", nodes=2, sequence=1, flags=1))
    assert (items, ledger.faults, ledger.missing_blocks) == ([], {}, 0)


def test_every_block_of_another_run_or_with_other_stamps_is_counted():
    """Also when short ones have been joined."""
    board = FakeBoard().frames([(1, {0: 1})]).frames([(2, {0: 2})]).frames([(3, {0: 3})])
    ledger, _, frames = account(board, epoch=7)
    assert (ledger.foreign, ledger.faults, frames) == (3, {}, [])
    halves = Ledger(16, TimeScale(board.clock_hz, board.window, LATENCY, 2), 1)
    assert list(halves.event_rows(BlockScanner(join=True).feed(board.data))) == []
    assert halves.faults == {"other stamps than the run's": 3}
