"""BeatsToBytes: every byte once and in order, the last of a block marked, 16 in 17 clocks, 2 in 3."""

import functools

import cocotb
import pytest
from hypermon.hdl.stream.blocker import beat_layout
from hypermon.hdl.transport.beats_to_bytes import BeatsToBytes, byte_layout

from ..benches.case import CASE, rng
from ..benches.cocotb_stage import Stage, fields, pack
from ..harness.runner import component, run, seeds


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def narrows(dut):
    stage, choose = Stage(dut), rng()
    await stage.start(i_valid=0, i_payload=0, o_ready=0)
    wide = CASE["wide"]
    beats = [(choose.randbytes(wide), choose.random() < 0.3) for _ in range(CASE["beats"])]
    offering, taking = (1.0, 1.0) if CASE["seed"] == 0 else (choose.choice([0.1, 0.9]), choose.choice([0.2, 0.9]))
    due = [(byte, last and k == wide - 1) for data, last in beats for k, byte in enumerate(data)]
    came, at, offered = [], 0, False
    while len(came) < len(due):
        offered = offered or (at < len(beats) and choose.random() < offering)
        data, last = beats[at] if offered else (choose.randbytes(wide), False)
        payload = pack(beat_layout(wide), data=int.from_bytes(data, "little"), last=int(last))
        await stage.step(i_valid=int(offered), i_payload=payload, o_ready=int(choose.random() < taking))
        if stage.get("o_valid") and stage.get("o_ready"):
            byte = fields(byte_layout(), stage.get("o_payload"))
            came.append((byte["data"], bool(byte["last"])))
            assert came[-1] == due[len(came) - 1]
        if offered and stage.get("i_ready"):
            at, offered = at + 1, False
        await stage.clock()
    if taking == offering == 1:
        assert stage.now <= (wide + 1) * len(beats) + 1


@functools.cache
def simulator(wide):
    return component(BeatsToBytes(wide))


@pytest.mark.parametrize("wide", [16, 2])
@pytest.mark.parametrize("seed", seeds(4, fast=2))
def test_narrows(seed, wide):
    run(simulator(wide), __name__, "narrows", seed, beats=60, wide=wide)
