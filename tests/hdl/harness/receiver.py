"""Runs a receiver of bytes on levels of wires, and says what it did in which clock."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amaranth.hdl import Module

from .stage import run

__all__ = ["Received", "receive"]


class Received(NamedTuple):
    """What a receiver did.

    Members
    -------
    came : bytes, each with the clock in which it was valid.
    faults : clocks of faults.
    pauses : changes of ``pause``: clock and level, the first one in clock 0.
    busy : level of ``busy`` in each clock.
    """

    came: list[tuple[int, int]]
    faults: list[int]
    pauses: list[tuple[int, int]]
    busy: list[int]


def receive(dut, settings: Mapping[str, int], levels: Mapping[str, Sequence[int]], idle: int = 0) -> Received:
    """Plays ``levels``, by input of ``dut``, one a clock; the settings have their values from the start, and the first
    levels have been there for ``idle`` clocks."""
    m = Module()
    m.submodules.dut = dut
    did = Received([], [], [], [])
    clocks = len(next(iter(levels.values())))

    async def bench(ctx):
        for name, value in settings.items():
            ctx.set(getattr(dut, name), value)
        if idle:
            for name, wire in levels.items():
                ctx.set(getattr(dut, name), wire[0])
            await ctx.tick().repeat(idle)
        for clock in range(clocks):
            for name, wire in levels.items():
                ctx.set(getattr(dut, name), wire[clock])
            valid, fault, pause = ctx.get(dut.valid), ctx.get(dut.fault), ctx.get(dut.pause)
            assert not valid & fault
            assert not (pause and (valid or fault)), "a pause comes after what was before"
            if valid:
                did.came.append((clock, ctx.get(dut.byte)))
            if fault:
                did.faults.append(clock)
            if not did.pauses or did.pauses[-1][1] != pause:
                did.pauses.append((clock, pause))
            did.busy.append(ctx.get(dut.busy))
            await ctx.tick()

    run(m, bench, clocks=clocks + idle + 100)
    return did
