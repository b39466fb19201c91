"""A host with the link in a slot: the UltraScale+ adapter at cocotbext-pcie's model of the block and of a host."""

import logging
from typing import ClassVar

import cocotb
from amaranth.hdl import DomainRenamer, Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer, with_timeout
from hypermon.hdl.control.pbx import Pbx
from hypermon.hdl.layout import PCIE_REGISTERS
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.transport.beat_crossing import BeatCrossing
from hypermon.hdl.transport.pcie.link import PcieLink, connect
from hypermon.hdl.transport.pcie.ultrascale_plus import ULTRASCALE_PLUS_PORTS, UltrascalePlus

from ...benches.cocotb_stage import pack

__all__ = ["Board", "Machine", "feed"]


class Board(wiring.Component):
    """Adapter, link and crossing; of the board itself one register, which is at every address, and the stream. A board
    that is ``silent`` does not answer. ``reset``: it is in reset, its register is 0, and it delivers nothing.
    ``accepted``: beats that the crossing has taken."""

    def __init__(self, adapter=UltrascalePlus, ports=ULTRASCALE_PLUS_PORTS):
        self.adapter, self.ports = adapter, ports
        super().__init__({"stream": In(stream.Signature(beat_layout())), "silent": In(1), "reset": Out(1),
                          "accepted": Out(32), **ports})

    def elaborate(self, platform):
        m = Module()
        m.submodules.link = DomainRenamer("link")(link := PcieLink())
        m.submodules.adapter = DomainRenamer("link")(adapter := self.adapter())
        m.submodules.crossing = crossing = BeatCrossing()
        m.submodules.pbx = pbx = ResetInserter(self.reset)(Pbx())
        m.submodules.reset = FFSynchronizer(link.reset, self.reset)
        m.submodules.resetting = FFSynchronizer(self.reset, link.resetting, o_domain="link")
        m.d.comb += [
            crossing.stream.p.eq(self.stream.p), crossing.stream.valid.eq(self.stream.valid & ~self.reset),
            self.stream.ready.eq(crossing.stream.ready & ~self.reset)]
        wiring.connect(m, crossing.bus, pbx.bus)
        wiring.connect(m, crossing.beats, link.beats)
        wiring.connect(m, link.command, crossing.command)
        wiring.connect(m, crossing.reply, link.reply)
        connect(m, adapter, link)
        for name, member in self.ports.items():
            ours, theirs = getattr(self, name), getattr(adapter, name)
            m.d.comb += theirs.eq(ours) if member.flow is In else ours.eq(theirs)
        m.d.sync += self.accepted.eq(self.accepted + (crossing.stream.valid & crossing.stream.ready))
        owed = Signal()
        m.d.sync += [pbx.access.done.eq(owed & ~self.silent), owed.eq(pbx.access.start | (owed & self.silent))]
        with m.If(pbx.access.start & pbx.access.write):
            m.d.sync += pbx.access.rdata.eq(pbx.access.wdata)
        with m.If(self.reset):
            m.d.sync += [owed.eq(0), pbx.access.rdata.eq(0)]
        return m


class Machine:
    """A host with the device in a slot, by cocotbext-pcie."""

    #: Nanoseconds after which a read fails.
    patience = 5000
    #: Ports of the model that the link has.
    WIRED: ClassVar = ("cfg_max_payload", "cfg_function_status", "cfg_interrupt_msi_enable", "cfg_interrupt_msi_data",
                       "cfg_interrupt_msi_select", "cfg_interrupt_msi_int", "cfg_interrupt_msi_sent",
                       "cfg_interrupt_msi_fail", "pcie_cq_np_req", "cfg_config_space_enable",
                       "cfg_power_state_change_ack", "cfg_power_state_change_interrupt", "cfg_link_training_enable")

    def __init__(self, dut, mps=0):
        from cocotbext.axi import AxiStreamBus
        from cocotbext.pcie.core import RootComplex
        from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
        self.dut, self.rc = dut, RootComplex()
        self.quiet()
        self.rc.max_payload_size = mps
        buses = {name[7:]: AxiStreamBus.from_prefix(dut, name)
                 for name in ("m_axis_cq", "s_axis_cc", "s_axis_rq", "m_axis_rc")}
        self.device = UltraScalePlusPcieDevice(
            pcie_generation=3, pcie_link_width=4, user_clk_frequency=250e6, alignment="dword",
            pf_count=1, max_payload_size=512, enable_client_tag=True, pf0_msi_enable=True, pf0_msi_count=1,
            user_clk=dut.link_clk, user_reset=dut.user_reset,
            **{f"{name}_bus": bus for name, bus in buses.items()},
            **{name: getattr(dut, name) for name in self.WIRED})
        self.device.log.setLevel(logging.WARNING)
        self.rc.make_port().connect(self.device)
        self.device.functions[0].configure_bar(0, 8192)
        #: Memory writes that the block has sent: address, bytes.
        self.writes = []
        send, receive = self.device.send, self.device.rq_sink.recv

        async def sends(tlp):
            if tlp.is_posted():
                self.writes.append((tlp.address, len(tlp.data)))
            await send(tlp)

        async def receives():
            """A request without what a reset of the link has cut off; the model does not know such resets."""
            request = await receive()
            del request.data[:4 * self.cut_off]
            self.cut_off = 0
            return request

        self.device.send, self.device.rq_sink.recv = sends, receives
        #: Beats of the request that has begun, and of one that a reset has cut off.
        self.begun = self.cut_off = 0

    def quiet(self):
        """Only warnings in the log, and none of the slots that are empty."""
        for name in ("cocotb.pcie", f"cocotb.{self.dut._name}"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.rc.log.setLevel(logging.WARNING)
        self.rc.log.addFilter(lambda record: not record.getMessage().startswith("Failed to route config type 0"))

    async def up(self):
        """Resets, enumerates, enables."""
        self.dut.rst.value = self.dut.link_rst.value = 1
        self.dut.stream_valid.value = self.dut.cfg_flr_in_process.value = self.dut.cfg_function_power_state.value = 0
        self.dut.silent.value = 0
        Clock(self.dut.clk, 10_000, "step").start()
        await Timer(100_000, "step")
        self.dut.rst.value = self.dut.link_rst.value = 0
        if not self.dut.user_reset.value:
            await RisingEdge(self.dut.user_reset)
        await FallingEdge(self.dut.user_reset)
        cocotb.start_soon(self._watch())
        return await self.enumerated()

    async def enumerated(self):
        """As an operating system and a driver do: enumerates, enables."""
        await self.rc.enumerate()
        self.found = self.rc.find_device(self.device.functions[0].pcie_id)
        await self.found.enable_device()
        await self.found.set_master()
        await self.found.alloc_irq_vectors(1, 1)
        self.bar = self.found.bar_window[0]
        return self

    async def _watch(self):
        """Counts the beats of the request that the block is receiving."""
        dut = self.dut
        while True:
            await FallingEdge(dut.link_clk)
            await Timer(1, "step")
            if dut.s_axis_rq_tvalid.value and dut.s_axis_rq_tready.value:
                self.begun = 0 if dut.s_axis_rq_tlast.value else self.begun + 1

    async def hot_reset(self, clocks=50):
        """Resets the link, with what the block has begun to receive."""
        self.dut.user_reset.value = 1
        for _ in range(clocks):
            await FallingEdge(self.dut.link_clk)
        self.cut_off, self.begun = self.begun, 0
        self.dut.user_reset.value = 0

    async def read(self, name):
        address = PCIE_REGISTERS[name].offset if isinstance(name, str) else name
        data = await with_timeout(self.bar.read(address, 4, timeout=self.patience), 2 * self.patience, "ns")
        return int.from_bytes(data, "little")

    async def write(self, name, value):
        address = PCIE_REGISTERS[name].offset if isinstance(name, str) else name
        await self.bar.write(address, value.to_bytes(4, "little"))

    async def start_ring(self, pages, flush=500, base=None):
        """Starts a ring in memory of its own, at ``base`` if that is given."""
        self.size = 4096 << pages
        if base is None:
            # What was allocated first is at address 0, where a forgotten base would go unnoticed.
            self.rc.mem_pool.alloc_region(4096)
            self.memory = self.rc.mem_pool.alloc_region(self.size + 4096)
            base = self.memory.get_absolute_address(0)
        else:
            from cocotbext.axi import MemoryRegion
            self.memory = MemoryRegion(self.size + 4096)
            self.rc.mem_address_space.register_region(self.memory, base)
        assert base
        assert base % 4096 == 0, "aligned by its allocator"
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

    async def full(self):
        """Waits until the ring is full, and what the block has accepted is in memory."""
        while not await self.read("PCIE_STATUS") & 2:
            await Timer(100, "ns")
        await Timer(1, "us")

    async def stopped(self):
        """Waits until no write follows, and takes what was reported. The number of bytes that are in doubt."""
        while await self.read("PCIE_STATUS") & 1:
            pass
        await Timer(500, "ns")
        self.drain()
        return await self.read("PCIE_HEAD") - self.tail

    async def collect(self, count, most=400, every=100):
        """Consumes until that many bytes have come since the start, every so many ns, but gives up after ``most`` us.
        """
        for _ in range(1000 * most // every):
            self.drain()
            await self.write("PCIE_TAIL", self.tail)
            if len(self.got) >= count:
                return
            await Timer(every, "ns")
        raise AssertionError(f"{len(self.got)} of {count} bytes came")


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
