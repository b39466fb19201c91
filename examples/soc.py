"""The board in an Amaranth design of one's own: what soc.v says in Verilog, with the parts as components.

``python examples/soc.py -o soc.v`` writes a module ``soc`` with the ports of the one in soc.v.
"""

import argparse
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.axi_stream import AxiStream, axi_stream_signature
from hypermon.hdl.capture import Capture
from hypermon.hdl.layout import Geometry
from hypermon.hdl.onchip_port import STORE_NIBBLE, OnchipPort
from hypermon.hdl.verilog import build_hash
from hypermon.hdl.wishbone import WORD_ADDRESS_BITS, Wishbone, wishbone_signature

BEGINS, ENDS = 1, 2


class Soc(wiring.Component):
    """Node 0 at pins, node 1 a worker without a processor, whose job n takes 50 (n + 1) clocks."""

    pins: In(5)
    wb: In(wishbone_signature(WORD_ADDRESS_BITS))
    axis: Out(axi_stream_signature(4))

    def elaborate(self, platform):
        m = Module()
        geometry = Geometry(nodes=2)
        m.submodules.board = board = Capture(geometry, build=build_hash(geometry))
        m.submodules.wishbone = wishbone = Wishbone()
        m.submodules.axi_stream = axi_stream = AxiStream(4)
        m.submodules.port = port = OnchipPort()
        wiring.connect(m, wishbone.pbx, board.bus)
        wiring.connect(m, board.stream, axi_stream.i)
        wiring.connect(m, wiring.flipped(self.wb), wishbone.bus)
        wiring.connect(m, axi_stream.o, wiring.flipped(self.axis))
        m.d.comb += [
            board.strobe.eq(Cat(self.pins[4], port.strobe)), board.data.eq(Cat(self.pins[:4], port.data))]

        working = Signal()
        tells = Signal()
        job = Signal(12, init=50)
        left = Signal(12, init=50)
        with m.If(port.bus.ack):
            m.d.sync += tells.eq(0)
        with m.If(~board.running):
            m.d.sync += [working.eq(0), tells.eq(0), job.eq(job.init), left.eq(left.init)]
        with m.Elif(left != 1):
            m.d.sync += left.eq(left - 1)
        with m.Else():
            m.d.sync += [
                working.eq(~working), tells.eq(1), left.eq(Mux(working, 50, job)), job.eq(job + Mux(working, 50, 0))]
        m.d.comb += [
            port.bus.cyc.eq(tells), port.bus.stb.eq(tells), port.bus.we.eq(1), port.bus.adr.eq(STORE_NIBBLE),
            port.bus.sel.eq(1), port.bus.dat_w.eq(Mux(working, BEGINS, ENDS)),
        ]
        return m


class Top(Elaboratable):
    """Its clock and reset, and its members, as ports with the names that they have in soc.v."""

    def __init__(self):
        self.soc = Soc()
        self.clk = Signal()
        self.rst = Signal()
        self.members = [(Signal(member.shape, name="_".join(map(str, path))), value, member.flow)
                        for path, member, value in self.soc.signature.flatten(self.soc)]

    def ports(self):
        return [self.clk, self.rst, *(port for port, _, _ in self.members)]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.submodules.soc = self.soc
        m.d.comb += [sync.clk.eq(self.clk), sync.rst.eq(self.rst)]
        for port, value, flow in self.members:
            m.d.comb += value.eq(port) if flow is In else port.eq(value)
        return m


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    top = Top()
    parser.parse_args().output.write_text(verilog.convert(top, name="soc", ports=top.ports(), emit_src=False))


if __name__ == "__main__":
    main()
