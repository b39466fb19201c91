"""Accounts of streams whose blocks come twice, out of their places, or from another run."""

import random

import pytest
from hypermon.hdl.layout import LATENCY, Sink
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger
from hypermon.host.device.device import Device, Settings
from hypermon.host.record.recorder import record
from hypermon.host.run import open_run

from tests.host.bookkeeping import account, of
from tests.host.fake_board import FakeBoard, FakeLink, random_run


def numbers(board, order):
    """The stream of the board's blocks in this order."""
    return b"".join(board.blocks[k] for k in order)


def short_run(sink, host=False):
    """START, four blocks of events (1, 2, 4, 5), a loss (3), a census (6), STOP."""
    board = FakeBoard(nodes=2, sink=sink, host=host).start()

    def one(first):
        if sink is Sink.EXTENDED:
            board.compact([(first, 0, 1), (first + 1, 1, 2)])
        else:
            board.frames([(first, {0: 1}), (first + 1, {1: 2})])

    one(10)
    one(20)
    board.loss([(1, 5, 25, 26)])
    one(30)
    one(40)
    return board.census().stop(90)


@pytest.mark.parametrize("sink", Sink)
@pytest.mark.parametrize("twice", [[1], [2, 3], [3], [1, 2, 3, 4, 5, 6], [6], [7], range(8)])
@pytest.mark.parametrize("piece", [None, 100])
def test_a_block_that_comes_twice_counts_once(sink, twice, piece):
    """Right behind itself, or at the end; nothing is lost by it, and it is said."""
    board = short_run(sink)
    _, rows, found = account(board)
    for behind in (max(twice) + 1, 8):
        order = [*range(behind), *twice, *range(behind, 8)]
        ledger, again, came = account(board, numbers(board, order), piece=piece)
        assert (again, came, ledger.repeated_blocks) == (rows, found, len(twice))
        assert (ledger.lost, ledger.missing_blocks, ledger.faults, ledger.stopped) == (5, 0, {}, True)


@pytest.mark.parametrize("sink", Sink)
def test_a_repeat_does_not_hide_a_loss(sink):
    board = short_run(sink)
    ledger, _, found = account(board, numbers(board, [0, 1, 1, 3, 3, 4, 5, 6, 7]))
    assert (len(found), ledger.link_lost, ledger.lost_per_node) == (6, [1, 1], [1, 6])
    assert (ledger.missing_blocks, ledger.repeated_blocks) == (1, 2)


@pytest.mark.parametrize("sink", Sink)
@pytest.mark.parametrize("order", [[0, 1, 4, 2, 3, 5, 6, 7], [0, 1, 3, 2, 4, 5, 6, 7], [0, 1, 3, 4, 5, 6, 7, 2]])
def test_a_block_out_of_its_place_is_left_out_and_its_events_are_lost(sink, order):
    board = short_run(sink)
    ledger, rows, _ = account(board, numbers(board, order))
    late = sum(any(before > k for before in order[:at]) for at, k in enumerate(order))
    assert (ledger.repeated_blocks, ledger.missing_blocks) == (0, late)
    assert ledger.faults == {"they came after later ones": late}
    assert ledger.events + ledger.lost == 8 + 5
    assert [ledger.per_node[node] + of(rows, node) for node in range(2)] == [4, 4 + 5]


def test_of_joined_blocks_those_are_taken_that_are_new():
    board = FakeBoard(nodes=1).start()
    for k in range(6):
        board.frames([(10 + k, {0: k})])
    board.stop(30)
    _, _, frames = account(board)
    ledger, rows, found = account(board, numbers(board, [0, 1, 2, 3, 2, 3, 4, 5, 6, 7]))
    assert (found, rows, ledger.repeated_blocks) == (frames, [], 2)


def test_the_host_and_the_board_count_apart():
    board = short_run(Sink.CLASSIC, host=True)
    order = [0, 1, 2, 2, 3, 3, 4, 5, 6, 7]
    ledger, _, found = account(board, numbers(board, order))
    assert (len(found), ledger.repeated_blocks, ledger.missing_blocks, ledger.lost) == (8, 2, 0, 5)
    assert ledger.host_bytes == sum(len(board.blocks[k]) for k in (1, 2, 2, 4, 5))


def test_numbers_wrap():
    board = FakeBoard(nodes=1)
    board.sequence = 2**32 - 2
    board.start().frames([(10, {0: 1})])
    board.sequence = 0
    board.frames([(20, {0: 2})]).frames([(30, {0: 3})]).stop(40)
    ledger, _, found = account(board, numbers(board, [0, 1, 1, 2, 1, 3, 0, 4]))
    assert (len(found), ledger.repeated_blocks, ledger.missing_blocks, ledger.faults) == (3, 3, 0, {})


def test_blocks_of_another_run_have_numbers_of_their_own():
    board = short_run(Sink.CLASSIC)
    other = FakeBoard(nodes=2, epoch=2)
    other.sequence = 1000
    other.frames([(5, {0: 1})]).frames([(6, {0: 1})])
    ledger, _, found = account(board, numbers(board, range(3)) + other.data + numbers(board, [2, *range(3, 8)]))
    assert (len(found), ledger.foreign, ledger.repeated_blocks, ledger.missing_blocks) == (8, 2, 1, 0)


def test_a_ring_goes_on_where_the_part_before_it_ended():
    """Also when a block of that part stands in front of it, or its own first one is missing."""
    board = short_run(Sink.EXTENDED)

    def ledger_of(order, account=None):
        ledger = Ledger(2, TimeScale(board.clock_hz, board.window, LATENCY), 1)
        if account is not None:
            ledger.resume(account)
        for _ in ledger.event_rows(BlockScanner().feed(numbers(board, order))):
            pass
        return ledger

    account_ = ledger_of(range(3)).account()
    whole = ledger_of([3, 4, 5, 6, 7], account_)
    assert (whole.events, whole.lost, whole.repeated_blocks, whole.missing_blocks) == (4, 5, 0, 0)
    twice = ledger_of([2, 3, 4, 5, 6, 7], account_)
    assert (twice.events, twice.lost, twice.repeated_blocks, twice.missing_blocks) == (4, 5, 1, 0)
    short = ledger_of([4, 5, 6, 7], account_)
    short.finish()
    assert (short.events, short.lost, short.missing_blocks) == (4, 5, 1)
    # One that an older version wrote does not say which number is due.
    del account_["due"]
    assert ledger_of([3, 4, 5, 6, 7], account_).repeated_blocks == 0


@pytest.mark.parametrize("sink", Sink)
def test_items_that_the_board_does_not_count_are_said(sink):
    """A block of another run of this board in the place of one of this: all else fits."""
    board, other = short_run(sink), FakeBoard(nodes=2, sink=sink)
    other.sequence = 2
    if sink is Sink.EXTENDED:
        other.compact([(20, 0, 5), (21, 0, 5), (22, 1, 5)])
    else:
        other.frames([(20, {0: 5}), (21, {0: 5}), (22, {1: 5})])
    ledger, _, _ = account(board, numbers(board, [0, 1]) + other.data + numbers(board, range(3, 8)))
    assert (ledger.surplus, ledger.lost, ledger.missing_blocks, ledger.repeated_blocks) == (1, 5, 0, 0)
    assert account(board)[0].surplus == 0


def test_records_of_losses_that_the_board_does_not_count_are_said():
    board, other = short_run(Sink.CLASSIC), FakeBoard(nodes=2)
    other.sequence = 3
    other.loss([(1, 9, 25, 26)])
    ledger, _, _ = account(board, numbers(board, [0, 1, 2]) + other.data + numbers(board, range(4, 8)))
    assert (ledger.surplus, ledger.lost) == (4, 9)
    # The record may be there before the count.
    early, _, _ = account(board, numbers(board, [0, 1, 2]) + other.data + numbers(board, [4, 5]))
    assert early.surplus == 0


def test_frames_that_the_host_read_after_the_last_count_are_no_surplus():
    board = short_run(Sink.CLASSIC, host=True)
    assert account(board, numbers(board, [0, 1, 2, 3, 4, 5]))[0].surplus == 0
    more = FakeBoard(nodes=2, host=True)
    more.host_sequence = 4
    more.frames([(50, {0: 1})])
    stopped, _, _ = account(board, board.data + more.data)
    assert stopped.surplus == 1


@pytest.mark.parametrize("ways", [{"keep": "raw"}, {"keep": "events"}, {"keep": "stats"}, {"ring_s": 0.002}])
def test_a_recording_counts_them_once_whatever_it_keeps(tmp_path, ways):
    once, twice = (random_run(FakeBoard(4), random.Random(3), 60, losses=0.5) for _ in range(2))
    twice.blocks[20:20] = twice.blocks[15:20]
    twice.blocks[-1:-1] = twice.blocks[-2:-1]
    found = []
    for name, board in (("once", once), ("twice", twice)):
        record(Device(FakeLink(board, piece=300)), tmp_path / name, Settings(), **ways)
        run = open_run(tmp_path / name)
        values = run.stats()
        found.append([values[key] for key in ("events_per_node", "lost_per_node", "complete", "missing_blocks")])
        if ways.get("keep") != "stats":
            found[-1] += [run.events() if "keep" in ways else None, run.loss().to_pylist()]
    assert found[0] == found[1]
    assert (once.events() != [], values["repeated_blocks"]) == (True, 1 if "ring_s" in ways else 6)
