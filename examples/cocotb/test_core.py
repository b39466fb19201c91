"""The board alone: three nodes write, the host's own recorder records, and each item is compared."""

import cocotb
from hypermon.hdl.layout import Window
from hypermon.host.device.device import Settings
from hypermon.sim.bench import BenchBoard, check


@cocotb.test(timeout_time=500, timeout_unit="us")
async def nibbles_arrive(dut):
    board = await BenchBoard.start(dut, seed=1)
    nodes = [board.node(0), board.node(1, ppm=50, cycle_ps=31_000), board.node(2, toggling=True, skew_ps=2_000)]
    await board.record("sim_build/run", Settings(window=Window.CLOCK))
    for k in range(20):
        for node in nodes:
            await node.nibble((k + node.number) % 16)
    run = await board.stop()
    assert check(board, run) == 60
    print(run.events().slice(0, 5).to_pylist())
