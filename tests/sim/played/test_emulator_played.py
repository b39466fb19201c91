"""The node emulator on the virtual board: each pattern comes as its writes, a clock beside the next."""

import random
from itertools import accumulate

import pytest
from hypermon.hdl.input.node_emulator import REPLAY_DEPTH
from hypermon.hdl.layout import Control, EmulatorPattern, Sink, Window
from hypermon.sim.stimulus.stimulus import Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.sim.plain_host import decode, read, start, write


def played(link, pattern, count, period=4, replay=(), clocks=0, stop=None):
    """Clocks from the first write, node and nibble of each write that has come; ``stop``: when it is told to."""
    for k, (wait, node, nibble) in enumerate(replay, 1):
        write(link, "EMULATOR_REPLAY", wait | nibble << 16 | node << 20 | (k == len(replay)) << 31)
    write(link, "EMULATOR_PERIOD", period)
    write(link, "EMULATOR_COUNT", count)
    start(link, Stimulus.idle(link.geometry.nodes), Window.CLOCK, Sink.EXTENDED)
    write(link, "EMULATOR", 1 | pattern << 1)
    begin = link.edge
    assert read(link, "EMULATOR") == 1 | pattern << 1
    stream = bytearray()
    while stop and link.edge < begin + stop:
        read(link, "STATUS")
    if stop:
        write(link, "EMULATOR", 0)
    while link.edge < begin + clocks:
        stream += link.stream(1 << 12)
    write(link, "EMULATOR", 0)
    write(link, "CONTROL", Control.STREAM | Window.CLOCK << 2)
    while not (run := decode(bytes(stream), link.geometry)).stopped:
        stream += link.stream(1 << 16)
    assert not run.lost
    first = run.events[0][0] if run.events else 0
    return [(time - first, node, nibble) for time, node, nibble in run.events]


@pytest.mark.parametrize(("period", "counts"), [(20, (40, 3)), (0x5a5, (3,)), (0xaa5a, (2,))])
def test_patterns(extended, period, counts):
    """Then less again, for each run begins anew; and one that is stopped in the middle."""
    nodes = extended.nodes
    with VirtualLink(None, extended) as link:
        for count in counts:
            got = played(link, EmulatorPattern.TURNS, count, period, clocks=(count + 3) * period)
            assert got == [(k * period, k % nodes, (k // nodes + k % nodes) % 16) for k in range(count)]
            got = played(link, EmulatorPattern.ALL, count, period, clocks=(count + 3) * period)
            assert got == [(k * period, n, (k + n) % 16) for k in range(count) for n in range(nodes)]
        if period == 20:
            got = played(link, EmulatorPattern.TURNS, 40, period, clocks=42 * period, stop=20 * period + 5)
            assert got == [(k * period, k % nodes, (k // nodes + k % nodes) % 16) for k in range(len(got))]
            assert 18 <= len(got) <= 21
            assert played(link, EmulatorPattern.ALL, 0, period, clocks=3 * period) == []


def test_replay(extended):
    """All of its memory, round and round, and then less of it."""
    choose = random.Random(1)
    with VirtualLink(None, extended) as link:
        for depth, count in ((REPLAY_DEPTH, 150), (5, 23), (1, 3)):
            # A node holds each level for a clock, so that its writes are four apart; in the end comes a long wait.
            replay = [(choose.choice([4, 5, 9, 300, choose.randrange(4, 3000)]), choose.randrange(extended.nodes),
                       choose.randrange(16)) for _ in range(depth - 1)]
            replay.append((0xd3c1, choose.randrange(extended.nodes), choose.randrange(16)))
            writes = [replay[k % depth] for k in range(count)]
            times = list(accumulate(wait for wait, _, _ in writes))
            got = played(link, EmulatorPattern.REPLAY, count, replay=replay, clocks=times[-1] + 100)
            assert got == [(time - times[0], node, nibble)
                           for time, (_, node, nibble) in zip(times, writes, strict=True)]
