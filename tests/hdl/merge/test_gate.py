"""Gate: whole items, the right cause, one outage until there is room again."""

import functools

import cocotb
import pytest
from hypermon.hdl.layout import Cause
from hypermon.hdl.merge.gate import Gate

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.runner import component, run, seeds

NODES = 5


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def admits(dut):
    stage, choose = Stage(dut), rng()
    full_half = {"node_full": 0, "node_half": 0, "vector_room": 1, "vector_half": 1, "backed_up": 0}
    await stage.start(pulse=0, live=0, **full_half)
    outage = [None] * NODES  # its cause while a gate is closed
    offered = accepted = lost = 0
    for _ in range(4000):
        rare = choose.random() < 0.5
        bits = [choose.getrandbits(NODES) for _ in range(6)]
        inputs = {
            "pulse": bits[0], "live": bits[1] | bits[2],
            "node_full": bits[3] & bits[4] if rare else 0, "node_half": bits[5],
            "vector_room": choose.random() > 0.1, "vector_half": choose.random() > 0.4,
            "backed_up": choose.random() < 0.2,
        }
        await stage.step(**{k: int(v) for k, v in inputs.items()})
        admit, refuse = stage.get("admit"), stage.get("refuse")
        by = [stage.get(f"refused_by_{c}") for c in range(3)]
        closed = stage.get("closed")
        for node in range(NODES):
            bit = 1 << node
            assert bool(closed & bit) == (outage[node] is not None)
            cause = Cause.FRAME_FIFO if inputs["backed_up"] else \
                Cause.NODE_FIFO if inputs["vector_room"] else Cause.VECTOR_FIFO
            offer = bool(inputs["pulse"] & inputs["live"] & bit)
            barred = outage[node] is not None or inputs["node_full"] & bit or not inputs["vector_room"]
            assert bool(admit & bit) == (offer and not barred)
            assert bool(refuse & bit) == bool(offer and barred)
            named = [Cause(1 << c) for c in range(3) if by[c] & bit]
            offered += offer
            accepted += bool(admit & bit)
            lost += bool(refuse & bit)
            if refuse & bit:
                assert named == [outage[node] or cause]
            else:
                assert not named
            if outage[node] is not None:
                if inputs["node_half"] & bit and inputs["vector_half"]:
                    outage[node] = None
            elif refuse & bit:
                outage[node] = cause
        await stage.clock()
    assert offered == accepted + lost
    assert accepted > 500
    assert lost > 500


@functools.cache
def simulator():
    return component(Gate(NODES))


@pytest.mark.parametrize("seed", seeds(2))
def test_admits(seed):
    run(simulator(), __name__, "admits", seed)
