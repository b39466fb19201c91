"""The design of uart_traced.v in Amaranth, with the board as a component: ``python uart_traced.py OUT.v``."""

import sys
from pathlib import Path

from amaranth.back import verilog
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from hypermon.hdl.capture import Capture
from hypermon.hdl.layout import Geometry
from hypermon.hdl.verilog import build_hash


class UartTraced(wiring.Component):
    """A UART transmitter of 16 clocks per bit: nibble 1 when a byte begins, 2 when it is out."""

    start: In(1)
    value: In(8)
    tx: Out(1)
    busy: Out(1)
    stream_data: Out(128)
    stream_last: Out(1)

    def __init__(self):
        super().__init__()
        geometry = Geometry(nodes=1)
        self.board = Capture(geometry, build=build_hash(geometry))

    def elaborate(self, platform):
        m = Module()
        m.submodules.board = board = self.board
        bits, left = Signal(10, init=0x3ff), Signal(8)
        beat = board.stream.payload
        m.d.comb += [self.tx.eq(bits[0]), self.busy.eq(left != 0),
                     self.stream_data.eq(beat.data), self.stream_last.eq(beat.last)]
        with m.If(self.busy):
            m.d.sync += left.eq(left - 1)
            with m.If(left[:4] == 1):
                m.d.sync += bits.eq(Cat(bits[1:], Const(1, 1)))
        with m.Elif(self.start):
            m.d.sync += [bits.eq(Cat(Const(0, 1), self.value, Const(1, 1))), left.eq(160)]
        was_busy = Signal()
        m.d.sync += was_busy.eq(self.busy)
        with m.If(self.busy != was_busy):   # one write of the port: the strobe toggles
            m.d.sync += [board.data.eq(Cat(self.busy, ~self.busy)), board.strobe.eq(~board.strobe)]
        return m


if __name__ == "__main__":
    design = UartTraced()
    board = design.board
    ports = {name: (getattr(design, name), None)
             for name in ("start", "value", "tx", "busy", "stream_data", "stream_last")}
    ports |= {f"pbx_{name}": (getattr(board.bus, name), None)
              for name in ("req", "write", "addr", "wdata", "ack", "rdata")}
    ports |= {"stream_valid": (board.stream.valid, None), "stream_ready": (board.stream.ready, None),
              "running": (board.running, None)}
    Path(sys.argv[1]).write_text(verilog.convert(design, name="uart_traced", ports=ports))
