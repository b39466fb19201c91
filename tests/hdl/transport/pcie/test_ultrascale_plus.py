"""The PCIe link at the block of UltraScale+ devices, judged by cocotbext-pcie's model of that block and of a host."""

import functools
import itertools
import logging
from typing import ClassVar

import cocotb
import pytest
from amaranth.hdl import DomainRenamer, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer, ValueChange, with_timeout
from hypermon.hdl.control.pbx import Pbx
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.transport.beat_crossing import BeatCrossing
from hypermon.hdl.transport.pcie.link import PcieLink
from hypermon.hdl.transport.pcie.ultrascale_plus import ULTRASCALE_PLUS_PORTS, UltrascalePlus

from ...benches.case import CASE, rng
from ...benches.cocotb_stage import pack
from ...harness.runner import component, run, seeds


class Board(wiring.Component):
    """Adapter, link and crossing; of the board itself one register, which is at every address, and the stream."""

    def __init__(self):
        super().__init__({"stream": In(stream.Signature(beat_layout())), **ULTRASCALE_PLUS_PORTS})

    def elaborate(self, platform):
        m = Module()
        m.submodules.link = DomainRenamer("link")(link := PcieLink())
        m.submodules.adapter = DomainRenamer("link")(adapter := UltrascalePlus())
        m.submodules.crossing = crossing = BeatCrossing()
        m.submodules.pbx = pbx = Pbx()
        wiring.connect(m, wiring.flipped(self.stream), crossing.stream)
        wiring.connect(m, crossing.bus, pbx.bus)
        wiring.connect(m, crossing.beats, link.beats)
        wiring.connect(m, link.command, crossing.command)
        wiring.connect(m, crossing.reply, link.reply)
        wiring.connect(m, adapter.request, link.request)
        wiring.connect(m, link.completion, adapter.completion)
        wiring.connect(m, link.write, adapter.write)
        m.d.comb += [
            link.mps.eq(adapter.mps), link.permitted.eq(adapter.permitted), link.down.eq(adapter.down),
            link.stop.eq(adapter.stop), adapter.running.eq(link.running), link.msi_enabled.eq(adapter.msi_enabled),
            adapter.msi_request.eq(link.msi_request), link.msi_sent.eq(adapter.msi_sent)]
        for name, member in ULTRASCALE_PLUS_PORTS.items():
            ours, theirs = getattr(self, name), getattr(adapter, name)
            m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)
        m.d.sync += pbx.access.done.eq(pbx.access.start)
        with m.If(pbx.access.start & pbx.access.write):
            m.d.sync += pbx.access.rdata.eq(pbx.access.wdata)
        return m


class Machine:
    """A host with the device in a slot, by cocotbext-pcie."""

    #: Ports of the model that the link has.
    WIRED: ClassVar = ("cfg_max_payload", "cfg_function_status", "cfg_interrupt_msi_enable", "cfg_interrupt_msi_data",
                       "cfg_interrupt_msi_select", "cfg_interrupt_msi_int", "cfg_interrupt_msi_sent",
                       "cfg_interrupt_msi_fail")

    def __init__(self, dut, mps=0):
        from cocotbext.axi import AxiStreamBus
        from cocotbext.pcie.core import RootComplex
        from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
        self.dut, self.rc = dut, RootComplex()
        self.rc.max_payload_size = mps
        for name in ("cocotb.pcie", f"cocotb.{dut._name}"):
            logging.getLogger(name).setLevel(logging.WARNING)
        buses = {name[7:]: AxiStreamBus.from_prefix(dut, name)
                 for name in ("m_axis_cq", "s_axis_cc", "s_axis_rq", "m_axis_rc")}
        self.device = UltraScalePlusPcieDevice(
            pcie_generation=3, pcie_link_width=4, user_clk_frequency=250e6, alignment="dword",
            pf_count=1, max_payload_size=512, enable_client_tag=True, pf0_msi_enable=True, pf0_msi_count=1,
            user_clk=dut.link_clk, user_reset=dut.user_reset,
            **{f"{name}_bus": bus for name, bus in buses.items()},
            **{name: getattr(dut, name) for name in self.WIRED})
        for log in (self.device.log, self.rc.log):
            log.setLevel(logging.WARNING)
        self.rc.make_port().connect(self.device)
        self.device.functions[0].configure_bar(0, 8192)

    async def up(self):
        """Resets, enumerates, enables."""
        self.dut.rst.value = self.dut.link_rst.value = 1
        self.dut.stream_valid.value = self.dut.cfg_flr_in_process.value = self.dut.cfg_function_power_state.value = 0
        Clock(self.dut.clk, 10_000, "step").start()
        await Timer(100_000, "step")
        self.dut.rst.value = self.dut.link_rst.value = 0
        if not self.dut.user_reset.value:
            await RisingEdge(self.dut.user_reset)
        await FallingEdge(self.dut.user_reset)
        await self.rc.enumerate()
        self.found = self.rc.find_device(self.device.functions[0].pcie_id)
        await self.found.enable_device()
        await self.found.set_master()
        await self.found.alloc_irq_vectors(1, 1)
        self.bar = self.found.bar_window[0]
        return self

    async def read(self, name):
        address = PCIE_REGISTERS[name].offset if isinstance(name, str) else name
        data = await with_timeout(self.bar.read(address, 4, timeout=5000, timeout_unit="ns"), 10_000, "ns")
        return int.from_bytes(data, "little")

    async def write(self, name, value):
        address = PCIE_REGISTERS[name].offset if isinstance(name, str) else name
        await self.bar.write(address, value.to_bytes(4, "little"))

    async def start_ring(self, pages, flush=500):
        # What was allocated first is at address 0, where a forgotten base would go unnoticed.
        self.rc.mem_pool.alloc_region(4096)
        self.memory = self.rc.mem_pool.alloc_region((4096 << pages) + 4096)
        base = self.memory.get_absolute_address(0)
        assert base
        base += (-base) % 4096
        self.shift, self.size = base - self.memory.get_absolute_address(0), 4096 << pages
        assert self.shift == 0, "aligned by its allocator"
        for name, value in (("RING_LOW", base & 0xffffffff), ("RING_HIGH", base >> 32), ("RING_PAGES", pages),
                            ("FLUSH", flush), ("CONTROL", 1)):
            await self.write(f"PCIE_{name}", value)
        self.tail, self.got = 0, bytearray()

    def drain(self):
        """Takes what is in the ring up to the head in memory."""
        head = int.from_bytes(self.memory[self.size:self.size + 4], "little")
        while self.tail != head:
            at = self.tail % self.size
            until = min(self.size, at + (head - self.tail) % (1 << 32))
            self.got += self.memory[at:until]
            self.tail = (self.tail + until - at) % (1 << 32)
        return head


async def feed(dut, choose, beats, rate):
    """Beats into the stream, in the board's clock; the last one ends a block."""
    await FallingEdge(dut.clk)         # else the next falling edge may come before a rising one
    for k, beat in enumerate(beats):
        while choose.random() > rate:
            await FallingEdge(dut.clk)
        dut.stream_payload.value = pack(
            beat_layout(), data=int.from_bytes(beat, "little"), last=int(k % 300 == 299 or k == len(beats) - 1))
        dut.stream_valid.value = 1
        await Timer(1, "step")
        while not dut.stream_ready.value:
            await FallingEdge(dut.clk)
            await Timer(1, "step")
        await FallingEdge(dut.clk)
        dut.stream_valid.value = 0


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def registers(dut):
    machine = await Machine(dut).up()
    assert await machine.read("PCIE_ID") == PCIE_MAGIC
    await machine.write(0x68, 0xdeadbeef)
    assert await machine.read(0x68) == 0xdeadbeef
    word = bytearray(0xdeadbeef.to_bytes(4, "little"))
    for at, length in [(a, n) for a in range(4) for n in range(1, 5 - a)]:
        new = bytes(0x10 * at + length + k for k in range(length))
        await machine.bar.write(0x68 + at, new)
        word[at:at + length] = new
        assert await machine.read(0x68) == int.from_bytes(word, "little")
        assert await machine.bar.read(0x68 + at, length, timeout=5000) == new
    # A read of many words is refused and does not hang; what follows is as before.
    with pytest.raises(Exception, match=r"(?i)unsuccess|UR"):
        await machine.bar.read(0, 16, timeout=5000)
    assert await machine.read("PCIE_DROPPED") == 1 << 16
    await machine.bar.write(0x68, bytes(range(16)))
    assert await machine.read(0x68) == int.from_bytes(word, "little")
    assert await machine.read("PCIE_DROPPED") == 1 << 16 | 1


async def _stop(machine, kind):
    """Stops the ring in the middle of the stream, and takes what was reported. The number of bytes that are in doubt:
    none, unless the host did not permit the last writes."""
    dut = machine.dut
    if kind == "master":
        await machine.found.clear_master()
        await Timer(3, "us")
        await machine.found.set_master()
    elif kind == "reset":
        dut.cfg_flr_in_process.value = 1
        await with_timeout(ValueChange(dut.cfg_flr_done), 10_000, "ns")
        dut.cfg_flr_in_process.value = 0
    else:
        await machine.write("PCIE_CONTROL", 0)
    while await machine.read("PCIE_STATUS") & 1:
        pass
    assert not await machine.read("PCIE_CONTROL")
    written = await machine.read("PCIE_HEAD")
    while machine.drain() != written and kind != "master":
        await Timer(100, "ns")
    return written - machine.tail


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ring(dut):
    """The stream arrives in the host's memory, whoever stalls; with ``faults``, through a ring that is stopped and a
    function-level reset. If the bus master is off, at most the bytes are missing that are known to be in doubt."""
    choose = rng()
    machine = await Machine(dut, CASE["mps"]).up()
    if CASE["stalls"]:
        for side in (machine.device.rq_sink, machine.device.cc_sink, machine.device.cq_source):
            side.set_pause_generator(itertools.cycle([choose.random() < 0.4 for _ in range(101)]))
    beats = [choose.randbytes(16) for _ in range(CASE["beats"])]
    feeding = cocotb.start_soon(feed(dut, choose, beats, choose.choice([0.5, 1])))
    await machine.start_ring(CASE["pages"])
    interrupts, total, whole, event = 0, bytearray(), 16 * len(beats), machine.found.msi_vectors[0].event
    doubtful = []
    kinds = ["master", "stop", "reset"] * CASE["faults"]
    faults = len(kinds)
    while len(total) + len(machine.got) < whole:
        event.clear()
        await machine.write("PCIE_ARM", machine.tail)
        await with_timeout(event.wait(), 100_000, "ns")
        interrupts += 1
        machine.drain()
        await machine.write("PCIE_TAIL", machine.tail)
        if not kinds or len(total) + len(machine.got) < whole * (faults + 1 - len(kinds)) // (faults + 2):
            continue
        doubt = await _stop(machine, kinds.pop())
        total += machine.got
        doubtful += range(len(total), len(total) + doubt)
        total += b"".join(beats)[len(total):len(total) + doubt]
        await machine.start_ring(CASE["pages"])
    total += machine.got
    await feeding
    assert not kinds
    assert total == b"".join(beats)
    assert faults or not doubtful
    dut._log.warning("%d bytes, %d of them in doubt, %d interrupts", len(total), len(doubtful), interrupts)
    assert await machine.read("PCIE_TIMEOUTS") == 0
    assert await machine.read("PCIE_STATUS") & 0b11000 == 0, "nothing was refused"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def latency(dut):
    """Clocks from a read at the adapter to its completion, beside writes at the full rate of the board's stream."""
    choose = rng()
    machine = await Machine(dut, 1).up()
    await machine.start_ring(10)
    cocotb.start_soon(feed(dut, choose, [bytes(16)] * 1_000_000, 1))
    times = []

    async def watch():
        begun = None
        clock = 0
        while True:
            await FallingEdge(dut.link_clk)
            clock += 1
            if dut.m_axis_cq_tvalid.value and dut.m_axis_cq_tready.value and dut.m_axis_cq_tlast.value:
                begun = clock
            if dut.s_axis_cc_tvalid.value and dut.s_axis_cc_tready.value:
                times.append(clock - begun)
    cocotb.start_soon(watch())
    for _ in range(60):
        await machine.read(0x68)
        await Timer(choose.randrange(1, 200) * 100, "step")
    dut._log.warning("BAR read to completion: %d to %d clocks", min(times), max(times))
    assert len(times) == 60
    assert max(times) <= 40, max(times)


@functools.cache
def simulator():
    return component(Board(), "pcie_us", domains=("sync", "link"))


def test_registers():
    run(simulator(), __name__, "registers", 0)


@pytest.mark.parametrize(("mps", "pages"), [(0, 0), (1, 1), (2, 10)])
def test_ring(mps, pages):
    run(simulator(), __name__, "ring", mps, mps=mps, pages=pages, stalls=False, faults=0, beats=3000)


@pytest.mark.parametrize("seed", seeds(8, fast=2))
def test_faults(seed):
    run(simulator(), __name__, "ring", seed, mps=seed % 3, pages=seed % 2, stalls=True, faults=2, beats=3000)


def test_latency():
    run(simulator(), __name__, "latency", 0)
