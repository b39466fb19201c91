"""The PCIe link at the block of UltraScale+ devices, judged by cocotbext-pcie's model of that block and of a host."""

import functools
import inspect
import itertools
import re
from pathlib import Path

import cocotb
import pytest
from amaranth.lib.wiring import Out
from cocotb.triggers import FallingEdge, Timer, with_timeout
from hypermon.hdl.layout import PCIE_MAGIC
from hypermon.hdl.transport.pcie.tlp import Kind
from hypermon.hdl.transport.pcie.ultrascale_plus import ULTRASCALE_PLUS_PORTS, UltrascalePlus

from ...benches.case import CASE, rng
from ...harness import stage
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds
from .machine import Board, Machine, feed


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def registers(dut):
    machine = await Machine(dut).up()
    assert await machine.read("PCIE_ID") == PCIE_MAGIC
    await machine.write(0x68, 0xdeadbeef)
    assert await machine.read(0x68) == 0xdeadbeef
    word = bytearray(0xdeadbeef.to_bytes(4, "little"))
    for at, length in [(a, n) for a in range(4) for n in range(1, 5 - a)]:
        new = bytes(0x10 * at + length + k for k in range(length))
        await machine.bar.write(0x68 + at, new)
        word[at:at + length] = new
        assert await machine.read(0x68) == int.from_bytes(word, "little")
        assert await machine.bar.read(0x68 + at, length, timeout=5000) == new
    # A read of many words is refused and does not hang; what follows is as before.
    with pytest.raises(Exception, match=r"(?i)unsuccess|UR"):
        await machine.bar.read(0, 16, timeout=5000)
    assert await machine.read("PCIE_DROPPED") == 1 << 16
    await machine.bar.write(0x68, bytes(range(16)))
    assert await machine.read(0x68) == int.from_bytes(word, "little")
    assert await machine.read("PCIE_DROPPED") == 1 << 16 | 1


async def _stop(machine, kind):
    """Stops the ring in the middle of the stream, and takes what was reported. The number of bytes that are in doubt:
    none, unless the host did not permit the last writes."""
    if kind == "master":
        await machine.found.clear_master()
        await Timer(3, "us")
        await machine.found.set_master()
    else:
        await machine.write("PCIE_CONTROL", 0)
    while await machine.read("PCIE_STATUS") & 1:
        pass
    assert not await machine.read("PCIE_CONTROL")
    written = await machine.read("PCIE_HEAD")
    while machine.drain() != written and kind != "master":
        await Timer(100, "ns")
    return written - machine.tail


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ring(dut):
    """The stream arrives in the host's memory, whoever stalls; with ``faults``, through a ring that is stopped.
    If the bus master is off, at most the bytes are missing that are known to be in doubt."""
    choose = rng()
    machine = await Machine(dut, CASE["mps"]).up()
    if CASE["stalls"]:
        for side in (machine.device.rq_sink, machine.device.cc_sink, machine.device.cq_source):
            side.set_pause_generator(itertools.cycle([choose.random() < 0.4 for _ in range(101)]))
    beats = [choose.randbytes(16) for _ in range(CASE["beats"])]
    feeding = cocotb.start_soon(feed(dut, choose, beats, choose.choice([0.5, 1])))
    await machine.start_ring(CASE["pages"])
    interrupts, total, whole, event = 0, bytearray(), 16 * len(beats), machine.found.msi_vectors[0].event
    doubtful = []
    kinds = ["master", "stop"] * CASE["faults"]
    faults = len(kinds)
    while len(total) + len(machine.got) < whole:
        event.clear()
        await machine.write("PCIE_ARM", machine.tail)
        await with_timeout(event.wait(), 100_000, "ns")
        interrupts += 1
        machine.drain()
        await machine.write("PCIE_TAIL", machine.tail)
        if not kinds or len(total) + len(machine.got) < whole * (faults + 1 - len(kinds)) // (faults + 2):
            continue
        doubt = await _stop(machine, kinds.pop())
        total += machine.got
        doubtful += range(len(total), len(total) + doubt)
        total += b"".join(beats)[len(total):len(total) + doubt]
        await machine.start_ring(CASE["pages"])
    total += machine.got
    await feeding
    assert not kinds
    assert total == b"".join(beats)
    assert faults or not doubtful
    dut._log.warning("%d bytes, %d of them in doubt, %d interrupts", len(total), len(doubtful), interrupts)
    assert await machine.read("PCIE_TIMEOUTS") == 0
    assert await machine.read("PCIE_STATUS") & 0b11000 == 0, "nothing was refused"


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def latency(dut):
    """Clocks from a read at the adapter to its completion, beside writes at the full rate of the board's stream."""
    choose = rng()
    machine = await Machine(dut, 1).up()
    await machine.start_ring(10)
    cocotb.start_soon(feed(dut, choose, [bytes(16)] * 1_000_000, 1))
    times = []

    async def watch():
        begun = None
        clock = 0
        while True:
            await FallingEdge(dut.link_clk)
            clock += 1
            if dut.m_axis_cq_tvalid.value and dut.m_axis_cq_tready.value and dut.m_axis_cq_tlast.value:
                begun = clock
            if dut.s_axis_cc_tvalid.value and dut.s_axis_cc_tready.value:
                times.append(clock - begun)
    cocotb.start_soon(watch())
    for _ in range(60):
        await machine.read(0x68)
        await Timer(choose.randrange(1, 200) * 100, "step")
    dut._log.warning("BAR read to completion: %d to %d clocks", min(times), max(times))
    assert len(times) == 60
    assert max(times) <= 40, max(times)


@functools.cache
def simulator():
    return component(Board(), "pcie_us", domains=("sync", "link"))


def test_registers():
    run(simulator(), __name__, "registers", 0)


@pytest.mark.parametrize(("mps", "pages"), [(0, 0), (1, 1), (2, 10)])
def test_ring(mps, pages):
    run(simulator(), __name__, "ring", mps, mps=mps, pages=pages, stalls=False, faults=0, beats=3000)


@pytest.mark.parametrize("seed", seeds(8, fast=2))
def test_faults(seed):
    run(simulator(), __name__, "ring", seed, mps=seed % 3, pages=seed % 2, stalls=True, faults=2, beats=3000)


def test_latency():
    run(simulator(), __name__, "latency", 0)


#: Types of requests in the block's descriptors (PG213, table 56), and whether they carry data; what they are at BAR0.
REQUESTS = [
    (0b0000, 0, Kind.READ), (0b0001, 1, Kind.WRITE), (0b0010, 0, Kind.NONPOSTED), (0b0011, 1, Kind.NONPOSTED),
    (0b0100, 1, Kind.NONPOSTED), (0b0101, 1, Kind.NONPOSTED), (0b0110, 1, Kind.NONPOSTED), (0b0111, 0, Kind.LOCKED),
    (0b1100, 0, Kind.POSTED), (0b1101, 1, Kind.POSTED), (0b1110, 1, Kind.POSTED),
]


def test_kinds_of_requests():
    """A completion is due exactly for those that are not posted; an access to another BAR is none to the board."""
    dut = UltrascalePlus()

    async def bench(ctx):
        ctx.set(dut.request.ready, 1)
        for (number, carries, kind), bar in itertools.product(REQUESTS, (0, 1, 6)):
            found = []
            for beat in (bar << 112 | number << 75 | 1 << 64 | 0x40, *([0x1234] if carries else []), None, None):
                ctx.set(dut.m_axis_cq_tvalid, beat is not None)
                ctx.set(dut.m_axis_cq_tdata, beat or 0)
                ctx.set(dut.m_axis_cq_tlast, beat == 0x1234 or not carries)
                ctx.set(dut.m_axis_cq_tkeep, 1 if beat == 0x1234 else 0xf)
                if ctx.get(dut.request.valid):
                    found.append(ctx.get(dut.request.p.kind))
                await ctx.tick()
            if bar and kind is Kind.READ:
                kind = Kind.NONPOSTED
            elif bar and kind is Kind.WRITE:
                kind = Kind.POSTED
            assert found == [kind], (number, bar)
    stage.run(dut, bench)


def test_every_input_of_the_block_is_driven_or_tied():
    """The inputs are those of cocotbext-pcie's model: the signals to which it gives no value at its start."""
    from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice

    source = inspect.getsource(UltraScalePlusPcieDevice)
    inputs = set(re.findall(r"self\.((?:pcie|cfg)_\w+) = init_signal\(\w+, \d+\)", source))
    # The model neither drives nor reads these outputs of the block.
    inputs -= {"cfg_flr_in_process", "cfg_vf_flr_in_process", "cfg_interrupt_msix_mask", "cfg_interrupt_msix_vf_mask",
               "cfg_interrupt_msix_vec_pending_status"}
    driven = {name for name, member in ULTRASCALE_PLUS_PORTS.items() if member.flow is Out}
    page = (Path(__file__).parents[4] / "docs" / "pcie.md").read_text()
    table = page.partition("| inputs of the block (PG213) |")[2].partition("\n\n")[0]
    tied = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert {"pcie_cq_np_req", "cfg_config_space_enable", "cfg_link_training_enable",
            "cfg_power_state_change_ack"} <= driven
    assert inputs - driven == tied


def test_reset():
    """In each state of each of its machines."""
    means = {name: f"{name.rsplit('_t', 1)[0]}_tvalid" for name in ULTRASCALE_PLUS_PORTS
             if name.startswith("s_axis") and "_t" in name and not name.endswith(("valid", "ready"))}
    rare = {name: lambda rng: rng.random() < 0.01 for name in ("user_reset", "user_reset_out")}
    same_as_fresh(UltrascalePlus, rare, episodes=8, before=40, after=40, meaning=means)
