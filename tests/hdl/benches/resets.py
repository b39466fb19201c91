"""Whole-board bench: resets at any moment, strobes and link going on."""

import cocotb
from hypermon.hdl.layout import Control, Status, Window
from hypermon.sim.bench.cocotb_models import now_ps

from ..harness.blocks import runs
from ..harness.verdict import verify
from .bench import Bench
from .case import CASE, rng


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def resets(dut):
    """Epoch after epoch, none of which knows of the one before."""
    bench = Bench(dut)
    choose = rng("resets")
    stimulus = bench.random_stimulus(Window.NS200, CASE["count"], load=choose.choice([0.2, 0.9]))
    await bench.start([p.initial for p in stimulus.programs])
    await bench.configure(stimulus.ports, flush=choose.choice([1, 20, 1000]))
    # The nodes know nothing of the board's resets: their time is that of the clock edge below.
    await bench.clocks(1)
    origin = now_ps() - now_ps() % bench.period + bench.period // 2 + 8 * bench.period
    playing = cocotb.start_soon(bench.pads.play(stimulus.writes, origin))
    flags = Control.STREAM
    epochs = []  # window setting, first and last clock edge of the nodes' time
    count = choose.randint(4, 8)
    for number in range(1, count + 1):
        window = choose.choice(list(Window))
        await bench.control(flags | Control.RESET, window)
        if epochs:
            epochs[-1][2] = (now_ps() - origin) // bench.period
        assert await bench.read("STATUS") == 0
        assert await bench.read("FRAME_COUNT") == 0
        assert await bench.read("LEVEL") == 0
        assert await bench.read("FRAME_POS") == number << 16
        await bench.write("LATCH", 1)
        assert await bench.read("TIME_LOW") == await bench.read("FRAMES_LOW") == 0
        zero = cocotb.start_soon(bench.time_zero())
        await bench.control(flags | Control.ENABLE, window)
        epochs.append([window, (await zero - origin) // bench.period, None])
        bench.sink.paused = choose.random() < 0.3
        if number < count:
            await bench.clocks(1 + choose.choice([0, choose.randint(0, 300), choose.randint(0, 6000)]))
        bench.sink.paused = False
    await playing
    await bench.clocks(20)
    await bench.control(flags, window)
    await bench.stopped()
    assert await bench.read("STATUS") & Status.READY == 0

    found = {run.epoch: run for run in runs(bench.sink.blocks, bench.geometry)}
    assert set(found) <= set(range(1, count + 1)), list(found)
    for number, (window, start, stop) in enumerate(epochs, 1):
        if number not in found:
            assert number < count, "the last epoch has said nothing"
            continue
        run = found[number]
        assert run.windows == {window}, (run.windows, window)
        verify(run, stimulus.offered(start, stop), bench.geometry.window_clocks(window), cut=number < count, grown=True)
    cocotb.log.info("%d epochs, %d spoke, %d blocks cut, %d frames", count, len(found),
                    sum(run.cut for run in found.values()), sum(len(run.frames) for run in found.values()))
