"""A model of the 7-series PCIe block's user side, on the links, TLPs and hosts of cocotbext-pcie.

By AMD PG054: 64 bits, dwords in the order of the wire, the bytes of each in the opposite order. It stalls both streams,
counts free transmit buffers, and sends over a link with credits at the speed of one lane of the first generation.
"""

import struct

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, Timer
from cocotbext.pcie.core import Device, Endpoint, RootComplex
from cocotbext.pcie.core.caps import MsiCapability
from cocotbext.pcie.core.tlp import Tlp, TlpType

from .machine import Machine

__all__ = ["Machine7"]

#: Transmit buffers of the block, each for one TLP.
BUFFERS = 16
_MEMORY = {TlpType.MEM_READ, TlpType.MEM_READ_64, TlpType.MEM_WRITE, TlpType.MEM_WRITE_64, TlpType.MEM_READ_LOCKED}


class Function(Endpoint):
    def __init__(self):
        super().__init__()
        self.register_capability(self.pm_cap, offset=0x10)
        self.msi_cap = MsiCapability()
        self.msi_cap.msi_64bit_address_capable = 1
        self.register_capability(self.msi_cap, offset=0x12)
        self.register_capability(self.pcie_cap, offset=0x18)
        self.pcie_cap.max_payload_size_supported = 2
        self.vendor_id, self.device_id = 0x1209, 1
        self.configure_bar(0, 8192)


class Block(Device):
    """The block, and what it has done: ``writes`` that were sent (address, bytes), TLPs ``discarded`` because the user
    or the host wanted it so, clocks ``stalled`` for each side. ``begun``: words of a TLP from the user.
    ``poison``: mark what comes from the host, as the block does with a poisoned TLP."""

    def __init__(self, dut, choose, stalls=0.0):
        super().__init__()
        self.dut, self.choose, self.stalls = dut, choose, stalls
        self.append_function(Function())
        self.upstream_port.max_link_speed = self.upstream_port.max_link_width = 1
        self.coming, self.words, self.going, self.leaving = [], [], Queue(), 0
        self.writes, self.discarded, self.poison, self.begun = [], [], False, 0
        self.stall_tx = False

    async def upstream_recv(self, tlp):
        if tlp.fmt_type not in _MEMORY:
            await super().upstream_recv(tlp)
            return
        tlp.release_fc()
        dwords = struct.unpack(f">{len(tlp.pack()) // 4}L", bytes(tlp.pack()))
        hit = self.functions[0].match_bar(tlp.address)
        user = (4 if hit and hit[0] == 0 else 0) | (2 if self.poison or tlp.ep else 0)
        for at in range(0, len(dwords), 2):
            pair = dwords[at:at + 2]
            self.coming.append((pair[0] | (pair[1] << 32 if len(pair) > 1 else 0), 0xff if len(pair) > 1 else 0xf,
                                int(at + 2 >= len(dwords)), user))

    def start(self):
        dut = self.dut
        for name in ("m_axis_rx_tvalid", "s_axis_tx_tready", "cfg_interrupt_rdy", "cfg_received_func_lvl_rst",
                     "cfg_to_turnoff", "cfg_pmcsr_powerstate"):
            getattr(dut, name).value = 0
        cocotb.start_soon(self._clocks())
        cocotb.start_soon(self._sends())

    async def _sends(self):
        """TLPs in their order, at the speed of the link and with its credits; each frees a buffer then."""
        while True:
            tlp = await self.going.get()
            await self.upstream_send(tlp)
            self.leaving -= 1

    def _accept(self, word, keep, last, user):
        """A word from the user."""
        assert last or keep == 0xff, "only the last word may be half"
        assert keep in (0xf, 0xff)
        self.words += [word & 0xffffffff] + ([word >> 32] if keep == 0xff else [])
        self.begun += 1
        if not last:
            return
        dwords, self.words, self.begun = self.words, [], 0
        tlp = Tlp.unpack(bytearray(struct.pack(f">{len(dwords)}L", *dwords)))
        function = self.functions[0]
        assert tlp.check()
        assert (tlp.requester_id if tlp.is_posted() else tlp.completer_id) == function.pcie_id
        if user & 8 or (tlp.is_posted() and not function.bus_master_enable):
            self.discarded.append(tlp)
            return
        if tlp.is_posted():
            long = tlp.fmt_type == TlpType.MEM_WRITE_64
            assert long or tlp.fmt_type == TlpType.MEM_WRITE
            assert long == (tlp.address >= 1 << 32), "a header of four dwords where it is needed, and only there"
            assert len(tlp.data) <= 128 << function.pcie_cap.max_payload_size
            assert (tlp.attr, tlp.tc, tlp.first_be, tlp.last_be) == (0, 0, 15, 15), "strictly ordered, all bytes"
            self.writes.append((tlp.address, len(tlp.data)))
        self.leaving += 1
        self.going.put_nowait(tlp)

    def _configuration(self):
        dut, function = self.dut, self.functions[0]
        dut.cfg_bus_number.value, dut.cfg_device_number.value = self.bus_num, function.pcie_id.device
        dut.cfg_function_number.value = 0
        dut.cfg_command.value = function.bus_master_enable << 2 | 2
        dut.cfg_dcommand.value = function.pcie_cap.max_payload_size << 5
        dut.cfg_interrupt_msienable.value = int(function.msi_cap.msi_enable)
        dut.tx_buf_av.value = BUFFERS - self.leaving

    async def _clocks(self):
        """All signals change at falling edges, and what is ready then is taken at the rising edge."""
        dut, offered, wants, held = self.dut, False, 0, None
        while True:
            await FallingEdge(dut.link_clk)
            self._configuration()
            if not offered and self.coming and self.choose.random() >= self.stalls:
                offered = True
                word, keep, last, user = self.coming.pop(0)
                dut.m_axis_rx_tdata.value, dut.m_axis_rx_tkeep.value = word, keep
                dut.m_axis_rx_tlast.value, dut.m_axis_rx_tuser.value = last, user
            dut.m_axis_rx_tvalid.value = int(offered)
            takes = self.leaving < BUFFERS and self.choose.random() >= self.stalls and not self.stall_tx
            dut.s_axis_tx_tready.value = int(takes)
            done = wants > 0 and self.choose.random() < 0.2
            dut.cfg_interrupt_rdy.value = int(done)
            await Timer(1, "step")
            if dut.user_reset_out.value:
                self.words, self.begun, offered, held = [], 0, False, None
                self.coming.clear()
                continue
            offered = offered and not dut.m_axis_rx_tready.value
            word = [int(getattr(dut, f"s_axis_tx_{name}").value) for name in ("tdata", "tkeep", "tlast", "tuser")]
            valid = int(dut.s_axis_tx_tvalid.value)
            assert held is None or (valid and word == held), "what is offered stays until it is taken"
            held = word if valid and not takes else None
            if takes and valid:
                self._accept(*word)
            wants = int(dut.cfg_interrupt.value) and not done
            if done:
                cocotb.start_soon(self.functions[0].msi_cap.issue_msi_interrupt(0))


class Machine7(Machine):
    """A host with the 7-series block in a slot."""

    #: A completion follows the writes that the block has accepted, over a slow link.
    patience = 30_000

    def __init__(self, dut, choose, mps=0, stalls=0.0, period_ps=16_000):
        self.dut, self.rc, self.period = dut, RootComplex(), period_ps
        self.quiet()
        self.rc.max_payload_size = mps
        self.device = Block(dut, choose, stalls)
        self.rc.make_port().connect(self.device)

    @property
    def writes(self):
        return self.device.writes

    @property
    def begun(self):
        return self.device.begun

    async def up(self):
        dut = self.dut
        dut.rst.value = dut.link_rst.value = dut.user_reset_out.value = 1
        dut.stream_valid.value = dut.silent.value = dut.user_lnk_up.value = 0
        Clock(dut.clk, 10_000, "step").start()
        Clock(dut.link_clk, self.period, "step").start()
        self.device.start()
        await Timer(200_000, "step")
        dut.rst.value = dut.link_rst.value = dut.user_reset_out.value = 0
        dut.user_lnk_up.value = 1
        await Timer(1, "us")
        return await self.enumerated()

    async def hot_reset(self, clocks=50):
        self.dut.user_reset_out.value = 1
        for _ in range(clocks):
            await FallingEdge(self.dut.link_clk)
        self.dut.user_reset_out.value = 0
