"""Nodes with front ends on a virtual board: what they send, and how what came differs from that."""

from fractions import Fraction

import numpy as np
from hypermon.hdl.layout import LATENCY, Front, Sink, Window, front_latency, front_period
from hypermon.sim.stimulus.stimulus import Edge, Stimulus
from hypermon.sim.virtual.link import VirtualLink

from tests.hdl.harness.senders import Wires, event_bytes, itm_bytes, spi, uart
from tests.sim.plain_host import play, read, write

__all__ = ["CLOCK", "Node", "differences", "go", "stimulus", "uart_rows"]

#: A board's clock in ps.
CLOCK = 10_000


class Node:
    """What a node sends: its wires, and (first edge in ps, nibbles) of its items.

    ``mode`` is the one of SPI, 0 to 3; ``lowest``: a serial clock sends the lowest bit first.
    """

    def __init__(self, front, period, rng, mode=0, lowest=False):
        self.front, self.period, self.rng = front, Fraction(period), rng
        self.mode, self.lowest = mode, lowest
        line = front in (Front.UART, Front.SWO)
        self.wires = Wires([1 if line else mode >> 1, 0, front is Front.SELECTED])
        self.at, self.items = Fraction(50 * CLOCK), []

    def send(self, data, gap=0, **how):
        if self.front in (Front.UART, Front.SWO):
            begins, self.at = uart(self.wires, self.at, self.period, data, gap, **how)
        else:
            begins, self.at = spi(self.wires, self.at, self.period, data, self.mode, gap, self.front is Front.SELECTED,
                                  lowest=self.lowest, **how)
        return begins

    def event(self, size=None, gap=0):
        """An event of a random size, as this kind of node sends it."""
        rng = self.rng
        if self.front is Front.SWO:
            port, value = rng.randrange(32), bytes(rng.getrandbits(8) for _ in range(size or rng.choice((1, 2, 4))))
            payload, data = bytes([port]) + value, itm_bytes(port, value)
        else:
            payload = bytes(rng.getrandbits(8) for _ in range(size or rng.randrange(1, 16)))
            data = event_bytes(payload)
        begin, *_ = self.send(data, gap)
        self.items.append((begin, bytes([len(payload), *(n for byte in payload for n in (byte & 15, byte >> 4))])))

    def raw(self, count):
        """Bytes, of which each is two items."""
        data = [self.rng.getrandbits(8) for _ in range(count)]
        for begin, byte in zip(self.send(data), data, strict=True):
            self.items += [(begin, bytes([byte & 15])), (begin + 8 * CLOCK, bytes([byte >> 4]))]

    def single(self, count, gap=0):
        """Bytes, of which each is an item."""
        data = [self.rng.getrandbits(8) for _ in range(count)]
        self.items += [(begin, bytes([1, byte & 15, byte >> 4]))
                       for begin, byte in zip(self.send(data, gap), data, strict=True)]

    def word(self):
        """Four bytes that are an item."""
        data = [self.rng.getrandbits(8) for _ in range(4)]
        begin, *_ = self.send(data)
        self.items.append((begin, bytes(nibble for byte in data for nibble in (byte & 15, byte >> 4))))

    def idle(self, clocks):
        self.at += clocks * CLOCK


def stimulus(nodes):
    rows = sorted((int(time), n, port) for n, node in enumerate(nodes) for time, port in node.wires.ports())
    time, node, port = (np.array(column) for column in zip(*rows, strict=True))
    initial = [node.wires.initial[0] << 4 | node.wires.initial[1] | node.wires.initial[2] << 1 for node in nodes]
    edges = [Edge.FALLING if node.mode in (1, 2) else Edge.RISING for node in nodes]
    return Stimulus(time.astype(np.int64), node.astype(np.int16), port.astype(np.uint8), initial, edges)


def go(nodes, geometry, span=128, uart_baud=1_000_000, swo_baud=1_000_000, events=0xff, words=0, timeout=None,
       played=None, **options):
    """Plays what the nodes send, or ``played``; ``events`` and ``words`` are EVENT_NODES and WORD_NODES, with both a
    byte is an item."""
    played = played or stimulus(nodes)
    with VirtualLink(played, geometry, **options) as link:
        settings = {"FRONT_SPAN": span, "UART_PERIOD": front_period(geometry.clock_hz, uart_baud),
                    "SWO_PERIOD": front_period(geometry.clock_hz, swo_baud), "EVENT_NODES": events,
                    "WORD_NODES": words, "FRONT_LOWEST": sum(node.lowest << n for n, node in enumerate(nodes))}
        if timeout:
            settings["ITEM_TIMEOUT"] = timeout
        for name, value in settings.items():
            write(link, name, value)
            assert read(link, name) == value
        for k in range(4):
            assert read(link, f"FRONTS_{k}") == sum(
                front << 4 * n for n, front in enumerate(geometry.fronts[8 * k:8 * k + 8]))
        # Lines rise and pause before the run: it is time 0 that begins the stimulus.
        for _ in range(8):
            link.stream(16)
        run = play(link, played, Window.CLOCK, sink=Sink.EXTENDED)
    run.late = {Front.UART: front_latency(Front.UART, settings["UART_PERIOD"]),
                Front.SWO: front_latency(Front.SWO, settings["SWO_PERIOD"]),
                **dict.fromkeys((Front.TWO_WIRE, Front.SELECTED), front_latency(Front.TWO_WIRE, span))}
    return run


def uart_rows(begins, data, bit):
    """What :func:`~tests.hdl.harness.senders.uart` does, for many bytes that begin at these times in ps: (time, port).
    ``bit`` in ps."""
    bit = Fraction(bit)
    k = np.arange(10)
    times = begins[:, None] - (-k * bit.numerator) // bit.denominator
    levels = np.concatenate([np.zeros((len(data), 1), np.uint8), data[:, None] >> np.arange(8, dtype=np.uint8) & 1,
                             np.ones((len(data), 1), np.uint8)], axis=1)
    return times.ravel(), levels.ravel().astype(np.uint8) << 4


def differences(run, nodes):
    """Of items that came in order, none missing and none more: clocks by which stamps are later than they should be."""
    late = set()
    for n, node in enumerate(nodes):
        mine = [item for item in run.items if item.node == n]
        assert [item.nibbles for item in mine] == [nibbles for _, nibbles in node.items], f"node {n}"
        assert all(item.missing == 0 for item in mine)
        assert run.census[n]["accepted"] == run.census[n]["delivered"] == len(node.items)
        assert run.census[n]["rejected"] == 0, f"node {n}"
        late |= {item.window - LATENCY - run.late[node.front] + (begin // -CLOCK)
                 for item, (begin, _) in zip(mine, node.items, strict=True)}
    assert run.lost == 0
    return late
