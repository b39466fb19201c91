"""Server: each request is executed once, in order, and its reply is what was read, however often it is asked."""

import random
import zlib

import pytest
from amaranth.sim import Simulator
from hypermon.hdl.layout import UART_REPLY, UART_WORDS_MAX, UartOp
from hypermon.hdl.transport.uart.requests import request_layout
from hypermon.hdl.transport.uart.server import UartServer

from ...harness.resets import same_as_fresh


class Registers:
    """What is behind the server: every read pops, so a second one would give something else."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.accesses = []     # write, address, value written or given

    async def bench(self, ctx, dut):
        while True:
            ctx.set(dut.command.ready, self.choose.random() < 0.5)
            *_, valid, ready, access = await ctx.tick().sample(dut.command.valid, dut.command.ready, dut.command.p)
            if not (valid and ready):
                continue
            ctx.set(dut.command.ready, 0)
            value = access.wdata if access.write else self.choose.getrandbits(32)
            self.accesses.append((access.write, access.addr, value))
            while self.choose.random() < 0.6:
                await ctx.tick()
            ctx.set(dut.reply.valid, 1)
            ctx.set(dut.reply.p, value)
            while True:
                *_, taken = await ctx.tick().sample(dut.reply.ready)
                if taken:
                    break
            ctx.set(dut.reply.valid, 0)


def served(requests, seed=0, sending=0.4):
    """The accesses of each request, and the words of its reply."""
    dut, registers, choose = UartServer(), Registers(seed), random.Random(seed)
    result = []

    async def ask(ctx):
        for sequence, op, address, value in requests:
            before = len(registers.accesses)
            for name, field in zip(("sequence", "op", "address", "value"), (sequence, op, address, value), strict=True):
                ctx.set(getattr(dut.i.p, name), field)
            ctx.set(dut.i.valid, 1)
            while True:
                *_, taken = await ctx.tick().sample(dut.i.ready)
                if taken:
                    break
            ctx.set(dut.i.valid, 0)
            packet, busy = [], True
            while busy:
                ctx.set(dut.o.ready, choose.random() < sending)
                *_, valid, ready, symbol, busy = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.o.p, dut.busy)
                busy = busy or not packet
                if valid and ready:
                    assert bool(symbol.packet) is not bool(packet), "a packet begins once"
                    packet.append(None if symbol.packet else symbol.data)
            data = bytes(packet[1:])
            head, body, crc = UART_REPLY.unpack(data), data[:-4], data[-4:]
            assert zlib.crc32(body) == int.from_bytes(crc, "little")
            assert head["sequence"] == sequence
            words = [int.from_bytes(body[at:at + 4], "little") for at in range(UART_REPLY.bytes, len(body), 4)]
            assert head["words"] == len(words)
            result.append((head["status"], registers.accesses[before:], words))

    async def answer(ctx):
        await registers.bench(ctx, dut)
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(answer, background=True)
    simulator.add_testbench(ask)
    simulator.run()
    return result


def read(words, address=0x40, sequence=1):
    return sequence, UartOp.READ, address, words


@pytest.mark.parametrize("words", [1, 2, 7])
def test_reads(words):
    [(status, accesses, reply)] = served([read(words)], seed=words)
    assert status == 0
    assert [(write, address) for write, address, _ in accesses] == [(0, 0x40 + 4 * k) for k in range(words)]
    assert reply == [value for _, _, value in accesses]


def test_the_longest_read_and_its_repetition():
    first, again = served([read(UART_WORDS_MAX), read(UART_WORDS_MAX)], sending=1.0)
    assert len(first[2]) == len(first[1]) == UART_WORDS_MAX
    assert (again[1], again[2]) == ([], first[2])


def test_a_repetition_is_not_executed_again():
    requests = [(9, UartOp.WRITE, 0x7c, 0xdeadbeef), (9, UartOp.WRITE, 0x7c, 0xdeadbeef), (10, UartOp.READ, 0xc, 3),
                (10, UartOp.READ, 0xc, 3), (10, UartOp.READ, 0xc, 3), (9, UartOp.WRITE, 0x7c, 1)]
    write, again, popped, *same, other = served(requests)
    assert write == (0, [(1, 0x7c, 0xdeadbeef)], [])
    assert again == (0, [], [])
    assert same == [(0, [], popped[2])] * 2
    assert other[1] == [(1, 0x7c, 1)]


def test_the_first_one_is_executed_whatever_its_number():
    assert served([read(1, sequence=0)])[0][1]


def test_hello_forgets_what_was():
    result = served([read(1, sequence=5), (5, UartOp.HELLO, 0, 0), read(1, sequence=5), (4, UartOp.HELLO, 0, 0),
                     read(1, sequence=5)])
    assert [len(accesses) for _, accesses, _ in result] == [1, 0, 0, 0, 1]
    assert [status for status, *_ in result] == [0] * 5


@pytest.mark.parametrize("bad", [(3, UartOp.READ, 0, 0), (3, UartOp.READ, 0, UART_WORDS_MAX + 1), (3, 7, 0, 1),
                                 (3, UartOp.READ, 0, 1 << 31)])
def test_what_is_not_understood_is_refused(bad):
    refused, after = served([bad, read(1, sequence=4)])
    assert refused == (1, [], [])
    assert (after[0], len(after[2])) == (0, 1)


def test_reset():
    """Of requests that are new and repeated."""
    layout = request_layout()

    def request(rng):
        return layout.const({"sequence": rng.randrange(3), "op": rng.randrange(4), "address": rng.getrandbits(13),
                             "value": rng.randrange(5)}).as_value().value

    same_as_fresh(UartServer, {"i.payload": request})
