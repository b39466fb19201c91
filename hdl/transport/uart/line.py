"""Asynchronous serial line: eight bits, no parity, one stop bit, at a rate whose mean is exact."""

from math import gcd

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

#: Start bit, data, stop bit.
_BITS = 10
#: With fewer clocks per bit, too little of a bit is left for a difference between the rates of the two sides.
_CLOCKS_MIN = 8


def _ratio(clock_hz: int, baud: int) -> tuple[int, int]:
    """Bits per clock, as a reduced fraction."""
    if not 0 < baud * _CLOCKS_MIN <= clock_hz:
        raise ValueError(f"a bit must last at least {_CLOCKS_MIN} clocks, and {clock_hz!r} Hz are too few for "
                         f"{baud!r} baud")
    common = gcd(clock_hz, baud)
    return baud // common, clock_hz // common


class _Divider:
    """A sum that grows by a bit's share in every clock: ``tick`` where it completes a bit."""

    def __init__(self, m: Module, clock_hz: int, baud: int):
        self._step, self.whole = _ratio(clock_hz, baud)
        self.sum = Signal(range(self.whole))
        self.tick = Signal()
        m.d.comb += self.tick.eq(self.sum >= self.whole - self._step)

    def next(self):
        """The sum one clock later."""
        return Mux(self.tick, self.sum - (self.whole - self._step), self.sum + self._step)


class _Timed(wiring.Component):
    """One direction of a line.

    Parameters
    ----------
    clock_hz, baud : rates of the domain and of the line; at least eight clocks per bit.

    Raises
    ------
    ValueError
        for a rate that the clock cannot generate.
    """

    def __init__(self, members: dict, clock_hz: int, baud: int):
        _ratio(clock_hz, baud)
        self.clock_hz, self.baud = clock_hz, baud
        super().__init__(members)


class UartTransmitter(_Timed):
    """Bytes to a line. No bit is more than one clock longer or shorter than another, and the timing of bytes without a
    pause between them never drifts.

    Members
    -------
    i : bytes.
    tx : the line, high when idle.
    """

    def __init__(self, clock_hz: int, baud: int):
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)}, clock_hz, baud)

    def elaborate(self, platform):
        m = Module()
        divider = _Divider(m, self.clock_hz, self.baud)
        bits = Signal(_BITS - 1)             # those after the one on the line
        left = Signal(range(_BITS + 1))      # bits that are not over yet
        last = Signal()
        idle = Signal(init=1)
        m.d.comb += self.i.ready.eq(idle | (last & divider.tick))
        with m.If(~idle):
            m.d.sync += divider.sum.eq(divider.next())
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [Cat(self.tx, bits).eq(Cat(0, self.i.p, 1)), left.eq(_BITS), last.eq(0), idle.eq(0)]
        with m.Elif(divider.tick & ~idle):
            m.d.sync += [Cat(self.tx, bits).eq(Cat(bits, 1)), left.eq(left - 1), last.eq(left == 2)]
            with m.If(last):
                m.d.sync += [idle.eq(1), divider.sum.eq(0)]
        return m


class UartReceiver(_Timed):
    """Receives bytes from the line.

    A byte begins with a falling edge of the line; every bit is sampled in its middle, within one clock. A
    start bit that has ended by its middle, and a byte without a stop bit, are discarded; after the latter
    the line must be high once before the next byte begins. The other side's rate may be off by (1/2 - 3 / clocks per
    bit) / 10: 4.1 % at 33 clocks per bit, 1.2 % at 8.

    Members
    -------
    rx : the line, asynchronous.
    o : bytes, for one clock each, without back-pressure.
    """

    def __init__(self, clock_hz: int, baud: int):
        super().__init__({"rx": In(1, init=1), "o": Out(stream.Signature(8, always_ready=True))}, clock_hz, baud)

    def elaborate(self, platform):
        m = Module()
        divider = _Divider(m, self.clock_hz, self.baud)
        line = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)
        bits = Signal(_BITS - 1)
        left = Signal(range(_BITS))
        m.d.sync += self.o.valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [divider.sum.eq(divider.whole // 2), left.eq(_BITS - 1)]
                with m.If(~line):
                    m.next = "BITS"
            with m.State("BITS"):
                m.d.sync += divider.sum.eq(divider.next())
                with m.If(divider.tick):
                    m.d.sync += [bits.eq(Cat(bits[1:], line)), left.eq(left - 1)]
                    with m.If(left == 0):
                        m.d.sync += [self.o.p.eq(bits[1:]), self.o.valid.eq(line)]
                        m.next = "IDLE"
                        with m.If(~line):
                            m.next = "BREAK"
                    with m.Elif((left == _BITS - 1) & line):
                        m.next = "IDLE"
            with m.State("BREAK"):
                with m.If(line):
                    m.next = "IDLE"
        return m
