"""Streams of every kind of run, what can happen to them on the way, and what a decoder must say then.

Slow and obvious on purpose: it is the oracle of test_corruption.py.
"""

import random
import zlib
from collections import Counter as Tally
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypermon.hdl.layout import LATENCY, BlockFlag, BlockType, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.item_modes import ItemMode, ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.account import summary
from hypermon.host.decode.ledger import Ledger

from tests.host.fake_board import FakeBoard, random_run
from tests.host.items import TIMEOUT, emitted, in_blocks, play

__all__ = ["KINDS", "RUNS", "Decoded", "Stream", "corrupted", "decoded", "faults_of", "made", "resealed"]

#: What of a summary says that something is not as it was sent.
_SAID = ("missing_blocks", "repeated_blocks", "torn", "foreign_blocks", "uncounted", "too_late", "faults", "lost",
         "surplus")


@dataclass
class Stream:
    """A run's blocks, what a :class:`Ledger` must know of it, and blocks of another run with the same modes."""

    blocks: list[bytes]
    nodes: int
    scale: TimeScale
    options: dict[str, Any] = field(default_factory=dict)
    others: list[bytes] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        return b"".join(self.blocks)


@dataclass
class Decoded:
    """Rows of events, each as a tuple that begins with time and node; loss rows; :func:`summary`."""

    events: list[tuple]
    losses: list[tuple[int, int, int, int]]
    summary: dict[str, Any]


def decoded(stream: Stream, data: bytes, rng: random.Random) -> Decoded:
    """What the host makes of the data, which it gets in pieces of any size."""
    ledger = Ledger(stream.nodes, stream.scale, 1, **stream.options)
    scanner = BlockScanner(join=True)
    events: list[tuple] = []

    def items():
        at = 0
        while at < len(data):
            size = rng.choice((100, 512, 4096, 1 << 22))
            yield from scanner.feed(data[at:at + size])
            at += size
        yield from scanner.finish()

    def take(rows):
        table = rows.events(stream.scale)
        columns = ([table.time_ps, table.node, table.nibble] if not isinstance(table, pa.Table) else table.columns)
        events.extend(zip(*(column.tolist() if hasattr(column, "tolist") else column.to_pylist()
                            for column in columns), strict=True))

    for rows in (*ledger.event_rows(items()), *ledger.finish()):
        take(rows)
    if (late := ledger.late_rows()) is not None:
        take(late)
    return Decoded(events, ledger.take_losses(), summary(ledger, len(data)))


# ---------------------------------------------------------------------------------------------- runs

def _frames(rng: random.Random, count: int, nodes: int) -> Stream:
    board = random_run(FakeBoard(nodes), rng, count, size=8, losses=0.3)
    return Stream(board.blocks, nodes, TimeScale(board.clock_hz, board.window, LATENCY))


def _registers(rng: random.Random, count: int) -> Stream:
    """Frames that the host reads, among the other blocks as they come."""
    board = random_run(FakeBoard(6, host=True), rng, count, size=8, losses=0.3)
    queues: list[list[bytes]] = [[], []]
    for block, (kind, _) in zip(board.blocks, board.kinds, strict=True):
        queues[kind is BlockType.FRAMES].append(block)
    stop = queues[0].pop()
    blocks = []
    while any(queues):
        blocks.append((queues[rng.random() < 0.5] or queues[0] or queues[1]).pop(0))
    return Stream([*blocks, stop], 6, TimeScale(board.clock_hz, board.window, LATENCY), {"by_host": True})


def _nibbles(rng: random.Random, count: int) -> Stream:
    """Blocks that end inside a window, too."""
    board = random_run(FakeBoard(8, sink=Sink.EXTENDED), rng, max(count // 4, 1), size=8, losses=1)
    return Stream(board.blocks, 8, TimeScale(board.clock_hz, board.window, LATENCY))


def _bytes(rng: random.Random, count: int) -> Stream:
    board = FakeBoard(20, sink=Sink.EXTENDED)
    _compact(rng, board, count, 1, 8, BlockFlag.BYTES)
    return Stream(board.blocks, 20, TimeScale(board.clock_hz, board.window, LATENCY), {"port_bits": 8})


def _compact(rng: random.Random, board: FakeBoard, count: int, ticks: int, bits: int, flags: BlockFlag) -> None:
    """Blocks of single items whose stamps count ``ticks`` to a window."""
    board.start()
    stamp = 20
    for _ in range(count):
        items = []
        for _ in range(rng.randint(1, 20)):
            stamp += rng.randint(1, 500)
            items.append((stamp, rng.randrange(board.nodes), rng.randrange(1 << bits)))
        board.compact(items, flags=flags, port_bits=bits)
        board.time = stamp // ticks
        if rng.random() < 0.3:
            board.loss([(rng.randrange(board.nodes), rng.randint(1, 99), board.time - 3, board.time)])
        if rng.random() < 0.3:
            board.census()
    board.stop(board.time + 10)


def _half_clocks(rng: random.Random, count: int) -> Stream:
    board = FakeBoard(8, sink=Sink.EXTENDED, window=Window.CLOCK)
    _compact(rng, board, count, 2, 4, BlockFlag.HALF)
    return Stream(board.blocks, 8, TimeScale(board.clock_hz, board.window, LATENCY, phases=2))


def _items(rng: random.Random, count: int, *modes: ItemMode) -> Stream:
    board, both = FakeBoard(len(modes), window=Window.CLOCK, sink=Sink.EXTENDED), ItemModes.of(modes)
    play(rng, board, both, in_blocks(rng, emitted(rng, board, both, 10 * count), both, 20), losses=0.3)
    return Stream(board.blocks, len(modes), TimeScale(board.clock_hz, board.window, LATENCY),
                  {"modes": both, "timeout_clocks": TIMEOUT})


_NIBBLE, _WORD, _EVENT, *_ = ItemMode
RUNS = {
    "frames": lambda rng, count: _frames(rng, count, 16),
    "frames of 20 nodes": lambda rng, count: _frames(rng, count, 20),
    "registers": _registers,
    "nibbles": _nibbles,
    "bytes": _bytes,
    "half clocks": _half_clocks,
    "words": lambda rng, count: _items(rng, count, _WORD, _WORD),
    "events": lambda rng, count: _items(rng, count, _EVENT, _EVENT, _EVENT),
    "mixed": lambda rng, count: _items(rng, count, _NIBBLE, _EVENT, _WORD, _EVENT, _NIBBLE),
}


def made(name: str, seed: int, count: int = 30) -> Stream:
    """A run of :data:`RUNS` with about so many blocks of events."""
    stream, other = (RUNS[name](random.Random(f"{name} {seed} {which}"), count) for which in range(2))
    stream.others = other.blocks
    return stream


# ----------------------------------------------------------------------------------------- corruption

def _bits(rng, stream):
    data = bytearray(stream.data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _burst(rng, stream):
    data = bytearray(stream.data)
    at, size = rng.randrange(len(data)), rng.randint(1, 64)
    data[at:at + size] = rng.randbytes(len(data[at:at + size]))
    return bytes(data)


def _inserted(rng, stream):
    at, data = rng.randrange(len(stream.data)), stream.data
    return data[:at] + rng.randbytes(rng.randint(1, 20)) + data[at:]


def _deleted(rng, stream):
    at, data = rng.randrange(len(stream.data)), stream.data
    return data[:at] + data[at + rng.randint(1, 5):]


def _cut(rng, stream):
    return stream.data[:rng.randrange(len(stream.data))]


def _front(rng, stream):
    return stream.data[rng.randrange(len(stream.data)):]


def _pages(change):
    """A change to the list of the data's pages, as a disk or a copy makes it; or of its blocks, as a link does."""
    def change_pages(rng, stream):
        size = rng.choice([0, 0, 0, 16, 64, 512, 4096])
        pages = [stream.data[at:at + size] for at in range(0, len(stream.data), size)] if size else [*stream.blocks]
        at, other = rng.randrange(len(pages)), rng.randrange(len(pages))
        change(pages, at, other, at + rng.choice([1, 1, 2, 5, 20]), rng)
        return b"".join(pages)
    return change_pages


@_pages
def _dropped(pages, at, other, end, rng):
    del pages[at:end]


@_pages
def _repeated(pages, at, other, end, rng):
    pages[at:at] = pages[at:end]


@_pages
def _repeated_far(pages, at, other, end, rng):
    pages[other:other] = pages[at:end]


@_pages
def _repeated_for_another(pages, at, other, end, rng):
    """One is there twice, and one is not."""
    pages[other:other + end - at] = pages[at:end]


@_pages
def _neighbours_swapped(pages, at, other, end, rng):
    pages[at:at + 2] = pages[at:at + 2][::-1]


@_pages
def _swapped(pages, at, other, end, rng):
    pages[at], pages[other] = pages[other], pages[at]


@_pages
def _moved(pages, at, other, end, rng):
    moved = pages[at:end]
    del pages[at:end]
    pages[other:other] = moved


@_pages
def _shuffled(pages, at, other, end, rng):
    some = pages[at:at + 8]
    rng.shuffle(some)
    pages[at:at + 8] = some


@_pages
def _zeros(pages, at, other, end, rng):
    pages[at] = bytes(len(pages[at]))


def resealed(block: bytes, payload: bytes, time: int | None = None) -> bytes:
    """The block with another payload, and what proves it."""
    head = block[:12] + len(payload).to_bytes(4, "little") + (
        block[16:24] if time is None else time.to_bytes(8, "little")) + block[24:32]
    data = head + payload + bytes(-len(payload) % 16) + block[-16:-4]
    return data + zlib.crc32(data).to_bytes(4, "little")


def _twice(rng, stream):
    return stream.data * 2


def _of_another_run(rng, stream):
    """Of the same board, with the same epoch: pages between, or all that comes after."""
    blocks, others = stream.blocks, stream.others
    at, other = rng.randrange(len(blocks)), rng.randrange(len(others))
    if rng.random() < 0.5:
        return b"".join(blocks[:at] + others[other:other + rng.choice([1, 2, 5])] + blocks[at:])
    return b"".join(blocks[:at] + others[rng.choice([at, other]):])


#: What can happen to a stream.
KINDS = {
    "bits": _bits, "burst": _burst, "inserted": _inserted, "deleted": _deleted, "cut": _cut, "front": _front,
    "dropped": _dropped, "repeated": _repeated, "repeated far": _repeated_far,
    "repeated for another": _repeated_for_another, "neighbours swapped": _neighbours_swapped, "swapped": _swapped,
    "moved": _moved, "shuffled": _shuffled, "zeros": _zeros, "twice": _twice,
    "of another run": _of_another_run,
}
#: After these an event may be one of another run: that is said.
STRANGE = ("of another run",)


def corrupted(kind: str, stream: Stream, rng: random.Random) -> bytes:
    """The stream's data after something of :data:`KINDS`."""
    return KINDS[kind](rng, stream)


# ------------------------------------------------------------------------------------------- judgement

def faults_of(stream: Stream, whole: Decoded, found: Decoded, kind: str = "") -> list[str]:
    """What is wrong with what was found in data that were corrupted so; ``whole``: what was in them before."""
    wrong = []
    truth, came = Tally(whole.events), Tally(found.events)
    said = {name for name in _SAID if found.summary[name] and found.summary[name] != whole.summary[name]}
    if not found.summary["accounted"] or found.summary["torn"]:
        said.add("accounted")
    if kind in STRANGE:
        return ["events of another run, and nothing says so"] if came != truth and not said else []
    if any(event not in truth for event in came):
        wrong.append("events that never were")
    if any(event in truth for event in came - truth):
        wrong.append("events more often than they were")
    lacking = truth - came
    if lacking and not said:
        wrong.append("events are missing, and nothing says so")
    if found.summary["events"] + found.summary["aborted"] != len(found.events):
        wrong.append("other events are counted than come")
    if found.summary["lost_per_node"] != [sum(row[1] for row in found.losses if row[0] == node)
                                          for node in range(stream.nodes)]:
        wrong.append("the loss table is not the sum")
    exact = found.summary["stopped"] and not found.summary["uncounted"]
    for node in range(stream.nodes):
        offered = sum(row[1] == node for row in whole.events) + whole.summary["lost_per_node"][node]
        accounted = sum(row[1] == node for row in found.events) + found.summary["lost_per_node"][node]
        if accounted > offered:
            wrong.append(f"node {node}: more is lost than was offered")
        if accounted < offered and exact:
            wrong.append(f"node {node}: less is lost than is missing")
        if exact and not _placed([row for row in lacking.elements() if row[1] == node],
                                 [row for row in found.losses if row[0] == node]):
            wrong.append(f"node {node}: losses are not where events are missing")
    return wrong


def _placed(lacking, losses) -> bool:
    """Every missing event is in a row."""
    return all(any(first <= row[0] <= last for _, _, first, last in losses) for row in lacking)
