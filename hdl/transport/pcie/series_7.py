"""Adapter to the PCIe block of 7-series devices, with streams of 64 bits that carry raw TLPs.

Source: AMD PG054, "7 Series FPGAs Integrated Block for PCI Express", chapter "Designing with the core": the order of
dwords, the bits of ``tuser``, the ports ``cfg_*``. Headers: PCI Express Base Specification, section 2.2.
"""

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .tlp import Kind, completion_layout, request_layout, write_layout

__all__ = ["SERIES_7_PORTS", "Series7"]

#: Types of TLPs, 5 bits. Bit 0 of the format: a header of four dwords; bit 1: with data.
#: That of a completion has bit 0 set if its request was locked; a message is known by its upper two bits.
_MEMORY, _LOCKED, _COMPLETION, _MESSAGE = 0b00000, 0b00001, 0b01010, 0b10
#: Free transmit buffers of the block below which no write begins: one for it, and one for a completion.
_BUFFERS = 2

#: The block's ports that are connected, by their own names; all belong to ``user_clk_out``.
SERIES_7_PORTS = {
    "user_reset_out": In(1), "user_lnk_up": In(1),
    "m_axis_rx_tdata": In(64), "m_axis_rx_tkeep": In(8), "m_axis_rx_tlast": In(1), "m_axis_rx_tuser": In(22),
    "m_axis_rx_tvalid": In(1), "m_axis_rx_tready": Out(1), "rx_np_ok": Out(1), "rx_np_req": Out(1),
    "s_axis_tx_tdata": Out(64), "s_axis_tx_tkeep": Out(8), "s_axis_tx_tlast": Out(1), "s_axis_tx_tuser": Out(4),
    "s_axis_tx_tvalid": Out(1), "s_axis_tx_tready": In(1), "tx_buf_av": In(6), "tx_cfg_gnt": Out(1),
    "cfg_bus_number": In(8), "cfg_device_number": In(5), "cfg_function_number": In(3), "cfg_command": In(16),
    "cfg_dcommand": In(16), "cfg_pmcsr_powerstate": In(2), "cfg_received_func_lvl_rst": In(1),
    "cfg_to_turnoff": In(1), "cfg_turnoff_ok": Out(1),
    "cfg_interrupt": Out(1), "cfg_interrupt_rdy": In(1), "cfg_interrupt_assert": Out(1), "cfg_interrupt_di": Out(8),
    "cfg_interrupt_msienable": In(1),
}


def _swapped(words: Value) -> Value:
    """Dwords with their bytes in the opposite order."""
    return Cat(words[at + 8 * k:at + 8 * k + 8] for at in range(0, len(words), 32) for k in (3, 2, 1, 0))


class Series7(wiring.Component):
    """Connects the link to the block: reads headers of requests, and puts headers before completions and writes.

    A write of n beats takes 2 n + 2 clocks, one more if its address is below 4 GiB, where headers have three dwords.
    Completions go before writes, but not into one. The end of power stops the ring.

    Members
    -------
    request, completion, write, mps, permitted, room, down, stop, flr, flr_done, running, msi_enabled, msi_request,
    msi_sent : see :class:`~.pcie.link.PcieLink`.
    all others : SERIES_7_PORTS.
    """

    def __init__(self):
        super().__init__({
            "request": Out(stream.Signature(request_layout())), "completion": In(stream.Signature(completion_layout())),
            "write": In(stream.Signature(write_layout())), "mps": Out(3), "permitted": Out(1), "room": Out(1),
            "down": Out(1), "stop": Out(1), "flr": Out(1), "flr_done": In(1), "running": In(1),
            "msi_enabled": Out(1), "msi_request": In(1), "msi_sent": Out(1), **SERIES_7_PORTS,
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.down.eq(self.user_reset_out | ~self.user_lnk_up), self.mps.eq(self.cfg_dcommand[5:8]),
            self.permitted.eq(self.cfg_command[2] & (self.cfg_pmcsr_powerstate == 0)),
            self.stop.eq(self.cfg_to_turnoff), self.flr.eq(self.cfg_received_func_lvl_rst),
            self.cfg_turnoff_ok.eq(self.cfg_to_turnoff & ~self.running),
            self.rx_np_ok.eq(1), self.rx_np_req.eq(1), self.tx_cfg_gnt.eq(1),
            # The handshake of MSI: the request is held until the block has taken it. Vector 0.
            self.msi_enabled.eq(self.cfg_interrupt_msienable), self.msi_sent.eq(self.cfg_interrupt_rdy),
            self.cfg_interrupt.eq(self.msi_request & self.msi_enabled),
        ]
        m.d.sync += self.room.eq(self.tx_buf_av >= _BUFFERS + 1)     # one more, which it has not counted yet
        for stage in (self._requests, self._replies):      # a reset of the link ends every TLP
            stage(part := Module())
            m.submodules += ResetInserter(self.down)(part)
        return m

    def _requests(self, m: Module) -> None:
        head = Signal(data.ArrayLayout(32, 4))
        keeps, last, bad = Signal(2), Signal(), Signal()      # of the header's second word
        ours = Signal()          # BAR0
        rx, out = self.m_axis_rx_tdata, self.request.p
        has, ends, wrong = Cat(self.m_axis_rx_tkeep[0], self.m_axis_rx_tkeep[4]), self.m_axis_rx_tlast, Signal()
        long, carries, type_ = head[0][29], head[0][30], head[0][24:29]
        address = Mux(long, head[3], head[2])
        with m.If(ours & (type_ == _MEMORY)):
            m.d.comb += out.kind.eq(Mux(carries, Kind.WRITE, Kind.READ))
        with m.Elif((type_[3:] == _MESSAGE) | (type_[1:] == _COMPLETION >> 1) | ((type_ == _MEMORY) & carries)):
            m.d.comb += out.kind.eq(Kind.POSTED)
        with m.Elif(type_ == _LOCKED):
            m.d.comb += out.kind.eq(Kind.LOCKED)
        with m.Else():
            m.d.comb += out.kind.eq(Kind.NONPOSTED)
        m.d.comb += [
            wrong.eq(self.m_axis_rx_tuser[:2].any()),
            out.offset.eq(address[2:13]), out.length.eq(Cat(head[0][:10], head[0][:10] == 0)),
            out.first_be.eq(head[1][:4]), out.last_be.eq(head[1][4:8]), out.tag.eq(head[1][8:16]),
            out.requester.eq(head[1][16:]), out.tc.eq(head[0][20:23]), out.attr.eq(Cat(head[0][12:14], head[0][18])),
        ]
        with m.FSM():
            with m.State("FIRST"):
                m.d.comb += self.m_axis_rx_tready.eq(1)
                m.d.sync += [Cat(head[0], head[1]).eq(rx), ours.eq(self.m_axis_rx_tuser[2])]
                with m.If(self.m_axis_rx_tvalid & ~ends):
                    m.next = "SECOND"
            with m.State("SECOND"):
                m.d.comb += self.m_axis_rx_tready.eq(1)
                m.d.sync += [
                    Cat(head[2], head[3]).eq(rx), keeps.eq(has), last.eq(ends), bad.eq(wrong | (head[0][14]))]
                with m.If(self.m_axis_rx_tvalid):
                    m.next = "HELD"
                    with m.If(long & ~ends):
                        m.next = "MORE"
            with m.State("HELD"):        # no data, or the one dword that came with the header
                m.d.comb += [
                    self.request.valid.eq(1), out.data.eq(_swapped(head[3])), out.dwords.eq(carries & ~long & keeps[1]),
                    out.bad.eq(bad), out.last.eq(last)]
                with m.If(self.request.ready):
                    m.next = "MORE"
                    with m.If(last):
                        m.next = "FIRST"
            with m.State("MORE"):
                m.d.comb += [
                    self.request.valid.eq(self.m_axis_rx_tvalid), self.m_axis_rx_tready.eq(self.request.ready),
                    out.data.eq(_swapped(rx)), out.dwords.eq(has[0] + has[1]), out.bad.eq(bad | wrong),
                    out.last.eq(ends)]
                with m.If(self.request.valid & self.request.ready & out.last):
                    m.next = "FIRST"

    def _replies(self, m: Module) -> None:
        """Completions and writes, to the same stream."""
        reply, write = self.completion.p, self.write.p
        tx, sends = self.s_axis_tx_tdata, Signal()
        ours = Cat(self.cfg_function_number, self.cfg_device_number, self.cfg_bus_number)
        long = Signal()
        carried, ended = Signal(32), Signal()        # the last dword of a beat, which follows in the next clock
        shown = Signal()         # the header of a write, which has not been taken: it does not give way
        dwords = _swapped(write.data)
        m.d.comb += [
            sends.eq(self.s_axis_tx_tvalid & self.s_axis_tx_tready), long.eq(write.address[28:].any()),
            self.s_axis_tx_tkeep.eq(0xff)]
        m.d.sync += shown.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.completion.valid & ~shown):
                    m.d.comb += [
                        self.s_axis_tx_tvalid.eq(1),
                        tx.eq(Cat(
                            reply.dwords, Const(0, 11), reply.attr[:2], Const(0, 4), reply.attr[2], Const(0, 1),
                            reply.tc, Const(0, 1), reply.locked, Const(_COMPLETION >> 1, 4), Const(0, 1), reply.dwords,
                            Const(0, 1),
                            reply.bytes[:12], Const(0, 1), reply.status, ours))]
                    with m.If(sends):
                        m.next = "COMPLETION"
                with m.Elif(self.write.valid):
                    m.d.comb += [
                        self.s_axis_tx_tvalid.eq(1),
                        tx.eq(Cat(Const(0, 2), write.beats, Const(0, 16), Const(_MEMORY, 5), long, Const(1, 2),
                                  Const(0xff, 8), Const(0, 8), ours))]
                    m.d.sync += shown.eq(~sends)
                    with m.If(sends):
                        m.next = "ADDRESS"
            with m.State("COMPLETION"):
                m.d.comb += [
                    self.s_axis_tx_tvalid.eq(1), self.s_axis_tx_tlast.eq(1), self.completion.ready.eq(sends),
                    self.s_axis_tx_tkeep.eq(Cat(Const(0xf, 4), reply.dwords.replicate(4))),
                    tx.eq(Cat(reply.lower, Const(0, 1), reply.tag[:8], reply.requester, _swapped(reply.data)))]
                with m.If(sends):
                    m.next = "IDLE"
            with m.State("ADDRESS"):
                m.d.comb += self.s_axis_tx_tvalid.eq(self.write.valid)
                low = Cat(Const(0, 4), write.address[:28])
                m.d.comb += tx.eq(Mux(long, Cat(write.address[28:], low), Cat(low, dwords[:32])))
                m.d.sync += ended.eq(0)
                with m.If(sends):
                    m.next = "SECOND"
                    with m.If(long):
                        m.next = "FIRST"
            with m.State("FIRST"):       # of a beat, or the dword that is left of the last one
                m.d.comb += [
                    self.s_axis_tx_tvalid.eq(ended | self.write.valid), self.s_axis_tx_tlast.eq(ended),
                    self.s_axis_tx_tkeep.eq(Mux(ended, 0xf, 0xff)),
                    tx.eq(Mux(ended | ~long, Cat(carried, dwords[:32]), dwords[:64]))]
                with m.If(sends):
                    m.next = "SECOND"
                    with m.If(ended):
                        m.next = "IDLE"
            with m.State("SECOND"):
                m.d.comb += [
                    self.s_axis_tx_tvalid.eq(self.write.valid), self.write.ready.eq(self.s_axis_tx_tready),
                    self.s_axis_tx_tlast.eq(long & write.last), tx.eq(Mux(long, dwords[64:], dwords[32:96]))]
                m.d.sync += [carried.eq(dwords[96:]), ended.eq(write.last & ~long)]
                with m.If(sends):
                    m.next = "FIRST"
                    with m.If(long & write.last):
                        m.next = "IDLE"
