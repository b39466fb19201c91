"""Moment gate: what was offered came out in order or was refused; a node that offers too much leaves room for others;
and an outage lasts until half of the FIFO is gone."""

import random

import pytest
from hypermon.hdl.regeneration.moment_gate import MomentGate

from ..harness.resets import same_as_fresh
from ..harness.stage import run

DEPTH = 16


@pytest.mark.parametrize("framed", [False, True])
def test_queues_or_refuses(framed):
    rng = random.Random(2)
    dut = MomentGate(depth=DEPTH)
    due, came, refused, torn, reopened, limited, told = [], [], 0, 0, 0, 0, 0
    limit = DEPTH // 8 if framed else DEPTH // 2
    own, lately = [0] * 8, [[0] * 8, [0] * 8]

    async def bench(ctx):
        nonlocal refused, torn, reopened, limited, own, lately, told
        outage = begins = False
        ctx.set(dut.framed, framed)
        for clock in range(12000):
            busy = clock // 300 % 3
            start, further = (rng.getrandbits(8) & rng.getrandbits(8) & (0xff if busy < 2 else 0x20)
                              if rng.random() < (0.07, 0.6, 0.8)[busy] else 0 for _ in range(2))
            further &= ~start
            if busy == 1 and rng.random() < 0.5:
                start, further = 0, start | further
            nibble, ready = rng.getrandbits(32), rng.random() < 0.3
            for name, value in (("start", start), ("further", further), ("nibble", nibble), ("now", clock % 4096)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.o.ready, ready)
            bad, admitted, tears = ctx.get(dut.refused), ctx.get(dut.admit), ctx.get(dut.tears)
            inside = len(due) - len(came)
            assert ctx.get(dut.outage) == begins, "in one clock of an outage: after the first that tears"
            told += begins
            begins = tears and not outage
            assert bad ^ admitted == start
            assert not bad & admitted
            if (start or further) and not tears:
                # A node is held two clocks after it has come to its limit.
                assert bad == sum(1 << node for node in range(8) if start >> node & 1 and lately[0][node] >= limit)
                limited += bad != 0
                if admitted or further:
                    assert inside < DEPTH
                    assert not outage or inside <= DEPTH // 2
                    reopened += outage
                    outage = False
                    due.append((admitted | further, further, nibble, clock % 4096))
            elif tears:
                assert start or further
                assert not admitted
                # Full a clock ago; an item that leaves is counted for one clock more.
                assert outage or inside >= DEPTH - 3
                refused, torn, outage = refused + (bad != 0), torn + (further != 0), True
            for node in range(8):
                own[node] += not tears and (admitted | further) >> node & 1
            valid, item = ctx.get(dut.o.valid), ctx.get(dut.o.p)
            if valid and ready:
                came.append((item.mask, item.more, item.nibbles, item.stamp))
                own = [count - (item.mask >> node & 1) for node, count in enumerate(own)]
            lately = [*lately[-1:], [*own]]
            await ctx.tick()

    run(dut, bench, clocks=13_000)
    assert came == due[:len(came)]
    assert len(due) - len(came) <= DEPTH
    assert min(refused, torn, limited) > 50
    assert torn > 3 * told / 2
    assert told >= reopened > 5
    assert any(more and more != mask for mask, more, *_ in due)


@pytest.mark.parametrize(("framed", "rest", "gaps"), [(False, 0, (100, 600)), (True, 6, (1_200, 4_000))])
def test_a_node_that_never_rests_leaves_room_for_the_others(framed, rest, gaps):
    """Node 3 begins an item whenever it can, of 31 nibbles if items have several. Of the others, which use a sixth of
    the line, none is refused."""
    rng = random.Random(4)
    dut = MomentGate()
    refused, offered = [0] * 8, [0] * 8
    #: Of each other node: when its next nibble comes, and how many follow that one in its item.
    due, left = [rng.randrange(*gaps) for _ in range(8)], [0] * 8

    async def bench(ctx):
        hogs, since = 0, 0
        ctx.set(dut.framed, framed)
        for clock in range(30_000):
            start = further = 0
            for node in (0, 1, 2, 4, 5, 6, 7):
                if clock == due[node]:
                    start, further = (start, further | 1 << node) if left[node] else (start | 1 << node, further)
                    left[node] = left[node] - 1 if left[node] else rest
                    due[node] += 20 if left[node] else rng.randrange(*gaps)
            if clock % 2:
                start, further = (start, further | 8) if hogs else (start | 8, further)
            ctx.set(dut.start, start)
            ctx.set(dut.further, further)
            # A nibble and its time take two bytes of the line, and those nine clocks and a half.
            since += 1
            ready = since >= 9 + clock % 2
            ctx.set(dut.o.ready, ready)
            since = 0 if ready and ctx.get(dut.o.valid) else since
            bad = ctx.get(dut.refused)
            assert not ctx.get(dut.tears)
            for node in range(8):
                offered[node] += start >> node & 1
                refused[node] += bad >> node & 1
            if clock % 2:
                hogs = hogs - 1 if hogs else 30 if framed and not bad & 8 else 0
            await ctx.tick()

    run(dut, bench, clocks=31_000)
    assert refused[3] > 300
    assert min(offered) > 8
    assert refused[:3] + refused[4:] == [0] * 7


def test_reset():
    same_as_fresh(lambda: MomentGate(depth=DEPTH), {"start": lambda rng: rng.getrandbits(8) & rng.getrandbits(8)})
