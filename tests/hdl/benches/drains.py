"""Whole-board bench: frames leave through FRAME_FIFO, or now this way, now that."""

import itertools

import cocotb
from hypermon.hdl.layout import BURST_BASE, BURST_END, REGISTERS, Control, Status, Window, frame_words

from ..harness.blocks import parse_frame
from ..harness.scoreboard import Frame
from ..harness.verdict import verify
from .bench import Bench
from .case import CASE, rng

FRAME_FIFO = REGISTERS["FRAME_FIFO"].offset


def frame_addresses(choose) -> int:
    """FRAME_FIFO, or one of its burst addresses."""
    return choose.choice([FRAME_FIFO, choose.randrange(BURST_BASE, BURST_END, 4)])


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def registers(dut):
    """As the paper's driver did (footnote 5): read the level, then that many frames."""
    bench = Bench(dut)
    choose = rng("drain")
    window = Window(CASE["window"])
    words = frame_words(bench.nodes)
    stimulus = bench.random_stimulus(window, CASE["count"], load=choose.choice([0.05, 0.3]))
    await bench.start([p.initial for p in stimulus.programs])
    read: list[Frame] = []
    await bench.configure(stimulus.ports, flush=3)
    await bench.control(Control.RESET, window)
    assert await bench.bus.read(FRAME_FIFO) == 0
    assert await bench.read("FRAME_POS") == 1 << 16, "an empty read has popped something"

    async def group() -> int:
        run = await bench.read("RUN")
        if not run:
            return 0
        assert run <= await bench.read("LEVEL") & 0xFFFF
        assert await bench.read("STATUS") & Status.READY
        high = await bench.read("FRAME_HIGH")
        for _ in range(run):
            row = []
            for position in range(words):
                if choose.random() < 0.2:
                    assert await bench.read("FRAME_POS") == 1 << 16 | position
                row.append(await bench.bus.read(frame_addresses(choose)))
            frame = parse_frame(tuple(row), bench.geometry, high)
            assert frame is not None, "a frame of zeros"
            read.append(frame)
        return run

    playing = bench.play(stimulus)
    await bench.control(Control.ENABLE, window)
    while not playing.done():
        await group()
        await bench.clocks(choose.randint(1, 300))
    await bench.clocks(20)
    await bench.control(Control(0), window)
    while await group():
        pass
    await bench.stopped()
    assert await bench.bus.read(BURST_BASE) == 0
    run = bench.runs()[-1]
    assert run.frames == [], "the stream has taken frames"
    assert await bench.read("FRAME_COUNT") == len(read) % 4096
    for frame in read:
        run.push(frame)
    cocotb.log.info("%d frames, %d lost", len(read), sum(r.lost for rows in run.losses.values() for r in rows))
    verify(run, stimulus.offered(), bench.geometry.window_clocks(window), streamed=False)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def switching(dut):
    """The drain changes at any moment: every frame leaves once, and whole."""
    bench = Bench(dut)
    choose = rng("drain")
    window = Window(CASE["window"])
    words = frame_words(bench.nodes)
    stimulus = bench.random_stimulus(window, CASE["count"], load=0.3)
    await bench.start([p.initial for p in stimulus.programs])
    read: list[Frame] = []
    begun = again = 0
    await bench.configure(stimulus.ports, flush=10)
    await bench.control(Control.RESET, window)
    playing = bench.play(stimulus)
    await bench.control(Control.ENABLE, window)
    row: list[int] = []
    high = 0
    while not playing.done():
        for _ in range(choose.randint(1, 4 * words)):
            before = await bench.read("FRAME_POS")
            word = await bench.bus.read(frame_addresses(choose))
            after = await bench.read("FRAME_POS")
            if before == after:
                assert word == 0, "a word that has not been popped"
                continue
            assert before & 0xFF == len(row), (before, row)
            assert after & 0xFF == (len(row) + 1) % words, (after, row)
            row.append(word)
            if len(row) == 1:
                assert bool(await bench.read("STATUS") & Status.READY) is False, "a frame that has been begun"
                high = await bench.read("FRAME_HIGH")
            if len(row) == words:
                frame = parse_frame(tuple(row), bench.geometry, high)
                assert frame is not None
                read.append(frame)
                row.clear()
        if choose.random() < 0.5:
            continue
        await bench.control(Control.ENABLE | Control.STREAM, window)
        begun += 1
        again += bool(row)
        row.clear()  # the stream sends all of it
        await bench.clocks(choose.randint(1, 400))
        await bench.control(Control.ENABLE, window)
    await bench.clocks(20)
    await bench.control(Control.STREAM, window)
    await bench.stopped()
    run = bench.runs()[-1]
    streamed = len(run.frames)
    assert all(a.stamp < b.stamp for a, b in itertools.pairwise(read)), "FRAME_FIFO out of order"
    merged = sorted([*run.frames, *read], key=lambda frame: frame.stamp)
    run.frames.clear()
    for frame in merged:
        run.push(frame)
    cocotb.log.info("%d frames by the stream, %d by FRAME_FIFO, %d changes, %d of them within a frame",
                    streamed, len(read), begun, again)
    verify(run, stimulus.offered(), bench.geometry.window_clocks(window), streamed=False, grown=True)
