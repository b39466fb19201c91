"""Whole-board bench: every memory run over, one at a time; what is lost, what is said, what goes on after."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import cocotb
from cocotb.triggers import FallingEdge
from hypermon.hdl.layout import Cause, Control, Status, Window
from hypermon.sim.bench.cocotb_models import now_ps
from hypermon.sim.bench.port_models import Port, program

from ..harness.blocks import Run
from ..harness.scoreboard import Item
from ..harness.verdict import verify
from .bench import Bench, Stimulus
from .case import CASE, rng


def causes(run: Run) -> dict[int, Cause]:
    """Nodes that have lost something, and all causes that their records name."""
    return {n: reduce(or_, found) for n, found in run.causes.items() if found}


def lost(run: Run) -> int:
    return sum(r.lost for records in run.losses.values() for r in records)


def burst(bench: Bench, gaps: Mapping[int, Sequence[int]], stagger: int = 0) -> Stimulus:
    """Gaps (ps) beyond the shortest that a port allows, by node; each node begins ``stagger`` ps after
    the one before."""
    choose = rng("burst")
    ports = [Port() for _ in range(bench.nodes)]
    return Stimulus(rng("settle"), bench.board, ports, [
        program(choose, bench.board, port, None, gaps.get(n, ()), start=20 * bench.period + n * stagger)
        for n, port in enumerate(ports)])


async def enabled(bench: Bench, stimulus: Stimulus, window: Window, flags: Control) -> None:
    """Reset, then capture from time 0 until the stimulus has ended and settled."""
    await bench.configure(stimulus.ports, flush=5)
    await bench.control(Control.RESET, window)
    playing = bench.play(stimulus)
    await bench.control(flags | Control.ENABLE, window)
    await playing
    await bench.clocks(20)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def node_fifo(dut):
    """One node writes faster than a nibble a window; the others lose nothing."""
    bench = Bench(dut)
    choose = rng("overrun")
    window = Window.NS200
    span = bench.geometry.window_clocks(window) * bench.period
    depth = bench.geometry.node_depth
    fast = choose.randrange(bench.nodes)
    pause = 3 * depth * span
    tail = choose.randint(1, depth // 2)
    gaps: dict[int, list[int]] = {n: [choose.randint(span, 4 * span) for _ in range(depth)]
                                  for n in range(bench.nodes)}
    gaps[fast] = [*([0] * choose.randint(3 * depth, 5 * depth)), pause, *([0] * (tail - 1))]
    stimulus = burst(bench, gaps)
    await bench.start([p.initial for p in stimulus.programs])
    await enabled(bench, stimulus, window, Control.STREAM)
    assert await bench.read("STATUS") & ~Status.READY == Status.NODE_FULL
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    cocotb.log.info("%d lost in %d records", lost(run), len(run.losses[fast]))
    assert causes(run) == {fast: Cause.NODE_FIFO}
    assert all(len(run.losses[n]) == 0 for n in range(bench.nodes) if n != fast)
    told = [nibble for _, nibble in run.delivered(fast)]
    assert told[-tail:] == stimulus.meant(fast)[-tail:], "capture does not go on after the overrun"
    verify(run, stimulus.offered(), bench.geometry.window_clocks(window))
    await bench.control(Control.RESET | Control.STREAM, window)
    assert await bench.read("STATUS") == 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def frame_fifo(dut):
    """The link stalls until everything is full, frames first; then it goes on, and so does capture."""
    bench = Bench(dut)
    choose = rng("overrun")
    geometry = bench.geometry
    window = Window(CASE["window"])
    clocks = geometry.window_clocks(window)
    span = clocks * bench.period
    # More windows than the board can hold, no node faster than one nibble a window.
    held = geometry.frame_depth + geometry.vector_depth + 40
    each = choose.choice([1, bench.nodes])  # every node in every window, or in turns
    slowest = max(span, 3 * bench.period) * each
    pause = choose.randint(100, 200) * bench.period
    tail = [pause, *[slowest] * 3]
    gaps = {n: [*[slowest] * (2 * held // each), *tail] for n in range(bench.nodes)}
    stimulus = burst(bench, gaps, slowest // each if each > 1 else 0)
    await bench.start([p.initial for p in stimulus.programs])
    await bench.configure(stimulus.ports, flush=5)
    await bench.control(Control.RESET, window)
    bench.sink.paused = True
    playing = bench.play(stimulus)
    await bench.control(Control.STREAM | Control.ENABLE, window)
    await bench.clocks(held * clocks * choose.randint(120, 160) // 100)
    while not await bench.read("STATUS") & Status.FRAME_FULL:
        assert not playing.done(), "the frame FIFO never overran"
        await bench.clocks(50)
    level = await bench.read("LEVEL")
    assert level & 0xFFFF == geometry.frame_depth, f"refused for a frame FIFO of {level & 0xFFFF} frames"
    bench.sink.paused = False
    await playing
    await bench.clocks(20)
    assert await bench.read("STATUS") & ~Status.READY == Status.FRAME_FULL
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    cocotb.log.info("%d lost, %d frames", lost(run), len(run.frames))
    assert set(causes(run).values()) == {Cause.FRAME_FIFO}
    for node in range(bench.nodes):
        told = [nibble for _, nibble in run.delivered(node)]
        assert told[-2:] == stimulus.meant(node)[-2:], "capture does not go on after the overrun"
    verify(run, stimulus.offered(), clocks, grown=True)


async def advance(bench: Bench, windows: int) -> None:
    """Move the time base on."""
    dut = bench.dut
    await FallingEdge(dut.clk)
    dut.advance.value = windows
    await FallingEdge(dut.clk)
    dut.advance.value = 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def vector_fifo(dut):
    """Strobe vectors wait while the frame FIFO has room: frames of a third upper half of time must
    not enter it yet, because a frame carries 32 bits only."""
    bench = Bench(dut)
    choose = rng("overrun")
    window = Window.CLOCK
    dut_nodes, depth = bench.nodes, bench.geometry.vector_depth
    await bench.start()
    offered: dict[int, list[Item]] = {n: [] for n in range(dut_nodes)}
    moved = 0
    level = [0] * dut_nodes

    async def play(counts: Sequence[int], gap: int) -> None:
        draw = rng(f"part {moved}")
        ports = [Port() for _ in range(dut_nodes)]
        part = Stimulus(draw, bench.board, ports, [
            program(draw, bench.board, port, None, [gap] * counts[n], initial=level[n],
                    start=(4 + n) * bench.period) for n, port in enumerate(ports)])
        now = await next_edge(bench)
        base = (now - bench.zero) // bench.period
        await bench.pads.play(part.writes, now)
        await bench.clocks(20)
        for n, found in part.offered().items():
            offered[n] += [Item(i.edge + base + moved, i.nibble) for i in found]
            level[n] = part.levels[n].values[-1]

    await bench.configure([Port()] * dut_nodes, flush=5)
    await bench.control(Control.RESET, window)
    started = cocotb.start_soon(bench.time_zero())
    await bench.control(Control.ENABLE, window)  # frames stay: nobody reads FRAME_FIFO
    await started
    few = min(4, dut_nodes)
    gap = few * 3 * bench.period
    for last in (False, False, True):
        # At most what the frame FIFO holds, then more vectors than their FIFO holds.
        await play([3 * depth // few if last else 1] * few + [0] * (dut_nodes - few), gap)
        for _ in range(0 if last else 2):
            await advance(bench, 2**31 - 1)
            moved += 2**31 - 1
            await bench.clocks(choose.randint(400, 600))
    status = await bench.read("STATUS")
    assert status & ~Status.READY in (Status.VECTOR_FULL, Status.VECTOR_FULL | Status.NODE_FULL), status
    assert await bench.read("RUN") == few, "frames at the head that share the upper half of their time"
    assert await bench.read("FRAME_HIGH") == 0
    await bench.control(Control.ENABLE | Control.STREAM, window)
    await bench.clocks(2000)
    await play([2] * dut_nodes, gap)
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    found = reduce(or_, causes(run).values())
    cocotb.log.info("%d lost, %d frames, causes %r", lost(run), len(run.frames), found)
    assert Cause.VECTOR_FIFO in found
    assert Cause.FRAME_FIFO not in found
    assert {f.stamp >> 32 for f in run.frames} == {0, 1, 2}
    verify(run, offered, 1, grown=True)


async def next_edge(bench: Bench) -> int:
    """Wait for a falling edge; returns the time of the clock edge after it."""
    await FallingEdge(bench.dut.clk)
    return now_ps() + bench.period // 2
