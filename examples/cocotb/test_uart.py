"""A UART beside the board, traced while it works: uart_traced.v, or the same from uart_traced.py."""

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge
from hypermon.hdl.layout import Window
from hypermon.host.device.device import Settings
from hypermon.sim.bench import BenchBoard

BEGINS, ENDS = 1, 2


@cocotb.test(timeout_time=500, timeout_unit="us")
async def every_byte_is_traced(dut):
    dut.start.value = 0
    board = await BenchBoard.start(dut, seed=1)
    await board.record("sim_build/uart", Settings(window=Window.CLOCK, rising=1, falling=1, after=1))
    for value in b"hello":
        await FallingEdge(dut.clk)
        dut.value.value, dut.start.value = value, 1
        await FallingEdge(dut.clk)
        dut.start.value = 0
        await FallingEdge(dut.busy)
        await ClockCycles(dut.clk, 4)    # two writes of a port are at least three clocks apart
    run = await board.stop()
    rows = run.events().to_pylist()
    assert [row["nibble"] for row in rows] == 5 * [BEGINS, ENDS]
    times = [row["time_ps"] for row in rows]
    assert {out - begun for begun, out in zip(times[::2], times[1::2], strict=True)} == {1_600_000}
    print("each of 5 bytes takes 1.6 us; `hypermon report sim_build/uart OUT` shows the run")
