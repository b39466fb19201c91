"""Transmitter: what it sends is, by the page that describes the link, what was written to its ports."""

import random
from itertools import pairwise

from amaranth.sim import Simulator
from hypermon.hdl.regeneration.transmitter import Transmitter

from .models.link_model import items, nibbles, opened


def sent(dut, clocks, ports, expired=None, **straps):
    """Bits of the line while ``ports(clock)`` gives strobes and data; and how many items were refused per node. Clocks
    and nodes of items that have expired are added to ``expired``."""
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
            if expired is not None and (now := ctx.get(dut.expired)):
                expired.append((clock, now))
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
    begin = next(at for at in range(2600) if all(opened(line[at + k:at + k + 256]) for k in (0, 256)))
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
    nodes = Nodes(1, lambda clock, n: [0.002, 0, 0.008, 0.002][clock // 1500 % 4] * (clock > 1400))
    line, refused = sent(Transmitter(), 7500, nodes)
    came = [item for at, (lag, _, data) in frames(line) for item in items(at, lag, data)]
    assert not any(refused)
    shift = came[0][0] - nodes.written[0][0]
    assert [(at - shift, n, nibble) for at, n, nibble in came] == nodes.written[:len(came)]
    assert len(came) > 100
    assert len(nodes.written) - len(came) < 40
    assert any(a[0] == b[0] for a, b in pairwise(came)), "none at once"


class Writers:
    """Eight nodes that write items of one to 31 nibbles; ``pace(clock)`` clocks apart; both edges are active. The
    nodes ``slow`` take 120."""

    def __init__(self, seed, pace, slow=()):
        self.rng, self.pace, self.slow = random.Random(seed), pace, slow
        self.strobe, self.data, self.wait = 0, 0, [1500 + 7 * n for n in range(8)]
        self.left = [[] for _ in range(8)]
        self.written = [[] for _ in range(8)]

    def __call__(self, clock):
        for n in range(8):
            self.wait[n] -= 1
            pace = self.pace(clock)
            if self.wait[n] == 1 and pace:
                if not self.left[n]:
                    self.left[n] = self.item(n)
                    self.written[n].append((clock + 1, list(self.left[n])))
                self.data = self.data & ~(15 << 4 * n) | self.left[n].pop(0) << 4 * n
            elif self.wait[n] <= 0 and pace:
                self.strobe ^= 1 << n
                self.wait[n] = 2 + self.rng.randrange(2 * (120 if n in self.slow else pace))
        return self.strobe, self.data

    def item(self, n):
        if n >= 6:
            return [self.rng.randrange(16)]
        if n >= 4:
            return [self.rng.randrange(16) for _ in range(8)]
        length = self.rng.randrange(1, 6)
        return [length, *(self.rng.randrange(16) for _ in range(2 * length))]


def test_items_are_sent_whole_or_refused():
    """Four nodes in event mode, two in word mode, two in nibble mode. Each item's beginning is marked. With a full FIFO
    whole items are refused, and those that had begun are cut short, also one that lasts until there is room again."""
    pace = (60, 60, 4, 60, 0)
    nodes = Writers(3, lambda clock: pace[min((clock - 1000) // 4000 % 5, 4)], slow=(2, 3))
    line, refused = sent(Transmitter(), 21_000, nodes, falling=255, events=0x0f, words=0x30)
    got = [[] for _ in range(8)]
    for at, (lag, _, data) in frames(line):
        for when, n, nibble, more in nibbles(at, lag, data):
            if not more:
                got[n].append((when, []))
            got[n][-1][1].append(nibble)
    written = nodes.written
    shift = got[7][0][0] - written[7][0][0]
    cut = 0
    for n in range(8):
        due = dict(written[n])
        for k, (when, item) in enumerate(got[n]):
            offered = due.pop(when - shift)
            assert item == offered[:len(item)]
            cut += item != offered and k < len(got[n]) - 1
        assert len(due) == refused[n]
    assert min(refused[:2] + refused[4:]) > 5
    assert cut > 2


def test_a_node_that_falls_silent_begins_anew():
    """Of two nodes in the middle of an event, one goes on after five ticks and the other after nine."""
    tick = 128
    again = {0: 1800 + 5 * tick, 1: 1800 + 9 * tick}
    script = {n: [(1800 + 20 * k, value) for k, value in enumerate([2, 7, 8])]
              + [(at + 20 * k, value) for k, value in enumerate([1, 5, 6, 3])] for n, at in again.items()}
    state = {"strobe": 0, "data": 0}

    def ports(clock):
        for n, writes in script.items():
            if writes and clock >= writes[0][0] - 1:
                state["data"] = state["data"] & ~(15 << 4 * n) | writes[0][1] << 4 * n
            if writes and clock >= writes[0][0]:
                state["strobe"] ^= 1 << n
                writes.pop(0)
        return state["strobe"], state["data"]

    expired = []
    line, refused = sent(Transmitter(tick_clocks=tick), 4000, ports, expired, falling=255, events=3)
    got = {0: [], 1: []}
    for at, (lag, _, data) in frames(line):
        for _, n, nibble, more in nibbles(at, lag, data):
            got[n].append((nibble, more))
    assert not any(refused)
    # The first one's event of two bytes is whole with two more nibbles; then one of six bytes begins.
    assert got[0] == [(2, 0), (7, 1), (8, 1), (1, 1), (5, 1), (6, 0), (3, 1)]
    assert got[1] == [(2, 0), (7, 1), (8, 1), (1, 0), (5, 1), (6, 1), (3, 0)]
    # Each item that is open when its node has been silent for seven to eight ticks has expired, once.
    silent = [(1840, 2), (2500, 1), (3012, 2)]
    assert [node for _, node in expired] == [node for _, node in silent]
    assert all(7 * tick < at - since < 8 * tick for (at, _), (since, _) in zip(expired, silent, strict=True))
