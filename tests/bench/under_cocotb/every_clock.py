"""The board under cocotb, as a plain testbench would drive it: Python at every clock.

Started by ``bench_board.py``; the case names the files with the changes and for the rate.
"""

import json
import time
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from hypermon.hdl.layout import Control

from tests.hdl.benches.case import CASE


async def _write(dut, value):
    """CONTROL through the bus."""
    dut.pbx_addr.value, dut.pbx_wdata.value, dut.pbx_write.value = 0, int(value), 1
    for level in (1, 0):
        dut.pbx_req.value = level
        while True:
            await RisingEdge(dut.clk)
            if dut.pbx_ack.value == level:
                break


@cocotb.test()
async def dense(dut):
    changes = {k: (data, strobe) for k, data, strobe in json.loads(Path(CASE["changes"]).read_text())}
    dut.rst.value, dut.advance.value, dut.stream_ready.value, dut.pbx_req.value = 1, 0, 1, 0
    dut.data.value = dut.strobe.value = 0
    Clock(dut.clk, 10, "ns").start()
    for _ in range(8):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await _write(dut, Control.RESET)
    await _write(dut, Control.ENABLE | Control.STREAM)
    beats = 0
    began = time.perf_counter()
    for k in range(CASE["cycles"]):
        await RisingEdge(dut.clk)
        if k in changes:
            dut.data.value, dut.strobe.value = changes[k]
        if dut.stream_valid.value:
            beats += 1
    rate = CASE["cycles"] / (time.perf_counter() - began)
    assert beats
    Path(CASE["result"]).write_text(str(rate))
