"""Self-test: checks a board with no node attached.

Its node emulator drives the ports, after their input flip-flops. Everything from there to the host is tested. The
wires, and the first flip-flop of each, are not.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypermon.hdl.layout import BEAT_BYTES, BlockType, Cause, Control, EmulatorPattern, Sink, Window
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import Block, Scanned
from hypermon.host.blocks.compact_rows import CompactRows
from hypermon.host.blocks.frames import FrameRows
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.ledger import Ledger, Rows, read_losses
from hypermon.host.device.device import Device, Settings
from hypermon.host.diagnose.phases import check_phases
from hypermon.host.errors import HypermonError

__all__ = ["VIRTUAL_LINK", "Verdict", "checks", "selftest"]

#: Bytes requested from the stream at a time: few, because an idle virtual board's time passes fast. How often nothing
#: may arrive, times the slowness of the link.
_PIECE, _PATIENCE = 1 << 12, 200
#: A write in the stream needs at most a frame and its block; heartbeats and losses come on top.
_WRITE_BYTES, _BESIDES_BYTES = 256, 64 << 20
#: Maximum that the extended sink keeps until its block is complete (1,024 beats).
_COMPACT_BYTES = 1 << 14
#: Clocks between consecutive writes of the few that follow a stall.
_SLOW = 200
#: Duration of the comparison with the host's time, on a virtual board with the simulation's; maximum difference of two
#: crystals. The duration of the reading comes on top.
_SECONDS, _VIRTUAL_SECONDS, _TOLERANCE = 2.0, 0.002, 300e-6
#: Maximum bytes that a host's driver reads unasked; a virtual board's host reads none.
_AHEAD_BYTES = 1 << 21
#: Bytes per second on a virtual board's link: it never stops, but its store fills up with a link this slow.
VIRTUAL_LINK = 10_000_000
#: Part of an external memory that is filled: draining all of it would take minutes over a serial port.
_EXTERNAL_BYTES = 1 << 20

_Int = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


class Verdict(NamedTuple):
    """The result of a check: its name, whether it passed (None: not applicable to this board), what was observed."""

    name: str
    passed: bool | None
    seen: str


#: Whether a check passed, and what was observed.
_Seen = tuple[bool | None, str]


class _Levels(NamedTuple):
    """Maximum levels while the stream was stopped: vectors, beats in the store and in external memory."""

    vectors: int = 0
    store: int = 0
    external: int = 0


class _Played(NamedTuple):
    """The result of some writes: windows, nodes and nibbles; records of loss; the accounting; blocks and bytes; STATUS,
    and the highest levels, before the stream continued.
    """

    window: _Int
    node: _Int
    nibble: _Int
    losses: list[tuple[int, int, int, int]]
    ledger: Ledger
    blocks: int
    bytes: int
    status: int
    levels: _Levels

    @property
    def first(self) -> int:
        """Window of the first write that arrived; no board refuses the very first."""
        return int(self.window.min()) if len(self.window) else 0


def _play(device: Device, sink: Sink, pattern: EmulatorPattern, period: int, count: int, *, again: int = 0,
          stream: bool = False) -> _Played:
    """Lets the emulator write, in a run of its own.

    ``again``: the host reads nothing until everything is written; after the queued data has arrived, the emulator makes
    this number of further writes, slowly. ``stream``: the board makes blocks meanwhile, so that they fill the memory
    before the link.
    """
    every = (1 << device.identity.nodes) - 1
    device.write("EMULATOR", 0)
    device.prepare(Settings(Window.CLOCK, rising=every, falling=0, after=0, sink=sink))
    ledger = Ledger(device.identity.nodes, device.scale, device.epoch, port_bits=device.identity.data_bits)
    scanner = BlockScanner()
    losses: list[tuple[int, int, int, int]] = []
    device.write("EMULATOR_PERIOD", period)
    device.write("EMULATOR_COUNT", count)
    device.start(stream=stream or not again)
    device.write("EMULATOR", 1 | pattern << 1)
    levels, blocks, size = _Levels(), 0, 0
    most = _WRITE_BYTES * (count + again) + _BESIDES_BYTES
    end = period * (count + 1)      # by then all is written
    if again:
        running = True
        while running:
            # Once more after the end: a real link needs longer for one access than the writes take.
            running = _runs_until(device, end)
            now = device.read("LEVEL") >> 16, device.read("STORE_LEVEL") & 0xffff, device.read("EXTERNAL_LEVEL")
            levels = _Levels(*map(max, levels, now))
    status = device.read("STATUS")
    if again:
        device.start()

    def pieces() -> Iterator[Scanned]:
        nonlocal again, end, blocks, size
        silent = 0
        stopped = False
        while not ledger.stopped:
            piece = device.link.stream(_PIECE)
            silent = 0 if piece else silent + 1
            size += len(piece)
            if again:
                if not _queued(device):
                    device.write("EMULATOR", 0)
                    device.write("EMULATOR_PERIOD", _SLOW)
                    device.write("EMULATOR_COUNT", again)
                    end = device.windows() + _SLOW * (again + 1)
                    again = 0
                    device.write("EMULATOR", 1 | pattern << 1)
            elif not stopped and device.windows() > end:
                device.stop()
                stopped = True
            if silent > _PATIENCE * device.link.slowness:
                raise HypermonError(f"{device.link.uri} stopped sending in the middle of its self-test")
            if size > most:
                raise HypermonError(f"{device.link.uri} does not stop: its self-test sent {size:,} bytes, "
                                    "more than was written")
            for item in scanner.feed(piece):
                blocks += isinstance(item, Block)
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
    return _Played(window, node, nibble, losses, ledger, blocks, size, status, levels)


def _columns(rows: Rows, scale: TimeScale) -> tuple[_Int, _Int, _Int]:
    """Windows, nodes and nibbles of some rows: one row per event."""
    if isinstance(rows, FrameRows):
        events = rows.events(scale)
        return np.repeat(rows.stamps, rows.sizes()), events.node.astype(np.int64), events.nibble.astype(np.int64)
    assert isinstance(rows, CompactRows), "all nodes write nibbles"
    return rows.windows // scale.stamp_window, rows.node.astype(np.int64), rows.nibble.astype(np.int64)


def _runs_until(device: Device, end: int) -> bool:
    """Whether the board's time is before a window. Raises HypermonError if its time does not advance."""
    first = now = device.windows()
    for _ in range(_PATIENCE):
        if now != first or now >= end:
            return now < end
        now = device.windows()
    raise HypermonError(f"{device.link.uri}: its time stopped at window {now:,} in the middle of its self-test")


def _queued(device: Device) -> int:
    """Whether anything waits on the board; the contents of the current block do not count."""
    return device.read("LEVEL") | device.read("STORE_LEVEL") & 0xffff | device.read("EXTERNAL_LEVEL")


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

def _ports(device: Device, sink: Sink) -> _Seen:
    """Each node in turn writes every value: the value arrives from that port, and from no other."""
    nodes, period = device.identity.nodes, 20
    values = 1 << device.identity.data_bits
    count = nodes * (values if sink is Sink.CLASSIC else max(64, values))   # which its buffers hold
    played = _play(device, sink, EmulatorPattern.TURNS, period, count)
    k = np.arange(count)
    wrong = set(range(nodes))
    if len(played.node) == count:
        right = (played.node == k % nodes) & (played.nibble == (k // nodes + k % nodes) % values)
        wrong = set((k % nodes)[~right].tolist())
        steps = np.unique(np.diff(played.window))
        if not wrong and steps.tolist() != [period]:
            return False, f"strobes {period} clocks apart are stamped {_numbers(steps.tolist())} clocks apart"
    if wrong:
        return False, f"{len(played.node)} of {count} nibbles arrived; wrong ports: {_numbers(list(wrong))}"
    return True, f"{nodes} ports, {count} nibbles, every value, each stamped {period} clocks after the one before"


def _at_once(device: Device, sink: Sink) -> _Seen:
    """All nodes strobe in the same clock: they share a window."""
    nodes, count = device.identity.nodes, 200
    period = 2 * nodes + 4
    played = _play(device, sink, EmulatorPattern.ALL, period, count)
    if len(played.node) != nodes * count:
        return False, f"{len(played.node)} of {nodes * count} nibbles arrived"
    windows = played.window.reshape(count, nodes)
    nibbles = (np.arange(count)[:, np.newaxis] + np.arange(nodes)) % (1 << device.identity.data_bits)
    apart = int((windows != windows[:, :1]).any(1).sum())
    if apart or (played.nibble.reshape(count, nodes) != nibbles).any():
        return False, f"{apart} of {count} strobes of all nodes do not share a window" if apart else "wrong values"
    return True, f"{count} times all {nodes} nodes in one window"


def _books(played: _Played, offered: int, where: Iterable[_Int]) -> str:
    """What is wrong with the accounting, if anything. ``where``: windows of every node's writes."""
    ledger = played.ledger
    if ledger.torn or ledger.missing_blocks or ledger.repeated_blocks or ledger.faults:
        return (f"{ledger.torn} torn, {ledger.missing_blocks} missing and {ledger.repeated_blocks} repeated blocks; "
                f"left out: {sum(ledger.faults.values())}")
    if len(played.node) + ledger.lost != offered:
        return f"{offered} offered, {len(played.node)} arrived and {ledger.lost} are reported lost"
    for node, windows in enumerate(where):
        missing = np.setdiff1d(windows, played.window[played.node == node])
        records = [(first, last, lost) for n, lost, first, last in played.losses if n == node]
        placed = sum(int(((missing >= first) & (missing <= last)).sum()) for first, last, _ in records)
        if placed != len(missing) or sum(lost for *_, lost in records) != len(missing):
            return f"node {node}: {len(missing)} are missing, and {placed} of them are in the records"
    return ""


def _written(device: Device, pattern: EmulatorPattern, period: int, count: int, first: int) -> tuple[int, list[_Int]]:
    """How many nibbles the given number of writes are, and in which windows each node wrote."""
    nodes, k = device.identity.nodes, np.arange(count)
    if pattern is EmulatorPattern.ALL:
        return nodes * count, [first + period * k] * nodes
    return count, [first + period * k[k % nodes == n] for n in range(nodes)]


def _stalled(device: Device, sink: Sink, pattern: EmulatorPattern, period: int, count: int,
             stream: bool = False) -> tuple[str, _Played]:
    """The host reads nothing while everything is written; then the queued data arrives, and the data written after
    that.

    Returns
    -------
    what is wrong, if anything; and the result of the writes.
    """
    nodes = device.identity.nodes
    again = 16 * nodes
    played = _play(device, sink, pattern, period, count, again=again, stream=stream)
    after = played.window > played.first + period * count
    offered, where = _written(device, pattern, period, count, played.first)
    wrong = _books(played._replace(window=played.window[~after], node=played.node[~after]), offered, where)
    k = np.arange(again)
    if pattern is EmulatorPattern.ALL:
        k = np.repeat(k, nodes) * nodes + np.tile(np.arange(nodes), again)
    values = (k // nodes + k % nodes) % (1 << device.identity.data_bits)
    if not wrong and (played.node[after].tolist() != (k % nodes).tolist()
                      or played.nibble[after].tolist() != values.tolist()):
        wrong = f"of {len(k)} nibbles written after the stall, {int(after.sum())} arrived, or their values differ"
    return wrong, played


def _held(device: Device, sink: Sink) -> int:
    """Maximum number of writes that the board holds after its strobe-vector FIFO while it makes no blocks."""
    return _COMPACT_BYTES if sink is Sink.EXTENDED else device.identity.frame_depth     # a byte per write at least


def _node_fifos(device: Device, sink: Sink) -> _Seen:
    """Every node FIFO overruns: all nodes write more than one nibble per clock, or while the host reads nothing."""
    identity = device.identity
    nodes, depth = identity.nodes, identity.node_depth
    if nodes >= 5 and sink is Sink.EXTENDED:
        period, count = 4, 40 * depth
        played = _play(device, sink, EmulatorPattern.ALL, period, count)
        wrong = _books(played, *_written(device, EmulatorPattern.ALL, period, count, played.first))
        how, full = f"at {nodes / period:g} per clock", played.ledger.causes()["node_fifo"] > 0
    elif depth < identity.vector_depth:
        # A frame contains a nibble of every node at once; fewer than five nodes cannot write faster than the board
        # reads.
        period, count = 2 * nodes + 4, _held(device, sink) + 4 * depth
        wrong, played = _stalled(device, sink, EmulatorPattern.ALL, period, count)
        # The memories after them are full, too, and are the reported cause; but vectors had space.
        how, full = "while the host did not read", played.levels.vectors < identity.vector_depth
    else:
        return None, "the strobe-vector FIFO fills before they do"
    spared = [n for n in range(nodes) if not played.ledger.lost_per_node[n]]
    if wrong or spared:
        return False, wrong or f"node FIFOs {_numbers(spared)} did not fill"
    if not full:
        return False, "nothing was refused for lack of room in the node FIFOs"
    return True, (f"{nodes * count} nibbles {how}: {played.ledger.lost} refused, each in one of "
                  f"{len(played.losses)} records; the rest arrived")


def _held_up(device: Device, sink: Sink) -> _Seen:
    """The stream stops while more is written than the board can hold; then all queued data arrives, and the data
    written after that.
    """
    identity, period = device.identity, 4
    count = 4 * (_held(device, sink) + identity.vector_depth)
    wrong, played = _stalled(device, sink, EmulatorPattern.TURNS, period, count)
    if wrong:
        return False, wrong
    if not played.ledger.lost or not played.status & Cause.FRAME_FIFO:
        return False, f"nothing was refused while the stream was stopped (STATUS {played.status:#x})"
    # One node strobes at a time: there are as many vectors as nibbles, and a few nodes have less space for nibbles.
    vectors = played.levels.vectors
    if vectors <= min(identity.vector_depth, identity.nodes * identity.node_depth) // 2:
        return False, f"the strobe-vector FIFO held at most {vectors} of {identity.vector_depth}"
    return True, (f"stopped for {period * count} clocks: {played.ledger.lost} of {count} refused, each in one of "
                  f"{len(played.losses)} records; strobe-vector FIFO filled to {vectors}; everything later arrived")


def _store(device: Device, sink: Sink) -> _Seen:
    """The board makes blocks and the host reads none, until the store is full, or much is in external memory."""
    store = device.identity.store_depth
    external = min(device.identity.external_depth, _EXTERNAL_BYTES // BEAT_BYTES)
    if not store + external:
        return None, "the board has neither a store nor external memory"
    ahead = 0 if _virtual(device) else _AHEAD_BYTES
    # A byte per write at least.
    count = BEAT_BYTES * (store + external) + ahead + _held(device, sink) + device.identity.vector_depth
    wrong, played = _stalled(device, sink, EmulatorPattern.TURNS, 4, count, stream=True)
    levels = played.levels
    if wrong:
        return False, wrong
    if _virtual(device) and not played.ledger.lost:
        return None, "this virtual board's link accepts everything at once"
    if levels.store < store * 3 // 4 or levels.external < external // 2:
        return False, f"{levels.store} of {store} beats in the store, at most {levels.external} in external memory"
    held = [f"{levels.store} of {store} beats in the store"] * bool(store) + [
        f"{levels.external} beats in external memory"] * bool(external)
    return True, (f"{', '.join(held)}; {played.ledger.lost} of {count} refused, each in one of {len(played.losses)} "
                  "records; the rest arrived, in order")


def _link(device: Device, sink: Sink) -> _Seen:
    """Blocks at the maximum rate of the link: all whole, none missing, and their counts add up."""
    nodes, period, count = device.identity.nodes, 16, 20_000
    played = _play(device, sink, EmulatorPattern.TURNS, period, count)
    if wrong := _books(played, *_written(device, EmulatorPattern.TURNS, period, count, played.first)):
        return False, wrong
    return True, (f"{played.blocks} blocks, {played.bytes} bytes of {nodes} nodes, all whole and in order; "
                  f"{played.ledger.lost} of {count} nibbles refused")


def _virtual(device: Device) -> bool:
    return device.link.board_ps is not None


def _time(device: Device, sink: Sink) -> _Seen:
    """The board's time against the host's; against the simulation's on a virtual board."""
    device.prepare(Settings(Window.CLOCK, sink=sink))
    device.start()

    def clock() -> float:
        board_ps = device.link.board_ps
        return time.monotonic() if board_ps is None else board_ps / 1e12

    def now() -> tuple[float, int, float]:
        """Time before, board time, time after: the quickest of some attempts."""
        return min(((clock(), device.windows(), clock()) for _ in range(5)), key=lambda tried: tried[2] - tried[0])

    before, first, after = now()
    until = now()
    while until[0] - before < (_VIRTUAL_SECONDS if _virtual(device) else _SECONDS):
        device.link.stream(_PIECE)
        until = now()
    device.stop()
    board = (until[1] - first) / device.identity.clock_hz
    least, most = until[0] - after, until[2] - before
    host, unsure = (least + most) / 2, (most - least) / 2
    right = abs(board - host) <= unsure + _TOLERANCE * host
    return right, f"{board * 1e3:.3f} ms by the board, {host * 1e3:.3f} by the host, uncertain by {unsure * 1e3:.3f}"


def checks(device: Device) -> dict[str, Callable[[], _Seen]]:
    """The checks of a board's self-test, by name, in their order.

    On a board with two sinks, checks that depend on the sink are made in both. Phases are checked on a board that
    samples strobes four times per clock.
    """
    sinks = device.geometry.sinks
    last = sinks[-1]

    def each(name: str, check: Callable[[Device, Sink], _Seen]) -> dict[str, Callable[[], _Seen]]:
        return {f"{name}, {sink.name.lower()}" if len(sinks) > 1 else name: partial(check, device, sink)
                for sink in sinks}

    return {
        "time base": partial(_time, device, last),
        **each("ports", _ports),
        "windows": partial(_at_once, device, last),
        "node FIFOs": partial(_node_fifos, device, last),
        **each("stall and recovery", _held_up),
        "store": partial(_store, device, last),
        "link": partial(_link, device, last),
        **({"phases": partial(check_phases, device)} if device.identity.phases == 4 else {}),
    }


def selftest(device: Device) -> Iterator[Verdict]:
    """Makes all checks of :func:`checks`, one after the other.

    Raises
    ------
    HypermonError
        if the board has no node emulator, or stops responding.
    """
    device.write("EMULATOR", EmulatorPattern.REPLAY << 1)
    if not device.read("EMULATOR"):
        raise HypermonError(f"{device.link.uri} has no node emulator: a small board, or one that leaves it out. "
                            "`hypermon pinout BOARD` shows whether a board has one")
    identity = device.identity
    yield Verdict(
        "identity", True, f"{identity.nodes} nodes, {identity.clock_hz / 1e6:g} MHz, build {identity.build:08x}")
    try:
        for name, check in checks(device).items():
            yield Verdict(name, *check())
    finally:
        device.write("EMULATOR", 0)
        device.link.write(0, Control.RESET)
