"""AXI-Stream: every byte once and in order, the last of a block marked; no clock is wasted, and offers stand."""

import functools

import cocotb
import pytest
from hypermon.hdl.axi_stream import AXI_BYTES, AxiStream
from hypermon.hdl.stream.blocker import beat_layout

from .benches.case import CASE, rng
from .benches.cocotb_stage import Stage, pack
from .harness.runner import component, run, seeds
from .harness.stage import refuses


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def transfers(dut):
    stage, choose, width = Stage(dut), rng(), CASE["width"]
    await stage.start(i_valid=0, i_payload=0, o_tready=0)
    beats = [(choose.randbytes(16), choose.random() < 0.3) for _ in range(60)]
    offering, taking = (1.0, 1.0) if CASE["seed"] == 0 else (choose.choice([0.1, 0.9]), choose.choice([0.2, 0.9]))
    due = [(data[k:k + width], last and k + width == 16) for data, last in beats for k in range(0, 16, width)]
    came, at, offered, stands = [], 0, False, None
    while len(came) < len(due):
        offered = offered or (at < len(beats) and choose.random() < offering)
        data, last = beats[at] if offered else (choose.randbytes(16), False)
        payload = pack(beat_layout(), data=int.from_bytes(data, "little"), last=int(last))
        await stage.step(i_valid=int(offered), i_payload=payload, o_tready=int(choose.random() < taking))
        shown = (stage.get("o_tdata").to_bytes(width, "little"), bool(stage.get("o_tlast")))
        if stands is not None:
            assert (stage.get("o_tvalid"), shown) == (1, stands), "an offer was taken back"
        if stage.get("o_tvalid"):
            assert stage.get("o_tkeep") == (1 << width) - 1
            assert shown == due[len(came)]
            stands = shown
            if stage.get("o_tready"):
                came.append(shown)
                stands = None
        if offered and stage.get("i_ready"):
            at, offered = at + 1, False
        await stage.clock()
    if taking == offering == 1:
        assert stage.now == len(due) + 1


@functools.cache
def simulator(width):
    return component(AxiStream(width), f"axi_stream{width}")


@pytest.mark.parametrize("seed", seeds(6, fast=2))
@pytest.mark.parametrize("width", [
    pytest.param(w, marks=() if w == 4 else pytest.mark.slow) for w in AXI_BYTES])
def test_transfers(width, seed):
    run(simulator(width), __name__, "transfers", seed, width=width)


def test_a_width_that_is_none():
    assert refuses(AxiStream, 3) == "width must be one of 1, 2, 4, 8, 16, not 3"
