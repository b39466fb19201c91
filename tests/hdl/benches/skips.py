"""Whole-board bench: idle time is skipped as a simulation may, over several wraps of the 32-bit stamp."""

from itertools import pairwise

import cocotb
from cocotb.triggers import FallingEdge
from hypermon.hdl.layout import CensusFlag, Control, Window
from hypermon.sim.bench.cocotb_models import now_ps
from hypermon.sim.bench.port_models import NodeClock, program

from ..harness.scoreboard import Item
from ..harness.verdict import verify
from .bench import Bench, Stimulus, random_port
from .case import CASE, rng

#: What a skip has to leave: windows before the horizon, clocks before and after a strobe edge or a skip.
MARGIN, CALM = 8, 16
#: Clocks by which a heartbeat may be late: its block, and what stands before it in the stream.
LATE = 4000


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def silence(dut):
    """Seconds and minutes without a strobe: exact 64-bit stamps, and a heartbeat every second."""
    bench = Bench(dut)
    choose = rng("skips")
    window = Window(CASE["window"])
    clocks = bench.geometry.window_clocks(window)
    second = bench.geometry.clock_hz // clocks
    levels = [choose.getrandbits(5) for _ in range(bench.nodes)]
    ports = [random_port(choose, bench.period // 2) for _ in range(bench.nodes)]
    await bench.start(levels)
    await bench.configure(ports, flush=second // 1000)
    await bench.control(Control.RESET, window)
    zero = cocotb.start_soon(bench.time_zero())
    await bench.control(Control.ENABLE | Control.STREAM, window)
    await zero
    offered: dict[int, list[Item]] = {n: [] for n in range(bench.nodes)}
    moved = skips = 0
    for part in range(CASE["parts"]):
        draw = rng(f"part {part}")
        stimulus = Stimulus(draw, bench.board, ports, [
            program(draw, bench.board, port, NodeClock(draw, 20_000),
                    [draw.randint(0, 50_000) for _ in range(draw.randint(0, 4))],
                    initial=levels[n], start=draw.randint(CALM * bench.period, 40 * bench.period))
            for n, port in enumerate(ports)])
        await FallingEdge(dut.clk)
        origin = now_ps() + bench.period // 2
        base = (origin - bench.zero) // bench.period + moved * clocks
        await bench.pads.play(stimulus.writes, origin)
        for n, found in stimulus.offered().items():
            offered[n] += [Item(i.edge + base, i.nibble) for i in found]
            levels[n] = stimulus.levels[n].values[-1]
        await bench.clocks(CALM)
        left = int(second * 10 ** choose.uniform(-4, 1.3))
        while left > 0:
            await FallingEdge(dut.clk)
            # A beat that waits for the host would wait out the whole skip, and a heartbeat after it.
            if not dut.quiet.value or dut.stream_valid.value:
                continue
            step = min(left, int(dut.horizon.value) - MARGIN, 2**31 - 1)
            if step <= 0:
                await bench.clocks(clocks)
                left -= 1
                continue
            dut.advance.value = step
            await FallingEdge(dut.clk)
            dut.advance.value = 0
            moved, left, skips = moved + step, left - step, skips + 1
            await bench.clocks(CALM)  # `horizon` takes a few clocks to follow
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    cocotb.log.info("%d skips over %.1f s, %d frames, %d censuses, upper halves %s", skips, moved / second,
                    len(run.frames), len(run.censuses), sorted({f.stamp >> 32 for f in run.frames}))
    verify(run, offered, clocks)
    for one, two in pairwise(run.censuses):
        apart = two.time - one.time
        assert apart <= second + LATE // clocks + 1, f"no heartbeat for {apart / second} s"
        assert two.flags & CensusFlag.STOP or apart >= second // 10, f"a heartbeat after {apart / second} s"
    # Frames leave within a millisecond, so the census of a change is complete after a hundred.
    for one, two in pairwise(run.censuses):
        unchanged = one.nodes == two.nodes and not two.flags & CensusFlag.STOP
        assert not unchanged or two.time - one.time >= second, "two equal censuses within a second"
