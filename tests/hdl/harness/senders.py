"""Senders of bytes, written from the standards' timing: what the wires of a node do, and when.

Levels are changes (time, wire, level), in any unit of time. SPI: the four modes as in Motorola's SPI Block Guide,
highest bit first. UART: a start bit, eight bits, the lowest first, one stop bit. ITM: packets as in the ARMv7-M
Architecture Reference Manual, appendix D4. A formatter's frames: CoreSight Architecture, ARM IHI 0029, D4.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

__all__ = ["CLOCK", "DATA", "SELECT", "Wires", "event_bytes", "framed", "itm_bytes", "spi", "uart"]

#: Wires, as a node's port has them: a UART has the first.
CLOCK, DATA, SELECT = range(3)


class Wires:
    """Levels over time."""

    def __init__(self, initial: Sequence[int] = (0, 0, 0)):
        self.initial = list(initial)
        self.changes: list[tuple[Fraction, int, int]] = []

    def set(self, time, wire: int, level: int) -> None:
        self.changes.append((Fraction(time), wire, level))

    def sampled(self, clocks: int, wire: int) -> list[int]:
        """Levels at the times 0, 1, 2, ..., each as it is after the last change at or before that time."""
        mine = sorted((c for c in self.changes if c[1] == wire), key=lambda change: change[0])
        levels, level = [], self.initial[wire]
        for time, _, new in mine:
            levels += [level] * (min(-(-time // 1), clocks) - len(levels))
            level = new
        return levels + [level] * (clocks - len(levels))

    def ports(self) -> list[tuple[int, int]]:
        """(time, port) of a node, whose strobe is the first wire: one row for each time, rounded up to a unit."""
        level = list(self.initial)
        rows: dict[int, int] = {}
        for time, wire, new in sorted(self.changes, key=lambda change: change[0]):
            level[wire] = new
            rows[-(-time // 1)] = level[CLOCK] << 4 | level[DATA] | level[SELECT] << 1
        return sorted(rows.items())


def spi(wires: Wires, at, period, data: Iterable[int], mode: int = 0, gap=0, select: bool = False, bits: int = 8,
        lowest: bool = False):
    """Sends bytes from ``at`` on, ``gap`` after each one; only ``bits`` of the last; ``lowest``: the
    lowest bit first. Returns the time at which each
    one's first bit is sampled by the receiver, and when all is over."""
    period, time, firsts = Fraction(period), Fraction(at), []
    polarity, late = mode >> 1, mode & 1
    if select:
        wires.set(time, SELECT, 0)
        time += period
    data = list(data)
    for k, byte in enumerate(data):
        for bit in range(8 if k < len(data) - 1 else bits):
            level = byte >> (bit if lowest else 7 - bit) & 1
            # Phase 0: data change half a period before the leading edge. Phase 1: with it, and the other edge samples.
            leading = time + (0 if late else period / 2)
            wires.set(time, DATA, level)
            wires.set(leading, CLOCK, 1 - polarity)
            wires.set(leading + period / 2, CLOCK, polarity)
            if bit == 0:
                firsts.append(leading + (period / 2 if late else 0))
            time += period
        time += gap
    if select:
        time += period
        wires.set(time, SELECT, 1)
        time += period
    return firsts, time


def uart(wires: Wires, at, bit, data: Iterable[int], gap=0, stop=1):
    """Sends bytes; returns the beginning of each one, and when all is over. ``stop``: level of the stop bit of the last
    one."""
    bit, time, begins = Fraction(bit), Fraction(at), []
    data = list(data)
    for k, byte in enumerate(data):
        begins.append(time)
        levels = [0, *(byte >> b & 1 for b in range(8)), stop if k == len(data) - 1 else 1]
        for level in levels:
            wires.set(time, CLOCK, level)
            time += bit
        wires.set(time, CLOCK, 1)
        time += gap
    return begins, time


def event_bytes(payload: bytes) -> bytes:
    """An event as the node library sends it over two wires or a UART: its length and the complement of that, its bytes,
    and a CRC-8 (x^8 + x^2 + x + 1, highest bit first) of all these."""
    head = bytes([len(payload) | (~len(payload) & 15) << 4]) + payload
    register = 0xff
    for byte in head:
        for bit in range(7, -1, -1):
            out = register >> 7 ^ byte >> bit & 1
            register = (register << 1 & 0xff) ^ (0x07 if out else 0)
    return head + bytes([register])


def itm_bytes(port: int, value: bytes, hardware: bool = False) -> bytes:
    """A source packet: one to a stimulus port, or from the DWT."""
    return bytes([port << 3 | hardware << 2 | {1: 1, 2: 2, 4: 3}[len(value)]]) + value


def framed(sources, rng, sync=0) -> bytes:
    """Bytes of several sources (stream, bytes) as the formatter of a trace port sends them, at random up to 23 of one
    source at a time: frames of 16 bytes, in which bytes 0, 2, ... 14 choose a stream, if bit 0 is set, or are data
    whose bit 0 is in byte 15. Of a choice that bit says whether the next byte still is of the stream before.
    ``sync``: a synchronization packet after so many frames."""
    left, flow, last = [(stream, list(data)) for stream, data in sources], [], None
    while left:
        at = rng.randrange(len(left))
        stream, data = left[at]
        if stream != last:
            flow.append((True, stream))
        count = rng.randrange(1, 24)
        flow += [(False, byte) for byte in data[:count]]
        last, left[at] = stream, (stream, data[count:])
        left = [source for source in left if source[1]]
    out = bytearray()
    while flow:
        out += _frame(flow)
        if sync and len(out) // 16 % sync == 0:
            out += b"\xff\xff\xff\x7f"
    return bytes(out)


def _frame(flow: list[tuple[bool, int]]) -> bytes:
    """Takes a frame's worth from the front of ``flow``: whether it is a choice, and its value. Filler is stream 0."""
    frame, flags = bytearray(16), 0
    for place in range(0, 16, 2):
        if not flow:
            flow += [(True, 0), *[(False, 0)] * (14 - place)]
        chooses, value = flow.pop(0)
        if not chooses and place < 14 and flow and flow[0][0]:
            # The choice stands before the byte that it comes after.
            frame[place:place + 2] = flow.pop(0)[1] << 1 | 1, value
            flags |= 1 << place // 2
            continue
        frame[place] = value << 1 | 1 if chooses else value & 0xfe
        flags |= (not chooses and value & 1) << place // 2
        if place < 14:
            frame[place + 1] = flow.pop(0)[1] if flow else 0
    frame[15] = flags
    return bytes(frame)
