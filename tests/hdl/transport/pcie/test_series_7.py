"""The PCIe link at the block of 7-series devices: an own model of the block, at TLPs and a host of cocotbext-pcie."""

import functools
from types import SimpleNamespace

import cocotb
import pytest
from cocotb.triggers import FallingEdge, Timer, with_timeout
from cocotb.utils import get_sim_time
from hypermon.hdl.layout import PCIE_MAGIC, PCIE_REGISTERS
from hypermon.hdl.transport.pcie.series_7 import SERIES_7_PORTS, Series7
from hypermon.hdl.transport.pcie.tlp import Kind

from ...benches.case import CASE, met, rng
from ...harness import stage
from ...harness.resets import same_as_fresh
from ...harness.runner import component, run, seeds
from .machine import Board, feed

#: The ring is above 4 GiB, or below.
HIGH = 1 << 36


def _machine(dut, **settings):
    from .series_7_model import Machine7
    return Machine7(dut, rng("block"), **settings)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def registers(dut):
    machine = await _machine(dut, stalls=CASE["stalls"]).up()
    assert await machine.read("PCIE_ID") == PCIE_MAGIC
    await machine.write(0x68, 0xdeadbeef)
    word = bytearray(0xdeadbeef.to_bytes(4, "little"))
    for at, length in [(a, n) for a in range(4) for n in range(1, 5 - a)]:
        new = bytes(0x10 * at + length + k for k in range(length))
        await machine.bar.write(0x68 + at, new)
        word[at:at + length] = new
        assert await machine.read(0x68) == int.from_bytes(word, "little")
        assert await machine.bar.read(0x68 + at, length, timeout=9000) == new
    for count, length in enumerate((8, 12, 64), 1):
        with pytest.raises(Exception, match=r"(?i)unsuccess|UR"):
            await machine.bar.read(0, length, timeout=9000)
        await machine.bar.write(0x68, bytes(length))
        assert await machine.read("PCIE_DROPPED") == count << 16 | count
    machine.device.poison = True
    await machine.write(0x68, 0)
    await Timer(2, "us")
    machine.device.poison = False
    assert await machine.read(0x68) == int.from_bytes(word, "little")
    assert await machine.read("PCIE_DROPPED") == 3 << 16 | 4


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ring(dut):
    """The stream arrives through stalls of both streams and few transmit buffers, whatever stops the ring; interrupts
    come. Bytes in doubt are those that the gateware says."""
    choose = rng()
    machine = await _machine(dut, mps=CASE["mps"], stalls=CASE["stalls"]).up()
    beats = [choose.randbytes(16) for _ in range(CASE["beats"])]
    feeding = cocotb.start_soon(feed(dut, choose, beats, choose.choice([0.3, 1])))
    base = HIGH if CASE["high"] else None
    await machine.start_ring(CASE["pages"], base=base)
    kinds, total, whole, counts = list(CASE["faults"]), bytearray(), 16 * len(beats), {"interrupts": 0, "doubt": 1}
    step, cut = whole // (len(kinds) + 1), 0
    event = machine.found.msi_vectors[0].event
    while len(total) + len(machine.got) < whole:
        event.clear()
        await machine.write("PCIE_ARM", machine.tail)
        await with_timeout(event.wait(), 200_000, "ns")
        counts["interrupts"] += 1
        machine.drain()
        await machine.write("PCIE_TAIL", machine.tail)
        assert await machine.read("PCIE_HEAD") >= machine.tail
        if kinds and len(total) + len(machine.got) >= step * (len(CASE["faults"]) + 1 - len(kinds)):
            await _stop(machine, kinds.pop())
            before, cut = cut, 16 * await machine.read("PCIE_CUT")
            doubt = await machine.stopped() + cut - before
            total += machine.got
            assert total == b"".join(beats)[:len(total)]
            total += b"".join(beats)[len(total):len(total) + doubt]
            base = base + (1 << 24) if base else None
            await machine.start_ring(CASE["pages"], base=base)
    total += machine.got
    await feeding
    assert not kinds
    assert total == b"".join(beats)
    assert await machine.read("PCIE_STATUS") & 0b11000 == 0
    met(counts)


async def _stop(machine, kind):
    dut = machine.dut
    for _ in range(400):
        if machine.begun >= 3:
            break
        await FallingEdge(dut.link_clk)
    if kind == "master":
        await machine.found.clear_master()
        await Timer(5, "us")
        await machine.found.set_master()
    elif kind == "power":
        dut.cfg_pmcsr_powerstate.value = 3
        await Timer(5, "us")
        dut.cfg_pmcsr_powerstate.value = 0
    elif kind == "reset":
        await machine.hot_reset()
    else:
        dut.cfg_to_turnoff.value = 1
        await Timer(2, "step")
        assert not dut.cfg_turnoff_ok.value, "writes may still follow"
        await Timer(10, "us")
        assert dut.cfg_turnoff_ok.value
        dut.cfg_to_turnoff.value = 0
    await Timer(1, "us")


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def flr(dut):
    """A function-level reset while the ring is full: nothing of the former owner is left, and the next one gets only
    what the board delivers from then on. One clock of the signal is enough."""
    choose = rng()
    machine = await _machine(dut).up()
    for clocks in (1, 999):
        await machine.start_ring(0, base=HIGH + (clocks << 20))
        feeding = cocotb.start_soon(feed(dut, choose, [choose.randbytes(16) for _ in range(1000)], 1))
        await machine.full()
        discarded = await machine.read("PCIE_DISCARDED")
        await FallingEdge(dut.link_clk)
        dut.cfg_received_func_lvl_rst.value = 1
        for clock in range(1, 1001):
            await FallingEdge(dut.link_clk)
            if clock == clocks:
                dut.cfg_received_func_lvl_rst.value = 0
            if dut.reset.value:
                feeding.cancel()
                dut.stream_valid.value = 0
        kept = {"PCIE_ID": PCIE_MAGIC, "PCIE_STATUS": 0b100, "PCIE_FLUSH": 2500}
        for name in PCIE_REGISTERS:
            if name != "PCIE_DISCARDED":
                assert await machine.read(name) == kept.get(name, 0), name
        assert await machine.read("PCIE_DISCARDED") >= discarded + 64, "the ring's own memory was full"
        beats = [choose.randbytes(16) for _ in range(300)]
        await machine.start_ring(0, base=HIGH + (1 << 30) + (clocks << 20))
        feeding = cocotb.start_soon(feed(dut, choose, beats, 1))
        await machine.collect(16 * len(beats))
        assert machine.got == b"".join(beats)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def rate(dut):
    """Megabytes a second into the host's memory over one lane of the first generation."""
    choose = SimpleNamespace(random=lambda: 0.5)
    machine = await _machine(dut, mps=CASE["mps"]).up()
    await machine.start_ring(6, base=HIGH if CASE["high"] else None)
    beats = [k.to_bytes(16, "little") for k in range(30_000)]
    cocotb.start_soon(feed(dut, choose, beats, 1))
    await machine.collect(30_000, every=5000)
    begun, before = get_sim_time("ns"), len(machine.got)
    await machine.collect(16 * len(beats) - 20_000, most=4000, every=5000)
    share = 1000 * (len(machine.got) - before) / (get_sim_time("ns") - begun)
    dut._log.warning("%.1f MB/s at MPS %d", share, 128 << CASE["mps"])
    assert share >= CASE["least"], share
    assert machine.got == b"".join(beats)[:len(machine.got)]
    assert max(length for _, length in machine.writes) == 128 << CASE["mps"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def offered(dut):
    """A completion does not replace the header of a write that the block has not taken; see the model."""
    machine = await _machine(dut).up()
    for base in (None, HIGH):
        machine.device.stall_tx = True
        starts = cocotb.start_soon(machine.start_ring(2, base=base))
        cocotb.start_soon(feed(dut, rng(), [bytes(16)] * 40, 1))
        while not dut.s_axis_tx_tvalid.value:
            await FallingEdge(dut.link_clk)
        reads = cocotb.start_soon(machine.read("PCIE_ID"))
        await Timer(3, "us")
        machine.device.stall_tx = False
        assert await reads == PCIE_MAGIC
        await starts
        await machine.collect(640)
        await machine.write("PCIE_CONTROL", 0)
        assert await machine.stopped() == 0


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def latency(dut):
    """Clocks from a read at the adapter to the end of its completion there, beside writes that fill the link."""
    choose = rng()
    machine = await _machine(dut, mps=0).up()
    await machine.start_ring(10, base=HIGH)
    cocotb.start_soon(feed(dut, choose, [bytes(16)] * 1_000_000, 1))
    times = []

    async def watch():
        clock = begun = 0
        kind = None              # of the TLP that the adapter is sending
        while True:
            await FallingEdge(dut.link_clk)
            await Timer(2, "step")
            clock += 1
            if dut.m_axis_rx_tvalid.value and dut.m_axis_rx_tready.value and dut.m_axis_rx_tlast.value:
                begun = clock
            if dut.s_axis_tx_tvalid.value and dut.s_axis_tx_tready.value:
                kind = int(dut.s_axis_tx_tdata.value) >> 24 & 31 if kind is None else kind
                if dut.s_axis_tx_tlast.value:
                    if kind == 10:
                        times.append(clock - begun)
                    kind = None
    cocotb.start_soon(watch())
    for _ in range(40):
        await machine.read(0x68)
        await Timer(choose.randrange(1, 500) * 100, "step")
    assert len(times) == 40
    assert max(times) <= 40, (min(times), max(times))


@functools.cache
def simulator():
    return component(Board(Series7, SERIES_7_PORTS), "pcie_s7", domains=("sync", "link"))


@pytest.mark.parametrize("stalls", [0, 0.4])
def test_registers(stalls):
    run(simulator(), __name__, "registers", 0, stalls=stalls)


@pytest.mark.parametrize("seed", seeds(8, fast=2))
def test_ring(seed):
    run(simulator(), __name__, "ring", seed, mps=seed % 3, pages=seed % 4, stalls=0.4 * (seed % 2), high=seed % 2,
        beats=3000, faults=[])


@pytest.mark.parametrize("kind", ["master", "power", "off", "reset"])
def test_stops(kind):
    run(simulator(), __name__, "ring", 0, mps=0, pages=2, stalls=0.3, high=1, beats=2000, faults=[kind] * 3)


def test_flr():
    run(simulator(), __name__, "flr", 0)


def test_offered():
    run(simulator(), __name__, "offered", 0)


def test_latency():
    run(simulator(), __name__, "latency", 0)


@pytest.mark.parametrize(("mps", "high", "least"), [(0, 0, 200), (0, 1, 200), (1, 1, 220)])
def test_rate(mps, high, least):
    run(simulator(), __name__, "rate", 0, mps=mps, high=high, least=least)


def _adapter(bench):
    dut = Series7()

    async def main(ctx):
        ctx.set(dut.user_lnk_up, 1)
        ctx.set(dut.request.ready, 1)
        await bench(ctx, dut)
    stage.run(dut, main)


def _header(*, ep=0, attr=0, kind=0b10 << 5):
    """The first two dwords of a request of one dword: a write, or of another format and type."""
    return kind << 24 | 1 | ep << 14 | (attr & 3) << 12 | (attr >> 2) << 18, 15


#: Format and type of requests (PCI Express Base Specification 3.0, table 2-3): what they are at BAR0, and elsewhere.
REQUESTS = {
    0b000_00000: (Kind.READ, Kind.NONPOSTED), 0b001_00000: (Kind.READ, Kind.NONPOSTED),
    0b010_00000: (Kind.WRITE, Kind.POSTED), 0b011_00000: (Kind.WRITE, Kind.POSTED),
    **dict.fromkeys((0b000_00001, 0b001_00001), (Kind.LOCKED,) * 2),                       # locked reads
    **dict.fromkeys((0b000_00010, 0b010_00010), (Kind.NONPOSTED,) * 2),                    # I/O
    **dict.fromkeys((0b010_01100, 0b011_01101, 0b010_01110), (Kind.NONPOSTED,) * 2),       # FetchAdd, Swap, CAS
    **dict.fromkeys((0b001_10000, 0b001_10100, 0b011_10010), (Kind.POSTED,) * 2),          # messages
    **dict.fromkeys((0b000_01010, 0b010_01010, 0b000_01011), (Kind.POSTED,) * 2),          # completions: none is owed
}


@pytest.mark.parametrize("ours", [True, False])
def test_kinds_of_requests(ours):
    """A completion is due exactly for those that are not posted; an access to another BAR is none to the board."""
    async def bench(ctx, dut):
        for kind, (here, elsewhere) in REQUESTS.items():
            low, high = _header(kind=kind)
            long, carries = kind >> 5 & 1, kind >> 6 & 1
            words = [high << 32 | low, 0x40 << (32 * long) | (0x1234 << 32 if carries and not long else 0)]
            words += [0x1234] if carries and long else []
            found = []
            for at, word in enumerate([*words, None, None]):
                ctx.set(dut.m_axis_rx_tvalid, word is not None)
                ctx.set(dut.m_axis_rx_tdata, word or 0)
                ctx.set(dut.m_axis_rx_tlast, at == len(words) - 1)
                ctx.set(dut.m_axis_rx_tkeep, 0xff)
                ctx.set(dut.m_axis_rx_tuser, 4 * ours)
                if ctx.get(dut.request.valid):
                    found.append(ctx.get(dut.request.p.kind))
                await ctx.tick()
            assert found == [here if ours else elsewhere], f"{kind:08b}"
    _adapter(bench)


def test_poisoned_by_its_header_or_by_the_block():
    """Bit EP of the header and the block's own mark each make a write bad."""
    async def bench(ctx, dut):
        for ep, marked in ((0, 0), (1, 0), (0, 1), (1, 1), (0, 0)):
            low, high = _header(ep=ep)
            found = []
            for word in (high << 32 | low, 0x1234 << 32 | 0x40, None, None):
                ctx.set(dut.m_axis_rx_tvalid, word is not None)
                ctx.set(dut.m_axis_rx_tdata, word or 0)
                ctx.set(dut.m_axis_rx_tlast, word is not None and word >> 32 == 0x1234)
                ctx.set(dut.m_axis_rx_tkeep, 0xff)
                ctx.set(dut.m_axis_rx_tuser, 4 | marked << 1)
                if ctx.get(dut.request.valid):
                    found.append((ctx.get(dut.request.p.kind), ctx.get(dut.request.p.bad)))
                await ctx.tick()
            assert found == [(Kind.WRITE, int(ep or marked))]
    _adapter(bench)


def test_attributes():
    """The three bits of a request come with it, and a completion has those of its request."""
    async def bench(ctx, dut):
        for attr in range(8):
            low, high = _header(attr=attr)
            ctx.set(dut.m_axis_rx_tdata, high << 32 | low)
            ctx.set(dut.m_axis_rx_tvalid, 1)
            ctx.set(dut.m_axis_rx_tkeep, 0xff)
            await ctx.tick()
            ctx.set(dut.m_axis_rx_tlast, 1)
            await ctx.tick()
            ctx.set(dut.m_axis_rx_tvalid, 0)
            ctx.set(dut.m_axis_rx_tlast, 0)
            assert ctx.get(dut.request.valid)
            assert ctx.get(dut.request.p.attr) == attr
            ctx.set(dut.completion.p.attr, attr)
            ctx.set(dut.completion.valid, 1)
            assert ctx.get(dut.s_axis_tx_tvalid)
            assert ctx.get(dut.s_axis_tx_tdata) & (3 << 12 | 1 << 18) == low & (3 << 12 | 1 << 18)
            ctx.set(dut.completion.valid, 0)
            await ctx.tick()
    _adapter(bench)


def test_reset():
    """In each state of each of its machines."""
    means = {name: f"{name.rsplit('_t', 1)[0]}_tvalid" for name in SERIES_7_PORTS
             if name.startswith("s_axis") and "_t" in name and not name.endswith(("valid", "ready"))}
    rare = {name: lambda rng: rng.random() < 0.01 for name in ("user_reset", "user_reset_out")}
    same_as_fresh(Series7, rare, episodes=8, before=40, after=40, meaning=means)
