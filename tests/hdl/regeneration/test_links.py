"""Links: two regeneration boards' ports at their places, equally late with and without the consumer's pad stage; and
each receiver with its own samples, and its own account."""

import random

import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from hypermon.hdl.regeneration import links as module
from hypermon.hdl.regeneration.links import LINK_TIME_BITS, Links
from hypermon.hdl.regeneration.receiver import Receiver
from hypermon.hdl.regeneration.wired_boards import WiredBoards

from ..harness.stage import run

#: Clocks in which the line is found, and by which a replayed strobe is later than one that is wired directly.
SEARCH, LATE = 40 * 128, 4109


def test_ports_of_two_boards():
    rng = random.Random(1)
    m = Module()
    m.submodules.wired = wired = WiredBoards(2)
    m.submodules.own = own = Links(2, pad_stage=True)
    m.submodules.late = late = Links(2, pad_stage=False)
    m.d.comb += [links.samples.eq(wired.samples) for links in (own, late)]
    written, seen, levels = [], [], []

    async def bench(ctx):
        ctx.set(wired.rising, 0xffff)
        await ctx.tick().repeat(SEARCH)
        assert ctx.get(own.account0.locked)
        assert ctx.get(own.account1.locked)
        before, queue = (ctx.get(own.strobe), ctx.get(own.data)), {}
        for clock in range(LATE + 900):
            if clock < 600 and clock % 40 == 0:
                node, nibble = rng.randrange(16), rng.getrandbits(4)
                ctx.set(wired.data, nibble << 4 * node)
                queue[clock + 4], queue[clock + 8] = 1 << node, 0
                written.append((clock + 4, node, nibble))
            if clock in queue:
                ctx.set(wired.strobe, queue[clock])
            await ctx.tick()
            now = ctx.get(own.strobe), ctx.get(own.data)
            assert (ctx.get(late.strobe), ctx.get(late.data)) == before, "one clock later"
            seen.extend((clock, n, before[1] >> 4 * n & 15) for n in range(16) if (now[0] ^ before[0]) >> n & 1)
            levels.append(now)
            before = now

    run(m, bench, clocks=SEARCH + LATE + 1000)
    assert [item[1:] for item in seen] == [item[1:] for item in written]
    assert {at - when for (at, *_), (when, *_) in zip(seen, written, strict=True)} == {LATE - 1}


def flat(members):
    """Path, member and value of each."""
    return [(".".join(map(str, path)), member, getattr(value, "as_value", lambda value=value: value)())
            for path, member, value in members.signature.flatten(members)]


class Mirror(wiring.Component):
    """In place of a receiver: its outputs are its inputs of one clock ago, repeated, each output from another bit."""

    def __init__(self, *arguments):
        plan = Receiver(*arguments)
        plan._MustUse__silence = True
        super().__init__(plan.signature)

    def elaborate(self, platform):
        m = Module()
        members = flat(self)
        given = Cat(value for _, member, value in members if member.flow is wiring.In).replicate(4)
        for k, (_, _, value) in enumerate(each for each in members if each[1].flow is wiring.Out):
            m.d.sync += value.eq(given[k:])
        return m


@pytest.mark.parametrize("pad_stage", [True, False])
def test_each_receiver_with_its_own(pad_stage, monkeypatch):
    """All random: the clear and the enable of the board, the time, the samples and what takes the losses."""
    monkeypatch.setattr(module, "Receiver", Mirror)
    rng, plan, dut = random.Random(3), Mirror("portable", LINK_TIME_BITS), Links(3, pad_stage)
    plan._MustUse__silence = True
    inputs, outputs = ([(name, len(value)) for name, member, value in flat(plan) if member.flow is flow]
                       for flow in (wiring.In, wiring.Out))
    levels = ("strobe", "data", "further", "torn")

    def mirrored(given):
        """All outputs of a receiver."""
        word, size = 0, sum(width for _, width in inputs)
        for name, width in reversed(inputs):
            word = word << width | given[name]
        word |= word << size | word << 2 * size | word << 3 * size
        return {name: word >> k & (1 << width) - 1 for k, (name, width) in enumerate(outputs)}

    async def bench(ctx):
        late, told = None, 0
        for _ in range(400):
            common = {"time": rng.getrandbits(64), "clear": rng.getrandbits(1), "enable": rng.getrandbits(1)}
            each = [{"samples": rng.getrandbits(4), "losses.ready": rng.getrandbits(1)} for _ in range(3)]
            ctx.set(dut.now, common["time"])
            ctx.set(dut.clear, common["clear"])
            ctx.set(dut.enable, common["enable"])
            ctx.set(dut.samples, sum(its["samples"] << 4 * k for k, its in enumerate(each)))
            for k, its in enumerate(each):
                ctx.set(getattr(dut, f"account{k}").losses.ready, its["losses.ready"])
            await ctx.tick()
            common["time"] &= (1 << LINK_TIME_BITS) - 1
            due = [mirrored({**common, **its, "toggles": 0xff}) for its in each]
            shown = due if pad_stage else late
            for k, its in enumerate(due):
                for name, _, value in flat(getattr(dut, f"account{k}")):
                    if not name.endswith("ready"):
                        assert ctx.get(value) == its[name], (k, name)
                        told += 1
                for name in levels if shown else ():
                    width = len(getattr(dut, name)) // 3
                    assert ctx.get(getattr(dut, name)) >> k * width & (1 << width) - 1 == shown[k][name], (k, name)
            late = due
        assert told == 400 * 3 * 7

    run(dut, bench, clocks=500)
