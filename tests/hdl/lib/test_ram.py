"""Memory: two clocks of latency, the same in all forms; one without the register."""

import functools

import cocotb
import pytest
from hypermon.hdl.lib.ram import Ram

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage
from ..harness.rejects import rejects
from ..harness.runner import CELLS, component, run, seeds

PRIMITIVES = {kind: [CELLS / name for name in names] for kind, names in (
    ("portable", ()), ("ecp5", ("dp16kd.v", "pdpw16kd.v")), ("gowin", ("sdpx9b.v",)),
    ("ice40", ("sb_ram40_4k.v",)))}


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def remembers(dut):
    stage, choose = Stage(dut), rng()
    width, depth = CASE["width"], CASE["depth"]
    # Words close together, at both ends of the address, and one bit apart.
    places = sorted({choose.randrange(depth) for _ in range(6)} | {1 << b for b in range(depth.bit_length() - 1)}
                    | {0, depth - 1})
    words, latch, register = {}, None, None
    await stage.start(w_en=0, w_addr=0, w_data=0, r_en=0, r_addr=0, r_next=0)
    checked = 0
    for _ in range(3000):
        if register is not None:
            assert stage.get("r_data") == register
            checked += 1
        write, read, onward = (choose.random() < 0.6 for _ in range(3))
        there, here = choose.choice(places), choose.choice(places)
        if write and read and there == here:
            read = False  # not defined on every memory, and never used
        data = choose.getrandbits(width)
        stage.put(w_en=int(write), w_addr=there, w_data=data, r_en=int(read), r_addr=here, r_next=int(onward))
        if onward:
            register = latch
        if read:
            latch = words.get(here)
        if CASE["bare"]:
            register = latch
        if write:
            words[there] = data
        await stage.clock()
    assert checked > 1000


@functools.cache
def simulator(width, depth, kind, bare):
    return component(Ram(width, depth, kind, not bare), "ram", *PRIMITIVES[kind])


# Every width of the block RAMs: depths from 512 rows of 36 bits to 16384 of one.
SHAPES = [("portable", 40, 16), ("ecp5", 40, 16), ("ecp5", 37, 512), ("ecp5", 18, 1024), ("ecp5", 11, 2048),
          ("ecp5", 5, 4096), ("ecp5", 3, 8192), ("ecp5", 2, 16384),
          ("gowin", 40, 16), ("gowin", 20, 1024), ("gowin", 11, 2048), ("ice40", 20, 16), ("ice40", 16, 256)]


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize(("kind", "width", "depth"), SHAPES)
def test_remembers(kind, width, depth, seed):
    bare = width == 16     # an iCE40's
    run(simulator(width, depth, kind, bare), __name__, "remembers", seed, width=width, depth=depth, bare=bare)


def test_a_wrong_parameter_is_named():
    rejects(lambda: Ram(8, 16, "dram"), "dram")
    rejects(lambda: Ram(8, 48), 48)
    rejects(lambda: Ram(8, 1), 1)
    rejects(lambda: Ram(8, 32768, "ecp5"), 32768)
    rejects(lambda: Ram(8, 4096, "gowin"), 4096)
    rejects(lambda: Ram(8, 512, "ice40"), 512)
    rejects(lambda: Ram(8, 16, "ecp5", register=False), "ecp5")
