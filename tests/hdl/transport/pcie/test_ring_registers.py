"""Registers of the PCIe link: each value, who may change it when, and what is passed on to the board."""

import pytest
from hypermon.hdl.layout import PCIE_BASE, PCIE_END, PCIE_MAGIC, PCIE_PAGES_LOG_MAX, PCIE_REGISTERS
from hypermon.hdl.transport.pcie.ring_registers import RingRegisters

from ...harness.stage import run


class Host:
    """Accesses, as the completer makes them, and a board whose registers are the complement of their addresses."""

    def __init__(self, ctx, dut):
        self.ctx, self.dut, self.passed, self.arms = ctx, dut, [], []

    async def access(self, write, address, word=0):
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.command.p, {"write": write, "addr": address, "wdata": word})
        ctx.set(dut.command.valid, 1)
        ctx.set(dut.reply.ready, 1)
        for _ in range(20):
            if ctx.get(dut.arm):
                self.arms.append(ctx.get(dut.seen))
            passes, sent = ctx.get(dut.board_command.valid), ctx.get(dut.board_command.p)
            taken = ctx.get(dut.command.ready)
            ctx.set(dut.board_command.ready, 1)
            valid, word_read = ctx.get(dut.reply.valid), ctx.get(dut.reply.p)
            await ctx.tick()
            ctx.set(dut.board_reply.valid, 0)
            if passes:
                assert (sent["write"], sent["addr"], sent["wdata"]) == (write, address, word)
                self.passed.append((write, address, word))
                ctx.set(dut.board_reply.p, address ^ 0xffffffff)
                ctx.set(dut.board_reply.valid, 1)
            if taken:
                ctx.set(dut.command.valid, 0)
            if valid:
                return word_read
        raise AssertionError("no reply")

    async def read(self, name):
        return await self.access(0, PCIE_REGISTERS[name].offset)

    async def write(self, name, word):
        await self.access(1, PCIE_REGISTERS[name].offset, word)


def with_host(bench):
    dut = RingRegisters()

    async def main(ctx):
        ctx.set(dut.permitted, 1)
        await bench(ctx, dut, Host(ctx, dut))
    run(dut, main)


def test_what_is_elsewhere_goes_to_the_board():
    async def bench(ctx, dut, host):
        for address in (0, 0x40, PCIE_BASE - 4, PCIE_END, 0x800, 0x1400, 0x1ffc):
            assert await host.access(0, address) == address ^ 0xffffffff
            await host.access(1, address, 5)
        assert len(host.passed) == 14
        for address in range(PCIE_BASE, PCIE_END, 4):
            await host.access(0, address)
        assert len(host.passed) == 14
    with_host(bench)


def test_values():
    async def bench(ctx, dut, host):
        assert await host.read("PCIE_ID") == PCIE_MAGIC
        assert await host.read("PCIE_FLUSH") == 2500
        for name, word, reads in (("RING_LOW", 0x87654fff, 0x87654000), ("RING_HIGH", 0xfedcba98, 0xfedcba98),
                                  ("RING_PAGES", 10, 10), ("FLUSH", 0xff123456, 0x123456), ("ARM", 0x50, 0)):
            await host.write(f"PCIE_{name}", word)
            assert await host.read(f"PCIE_{name}") == reads
        assert host.arms == [5]
        assert ctx.get(dut.settings.page) == 0xfedcba9887654
        for member, value in (("running", 1), ("full", 1), ("written", 0x1234567), ("starts", 9), ("cut", 77)):
            ctx.set(getattr(dut.state, member), value)
        for member, value in (("dropped", 3), ("refused", 4), ("timeouts", 5), ("busy", 1)):
            ctx.set(getattr(dut, member), value)
        for name, value in (("STATUS", 0b100111), ("HEAD", 0x12345670), ("STARTS", 9), ("CUT", 77),
                            ("DROPPED", 4 << 16 | 3), ("TIMEOUTS", 5)):
            assert await host.read(f"PCIE_{name}") == value, name
    with_host(bench)


@pytest.mark.parametrize("how", ["enabled", "running"])
def test_a_ring_that_is_on_stays_where_it_is(how):
    async def bench(ctx, dut, host):
        await host.write("PCIE_RING_LOW", 0x1000)
        await host.write("PCIE_RING_PAGES", PCIE_PAGES_LOG_MAX + 1)
        assert await host.read("PCIE_RING_PAGES") == 0
        assert await host.read("PCIE_STATUS") == 0b10100
        ctx.set(dut.state.start, 1)
        await ctx.tick()
        ctx.set(dut.state.start, 0)
        assert await host.read("PCIE_STATUS") == 0b100
        if how == "enabled":
            await host.write("PCIE_CONTROL", 1)
        else:
            ctx.set(dut.state.running, 1)
        for name in ("RING_LOW", "RING_HIGH", "RING_PAGES"):
            await host.write(f"PCIE_{name}", 0x2000 if name == "RING_LOW" else 2)
            assert await host.read(f"PCIE_{name}") == (0x1000 if name == "RING_LOW" else 0)
        assert await host.read("PCIE_STATUS") == 0b10100 + (how == "running")
    with_host(bench)


def test_tail_moves_forward_up_to_the_head():
    async def bench(ctx, dut, host):
        ctx.set(dut.state.written, 10)
        refused = 0
        for word, tail in ((0x40, 0x40), (0x30, 0x40), (0xb0, 0x40), (0x48, 0x40), (0xa0, 0xa0), (0x40, 0xa0)):
            await host.write("PCIE_TAIL", word)
            assert await host.read("PCIE_TAIL") == tail
            refused = refused or word != tail
            assert await host.read("PCIE_STATUS") == refused << 3 | 0b100
        # Past the end of its range.
        ctx.set(dut.state.written, (1 << 28) - 1)
        await host.write("PCIE_TAIL", 0xfffffff0)
        ctx.set(dut.state.written, 3)
        await host.write("PCIE_TAIL", 0x20)
        assert await host.read("PCIE_TAIL") == 0x20
    with_host(bench)


@pytest.mark.parametrize(("name", "stops"), [("down", 1), ("permitted", 0)])
def test_a_reset_and_a_host_that_forbids_writes_stop_the_ring(name, stops):
    async def bench(ctx, dut, host):
        await host.write("PCIE_CONTROL", 1)
        assert ctx.get(dut.settings.enable)
        ctx.set(getattr(dut, name), stops)
        await ctx.tick()
        assert not ctx.get(dut.settings.enable)
        await host.write("PCIE_CONTROL", 1)
        ctx.set(getattr(dut, name), 1 - stops)
        await ctx.tick()
        assert await host.read("PCIE_CONTROL") == 0
    with_host(bench)
