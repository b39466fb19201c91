"""Crossing: beats come out as bytes in the link's clock while registers are read and written from there."""

import functools

import cocotb
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from hypermon.hdl.control.initiator import access_layout
from hypermon.hdl.control.pbx import Pbx
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.transport.beats_to_bytes import byte_layout
from hypermon.hdl.transport.crossing import Crossing

from ..benches.case import rng
from ..benches.cocotb_stage import fields, pack
from ..harness.runner import component, run, seeds


class Target(wiring.Component):
    """The crossing, and the board's bus target with one register behind it: a read gives its address beside
    what was written last."""

    def __init__(self):
        super().__init__({
            "stream": In(stream.Signature(beat_layout())), "bytes": Out(stream.Signature(byte_layout())),
            "command": In(stream.Signature(access_layout())), "reply": Out(stream.Signature(32)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.crossing = crossing = Crossing()
        m.submodules.pbx = pbx = Pbx()
        wiring.connect(m, wiring.flipped(self.stream), crossing.stream)
        wiring.connect(m, crossing.bytes, wiring.flipped(self.bytes))
        wiring.connect(m, wiring.flipped(self.command), crossing.command)
        wiring.connect(m, crossing.reply, wiring.flipped(self.reply))
        wiring.connect(m, crossing.bus, pbx.bus)
        m.d.sync += pbx.access.done.eq(pbx.access.start)
        with m.If(pbx.access.start & pbx.access.write):
            m.d.sync += pbx.access.rdata.eq(pbx.access.wdata)
        with m.If(pbx.access.start & ~pbx.access.write):
            m.d.sync += pbx.access.rdata[16:].eq(pbx.access.addr)
        return m


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def crosses(dut):
    choose = rng()
    dut.rst.value = dut.link_rst.value = 1
    dut.stream_valid.value = dut.bytes_ready.value = dut.command_valid.value = dut.reply_ready.value = 0
    Clock(dut.clk, choose.randrange(4_000, 30_000, 2), "step").start(start_high=False)
    Clock(dut.link_clk, choose.randrange(4_000, 30_000, 2), "step").start(start_high=False)
    await Timer(200_000, "step")
    dut.rst.value = dut.link_rst.value = 0
    beats = [(choose.randbytes(16), choose.random() < 0.3) for _ in range(60)]

    async def give():
        for data, last in beats:
            dut.stream_valid.value = 1
            dut.stream_payload.value = pack(beat_layout(), data=int.from_bytes(data, "little"), last=int(last))
            taken = False
            while not taken:
                await RisingEdge(dut.clk)
                taken = bool(dut.stream_ready.value)
                await FallingEdge(dut.clk)
            dut.stream_valid.value = 0

    async def access():
        value = 0
        for _ in range(40):
            write, addr, wdata = choose.getrandbits(1), 4 * choose.getrandbits(11), choose.getrandbits(32)
            dut.command_payload.value = pack(access_layout(), write=write, addr=addr, wdata=wdata)
            dut.command_valid.value = 1
            taken = False
            while not taken:
                await RisingEdge(dut.link_clk)
                taken = bool(dut.command_ready.value)
                await FallingEdge(dut.link_clk)
            dut.command_valid.value, dut.reply_ready.value = 0, 1
            while not dut.reply_valid.value:
                await FallingEdge(dut.link_clk)
            value = wdata if write else value & 0xffff | addr << 16
            assert int(dut.reply_payload.value) == value
            await FallingEdge(dut.link_clk)
            dut.reply_ready.value = 0

    giving, accessing = cocotb.start_soon(give()), cocotb.start_soon(access())
    for data, last in beats:
        for k, byte in enumerate(data):
            while True:
                await FallingEdge(dut.link_clk)
                dut.bytes_ready.value = ready = choose.random() < 0.7
                await RisingEdge(dut.link_clk)
                if ready and dut.bytes_valid.value:
                    break
            came = fields(byte_layout(), int(dut.bytes_payload.value))
            assert came == {"data": byte, "last": last and k == 15}
    await giving
    await accessing


@functools.cache
def simulator():
    return component(Target(), "crossing", domains=("sync", "link"))


@pytest.mark.parametrize("seed", seeds(5, fast=2))
def test_crosses(seed):
    run(simulator(), __name__, "crosses", seed)
