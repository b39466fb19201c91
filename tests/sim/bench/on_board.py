"""Benches of the public package on a whole board, run by ``test_bench_board.py``."""

import random

import cocotb
import pytest
from cocotb.triggers import Timer, gather
from hypermon.hdl.layout import Sink, Window
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.device.device import Settings
from hypermon.sim.bench import BenchBoard, check

from tests.hdl.benches.case import CASE, rng


def make_nodes(board: BenchBoard, choose: random.Random, count: int) -> None:
    """Nodes of all kinds: fast and slow clocks, skew, both strobe modes."""
    for number in range(count):
        toggling = choose.random() < 0.5
        board.node(number, toggling=toggling, skew_ps=choose.choice([0, 500, 3_000]), ppm=choose.uniform(-100, 100),
                   cycle_ps=choose.choice([None, 41_000, 333_000]))


async def recorded(dut, settings, write, *, count=16, each=12, **options):
    """A board, and the run of nodes that write at random gaps."""
    board = await BenchBoard.start(dut, seed=CASE["seed"], **options)
    make_nodes(board, rng("nodes"), count)
    await board.record(CASE["run"], settings)

    async def life(node):
        choose = rng(f"node {node.number}")
        for _ in range(each):
            await Timer(choose.randint(1, 4_000_000), "step")
            await write(node, choose)
    await gather(*(life(node) for node in board.nodes.values()))
    return board, await board.stop()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def nibbles(dut):
    """Every nibble arrives; the same writes are saved for the virtual board."""
    board, run = await recorded(dut, Settings(window=Window.CLOCK), lambda node, r: node.nibble(r.getrandbits(4)),
                                ready=0.5)
    assert check(board, run) == 16 * 12
    board.save_stimulus(CASE["stimulus"])


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def differences_are_noticed(dut):
    """The scoreboard fails for a wrong value, a wrong time, a missing and a superfluous item."""
    board, run = await recorded(dut, Settings(window=Window.CLOCK), lambda node, r: node.nibble(r.getrandbits(4)),
                                count=2, each=4)
    assert check(board, run) == 8
    sent = board.nodes[1].sent
    right = list(sent)
    for wrong, what in ((right[:3], "4 are recorded"), ([*right, right[0]], "4 are recorded"),
                        ([type(right[0])(right[0].ps, "nibble", right[0].value ^ 1), *right[1:]], "wrote"),
                        ([type(right[0])(right[0].ps + 30_000, "nibble", right[0].value), *right[1:]], "stamped"),
                        ([type(right[0])(right[0].ps - 30_000, "nibble", right[0].value), *right[1:]], "stamped")):
        sent[:] = wrong
        with pytest.raises(AssertionError, match=what):
            check(board, run)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def a_loss_is_noticed(dut):
    """A host that does not read: the board loses items, and the scoreboard says so."""
    board = await BenchBoard.start(dut, seed=CASE["seed"])
    node = board.node(0)
    await board.record(CASE["run"], Settings(window=Window.CLOCK))
    board.sink.paused = True
    for k in range(400):
        await node.nibble(k % 16)
    board.sink.paused = False
    run = await board.stop()
    assert run.stats()["lost"] > 0
    with pytest.raises(AssertionError, match="the board lost"):
        check(board, run)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def words_and_events(dut):
    """Nodes 0 to 3 write words, the others events of all lengths."""
    async def write(node, choose):
        if node.number < 4:
            await node.word(choose.getrandbits(32))
        else:
            await node.event(choose.getrandbits(8), choose.randbytes(choose.randint(0, 14)))
    nodes = CASE["nodes"]
    modes = ItemModes.of([ItemMode.WORD if n < 4 else ItemMode.EVENT for n in range(nodes)])
    board, run = await recorded(dut, Settings(window=Window.CLOCK, sink=Sink.EXTENDED, modes=modes), write,
                                count=nodes, each=5)
    assert check(board, run) == 5 * nodes


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def two_runs_and_wrong_use(dut):
    """A second recording replaces the first; wrong use is said."""
    board = await BenchBoard.start(dut, seed=CASE["seed"])
    with pytest.raises(Exception, match="nothing is being recorded"):
        await board.stop()
    with pytest.raises(ValueError, match="the board has nodes 0 to"):
        board.node(99)
    with pytest.raises(ValueError, match="ps between two writes"):
        board.node(1, cycle_ps=9_000)
    node = board.node(0)
    for count in (3, 5):
        await board.record(CASE["run"], Settings(window=Window.CLOCK))
        node.sent.clear()
        for k in range(count):
            await node.nibble(k)
        run = await board.stop()
        assert check(board, run) == count
    with pytest.raises(Exception, match="exists already"):
        board.node(0)
