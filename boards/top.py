"""A board's top: clocks, pads, and the gateware between them; the only place that talks to a platform."""

from amaranth.build import Attrs, Pins, Resource, Subsignal
from amaranth.hdl import ClockDomain, ClockSignal, Const, Elaboratable, Module, Signal
from amaranth.lib import io
from hypermon.hdl.layout import PORT_BITS, Geometry
from hypermon.hdl.top import UartTop

from .board import Board
from .pll import PLLS

__all__ = ["BoardTop", "resources"]


def resources(board: Board, nodes: int) -> list[Resource]:
    """The node ports of a board as resources of its platform, and what is held low."""
    attributes = Attrs(**board.attributes)
    ports = [Resource("node", number,
                      Subsignal("strobe", Pins(strobe.name, dir="i"), attributes),
                      Subsignal("data", Pins(" ".join(pin.name for pin in data), dir="i"), attributes))
             for number in range(nodes) for strobe, *data in [board.node(number)]]
    level = {key: value for key, value in board.attributes.items() if key == "IO_TYPE"}
    return ports + [Resource("low", index, Pins(ball, dir="o"), Attrs(**level))
                    for index, ball in enumerate(board.low)]


class BoardTop(Elaboratable):
    """A board whose link is its UART.

    The first flip-flop of every wire is in its I/O cell, so that the five of a port take their levels at the same
    time but for the skew of the clock. LED 0 is lit while time runs, LED 1 while the clocks are in step.

    Parameters
    ----------
    board, geometry : what is built, ``geometry.nodes`` of the board's nodes at the capture clock.
    build : value of the BUILD register.
    """

    def __init__(self, board: Board, geometry: Geometry, build: int):
        self.board, self.geometry, self.build = board, geometry, build

    def elaborate(self, platform):
        m = Module()
        board, geometry = self.board, self.geometry
        m.submodules.pll = pll = PLLS[board.family](board.oscillator_hz, geometry.clock_hz, board.link_hz)
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        m.domains.capture = ClockDomain(reset_less=True)
        m.d.comb += [pll.i.eq(oscillator.i), ClockSignal("capture").eq(pll.capture)]

        ram = "ecp5" if board.family == "ecp5" else "portable"
        hypermon = UartTop(geometry, board.link_hz, board.baud, ram, self.build, pad_stage=False)
        m.submodules.hypermon = hypermon
        m.d.comb += [hypermon.clk.eq(pll.capture), hypermon.link_clk.eq(pll.link), hypermon.rst.eq(~pll.locked)]
        for number in range(geometry.nodes):
            port = platform.request("node", number, dir="-")
            m.submodules[f"strobe{number}"] = strobe = io.FFBuffer("i", port.strobe, i_domain="capture")
            m.submodules[f"data{number}"] = data = io.FFBuffer("i", port.data, i_domain="capture")
            m.d.comb += [hypermon.strobe[number].eq(strobe.i), hypermon.data.word_select(number, PORT_BITS).eq(data.i)]
        uart = platform.request("uart", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [hypermon.rx.eq(rx.i), tx.o.eq(hypermon.tx)]
        for index in range(len(board.low)):
            m.submodules[f"low{index}"] = low = io.Buffer("o", platform.request("low", index, dir="-"))
            m.d.comb += low.o.eq(Const(0))
        running = Signal()
        m.d.capture += running.eq(hypermon.running)
        for index, lit in enumerate((running, pll.locked)):
            m.submodules[f"led{index}"] = led = io.Buffer("o", platform.request("led", index, dir="-"))
            m.d.comb += led.o.eq(lit)
        return m
