"""Adapter to the PCIe block of UltraScale+ devices, with streams of 128 bits, aligned to dwords, no straddling.

Source: AMD PG213, "UltraScale+ Devices Integrated Block for PCI Express", chapter "Designing with the core": the
descriptors of the four streams and the bits of ``tuser``.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .tlp import Kind, completion_layout, request_layout, write_layout

__all__ = ["ULTRASCALE_PLUS_PORTS", "UltrascalePlus"]

#: Request types of the descriptors.
_READ, _WRITE, _LOCKED, _MESSAGE = 0, 1, 7, 0b11
#: Power state D3hot of a function.
_D3 = 2


def _axis(name: str, flow, user: int) -> dict:
    ready = In if flow is Out else Out
    return {f"{name}_tdata": flow(128), f"{name}_tkeep": flow(4), f"{name}_tlast": flow(1), f"{name}_tuser": flow(user),
            f"{name}_tvalid": flow(1), f"{name}_tready": ready(1)}


#: The block's ports that are connected, by their own names; all belong to ``user_clk``.
ULTRASCALE_PLUS_PORTS = {
    "user_reset": In(1),
    **_axis("m_axis_cq", In, 88), **_axis("s_axis_cc", Out, 33), **_axis("s_axis_rq", Out, 62),
    **_axis("m_axis_rc", In, 75),
    "cfg_max_payload": In(2), "cfg_function_status": In(16), "cfg_function_power_state": In(12),
    "cfg_flr_in_process": In(4), "cfg_flr_done": Out(4),
    "cfg_power_state_change_interrupt": In(1), "cfg_power_state_change_ack": Out(1),
    # Of these, 0 is not the neutral value: the block would deliver no read, answer no configuration request, not train.
    "pcie_cq_np_req": Out(2), "cfg_config_space_enable": Out(1), "cfg_link_training_enable": Out(1),
    "cfg_interrupt_msi_enable": In(4), "cfg_interrupt_msi_data": In(32), "cfg_interrupt_msi_select": Out(2),
    "cfg_interrupt_msi_int": Out(32), "cfg_interrupt_msi_sent": In(1), "cfg_interrupt_msi_fail": In(1),
}


class UltrascalePlus(wiring.Component):
    """Connects the link to the block: splits descriptors off requests, and puts them before completions and writes.

    A write of n beats takes n + 1 clocks. The stream RC is always ready: the link requests nothing. A change of the
    power state stops the ring, and is acknowledged for one clock as soon as no write follows. The link accepts every
    read that the block has (``pcie_cq_np_req``: one more in each clock, which the block limits to 32), enumeration and
    link training at once.

    Members
    -------
    request, completion, write, mps, permitted, room, down, stop, flr, flr_done, running, msi_enabled, msi_request,
    msi_sent : see :class:`~.pcie.link.PcieLink`.
    all others : ULTRASCALE_PLUS_PORTS.
    """

    def __init__(self):
        super().__init__({
            "request": Out(stream.Signature(request_layout())), "completion": In(stream.Signature(completion_layout())),
            "write": In(stream.Signature(write_layout())), "mps": Out(3), "permitted": Out(1), "room": Out(1),
            "down": Out(1), "stop": Out(1), "flr": Out(1), "flr_done": In(1), "running": In(1),
            "msi_enabled": Out(1), "msi_request": In(1), "msi_sent": Out(1), **ULTRASCALE_PLUS_PORTS,
        })

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.down.eq(self.user_reset), self.mps.eq(self.cfg_max_payload),
            self.permitted.eq(self.cfg_function_status[2] & ~self.cfg_function_power_state[_D3]),
            self.m_axis_rc_tready.eq(1), self.room.eq(1),
            self.pcie_cq_np_req.eq(1), self.cfg_config_space_enable.eq(1), self.cfg_link_training_enable.eq(1),
        ]
        self._requests(m)
        self._completions(m)
        self._writes(m)
        self._interrupts(m)
        # A function-level reset, and a change of the power state. Each is acknowledged for one clock.
        self._acknowledges(m, self.flr_done, self.cfg_flr_done)
        self._acknowledges(m, self.stop & ~self.running, self.cfg_power_state_change_ack)
        m.d.comb += [
            self.flr.eq(self.cfg_flr_in_process[0]), self.stop.eq(self.cfg_power_state_change_interrupt)]
        return m

    def _acknowledges(self, m: Module, complete: Value, done: Signal) -> None:
        told = Signal()
        m.d.sync += [done.eq(complete & ~told), told.eq(complete)]

    def _requests(self, m: Module) -> None:
        header = Signal(128)
        enables = Signal(8)
        bad, bare = Signal(), Signal()       # discontinued; no data
        out, kind = self.request.p, header[75:79]
        ours = header[112:115] == 0          # BAR0
        with m.If(ours & (kind == _READ)):
            m.d.comb += out.kind.eq(Kind.READ)
        with m.Elif(ours & (kind == _WRITE)):
            m.d.comb += out.kind.eq(Kind.WRITE)
        with m.Elif((kind == _WRITE) | (kind[2:] == _MESSAGE)):
            m.d.comb += out.kind.eq(Kind.POSTED)
        with m.Elif(kind == _LOCKED):
            m.d.comb += out.kind.eq(Kind.LOCKED)
        with m.Else():
            m.d.comb += out.kind.eq(Kind.NONPOSTED)
        m.d.comb += [
            out.offset.eq(header[2:13]), out.length.eq(header[64:75]), out.first_be.eq(enables[:4]),
            out.last_be.eq(enables[4:]), out.requester.eq(header[80:96]), out.tag.eq(header[96:104]),
            out.tc.eq(header[121:124]), out.attr.eq(header[124:127]),
            out.data.eq(self.m_axis_cq_tdata), out.dwords.eq(Mux(bare, 0, sum(self.m_axis_cq_tkeep))),
            out.bad.eq(bad | (~bare & self.m_axis_cq_tuser[41])), out.last.eq(bare | self.m_axis_cq_tlast),
        ]
        with m.FSM():
            with m.State("HEADER"):
                m.d.comb += self.m_axis_cq_tready.eq(1)
                m.d.sync += [
                    header.eq(self.m_axis_cq_tdata), enables.eq(self.m_axis_cq_tuser[:8]),
                    bad.eq(self.m_axis_cq_tuser[41]), bare.eq(self.m_axis_cq_tlast)]
                with m.If(self.m_axis_cq_tvalid & ~self.user_reset):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += [
                    self.request.valid.eq(bare | self.m_axis_cq_tvalid),
                    self.m_axis_cq_tready.eq(~bare & self.request.ready)]
                with m.If(self.user_reset | (self.request.valid & self.request.ready & out.last)):
                    m.next = "HEADER"

    def _completions(self, m: Module) -> None:
        reply = self.completion.p
        m.d.comb += [
            self.s_axis_cc_tvalid.eq(self.completion.valid), self.completion.ready.eq(self.s_axis_cc_tready),
            self.s_axis_cc_tlast.eq(1), self.s_axis_cc_tkeep.eq(Cat(Const(7, 3), reply.dwords)),
            self.s_axis_cc_tdata.eq(Cat(
                reply.lower, Const(0, 9), reply.bytes, reply.locked, Const(0, 2),
                reply.dwords, Const(0, 10), reply.status, Const(0, 2), reply.requester,
                reply.tag[:8], Const(0, 17), reply.tc, reply.attr, Const(0, 1), reply.data)),
        ]

    def _writes(self, m: Module) -> None:
        write = self.write.p
        m.d.comb += [
            self.s_axis_rq_tvalid.eq(self.write.valid), self.s_axis_rq_tkeep.eq(0xf), self.s_axis_rq_tuser.eq(0xff)]
        with m.FSM():
            with m.State("DESCRIPTOR"):
                m.d.comb += self.s_axis_rq_tdata.eq(Cat(
                    Const(0, 4), write.address, Const(0, 2), write.beats, Const(0, 3), Const(_WRITE, 4), Const(0, 49)))
                with m.If(self.write.valid & self.s_axis_rq_tready & ~self.user_reset):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += [
                    self.s_axis_rq_tdata.eq(write.data), self.s_axis_rq_tlast.eq(write.last),
                    self.write.ready.eq(self.s_axis_rq_tready)]
                with m.If(self.user_reset | (self.write.valid & self.s_axis_rq_tready & write.last)):
                    m.next = "DESCRIPTOR"

    def _interrupts(self, m: Module) -> None:
        # The mask of function 0 is what cfg_interrupt_msi_select asks for.
        m.d.comb += [
            self.msi_enabled.eq(self.cfg_interrupt_msi_enable[0] & ~self.cfg_interrupt_msi_data[0]),
            self.msi_sent.eq(self.cfg_interrupt_msi_sent)]
        m.d.sync += self.cfg_interrupt_msi_int.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.msi_request & self.msi_enabled & ~self.msi_sent):
                    m.d.sync += self.cfg_interrupt_msi_int.eq(1)
                    m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(self.cfg_interrupt_msi_sent | self.cfg_interrupt_msi_fail | ~self.msi_enabled):
                    m.next = "IDLE"
