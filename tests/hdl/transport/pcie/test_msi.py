"""Interrupts: one for each time the host arms, as soon as the head is another than the one it has seen."""

import random

import pytest
from hypermon.hdl.transport.pcie.msi import Msi
from hypermon.hdl.transport.pcie.ultrascale_plus import UltrascalePlus

from ...harness.stage import run


@pytest.mark.parametrize("seed", range(3))
def test_one_for_each_arming(seed):
    """A model of one line a clock, with everything at random."""
    dut, choose = Msi(), random.Random(seed)
    counts = {"interrupts": 0, "waits for the mask": 0, "at once": 0}

    async def bench(ctx):
        told, armed, seen, request = 0, False, 0, False
        for _ in range(6000):
            told += choose.random() < 0.05
            arm, start, sent = choose.random() < 0.05, choose.random() < 0.002, request and choose.random() < 0.3
            value, enabled = choose.choice([told, told, told - 1, 7]), choose.random() < 0.8
            for name, what in (("told", told), ("arm", arm), ("seen", value), ("start", start), ("sent", sent),
                               ("enabled", enabled)):
                ctx.set(getattr(dut, name), what % (1 << 28))
            fires = armed and enabled and told != seen and not request
            counts["waits for the mask"] += armed and not enabled and told != seen
            counts["interrupts"] += fires
            counts["at once"] += arm and value != told
            request = fires or (request and not sent)
            armed = arm or (armed and not fires and not start)
            seen = value % (1 << 28) if arm else seen
            await ctx.tick()
            assert ctx.get(dut.request) == request

    run(dut, bench)
    assert all(counts.values()), counts


@pytest.mark.parametrize("answer", ["sent", "fail"])
def test_a_block_that_answers_late_is_asked_once(answer):
    """The UltraScale+ adapter; a block that has failed is asked again."""
    dut = UltrascalePlus()

    async def bench(ctx):
        ctx.set(dut.cfg_interrupt_msi_enable, 1)
        ctx.set(dut.msi_request, 1)
        asked = 0
        for clock in range(60):
            ctx.set(getattr(dut, f"cfg_interrupt_msi_{answer}"), clock == 30)
            await ctx.tick()
            ctx.set(dut.msi_request, clock < 30 or answer == "fail")
            asked += ctx.get(dut.cfg_interrupt_msi_int)
            assert asked == (1 if clock < 31 or answer == "sent" else 2)

    run(dut, bench)
