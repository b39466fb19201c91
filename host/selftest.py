"""Self-test: a board with no node attached proves itself.

Its node emulator plays the ports, behind the flip-flops that bring them in; everything from there to
the host takes part. The wires, and the first flip-flop of each, do not.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import BlockType, Cause, Control, EmulatorPattern, Sink, Window
from hypermon.host.blocks import Block, BlockScanner, Item
from hypermon.host.compact_rows import CompactRows
from hypermon.host.device import Device, Settings
from hypermon.host.errors import HypermonError
from hypermon.host.frames import FrameRows
from hypermon.host.ledger import Ledger, Rows, read_losses
from hypermon.host.times import TimeScale

__all__ = ["CHECKS", "Verdict", "selftest"]

#: Bytes asked of the stream at a time: few, because an idle virtual board's time flies. How often nothing may come.
_PIECE, _PATIENCE = 1 << 12, 200
#: What the extended sink keeps until its block is complete, at most (1,024 beats).
_COMPACT_BYTES = 1 << 14
#: Clocks from one write to the next of those few that come behind a stall.
_SLOW = 200
#: Time on a real board is compared with the host's for so long, to so much: host clocks, and reading it, are that good.
_SECONDS, _TOLERANCE = 0.5, 0.01

_Int = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


class Verdict(NamedTuple):
    """What became of a check: its name, whether it passed, and what was seen."""

    name: str
    passed: bool
    seen: str


class _Played(NamedTuple):
    """What came of some writes: windows, nodes and nibbles; records of loss; the accounts; STATUS, and the most
    vectors that waited, before the stream began."""

    window: _Int
    node: _Int
    nibble: _Int
    losses: list[tuple[int, int, int, int]]
    ledger: Ledger
    status: int
    vectors: int


def _sink(device: Device) -> Sink:
    """The one that is tested: the last that the board has."""
    return device.geometry.sinks[-1]


def _play(device: Device, pattern: EmulatorPattern, period: int, count: int, *, again: int = 0) -> _Played:
    """Lets the emulator write, in a run of its own.

    ``again``: the stream stands still until all is written; and when what was queued has come, the emulator writes
    so many more, slowly.
    """
    every = (1 << device.identity.nodes) - 1
    device.write("EMULATOR", 0)
    device.prepare(Settings(Window.CLOCK, rising=every, falling=0, after=0, sink=_sink(device)))
    ledger = Ledger(device.identity.nodes, device.scale, device.epoch, port_bits=device.identity.data_bits)
    scanner = BlockScanner()
    losses: list[tuple[int, int, int, int]] = []
    device.write("EMULATOR_PERIOD", period)
    device.write("EMULATOR_COUNT", count)
    device.start(stream=not again)
    device.write("EMULATOR", 1 | pattern << 1)
    vectors = 0
    end = period * (count + 1)      # by then all is written
    if again:
        while _windows(device) < end:
            vectors = max(vectors, device.read("LEVEL") >> 16)
    status = device.read("STATUS")
    if again:
        device.start()

    def pieces() -> Iterator[Item]:
        nonlocal again, end
        silent = 0
        stopped = False
        while not ledger.stopped:
            piece = device.link.stream(_PIECE)
            silent = 0 if piece else silent + 1
            if again:
                if not _queued(device):
                    device.write("EMULATOR", 0)
                    device.write("EMULATOR_PERIOD", _SLOW)
                    device.write("EMULATOR_COUNT", again)
                    end = _windows(device) + _SLOW * (again + 1)
                    again = 0
                    device.write("EMULATOR", 1 | pattern << 1)
            elif not stopped and _windows(device) > end:
                device.stop()
                stopped = True
            if silent > _PATIENCE:
                raise HypermonError(f"{device.link.uri} fell silent in the middle of its self-test")
            for item in scanner.feed(piece):
                if isinstance(item, Block) and item.head.type is BlockType.LOSS and item.head.epoch == device.epoch:
                    losses.extend(read_losses(item))
                yield item

    columns: list[tuple[_Int, _Int, _Int]] = []
    for rows in ledger.event_rows(pieces()):
        columns.append(_columns(rows, device.scale))
    ledger.finish()
    device.write("EMULATOR", 0)
    columns.append((_NONE, _NONE, _NONE))
    window, node, nibble = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return _Played(window, node, nibble, losses, ledger, status, vectors)


def _columns(rows: Rows, scale: TimeScale) -> tuple[_Int, _Int, _Int]:
    """Windows, nodes and nibbles of some rows: a row an event."""
    if isinstance(rows, FrameRows):
        events = rows.events(scale)
        return np.repeat(rows.stamps, rows.sizes()), events.node.astype(np.int64), events.nibble.astype(np.int64)
    assert isinstance(rows, CompactRows), "all nodes write nibbles"
    return rows.windows // scale.stamp_window, rows.node.astype(np.int64), rows.nibble.astype(np.int64)


def _queued(device: Device) -> int:
    """Whether anything waits on the board; what is in the block under way does not count."""
    return device.read("LEVEL") | device.read("STORE_LEVEL") & 0xffff | device.read("EXTERNAL_LEVEL")


def _windows(device: Device) -> int:
    device.write("LATCH", 1)
    return device.read("TIME_HIGH") << 32 | device.read("TIME_LOW")


def _numbers(values: Sequence[int]) -> str:
    """Numbers as a person writes them: 0-3, 7."""
    parts: list[list[int]] = []
    for value in sorted(values):
        if parts and value == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], value]
        else:
            parts.append([value])
    return ", ".join("-".join(map(str, dict.fromkeys(part))) for part in parts)


# -------------------------------------------------------------------------------------------- checks

def _ports(device: Device) -> tuple[bool, str]:
    """Each node in turn writes every value: it comes from that port, with that value, and no other does."""
    nodes, period = device.identity.nodes, 20
    values = 1 << device.identity.data_bits
    count = nodes * (values if _sink(device) is Sink.CLASSIC else max(64, values))   # which its buffers hold
    played = _play(device, EmulatorPattern.TURNS, period, count)
    k = np.arange(count)
    wrong = set(range(nodes))
    if len(played.node) == count:
        right = (played.node == k % nodes) & (played.nibble == (k // nodes + k % nodes) % values)
        wrong = set((k % nodes)[~right].tolist())
        steps = np.unique(np.diff(played.window))
        if not wrong and steps.tolist() != [period]:
            return False, f"strobes {period} clocks apart are stamped {_numbers(steps.tolist())} clocks apart"
    if wrong:
        return False, f"{len(played.node)} of {count} nibbles came; wrong ports: {_numbers(list(wrong))}"
    return True, f"{nodes} ports, {count} nibbles, every value, each stamped {period} clocks after the one before"


def _at_once(device: Device) -> tuple[bool, str]:
    """All nodes strobe at one clock: they share a window."""
    nodes, count = device.identity.nodes, 200
    period = 2 * nodes + 4
    played = _play(device, EmulatorPattern.ALL, period, count)
    if len(played.node) != nodes * count:
        return False, f"{len(played.node)} of {nodes * count} nibbles came"
    windows = played.window.reshape(count, nodes)
    nibbles = (np.arange(count)[:, np.newaxis] + np.arange(nodes)) % (1 << device.identity.data_bits)
    apart = int((windows != windows[:, :1]).any(1).sum())
    if apart or (played.nibble.reshape(count, nodes) != nibbles).any():
        return False, f"{apart} of {count} strobes of all nodes do not share a window" if apart else "wrong values"
    return True, f"{count} times all {nodes} nodes in one window"


def _books(played: _Played, offered: int, where: Iterable[_Int]) -> str:
    """What is wrong with the accounts, if anything. ``where``: windows of every node's writes."""
    ledger = played.ledger
    if ledger.torn or ledger.missing_blocks or ledger.faults:
        return f"{ledger.torn} torn and {ledger.missing_blocks} missing blocks"
    if len(played.node) + ledger.lost != offered:
        return f"{offered} offered, {len(played.node)} came and {ledger.lost} are said to be lost"
    for node, windows in enumerate(where):
        missing = np.setdiff1d(windows, played.window[played.node == node])
        records = [(first, last, lost) for n, lost, first, last in played.losses if n == node]
        placed = sum(int(((missing >= first) & (missing <= last)).sum()) for first, last, _ in records)
        if placed != len(missing) or sum(lost for *_, lost in records) != len(missing):
            return f"node {node}: {len(missing)} are missing, and records place {placed}"
    return ""


def _node_fifos(device: Device) -> tuple[bool, str]:
    """All nodes write as fast as they can, more than one nibble a clock: every node FIFO overruns."""
    identity = device.identity
    nodes, depth = identity.nodes, identity.node_depth
    if _sink(device) is Sink.CLASSIC:
        return True, "frames take a nibble of every node at once: node FIFOs never fill before the others"
    if nodes < 5:
        return True, "fewer than five nodes cannot write faster than the board reads"
    count = 40 * depth
    played = _play(device, EmulatorPattern.ALL, 4, count)
    first = int(played.window.min()) if len(played.window) else 0
    wrong = _books(played, nodes * count, np.tile(first + 4 * np.arange(count), (nodes, 1)))
    spared = [n for n in range(nodes) if not played.ledger.lost_per_node[n]]
    if wrong or spared:
        return False, wrong or f"node FIFOs {_numbers(spared)} did not fill"
    if not played.status & Cause.NODE_FIFO and not played.ledger.causes()["node_fifo"]:
        return False, "nothing was put down to the node FIFOs"
    return True, (f"{nodes * count} nibbles at {nodes / 4:g} a clock: {played.ledger.lost} refused, each in one of "
                  f"{len(played.losses)} records; the rest came")


def _held_up(device: Device) -> tuple[bool, str]:
    """The stream stands still while more is written than the board holds before it; then everything queued comes,
    and what is written after that, too."""
    identity = device.identity
    nodes, period, again = identity.nodes, 4, 16 * identity.nodes
    held = _COMPACT_BYTES if _sink(device) is Sink.EXTENDED else identity.frame_depth   # a byte a write at least
    count = 4 * (held + identity.vector_depth)
    played = _play(device, EmulatorPattern.TURNS, period, count, again=again)
    first = int(played.window.min()) if len(played.window) else 0
    after = played.window > first + period * count
    k = np.arange(count)
    wrong = _books(played._replace(window=played.window[~after], node=played.node[~after]), count,
                   [first + period * k[k % nodes == n] for n in range(nodes)])
    if wrong:
        return False, wrong
    if not played.ledger.lost or not played.status & Cause.FRAME_FIFO:
        return False, f"nothing was refused while the stream stood still (STATUS {played.status:#x})"
    if played.vectors <= identity.vector_depth // 2:
        return False, f"the strobe-vector FIFO held {played.vectors} of {identity.vector_depth} at most"
    k = np.arange(again)
    values = (k // nodes + k % nodes) % (1 << identity.data_bits)
    if played.node[after].tolist() != (k % nodes).tolist() or played.nibble[after].tolist() != values.tolist():
        return False, f"of {again} nibbles written behind the stall, {int(after.sum())} came, or they are others"
    return True, (f"held up for {period * count} clocks: {played.ledger.lost} of {count} refused, each in one of "
                  f"{len(played.losses)} records; strobe-vector FIFO {played.vectors} deep; everything since came")


def _time(device: Device) -> tuple[bool, str]:
    """The board's time against the host's; against the simulation's on a virtual board."""
    device.prepare(Settings(Window.CLOCK, sink=_sink(device)))
    device.start()
    clock = getattr(device.link, "board_ps", None)

    def now() -> tuple[float, int]:
        windows = _windows(device)
        board_ps = getattr(device.link, "board_ps", None)
        return (time.monotonic() if board_ps is None else int(board_ps) / 1e12), windows

    begin, first = now()
    while (until := now())[0] - begin < (_SECONDS if clock is None else 0.002):
        device.link.stream(_PIECE)
    seconds, board = until[0] - begin, (until[1] - first) / device.identity.clock_hz
    device.stop()
    off = abs(board / seconds - 1)
    return off <= _TOLERANCE, f"{board * 1e3:.3f} ms by the board, {seconds * 1e3:.3f} by the host"


#: Name and check, in the order in which they are made.
CHECKS: dict[str, Callable[[Device], tuple[bool, str]]] = {
    "time base": _time,
    "ports": _ports,
    "windows": _at_once,
    "node FIFOs": _node_fifos,
    "stall and recovery": _held_up,
}


def selftest(device: Device) -> Iterator[Verdict]:
    """Makes all checks, and the link's with them: every block of every run came, whole and in order.

    Raises
    ------
    HypermonError
        if the board has no node emulator, or falls silent.
    """
    device.write("EMULATOR", EmulatorPattern.REPLAY << 1)
    if not device.read("EMULATOR"):
        raise HypermonError(f"{device.link.uri} has no node emulator; bitstreams of `hypermon build` have one")
    identity = device.identity
    yield Verdict(
        "identity", True, f"{identity.nodes} nodes, {identity.clock_hz / 1e6:g} MHz, build {identity.build:08x}")
    try:
        for name, check in CHECKS.items():
            passed, seen = check(device)
            yield Verdict(name, passed, seen)
    finally:
        device.write("EMULATOR", 0)
        device.link.write(0, Control.RESET)
