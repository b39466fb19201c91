"""Requests: only whole ones with the right CRC count, wherever packets begin and end."""

import random
import zlib

from hypermon.hdl.layout import UART_REQUEST
from hypermon.hdl.transport.uart.requests import UartRequests

from ...harness.stage import run

FIELDS = [f.name for f in UART_REQUEST.fields if f.name != "crc"]


def request(**fields):
    body = UART_REQUEST.pack(**fields)[:-4]
    return [*body, *zlib.crc32(body).to_bytes(4, "little")]


def requests_of(symbols, waits=0):
    """What comes out of symbols, None for a packet's beginning; each request waits for so many symbols."""
    dut, came = UartRequests(), []

    async def bench(ctx):
        waited = 0
        for symbol in [*symbols, *[0] * (waits + 3)]:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.p.packet, symbol is None)
            ctx.set(dut.i.p.data, symbol or 0)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
            await ctx.tick().repeat(2)
            if ctx.get(dut.o.valid):
                waited += 1
                if waited > waits:
                    came.append({name: ctx.get(getattr(dut.o.p, name)) for name in FIELDS})
                    ctx.set(dut.o.ready, 1)
                    await ctx.tick()
                    ctx.set(dut.o.ready, 0)
                    waited = 0
    run(dut, bench)
    return came


def random_fields(choose):
    return {f.name: choose.getrandbits(f.bits) for f in UART_REQUEST.fields if f.name != "crc"}


def test_whole_ones_count():
    choose = random.Random(4)
    due, symbols = [], []
    for _ in range(60):
        fields = random_fields(choose)
        packet = request(**fields)
        kind = choose.choice(["whole", "whole", "cut", "damaged", "longer", "lost", "noise"])
        if kind == "cut":
            packet = packet[:choose.randrange(12)]
        elif kind == "damaged":
            packet[choose.randrange(12)] ^= 1 << choose.randrange(8)
        elif kind == "longer":
            packet += choose.randbytes(choose.randrange(1, 30))
        elif kind == "lost":
            del packet[choose.randrange(11)]
        if kind in ("whole", "longer"):
            due.append(fields)
        symbols += choose.randbytes(20) if kind == "noise" else [None, *packet]
    assert requests_of(symbols) == due


def test_one_waits_and_others_are_ignored():
    choose = random.Random(5)
    first, ignored, cut, second = (random_fields(choose) for _ in range(4))
    symbols = [None, *request(**first), None, *request(**ignored), None, *request(**cut), 1, None, *request(**second)]
    # The first one is taken in the middle of the third, whose beginning has gone by.
    assert requests_of(symbols, waits=18) == [first, second]
