"""The design of uart_traced.v in Amaranth, with the board as a submodule: ``python uart_traced.py > OUT.v``."""

from amaranth.back import verilog
from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from hypermon.hdl.layout import Geometry
from hypermon.hdl.top import PlainTop
from hypermon.hdl.verilog import build_hash


class UartTraced(Elaboratable):
    """A UART transmitter of 16 clocks per bit: nibble 1 when a byte begins, 2 when it is out."""

    def __init__(self):
        geometry = Geometry(nodes=1)
        self.board = PlainTop(geometry, build=build_hash(geometry))
        self.start, self.value = Signal(name="start"), Signal(8, name="value")
        self.tx, self.busy = Signal(name="tx"), Signal(name="busy")

    def elaborate(self, platform):
        m = Module()
        m.submodules.board = board = self.board    # it also creates the domain sync, from its ports clk and rst
        bits = Signal(10, init=0x3ff)
        left = Signal(8)
        was_busy = Signal()
        m.d.comb += [self.tx.eq(bits[0]), self.busy.eq(left != 0)]
        with m.If(self.busy):
            m.d.sync += [left.eq(left - 1), bits.eq(Mux(left[:4] == 1, Cat(bits[1:], 1), bits))]
        with m.Elif(self.start):
            m.d.sync += [bits.eq(Cat(0, self.value, 1)), left.eq(160)]
        m.d.sync += was_busy.eq(self.busy)
        with m.If(self.busy != was_busy):   # one write of the port: the strobe toggles
            m.d.sync += [board.data.eq(Cat(self.busy, ~self.busy)), board.strobe.eq(~board.strobe)]
        return m


if __name__ == "__main__":
    design = UartTraced()
    ports = [design.start, design.value, design.tx, design.busy, *design.board.ports()]
    print(verilog.convert(design, name="uart_traced", ports=ports))
