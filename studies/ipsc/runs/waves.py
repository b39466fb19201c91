"""Signals of a port and of the gateware during a few writes, clock by clock (Figures 3 and 4)."""

from typing import Any

import numpy as np
from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypermon.hdl.input.intake import Intake
from hypermon.hdl.layout import Geometry, Window
from hypermon.hdl.merge.merge import Merge
from hypermon.hdl.sinks.classic.frame_builder import FrameBuilder
from hypermon.hdl.time.board_time import BoardTime
from hypermon.studies.ipsc.machine.cpu import Cpu
from hypermon.studies.ipsc.machine.recorders import PORTS
from hypermon.studies.ipsc.runs.monitor import CLASSIC, Writes, port_writes
from hypermon.studies.ipsc.runs.tables import Row

__all__ = ["NODES", "STROBES_US", "waves"]

#: Nodes of Figure 4, and when each of them begins to write its nibble, in microseconds: in three windows.
STROBES_US = (0.50, 1.60, 0.80, 0.62, 2.30, 1.65)
NODES = len(STROBES_US)
#: Nibbles of Figure 3, one after the other without a delay.
_NIBBLES = (0x5, 0xC)
_PS_US = 1_000_000
_RESET = 8


def waves() -> list[Row]:
    """Rows by figure and clock: levels of ``strobe`` and ``data`` at the ports, a bit and four bits a node; ``push``
    and ``nibble``: what the nodes' queues take; ``end``: the last clock of a window; ``vector``: the strobe vector of a
    frame that leaves in this clock, or -1; ``stamp``: its time, in windows.
    """
    cpu, port = Cpu(), PORTS["hardware"]
    write_us = cpu.us(cpu.write)
    begin = 1.0 + np.arange(len(_NIBBLES)) * cpu.period_us(0)
    alone = [port_writes(begin, 0, np.array(_NIBBLES, np.uint8), write_us, port)]
    many = [port_writes(np.array([at]), node, np.array([node + 8], np.uint8), write_us, port)
            for node, at in enumerate(STROBES_US)]
    return [*_simulated(3, alone, 14.0), *_simulated(4, many, 4.6)]


def _levels(writes: list[Writes], clocks: int, clock_ps: int) -> list[list[int]]:
    """The port of each node at each clock edge: data and, in bit 4, the strobe."""
    levels = []
    for time, _, values in writes:
        at = np.searchsorted(time, np.arange(clocks) * clock_ps, "right") - 1
        levels.append([int(values[edge]) if edge >= 0 else 0 for edge in at])
    return levels


def _simulated(figure: int, writes: list[Writes], us: float) -> list[Row]:
    geometry = Geometry(len(writes), clock_hz=CLASSIC.geometry.clock_hz, node_depth=CLASSIC.geometry.node_depth)
    clock_ps = geometry.ps(1)
    levels = _levels(writes, round(us * _PS_US / clock_ps), clock_ps)
    intake, time, merge, builder = Intake(geometry), BoardTime(geometry), Merge(geometry), FrameBuilder(geometry)
    rows: list[Row] = []

    async def bench(ctx: Any) -> None:
        ctx.set(intake.settings.rising, -1)
        ctx.set(time.settings.window, Window.NS800.value)
        await ctx.tick().repeat(_RESET)
        ctx.set(time.settings.enable, 1)
        while not ctx.get(time.o.running):
            await ctx.tick()
        for clock in range(len(levels[0])):
            strobe = sum(own[clock] >> 4 << node for node, own in enumerate(levels))
            data = sum((own[clock] & 15) << 4 * node for node, own in enumerate(levels))
            ctx.set(intake.levels.strobe, strobe)
            ctx.set(intake.levels.data, data)
            leaves = ctx.get(builder.o.valid)
            words = ctx.get(builder.o.p.frame) if leaves else 0
            rows.append({"figure": figure, "clock": clock, "ns": clock * clock_ps // 1000, "strobe": strobe,
                         "data": data, "push": ctx.get(intake.items.push & merge.items.admit),
                         "nibble": ctx.get(intake.items.nibble), "end": ctx.get(time.o.window.end),
                         "vector": words >> 64 & 0xffff if leaves else -1,
                         "stamp": words >> 96 & 0xffffffff if leaves else -1})
            await ctx.tick()

    simulator = Simulator(_wired(geometry, intake, time, merge, builder))
    simulator.add_clock(clock_ps * 1e-12)
    simulator.add_testbench(bench)
    simulator.run()
    return rows


def _wired(geometry: Geometry, intake: Intake, time: BoardTime, merge: Merge, builder: FrameBuilder) -> Module:
    """The path of an item as on the board, as far as the frame."""
    m = Module()
    m.domains.spine = ClockDomain()
    m.submodules += [intake, time, merge, builder]
    wiring.connect(m, time.o, intake.time, merge.time)
    wiring.connect(m, intake.items, merge.items)
    wiring.connect(m, merge.o.vectors, builder.i)
    m.d.comb += [
        ClockSignal("spine").eq(ClockSignal()), builder.nibble.eq(merge.o.nibble), merge.o.pop.eq(builder.pop),
        merge.o.busy.eq(builder.busy), merge.o.stuck.eq(builder.stuck),
    ]
    return m
