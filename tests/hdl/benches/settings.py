"""Whole-board bench: NODE_MASK and FLUSH, changed while capture goes on."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from hypermon.hdl.layout import LATENCY, BlockType, Control, Window
from hypermon.sim.bench.cocotb_models import now_ps
from hypermon.sim.bench.port_models import program

from ..harness.blocks import parse
from ..harness.verdict import verify
from .bench import Bench, Stimulus, random_port
from .case import CASE, rng

#: Clocks from the end of a window to the frame of its vector in the frame FIFO, and from the end of the
#: wait to the first beat of its block, at most.
ON_ITS_WAY = 60


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def masked(dut):
    """Nodes join and leave in the middle: what they write while they take no part is not captured, not
    counted and not lost."""
    bench = Bench(dut)
    choose = rng("masks")
    window = Window.NS200
    every = (1 << bench.nodes) - 1
    stimulus = bench.random_stimulus(window, CASE["count"], load=0.3)
    await bench.start([p.initial for p in stimulus.programs])
    # One node never takes part, one always does.
    never, always = choose.sample(range(bench.nodes), 2)

    def draw() -> int:
        return (choose.getrandbits(bench.nodes) | 1 << always) & ~(1 << never) & every
    mask = draw()
    await bench.configure(stimulus.ports, 4, mask)
    await bench.control(Control.RESET, window)
    playing = bench.play(stimulus)
    await bench.control(Control.ENABLE | Control.STREAM, window)
    # Each mask: in force possibly from, for certain from, for certain to, possibly to.
    masks = [[mask, 0, 0, None, None]]
    while not playing.done():
        await bench.clocks(choose.randint(20, 2000))
        mask, began = draw(), now_ps()
        await bench.write("NODE_MASK", mask)
        masks[-1][3:] = began, now_ps()
        masks.append([mask, began, now_ps(), None, None])
        assert await bench.read("NODE_MASK") == mask
    await bench.clocks(2 * LATENCY)
    masks[-1][3:] = now_ps(), now_ps()
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]

    margin = 2 * LATENCY * bench.period
    offered, ignored = {}, 0
    for node, found in stimulus.offered().items():
        offered[node] = []
        for item in found:
            at = bench.zero + item.edge * bench.period
            spans = [(b, c, d, e) for mask, b, c, d, e in masks if mask >> node & 1]
            if any(b - margin <= at <= e for b, _, _, e in spans):
                # Two masks in a row that both have the node leave no doubt between them.
                whole = [m for m, b, _, _, e in masks if b - margin <= at <= e]
                certain = all(m >> node & 1 for m in whole) or any(c <= at <= d - margin for _, c, d, _ in spans)
                offered[node].append(type(item)(item.edge, item.nibble, not certain))
            else:
                ignored += 1
    assert not offered[never]
    cocotb.log.info("%d masks, %d nibbles ignored", len(masks), ignored)
    assert ignored > CASE["count"] // 10
    assert run.delivered(always)
    assert not run.delivered(never)
    last = run.censuses[-1].nodes[never]
    assert not any(last.values()), "a node that takes no part has been counted"
    verify(run, offered, bench.geometry.window_clocks(window))


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def flushed(dut):
    """A lone frame leaves FLUSH windows after it has been queued, not before, not later; by default after 1 ms."""
    bench = Bench(dut)
    choose = rng("flush")
    window = Window(CASE["window"])
    clocks = bench.geometry.window_clocks(window)
    default = bench.geometry.clock_hz // 1000 // clocks
    levels = [choose.getrandbits(5) for _ in range(bench.nodes)]
    ports = [random_port(choose, bench.period // 2) for _ in range(bench.nodes)]
    await bench.start(levels)
    for name, bit in (("EDGE_RISING", "rising"), ("EDGE_FALLING", "falling"), ("SAMPLE_AFTER", "after")):
        await bench.write(name, sum(getattr(p, bit) << n for n, p in enumerate(ports)))
    await bench.control(Control.RESET, window)
    assert await bench.read("FLUSH") == default
    zero = cocotb.start_soon(bench.time_zero())
    await bench.control(Control.ENABLE | Control.STREAM, window)
    await zero
    offered = {n: [] for n in range(bench.nodes)}
    waits = [None, *choose.sample([0, 1, 2, 7, 40, 200], 4)]
    for number, flush in enumerate(waits):
        if flush is not None:
            await bench.write("FLUSH", flush)
        await bench.clocks(2000)    # the census is over
        node = choose.randrange(bench.nodes)
        draw = rng(f"lone {number}")
        stimulus = Stimulus(draw, bench.board, ports, [
            program(draw, bench.board, port, None, [0] * (n == node), initial=levels[n], start=20 * bench.period)
            for n, port in enumerate(ports)])
        await FallingEdge(dut.clk)
        origin = now_ps() + bench.period // 2
        base = (origin - bench.zero) // bench.period
        seen = len(bench.sink.blocks)
        await bench.pads.play(stimulus.writes, origin)
        item, = stimulus.offered()[node]
        item = type(item)(item.edge + base, item.nibble)
        offered[node].append(item)
        levels[node] = stimulus.levels[node].values[-1]
        assert not dut.stream_valid.value, "the frame has gone already"
        await with_timeout(RisingEdge(dut.stream_valid), 3, "ms")
        gone = (now_ps() - bench.zero) / bench.period
        wait = default if flush is None else flush
        # It waits from the end of its window; a wait counts whole windows.
        queued = (item.window(clocks) + 1) * clocks
        waited = gone - queued
        assert waited >= (wait - 1) * clocks, f"{waited / clocks:.1f} windows, must be {wait}"
        assert waited <= (wait + 1) * clocks + ON_ITS_WAY, f"{waited / clocks:.1f} windows, must be {wait}"
        while len(bench.sink.blocks) == seen:
            await bench.clocks(10)
        assert parse(bench.sink.blocks[seen], bench.geometry).type is BlockType.FRAMES
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    assert run.frame_blocks == [1] * len(waits)
    verify(run, offered, clocks)
