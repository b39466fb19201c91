"""Wishbone: each cycle is one access, whatever the clocks; cycles that are given up, and writes of less than a word."""

import functools

import cocotb
import pytest
from cocotb.triggers import FallingEdge, Timer, with_timeout
from hypermon.hdl.wishbone import Wishbone

from .benches.case import rng
from .benches.cocotb_stage import Stage
from .harness.runner import component, run, seeds


class Target:
    """The board's end of the asynchronous bus: a memory, with delays of its own; what was written, in order."""

    def __init__(self, dut, choose, slow):
        self.dut, self.choose, self.slow = dut, choose, slow
        self.memory, self.accesses = {}, []
        dut.pbx_ack.value = 0
        cocotb.start_soon(self._serve())

    async def _wait(self, level):
        while int(self.dut.pbx_req.value) != level:
            await self.dut.pbx_req.value_change
        await Timer(1 + self.choose.randint(0, self.slow), "step")

    async def _serve(self):
        dut = self.dut
        while True:
            await self._wait(1)
            access = [int(getattr(dut, f"pbx_{name}").value) for name in ("write", "addr", "wdata")]
            self.accesses.append(tuple(access))
            if access[0]:
                self.memory[access[1]] = access[2]
            dut.pbx_rdata.value = self.memory.get(access[1], ~access[1] & 0xffffffff)
            dut.pbx_ack.value = 1
            await self._wait(0)
            assert [int(getattr(dut, f"pbx_{name}").value) for name in ("write", "addr", "wdata")] == access
            dut.pbx_rdata.value = self.choose.getrandbits(32)
            dut.pbx_ack.value = 0


class Bus:
    """An initiator: cycles with and without gaps between them."""

    def __init__(self, stage, choose):
        self.stage, self.choose = stage, choose

    def ask(self, write, address, value, select=0xf):
        self.stage.put(bus_cyc=1, bus_stb=1, bus_we=write, bus_adr=address >> 2, bus_dat_w=value, bus_sel=select)

    def idle(self):
        self.stage.put(bus_cyc=self.choose.getrandbits(1), bus_stb=0, bus_we=self.choose.getrandbits(1),
                       bus_adr=self.choose.getrandbits(11))

    async def end(self, patience=10_000):
        """How the cycle ends, and what was read; ``None`` if it has not after so many clocks."""
        for _ in range(patience):
            await self.stage.settle()
            ack, err, read = (self.stage.get(f"bus_{name}") for name in ("ack", "err", "dat_r"))
            await self.stage.clock()
            if ack or err:
                assert ack != err
                return ("ack" if ack else "err"), read
        return None

    async def rest(self):
        for _ in range(self.choose.choice([0, 0, 1, 5])):
            self.idle()
            await self.stage.settle()
            assert not self.stage.get("bus_ack")
            assert not self.stage.get("bus_err")
            await self.stage.clock()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def answers(dut):
    stage, choose = Stage(dut), rng()
    target = Target(dut, choose, choose.choice([0, 3_000, 90_000]))
    await stage.start(bus_cyc=0, bus_stb=0, bus_we=0, bus_adr=0, bus_sel=0, bus_dat_w=0)
    bus, written, due = Bus(stage, choose), {}, []    # write, address, and whether it must have come
    for _ in range(200):
        await bus.rest()
        address, value, write = 4 * choose.randrange(2048), choose.getrandbits(32), choose.getrandbits(1)
        select = choose.choice([0xf, 0xf, choose.randrange(16)])
        bus.ask(write, address, value, select)
        if choose.random() < 0.3:
            # Given up, perhaps after it has begun; the next cycle, which may come at once, must get its own answer.
            before = len(target.accesses)
            ended = await bus.end(choose.randrange(1, 8))
            bus.idle()
            await with_timeout(stage.clock(), 1, "us")
            if not write:
                assert ended in (None, ("ack", written.get(address, ~address & 0xffffffff)))
                due.append((0, address, ended is not None))
                continue
            for _ in range(60):
                await FallingEdge(dut.clk)
                assert (stage.get("bus_ack"), stage.get("bus_err")) == (0, 0)
            await Timer(400_000, "step")
            begun = target.accesses[before:]
            assert ended is None or ended[0] == ("ack" if select == 0xf else "err")
            if (1, address, value) in begun:
                written[address] = value
                due.append((1, address, True))
            continue
        how, read = await bus.end()
        if write and select != 0xf:
            assert how == "err"
            continue
        assert how == "ack"
        due.append((write, address, True))
        if write:
            written[address] = value
        else:
            assert read == written.get(address, ~address & 0xffffffff)
    await bus.rest()
    came = iter([*target.accesses, (None, None, None)])
    access = next(came)
    for write, address, surely in due:
        if access[:2] == (write, address):
            access = next(came)
        else:
            assert not surely, f"{'write' if write else 'read'} of {address:#x} is missing, or out of its turn"
    assert access == (None, None, None), f"{access} was not asked for"
    assert target.memory == written


@functools.cache
def simulator():
    return component(Wishbone())


@pytest.mark.parametrize("seed", seeds(5, fast=2))
def test_answers(seed):
    run(simulator(), __name__, "answers", seed)
