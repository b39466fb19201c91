"""Transmitter: what it sends is, by the page that describes the link, what was written to its ports."""

import random
from itertools import pairwise

from amaranth.sim import Simulator
from hypermon.hdl.regeneration.transmitter import Transmitter

from .link_model import items, opened


def sent(dut, clocks, ports, **straps):
    """Bits of the line while ``ports(clock)`` gives strobes and data; and how many items were refused per node."""
    line, refused = [], [0] * 8

    async def bench(ctx):
        for name, value in ({"rising": 255, "live": 255} | straps).items():
            ctx.set(getattr(dut, name), value)
        for clock in range(clocks):
            strobe, data = ports(clock)
            ctx.set(dut.strobe, strobe)
            ctx.set(dut.data, data)
            if bad := ctx.get(dut.refused):
                refused[:] = [n + (bad >> k & 1) for k, n in enumerate(refused)]
            await ctx.tick()
            bits = ctx.get(dut.bits)
            line.extend((bits & 1, bits >> 1))

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return line, refused


def frames(line):
    """All frames of a line that begins somewhere: start in clocks, and what is in them."""
    begin = next(at for at in range(512) if all(opened(line[at + k:at + k + 256]) for k in (0, 256)))
    return [(at // 2, opened(line[at:at + 256])) for at in range(begin, len(line) - 255, 256)]


class Nodes:
    """Eight nodes that write at random: each holds its strobe and its data as long as a port must."""

    def __init__(self, seed, rate):
        self.rng, self.rate = random.Random(seed), rate
        self.strobe, self.data, self.wait = 0, 0, [2] * 8
        self.before = 0
        self.written = []

    def __call__(self, clock):
        for n in range(8):
            self.wait[n] -= 1
            if self.strobe >> n & 1:
                if self.wait[n] < 0:
                    self.strobe &= ~(1 << n)
                    self.data ^= self.rng.getrandbits(4) << 4 * n
                    self.wait[n] = 1
            elif self.wait[n] < 0 and self.rng.random() < self.rate(clock, n):
                self.written.append((clock, n, self.data >> 4 * n & 15))
                self.strobe |= 1 << n
                self.wait[n] = self.rng.randrange(3)
        return self.strobe, self.data


def test_sends_what_was_written():
    nodes = Nodes(1, lambda clock, n: [0.002, 0, 0.008, 0.002][clock // 1500 % 4] * (clock > 400))
    line, refused = sent(Transmitter(), 6000, nodes)
    came = [item for at, (lag, _, data) in frames(line) for item in items(at, lag, data)]
    assert not any(refused)
    shift = came[0][0] - nodes.written[0][0]
    assert [(at - shift, n, nibble) for at, n, nibble in came] == nodes.written[:len(came)]
    assert len(came) > 100
    assert len(nodes.written) - len(came) < 40
    assert any(a[0] == b[0] for a, b in pairwise(came)), "none at once"
