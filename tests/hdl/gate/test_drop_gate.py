"""Gate: whole items, the right cause, one outage until there is room again.

A run is recorded first, clock by clock, and then judged as a story: items that are let in, and outages, each with a
beginning, a cause and an end.
"""

import functools
from dataclasses import dataclass, field

import cocotb
import pytest
from hypermon.hdl.gate.drop_gate import DropGate
from hypermon.hdl.layout import GATE_CAUSES, Cause

from ..benches.case import rng
from ..benches.cocotb_stage import Stage
from ..harness.resets import same_as_fresh
from ..harness.runner import component, run, seeds

NODES = 5


@dataclass
class Clock:
    """What the board says in one clock; node numbers in sets; and the gate's answers.

    offered : nodes with an item that is to be captured.
    full : nodes whose FIFO has no room for it.
    half : nodes whose FIFO is at most half full.
    slot, slots : there is a slot for a vector; the FIFO of vectors is at most half full.
    stuck : the frame FIFO holds everything up.
    """

    offered: set[int]
    full: set[int]
    half: set[int]
    slot: bool
    slots: bool
    stuck: bool
    admitted: set[int] = field(default_factory=set)
    refused: dict[int, list[Cause]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)


def members(bits: int) -> set[int]:
    return {n for n in range(NODES) if bits >> n & 1}


def judge(story: list[Clock], node: int) -> dict[str, int]:
    """Goes through a node's items; returns how many were admitted, refused, and in how many outages."""
    found, at = {"admitted": 0, "refused": 0, "outages": 0, "refused with room": 0}, 0
    while at < len(story):
        first = story[at]
        assert node not in first.closed, f"clock {at}: closed, and no outage"
        if node not in first.offered:
            assert node not in first.admitted
            assert node not in first.refused
            at += 1
            continue
        if node not in first.full and first.slot:
            assert node in first.admitted, f"clock {at}: there is room"
            assert node not in first.refused
            found["admitted"] += 1
            at += 1
            continue
        # An outage. It is over after the first later clock in which both FIFOs are at most half full, and has the cause
        # of its beginning.
        cause = Cause.FRAME_FIFO if first.stuck else Cause.NODE_FIFO if first.slot else Cause.VECTOR_FIFO
        over = next((k for k in range(at + 1, len(story)) if node in story[k].half and story[k].slots), len(story) - 1)
        for k, clock in enumerate(story[at:over + 1], at):
            assert node not in clock.admitted, f"clock {k}: admitted in an outage"
            assert clock.refused.get(node) == ([cause] if node in clock.offered else None), f"clock {k}"
            assert (node in clock.closed) == (k > at)
            found["refused"] += node in clock.offered
            found["refused with room"] += node in clock.offered and node not in clock.full and clock.slot
        found["outages"] += 1
        at = over + 1
    return found


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def admits(dut):
    stage, choose = Stage(dut), rng()
    names = ("pulse", "live", "node_full", "node_half", "node_misfit", "vector_room", "vector_half", "backed_up")
    inputs = dict.fromkeys(names, 0)
    await stage.start(**inputs)
    story = []
    for _ in range(4000):
        # Levels stay for a while; a full FIFO is not at most half full.
        if choose.random() < 0.3:
            full = choose.getrandbits(NODES) & choose.getrandbits(NODES)
            inputs |= {
                "node_full": full, "node_misfit": choose.getrandbits(NODES) & choose.getrandbits(NODES) & ~full,
                "node_half": choose.getrandbits(NODES) & ~full, "vector_room": int(choose.random() > 0.15),
                "backed_up": int(choose.random() < 0.2),
            }
            inputs["vector_half"] = int(inputs["vector_room"] and choose.random() > 0.3)
        inputs |= {"pulse": choose.getrandbits(NODES), "live": choose.getrandbits(NODES) | choose.getrandbits(NODES)}
        await stage.step(**inputs)
        clock = Clock(
            offered=members(inputs["pulse"]) & members(inputs["live"]), slot=bool(inputs["vector_room"]),
            full=members(inputs["node_full"]) | members(inputs["node_misfit"]), half=members(inputs["node_half"]),
            slots=bool(inputs["vector_half"]), stuck=bool(inputs["backed_up"]),
            admitted=members(stage.get("admit")), closed=members(stage.get("closed")))
        for k, cause in enumerate(GATE_CAUSES):
            for node in members(stage.get(f"refused_by_{k}")):
                clock.refused.setdefault(node, []).append(cause)
        assert members(stage.get("refuse")) == clock.refused.keys()
        story.append(clock)
        await stage.clock()
    for node in range(NODES):
        found = judge(story, node)
        assert min(found.values()) > 50, found


@functools.cache
def simulator():
    return component(DropGate(NODES))


@pytest.mark.parametrize("seed", seeds(2))
def test_admits(seed):
    run(simulator(), __name__, "admits", seed)


def test_reset():
    same_as_fresh(lambda: DropGate(3))
