"""Whole-board bench: registers, latched counters, and nodes or times that take no part."""

import cocotb
from hypermon.hdl.layout import (
    ADDRESS_BITS,
    COUNTER_BITS,
    COUNTERS_BASE,
    COUNTERS_STRIDE,
    FORMAT_VERSION,
    IDENTITY_MAGIC,
    LATENCY,
    PORT_BITS,
    REGISTER_VERSION,
    REGISTERS,
    Control,
    Counter,
    Window,
)
from hypermon.hdl.verilog import build_hash
from hypermon.sim.bench.cocotb_models import now_ps

from ..harness.verdict import verify
from .bench import Bench
from .case import CASE, rng


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def identity(dut):
    """What the board says it is, and what stands in its registers after power-up."""
    bench = Bench(dut)
    choose = rng("identity")
    geometry = bench.geometry
    await bench.start()
    every = (1 << bench.nodes) - 1
    expected = {
        "STATUS": 0, "FRAME_COUNT": 0, "FRAME_FIFO": 0, "FRAME_POS": 0, "MAGIC": IDENTITY_MAGIC,
        "VERSION": REGISTER_VERSION << 8 | FORMAT_VERSION, "BUILD": build_hash(geometry),
        "GEOMETRY": bench.nodes | PORT_BITS << 8 | 1 << 16 | LATENCY << 24,
        "CLOCK_HZ": geometry.clock_hz, "NODE_DEPTH": geometry.node_depth,
        "VECTOR_DEPTH": geometry.vector_depth, "FRAME_DEPTH": geometry.frame_depth,
        "MODE": 0, "WINDOW": geometry.window_clocks(Window.NS800),
        "EDGE_RISING": every, "EDGE_FALLING": 0, "SAMPLE_AFTER": 0, "NODE_MASK": every,
        "FLUSH": geometry.clock_hz // 1000 // geometry.window_clocks(Window.NS800),
        "CENSUS": 0, "LEVEL": 0, "RUN": 0, "FRAME_HIGH": 0,
        # What a board with the classic sink alone does not have.
        **dict.fromkeys((
            "GLITCH", "RATE_LIMIT", "WORD_NODES", "EVENT_NODES", "REDUCTION_INDEX", "SYNC", "SYNC_STEPS",
            "EMULATOR", "EMULATOR_PERIOD", "EMULATOR_COUNT", "TRIGGER_START", "TRIGGER_STOP", "PRETRIGGER",
            "TRIGGER_STATE", "DISCARDED_LOW", "DISCARDED_HIGH",
            "STORE_DEPTH", "STORE_LEVEL", "EXTERNAL_LEVEL", "EXTERNAL_HIGH", "EXTRAS", "SYNC_ECHO", "TRIGGER_PIN",
            "TRIGGER_OUT", "PHASES", "LINKS", "FRONT_SPAN", "UART_PERIOD", "SWO_PERIOD",
            "FRONTS_0", "FRONTS_1", "FRONTS_2", "FRONTS_3", "FRONT_LOWEST"), 0),
        "ITEM_TIMEOUT": geometry.clock_hz // 100, "NIBBLE_MASK": 0xffff,
    }
    order = list(expected)
    choose.shuffle(order)
    for name in order:
        assert await bench.read(name) == expected[name], name
    written = {name: choose.getrandbits(32) for name, r in REGISTERS.items() if r.access == "RW"}
    for name, value in written.items():
        await bench.write(name, value)
    for name, r in REGISTERS.items():
        if r.access == "R" and name not in ("FRAME_FIFO", "TIME_LOW", "TIME_HIGH", "FRAMES_LOW", "FRAMES_HIGH"):
            await bench.write(name, choose.getrandbits(32))
            assert await bench.read(name) == expected[name], f"{name} has been written"
    there = {"EDGE_RISING": bench.nodes, "EDGE_FALLING": bench.nodes, "SAMPLE_AFTER": bench.nodes,
             "NODE_MASK": bench.nodes, "CENSUS": 1, "FLUSH": 32}
    for name, value in written.items():
        now = value & (1 << there[name]) - 1 if name in there else expected[name]
        assert await bench.read(name) == now, name
    known = {r.offset for r in REGISTERS.values()}
    end = COUNTERS_BASE + COUNTERS_STRIDE * bench.nodes
    for _ in range(60):
        address = choose.randrange(0, 1 << ADDRESS_BITS - 1, 4)
        if address not in known and not COUNTERS_BASE <= address < end:
            assert await bench.bus.read(address) == 0, hex(address)
    for window in Window:
        await bench.control(Control.RESET, window)
        assert await bench.read("WINDOW") == geometry.window_clocks(window)
        await bench.control(Control(0), Window.NS800)
        assert await bench.read("WINDOW") == geometry.window_clocks(window), "taken without a reset"


async def counters(bench: Bench) -> list[dict[Counter, int]]:
    """The latched counters of every node."""
    rows = []
    for node in range(bench.nodes):
        row = {}
        for c in Counter:
            at = COUNTERS_BASE + COUNTERS_STRIDE * node + 8 * c
            row[c] = await bench.bus.read(at) | await bench.bus.read(at + 4) << 32
            assert row[c] < 1 << COUNTER_BITS
        rows.append(row)
    return rows


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def latched(dut):
    """TIME, FRAMES and counters read while capture goes on are of one moment."""
    bench = Bench(dut)
    window = Window.NS200
    clocks = bench.geometry.window_clocks(window)
    stimulus = bench.random_stimulus(window, CASE["count"], load=0.5)
    offered = stimulus.offered()
    await bench.start([p.initial for p in stimulus.programs])
    await bench.configure(stimulus.ports, flush=4)
    await bench.control(Control.RESET, window)
    playing = bench.play(stimulus)
    await bench.control(Control.ENABLE | Control.STREAM, window)
    rounds, last = 0, [dict.fromkeys(Counter, 0)] * bench.nodes

    def edge() -> int:
        return (now_ps() - bench.zero) // bench.period

    while not playing.done():
        before = edge()
        await bench.write("LATCH", 1)
        after = edge()
        time = await bench.read("TIME_LOW") | await bench.read("TIME_HIGH") << 32
        frames = await bench.read("FRAMES_LOW") | await bench.read("FRAMES_HIGH") << 32
        assert before // clocks - 1 <= time <= after // clocks + 1, (before, time * clocks, after)
        rows = await counters(bench)
        lost = [Counter.LOST_FRAME_FIFO, Counter.LOST_NODE_FIFO, Counter.LOST_VECTOR_FIFO]
        for node, (row, previous) in enumerate(zip(rows, last, strict=True)):
            assert all(row[c] >= previous[c] for c in Counter), (node, previous, row)
            assert row[Counter.DELIVERED] <= row[Counter.ACCEPTED], (node, row)
            counted = row[Counter.ACCEPTED] + sum(row[c] for c in lost)
            # 64 clocks: the longest way from a pad to a counter, and twice round all nodes.
            low = sum(i.edge < before - 64 for i in offered[node])
            assert low <= counted <= sum(i.edge <= after for i in offered[node]), (node, low, counted, after)
        assert max(r[Counter.DELIVERED] for r in rows) <= frames + after - before
        last, rounds = rows, rounds + 1
        await bench.clocks(20)
    await bench.clocks(20)
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    verify(run, offered, clocks)
    await bench.write("LATCH", 1)
    for row, told in zip(await counters(bench), run.censuses[-1].nodes, strict=True):
        assert {c.name.lower(): v for c, v in row.items()} == told
    assert await bench.read("FRAMES_LOW") == len(run.frames)
    assert await bench.read("FRAME_COUNT") == len(run.frames) % 4096
    cocotb.log.info("latched %d times, %d frames", rounds, len(run.frames))


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def paused(dut):
    """While capture is disabled strobes are neither taken nor counted; time goes on."""
    bench = Bench(dut)
    choose = rng("paused")
    window = Window.NS200
    stimulus = bench.random_stimulus(window, CASE["count"], load=0.3)
    await bench.start([p.initial for p in stimulus.programs])
    await bench.configure(stimulus.ports, flush=4)
    await bench.control(Control.RESET, window)
    playing = bench.play(stimulus)
    on, off = Control.ENABLE | Control.STREAM, Control.STREAM
    spans = []
    while True:
        began = now_ps()
        await bench.control(on, window)
        spans.append([began, now_ps(), None, None])
        await bench.clocks(choose.randint(200, 3000))
        spans[-1][2] = now_ps()
        await bench.control(off, window)
        spans[-1][3] = now_ps()
        if playing.done():
            break
        await bench.clocks(choose.randint(50, 2000))
    await bench.stopped()
    run = bench.runs()[-1]
    # An item is taken for certain if its strobe came well within a span; near its ends it may be.
    offered = {}
    for node, found in stimulus.offered().items():
        kept = []
        for item in found:
            at = bench.zero + item.edge * bench.period
            margin = 2 * LATENCY * bench.period
            if any(a - margin <= at <= d for a, _, _, d in spans):
                certain = any(b <= at <= c - margin for _, b, c, _ in spans)
                kept.append(type(item)(item.edge, item.nibble, not certain))
        offered[node] = kept
    verify(run, offered, bench.geometry.window_clocks(window))
    assert len([c for c in run.censuses if c.flags & 1]) == len(spans), "one START census for each enable"
    cocotb.log.info("%d spans, %d frames", len(spans), len(run.frames))
