"""How fast the host decodes, on one core or on more: millions of events a second.

    payload  of COMPACT blocks: to columns in memory
    arrays   stream to columns in memory: blocks found and proven, accounts kept, events taken out
    batches  recorded run to Arrow, without tables: `run.batches()`
    counted  recorded run to its figures, as `hypermon stats` needs them: no tables
    parquet  recorded run to RUN/events, on disk
    named    events to the columns of a dictionary, and to tables with them

Frames of one event are the most bytes an event, full ones the least. The board writes short blocks
when the host keeps up, and long ones when it does not. The COMPACT blocks are as long as they get, with
one event in a window at random gaps of so many windows, or full windows; or words, or events of 2 to 13
bytes, some of them late. Each figure is the least, the median and the most of several runs. On one core the rates are
of processor time; on more (--cores), where nothing else may run, of elapsed time.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypermon.hdl.layout import BEAT_BYTES, COMPACT_BEATS, LATENCY, BlockFlag, BlockType, Geometry, Window, frame_words
from hypermon.host.blocks.block_scanner import BlockScanner
from hypermon.host.blocks.blocks import PAYLOAD_MAX, Block, build_block
from hypermon.host.blocks.compact import LongItem, decode, decode_items
from hypermon.host.blocks.item_modes import ALL_NIBBLES, ItemModes
from hypermon.host.blocks.times import TimeScale
from hypermon.host.decode.decode import count_run, decode_run
from hypermon.host.decode.ledger import Ledger
from hypermon.host.recording.info import RunInfo
from hypermon.host.recording.writer import RunWriter
from hypermon.host.run import Run

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.host.compact_write import encode, encode_items

#: COMPACT blocks that differ; a stream has them again and again.
DIFFERENT = 64
PIECE = 1 << 22
CLOCK_HZ = 100_000_000


def stream(nodes: int, events: int, frames: int, block: int, rng: np.random.Generator) -> bytes:
    """Frames of so many events each, in blocks of so many frames."""
    words = np.zeros((frames, frame_words(nodes)), "<u4")
    chosen = rng.permuted(np.tile(np.arange(nodes) < events, (frames, 1)), axis=1)
    nibbles = rng.integers(0, 16, (frames, nodes), np.uint32) * chosen
    for node in range(nodes):
        words[:, len(words[0]) - 3 - node // 8] |= nibbles[:, node] << np.uint32(4 * (node % 8))
    words[:, -2] = chosen @ (1 << np.arange(nodes, dtype=np.int64))
    words[:, -1] = np.cumsum(rng.integers(1, 100, frames))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    return b"".join(
        build_block(BlockType.FRAMES, words[at:at + block].tobytes(), geometry=geometry, window=Window.NS800, epoch=1,
                    sequence=k, time=int(words[at, -1])) for k, at in enumerate(range(0, frames, block)))


def compact_stream(nodes: int, gap: int, full: bool, blocks: int, rng: np.random.Generator) -> tuple[bytes, int]:
    """COMPACT blocks, and the events in them."""
    longest = COMPACT_BEATS * BEAT_BYTES
    made = []
    for _ in range(min(blocks, DIFFERENT)):
        windows = np.cumsum(np.maximum(1, np.rint(rng.exponential(gap, longest)))).astype(int).tolist()
        nibbles = rng.integers(0, 16, (longest, nodes)).tolist()
        chosen = rng.integers(0, nodes, longest).tolist()
        items = [[(window - windows[0], node, row[node]) for node in (range(nodes) if full else (node,))]
                 for window, node, row in zip(windows, chosen, nibbles, strict=True)]
        low, high = 1, longest
        while low < high:  # the most windows that fit
            middle = (low + high + 1) // 2
            fits = len(encode((item for row in items[:middle] for item in row), nodes)) <= longest
            low, high = (middle, high) if fits else (low, middle - 1)
        payload = encode((item for row in items[:low] for item in row), nodes)
        made.append((payload, windows[low] - windows[0], low * (nodes if full else 1)))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    time, events, data = 0, 0, []
    for k in range(blocks):
        payload, span, count = made[k % len(made)]
        data.append(build_block(BlockType.COMPACT, payload, geometry=geometry, window=Window.NS800, epoch=1, sequence=k,
                                time=time, flags=BlockFlag.EXTENDED))
        time += span
        events += count
    return b"".join(data), events


def item_stream(nodes: int, gap: int, modes: ItemModes, blocks: int, rng: np.random.Generator) -> tuple[bytes, int]:
    """COMPACT blocks of words or events, one in fifty of them late, and the items in them."""
    longest = COMPACT_BEATS * BEAT_BYTES
    made = []
    for _ in range(min(blocks, DIFFERENT)):
        items, window, low, high = [], 0, 1, longest // 4
        for k in range(high):
            node, size = int(rng.integers(nodes)), int(rng.integers(2, 14))
            first = size if modes.events else int(rng.integers(16))
            rest = rng.integers(0, 16, 2 * size if modes.events else 7).tolist()
            late = k > 0 and rng.random() < 0.02
            age = int(rng.integers(min(window, 1000) + 1)) if late else 0
            items.append(LongItem(window - age, node, bytes([first, *rest]), 0, late))
            window += 0 if late else max(1, round(rng.exponential(gap)))
        items = [item for k, item in enumerate(items) if item.late or k == 0 or item.window > 0]
        while low < high:
            middle = (low + high + 1) // 2
            fits = len(encode_items(items[:middle], modes, nodes)) <= longest
            low, high = (middle, high) if fits else (low, middle - 1)
        made.append((encode_items(items[:low], modes, nodes), window, low))
    geometry = Geometry(nodes=nodes, clock_hz=CLOCK_HZ)
    time, count, data = 0, 0, []
    for k in range(blocks):
        payload, span, items_in = made[k % len(made)]
        data.append(build_block(BlockType.COMPACT, payload, geometry=geometry, window=Window.NS800, epoch=1, sequence=k,
                                time=time, flags=BlockFlag.EXTENDED | BlockFlag.ITEMS))
        time, count = time + span, count + items_in
    return b"".join(data), count


def payloads_only(data: bytes, nodes: int, count: int, modes: ItemModes, clock: Callable[[], float]) -> float:
    """Seconds for the payloads alone, a thousand at a time."""
    blocks = [item for item in BlockScanner().feed(data) if isinstance(item, Block)]
    lists = [([b.payload for b in blocks[at:at + 1000]], [b.time for b in blocks[at:at + 1000]])
             for at in range(0, len(blocks), 1000)]
    begin, found = clock(), 0
    for payloads, times in lists:
        decoded = decode_items(payloads, times, nodes, modes) if modes.longer else decode(payloads, times, nodes)
        found += sum(map(len, decoded.parts))
    assert found == count
    return clock() - begin


def to_arrays(data: bytes, nodes: int, count: int, modes: ItemModes, clock: Callable[[], float]) -> float:
    begin = clock()
    scanner = BlockScanner(join=True)
    ledger = Ledger(nodes, TimeScale(CLOCK_HZ, Window.NS800, LATENCY), 1, modes=modes)
    found = sum(len(rows.events(ledger.scale)) for at in range(0, len(data), PIECE)
                for rows in ledger.event_rows(scanner.feed(data[at:at + PIECE])))
    assert found + sum(len(rows.events(ledger.scale)) for rows in ledger.finish()) == count
    return clock() - begin


def of_run(work: Callable[[Run], object], data: bytes, nodes: int, modes: ItemModes, clock: Callable[[], float],
           dictionary: str = "") -> float:
    """Seconds of work with a fresh recording."""
    names = [modes[node].name.lower() for node in range(nodes)] if modes.longer else []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "run")
        with RunWriter(path, RunInfo("bench", nodes, CLOCK_HZ, "800", LATENCY, 1, modes=names)) as writer:
            writer.append(data)
            writer.close(how="made")
        if dictionary:
            (path / "dictionary.toml").write_text(dictionary)
        run = Run(path)
        begin = clock()
        work(run)
        return clock() - begin


def dictionary_of(ids: int) -> str:
    """Of the first ids: half of them have fields."""
    return "".join(f"[event{k}]\nid = {k}\n" + 'fields = { key = "u16", part = "u4", rest = "u12" }\n' * (k % 2)
                   for k in range(ids))


def rates(count: int, work: Callable[[], float], repeat: int) -> str:
    """Least, median and most."""
    found = sorted(count / work() / 1e6 for _ in range(repeat))
    return f"{found[0]:6.1f} {found[repeat // 2]:6.1f} {found[-1]:6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1 << 19, help="frames in each stream")
    parser.add_argument("--blocks", type=int, default=1 << 11, help="COMPACT blocks in each stream")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--nodes", type=int, nargs="*", default=(16, 32))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pa.set_cpu_count(options.cores)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.cores:])
    clock = time.process_time if options.cores == 1 else time.perf_counter
    rng = np.random.default_rng(options.seed)
    print(f"decode on {options.cores} cores, M events/s ({options.frames:,} frames or {options.blocks:,} COMPACT "
          f"blocks each, seed {options.seed}; least, median and most of {options.repeat})")
    print("nodes  kind                    bytes an event  payload               arrays                batches"
          "               counted               parquet")
    for nodes in options.nodes:
        longest = PAYLOAD_MAX // (4 * frame_words(nodes))
        for events in (1, 4, nodes) if options.frames else ():
            for block in (64, longest):
                data = stream(nodes, events, options.frames, block, rng)
                show(nodes, f"frames of {events}, {block:4} a block", ALL_NIBBLES, data, options.frames * events, clock,
                     options.repeat)
        every = (1 << nodes) - 1
        for gap in (10, 100, 1000):
            show(nodes, f"gap {gap}", ALL_NIBBLES, *compact_stream(nodes, gap, False, options.blocks, rng), clock,
                 options.repeat)
        show(nodes, "full windows", ALL_NIBBLES, *compact_stream(nodes, 100, True, options.blocks, rng), clock,
             options.repeat)
        for kind, modes in (("words", ItemModes(words=every)), ("events", ItemModes(events=every))):
            made = item_stream(nodes, 100, modes, options.blocks, rng)
            show(nodes, kind, modes, *made, clock, options.repeat)
        print("named:", rates(made[1], lambda made=made, modes=modes, nodes=nodes: of_run(
            decode_run, made[0], nodes, modes, clock, dictionary_of(200)), options.repeat), flush=True)


def show(nodes: int, kind: str, modes: ItemModes, data: bytes, count: int, clock: Callable[[], float],
         repeat: int) -> None:
    """Prints a row."""
    blocks = [item for item in BlockScanner().feed(data) if isinstance(item, Block)]
    compact = blocks[0].head.type is BlockType.COMPACT
    cells = [rates(count, lambda: payloads_only(data, nodes, count, modes, clock), repeat) if compact else " " * 20,
             rates(count, lambda: to_arrays(data, nodes, count, modes, clock), repeat),
             rates(count, lambda: of_run(lambda run: sum(map(len, run.batches())), data, nodes, modes, clock), repeat),
             rates(count, lambda: of_run(count_run, data, nodes, modes, clock), repeat),
             rates(count, lambda: of_run(decode_run, data, nodes, modes, clock), repeat)]
    size = sum(len(item.payload) for item in blocks) / count
    print(f"{nodes:5}  {kind:25} {size:12.3f}  {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
