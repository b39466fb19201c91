"""Runs one stage of the gateware in Amaranth's simulator."""

import random

from amaranth.hdl import ClockDomain, Module
from amaranth.lib import data
from amaranth.sim import Simulator

__all__ = ["keeps_order", "refuses", "run"]


def _remember_fields() -> None:
    """A view makes each of its fields once: benches name the same ones in every clock, and making one takes long."""
    make = data.View.__getattr__

    def field(view, name):
        made = view.__dict__[name] = make(view, name)
        return made

    data.View.__getattr__ = field


_remember_fields()


def run(dut, *benches, clocks: int = 20_000, spine: ClockDomain | None = None) -> None:
    """Runs until all ``benches`` have ended; fails if that takes more than ``clocks``.

    ``spine`` : for a stage that is partly in that domain; a bench sets its ``rst``.
    """
    if spine is not None:
        stage, dut = dut, Module()
        dut.domains += [ClockDomain("sync"), spine]
        dut.submodules.dut = stage
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    if spine is not None:
        simulator.add_clock(1e-8, domain=spine.name)
    for bench in benches:
        simulator.add_testbench(bench)
    # Each step is half a clock; there are none left when all benches have ended.
    steps = 0
    while simulator.advance():
        steps += 1
        assert steps < 2 * clocks, f"not done after {clocks} clocks"


def keeps_order(dut, seed: int) -> None:
    """Items of 16 bits pass from ``dut.i`` to ``dut.o`` in order, none lost and none twice, whoever stalls."""
    rng = random.Random(seed)
    items = [rng.getrandbits(16) for _ in range(400)]
    fast_in, fast_out = rng.choice((0.2, 0.9)), rng.choice((0.2, 0.9))
    got = []

    async def give(ctx):
        for item in items:
            while rng.random() > fast_in:
                await ctx.tick()
            ctx.set(dut.i.p, item)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.i.p, rng.getrandbits(16))

    async def take(ctx):
        while len(got) < len(items):
            ready = rng.random() < fast_out
            ctx.set(dut.o.ready, ready)
            _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.p)
            if ready and valid:
                got.append(item)
        assert got == items

    run(dut, give, take)


def refuses(cls, *args) -> str:
    """What ``cls(*args)`` says in the ValueError that it raises."""
    component = cls.__new__(cls)
    component._MustUse__silence = True  # nobody will elaborate it, and that is right
    try:
        component.__init__(*args)
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{cls.__name__}{args} is not refused")
