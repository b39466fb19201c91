"""A program from elsewhere: the machines' events as a CSV of port levels. It knows nothing of the emulator."""

import struct

MARK, BEGIN, END, LONG_MARK, SEND, RECEIVED, QUANTUM = 1, 2, 3, 4, 0x10, 0x13, 0x20


class Writer:
    """Ports of 4 or 8 bits, whose strobes change with every value.

    Members
    -------
    us : the time of each port.
    long_marks : marks of two sizes are written.
    """

    long_marks = True

    def __init__(self, ports: int, bits: int, gap_us: float = 0.1, fixed_us: float = 0.5):
        self.bits, self.gap_us, self.fixed_us = bits, gap_us, fixed_us
        self.us = [10.0 + port for port in range(ports)]
        self._level = [0] * ports
        self.rows: list[tuple[int, int, int]] = []

    def event(self, port: int, event: int, form: str = "", *fields: int, drop: bool = False) -> float:
        """Writes an event, which costs its values and a constant; returns its stamp."""
        record = bytes([event]) + struct.pack("<" + form, *fields)
        values = [len(record), *record] if self.bits == 8 else [
            len(record), *(nibble for byte in record for nibble in (byte & 15, byte >> 4))]
        stamp = self.us[port]
        for at, value in enumerate(values):
            if not drop:
                self._level[port] ^= 1 << self.bits
                strobe = self._level[port] & 1 << self.bits
                self.rows.append((round((stamp + at * self.gap_us) * 1000), port, strobe | value))
        self.us[port] = stamp + self.fixed_us + len(values) * self.gap_us
        return stamp

    def begin(self, port: int, *fields: int, marks: bool = True) -> None:
        """100 marks, as many long ones unless ``long_marks`` is False, then `begin`."""
        for number in range(100 if marks else 0):
            self.event(port, MARK, "B", number)
        for number in range(100 if marks and self.long_marks else 0):
            self.event(port, LONG_MARK, "BQ", number, 0)
        self.event(port, BEGIN, "HHBBI", *fields)

    def csv(self) -> str:
        """What `hypermon sim` reads."""
        rows = sorted(self.rows, key=lambda row: (row[0], row[1]))
        return "time_ns,node,port\n" + "".join(f"{time},{port},{level}\n" for time, port, level in rows)


def echoes(writer: Writer, short: tuple[float, float, float], long: tuple[float, float, float], *,
           distances: tuple[int, ...] = (1, 2, 4, 7), sizes: tuple[int, ...] = (5, 40, 77, 100, 101, 300, 650, 1000),
           count: int = 2, late_us: float = 0.0, drop: tuple[int, ...] = ()) -> None:
    """The path experiment: port 1's stamps are ``late_us`` late, and the messages of these numbers have no `send`."""
    number = 0
    for hops in distances:
        far = (1 << hops) - 1
        begin = max(writer.us) + 50
        for port, node in enumerate((0, far)):
            writer.us[port] = begin
            writer.begin(port, node, 128, 1, 1, 0, marks=hops == distances[0])
        sequence = [0, 0]
        for size in sizes:
            for _ in range(count):
                for source, target in ((0, 1), (1, 0)):
                    constant, byte, hop = short if size <= 100 else long
                    peers = (0, far)
                    writer.us[source] = max(writer.us) + (20.0 - late_us if source == 0 else 0.0)
                    writer.event(source, SEND, "HHI", peers[target], sequence[source], size, drop=number in drop)
                    arrival = writer.us[source] + constant + byte * size + hop * hops
                    writer.us[target] = arrival + (late_us if target == 1 else -late_us)
                    writer.event(target, RECEIVED, "HHI", peers[source], sequence[source], size)
                    sequence[source] += 1
                    number += 1
        for port in (0, 1):
            writer.event(port, END)


def quanta(writer: Writer, sources: dict[int, list[tuple[float, float, float]]], *, seconds: float = 200.0,
           quantum_us: float = 2000.0, each: int = 25, slower: dict[int, float] | None = None) -> None:
    """Computations on nodes whose sources are (period s, duration ms, first s)."""
    for port, (node, own) in enumerate(sources.items()):
        writer.begin(port, node, 32, 2, 1, round(quantum_us))
        work = quantum_us * each * (slower or {}).get(node, 1.0)
        due = sorted((first * 1e6 + period * 1e6 * k, ms * 1000) for period, ms, first in own
                     for k in range(int((seconds - first) / period) + 1))
        number = 0
        while writer.us[port] < seconds * 1e6:
            end = writer.us[port] + work
            while due and due[0][0] < end:
                end += due.pop(0)[1]
            writer.us[port] = end
            number += each
            writer.event(port, QUANTUM, "I", number)
        writer.event(port, END)
