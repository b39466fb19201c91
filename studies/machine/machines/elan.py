"""The network of QsNet: each node's DMA engine, memories, link and thread processor is a queue with one rate."""

from collections import deque
from dataclasses import dataclass

from hypermon.studies.machine.core.kernel import Leg
from hypermon.studies.machine.core.queues import Calendar

__all__ = ["ELAN", "MAIN", "Elan", "Model", "Packet"]

#: Memories of a buffer: main memory, which the adapter reaches across PCI, and the adapter's own.
MAIN, ELAN = 0, 1


@dataclass(frozen=True)
class Packet(Leg):
    """A packet of a remote DMA.

    Parameters
    ----------
    size : bytes of data; the link carries whole blocks, and at least one.
    read, write : the memory that it comes from, and the one that it goes to.
    first, last : of its message. ``match``: the target's thread processor matches its tag.
    """

    size: int = 0
    read: int = MAIN
    write: int = MAIN
    first: bool = False
    last: bool = False
    match: bool = False


@dataclass(frozen=True)
class Model:
    """Times in microseconds, rates in bytes per microsecond (MB/s), sizes in bytes. All are assumed: the paper's text
    has lost its digits.

    Parameters
    ----------
    start : of a DMA, by the engine. ``pci_start``: in addition, if its source is main memory.
    pci_read, pci_write, sdram, link : rates of the bus by direction, of the adapter's memory, and of a link.
    block, blocks : bytes of a write-block transaction, and how many of these a packet has.
    block_header, header : bytes that the link carries in addition, for each block and for each packet.
    ack : bytes of the answer to a packet, on the links of the other direction.
    hop : through the switches. ``notify``: until the target's program knows.
    match : of a tag, by the thread processor. ``inline``: longest message that travels with its envelope.
    window : packets of a message that are in flight at once.
    """

    start: float = 0.6
    pci_start: float = 0.3
    pci_read: float = 312.0
    pci_write: float = 322.0
    sdram: float = 560.0
    link: float = 400.0
    block: int = 64
    blocks: int = 5
    block_header: int = 8
    header: int = 24
    ack: int = 16
    hop: float = 0.1
    notify: float = 0.3
    match: float = 2.0
    inline: int = 288
    window: int = 2

    @property
    def payload_rate(self) -> float:
        """What is left of a link's rate for the data of full packets."""
        data = self.block * self.blocks
        return self.link * data / (data + self.blocks * self.block_header + self.header)

    def memory(self, which: int, reading: bool) -> float:
        """The rate of a memory."""
        return self.sdram if which == ELAN else self.pci_read if reading else self.pci_write

    def put(self, size: int, read: int = MAIN, write: int = MAIN, *, match: bool = False, back: bool = False
            ) -> tuple[Leg, ...]:
        """The packets of a remote write; ``back``: they travel from the message's target to its source."""
        most = self.block * self.blocks
        count = max(-(-size // most), 1)
        return tuple(Packet(0, back=back, after=self.notify if at == count - 1 else 0.0,
                            size=min(size - at * most, most), read=read, write=write, first=at == 0,
                            last=at == count - 1, match=match and at == count - 1) for at in range(count))

    def get(self, size: int, read: int = MAIN, write: int = MAIN) -> tuple[Leg, ...]:
        """A remote read: a request of one block, which the other adapter answers with the data."""
        return (Packet(0, size=0, read=ELAN, write=ELAN, first=True, last=True),
                *self.put(size, read, write, back=True))


class Elan:
    """The queues of all nodes. A packet passes its stages by cut-through: a stage begins after a block of the last."""

    def __init__(self, model: Model):
        self._model = model
        self.reset()

    def reset(self) -> None:
        self._queues: dict[tuple[int, str], Calendar] = {}
        self._acks: dict[tuple[int, int], deque[float]] = {}

    def traverse(self, at: float, source: int, target: int, leg: Leg) -> float:
        """When the next packet may be issued; of the last packet, when it has been written."""
        if not isinstance(leg, Packet):
            raise TypeError(f"not a packet: {leg}")
        model, ready = self._model, at
        acks = self._acks.setdefault((source, target), deque(maxlen=model.window))
        if leg.first:
            acks.clear()
            start = model.start + (model.pci_start if leg.read == MAIN else 0.0)
            ready = self._book(source, "engine", at, at, start) + start
        issued, written = self._pass(ready, source, target, leg, at)
        acks.append(self._acknowledge(at, written, source, target))
        if leg.last:
            return written if not leg.match else self._book(target, "thread", at, written, model.match) + model.match
        # The first of the window's packets must be acknowledged before another one is issued.
        return max(issued, acks[0]) if len(acks) == model.window else issued

    def _pass(self, ready: float, source: int, target: int, leg: Packet, now: float) -> tuple[float, float]:
        """Through memory, two links and memory: when the first stage is over, and when the last is."""
        model = self._model
        blocks = max(-(-leg.size // model.block), 1)
        data, wire = blocks * model.block, blocks * (model.block + model.block_header) + model.header
        ahead = model.block + model.block_header + model.header
        stages = ((source, _memory(leg.read), model.memory(leg.read, True), data, model.block, 0.0),
                  (source, "out", model.link, wire, 0, model.hop), (target, "in", model.link, wire, ahead, 0.0),
                  (target, _memory(leg.write), model.memory(leg.write, False), data, model.block, 0.0))
        over, first = 0.0, 0.0
        for node, queue, rate, size, head, wait in stages:
            us = size / rate
            # A stage is not over before the one it comes from.
            begin = self._book(node, queue, now, max(ready, over - us), us)
            ready, over = begin + head / rate + wait, begin + us + wait
            first = first or over
        return first, over

    def _acknowledge(self, now: float, written: float, source: int, target: int) -> float:
        us = self._model.ack / self._model.link
        out = self._book(target, "out", now, written, us)
        return self._book(source, "in", now, out + self._model.hop, us) + us

    def _book(self, node: int, queue: str, now: float, earliest: float, us: float) -> float:
        return self._queues.setdefault((node, queue), Calendar()).book(now, earliest, us)


def _memory(which: int) -> str:
    return "sdram" if which == ELAN else "pci"
