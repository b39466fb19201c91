"""Front ends: each node as it is wired, at its place among the others, and at a constant latency."""

import random
from fractions import Fraction

import pytest
from amaranth.hdl import Module
from hypermon.hdl.input.front_ends import FrontEnds
from hypermon.hdl.layout import Front, Geometry, front_latency

from ..harness.senders import Wires, event_bytes, itm_bytes, spi, uart
from ..harness.stage import run

#: Nodes 1 and 6 have ports; the last one is not named.
FRONTS = (Front.TWO_WIRE, Front.PORT, Front.UART, Front.SWO, Front.SELECTED, Front.TWO_WIRE)
NODES, CLOCKS, SPAN, UART, SWO = 7, 6000, 100, 3000, 4500


def stimulus(rng, single=0, lowest=0):
    """Wires of all nodes, and (clock of the first edge, nibbles) of each node's items.

    ``single``: nodes each of whose bytes is an item; ``lowest``: nodes that send the lowest bit first; a bit each. It
    is a setting of those that are SPI masters, and without effect for the others.
    """
    wires = [Wires() for _ in range(NODES)]
    items: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(NODES)]

    def add(node, begin, payload):
        items[node].append((-(-begin // 1), (len(payload), *(n for byte in payload for n in (byte & 15, byte >> 4)))))

    for node, front in enumerate((*FRONTS, Front.PORT)):
        at = Fraction(1200 + rng.randrange(100), 3)     # after the first pause
        if front in (Front.UART, Front.SWO):
            wires[node] = Wires([1, 0, 0])
        if front is Front.SELECTED:
            wires[node] = Wires([0, 0, 1])
        while at < CLOCKS - 1200:
            if front is Front.PORT:
                break
            if single >> node & 1:
                data, period = bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 5))), Fraction(UART, 256)
                if front in (Front.UART, Front.SWO):
                    begins, at = uart(wires[node], at, Fraction(SWO, 256) if front is Front.SWO else period, data)
                else:
                    begins, at = spi(wires[node], at, Fraction(rng.randrange(70, 140), 10), data,
                                     mode=1 if node == 5 else 0, select=front is Front.SELECTED,
                                     lowest=lowest >> node & 1)
                for begin, byte in zip(begins, data, strict=True):
                    add(node, begin, bytes([byte]))
            elif front is Front.SWO:
                port, value = rng.randrange(32), bytes(rng.getrandbits(8) for _ in range(rng.choice((1, 2, 4))))
                (begin, *_), at = uart(wires[node], at, Fraction(SWO, 256), itm_bytes(port, value))
                add(node, begin, bytes([port]) + value)
            else:
                payload = bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 7)))
                data = event_bytes(payload)
                if front is Front.UART:
                    (begin, *_), at = uart(wires[node], at, Fraction(UART, 256), data)
                else:
                    (begin, *_), at = spi(wires[node], at, Fraction(rng.randrange(70, 140), 10), data,
                                          mode=1 if node == 5 else 0, select=front is Front.SELECTED,
                                          lowest=lowest >> node & 1)
                add(node, begin, payload)
            at += Fraction(rng.randrange(300), 7)
    return wires, items


@pytest.mark.parametrize(("single", "lowest"), [(0, 0), (0x0c, 0x6f), (0x3d, 0x10)])
@pytest.mark.parametrize(("pad_stage", "half_clock"), [(True, False), (False, False), (False, True)])
def test_every_front_end_at_once(pad_stage, half_clock, single, lowest):
    rng = random.Random(7)
    wires, items = stimulus(rng, single, lowest)
    levels = [[wires[n].sampled(CLOCKS, wire) for wire in range(3)] for n in range(NODES)]
    m = Module()
    m.submodules.dut = dut = FrontEnds(Geometry.extended(NODES, fronts=FRONTS, phases=1 + half_clock), pad_stage)
    seen: list[list[tuple[int, int]]] = [[] for _ in range(NODES)]

    async def bench(ctx):
        front = dut.front
        ctx.set(front.settings.span, SPAN)
        ctx.set(front.settings.uart, UART)
        ctx.set(front.settings.swo, SWO)
        ctx.set(front.settings.lowest, lowest)
        ctx.set(front.events, -1)
        ctx.set(front.single, single)
        ctx.set(front.falling, 1 << 5)
        before, busy = 0, 0
        history = []
        for clock in range(CLOCKS):
            strobe = sum(levels[n][0][clock] << n for n in range(NODES))
            data = sum((levels[n][1][clock] | levels[n][2][clock] << 1) << 4 * n for n in range(NODES))
            other = rng.getrandbits(2)
            strobe = strobe & ~0x42 | (other & 1) << 1 | other >> 1 << 6
            data = data & 0xff000f | rng.getrandbits(4) << 4 | data & 0xffff00 & ~0xf0
            # Without a pad stage, levels have been through the flip-flops of `Pads`: strobes with half clocks twice.
            history.append((strobe, data))
            given = history[-1][0] if pad_stage else history[max(clock - (2 if half_clock else 1), 0)][0]
            ctx.set(dut.pad_strobe, given)
            shown = data if pad_stage else history[max(clock - 1, 0)][1]
            ctx.set(dut.pad_data, shown)
            now, all_data = ctx.get(dut.strobe), ctx.get(dut.data)
            assert now & 0x42 == given & 0x42, "ports pass"
            assert all_data >> 4 & 15 == shown >> 4 & 15
            assert not ctx.get(front.abort)
            assert not ctx.get(front.rejected)
            for n in range(NODES):
                if (now ^ before) >> n & 1:
                    seen[n].append((clock, all_data >> 4 * n & 15))
            before = now
            busy += ctx.get(front.busy)
            await ctx.tick()
        assert busy
        assert not ctx.get(front.busy)

    run(m, bench, clocks=CLOCKS + 10)
    # A five-wire port's level is seen in this clock, and by its consumer two flip-flops later, of which one is before.
    for n, front in enumerate(FRONTS):
        if front is Front.PORT:
            continue
        setting = {Front.UART: UART, Front.SWO: SWO}.get(front, SPAN)
        assert [nibble for _, nibble in seen[n]] == [nibble for _, nibbles in items[n] for nibble in nibbles]
        at = 0
        for begin, nibbles in items[n]:
            assert seen[n][at][0] == begin + front_latency(front, setting) + (0 if pad_stage else 1)
            at += len(nibbles)
        assert len(items[n]) > 3


def test_a_byte_that_the_nibbles_have_no_time_for():
    """Three nibbles of 8 clocks, of bytes that come every 20 clocks: rejected, and nothing wrong is delivered."""
    wires = Wires()
    (*_,), _ = spi(wires, 400, Fraction(5, 2), [0x12, 0x34, 0x56])
    levels = [wires.sampled(1000, wire) for wire in range(2)]
    m = Module()
    m.submodules.dut = dut = FrontEnds(Geometry.extended(1, fronts=(Front.TWO_WIRE,)))
    nibbles, rejected = [], 0

    async def bench(ctx):
        nonlocal rejected
        ctx.set(dut.front.settings.span, 30)
        ctx.set(dut.front.events, 1)
        ctx.set(dut.front.single, 1)
        before = 0
        for clock in range(1000):
            ctx.set(dut.pad_strobe, levels[0][clock])
            ctx.set(dut.pad_data, levels[1][clock])
            if ctx.get(dut.strobe) != before:
                nibbles.append(ctx.get(dut.data))
            before = ctx.get(dut.strobe)
            rejected += ctx.get(dut.front.rejected)
            await ctx.tick()

    run(m, bench, clocks=1010)
    assert (nibbles, rejected) == ([1, 2, 1], 2)


def test_geometries_that_are_refused():
    for wrong in ({"fronts": (Front.UART,) * 5}, {"fronts": (7,)}, {"fronts": (Front.UART,), "port_bits": 8}):
        with pytest.raises(ValueError, match="fronts need the extended sink, ports of 4 bits"):
            Geometry.extended(4, **wrong)
    with pytest.raises(ValueError, match="fronts need the extended sink"):
        Geometry(4, fronts=(Front.UART,))
    assert Geometry.extended(4, fronts=(Front.PORT, Front.UART, Front.SWO)).fronted == 6
