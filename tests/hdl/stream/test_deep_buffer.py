"""The deep buffer as a whole, with a memory at its pins: blocks come out as they went in, at the rate that is said."""

from collections import deque
from dataclasses import replace

import cocotb
from hypermon.hdl.layout import BEAT_BYTES, Geometry
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.stream.deep_buffer import DeepBuffer
from hypermon.hdl.stream.sdram_part import SLOWEST_16M16, SdramPart
from hypermon.sim.virtual.memory.sdram_chip import Pins, SdramChip

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, pack
from ..harness.rejects import rejects
from ..harness.runner import component, run
from .test_external_fifo import blocks

GEOMETRY = Geometry(external_depth=1024)
#: Initialized in 3000 clocks.
PART = replace(SLOWEST_16M16, pause=10_000_000)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def keeps_pace(dut):
    """Both sides always want: the memory is full, and as much comes in as goes out, all of it through the memory."""
    stage, chip = Stage(dut), SdramChip(SdramPart(**CASE["part"]), GEOMETRY.clock_hz)
    source, inside = blocks(rng("blocks")), deque()
    await stage.start(i_valid=0, i_payload=0, o_ready=0, pins_dq_i=0)
    offered, begun, went, highest = None, None, 0, 0
    for clock in range(CASE["clocks"]):
        if offered is None:
            data, last = next(source)
            offered = pack(beat_layout(), data=data, last=last)
        ready = clock > CASE["away"]
        await stage.step(i_valid=1, i_payload=offered, o_ready=int(ready))
        assert stage.get("level") == len(inside)
        highest = max(highest, len(inside))
        gives = ready and stage.get("o_valid")
        if gives:
            assert stage.get("o_payload") == inside.popleft()
            # What stood in the tail and on its way is not the memory's rate.
            begun = clock if went == 200 else begun
            went += 1
        if stage.get("i_ready"):
            inside.append(offered)
            offered = None
        pins = Pins(*(stage.get(f"pins_{name}") for name in Pins.__dataclass_fields__))
        await stage.clock()
        stage.put(pins_dq_i=chip.clock(pins))
        assert not chip.complaint, chip.complaint
    rate = BEAT_BYTES * (went - 201) * GEOMETRY.clock_hz / (clock - begun) / 1e6
    cocotb.log.info("%.1f MB/s in and out, highest %d, %s", rate, highest, chip.counts)
    assert highest > GEOMETRY.external_depth, "never full"
    low, high = CASE["expected"]
    assert low < rate < high, "MB/s each way"


def test_keeps_pace():
    """In and out at the same time 92 MB/s."""
    simulator = component(DeepBuffer(GEOMETRY, PART))
    run(simulator, __name__, "keeps_pace", 0, part=PART.__dict__, away=14_000, clocks=26_000, expected=[91, 93])


def test_a_memory_that_is_too_small_is_named():
    rejects(lambda: DeepBuffer(replace(GEOMETRY, external_depth=1 << 22), PART), 1 << 18)
    rejects(lambda: DeepBuffer(Geometry(), PART), 0)
