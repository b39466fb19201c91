"""Escaping: every symbol comes back, whatever stalls; damaged marks give nothing."""

import random

import pytest
from hypermon.hdl.layout import UART_ESCAPE, UartMark
from hypermon.hdl.transport.uart.escape import Escape, Unescape

from ...harness.stage import run


def escaped(symbols):
    """The plain answer: bytes of symbols, which are numbers, or None for a packet's beginning."""
    out = []
    for symbol in symbols:
        out += [UART_ESCAPE, UartMark.PACKET] if symbol is None else (
            [UART_ESCAPE, UartMark.LITERAL] if symbol == UART_ESCAPE else [symbol])
    return out


def random_symbols(choose, count):
    return [choose.choice([None, UART_ESCAPE, UartMark.PACKET, choose.randrange(256)]) for _ in range(count)]


@pytest.mark.parametrize("taking", [1.0, 0.3])
def test_escapes(taking):
    dut, choose = Escape(), random.Random(2)
    symbols = random_symbols(choose, 150)
    due, came = escaped(symbols), []

    async def give(ctx):
        for symbol in symbols:
            while choose.random() < 0.3:
                await ctx.tick()
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p.packet, symbol is None)
            # Beside a packet's beginning the byte means nothing.
            ctx.set(dut.i.p.data, choose.randrange(256) if symbol is None else symbol)
            while True:
                *_, ready = await ctx.tick().sample(dut.i.ready)
                if ready:
                    break
            ctx.set(dut.i.valid, 0)

    async def take(ctx):
        while len(came) < len(due):
            ctx.set(dut.o.ready, choose.random() < taking)
            *_, valid, byte, ready = await ctx.tick().sample(dut.o.valid, dut.o.p, dut.o.ready)
            if valid and ready:
                came.append(byte)
                assert came == due[:len(came)]
    run(dut, give, take)


def unescaped(data):
    """The symbols that come out of ``data``."""
    dut, came = Unescape(), []

    async def bench(ctx):
        for byte in [*data, None]:
            ctx.set(dut.i.valid, byte is not None)
            ctx.set(dut.i.p, byte or 0)
            await ctx.tick()
            if ctx.get(dut.o.valid):
                came.append(None if ctx.get(dut.o.p.packet) else ctx.get(dut.o.p.data))
    run(dut, bench)
    return came


def test_unescapes():
    symbols = random_symbols(random.Random(3), 300)
    assert unescaped(escaped(symbols)) == symbols


def test_damaged_marks_give_nothing():
    pair = [UART_ESCAPE, 0x77]
    assert unescaped([1, *pair, 2]) == [1, 2]
    # An escape byte whose mark was lost does not hide the packet behind it.
    assert unescaped([1, UART_ESCAPE, *escaped([None]), 2]) == [1, None, 2]
    assert unescaped([UART_ESCAPE] * 3 + [UartMark.LITERAL, 2]) == [UART_ESCAPE, 2]
