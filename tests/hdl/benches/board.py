"""Whole-board bench: every frame, every loss and every count against the scoreboard."""

import cocotb
from hypermon.hdl.layout import Window

from ..harness.verdict import verify
from .bench import Bench
from .case import CASE, rng


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def traffic(dut):
    """Constrained-random strobes on all ports, random stalls of the link, random bus reads."""
    bench = Bench(dut)
    choose = rng("traffic case")
    window = Window(CASE["window"])
    stimulus = bench.random_stimulus(window, CASE["count"])
    for node in range(bench.nodes):
        seen = [item.nibble for item in stimulus.offered()[node]]
        assert seen == stimulus.meant(node), f"node {node}: the ports' timing limits do not hold"
    await bench.start([p.initial for p in stimulus.programs])
    mask = (1 << bench.nodes) - 1
    if choose.random() < 0.3:
        mask &= choose.getrandbits(bench.nodes) | 1

    reading = True

    async def read_at_random():
        while reading:
            await bench.clocks(choose.randint(1, 200))
            await bench.read(choose.choice(["STATUS", "LEVEL", "FRAME_COUNT", "FRAME_FIFO", "RUN", "TIME_LOW"]))
    reader = cocotb.start_soon(read_at_random())
    run = await bench.run(stimulus, window, flush=choose.choice([1, 10, 100]), mask=mask)
    reading = False
    await reader
    assert run.windows == {window}
    offered = {n: i for n, i in stimulus.offered().items() if mask >> n & 1}
    cocotb.log.info("%d items, %d frames, %d lost", sum(map(len, offered.values())), len(run.frames),
                    sum(r.lost for rows in run.losses.values() for r in rows))
    # A gate that opens and closes again between two visits of the sweep makes one record of two outages.
    verify(run, offered, bench.geometry.window_clocks(window), grown=True)
