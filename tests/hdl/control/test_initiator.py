"""Bus initiator: one handshake a command, by the bus's rules, however slow the board; the reply is its own."""

import functools

import cocotb
import pytest
from cocotb.triggers import Edge, RisingEdge, Timer
from hypermon.hdl.control.initiator import Initiator, access_layout

from ..benches.case import rng
from ..benches.cocotb_stage import Stage, pack
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

ACCESSES = 200


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def accesses(dut):
    stage, choose = Stage(dut), rng()
    slow = choose.choice([1, 3_000, 90_000])
    await stage.start(command_valid=0, command_payload=0, reply_ready=0, bus_ack=0, bus_rdata=0)
    commands = [(choose.getrandbits(1), choose.getrandbits(13), choose.getrandbits(32)) for _ in range(ACCESSES)]
    seen, answers = [], []

    def bundle():
        return tuple(int(getattr(dut, f"bus_{name}").value) for name in ("write", "addr", "wdata"))

    async def board():
        while True:
            await RisingEdge(dut.bus_req)
            held = bundle()
            assert held == before["bundle"], "the bundle stands a clock before the request"
            await Timer(choose.randint(1, slow), "step")
            answers.append(choose.getrandbits(32))
            dut.bus_rdata.value = answers[-1]
            await Timer(1, "step")
            dut.bus_ack.value = 1
            while dut.bus_req.value:
                assert bundle() == held, "the bundle is held"
                await Edge(dut.bus_req)
            seen.append(held)
            await Timer(choose.randint(1, slow), "step")
            assert bundle() == held, "the bundle is held until the board lets go"
            dut.bus_rdata.value = choose.getrandbits(32)
            dut.bus_ack.value = 0
    before = {}
    cocotb.start_soon(board())
    came, at, offered = [], 0, False
    while len(came) < ACCESSES:
        offered = offered or (at < ACCESSES and choose.random() < 0.5)
        write, addr, wdata = commands[at] if offered else (choose.getrandbits(1), choose.getrandbits(13), 0)
        await stage.step(command_valid=int(offered), reply_ready=int(choose.random() < 0.4),
                         command_payload=pack(access_layout(), write=write, addr=addr, wdata=wdata))
        before["bundle"] = bundle()
        if stage.get("reply_valid") and stage.get("reply_ready"):
            came.append(stage.get("reply_payload"))
        if offered and stage.get("command_ready"):
            assert not dut.bus_ack.value, "the board has not let go yet"
            assert at == len(came), "a command is taken behind the reply to the one before"
            at, offered = at + 1, False
        await stage.clock()
    assert came == answers
    await Timer(2 * slow, "step")
    assert seen == commands


@functools.cache
def simulator():
    return component(Initiator())


@pytest.mark.parametrize("seed", seeds(6, fast=2))
def test_accesses(seed):
    run(simulator(), __name__, "accesses", seed)


def test_reset():
    same_as_fresh(Initiator)
