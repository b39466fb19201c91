"""Whole-board bench: ports at their documented limits, an LPC bus among them."""

import cocotb
from hypermon.hdl.layout import Window
from hypermon.sim.bench.port_models import STROBE, Board, Change, Port, Program, program

from ..harness.verdict import verify
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


#: Every way in which a port can be read.
WAYS = [(rising, falling, after) for rising, falling in ((True, False), (False, True), (True, True))
        for after in (False, True)]
#: How much faster than it may a port is that must be read wrong, in ps: such that it meets the board's clock in
#: many phases.
TOO_FAST = 537


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def ways(dut):
    """Each way to read a port, at its limit or a little beyond it: there it is read wrong, so this is the limit."""
    bench = Bench(dut)
    choose = rng("ways")
    ports = [Port(*WAYS[n % len(WAYS)], skew=bench.period // 2 if CASE["kept"] else 0) for n in range(bench.nodes)]
    meant = bench.board if CASE["kept"] else Board(bench.period - TOO_FAST, bench.board.aperture)
    programs = [program(choose, meant, port, None, [0] * CASE["count"], initial=choose.getrandbits(5),
                        start=choose.randint(0, 4 * bench.period)) for port in ports]
    stimulus = Stimulus(rng("settle"), bench.board, ports, programs)
    if CASE["kept"]:
        await exact(bench, stimulus, Window.CLOCK)
        return
    await bench.start([p.initial for p in programs])
    run = await bench.run(stimulus, Window.CLOCK, flush=20)
    wrong = {n % len(WAYS) for n in range(bench.nodes)
             if [nibble for _, nibble in run.delivered(n)] != stimulus.meant(n)}
    assert len(wrong) == len(WAYS), "some way has room to spare"


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def stores(dut):
    """One store a nibble: data and strobe change together, each bit with a delay of its own, and both edges are
    active. Bits may come up to a clock less the aperture apart; a store may follow when the nibble before has been
    held for two clocks and the aperture behind its strobe."""
    bench = Bench(dut)
    choose = rng("stores")
    skew = bench.period - bench.board.aperture + (0 if CASE["kept"] else TOO_FAST)
    spacing = 2 * bench.period + bench.board.aperture + skew
    programs = []
    for _ in range(bench.nodes):
        time, level = choose.randint(0, 60_000), 0
        written = Program(0, [], [])
        for _ in range(CASE["count"]):
            nibble, level = choose.getrandbits(4), level ^ STROBE
            late = [choose.choice([0, skew, choose.randint(0, skew)]) for _ in range(5)]
            written.changes += [(time + late[b], 1 << b, (level | nibble) & 1 << b) for b in range(5)]
            written.nibbles.append(nibble)
            time += spacing + choose.choice([0, 0, choose.randint(0, bench.period)])
        written.changes.sort(key=lambda change: change[0])
        programs.append(written)
    ports = [Port(True, True, True, skew) for _ in range(bench.nodes)]
    stimulus = Stimulus(rng("settle"), bench.board, ports, programs)
    if CASE["kept"]:
        await exact(bench, stimulus, Window.CLOCK)
        return
    await bench.start([0] * bench.nodes)
    run = await bench.run(stimulus, Window.CLOCK, flush=20)
    assert any([nibble for _, nibble in run.delivered(n)] != stimulus.meant(n) for n in range(bench.nodes))


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
