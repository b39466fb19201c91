"""Whole-board bench: ports at their documented limits, an LPC bus among them."""

import cocotb
from hypermon.hdl.layout import Window
from hypermon.sim.port_models import STROBE, Change, Port, Program

from ..verdict import verify
from .bench import Bench, Stimulus
from .case import CASE, rng

#: Phases of an LPC clock of 33 MHz and a little more, in ps, and when its data change after the
#: rising edge.
LPC_PHASES = 12_000, 16_000
LPC_VALID = 2_000, 11_000


async def exact(bench: Bench, stimulus: Stimulus, window: Window) -> None:
    """Play it; every nibble that the nodes meant has to come back."""
    await bench.start([p.initial for p in stimulus.programs])
    run = await bench.run(stimulus, window, flush=20)
    for node in range(bench.nodes):
        assert [nibble for _, nibble in run.delivered(node)] == stimulus.meant(node), f"node {node}"
    verify(run, stimulus.offered(), bench.geometry.window_clocks(window))
    cocotb.log.info("%d nibbles, %d frames", sum(len(p.nibbles) for p in stimulus.programs), len(run.frames))


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def tight(dut):
    """Every change as early as the documented limit allows, and skew of up to half a clock."""
    bench = Bench(dut)
    await exact(bench, bench.random_stimulus(Window.CLOCK, CASE["count"], tight=True), Window.CLOCK)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def lpc(dut):
    """Nibbles of an LPC bus, clocked with phases of 12 and 16 ns, each bit with its own delay."""
    bench = Bench(dut)
    assert bench.period == 10_000
    choose = rng("lpc")
    programs = []
    for _ in range(bench.nodes):
        time = choose.randint(20_000, 60_000)
        nibble = choose.getrandbits(4)
        program = Program(nibble, [], [])
        for _ in range(CASE["count"]):
            program.changes.append((time, STROBE, STROBE))
            program.nibbles.append(nibble)
            nibble = choose.getrandbits(4)
            bits: list[Change] = [(time + choose.randint(*LPC_VALID), 1 << b, nibble & 1 << b) for b in range(4)]
            program.changes += bits
            time += choose.choice(LPC_PHASES)
            program.changes.append((time, STROBE, 0))
            time += choose.choice(LPC_PHASES)
        program.changes.sort(key=lambda change: change[0])
        programs.append(program)
    ports = [Port() for _ in range(bench.nodes)]
    await exact(bench, Stimulus(rng("settle"), bench.board, ports, programs), Window.CLOCK)
