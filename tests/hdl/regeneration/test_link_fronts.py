"""Link fronts: checked events of nodes with few wires become ports; what is none is counted, once."""

import random
from fractions import Fraction

import pytest
from hypermon.hdl.layout import Front, front_latency
from hypermon.hdl.regeneration.link_fronts import LINK_FRONTS, LinkFronts

from ..harness.rejects import rejects
from ..harness.senders import CLOCK, DATA, SELECT, Wires, event_bytes, spi, uart
from ..harness.stage import run

#: Settings: a span in clocks, a period in 1/256 clocks.
SETTINGS = {Front.TWO_WIRE: 120, Front.SELECTED: 120, Front.UART: 16 << 8}
#: Clocks in which a line has paused.
PAUSE = 400


def nibbles_of(payload):
    return [len(payload), *(nibble for byte in payload for nibble in (byte & 15, byte >> 4))]


class Sender:
    """What a node sends: its wires, and clock of the first edge and payload of its events."""

    def __init__(self, front, rng, mode=0):
        self.front, self.rng, self.mode = front, rng, mode
        self.wires = Wires([1, 0, 0] if front is Front.UART else [mode >> 1, 0, int(front is Front.SELECTED)])
        self.at, self.events = Fraction(3 * PAUSE * 16 + rng.randrange(16), 16), []

    def bytes(self, data, gap=0, **how):
        if self.front is Front.UART:
            (begin, *_), self.at = uart(self.wires, self.at, Fraction(SETTINGS[Front.UART], 256), data, gap, **how)
        else:
            (begin, *_), self.at = spi(self.wires, self.at, Fraction(self.rng.randrange(90, 150), 10), data, self.mode,
                                       gap, self.front is Front.SELECTED, **how)
        return begin

    def event(self, gap=0):
        payload = bytes(self.rng.getrandbits(8) for _ in range(self.rng.randrange(1, 16)))
        self.events.append((-(-self.bytes(event_bytes(payload), gap) // 1), payload))

    def wrong(self, place):
        """An event with one wrong byte."""
        data = bytearray(event_bytes(bytes(self.rng.getrandbits(8) for _ in range(3))))
        data[place] ^= 1 << self.rng.randrange(8)
        self.bytes(data)

    def idle(self, clocks):
        self.at += clocks


def played(dut, senders, clocks, busy=lambda clock, node: False, expired=lambda clock: 0, falling=0):
    """Nibbles (clock, nibble) and aborts of each node, and how many pieces were told as refused."""
    levels = [[sender.wires.sampled(clocks, wire) for wire in (CLOCK, DATA, SELECT)] for sender in senders]
    seen, aborts, told = ([[] for _ in senders] for _ in range(3))

    async def bench(ctx):
        before = 0
        ctx.set(dut.falling, falling)
        for clock in range(clocks):
            now = max(clock - 1, 0)     # after the first flip-flop
            ctx.set(dut.pad_strobe, sum(levels[n][0][now] << n for n in range(len(senders))))
            ctx.set(dut.pad_data, sum((levels[n][1][now] | levels[n][2][now] << 1) << 4 * n
                                      for n in range(len(senders))))
            ctx.set(dut.expired, expired(clock))
            for n in range(len(senders)):
                ready = not busy(clock, n)
                ctx.set(dut.refused[n].ready, ready)
                if ready and ctx.get(dut.refused[n].valid):
                    told[n].append(clock)
            strobe, data, abort = ctx.get(dut.strobe), ctx.get(dut.data), ctx.get(dut.abort)
            for n in range(len(senders)):
                if (strobe ^ before) >> n & 1:
                    seen[n].append((clock, data >> 4 * n & 15))
                if abort >> n & 1:
                    aborts[n].append(clock)
            before = strobe
            await ctx.tick()

    run(dut, bench, clocks=clocks + 10)
    return seen, aborts, told


@pytest.mark.parametrize("front", LINK_FRONTS, ids=lambda front: front.name)
def test_events_at_random_phases(front):
    """Of eight nodes, each at its own constant latency, back to back and with pauses between bytes and events."""
    rng = random.Random(front)
    senders = [Sender(front, rng, mode=1 if n == 3 and front is not Front.UART else 0) for n in range(8)]
    for sender in senders:
        while sender.at < 9000:
            sender.event(gap=rng.choice((0, 0, Fraction(rng.randrange(500), 7))))
            sender.idle(rng.choice((0, Fraction(rng.randrange(3000), 7))))
    seen, aborts, told = played(LinkFronts(front, SETTINGS[front]), senders, 15_000, falling=1 << 3)
    for n, sender in enumerate(senders):
        assert [nibble for _, nibble in seen[n]] == [x for _, payload in sender.events for x in nibbles_of(payload)]
        at = 0
        for begin, payload in sender.events:
            # A level after the first flip-flop is a clock later than the pad, and so is a port's.
            assert seen[n][at][0] == begin + front_latency(front, SETTINGS[front]) + 1
            at += 1 + 2 * len(payload)
        assert len(sender.events) > 3
    assert not any(aborts)
    assert not any(told)


@pytest.mark.parametrize("front", LINK_FRONTS, ids=lambda front: front.name)
def test_each_wrong_piece_is_counted_or_cut_short(front):
    """A wrong first byte begins no item: it is counted, with the bytes that follow. After a wrong check the item that
    has begun is cut short before its last byte, and not counted."""
    rng = random.Random(7)
    sender = Sender(front, rng)
    sender.wrong(0)                     # five bytes
    sender.idle(3 * PAUSE)
    sender.event()
    sender.idle(3 * PAUSE)
    sender.wrong(4)                     # the check
    sender.idle(3 * PAUSE)
    sender.event()
    sender.idle(3 * PAUSE)
    sender.wrong(2)                     # in the middle
    pieces = 5
    if front is not Front.SELECTED:     # its select would be a pause
        sender.event()                  # back to back: not received
        pieces += len(sender.events.pop()[1]) + 2
    sender.idle(3 * PAUSE)
    sender.event()
    (seen,), (aborts,), (told,) = played(LinkFronts(front, SETTINGS[front], 1), [sender], int(sender.at) + 300)
    first, second, third = (nibbles_of(payload) for _, payload in sender.events)
    got = [nibble for _, nibble in seen]
    cut = len(got) - len(first) - len(second) - len(third)
    assert cut == 2 * 5                 # n and two of three bytes, twice
    assert got[:len(first)] == first
    assert got[len(first)] == 3
    assert got[len(first) + 5:len(first) + 5 + len(second)] == second
    assert got[-len(third):] == third
    assert len(aborts) == 3
    assert len(told) == pieces


@pytest.mark.parametrize("front", LINK_FRONTS, ids=lambda front: front.name)
def test_a_piece_waits_while_the_gate_refuses(front):
    """Whenever a stream is not ready, in single clocks, the piece is counted later; and once."""
    rng = random.Random(3)
    senders = [Sender(front, rng) for _ in range(4)]
    for sender in senders:
        for _ in range(12):
            sender.bytes(bytes(rng.getrandbits(8) & 0xf0 | 0x08 for _ in range(2)))     # 8: its complement is 7
            sender.idle(rng.randrange(30))
    counts = []
    for busy in (lambda clock, node: False, lambda clock, node: clock % 2, lambda clock, node: (clock + node) % 3 == 0):
        *_, told = played(LinkFronts(front, SETTINGS[front], 4), senders, int(max(s.at for s in senders)) + 300, busy)
        counts.append([len(clocks) for clocks in told])
    assert counts[0] == counts[1] == counts[2]
    assert min(counts[0]) > 10


def test_two_pieces_in_a_row():
    """A byte, and a fault in the next clock, because another byte came too soon: both count, whichever of these clocks
    and of those after them finds the stream not ready."""
    rng = random.Random(5)
    sender = Sender(Front.TWO_WIRE, rng)
    pairs = 12
    for _ in range(pairs):              # no pause: each is a piece, whatever it contains
        spi(sender.wires, sender.at, 6, rng.randbytes(2))
        sender.idle(rng.randrange(150, 250))
    clocks = int(sender.at) + 300

    def told(busy):
        *_, (clocks_of,) = played(LinkFronts(Front.TWO_WIRE, SETTINGS[Front.TWO_WIRE], 1), [sender], clocks, busy)
        return clocks_of

    free = told(lambda clock, node: False)
    assert len(free) == 2 * pairs
    assert all(second == first + 1 for first, second in zip(free[::2], free[1::2], strict=True))
    # A gate refuses a node's items in eight clocks once at most. Each pair finds it refusing at another moment.
    refusing = {first + k % 4 for k, first in enumerate(free[::2])}
    late = told(lambda clock, node: clock in refusing)
    assert len(late) == 2 * pairs
    assert late != free


def test_an_item_that_has_expired_is_not_counted():
    """The transmitter has cut it short: the rest of the event is discarded until a pause, and counted."""
    sender = Sender(Front.UART, random.Random(1))
    data = event_bytes(bytes(range(1, 9)))
    sender.bytes(data[:4])
    silent = int(sender.at) + 20
    sender.idle(100)
    sender.bytes(data[4:])
    sender.idle(2 * PAUSE)
    sender.event()
    (seen,), (aborts,), (told,) = played(
        LinkFronts(Front.UART, SETTINGS[Front.UART], 1), [sender], int(sender.at) + 300,
        expired=lambda clock: int(clock == silent))
    assert [nibble for _, nibble in seen] == [8, 1, 0, 2, 0, *nibbles_of(sender.events[0][1])]
    assert len(aborts) == 1
    assert len(told) == len(data) - 4


@pytest.mark.parametrize("arguments", [
    (Front.SWO, 4096), (Front.PORT, 0), (Front.UART, 4096, 0), (Front.UART, 4096, 9)])
def test_refused_parameters(arguments):
    rejects(lambda: LinkFronts(*arguments), arguments[0] if len(arguments) == 2 else arguments[2])
