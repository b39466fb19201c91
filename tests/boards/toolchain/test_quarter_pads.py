"""The geared input of an ECP5 against the times of the pad's edges: each sample is the one that it is said to be."""

from pathlib import Path

import cocotb
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import RisingEdge, Timer
from hypermon.boards.clocks.ecp5_gear import EcpGear
from hypermon.boards.toolchain.quarter_pads import QuarterInput

from tests.hdl.benches.case import rng
from tests.hdl.harness.runner import component, run

CELLS = Path(__file__).with_name("ecp5_gear_cells.v")
#: Picoseconds of half the fast clock: a quarter of the slow one.
QUARTER = 1700


class Geared(wiring.Component):
    """Gear and two inputs, with a port that the simulation drives."""

    pad: In(2)
    fast: In(1)
    locked: In(1)
    clock: Out(1)
    ready: Out(1)
    level: Out(2)
    early: Out(6)

    def elaborate(self, platform):
        m = Module()
        m.domains.slow = slow = ClockDomain(local=True, reset_less=True)
        m.submodules.gear = gear = EcpGear(147_000_000)
        m.d.comb += [
            gear.fast.eq(self.fast), gear.locked.eq(self.locked), gear.oscillator.eq(ClockSignal()),
            slow.clk.eq(gear.clock), self.clock.eq(gear.clock), self.ready.eq(gear.ready)]
        for n in range(2):
            port = io.SimulationPort("i", 1)
            m.d.comb += port.i.eq(self.pad[n])
            m.submodules[f"input{n}"] = DomainRenamer("slow")(one := QuarterInput(port))
            m.d.comb += [one.edge.eq(gear.edge), one.reset.eq(gear.reset), self.level[n].eq(one.level),
                         self.early[3 * n:3 * n + 3].eq(one.early)]
        return m


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def samples(dut):
    choose = rng()
    now = 0                     # quarters since the first edge of the fast clock
    pads = []                   # of each quarter: the level at its end, when the fast clock changes
    seen = []
    ends = False

    async def oscillator():
        while not ends:
            for level in (0, 1):
                dut.clk.value = level
                await Timer(20_000, "ps")

    async def clocks():
        """The fast clock changes every quarter; the pads somewhere in between."""
        nonlocal now
        while not ends:
            at = choose.randrange(1, QUARTER)
            await Timer(at, "ps")
            if choose.random() < 0.4:
                dut.pad.value = choose.getrandbits(2)
            await Timer(QUARTER - at, "ps")
            pads.append(int(dut.pad.value))
            now += 1
            dut.fast.value = now & 1

    dut.pad.value = dut.fast.value = dut.locked.value = dut.rst.value = 0
    cocotb.start_soon(oscillator())
    cocotb.start_soon(clocks())
    await Timer(200, "ns")
    assert not dut.ready.value
    dut.locked.value = 1
    while not dut.ready.value:
        await Timer(40, "ns")
    for _ in range(8):
        await RisingEdge(dut.clock)
    for _ in range(400):
        await RisingEdge(dut.clock)
        edge = now              # this clock edge
        await Timer(QUARTER // 2, "ps")
        level, early = int(dut.level.value), int(dut.early.value)
        seen.append((edge, [[early >> 3 * n + k & 1 for k in range(3)] + [level >> n & 1] for n in range(2)]))
    ends = True
    assert len({edge % 4 for edge, _ in seen}) == 1
    for edge, of in seen:
        # The clock edge before, and the three quarters before that.
        wanted = [[pads[edge - 4 - k - 1] >> n & 1 for k in (3, 2, 1, 0)] for n in range(2)]
        assert of == wanted, f"at quarter {edge}"


def test_samples():
    run(component(Geared(), None, CELLS), __name__, "samples", 1)
